#!/usr/bin/env bash
# Compiles the kernels anew, runtime/engine/cuda/ptx/kernels.ptx.gz, and has what came of it assembled for three kinds of device.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/cuda-deps.sh
to=runtime/engine/cuda/ptx/kernels.ptx.gz
scripts/cuda-env.sh go run -tags nvidia ./runtime/engine/cuda/ptx/gen | gzip -9n >"$to.new"
mv "$to.new" "$to"
DISDEL_TEST_PTXAS="$PWD/.cache/cuda/bin/ptxas" CGO_ENABLED=0 go test -count=1 ./runtime/engine/cuda/ptx
