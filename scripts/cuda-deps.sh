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

# download puts the wheels' files into a folder. An index that does not answer is asked again: pip tries five times by itself,
# within seconds.
download() {
  python3 -m venv "$1/venv" || return 1
  for pause in 10 30 0; do
    if "$1/venv/bin/pip" install -q --disable-pip-version-check --no-deps --target "$1/site" "${WHEELS[@]}"; then return; fi
    rm -rf "$1/site"
    [ "$pause" = 0 ] || { echo "trying again in $pause s" >&2; sleep "$pause"; }
  done
  echo "could not download ${WHEELS[*]}: pip says why above. It goes by PIP_INDEX_URL and by its pip.conf" >&2
  return 1
}

if [ "$(cat "$cache/wheels" 2>/dev/null)" != "${WHEELS[*]}" ]; then
  echo "installing: ${WHEELS[*]}"
  fresh=$cache.new # what was there stays until all of the new is there
  rm -rf "$fresh"
  mkdir -p "$fresh/include" "$fresh/lib" "$fresh/bin"
  download "$fresh" || { rm -rf "$fresh"; exit 1; }
  from=$fresh/site/nvidia
  cp -r "$from"/cuda_runtime/include/. "$from"/cuda_nvrtc/include/. "$fresh/include"
  cp "$from"/cuda_nvrtc/lib/libnvrtc*.so* "$fresh/lib"
  ln -sf libnvrtc.so.12 "$fresh/lib/libnvrtc.so"
  install -m 755 "$from/cuda_nvcc/bin/ptxas" "$fresh/bin/ptxas"
  rm -rf "$fresh/site" "$fresh/venv"
  echo "${WHEELS[*]}" >"$fresh/wheels"
  rm -rf "$cache"
  mv "$fresh" "$cache"
fi
if [ ! -e "$cache/lib/libcuda.a" ] || [ scripts/libcuda.sh -nt "$cache/lib/libcuda.a" ]; then
  scripts/libcuda.sh "$cache/include/cuda.h" "$cache/lib"
fi
