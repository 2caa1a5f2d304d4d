#!/bin/sh
# make check-instructions: instructions of the AVX2 kernels against those of the scalar code for the same work, counted by callgrind, so that a
# kernel that falls back to scalar code is seen on any machine under any load. (valgrind has no AVX-512.)
#   instructions.sh MXGOLD
# The numbers below are how many times fewer the kernel must need; about two thirds of what was measured when the row was written.
set -eu
mxgold=$1 weight=$(dirname "$0")/data/minilm_slices.safetensors:weight
command -v valgrind >/dev/null || { echo "check-instructions: not run, valgrind is not installed" >&2; exit 2; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
strip -g -o "$tmp/mxgold" "$mxgold" # names are enough, and not every valgrind reads clang's debugging information
mxgold=$tmp/mxgold
# Instructions inside the library's call alone.
count() { # ISA_OFF FUNCTION COMMAND ARGUMENT...
  off=$1 function=$2
  shift 2
  OMP_NUM_THREADS=1 valgrind --tool=callgrind --toggle-collect="$function" --callgrind-out-file="$tmp/out" -q \
    "$mxgold" "$@" --isa-off "$off" >"$tmp/said" 2>&1 || { cat "$tmp/said" >&2; exit 2; }
  sed -n 's/^summary: //p' "$tmp/out"
}
failed=0
held() { # LEAST FUNCTION COMMAND ARGUMENT...
  least=$1
  shift
  scalar=$(count all "$@")
  vector=$(count avx512 "$@")
  verdict=ok
  [ $((scalar / (vector + 1))) -ge "$least" ] || { verdict=FAILED; failed=1; }
  shift
  echo "check-instructions: $1 $6: avx2 $vector, scalar $scalar, $((scalar / (vector + 1))) times fewer, at least $least: $verdict"
}
for row in "58 ocp-mxfp4" "58 torchao-even" "58 aiter-cpu" "56 torchao-rceil" "40 mxfp4-ue5m3" "60 ocp-mxfp8-e4m3" "60 ocp-mxfp6-e2m3" "35 te-nvfp4" "35 vllm-nvfp4" "37 te-4over6-mse" "30 fouroversix" "14 hif4"; do
  held "${row% *}" mx_quantize quantize "$weight" -o "$tmp/q.safetensors" --preset "${row#* }"
done
exit $failed
