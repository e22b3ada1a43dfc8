#!/usr/bin/env bash
# Installs the libraries whose adapters are tested (make suites) and compared (make bench-functions) in a virtual environment at
# .cache/frameworks, beside the system's PyTorch (Debian: python3-torch). Their versions are the newest that take it. It prints the
# interpreter, and leaves alone what is there.
set -euo pipefail
cd "$(dirname "$0")/.."

PACKAGES=(transformers==4.38.2 accelerate==0.27.2 lightning==2.0.9 torchmetrics==1.2.1 scikit-learn==1.4.2 scipy==1.11.4
  keras==3.3.3 jax==0.4.30 jaxlib==0.4.30 numpy==1.24.2 setuptools==69.5.1 pytest==9.0.2)
system=/usr/bin/python3
venv=.cache/frameworks
want="${PACKAGES[*]} $("$system" -V)"
if [ "$(cat "$venv/.done" 2>/dev/null)" != "$want" ]; then
  rm -rf "$venv"
  "$system" -m venv --system-site-packages "$venv"
  "$venv/bin/pip" install -q --disable-pip-version-check "${PACKAGES[@]}"
  echo "$want" >"$venv/.done"
fi
echo "$PWD/$venv/bin/python"
