#!/usr/bin/env bash
# Prints figures of the tests. The argument chooses parts, with commas: sim runs seeds from 1 to SEEDS (1000) in two
# processes at once, planted looks for the bugs that were put in by hand, mutants changes the code in MUTANTS (40)
# places, drawn from SEED (1), and lists those that no test of the package notices. reproducible builds a release twice.
# rows runs the checks of docs/reference/robustness.md from SEED, or those in ONLY; this takes longest. kth has calls
# fail one at a time: calls to the disk, to Redis, to the history and to the platform. It tries a few of each kind, or
# all with EVERY=1 (an hour). soak has a server run jobs for HOURS (1). coverage counts the errors' paths that the tests
# of each package run. Empty: all but mutants, kth, soak and coverage.
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
if [[ $parts == *,coverage,* ]]; then
  go -C tools run ./coverage -root ..
fi
if [[ $parts == *,kth,* ]]; then
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  export DISDEL_TEST_PROGRAM="$work/disdel" DISDEL_TEST_EVERY_CALL="${EVERY:-}" CGO_ENABLED=0
  go build -o "$DISDEL_TEST_PROGRAM" ./cmd/disdel
  packages="./service ./history/couchlite ./internal/blobs ./internal/modelstore ./dataset ./platform"
  # shellcheck disable=SC2086 # one argument a package
  go test -vet=off -count=1 -p 1 -timeout 120m -v -run '^(TestTheNthCallFails|TestAFailedCallToTheDisk.*)$' $packages >"$work/said" 2>&1 || true
  grep -E '^ *--- FAIL|^FAIL|panic:' "$work/said" || true
  awk '/ kth [A-Za-z]+: / { match($0, / kth [A-Za-z]+/); kinds[substr($0, RSTART + 5, RLENGTH - 5)]++; calls++ }
    /^ +--- FAIL/ { lost++ } /^FAIL|panic:/ { broken = 1 }
    END { for (k in kinds) printf "figure kth_calls_%s %d\n", tolower(k), kinds[k]
      printf "figure kth_calls %d\nfigure kth_failures_lost %d\n", calls, lost + (broken && !lost) }' "$work/said"
fi
if [[ $parts == *,soak,* ]]; then
  make --no-print-directory soak HOURS="${HOURS:-}" | grep '^figure'
fi
if [[ $parts == *,rows,* ]]; then
  mkdir -p bin
  echo "bin/robust.log says why a check failed" >&2
  make --no-print-directory robust SEED="${SEED:-1}" ONLY="${ONLY:-}" 2>&1 | tee bin/robust.log |
    grep -E --line-buffered '^(figure|robust:) | failed; again: '
fi
