#!/usr/bin/env bash
# Builds all that needs CUDA's headers, holds the kernels' text against the assembler, and runs the tests of the engine for GPUs. Those
# that need a device are left out where there is none, and the last line says how many those were. With the argument "rest", tests are
# left out that scripts/test.sh has run and that are the same without CUDA: CI runs both.
set -euo pipefail
cd "$(dirname "$0")/.."

make cuda-tools
scripts/cuda-env.sh go build -tags nvidia,netgo,osusergo -o bin/disdel-runtime-cuda ./cmd/disdel-runtime
scripts/cuda-env.sh go vet -tags nvidia,netgo,osusergo ./runtime/engine/cuda/... ./runtime/engine/gpu ./cmd/...
scripts/cuda-env.sh go vet -C bench -tags nvidia,netgo,osusergo ./gpu

tests=(./runtime/engine/cuda/... ./runtime/engine/gpu)
benches=(./gpu)
if [ "${1:-}" = rest ]; then tests=(./runtime/engine/cuda/device ./runtime/engine/cuda/ptx) benches=(); fi
said=$(mktemp)
trap 'rm -f "$said"' EXIT
export DISDEL_TEST_PTXAS="$PWD/.cache/cuda/bin/ptxas"
# tested DIRECTORY PACKAGE... runs the tests of packages of the module in a directory, if there are any.
tested() {
  [ $# -lt 2 ] || scripts/cuda-env.sh go test -C "$1" -tags nvidia,netgo,osusergo -vet=off -count=1 -v "${@:2}" >>"$said" 2>&1
}
if ! tested . "${tests[@]}" || ! tested bench "${benches[@]}"
then
  grep -vE '^=== (RUN|PAUSE|CONT)' "$said"
  exit 1
fi
grep -E '^(ok|\?)' "$said"
echo "tests left out for want of a GPU: $(grep -c 'left out for want of a GPU' "$said" || true)"
