#!/usr/bin/env bash
# Keeps a home as today's program leaves it, for TestAHomeOfEachEarlierVersion: later versions are to open it. It runs
# a job to its end, and kills another one between two checkpoints. PROGRAM is the built disdel (bin/disdel). The
# archive is service/testdata/home-DATE.tar.gz, where DATE is the argument: the day of the version.
set -euo pipefail
cd "$(dirname "$0")/.."
day=${1:?the day of the version, as 2026-11-29}
program=$(realpath "${PROGRAM:-bin/disdel}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export DISDEL_HOME="$work/home"

# The rows of a class lie around a point of their own.
awk 'BEGIN { srand(29); for (i = 0; i < 16; i++) printf "f%d,", i; print "class"
  for (row = 0; row < 240; row++) { class = row % 3; line = ""
    for (i = 0; i < 16; i++) line = line int(40 + (i * 37 + class * 61) % 120 + 80 * rand()) ","
    print line substr("abc", class + 1, 1) } }' >"$work/tiny.csv"
"$program" dataset add tiny --csv "$work/tiny.csv" -q >/dev/null

job() { # NAME EPOCHS
  cat >"$work/$1.yaml" <<YAML
apiVersion: disdel/v1
kind: TrainingJob
metadata: {name: $1}
model:
  layers: [dense: {units: 8, activation: relu}, batchNorm: {}, dense: {units: 3, activation: softmax}]
  init: {seed: 3}
data: {source: dataset://tiny, split: {train: 0.8, validation: 0.2, seed: 3}}
training: {epochs: $2, batchSize: 16, optimizer: {adam: {learningRate: 0.02}}}
distribution: {workers: 2, sync: {every: 3}, aggregation: {wire: int8}}
reliability: {checkpointEvery: 4}
YAML
}
job whole 3
"$program" submit "$work/whole.yaml" -q >/dev/null

# A process group of its own: the job's actions and its Redis die with it.
job interrupted 40
set -m
"$program" submit "$work/interrupted.yaml" -q >/dev/null &
set +m
until compgen -G "$work/home/models/checkpoints/*/000008/reference.safetensors.sha256" >/dev/null; do sleep 0.02; done
kill -9 -- -$!
wait $! 2>/dev/null || true
"$program" history | grep -q interrupted

tar czf "service/testdata/home-$day.tar.gz" --sort=name --mtime="$day" --owner=root --group=root --numeric-owner \
  -C "$work/home" .
ls -l "service/testdata/home-$day.tar.gz"
