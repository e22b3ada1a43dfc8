#!/usr/bin/env bash
# Runs a command with what cgo has to know of CUDA: cuda-env.sh go build -tags nvidia ... The shim's header comes first.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)

export CGO_ENABLED=1
export CGO_CFLAGS="-O2 -Wno-deprecated-declarations -I$root/runtime/engine/cuda/device/include -I$root/.cache/cuda/include"
export CGO_LDFLAGS="-L$root/.cache/cuda/lib -ldl"
export LD_LIBRARY_PATH="$root/.cache/cuda/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
exec "$@"
