# Tests what the commands make: layouts and back, codes and back, rotations worked by hand.
: "${scratch:?run by tests/run-cli.sh}"
python3 - <<'P'
import random, struct
random.seed(1)
def npy(name, descr, shape, data):
    h = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (descr, shape)
    h += " " * (-(len(h) + 11) % 64) + "\n"
    open(name, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(h)) + h.encode() + data)
def floats(values):
    return struct.pack("<%df" % len(values), *values)
npy("x.npy", "<f4", "(3, 41, 100)", floats([random.gauss(0, 1) for _ in range(12300)]))
npy("all.npy", "|u1", "(256,)", bytes(range(256)))
npy("sixteen.npy", "|u1", "(16,)", bytes(range(16)))
npy("h.npy", "<f4", "(16,)", floats([i - 7.5 for i in range(16)]))
npy("rotated.npy", "<f4", "(16,)", floats([0, -2, -4, 0, -8, 0, 0, 0, -16, 0, 0, 0, 0, 0, 0, 0]))
npy("e3.npy", "<f4", "(16,)", floats([8 * (i == 3) for i in range(16)]))
npy("te.npy", "<f4", "(16,)", floats([-2, 2, 2, -2] * 4))
npy("e2m1.npy", "<f4", "(16,)", floats([s * v for s in (1., -1.) for v in (0, .5, 1, 1.5, 2, 3, 4, 6)]))
P
same() { cmp -s "$1" "$2" || fail "$1 and $2 differ: $3"; }

# A preset as `presets` prints it is a spec.
for preset in te-nvfp4 hif4 quark-e5m3 flashinfer-fast-sm90; do
  "$mxgold" presets $preset --json >p.json || fail "presets $preset"
  accepts "$mxgold" quantize x.npy --preset $preset -o a.safetensors
  accepts "$mxgold" quantize x.npy --spec p.json -o b.safetensors
  accepts "$mxgold" diff a.safetensors b.safetensors
done
rm p.json a.safetensors b.safetensors

# SPEC 5, worked.
accepts "$mxgold" hadamard h.npy --size 16 -o y.npy
same y.npy rotated.npy "arange(16) - 7.5"
accepts "$mxgold" hadamard e3.npy --size 16 --sign te -o y.npy
same y.npy te.npy "te signs on 8 e_3"
accepts "$mxgold" hadamard e3.npy --size 16 --sign fixed --signs 0001000000000000 -o y.npy
same y.npy te.npy "the same sign, given"

# Codes to values and back.
accepts "$mxgold" decode sixteen.npy --format e2m1 -o y.npy
same y.npy e2m1.npy "all codes of e2m1"
for format in e4m3 ue5m3 e8m0 e4m3fnuz e5m2fnuz; do
  accepts "$mxgold" decode all.npy --format $format -o y.npy
  accepts "$mxgold" encode y.npy --format $format -o back.npy
  same back.npy all.npy "decode and encode under $format"
done

# Every layout and nibble order, there and back; every command reads them.
for preset in ocp-mxfp4 te-nvfp4 ocp-mxfp8-e4m3; do
  accepts "$mxgold" quantize x.npy -o q.safetensors --preset $preset --dequantized
  accepts "$mxgold" dequantize q.safetensors -o y0.npy
  for layout in row nv128x4 nv8x4 amd_shuffle amd_shuffle_256 column-major; do
    accepts "$mxgold" convert q.safetensors --layout $layout --pad 127 -o l.safetensors
    accepts "$mxgold" dequantize l.safetensors -o y.npy
    same y.npy y0.npy "$preset in $layout"
    accepts "$mxgold" convert l.safetensors --layout row -o back.safetensors
    same back.safetensors q.safetensors "$preset to $layout and back"
    accepts "$mxgold" inspect l.safetensors --input x.npy
    grep -q '^  not finite *0$' "$scratch/stdout" || fail "inspect --input: no error sums"
  done
  case $preset in *fp8*) continue ;; esac
  for nibble in high_first half_block low_first; do
    accepts "$mxgold" convert q.safetensors --nibble $nibble -o l.safetensors
    accepts "$mxgold" quantize x.npy -o n.safetensors --preset $preset --dequantized --set nibble=$nibble
    same l.safetensors n.safetensors "$preset, nibble $nibble"
  done
done
refuses "mxgold: bench: no operation holds 'nothing' in its name, such as 'mxfp4 floor'" "$mxgold" bench --only nothing --shape 4x64
refuses "mxgold: bench: --shape 4by64: expected RxC, such as 4096x4096" "$mxgold" bench --shape 4by64
accepts "$mxgold" bench --shape 33x100 --rounds 1 --json
python3 -m json.tool "$scratch/stdout" >/dev/null || fail "bench --json is not JSON"

# Empty tensors are tensors: no rows, no columns, under every kind of block.
python3 - <<'P'
import struct
for name, shape in (("e0.npy", "(0, 32)"), ("e1.npy", "(4, 0)"), ("e2.npy", "(0,)")):
    h = "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }" % shape
    h += " " * (-(len(h) + 11) % 64) + "\n"
    open(name, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(h)) + h.encode())
P
for empty in e0 e1 e2; do
  for preset in ocp-mxfp4 te-nvfp4 te-nvfp4-2d hif4; do
    accepts "$mxgold" quantize $empty.npy -o e.safetensors --preset $preset
    accepts "$mxgold" dequantize e.safetensors -o e.npy
    cmp -s e.npy $empty.npy || fail "$empty under $preset does not come back"
    accepts "$mxgold" inspect e.safetensors
  done
done
# Unquantised scales keep their dtype.
accepts "$mxgold" quantize h.npy -o q.safetensors --set scale=bf16
grep -aq '"scales":{"dtype":"BF16"' q.safetensors || fail "bf16 scales are not BF16"
accepts "$mxgold" dequantize q.safetensors -o y.npy
# Bytes that were changed after writing: no command builds on them.
accepts "$mxgold" quantize h.npy -o q.safetensors
python3 - <<'P'
b = bytearray(open("q.safetensors", "rb").read())
b[8 + int.from_bytes(b[:8], "little")] ^= 1
open("q.safetensors", "wb").write(b)
P
for command in "convert q.safetensors --nibble high_first -o r.safetensors" "dequantize q.safetensors -o r.npy"; do
  "$mxgold" $command 2>said && fail "$command takes changed bytes"
  grep -q "^mxgold: q.safetensors: tensor 'codes' has digest [0-9a-f]*, expected the [0-9a-f]* that the file states: its bytes were changed$" said || fail "$command: $(cat said)"
done
