#!/usr/bin/env bash
# run-fuzz.sh FOLDER seconds=N|short SEED [NAME...]: the named fuzz targets of FOLDER, or all, for N seconds each or for a number of inputs that takes about
# three seconds, from the committed corpus and the malformed files. What seconds find goes to FOLDER/../found/NAME and is where the next run starts; a
# short run starts afresh, so that it tries the same inputs each time, however busy the machine is. A crash is kept there as crash-*, and the exit
# status is that of the first target that failed.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
folder=$1 amount=$2 seed=$3
shift 3
[ $# -gt 0 ] || set -- $(cd "$folder" && ls -d fuzz_* | sed 's/^fuzz_//')
for name in "$@"; do
  case $name in
    mxv) inputs=600000 ;;
    npy | safetensors) inputs=400000 ;;
    pipe) inputs=50000 ;;
    outputs) inputs=1500 ;;
    *) inputs=25000 ;;
  esac
  case $amount in
    short) found=$folder/../found/short-$name limit=-runs=$inputs && rm -rf "$found" ;;
    seconds=*) found=$folder/../found/$name limit=-max_total_time=${amount#seconds=} ;;
    *) echo "run-fuzz.sh: $amount: expected seconds=N or short" >&2; exit 2 ;;
  esac
  mkdir -p "$found"
  seeds=("$root/tests/fuzz/corpus/$name")
  case $name in npy | safetensors) seeds+=("$root/golden/bad") ;; esac
  if "$folder/fuzz_$name" "$limit" -seed="$seed" -timeout=60 -rss_limit_mb=2048 -max_len=4096 -print_final_stats=1 -artifact_prefix="$found/" \
    "$found" "${seeds[@]}" >"$found.log" 2>&1; then
    echo "fuzz: $name: ok, $(sed -n 's/^stat::number_of_executed_units: *//p' "$found.log") inputs, $amount"
  else
    echo "fuzz: $name: FAILED, see $found.log"
    tail -5 "$found.log"
    exit 1
  fi
done
