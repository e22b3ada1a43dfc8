#!/usr/bin/env bash
# Installs the libraries whose adapters make suites tests and make bench-functions compares. They go into a virtual environment at
# .cache/frameworks, beside the system's PyTorch (Debian: python3-torch). It prints the interpreter, and keeps what is there.
set -euo pipefail
cd "$(dirname "$0")/.."

# The versions are the newest that work with PyTorch 1.13. Libraries that ask for PyTorch come without their dependencies:
# pip would replace Debian's, whose version 1.13.0a0 counts as a preview. Keras on PyTorch needs PyTorch 2.
ON_TORCH=(transformers==4.38.2 accelerate==0.27.2 pytorch-lightning==2.2.5 lightning-fabric==2.2.5 torchmetrics==1.2.1)
OTHERS=(huggingface-hub==0.23.4 tokenizers==0.15.2 safetensors==0.4.5 regex==2024.5.15 tqdm==4.66.4 filelock==3.14.0 psutil==5.9.8
  fsspec==2024.5.0 lightning-utilities==0.11.9 scikit-learn==1.4.2 scipy==1.11.4 keras==3.3.3 jax==0.4.30 jaxlib==0.4.30
  numpy==1.24.2 setuptools==69.5.1 pytest==9.0.2)
system=/usr/bin/python3
venv=.cache/frameworks
want="${ON_TORCH[*]} ${OTHERS[*]} $("$system" -V)"
if [ "$(cat "$venv/.done" 2>/dev/null)" != "$want" ]; then
  rm -rf "$venv"
  "$system" -m venv --system-site-packages "$venv"
  "$venv/bin/pip" install -q --disable-pip-version-check "${OTHERS[@]}" >&2
  "$venv/bin/pip" install -q --disable-pip-version-check --no-deps "${ON_TORCH[@]}" >&2
  echo "$want" >"$venv/.done"
fi
echo "$PWD/$venv/bin/python"
