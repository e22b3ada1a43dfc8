#!/usr/bin/env bash
# Brings what a build for GPUs needs under .cache/cuda, from PyPI's NVIDIA wheels at exact versions, about 50 MB: CUDA's headers,
# nvrtc, ptxas. No driver and no GPU is needed. CUDA 12.6, not 13: its compilers still know compute capability 7.0, and drivers from
# 560 on take what they make. What is there already is left alone.
#
# include/   cuda.h and the others; runtime/engine/cuda/device/include goes before it
# lib/       libcuda.a, which stands for the library of a machine's driver (see scripts/libcuda.sh); libnvrtc.so
# bin/       ptxas
set -euo pipefail
cd "$(dirname "$0")/.."

WHEELS=(nvidia-cuda-runtime-cu12==12.6.77 nvidia-cuda-nvrtc-cu12==12.6.85 nvidia-cuda-nvcc-cu12==12.6.85)
cache=.cache/cuda

if [ "$(uname -s)" != Linux ]; then
  echo "GPUs are supported on Linux alone" >&2
  exit 1
fi
missing=()
command -v cc >/dev/null || missing+=(gcc libc6-dev)
command -v python3 >/dev/null && python3 -c 'import ensurepip' 2>/dev/null || missing+=(python3-venv)
if [ ${#missing[@]} -gt 0 ]; then
  if ! command -v apt-get >/dev/null; then
    echo "install by hand, then run this again: ${missing[*]}" >&2
    exit 1
  fi
  sudo=""
  if [ "$(id -u)" -ne 0 ]; then sudo="sudo"; fi
  echo "installing: ${missing[*]}"
  $sudo apt-get update -qq
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

if [ "$(cat "$cache/wheels" 2>/dev/null)" != "${WHEELS[*]}" ]; then
  echo "installing: ${WHEELS[*]}"
  rm -rf "$cache"
  mkdir -p "$cache/include" "$cache/lib" "$cache/bin"
  python3 -m venv "$cache/venv"
  "$cache/venv/bin/pip" install -q --disable-pip-version-check --no-deps --target "$cache/site" "${WHEELS[@]}"
  from=$cache/site/nvidia
  cp -r "$from"/cuda_runtime/include/. "$from"/cuda_nvrtc/include/. "$cache/include"
  cp "$from"/cuda_nvrtc/lib/libnvrtc*.so* "$cache/lib"
  ln -sf libnvrtc.so.12 "$cache/lib/libnvrtc.so"
  install -m 755 "$from/cuda_nvcc/bin/ptxas" "$cache/bin/ptxas"
  rm -rf "$cache/site" "$cache/venv"
  echo "${WHEELS[*]}" >"$cache/wheels"
fi
if [ ! -e "$cache/lib/libcuda.a" ] || [ scripts/libcuda.sh -nt "$cache/lib/libcuda.a" ]; then
  scripts/libcuda.sh "$cache/include/cuda.h" "$cache/lib"
fi
