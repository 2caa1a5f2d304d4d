# Tests that what identify prints gives the same bytes again, and that it reads the forms which kernels' files have.
: "${scratch:?run by tests/run-cli.sh}"
python=${PYTHON:-python3}

# again FILE [OPTION...]: identify --json of OPTIONs is exact; its reproduce options and its spec give the codes and scales of FILE. Its exit status is
# $status, 0 if that is empty.
again() {
  local file=$1
  shift
  "$mxgold" identify "$@" --seconds 100 --json >found.json 2>"$scratch/stderr"
  [ $? = "${status:-0}" ] || fail "not exact: identify $*: $(cat "$scratch/stderr" found.json | head -5)"
  "$python" - <<'PY' >options || fail "no options: $*"
import json
found = json.load(open("found.json"))
json.dump(found["spec"], open("spec.json", "w"))
print("\n".join(found["reproduce"]))
PY
  mapfile -t options <options
  accepts "$mxgold" quantize x.npy -o by-options.safetensors "${options[@]}"
  turn=
  grep -qx -e --transpose options && turn=--transpose
  accepts "$mxgold" quantize x.npy -o by-spec.safetensors --spec spec.json $turn
  for made in by-options by-spec; do
    "$mxgold" diff "$file" $made.safetensors >"$scratch/stdout" 2>&1 || fail "$made of identify $* is not $file: $(head -3 "$scratch/stdout")"
  done
}

# Tensors of a .safetensors file as .npy, as they are and in other forms.
forms() {
  "$python" - "$1" <<'PY' || fail "forms of $1"
import json, struct, sys
raw = open(sys.argv[1], "rb").read()
n = struct.unpack("<Q", raw[:8])[0]
head = json.loads(raw[8:8 + n])
def get(name):
    t = head[name]
    a, b = t["data_offsets"]
    return t["shape"], raw[8 + n + a:8 + n + b]
def npy(path, descr, shape, data):
    h = "{'descr': '%s', 'fortran_order': False, 'shape': (%s,), }" % (descr, ", ".join(map(str, shape)))
    h += " " * (-(len(h) + 11) % 64) + "\n"
    open(path, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(h)) + h.encode() + data)
