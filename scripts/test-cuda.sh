#!/usr/bin/env bash
# Builds all that needs CUDA's headers, holds the kernels' text against the assembler, and runs the tests of the engine for GPUs. Those
# that need a device are left out where there is none, and the last line says how many those were. With the argument "rest", tests are
# left out that scripts/test.sh has run and that are the same without CUDA: CI runs both.
set -euo pipefail
cd "$(dirname "$0")/.."

make cuda-tools
scripts/cuda-env.sh go build -tags nvidia -o bin/disdel-runtime-cuda ./cmd/disdel-runtime
scripts/cuda-env.sh go vet -tags nvidia ./runtime/engine/cuda/... ./runtime/engine/gpu ./cmd/... ./bench/gpu

tests=(./runtime/engine/cuda/... ./runtime/engine/gpu ./internal/gpus ./bench/gpu)
if [ "${1:-}" = rest ]; then tests=(./runtime/engine/cuda/device ./runtime/engine/cuda/ptx ./internal/gpus); fi
said=$(mktemp)
trap 'rm -f "$said"' EXIT
if ! DISDEL_TEST_PTXAS="$PWD/.cache/cuda/bin/ptxas" scripts/cuda-env.sh go test -tags nvidia -vet=off -count=1 -v "${tests[@]}" >"$said" 2>&1
then
  grep -vE '^=== (RUN|PAUSE|CONT)' "$said"
  exit 1
fi
grep -E '^(ok|\?)' "$said"
echo "tests left out for want of a GPU: $(grep -c 'left out for want of a GPU' "$said" || true)"
