#!/usr/bin/env bash
# Tests what is written for arm64 on whatever this machine is: the kernels' tests on both paths, and what the engine
# promises with them, under Debian's emulator. It shows what the kernels compute, not how fast. Needs apt only where the
# emulator is missing.
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
emulated() { go test "${run[@]}" -short -timeout 5m "$@"; }
emulated -skip TestAssemblyIsGenerated ./runtime/engine/native/kernel
emulated -run 'TheBackendKeepsItsPromises|LossCurvesArePyTorchs|FewRowsHaveTheBitsOfMany' ./runtime/engine/native
