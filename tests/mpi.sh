#!/bin/sh
# A sweep and an ablation by one, two and three ranks, and one whose rank is killed: the results of the same without MPI. mpi.sh MXGOLD_WITH_MPI MXGOLD
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
# kill_a_rank JOB TENTHS COMMAND FILES: once five lines lie in FILES (a pattern), or TENTHS of a second have gone, one rank of COMMAND; then JOB is waited for.
kill_a_rank() {
  for _ in $(seq "$2"); do
    sleep 0.1
    # shellcheck disable=SC2086 # a pattern
    [ "$(cat $4 2>/dev/null | wc -l)" -gt 4 ] && break
  done
  rank=$(pgrep -f "^$program $3" | tail -1) && kill -KILL "$rank" || echo "no rank was left to kill" >&2
  if wait "$1"; then echo "mpirun did not notice the killed rank" >&2; fi
}
for n in 1 2 3; do
  ranks $n "by$n" || { cat "$scratch/said" >&2; exit 1; }
  same "by$n" "$n ranks"
done
# A rank is killed: mpirun ends the job, and the same command goes on.
ranks 3 killed &
kill_a_rank $! 10 "sweep $scratch/sweep.json -o $scratch/killed" "$scratch/killed/journal/*"
ranks 2 killed || { cat "$scratch/said" >&2; exit 1; }
same killed "3 ranks, one killed, then 2"

# The tensors of a checkpoint by ranks: the report of one process, with a journal a rank, and nothing measured twice.
python3 - "$scratch/m.safetensors" <<'P'
import json, random, struct, sys
random.seed(3)
head, body = {}, b""
for i in range(12):
    data = struct.pack("<%df" % (128 * 512), *(random.gauss(0, 1 + i) for _ in range(128 * 512)))
    head["layer.%d" % i] = {"dtype": "F32", "shape": [128, 512], "data_offsets": [len(body), len(body) + len(data)]}
    body += data
text = json.dumps(head).encode()
text += b" " * (-len(text) % 8)
open(sys.argv[1], "wb").write(struct.pack("<Q", len(text)) + text + body)
P
keys="--presets ocp-mxfp4,nvfp4,hif4 --set elem.round=rne,sr --json"
# shellcheck disable=SC2086
"$2" ablate "$scratch/m.safetensors" $keys >"$scratch/want.json"
# shellcheck disable=SC2086
ablate() { mpirun --oversubscribe -n "$1" "$program" ablate "$scratch/m.safetensors" $keys --threads 1 --state "$scratch/$2" >"$scratch/$2.json" 2>"$scratch/said"; }
for n in 1 2 3; do
  mkdir "$scratch/ablate$n"
  ablate $n "ablate$n" || { cat "$scratch/said" >&2; exit 1; }
  cmp "$scratch/want.json" "$scratch/ablate$n.json" || { echo "ablate by $n ranks: the report differs" >&2; exit 1; }
  journals=$(find "$scratch/ablate$n" -name '*.state' | wc -l)
  measured=$(cat "$scratch/ablate$n"/*.state | grep -cv '^mxgold ablate state$')
  [ "$journals $measured" = "$n 60" ] || { echo "ablate by $n ranks: $journals journals, $measured measurements, expected $n and 60" >&2; exit 1; }
  echo "ablate by $n ranks: the report is the same"
done
ablate 3 stopped &
kill_a_rank $! 20 "ablate $scratch/m.safetensors" "$scratch/stopped/*.state"
ablate 2 stopped || { cat "$scratch/said" >&2; exit 1; }
cmp "$scratch/want.json" "$scratch/stopped.json" || { echo "ablate by 3 ranks, one killed, then 2: the report differs" >&2; exit 1; }
echo "ablate by 3 ranks, one killed, then 2: the report is the same"
mpirun --oversubscribe -n 2 "$program" ablate "$scratch/m.safetensors" >/dev/null 2>"$scratch/said" && { echo "ranks without --state are not refused" >&2; exit 1; }
grep -q "ranks measure into a folder that they have in common, expected --state DIR" "$scratch/said" || { cat "$scratch/said" >&2; exit 1; }
