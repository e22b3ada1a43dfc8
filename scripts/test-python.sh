#!/usr/bin/env bash
# Tests clients/python as somebody has it who installs it: built into a wheel, in a virtual environment of its own, against the
# program at $1 (without it one is built). mypy reads its types. The tools are pinned; their environment is kept under .cache. Keras computes
# with JAX, the smallest of its frameworks (100 MB): what is imported from it is held against what it says itself.
# Programs of PyTorch are tested by the system's interpreter, where it has PyTorch (Debian: python3-torch).
set -euo pipefail
cd "$(dirname "$0")/.."

TOOLS=(pytest==9.0.2 numpy==2.3.5 mypy==1.19.1 flit_core==3.12.0 keras==3.15.1 h5py==3.14.0 jax==0.8.3 scipy==1.16.3)
venv=.cache/python
want="${TOOLS[*]} $(python3 -V)"

if [ "$(cat "$venv/.done" 2>/dev/null)" != "$want" ]; then
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install -q --disable-pip-version-check "${TOOLS[@]}"
  echo "$want" >"$venv/.done"
fi

program="${1:-}"
if [ -z "$program" ]; then
  program=.cache/bin/disdel
  CGO_ENABLED=0 go build -o "$program" ./cmd/disdel
fi
# A fresh one beside the tools': what is tested is what is installed, not the folder that it comes from.
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
cp -r clients/python "$fresh/source"
"$venv/bin/pip" install -q --disable-pip-version-check --no-deps --no-build-isolation --target "$fresh/installed" "$fresh/source"
export PYTHONPATH="$fresh/installed" PYTHONDONTWRITEBYTECODE=1 KERAS_BACKEND=jax JAX_PLATFORMS=cpu DISDEL_BIN="$PWD/$program"
case "$program" in /*) DISDEL_BIN="$program" ;; esac
(cd "$fresh/source" && "$OLDPWD/$venv/bin/mypy" --no-incremental --cache-dir=/dev/null src tests &&
  rm -rf src && "$OLDPWD/$venv/bin/pytest" -q -p no:cacheprovider)

# The interpreter with PyTorch gets an environment of its own, which sees the system's packages.
system=/usr/bin/python3
if ! "$system" -c 'import torch' 2>/dev/null; then
  echo "left out: programs of PyTorch, which $system does not have (Debian: apt install python3-torch)"
  exit 0
fi
with_torch=.cache/python-torch
want="pytest==9.0.2 $("$system" -V)"
if [ "$(cat "$with_torch/.done" 2>/dev/null)" != "$want" ]; then
  rm -rf "$with_torch"
  "$system" -m venv --system-site-packages "$with_torch"
  "$with_torch/bin/pip" install -q --disable-pip-version-check pytest==9.0.2
  echo "$want" >"$with_torch/.done"
fi
(cd "$fresh/source" && "$OLDPWD/$with_torch/bin/python" -m pytest -q -p no:cacheprovider tests/test_torch.py tests/test_worker*.py \
  tests/test_adapters.py)
