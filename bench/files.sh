#!/bin/sh
# Measures, for make bench-files, the seconds of whole processes on a 1 GiB .npy in a RAM disk beside those of cp, by turns, and the median ratio.
#   files.sh MXGOLD [ROUNDS]
set -eu
mxgold=$(realpath "$1") root=$(realpath "$(dirname "$0")/..") rounds=${2:-7}
dir=$(mktemp -d "${RAMDISK:-/dev/shm}/mxgold.XXXXXX")
trap 'rm -rf "$dir"' EXIT
cd "$dir"
# A real weight matrix over and over, rotated to float32: what matters is how many bytes there are, and that they are ordinary.
"$mxgold" hadamard "$root/tests/data/minilm_slices.safetensors:weight" --size 16 -o part.npy
n=$(($(stat -c %s part.npy) - 128)) all=1073741824
header=$(printf "{'descr': '<f4', 'fortran_order': False, 'shape': (65536, 4096), }")
{ printf '\223NUMPY\001\000\166\000%-117.117s\n' "$header"; for i in $(seq $((all / n + 1))); do tail -c $n part.npy; done | head -c $all; } >in.npy
rm part.npy
now() { date +%s%N; }
echo "cp and mxgold quantize of $(stat -c %s in.npy) bytes, $rounds rounds in turn, load $(cut -d' ' -f1 /proc/loadavg)"
for preset in ocp-mxfp4 torchao-rceil te-nvfp4; do
  for i in $(seq "$rounds"); do
    a=$(now); cp in.npy copy.npy; b=$(now); "$mxgold" quantize in.npy -o out.safetensors --preset $preset; c=$(now)
    rm copy.npy out.safetensors
    echo "$(((c - b) / 1000)) $(((b - a) / 1000))"
  done | awk -v p=$preset '{ print $1 / $2, $1 / 1e6, $2 / 1e6 }' | sort -n |
    awk -v p=$preset '{ r[NR] = $1; t[NR] = $2; c[NR] = $3 } END { m = int((NR + 1) / 2); printf "%-14s %.2f of the time of cp (%.2f to %.2f), %.2f s against %.2f s\n", p, r[m], r[1], r[NR], t[m], c[m] }'
done
