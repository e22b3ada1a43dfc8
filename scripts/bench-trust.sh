#!/usr/bin/env bash
# Prints figures of the tests. The argument chooses parts, with commas: sim runs seeds from 1 to SEEDS (1000) in two processes at once,
# planted looks for the bugs that were put in by hand, mutants changes the code in MUTANTS (40) places, drawn from SEED (1), and
# lists those that no test of the package notices. reproducible builds a release twice. rows runs the checks of
# docs/reference/robustness.md from SEED, or those in ONLY; this takes longest. Empty: all but mutants.
set -euo pipefail
cd "$(dirname "$0")/.."
parts=",${1:-sim,planted,reproducible,rows},"
seeds=${SEEDS:-1000}

simulate() { # FIRST LAST
  (cd test/simulate && "$work/simulate" -test.run UnderFaults -test.v -test.timeout 60m -seeds "$1..$2") || true
}

if [[ $parts == *,sim,* ]]; then
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  go test -c -o "$work/simulate" ./test/simulate
  began=$(date +%s.%N)
  simulate 1 "$((seeds / 2))" >"$work/1" &
  simulate "$((seeds / 2 + 1))" "$seeds" >"$work/2"
  wait
  ended=$(date +%s.%N)
  grep -h -A1 'seed [0-9]*:' "$work/1" "$work/2" || true
  cat "$work/1" "$work/2" | awk -v began="$began" -v ended="$ended" '
    /sim_runs / { match($0, /sim_runs [0-9]+/); runs += substr($0, RSTART + 9, RLENGTH - 9)
      match($0, /sim_violations [0-9]+/); bad += substr($0, RSTART + 15, RLENGTH - 15) }
    END { printf "figure sim_runs %d\nfigure sim_violations %d\nfigure sim_runs_per_min %.0f\n", runs, bad, 60 * runs / (ended - began) }'
fi
if [[ $parts == *,planted,* ]]; then
  SEEDS=${SEEDS:-} scripts/simulate-bugs.sh
fi
if [[ $parts == *,reproducible,* ]]; then
  scripts/release-check.sh
fi
if [[ $parts == *,mutants,* ]]; then
  go -C tools run ./mutate -root .. -n "${MUTANTS:-40}" -seed "${SEED:-1}"
fi
if [[ $parts == *,rows,* ]]; then
  make --no-print-directory robust SEED="${SEED:-1}" ONLY="${ONLY:-}" | grep -E '^(figure|robust:) | failed; again: '
fi
