#!/usr/bin/env bash
# Compiles the kernels anew, runtime/engine/cuda/ptx/*.ptx.gz, and has what came of it assembled for three kinds of device.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/cuda-deps.sh
to=runtime/engine/cuda/ptx
for part in kernels matrix; do
  scripts/cuda-env.sh go run -tags nvidia ./runtime/engine/cuda/ptx/gen "$part" | gzip -9n >"$to/$part.ptx.gz.new"
  mv "$to/$part.ptx.gz.new" "$to/$part.ptx.gz"
done
DISDEL_TEST_PTXAS="$PWD/.cache/cuda/bin/ptxas" CGO_ENABLED=0 go test -count=1 ./runtime/engine/cuda/ptx
