# What was once taken without a word: values, options and files that mean nothing are refused in one line, or it is said what they were taken for.
: "${scratch:?run by tests/run-cli.sh}"
python3 - <<'PY'
import numpy as np
r = np.random.default_rng(17)
np.save("x.npy", r.standard_normal((64, 96)).astype("f4"))
PY

# Numbers that are no tensor scale, and those that binary32 would make 0 of.
for v in nan 0 inf; do
  refuses "mxgold: quantize: --tensor-scale $v: expected a finite number above 0; --set tensor.given=$v is for kernels that are given it" \
    "$mxgold" quantize x.npy --preset te-nvfp4 --tensor-scale $v -o never.safetensors
done
refuses "mxgold: quantize: --tensor-scale 1e-400: below the smallest binary32 above 0, 1.4e-45" \
  "$mxgold" quantize x.npy --preset te-nvfp4 --tensor-scale 1e-400 -o never.safetensors
refuses "mxgold: --set: tensor.target=1e-400: expected a number, 0 or 1.4e-45 to 3.4e38" \
  "$mxgold" quantize x.npy --preset te-nvfp4 --set tensor.target=1e-400 -o never.safetensors
refuses "mxgold: --set: tensor.given=1e-46: expected none, a number, nan or inf" \
  "$mxgold" quantize x.npy --preset te-nvfp4 --set tensor.given=1e-46 -o never.safetensors
accepts "$mxgold" quantize x.npy --preset te-nvfp4 --tensor-scale 1e-45 -o least.safetensors
accepts "$mxgold" quantize x.npy --preset te-nvfp4 --set tensor.target=1e-45 -o least.safetensors
accepts "$mxgold" quantize x.npy --preset te-nvfp4 --set tensor.given=nan -o least.safetensors

# Options that name nothing, or that nobody would read.
refuses "mxgold: matrix: --presets '': no preset, expected at least two names with commas between them" "$mxgold" matrix --presets ''
refuses "mxgold: matrix: --presets '': no preset, expected at least two names with commas between them" "$mxgold" matrix --presets ,
refuses "mxgold: matrix: --presets 'te-nvfp4': nothing to compare it with, expected at least two names with commas between them" \
  "$mxgold" matrix --presets te-nvfp4
refuses "mxgold: matrix: --presets and --minimal exclude each other: --minimal takes all presets" "$mxgold" matrix --minimal --presets te-nvfp4
for suite in minimal special; do
  refuses "mxgold: gen: --shape 3x3: suite $suite has tensors of its own shape, expected no --shape" "$mxgold" gen $suite --shape 3x3
done
refuses "mxgold: inspect: --dtype is about the file of --input, expected --input X.npy" "$mxgold" inspect x.npy --dtype f32
refuses "mxgold: inspect: --shape is about the file of --input, expected --input X.npy" "$mxgold" inspect x.npy --shape 64x96
# Without --shape, --dtype is what the file has to hold.
accepts "$mxgold" quantize x.npy --dtype f32 -o q.safetensors
refuses "mxgold: x.npy: dtype is f32, not the f16 of --dtype" "$mxgold" quantize x.npy --dtype f16 -o never.safetensors
[ ! -e never.safetensors ] || fail "a refused command left an output"
