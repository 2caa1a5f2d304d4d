#!/usr/bin/env bash
# run-fuzz.sh FOLDER SECONDS SEED: each fuzz target in FOLDER for that long, from its committed corpus and the malformed files. What it finds goes to
# FOLDER/../found/NAME; a crash is kept there as crash-*, and the exit status is that of the first target that failed.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
for target in "$1"/fuzz_*; do
  name=${target##*/fuzz_}
  found=$1/../found/$name
  mkdir -p "$found"
  seeds=("$root/tests/fuzz/corpus/$name")
  case $name in npy | safetensors) seeds+=("$root/golden/bad") ;; esac
  if "$target" -max_total_time="$2" -seed="$3" -timeout=60 -rss_limit_mb=2048 -max_len=4096 -print_final_stats=1 -artifact_prefix="$found/" \
    "$found" "${seeds[@]}" >"$found.log" 2>&1; then
    echo "fuzz: $name: ok, $(sed -n 's/^stat::number_of_executed_units: *//p' "$found.log") inputs in $2 s"
  else
    echo "fuzz: $name: FAILED, see $found.log"
    tail -5 "$found.log"
    exit 1
  fi
done
