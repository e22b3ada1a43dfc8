#!/usr/bin/env bash
# Installs from PyPI what make bench-imports imports: torchvision, ONNX's own cases, and PyArrow. They go into a virtual environment
# beside the system's PyTorch (Debian: python3-torch). It prints the interpreter, and keeps what is there.
set -euo pipefail
cd "$(dirname "$0")/.."

# torchvision asks for PyTorch 2.0; its classification networks also run with Debian's 1.13. It comes without its dependencies.
ALONE=(torchvision==0.15.2 onnx==1.14.1)
OTHERS=(pillow==10.4.0 protobuf==4.25.3 pyarrow==16.1.0 numpy==1.24.2)
system=/usr/bin/python3
venv=.cache/imports
want="${ALONE[*]} ${OTHERS[*]} $("$system" -V)"
if [ "$(cat "$venv/.done" 2>/dev/null)" != "$want" ]; then
  rm -rf "$venv"
  "$system" -m venv --system-site-packages "$venv"
  "$venv/bin/pip" install -q --disable-pip-version-check "${OTHERS[@]}" >&2
  "$venv/bin/pip" install -q --disable-pip-version-check --no-deps "${ALONE[@]}" >&2
  echo "$want" >"$venv/.done"
fi
echo "$PWD/$venv/bin/python"
