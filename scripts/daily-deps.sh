#!/usr/bin/env bash
# Installs from PyPI what exports and pictures are held against: onnxruntime and Pillow, in an environment of their own; and from npm
# Lighthouse, which judges pages. What is there already is left alone.
set -euo pipefail
cd "$(dirname "$0")/.."

PACKAGES=(onnxruntime==1.23.2 numpy==2.3.5 pillow==12.0.0)
venv=.cache/daily
want="${PACKAGES[*]} $(python3 -V)"

if [ "$(cat "$venv/.done" 2>/dev/null)" != "$want" ]; then
  echo "installing: ${PACKAGES[*]}"
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install -q --disable-pip-version-check --no-compile "${PACKAGES[@]}"
  echo "$want" >"$venv/.done"
fi

LIGHTHOUSE=12.8.2
if ! grep -qs "\"version\": \"$LIGHTHOUSE\"" .cache/lighthouse/node_modules/lighthouse/package.json; then
  echo "installing: lighthouse $LIGHTHOUSE"
  npm install --silent --no-audit --no-fund --prefix .cache/lighthouse "lighthouse@$LIGHTHOUSE"
fi
