#!/usr/bin/env bash
# Leads from a wrong kernel to its named bug, step by step as docs/guide/VERIFY.md does: demo-verify.sh [MXGOLD]
set -eu
mxgold=$(realpath "${1:-build/release/mxgold}")
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
say() { printf '\n$ %s\n' "$*"; }
run() {
  say "$@"
  "$@" || echo "(exit status $?)"
}
mxgold() { "$mxgold" "$@"; }

echo "1. Inputs that tell: ties of the format's own grid"
run mxgold gen ties --preset ocp-mxfp4 -o expected.safetensors
run mxgold inspect expected.safetensors --no-digests

echo; echo "2. A kernel that somebody wrote (here: ties away from zero), on the same input"
run mxgold quantize expected.safetensors:input --preset ocp-mxfp4 --set elem.round=rna -o actual.safetensors

echo; echo "3. Is it right, and if not, where?"
run mxgold diff expected.safetensors actual.safetensors --html report.html --junit report.xml

echo; echo "4. What does it do instead?"
run mxgold identify --input expected.safetensors:input --output actual.safetensors

echo; echo "5. A product: is D = A x B^T, and if not, what is it?"
run mxgold quantize expected.safetensors:input --preset ocp-mxfp8-e4m3 -o a.safetensors
run mxgold gemm a.safetensors a.safetensors --accum hopper_fp8_wgmma -o device.npy
run mxgold diff --gemm a.safetensors a.safetensors device.npy
run mxgold gemm a.safetensors a.safetensors -o forgot.npy
run mxgold diff --gemm a.safetensors a.safetensors forgot.npy --alpha 0.125

echo; echo "6. The same kernel as a shared object, in a child process"
say cc -O2 -shared -fPIC -DBUG_TIES kernel_plugin.c -lm -o kernel.so
${CC:-cc} -O2 -shared -fPIC -DBUG_TIES -I"$root/include" "$root/examples/kernel_plugin.c" -lm -o kernel.so
run mxgold test --plugin ./kernel.so --preset ocp-mxfp4 --suite ties

echo; echo "7. And once the bug is gone"
${CC:-cc} -O2 -shared -fPIC -I"$root/include" "$root/examples/kernel_plugin.c" -lm -o kernel.so
run mxgold test --plugin ./kernel.so --preset ocp-mxfp4
