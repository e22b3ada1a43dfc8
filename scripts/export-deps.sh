#!/usr/bin/env bash
# Installs from PyPI the programs that exports are opened with: PyArrow (parquet), TensorBoard and MLflow's client, in an environment of
# their own. What is there already is left alone.
set -euo pipefail
cd "$(dirname "$0")/.."

PACKAGES=(pyarrow==22.0.0 tensorboard==2.20.0 mlflow-skinny==3.6.0 numpy==2.3.5)
venv=.cache/export
want="${PACKAGES[*]} $(python3 -V)"

if [ "$(cat "$venv/.done" 2>/dev/null)" != "$want" ]; then
  echo "installing: ${PACKAGES[*]}"
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install -q --disable-pip-version-check --no-compile "${PACKAGES[@]}"
  echo "$want" >"$venv/.done"
fi
