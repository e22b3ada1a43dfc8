#!/usr/bin/env bash
# Installs the libraries whose adapters make suites tests and make bench-functions compares, beside the system's PyTorch (Debian:
# python3-torch), in .cache/frameworks. With --new it installs PyTorch 2 and today's libraries for python3 in .cache/frameworks-new:
# its wheels are built for GPUs, and take 6 GB. It prints the interpreter, and keeps what is there.
set -euo pipefail
cd "$(dirname "$0")/.."

# The versions are the newest that work with PyTorch 1.13. Libraries that ask for PyTorch come without their dependencies:
# pip would replace Debian's, whose version 1.13.0a0 counts as a preview. Keras on PyTorch needs PyTorch 2.
ON_TORCH=(transformers==4.38.2 accelerate==0.27.2 pytorch-lightning==2.2.5 lightning-fabric==2.2.5 torchmetrics==1.2.1)
OTHERS=(huggingface-hub==0.23.4 tokenizers==0.15.2 safetensors==0.4.5 regex==2024.5.15 tqdm==4.66.4 filelock==3.14.0 psutil==5.9.8
  fsspec==2024.5.0 lightning-utilities==0.11.9 scikit-learn==1.4.2 scipy==1.11.4 keras==3.3.3 jax==0.4.30 jaxlib==0.4.30
  numpy==1.24.2 setuptools==69.5.1 pytest==9.0.2)
NEW=(torch==2.15.0 keras==3.15.1 transformers==5.24.0 accelerate==1.15.0 lightning==2.6.6 pytorch-lightning==2.6.6
  scikit-learn==1.9.1 pytest==9.0.2)

# environment PYTHON FOLDER OPTION... makes a virtual environment, unless the one there has these versions already.
environment() {
  local python="$1" venv="$2" want
  want="${ON_TORCH[*]} ${OTHERS[*]} ${NEW[*]} $("$python" -V)"
  [ "$(cat "$venv/.done" 2>/dev/null)" != "$want" ] || return 0
  rm -rf "$venv"
  "$python" -m venv "${@:3}" "$venv"
  fill "$venv/bin/pip" >&2
  echo "$want" >"$venv/.done"
}

if [ "${1:-}" = --new ]; then
  venv=.cache/frameworks-new
  fill() { "$1" install -q --disable-pip-version-check "${NEW[@]}"; }
  environment python3 "$venv"
else
  venv=.cache/frameworks
  fill() {
    "$1" install -q --disable-pip-version-check "${OTHERS[@]}"
    "$1" install -q --disable-pip-version-check --no-deps "${ON_TORCH[@]}"
  }
  environment /usr/bin/python3 "$venv" --system-site-packages
fi
echo "$PWD/$venv/bin/python"
