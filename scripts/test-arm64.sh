#!/usr/bin/env bash
# Tests what is written for arm64 on whatever this machine is: the kernels' tests on both paths under Debian's emulator, in a few
# minutes. With the argument "all" they take no short cuts, and the engine keeps its promises, has the right gradients and PyTorch's loss
# curves with those kernels, which takes six. It shows what the kernels compute, not how fast. Needs apt only where the emulator is
# missing.
set -euo pipefail
cd "$(dirname "$0")/.."

run=()
if [ "$(go env GOHOSTARCH)" != arm64 ]; then
  if ! command -v qemu-aarch64 >/dev/null; then
    if ! command -v apt-get >/dev/null; then
      echo "install by hand, then run this again: qemu-user" >&2
      exit 1
    fi
    sudo=""
    if [ "$(id -u)" -ne 0 ]; then sudo="sudo"; fi
    echo "installing: qemu-user"
    $sudo apt-get update -qq
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends qemu-user >/dev/null
  fi
  run=(-exec qemu-aarch64)
fi

export GOOS=linux GOARCH=arm64 CGO_ENABLED=0
go vet ./runtime/engine/native/kernel # that the assembly's arguments are what Go calls it with
emulated() { go test "${run[@]}" -timeout 10m "$@"; }
if [ "${1:-}" != all ]; then
  emulated -short -skip 'WinogradGradientsOfHalves|WinogradRounds' ./runtime/engine/native/kernel
  emulated -run EveryPath ./runtime/engine/sparse
  exit
fi
emulated ./runtime/engine/native/kernel ./runtime/engine/native/checkup
emulated ./runtime/engine/sparse
emulated -short -run 'Promises|Gradients|Curves|FewRows|Threads|Independent|Winograd' ./runtime/engine/native
