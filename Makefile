.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -euo pipefail -c

# Without paths in what is compiled, clones and worktrees share Go's build cache: a second clone compiles nothing anew.
export GOFLAGS := $(shell go env GOFLAGS) -trimpath

# Without C in the standard library, what is linted, tested, built for CUDA and built as a test's client shares its compiled packages.
lint test deps: export GOFLAGS += -tags=netgo,osusergo

# A program without C needs no library of the machine that it runs on, nor a C compiler on the one that builds it.
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
REVISION := $(shell git rev-parse HEAD 2>/dev/null)
CLI := github.com/disdel/disdel/internal/cli
STAMP := -X main.release=$(VERSION) -X $(CLI).release=$(VERSION) -X $(CLI).revision=$(REVISION)
BUILD := CGO_ENABLED=0 go build -ldflags "-s -w $(STAMP)"
# The benches are a module of their own: $(BENCH)NAME ./NAME puts bench/NAME at bin/bench-NAME.
BENCH := CGO_ENABLED=0 go build -C bench -ldflags "-s -w" -o ../bin/bench-

.PHONY: help
help: ## this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 18

.PHONY: build
build: ## bin/disdel and bin/disdel-runtime, the action runtime alone: static files
	$(BUILD) -o bin/disdel ./cmd/disdel
	$(BUILD) -o bin/disdel-runtime ./cmd/disdel-runtime
	scripts/check-static.sh bin/disdel bin/disdel-runtime

.PHONY: release
release: ## archives, Debian packages and images of actions for linux/amd64 and arm64, an archive for darwin/arm64, lists of parts, licences, SHA-256 sums and a statement of provenance, in dist/ (VERSION=v0.1.0)
	go -C tools run ./release -root .. -version "$(VERSION)" -out ../dist

.PHONY: release-check
release-check: ## a release built twice, in two folders and with an empty cache: prints whether the bytes are the same; starts what users install
	scripts/release-check.sh

.PHONY: cuda
cuda: ## bin/disdel-cuda: disdel with the engine for NVIDIA GPUs, which needs C and 50 MB of CUDA's wheels to be built
	scripts/cuda-deps.sh
	scripts/cuda-env.sh go build -tags nvidia,netgo,osusergo -ldflags "-s -w $(STAMP)" -o bin/disdel-cuda ./cmd/disdel

# A machine with a GPU may reach no registry: what `make cuda-tools` built elsewhere is taken as it is.
.PHONY: cuda-tools
cuda-tools: cuda ## what gpu-check and bench-gpu need, built beforehand: copy bin/ along to a machine that reaches no registry
	scripts/cuda-env.sh go build -C bench -tags nvidia,netgo,osusergo -o ../bin/bench-gpu ./gpu
	scripts/cuda-env.sh go test -c -tags nvidia,netgo,osusergo -o bin/test-gpu ./runtime/engine/cuda/device

.PHONY: test-cuda
test-cuda: ## what can be tested of the engine for GPUs where there is none: build, vet, kernels' text, tests; says how many want a device (REST=1: what `make test` leaves)
	scripts/test-cuda.sh $(if $(REST),rest)

.PHONY: gpu-check
gpu-check: ## all networks on the GPU against the processor, and PyTorch where python3 has it, then figures, in gpu-report.md; says so where there is no GPU
	[ -x bin/bench-gpu ] || $(MAKE) cuda-tools
	bin/bench-gpu -within 6m

.PHONY: bench-gpu
bench-gpu: ## figures of the GPU beside the processor, in gpu-figures.md; says so where there is no GPU
	[ -x bin/bench-gpu ] || $(MAKE) cuda-tools
	bin/bench-gpu -parts figures,sharing -report gpu-figures.md

.PHONY: deps
deps: ## what the tests need (Debian and npm packages)
	scripts/test-deps.sh

.PHONY: test
test: deps ## every test, on a real redis-server, a pouchdb-server and our own OpenWhisk, with the race detector where it is affordable
	scripts/test.sh

.PHONY: test-arm64
test-arm64: ## the kernels for arm64 under an emulator, Debian's qemu-user, which it installs (ALL=1: and the engine on them, longer)
	scripts/test-arm64.sh $(if $(ALL),all)

