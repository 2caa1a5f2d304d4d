#!/usr/bin/env bash
# Trains a small llama on bytes of Shakespeare in FP32 and under three FP4 recipes, draws the four loss curves and says what they mean: demo-train.sh [MXGOLD] [OUT]
set -eu
mxgold=$(realpath "${1:-build/release/mxgold}")
out=${2:-build/release/demo-train}
root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$out"
# Two at a time, one thread each: small runs gain more from that than from threads within them.
run() {
  local config=$root/configs/llama-$1.json
  [ "$1" = fp32 ] && config=$root/configs/llama.json
  "$mxgold" train "$config" -o "$out/$1" --threads 1 >"$out/$1.txt" 2>&1 || { cat "$out/$1.txt" >&2; return 1; }
}
show() {
  local config=configs/llama-$1.json
  [ "$1" = fp32 ] && config=configs/llama.json
  echo "\$ mxgold train $config -o $out/$1"
  sed 1d "$out/$1.txt"
}
for pair in "fp32 ocp" "nvfp4 tetrajet"; do
  first=${pair% *} second=${pair#* }
  run "$second" &
  other=$!
  run "$first"
  wait $other
  show "$first"
  show "$second"
done
python3 - "$out" <<'P'
import json, sys
out = sys.argv[1]
names = ["fp32", "ocp", "nvfp4", "tetrajet"]
lines = {n: [json.loads(line) for line in open(f"{out}/{n}/metrics.jsonl")] for n in names}
with open(f"{out}/curves.dat", "w") as f:
    mean = {n: sum(r["loss"] for r in lines[n][:10]) / 10 for n in names}
    for i, step in enumerate(r["step"] for r in lines["fp32"]):
        for n in names:
            mean[n] += .1 * (lines[n][i]["loss"] - mean[n])  # smoothed over about ten steps
        print(step, *(f"{mean[n]:.5f}" for n in names), file=f)
end = {n: lines[n][-1]["val_loss"] for n in names}
behind = {n: f"{end[n] - end['fp32']:+.3f}" for n in names}
print("\nWhat it means:")
print(f"  FP32 ends at a validation loss of {end['fp32']:.3f} nats a byte; guessing evenly would be 5.545.")
print(f"  With all three products quantised MXFP4 as OCP has it ends {behind['ocp']} from that;")
print(f"  NVFP4 with stochastic rounding of gradients {behind['nvfp4']}, TetraJet (stochastic rounding backward) {behind['tetrajet']}.")
print("  One seed is an anecdote: compare such differences with those of FP32 runs of several seeds before you believe them.")
P
if command -v gnuplot >/dev/null; then
  gnuplot -e "set terminal svg size 800,420 font 'DejaVu Sans,13' background 'white'; set output '$out/curves.svg'; set key top right; set grid lc rgb '#dddddd'; set border 3; set tics nomirror; set xrange [100:*]; set xlabel 'step'; set ylabel 'loss, nats a byte'; \
    plot '$out/curves.dat' using 1:2 with lines lw 2 lc rgb '#222222' title 'FP32', '' using 1:3 with lines lw 2 lc rgb '#c0392b' title 'MXFP4, OCP', '' using 1:4 with lines lw 2 lc rgb '#2471a3' title 'NVFP4', '' using 1:5 with lines lw 2 lc rgb '#d68910' title 'TetraJet'"
  echo "The four loss curves are $out/curves.svg."
fi
