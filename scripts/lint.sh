#!/usr/bin/env bash
# The linters, at the versions of tools/go.mod.
set -euo pipefail
cd "$(dirname "$0")/.."

root=$PWD
tool() { go tool -modfile="$root/tools/go.mod" "$@"; }
fail=0
complain() { echo "$1" >&2; fail=1; }

unformatted=$(git ls-files '*.go' | xargs -r go tool -modfile=tools/go.mod gofumpt -l)
[ -z "$unformatted" ] || complain "not gofumpt-ed: $unformatted"
for module in . bench runtime/engine/native/kernel/gen; do
  cd "$root/$module"
  go vet ./... || complain "go vet has something to say"
  fixes=$(go fix -diff ./... 2>&1) || true
  [ -z "$fixes" ] || complain "go fix would change: $fixes"
  tool staticcheck -checks all ./... || complain "staticcheck has something to say"
  go mod tidy -diff || complain "$module/go.mod is not tidy"
done
cd "$root"
# The packages with files for systems other than Linux that import few others: 20 s of processor time the first time. A release
# compiles the whole program for macOS.
GOOS=darwin GOARCH=arm64 CGO_ENABLED=0 go build ./internal/files ./runtime/engine/slab ./runtime/engine/native/kernel ||
  complain "these packages do not compile for macOS"
go vet -tags emulated,netgo,osusergo ./runtime/engine/gpu || complain "go vet -tags emulated has something to say"
if [ -e .cache/cuda/lib/libcuda.a ]; then
  scripts/cuda-env.sh go vet -tags nvidia,netgo,osusergo ./runtime/engine/cuda/... ./runtime/engine/gpu || complain "go vet -tags nvidia has something to say"
else
  echo "left out: go vet -tags nvidia, for which scripts/cuda-deps.sh brings the headers (50 MB)"
fi
go -C tools run ./house -root .. -words -worst 5 || complain "the words are not plain enough: make words"
go -C tools vet ./... && go -C tools test ./... || complain "the tools have something to say"
exit $fail