SEED ?= 1
.PHONY: scenarios
scenarios: ## a newcomer's first week in twenty scripts, with the time of each
	@go test -count=1 -v -run TestScenarios ./internal/cli | grep -E '^ *scenarios_test.go.*scenario |FAIL|^ok'

.PHONY: robust
robust: deps build ## faults and attacks on the built program, from SEED (docs/reference/robustness.md); ONLY=R2,S8 chooses some
	scripts/robust.sh "$(SEED)" "$(ONLY)"

.PHONY: soak
soak: build ## drawn jobs of three tenants for HOURS=1, with kills and restarts: what the server holds, and a plot (PLOT=bin/soak.svg)
	DISDEL_SOAK_HOURS="$(or $(HOURS),1)" DISDEL_SOAK_PLOT="$(abspath $(or $(PLOT),bin/soak.svg))" CGO_ENABLED=0 \
		go test ./test/robust -count=1 -v -timeout 0 -run TestSoakOfTenants

.PHONY: simulate
simulate: ## whole jobs in virtual time, with lost messages and dying processes (SEEDS=1..10000; SEEDS=7 TRACE=1: what happens in one)
	go test ./test/simulate -count=1 -v -timeout 60m -run UnderFaults -args -seeds "$(or $(SEEDS),1..1000)" $(if $(TRACE),-trace)

.PHONY: simulate-bugs
simulate-bugs: ## bugs that were put in by hand (test/simulate/bugs), each found by simulation within SEEDS=500 seeds
	SEEDS=$(SEEDS) scripts/simulate-bugs.sh

.PHONY: bench-trust
bench-trust: ## figures of the tests: simulated runs and violations, planted bugs, a release built twice, checks that hold (PARTS=sim,planted,reproducible,rows chooses; PARTS=kth EVERY=1: calls that fail; PARTS=soak HOURS=1; PARTS=mutants MUTANTS=40 SEED=1: small changes of the code that tests notice; PARTS=coverage: errors' paths that tests run)
	MUTANTS=$(MUTANTS) SEED=$(SEED) EVERY=$(EVERY) HOURS=$(HOURS) scripts/bench-trust.sh "$(PARTS)"

.PHONY: lint
lint: ## gofumpt, vet, go fix, staticcheck, tidy
	scripts/lint.sh

.PHONY: vulncheck
vulncheck: ## published weaknesses that the programs reach (govulncheck asks vuln.go.dev; DB=file:///COPY reads a copy of that database)
	@go tool -modfile=tools/go.mod govulncheck $(if $(DB),-db "$(DB)") $(or $(PACKAGES),./cmd/...)

.PHONY: house
house: ## figures of the size of the repository: lines, files, packages, words of the glossary
	go -C tools run ./house -root ..

.PHONY: words
words: ## how plain the sentences of comments, help and docs are; fails above the limits of tools/house/limits.txt
	go -C tools run ./house -root .. -words

.PHONY: check
check: ## what CI runs: lint, test, test-arm64, test-cuda, some of it beside each other
	.ci/run

.PHONY: quickstart
quickstart: ## the main job on embedded defaults
	go run ./cmd/disdel quickstart

.PHONY: bench-spine
bench-spine: deps build ## figures of one job end to end: quickstart and Fashion-MNIST
	$(BENCH)spine ./spine
	bin/bench-spine

.PHONY: bench-engine
bench-engine: build ## figures of the engine, beside PyTorch, TensorFlow, JAX and ONNX Runtime (installs them under .cache)
	scripts/bench-deps.sh
	$(BENCH)engine ./engine
	bin/bench-engine -torch "$$(scripts/bench-deps.sh --interpreters)"

.PHONY: bench-sequences
bench-sequences: build ## figures of the engine on networks of sequences, beside PyTorch, of tokenizers and of adapters (PARTS=attention, tokenizer or lora: those alone; PARTS=drawn SEED=1: gradients of 300 drawn networks and memory of 40 drawn jobs)
ifeq ($(PARTS),drawn)
	$(BENCH)estimator ./estimator
	DISDEL_TEST_DRAWN=300 DISDEL_TEST_SEED=$(or $(SEED),1) go test ./runtime/engine/native -count=1 -v -run GradientsOfDrawn
	bin/bench-estimator -parts sequences -seed $(or $(SEED),1)
