#!/bin/sh
# Writes, for make bench, the table of `mxgold bench` and its chart, and measures libraries that do the same job if a Python with them is found.
#   run.sh MXGOLD OUT_DIR [TEXT]      with TEXT only operations whose name holds it
# Writes OUT_DIR/table.txt, OUT_DIR/bench.png (with gnuplot) and OUT_DIR/peers.txt.
set -eu
mxgold=$1 out=$2 only=${3:-}
here=$(dirname "$0")
mkdir -p "$out"
{
  echo "$(sed -n 's/^model name.*: //p' /proc/cpuinfo 2>/dev/null | head -1), $(uname -m), load $(cut -d' ' -f1 /proc/loadavg), $(date -u +%Y-%m-%d)"
  "$mxgold" bench ${only:+--only "$only"}
} | tee "$out/table.txt"
if command -v gnuplot >/dev/null; then
  # Columns are two blanks or more apart; the first row of an operation is its best instruction set.
  sed -n '/^operation/,$s/   */\t/gp' "$out/table.txt" | awk -F'\t' 'NR > 1 && !seen[$1]++' >"$out/bench.tsv"
  gnuplot -e "table='$out/bench.tsv'; chart='$out/bench.png'" "$here/chart.gp" && echo "chart: $out/bench.png"
else
  echo "chart: not drawn, gnuplot is not installed"
fi
python=${PYTHON:-python3}
if "$python" -c 'import numpy' 2>/dev/null; then
  "$python" "$here/peers.py" "$mxgold" ${only:+"$only"} | tee "$out/peers.txt"
else
  echo "peers: not run, $python has no numpy (PYTHON=... names another)"
fi
