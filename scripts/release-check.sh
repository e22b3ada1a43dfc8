#!/usr/bin/env bash
# Builds a release of this commit twice, from two clones in folders of different names, the second with an empty build cache. It prints
# "figure reproducible 1", or 0 and the sums that differ.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
for copy in a another-folder; do
  git clone -q . "$work/$copy"
  [ "$copy" = a ] || export GOCACHE="$work/cache"
  (cd "$work/$copy" && go -C tools run ./release -root .. -version v0.0.0 -out "$work/$copy.dist")
  (cd "$work/$copy.dist" && sha256sum --quiet -c SHA256SUMS)
done
if diff "$work/a.dist/SHA256SUMS" "$work/another-folder.dist/SHA256SUMS"; then
  echo "figure reproducible 1 (two builds have the same bytes)"
else
  echo "figure reproducible 0 (two builds have the same bytes)"
  exit 1
fi
