#!/usr/bin/env bash
# Runs every test. The packages that train networks run without the race detector: it makes gorgonia twenty times slower
# and checks gorgonia's code, not ours. Their concurrency lives in packages that do run with it.
set -euo pipefail
cd "$(dirname "$0")/.."

export DISDEL_TEST_POUCHDB="$PWD/.cache/npm/node_modules/.bin/pouchdb-server"
export DISDEL_TEST_WSK="$PWD/.cache/bin/wsk" DISDEL_TEST_WSKDEPLOY="$PWD/.cache/bin/wskdeploy"
export DISDEL_TEST_OPENWHISK_JS="$PWD/.cache/npm/node_modules/openwhisk"

heavy='/(runtime/engine|actions|cmd/disdel|estimator|model)$'
packages=$(go list ./...)
raced=$(grep -vE "$heavy" <<<"$packages")
plain=$(grep -E "$heavy" <<<"$packages")

# shellcheck disable=SC2086 # one argument a package
go test -race -timeout 10m $raced
export CGO_ENABLED=0 # as the released program is built
go test -timeout 5m -run 'Memory|Watch' ./platform # the race detector multiplies memory, so these are left out above
# shellcheck disable=SC2086
go test -timeout 15m $plain
