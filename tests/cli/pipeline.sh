# Tests files of several pieces: any number of threads gives the same bytes, and only the first refusal is reported.
: "${scratch:?run by tests/run-cli.sh}"
yes mxgold-pipeline | head -c 4194304 >raw
for n in 1 3 8; do
  for preset in ocp-mxfp4 te-nvfp4 hif4; do
    accepts "$mxgold" quantize raw --shape 1024x1024 --preset $preset -o q$n.$preset.safetensors --threads $n
    accepts "$mxgold" dequantize q$n.$preset.safetensors -o d$n.$preset.npy --threads $n
    cmp -s q1.$preset.safetensors q$n.$preset.safetensors || fail "$preset: $n threads wrote another file than 1"
    cmp -s d1.$preset.npy d$n.$preset.npy || fail "$preset: $n threads dequantise to another file than 1"
  done
  accepts env OMP_NUM_THREADS=$n "$mxgold" encode raw --shape 1024x1024 --format e4m3 -o e$n.npy
  accepts env OMP_NUM_THREADS=$n "$mxgold" decode e$n.npy --format e4m3 -o v$n.npy
  accepts env OMP_NUM_THREADS=$n "$mxgold" hadamard raw --shape 1024x1024 --size 32 -o h$n.npy
  for f in e v h; do cmp -s ${f}1.npy $f$n.npy || fail "$f: $n threads wrote another file than 1"; done
done
cp raw bad
for at in 1000000 500000 900000; do printf '\377\377\377\377' | dd of=bad bs=4 seek=$at conv=notrunc 2>/dev/null; done
for n in 1 2 7; do
  refuses "mxgold: bad: value 500000 is NaN, refused by elem.nan=error" env OMP_NUM_THREADS=$n "$mxgold" encode bad --shape 1024x1024 --format e4m3 --nan error -o never.npy
  refuses "mxgold: bad: row 488, column 288: NaN or Inf, which scale.nan=error refuses" \
    "$mxgold" quantize bad --shape 1024x1024 --set scale.nan=error --threads $n -o never.safetensors
done
[ ! -e never.npy ] && [ ! -e never.safetensors ] || fail "a refused input left an output"
