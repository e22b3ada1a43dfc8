#!/usr/bin/env bash
# Builds the simulator with each bug of test/simulate/bugs, one at a time, and runs seeds from 1 on until one finds it: at most SEEDS
# (500). Prints the first seed that finds each, and planted_found. ONLY=NAME runs one.
set -euo pipefail
cd "$(dirname "$0")/.."
seeds=${SEEDS:-500}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
found=0 all=0
for patch in test/simulate/bugs/${ONLY:-*}.patch; do
  name=$(basename "$patch" .patch)
  all=$((all + 1))
  rm -rf "$work/tree" && mkdir "$work/tree"
  git apply --numstat "$patch" | cut -f3 >"$work/files"
  xargs -a "$work/files" cp --parents -t "$work/tree"
  patch -s -p1 -d "$work/tree" <"$patch" # a patch that no longer applies fails here: mend it
  awk -v from="$PWD" -v to="$work/tree" 'BEGIN { printf "{\"Replace\": {" }
    { printf "%s\"%s/%s\": \"%s/%s\"", (NR > 1 ? ", " : ""), from, $0, to, $0 } END { print "}}" }' "$work/files" >"$work/overlay.json"
  go test -c -vet=off -overlay "$work/overlay.json" -o "$work/simulate" ./test/simulate
  test=JobsUnderFaults
  ! grep -qE '^(service/queue|scheduler)/' "$work/files" || test=PoolsUnderFaults # bugs of admission
  if (cd test/simulate && "$work/simulate" -test.run "$test" -test.timeout 20m -first -seeds "1..$seeds") >"$work/said" 2>&1; then
    echo "$name: not found within $seeds seeds"
  else
    found=$((found + 1))
    echo "$name: $(grep -m1 -oE 'seed [0-9]+: .{0,140}|panic: .*|fatal error: .*' "$work/said")"
  fi
done
echo "figure planted_found $found of $all"
[ "$found" -eq "$all" ]
