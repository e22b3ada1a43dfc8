#!/usr/bin/env bash
# Fails unless the given programs are static: no library and no loader of the machine that they run on.
set -euo pipefail

for program in "$@"; do
  if ldd "$program" >/dev/null 2>&1; then
    echo "$program is linked with: $(ldd "$program" | tr -s ' \t\n' ' ')" >&2
    exit 1
  fi
  if command -v file >/dev/null && file -bL "$program" | grep -q 'dynamically linked'; then
    echo "$program is linked dynamically" >&2
    exit 1
  fi
done
