#!/usr/bin/env bash
# Installs from PyPI what exports and pictures are held against: onnxruntime and Pillow, in an environment of their own. What is there
# already is left alone.
set -euo pipefail
cd "$(dirname "$0")/.."

PACKAGES=(onnxruntime==1.23.2 numpy==2.3.5 pillow==12.0.0)
venv=.cache/daily
want="${PACKAGES[*]} $(python3 -V)"

if [ "$(cat "$venv/.done" 2>/dev/null)" != "$want" ]; then
  echo "installing: ${PACKAGES[*]}"
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install -q --disable-pip-version-check "${PACKAGES[@]}"
  echo "$want" >"$venv/.done"
fi
