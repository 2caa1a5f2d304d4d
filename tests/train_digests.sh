#!/bin/sh
# Do two builds of mxgold train to the same bits? train_digests.sh "PROGRAM_A ..." "PROGRAM_B ...": short runs of each model in FP32 and under recipes, every
# parameter, gradient and output of every step by its digest. One line a run; exit 1 if one parts.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
status=0
for kind in llama gpt2 byte_mlp; do
  for recipe in none recipe-ocp recipe-nvfp4 recipe-tseng recipe-hif4; do
    cat >"$scratch/config.json" <<J
{"model": {"kind": "$kind", "width": 32, "layers": 1, "heads": 2, "ffn": 48, "context": 16},
 "data": {"text": "$root/configs/data/tinyshakespeare.txt", "split": 0.9, "tokens": "top95"}, "train": {"steps": 3, "batch": 4, "seed": 7, "eval_batches": 1},
 "optimizer": {"kind": "adamw", "lr": 3e-3, "weight_decay": 0.1, "clip": 1}, "schedule": {"kind": "cosine", "warmup": 2}}
J
    quant=
    [ $recipe = none ] || quant="--set quant.recipe=$recipe"
    # Unquoted: a program may be an emulator with its options.
    $1 train "$scratch/config.json" -o "$scratch/a" --digests all $quant >/dev/null 2>&1 && $2 train "$scratch/config.json" -o "$scratch/b" --digests all $quant \
      >/dev/null 2>&1 || { echo "$kind $recipe: a run failed" >&2; exit 1; }
    if cmp -s "$scratch/a/digests.txt" "$scratch/b/digests.txt" && cmp -s "$scratch/a/metrics.jsonl" "$scratch/b/metrics.jsonl"; then
      echo "$kind $recipe: $(wc -l <"$scratch/a/digests.txt") digests, 0 differ"
    else
      echo "$kind $recipe: $($2 train --compare "$scratch/a" "$scratch/b" | head -1)"
      status=1
    fi
    rm -r "$scratch/a" "$scratch/b"
  done
done
exit $status