(rows, width), codes = get("codes")
(_, blocks), scales = get("scales")
npy("codes.npy", "|u1", (rows, width), codes)
npy("scales.npy", "|u1", (rows, blocks), scales)
npy("flat.npy", "|u1", (rows * width,), codes)
npy("words.npy", "<u4", (rows, width // 4), codes)
npy("long.npy", "<i8", (rows, 2 * width), b"".join(struct.pack("<qq", c & 15, c >> 4) for c in codes))
npy("column.npy", "|u1", (rows * blocks, 1), scales)
npy("cube.npy", "|u1", (rows, blocks, 1), scales)
npy("values.npy", "<f4", (rows, blocks), b"".join(struct.pack("<f", 2.0 ** (s - 127)) for s in scales))
PY
}

accepts "$mxgold" gen ties --preset ocp-mxfp4 --shape 24x64 --seed 3 -o x.safetensors
"$python" - <<'PY' || fail "x.npy"
import json, struct
raw = open("x.safetensors", "rb").read()
n = struct.unpack("<Q", raw[:8])[0]
t = json.loads(raw[8:8 + n])["input"]
a, b = t["data_offsets"]
h = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }" % tuple(t["shape"])
h += " " * (-(len(h) + 11) % 64) + "\n"
open("x.npy", "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(h)) + h.encode() + raw[8 + n + a:8 + n + b])
PY

for keys in "--preset modelopt-mxfp4" "--preset te-nvfp4" "--preset ocp-mxfp8-e4m3 --set elem.round=rna" "--set elem.round=sr --seed 77" \
  "--set scale.rule=value --set scale.round=up --set scale.max=7.25" "--set block=16x16 --set scale=e4m3 --set scale.rule=value" \
  "--set had.size=16 --set had.sign=te" "--set had.size=32 --set had.sign=fixed --set had.signs=01101100101101110010110010110111" "--set elem.prescale=0.9 --set elem.round=rtz"; do
  accepts "$mxgold" quantize x.npy -o out.safetensors $keys
  again out.safetensors --input x.npy --output out.safetensors
done

accepts "$mxgold" quantize x.npy -o out.safetensors --preset modelopt-mxfp4
forms out.safetensors
for codes in codes flat words long; do
  again out.safetensors --input x.npy --codes $codes.npy --scales scales.npy
done
for scales in column cube values; do
  again out.safetensors --input x.npy --codes codes.npy --scales $scales.npy
done
"$mxgold" identify --input x.npy --codes codes.npy --scales values.npy | grep -q '^scale layout  *values of e8m0' || fail "scales as values are not named"
accepts "$mxgold" quantize x.npy -o out.safetensors --preset modelopt-mxfp4 --transpose
status=1 again out.safetensors --input x.npy --output out.safetensors
unset status
differs "Your kernel quantises the transpose of the input (transposed). Of that: Your kernel does what modelopt-mxfp4 does" "$mxgold" identify --input x.npy --output out.safetensors
grep -q '^input  *transposed' "$scratch/stdout" && grep -q '^bug  *transposed' "$scratch/stdout" || fail "the transpose is not named: $(cat "$scratch/stdout")"
differs '"name": "transposed"' "$mxgold" identify --input x.npy --output out.safetensors --expect modelopt-mxfp4 --json --quick
accepts "$mxgold" identify --input x.npy --output out.safetensors --transpose --expect modelopt-mxfp4 --quick
refuses "mxgold: codes: dtype f32, expected codes as integers; values go to --dequantized" "$mxgold" identify --input x.npy --codes x.npy --scales scales.npy

# Values that libraries made of their own codes under a tensor scale, and nothing else.
# Each is a long search: make check runs one of the two.
for preset in ct-nvfp4 ${CHECK_ALL:+torchao-nvfp4-2level}; do
  values=$root/tests/peers/values.safetensors:$preset
  "$mxgold" identify --input "$values.x" --dequantized "$values.values" --quick --seconds 100 >said || fail "values of $preset: $(cat said)"
  grep -q "^reproduce .*--preset $preset --set deq.arith=scale_first\$" said || fail "values of $preset: $(cat said)"
done

# As many bytes as plain scales: the layout is told by the bytes alone, whatever the order of the nibbles; so is that order.
accepts "$mxgold" gen random --shape 128x128 -o r.safetensors
# Each is a search of seconds: make check runs one of the three.
for nibble in high_first ${CHECK_ALL:+low_first half_block}; do
  accepts "$mxgold" quantize r.safetensors:input -o out.safetensors --preset ocp-mxfp4 --set nibble=$nibble
  accepts "$mxgold" convert out.safetensors --layout nv128x4 -o laid.safetensors
  "$mxgold" identify --input r.safetensors:input --codes laid.safetensors:codes --scales laid.safetensors:scales >said || fail "$nibble, nv128x4: $(cat said)"
  grep -q '^scale layout  *nv128x4' said && grep -q "^nibble  *$nibble" said && grep -q '^preset  *ocp-mxfp4' said || fail "$nibble, nv128x4: $(cat said)"
done

# What a file says of its layout is read, so padding of any byte and blocks that end short are not a riddle.
accepts "$mxgold" gen random --shape 3x90 -o short.safetensors
for layout in nv128x4 nv8x4 amd_shuffle column-major; do
  accepts "$mxgold" quantize short.safetensors:input -o out.safetensors --preset vllm-nvfp4
  accepts "$mxgold" convert out.safetensors --layout $layout --pad 255 -o laid.safetensors
  "$mxgold" identify --quick --input short.safetensors:input --output laid.safetensors >said || fail "$layout as stated: $(cat said)"
  grep -q "^scale layout  *$layout" said || fail "$layout as stated: $(cat said)"
done

# Scales by block columns; codes of a byte in wide integers; a block that the scales do not fit.
accepts "$mxgold" quantize r.safetensors:input -o out.safetensors
python3 - <<'PY'
import json, struct
raw = open("out.safetensors", "rb").read()
n = struct.unpack("<Q", raw[:8])[0]
h = json.loads(raw[8:8 + n])
part = lambda name: raw[8 + n + h[name]["data_offsets"][0]:8 + n + h[name]["data_offsets"][1]]
def npy(path, descr, shape, data):
    d = "{'descr': '%s', 'fortran_order': False, 'shape': %r, }" % (descr, shape)
    d += " " * (-(len(d) + 11) % 64) + "\n"
    open(path, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(d)) + d.encode() + data)
