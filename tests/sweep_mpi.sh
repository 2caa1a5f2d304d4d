#!/bin/sh
# A sweep by one, two and three ranks, and one whose rank is killed: the results file of a sweep without MPI. sweep_mpi.sh MXGOLD_WITH_MPI MXGOLD
set -eu
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cat >"$scratch/base.json" <<'J'
{"model": {"kind": "gaussian"}, "data": {"rows": 2048, "features": 64, "split": 0.75},
 "train": {"steps": 200, "batch": 256, "seed": 1, "checkpoint_every": 20}, "optimizer": {"kind": "adam", "lr": 0.01}}
J
cat >"$scratch/sweep.json" <<'J'
{"config": "base.json", "arms": [{"name": "ocp", "set": {"quant.recipe": "recipe-ocp"}}, {"name": "nvfp4", "set": {"quant.recipe": "recipe-nvfp4"}}], "seeds": 6}
J
"$2" sweep "$scratch/sweep.json" -o "$scratch/want" >/dev/null
ranks() { mpirun --oversubscribe -n "$1" "$program" sweep "$scratch/sweep.json" -o "$scratch/$2" >"$scratch/said" 2>&1; }
same() { cmp -s "$scratch/want/results.jsonl" "$scratch/$1/results.jsonl" && echo "$2: results.jsonl is the same" || { echo "$2: results.jsonl differs" >&2; exit 1; }; }
program=$1
for n in 1 2 3; do
  ranks $n "by$n" || { cat "$scratch/said" >&2; exit 1; }
  same "by$n" "$n ranks"
done
# A rank is killed: mpirun ends the job, and the same command goes on.
ranks 3 killed &
job=$!
for _ in 1 2 3 4 5 6 7 8 9 10; do
  sleep 0.1
  [ "$(cat "$scratch"/killed/journal/* 2>/dev/null | wc -l)" -gt 4 ] && break
done
rank=$(pgrep -f "^$program sweep $scratch/sweep.json -o $scratch/killed" | tail -1) && kill -KILL "$rank" || echo "no rank was left to kill" >&2
wait $job && echo "mpirun did not notice the killed rank" >&2
ranks 2 killed || { cat "$scratch/said" >&2; exit 1; }
same killed "3 ranks, one killed, then 2"
