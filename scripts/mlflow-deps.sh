#!/usr/bin/env bash
# Installs an MLflow server from PyPI in an environment of its own: the newest that is tested, or the version that is given,
# for example 2.22.4. What is there already is left alone. Tests take DISDEL_TEST_MLFLOW=.cache/mlflow/bin/python, or several
# such paths with colons between. pip compiles no modules (--no-compile): tests import few, and Python compiles those.
set -euo pipefail
cd "$(dirname "$0")/.."

NEWEST=3.17.2
version="${1:-$NEWEST}"
venv=.cache/mlflow
[ "$version" = "$NEWEST" ] || venv=".cache/mlflow-$version"
want="$version $(python3 -V)"

if [ "$(cat "$venv/.done" 2>/dev/null)" != "$want" ]; then
  echo "installing: mlflow $version"
  rm -rf "$venv"
  python3 -m venv "$venv"
  packages=("mlflow==$version")
  case "$version" in 2.*) packages+=("sqlalchemy==2.0.44") ;; esac # a newer one lacks a class that MLflow 2 imports
  "$venv/bin/pip" install -q --disable-pip-version-check --no-compile "${packages[@]}"
  echo "$want" >"$venv/.done"
fi