else
	scripts/bench-deps.sh --torch
	scripts/bench-deps.sh --tokenizers
	$(BENCH)engine ./engine
	bin/bench-engine -torch "$$(scripts/bench-deps.sh --interpreters)" -only $(or $(PARTS),sequences)
endif

.PHONY: bench-fitting
bench-fitting: deps build ## figures of models larger than an action: networks made to fit (SEED=1), aggregations of 553 MB (PARTS=drawn SEED=1: 30 drawn jobs, trained at their exact limits; PARTS=kills: 100 kills of stages; PARTS=forecast: times of jobs in stages beside their forecasts; PARTS=vgg: VGG-16 trained in 512 MB; PARTS=plans: only what plans say)
ifeq ($(PARTS),drawn)
	$(BENCH)estimator ./estimator
	bin/bench-estimator -parts fitting -seed $(or $(SEED),1)
else ifeq ($(PARTS),kills)
	$(BENCH)faults ./faults
	bin/bench-faults -stages -kills 100 -seed $(or $(SEED),1)
else ifeq ($(PARTS),forecast)
	$(BENCH)fitting ./fitting
	bin/bench-fitting -forecasts bin/disdel
else ifeq ($(PARTS),vgg)
	$(BENCH)fitting ./fitting
	bin/bench-fitting -vgg bin/disdel
else ifeq ($(PARTS),plans)
	$(BENCH)fitting ./fitting
	bin/bench-fitting -plans
else
	$(BENCH)fitting ./fitting
	$(BENCH)aggregator ./aggregator
	bin/bench-fitting $(if $(SEED),-seed $(SEED))
	bin/bench-aggregator -fitting bin/disdel-runtime
endif

.PHONY: bench-estimator
bench-estimator: build ## figures of estimates beside measured peaks and durations: 60 jobs drawn from SEED=4 at exact limits and at defaults, and forecasts (PARTS=memory: the zoo; PARTS=advice: 60 failures)
	$(BENCH)estimator ./estimator
	bin/bench-estimator $(if $(SEED),-seed $(SEED)) $(if $(PARTS),-parts $(PARTS))

.PHONY: bench-headline
bench-headline: build ## 20 jobs at OpenWhisk's default limits, with fixed-step retries, and with disdel
	$(BENCH)estimator ./estimator
	bin/bench-estimator -parts headline

.PHONY: bench-functions
bench-functions: build ## figures of users' Python programs as actions, beside plain PyTorch (PARTS=steps,starts,exchange,estimates,translated,kills,frameworks,kubeml,examples)
	scripts/bench-deps.sh --torch
	$(if $(or $(if $(PARTS),,all),$(findstring frameworks,$(PARTS))),scripts/frameworks.sh)
	$(BENCH)functions ./functions
	bin/bench-functions $(if $(PARTS),-parts $(PARTS))

.PHONY: bench-platform
bench-platform: build ## figures of disdel platform up, as clients in another process see it
	$(BENCH)platform ./platform
	bin/bench-platform

.PHONY: serverless
serverless: build ## deploy, invoke, logs and remove by the serverless framework (npm), on the embedded OpenWhisk
	scripts/serverless.sh

.PHONY: images
images: ## builds the Dockerfiles of the actions by buildah, on bases of Debian, and starts them (as root; apt-get install buildah debootstrap)
	scripts/build-images.sh

.PHONY: suites
suites: deps build ## what others test their clients of OpenWhisk with, and adapters of Python libraries: how many cases pass (ONLY=cases, wskdeploy, serverless, frameworks, hub; ONLY=new: adapters on PyTorch 2)
	scripts/suites.sh

.PHONY: bench-aggregator
bench-aggregator: deps build ## figures of aggregation against a redis-server on loopback, of whole jobs, and of jobs under faults
	$(BENCH)aggregator ./aggregator
	$(BENCH)faults ./faults
	bin/bench-aggregator
	bin/bench-faults

.PHONY: bench-policies
bench-policies: build ## figures of policies beside the best fixed number of workers, simulated (PARTS=auto,tta,momentum,speed,sim: real jobs)
	$(BENCH)policies ./policies
	$(BENCH)exchange ./exchange
	bin/bench-policies $(if $(PARTS),-parts $(PARTS))
	$(if $(PARTS),,bin/bench-exchange -parts tuner)