rows, kb = h["scales"]["shape"]
s = part("scales")
npy("c.npy", "|u1", tuple(h["codes"]["shape"]), part("codes"))
npy("turned.npy", "|u1", (rows, kb), bytes(s[k % rows * kb + k // rows] for k in range(rows * kb)))
for kind, name in (("h", "i2"), ("i", "i4"), ("q", "i8")):
    npy(name + ".npy", "<" + name, (rows, kb), struct.pack("<%d%s" % (rows * kb, kind), *s))
for name in ("<i4", "<u4"): npy("words" + name[1:] + ".npy", name, (rows, kb // 4), bytes(s))
PY
# Another layout is tried when the time of the one at hand is over: a short limit, since that time tells nothing.
"$mxgold" identify --quick --seconds 3 --input r.safetensors:input --codes c.npy --scales turned.npy | grep -q '^scale layout  *column-major' || fail "scales by columns"
accepts "$mxgold" convert out.safetensors --layout column-major -o columns.safetensors
python3 - <<'PY' || fail "scales by columns are not written again as they were read"
import json, struct
raw = open("columns.safetensors", "rb").read()
n = struct.unpack("<Q", raw[:8])[0]
a, b = json.loads(raw[8:8 + n])["scales"]["data_offsets"]
raise SystemExit(raw[8 + n + a:8 + n + b] != open("turned.npy", "rb").read()[-(b - a):])
PY
for wide in i2 i4 i8 wordsi4 wordsu4; do
  "$mxgold" identify --quick --input r.safetensors:input --codes c.npy --scales $wide.npy | grep -q '^preset  *ocp-mxfp4' || fail "scales as $wide"
done
# Words of which the last of a row holds fewer than four, and a row of one word.
for shape in 16x160 16x64; do
  accepts "$mxgold" gen random --shape $shape -o w.safetensors
  accepts "$mxgold" quantize w.safetensors:input --preset ocp-mxfp8-e4m3 -o w8.safetensors
  python3 - <<'PY'
import json, struct
raw = open("w8.safetensors", "rb").read()
n = struct.unpack("<Q", raw[:8])[0]
h = json.loads(raw[8:8 + n])
part = lambda name: raw[8 + n + h[name]["data_offsets"][0]:8 + n + h[name]["data_offsets"][1]]
rows, kb = h["scales"]["shape"]
s, words = part("scales"), (kb + 3) // 4
packed = b"".join(s[r * kb:r * kb + kb] + bytes(4 * words - kb) for r in range(rows))
head, codes = {}, part("codes")
head["codes"] = {"dtype": "U8", "shape": h["codes"]["shape"], "data_offsets": [0, len(codes)]}
head["scales"] = {"dtype": "I32", "shape": [rows, words], "data_offsets": [len(codes), len(codes) + len(packed)]}
text = json.dumps(head).encode()
open("w32.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + codes + packed)
PY
  "$mxgold" identify --quick --input w.safetensors:input --output w32.safetensors >said || fail "$shape, words of scales: $(cat said)"
  grep -q '^preset  *ocp-mxfp8-e4m3' said || fail "$shape, words of scales: $(cat said)"
  accepts "$mxgold" diff w8.safetensors w32.safetensors
done
refuses "mxgold: blocks of 16 columns were asked for: scales of 128 x 4 do not fit them in a 128 x 128 tensor" "$mxgold" identify \
  --input r.safetensors:input --output out.safetensors --block 16

# The order of packed codes is a key, not a bug; in a short last block too.
for keys in "ties ggml-mxfp4 24x64" "random ocp-mxfp4 96x256" "random te-nvfp4 33x100"; do
  read -r suite preset shape <<<"$keys"
  for nibble in half_block high_first; do
    accepts "$mxgold" gen "$suite" --preset "$preset" --set nibble=$nibble --shape "$shape" -o z.safetensors
    "$mxgold" identify --output z.safetensors --quick >said || fail "$keys $nibble: $(cat said)"
    grep -q "^reproduce.* --set nibble=$nibble" said || fail "$keys $nibble: $(cat said)"
  done
done

# Values alone, of blocks that no preset has; found, or given.
accepts "$mxgold" gen random --shape 48x128 --seed 5 -o r.safetensors
for keys in "ocp-mxfp8-e5m2 1x16 --block 16" "ocp-mxfp4 32x1" "ocp-mxfp6-e3m2 16x16"; do
  read -r preset block given <<<"$keys"
  accepts "$mxgold" quantize r.safetensors:input -o q.safetensors --preset $preset --set block=$block
  accepts "$mxgold" dequantize q.safetensors -o y.npy
  accepts "$mxgold" identify --input r.safetensors:input --dequantized y.npy --quick $given
  grep -q "^reproduce.* --set block=$block" "$scratch/stdout" || fail "$keys: $(cat "$scratch/stdout")"
done

# Rows of two codes a byte padded to as many bytes as there are columns; tiles and columns whose height is odd, or does not divide the rows.
for keys in "ocp-mxfp4 64x7" "te-nvfp4 96x8" "ocp-mxfp8-e4m3 64x7" "ocp-mxfp4 64x7 nibble=high_first" "ocp-mxfp4 256x64 block=3x32" \
  "te-nvfp4 96x64 block=5x32" "ocp-mxfp8-e4m3 250x40 block=3x1"; do
  read -r preset shape set <<<"$keys"
  accepts "$mxgold" gen random --preset $preset --shape $shape ${set:+--set $set} -o z.safetensors
  accepts "$mxgold" identify --output z.safetensors --quick
  grep -q "^reproduce.*${set:+ --set $set}" "$scratch/stdout" || fail "$keys: $(cat "$scratch/stdout")"
done

# Zeros whose sign alone is another; a tensor scale that alone is another.
accepts "$mxgold" gen random --preset ocp-mxint8 --shape 32x64 -o r.safetensors
"$python" - <<'PY' || fail "hand-made files"
import json, struct
def npy(path, descr, shape, data):
    d = "{'descr': '%s', 'fortran_order': False, 'shape': %r, }" % (descr, shape)
    d += " " * (-(len(d) + 11) % 64) + "\n"
    open(path, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(d)) + d.encode() + data)
raw = open("r.safetensors", "rb").read()
n = struct.unpack("<Q", raw[:8])[0]
a, b = json.loads(raw[8:8 + n])["dequantized"]["data_offsets"]
y = list(struct.unpack("<%df" % ((b - a) // 4), raw[8 + n + a:8 + n + b]))
zeros = [i for i, v in enumerate(y) if v == 0]
for i in zeros[:5]: y[i] = -y[i]
npy("y.npy", "<f4", (32, 64), struct.pack("<2048f", *y))
npy("tiny.npy", "<f4", (16, 64), struct.pack("<1024f", *[(k * 37 % 101 - 50) * 1e-40 for k in range(1024)]))
npy("zeros.npy", "|u1", (16, 64), b"".join(bytes([8 if k * 37 % 101 < 50 else 0]) for k in range(1024)))
npy("one.npy", "|u1", (16, 4), bytes([35] * 64))
PY
differs "Every value is explained except the sign of 5 zeros: your kernel does what ocp-mxint8 does." \
  "$mxgold" identify --input r.safetensors:input --dequantized y.npy --quick --seconds 2
"$mxgold" identify --input r.safetensors:input --dequantized y.npy --quick --seconds 2 --json | grep -q '"zero_signs": 5' || fail "zero_signs"
differs "only the tensor scale differs (0.370000005 is stored, these keys give 1)" "$mxgold" identify --input tiny.npy --codes zeros.npy \
  --scales one.npy --tensor-scale 0.37 --quick --seconds 20

# Scales as numbers that are codes' values, and nothing exact: what the preset leaves at most.
accepts "$mxgold" gen random --preset torchao-rceil --shape 48x64 -o r.safetensors
"$python" - <<'PY' || fail "a hand-made file"
import json, struct
raw = open("r.safetensors", "rb").read()
n = struct.unpack("<Q", raw[:8])[0]
h = json.loads(raw[8:8 + n])
part = lambda name: raw[8 + n + h[name]["data_offsets"][0]:8 + n + h[name]["data_offsets"][1]]
x, codes, scales = part("input"), bytearray(part("codes")), list(part("scales"))
for k in range(0, 48 * 32, 23): codes[k] ^= 1 + k % 5
for k in (5, 40, 77): scales[k] += 1
values = struct.pack("<96f", *[2.0 ** (s - 127) for s in scales])
head = {"input": {"dtype": "F32", "shape": [48, 64], "data_offsets": [0, len(x)]},
        "codes": {"dtype": "U8", "shape": [48, 32], "data_offsets": [len(x), len(x) + 1536]},
        "scales": {"dtype": "F32", "shape": [48, 2], "data_offsets": [len(x) + 1536, len(x) + 1920]}}
text = json.dumps(head).encode()
open("odd.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + x + bytes(codes) + values)
PY
differs "values of e8m0" "$mxgold" identify --output odd.safetensors --quick --seconds 2
[ "$(sed -n 's/^scales that differ *//p' "$scratch/stdout")" -le 3 ] || fail "scales as values: $(cat "$scratch/stdout")"
[ "$(sed -n 's/^codes that differ *//p' "$scratch/stdout")" -le 67 ] || fail "scales as values: $(cat "$scratch/stdout")"

# What is expected is told without a search: its bytes, a fault that is allowed, and a kernel that does something else. Another preset that gives the same
# bytes is not asked for.
accepts "$mxgold" gen random --preset ocp-mxfp4 --shape 32x64 -o e.safetensors
accepts "$mxgold" quantize e.safetensors:input -o right.safetensors --preset ocp-mxfp4
accepts "$mxgold" quantize e.safetensors:input -o late.safetensors --preset ocp-mxfp4 --fault "rows%4=3: scale store <- row -1"
accepts "$mxgold" quantize e.safetensors:input -o nv.safetensors --preset te-nvfp4
accepts "$mxgold" identify --input e.safetensors:input --output right.safetensors --expect ocp-mxfp4
accepts "$mxgold" identify --input e.safetensors:input --output nv.safetensors --expect te-nvfp4
accepts "$mxgold" identify --input e.safetensors:input --output late.safetensors --expect ocp-mxfp4 --allow "rows%4=3: scale store <- row -1"
grep -q "^fault  *rows%4=3: scale store <- row -1" "$scratch/stdout" || fail "an allowed fault is not said: $(cat "$scratch/stdout")"
differs "scales in another place" "$mxgold" identify --input e.safetensors:input --output late.safetensors --expect ocp-mxfp4 --quick
differs "Every byte is explained: your kernel does what quark-even does, except that scale.rule is floor" \
  "$mxgold" identify --input e.safetensors:input --output right.safetensors --expect quark-even --quick
differs "Your kernel does what ocp-mxfp4 does: every byte is the same." "$mxgold" identify --input e.safetensors:input --output right.safetensors --expect te-nvfp4 --quick
refuses "mxgold: identify: --allow needs --expect" "$mxgold" identify --input e.safetensors:input --output right.safetensors --allow "all: code <- negate"
