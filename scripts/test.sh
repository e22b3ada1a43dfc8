#!/usr/bin/env bash
# Runs every test. The race detector covers every package with concurrency of its own. It makes plain Go kernels a hundred times
# slower and gorgonia twenty times: runtime/engine/native, whose threads it is there for, is raced with -short, its fastest kernels
# alone, and runs whole without it. cmd/disdel and examples/embed stay out: what they do at once is the other packages', and their
# actions are processes of the built program, which the detector does not see. So do checks of clusters (deploy), whose containers
# are the test's own program, held to their memory. Packages that compute long and start nothing gain nothing by it.
set -euo pipefail
cd "$(dirname "$0")/.."

export DISDEL_TEST_POUCHDB="$PWD/.cache/npm/node_modules/.bin/pouchdb-server"
export DISDEL_TEST_WSK="$PWD/.cache/bin/wsk" DISDEL_TEST_WSKDEPLOY="$PWD/.cache/bin/wskdeploy"
export DISDEL_TEST_OPENWHISK_JS="$PWD/.cache/npm/node_modules/openwhisk"
export DISDEL_TEST_CHROMIUM="$(command -v chromium || true)"
export DISDEL_TEST_AXE="$PWD/.cache/npm/node_modules/axe-core/axe.min.js"
export DISDEL_TEST_ONNXRUNTIME=""
[ ! -e .cache/daily/.done ] || DISDEL_TEST_ONNXRUNTIME="$PWD/.cache/daily/bin/python"
export DISDEL_TEST_EXPORTS=""
[ ! -e .cache/export/.done ] || DISDEL_TEST_EXPORTS="$PWD/.cache/export/bin/python"
export DISDEL_TEST_KUBECHECK="$PWD/.cache/bin/kubecheck"
export DISDEL_TEST_COMPOSER="$PWD/.cache/composer/node_modules/openwhisk-composer"

heavy='/(runtime/engine/(native|cuda)|bench/gpu|cmd/disdel|examples/embed|estimator|model|deploy(/doctor|/verify)?)$|'\
'/(runtime/engine/native/(kernel|plan)|scheduler|controller/jobfile|deploy/image|internal/onnx)$'
packages=$(go list ./...)
raced=$(grep -vE "$heavy" <<<"$packages")
plain=$(grep -E "$heavy" <<<"$packages")

# shellcheck disable=SC2086 # one argument a package
go test -race -timeout 10m $raced
go test -race -short -timeout 10m ./runtime/engine/native
export CGO_ENABLED=0 # as the released program is built
go test -timeout 5m -run 'Memory|Watch|Transcripts' ./platform # the race detector multiplies memory, so these are left out above
# shellcheck disable=SC2086
go test -timeout 15m $plain
scripts/test-python.sh
