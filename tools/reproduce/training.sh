#!/bin/sh
# Runs the sweeps of configs/findings, resumed where an earlier call stopped, and writes their reports: training.sh MXGOLD FOLDER NAME...
# All share one folder, so that a run that belongs to two sweeps is done once. FOLDER/reports gets NAME.json and NAME.jsonl.
set -eu
mxgold=$1 folder=$2
shift 2
mkdir -p "$folder/reports"
for name; do
  echo "== $name"
  "$mxgold" sweep "configs/findings/$name.json" -o "$folder"
  "$mxgold" report "$folder" --json >"$folder/reports/$name.json.new"
  mv "$folder/reports/$name.json.new" "$folder/reports/$name.json"
  cp "$folder/results.jsonl" "$folder/reports/$name.jsonl"
done