.PHONY: bench-exchange
bench-exchange: build ## figures of sparse models and of exchange after every step (PARTS=speed,real,virtual,hsp,tuner,kills: those alone; SEED=2: other kills); MovieLens-100K where it can be fetched
	-scripts/movielens.sh
	scripts/bench-deps.sh --sparse
	$(BENCH)exchange ./exchange
	bin/bench-exchange -pythons "$$(scripts/bench-deps.sh --interpreters --sparse)" $(if $(PARTS),-parts $(PARTS)) $(if $(SEED),-kill-seed $(SEED))

.PHONY: bench-paper
bench-paper: build ## the DiSDeL paper's experiments beside its printed numbers, in about 20 minutes (ONLY=fig2,fig8: those alone; SCALE=1 ENGINE=disdel|both REPEAT=3 BUDGET=20m CIFAR=folder)
	scripts/paper-deps.sh "$(or $(ENGINE),both)"
	$(BENCH)paper ./paper
	bin/bench-paper $(if $(ONLY),-only $(ONLY)) $(if $(SCALE),-scale $(SCALE)) $(if $(ENGINE),-engine $(ENGINE)) $(if $(REPEAT),-repeat $(REPEAT)) $(if $(BUDGET),-budget $(BUDGET)) $(if $(CIFAR),-cifar $(CIFAR))

.PHONY: bench-papers
bench-papers: build ## headline figures of all papers' benches on one page, docs/bench-paper/papers.md (KEPT=1: bench-paper's as they were measured before)
	$(BENCH)paper ./paper
	$(BENCH)policies ./policies
	$(BENCH)aggregator ./aggregator
	$(BENCH)exchange ./exchange
	$(BENCH)tenants ./tenants
	$(BENCH)papers ./papers
	bin/bench-papers $(if $(KEPT),-kept)

.PHONY: bench-deploy
bench-deploy: deps build ## figures of the image, of a container's start, of a history of 100,000 records and of verify (PARTS=image,verify: those alone)
	$(BENCH)deploy ./deploy
	bin/bench-deploy $(if $(PARTS),-parts $(PARTS))

.PHONY: bench-daily
bench-daily: deps build ## figures of daily use: pages, their readers, tables, pictures, exports (PARTS=page,csv: those alone; CSV_MB=2048)
	scripts/daily-deps.sh
	$(BENCH)daily ./daily
	bin/bench-daily $(if $(PARTS),-parts $(PARTS)) $(if $(CSV_MB),-csv-mb $(CSV_MB))

.PHONY: bench-imports
bench-imports: build ## figures of what people have already: networks of torchvision and ONNX, hub folders, Parquet, a shard on disk, CSV (PARTS=torchvision: those alone; ONLY=vgg: builders with this name; TABLE_MB=2000; PARTS=shard SHARD='-shard-mb 1000 -shard-copies 20')
	$(BENCH)imports ./imports
	$(BENCH)daily ./daily
	bin/bench-imports -python "$$(scripts/import-deps.sh)" $(if $(PARTS),-parts $(PARTS)) $(if $(ONLY),-only $(ONLY)) $(if $(TABLE_MB),-table-mb $(TABLE_MB)) $(SHARD)
	$(if $(PARTS),,bin/bench-daily -parts csv $(if $(TABLE_MB),-csv-mb $(TABLE_MB)))

.PHONY: bench-page
bench-page: deps build ## figures of the page: its weight, twelve tasks of a user in Chromium, first paint, frames while it scrolls, age of what it shows, axe, Lighthouse
	DISDEL_TEST_CHROMIUM="$$(command -v chromium)" DISDEL_TEST_AXE="$(CURDIR)/.cache/npm/node_modules/axe-core/axe.min.js" \
		go test -count=1 -v -run 'TestTwelveTasks|TestTheWeightOfAJobsPage' ./service/web | sed -n 's/.*\(figure page_\)/\1/p;/^--- FAIL/p'
	$(BENCH)daily ./daily
	scripts/daily-deps.sh
	bin/bench-daily -parts page,scroll,curves,events,axe,lighthouse

.PHONY: bench-tenants
bench-tenants: build ## figures of many jobs of many tenants: real batches, who stops whom, servers under load and attack (PARTS=small,batches: those alone)
	$(BENCH)tenants ./tenants
	bin/bench-tenants $(if $(PARTS),-parts $(PARTS))
