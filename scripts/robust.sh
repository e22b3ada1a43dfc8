#!/usr/bin/env bash
# Runs the checks of docs/reference/robustness.md from a seed: all, or those whose ids are given with commas between.
set -euo pipefail
cd "$(dirname "$0")/.."

export DISDEL_TEST_POUCHDB="$PWD/.cache/npm/node_modules/.bin/pouchdb-server"
export DISDEL_TEST_KUBECHECK="$PWD/.cache/bin/kubecheck"
export DISDEL_ROBUST_SEED="$1" DISDEL_ROBUST_ONLY="${2:-}"
export CGO_ENABLED=0 # as the released program is built; with cgo every thread has a stack of 8 MB that RLIMIT_DATA counts
# A soak takes as long as it is asked to: every command of a check has a bound of its own, and go test sets none.
go test -count=1 -v -timeout 0 -run 'TestRobust' ./test/robust
