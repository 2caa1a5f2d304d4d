# Tests what was once accepted in silence: values, options and files that mean nothing are now refused in one line, or the program says how it read them.
: "${scratch:?run by tests/run-cli.sh}"
cat >npy.py <<'PY'
import struct
def save(path, descr, rows, cols, data):
    """A matrix as .npy."""
    head = ("{'descr': '%s', 'fortran_order': False, 'shape': (%d, %d), }" % (descr, rows, cols)).encode().ljust(117) + b"\n"
    open(path, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + head + bytes(data))
PY
python3 - <<'PY'
import random, struct
from npy import save
r = random.Random(17)
save("x.npy", "<f4", 64, 96, struct.pack("<6144f", *(r.gauss(0, 1) for _ in range(6144))))
PY

# Numbers that are not a tensor scale, and those that binary32 would make 0 of.
for v in nan 0 inf; do
  refuses "mxgold: quantize: --tensor-scale $v: expected a finite number above 0; --set tensor.given=$v is for kernels that are given it" \
    "$mxgold" quantize x.npy --preset te-nvfp4 --tensor-scale $v -o never.safetensors
done
refuses "mxgold: quantize: --tensor-scale -1: expected a finite number above 0" "$mxgold" quantize x.npy --preset te-nvfp4 --tensor-scale -1 -o never.safetensors
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
# A name that is left out of a list; repeats of what draws nothing.
for list in nvfp4,,hif4 ,nvfp4,hif4 nvfp4,hif4, ,; do
  refuses "mxgold: --presets: '$list' has an empty place, expected NAME[,NAME]..." "$mxgold" ablate gen:gaussian --shape 8x64 --presets $list
  refuses "mxgold: compare: --presets: '$list' has an empty place, expected names with commas between them" "$mxgold" compare x.npy --presets $list
  [ "$list" = , ] || refuses "mxgold: matrix: --presets: '$list' has an empty place, expected names with commas between them" "$mxgold" matrix --presets $list
done
refuses "mxgold: --set: 'elem.round=rne,,sr' has an empty place, expected KEY=VALUE[,VALUE]..." "$mxgold" ablate gen:gaussian --shape 8x64 --set elem.round=rne,,sr
refuses "mxgold: --set: 'elem.round=' has an empty place, expected KEY=VALUE[,VALUE]..." "$mxgold" ablate gen:gaussian --shape 8x64 --set elem.round=
for how in "gen:gaussian" "--gemm gen:gaussian gen:laplace" "--six gen:gaussian gen:laplace gen:uniform -p recipe-ocp"; do
  # shellcheck disable=SC2086
  refuses "mxgold: ablate: --repeats is of specs that draw random bits, and there is none, expected one such as --set elem.round=sr" \
    "$mxgold" ablate $how --shape 64x64 --repeats 4
done
accepts "$mxgold" ablate gen:gaussian --shape 8x64 --set elem.round=rne,sr --repeats 4
accepts "$mxgold" ablate --gemm gen:gaussian gen:laplace --shape 8x64 --operand Q2:elem.round=sr --repeats 2
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

# Text: the end of lines, and which column has how many numbers.
accepts "$mxgold" gen ties --preset ocp-mxfp4 --shape 3x64 -o e.mxv
sed 's/$/\r/' e.mxv >crlf.mxv
refuses "mxgold: crlf.mxv: line 1, byte 7: expected a line feed alone at the end of each line, not CRLF: dos2unix converts the file" "$mxgold" verify crlf.mxv
sed '$!b; s/$/\r/' e.mxv >crlf.mxv
refuses "mxgold: crlf.mxv: line $(wc -l <e.mxv), byte $(($(wc -c <e.mxv) - 1)): expected a line feed alone at the end of each line, not CRLF: dos2unix converts the file" \
  "$mxgold" verify crlf.mxv
header=$(grep -c '^#' e.mxv)
at=$(sed -n "1,$((header - 1))p" e.mxv | wc -c)
awk -F' [|] ' '/^#/ {print; next} {sub(/ .$/, "", $2); print $1 " | " $2 " | " $3}' e.mxv >short.mxv
refuses "mxgold: short.mxv: line $header, byte $((at + 64 * 9 + 1)): column codes has 63 numbers, expected 64" "$mxgold" verify short.mxv
sed '/^#/!s/$/ | 0/' e.mxv >more.mxv
refuses "mxgold: more.mxv: line $header, byte $((at + 64 * 9 + 1 + 64 * 2 + 2)): 4 columns, expected at most the 3 of the header" "$mxgold" verify more.mxv
sed "$((header + 1))s/ | [^|]*$//" e.mxv >fewer.mxv
line=$(sed -n "${header}p" e.mxv | wc -c)
refuses "mxgold: fewer.mxv: line $((header + 1)), byte $((at + line + 64 * 9 + 1)): 2 columns, expected 3 as on the first line" "$mxgold" verify fewer.mxv
sed "${header}s/ | [^|]*$//" e.mxv >fewer.mxv
refuses "mxgold: fewer.mxv: line $header, byte $((at + line - 9)): 2 columns, expected the 3 of the header: no column $(sed -n 's/^# columns .* \([^ :]*\):[^ ]*$/\1/p' e.mxv), which line $((header + 1)) has" "$mxgold" verify fewer.mxv

# Headers that say too little, or two things.
for key in block elem scale scale.rule elem.round; do
  grep -v "^# $key=" e.mxv >less.mxv
  refuses "mxgold: less.mxv: header: no $key=..., expected the keys of the spec, as mxgold gen writes them" "$mxgold" verify less.mxv
done
sed 's/^# preset=.*/# preset=ocp-mxfp5/' e.mxv >other.mxv
differs_at=$("$mxgold" verify other.mxv 2>&1)
case $differs_at in "mxgold: other.mxv: header: "*ocp-mxfp5*) ;; *) fail "a preset that is not: $differs_at" ;; esac
sed 's/^# elem.round=.*/# elem.round=rna/' e.mxv >other.mxv
refuses "mxgold: other.mxv: header: preset=ocp-mxfp4, but elem.round=rna where that preset has rne; expected its keys, or no preset" "$mxgold" verify other.mxv
refuses "mxgold: other.mxv: header: preset=ocp-mxfp4, but elem.round=rna where that preset has rne; expected its keys, or no preset" "$mxgold" verify e.mxv other.mxv
refuses "mxgold: less.mxv: header: no elem.round=..., expected the keys of the spec, as mxgold gen writes them" "$mxgold" verify e.mxv less.mxv
accepts "$mxgold" gen ties --preset ocp-mxfp4 --set elem.round=rna --shape 3x64 -o changed.mxv
! grep -q '^# preset=' changed.mxv || fail "a preset is named though a key of it was changed"
accepts "$mxgold" verify changed.mxv

# The inputs of a pipe are made again: what a partner did to them is found, and without a suite none counts as compared.
kernel() { python3 -c '
import subprocess, sys
lines = sys.stdin.read().split("\n")
want = iter([l for l in open("full.mxv").read().split("\n") if l and l[0] != "#"])
for l in lines[:-1]: print(l if l[0] == "#" else l + " | " + next(want).split(" | ", 1)[1])'; }
for suite in random ties boundary codes special tails padding layout order cancel minimal; do
  for spec in "--preset ocp-mxfp4" "--preset te-nvfp4" "--set block=8x8" "--set block=col"; do
    # shellcheck disable=SC2086
    "$mxgold" gen $suite $spec -o full.mxv 2>/dev/null || continue
    accepts "$mxgold" verify full.mxv
    grep -q "^x  *$(grep -vc '^#' full.mxv | sed 's/.*/[1-9]/')" "$scratch/stdout" || fail "$suite $spec: x is not compared: $(cat "$scratch/stdout")"
  done
done
accepts "$mxgold" gen random --preset te-nvfp4 --seed 5 --shape 7x48 -o full.mxv
accepts "$mxgold" verify full.mxv
"$mxgold" gen random --preset te-nvfp4 --seed 5 --shape 7x48 | kernel >returned.mxv
accepts "$mxgold" verify - <returned.mxv
"$mxgold" gen random --preset ocp-mxfp4 -o full.mxv
"$mxgold" gen random --preset ocp-mxfp4 | sed '/^#/!s/^4/c/' >turned.mxv
# An honest kernel on those inputs: right for what it was given, wrong for what it should have been given.
python3 - <<'PY'
flip = lambda l: "c" + l[1:] if l[0] == "4" else l
turned = [l for l in open("turned.mxv").read().split("\n") if l and l[0] != "#"]
open("kernel.mxv", "w").write("".join(
    (l if not l or l[0] == "#" else flip(l)) + "\n" for l in open("full.mxv").read().split("\n")[:-1]))
full = [l for l in open("full.mxv").read().split("\n") if l and l[0] != "#"]
assert any(a[:8] != b[:8] for a, b in zip(full, turned))
PY
differs "equal  no" "$mxgold" verify kernel.mxv
grep -q '^x  *16384  *[1-9]' "$scratch/stdout" || fail "an input that was changed on the way was not seen: $(cat "$scratch/stdout")"
grep -v '^# suite=' full.mxv >trusted.mxv
accepts "$mxgold" verify trusted.mxv
grep -q '^x  *0  *0' "$scratch/stdout" || fail "x counts as compared though nothing says what it was: $(cat "$scratch/stdout")"
sed 's/^# suite=.*/# suite=randon/' full.mxv >unknown.mxv
refuses "mxgold: unknown.mxv: header: suite=randon: no such suite, expected one that mxgold gen makes" "$mxgold" verify unknown.mxv
refuses "mxgold: standard input: header: suite=randon: no such suite, expected one that mxgold gen makes" "$mxgold" verify - <unknown.mxv
grep -v '^# gen.seed=' full.mxv >seedless.mxv
refuses "mxgold: seedless.mxv: header: suite=random without gen.seed, rows and cols, expected all of them, as mxgold gen writes" "$mxgold" verify seedless.mxv
"$mxgold" gen special --preset ocp-mxfp4 -o full.mxv
n=$(grep -vc '^#' full.mxv)
sed "$(($(wc -l <full.mxv) - 1))d; s/^# end .*/# end $((n - 1))/" full.mxv >lost.mxv
refuses "mxgold: lost.mxv: header: suite special under this spec has no $((n - 1)) cases of these columns, expected as many lines as mxgold gen wrote" \
  "$mxgold" verify lost.mxv

# Codes that are none: bits that the format does not have, and rows of no packing.
MXGOLD=$mxgold python3 - <<'PY'
import json, os, random, struct, subprocess
import npy
r = random.Random(18)
ROWS, COLS = 64, 96
def save(path, **tensors): # name: (columns, bytes)
    header, body = {}, b""
    for name, (cols, data) in tensors.items():
        header[name] = {"dtype": "U8", "shape": [ROWS, cols], "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + body)
def load(path):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + n])
    return {k: (v["shape"][1], data[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]]) for k, v in header.items() if k in ("codes", "scales")}
mxgold = os.environ["MXGOLD"]
for preset, bits in (("ocp-mxfp4", 4), ("ocp-mxfp6-e2m3", 6)):
    subprocess.run([mxgold, "quantize", "x.npy", "--preset", preset, "-o", f"a{bits}.safetensors"], check=True)
    q = load(f"a{bits}.safetensors")
    codes = bytearray(q["codes"][1] if bits == 6 else (half for byte in q["codes"][1] for half in (byte & 15, byte >> 4)))
    assert len(codes) == ROWS * COLS
    save(f"b{bits}.safetensors", codes=(COLS, codes), scales=q["scales"])
    at = 5 * COLS + 7
    codes[at] = codes[at] & ((1 << bits) - 1) | 0xC0
    print(f"0x{codes[at]:02X}", file=open(f"code{bits}", "w"))
    save(f"c{bits}.safetensors", codes=(COLS, codes), scales=q["scales"])
    npy.save(f"c{bits}.npy", "|u1", ROWS, COLS, codes)
q = load("a4.safetensors")
four = [half for byte in q["codes"][1] for half in (byte & 15, byte >> 4)]
npy.save("extended.npy", "|u1", ROWS, COLS, bytes(c | 0xF0 if c & 8 else c for c in four))
npy.save("scales.npy", "|u1", ROWS, *q["scales"])
for width in (90, 47, 65):
    npy.save(f"codes{width}.npy", "|u1", ROWS, width, bytes(r.randrange(256) for _ in range(ROWS * width)))
npy.save("codes48.npy", "|u1", ROWS, 48, q["codes"][1])
npy.save("codes64.npy", "|u1", ROWS, 64, b"".join(q["codes"][1][48 * i:48 * i + 48] + bytes(16) for i in range(ROWS)))
PY
for bits in 4 6; do
  accepts "$mxgold" diff a$bits.safetensors b$bits.safetensors
  refuses "mxgold: c$bits.safetensors: tensor codes: $(cat code$bits) in row 5, column 7, expected a code of $bits bits, 0 to $(((1 << bits) - 1))" \
    "$mxgold" diff a$bits.safetensors c$bits.safetensors
done
# The same of identify, which knows no format: by the signs of the input. Codes of 8 bits that look like these are searched: those of two's complement.
refuses "mxgold: codes: $(cat code4) in row 5, column 7, expected a code of 4 bits, 0 to 15, one a byte: bit 3 of the bytes is the sign of the input" \
  "$mxgold" identify --input x.npy --codes c4.npy --scales scales.npy
"$mxgold" identify --input x.npy --codes extended.npy --scales scales.npy >said 2>&1
[ $? = 2 ] && grep -Eq "^mxgold: codes: 0xF[0-9A-F] in row 0, .*expected a code of 4 bits" said || fail "codes with their sign drawn into the high bits: $(cat said)"
accepts "$mxgold" quantize x.npy --preset ocp-mxint8 -o eight.safetensors
python3 - <<'PY'
import json, struct
from npy import save
data = open("eight.safetensors", "rb").read()
n = struct.unpack("<Q", data[:8])[0]
at = {k: data[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]] for k, v in json.loads(data[8:8 + n]).items() if k != "__metadata__"}
save("eight.npy", "|u1", 64, 96, at["codes"])
save("small.npy", "|u1", 64, 96, bytes((c - 256 * (c > 127)) // 16 % 256 for c in at["codes"])) # a kernel that loses four bits: -8 to 7
save("eight-scales.npy", "|u1", 64, len(at["scales"]) // 64, at["scales"])
PY
accepts "$mxgold" identify --input x.npy --codes eight.npy --scales eight-scales.npy --quick
"$mxgold" identify --input x.npy --codes small.npy --scales eight-scales.npy --quick >said 2>&1
[ $? -lt 2 ] || fail "small codes of two's complement are not searched: $(cat said)"
for width in 90 47 65; do
  refuses "mxgold: codes: 64 x $width bytes for an input of 64 x 96, expected 96 a row, or 48 and some padding with two codes a byte" \
    "$mxgold" identify --input x.npy --codes codes$width.npy --scales scales.npy
done
for width in 48 64; do accepts "$mxgold" identify --input x.npy --codes codes$width.npy --scales scales.npy --quick; done

# Columns of .mxv are inputs: from a file, by a pipe, with what lies behind the end of a row left out.
for suite in random special; do
  accepts "$mxgold" gen $suite --preset te-nvfp4 -o v.mxv
  accepts "$mxgold" gen $suite --preset te-nvfp4 -o v.safetensors
  accepts "$mxgold" quantize v.safetensors:input --preset te-nvfp4 -o want.safetensors
  accepts "$mxgold" quantize v.mxv:x --preset te-nvfp4 -o have.safetensors
  cmp -s want.safetensors have.safetensors || fail "quantize of $suite.mxv gives other bytes than of .safetensors"
  "$mxgold" gen $suite --preset te-nvfp4 | "$mxgold" quantize - --preset te-nvfp4 -o have.safetensors || fail "quantize of a pipe of .mxv"
  cmp -s want.safetensors have.safetensors || fail "quantize of a pipe of $suite.mxv gives other bytes"
done
accepts "$mxgold" gen padding --preset ocp-mxfp4 -o v.mxv
accepts "$mxgold" gen padding --preset ocp-mxfp4 -o v.safetensors
accepts "$mxgold" quantize v.mxv:x --preset ocp-mxfp4 -o have.safetensors
accepts "$mxgold" diff v.safetensors have.safetensors
refuses "mxgold: v.mxv: 3 tensors, expected the name of one after a colon, such as :x" "$mxgold" quantize v.mxv -o never.safetensors
sed '$d' v.mxv >cut.mxv
refuses "mxgold: cut.mxv: line $(($(wc -l <cut.mxv) + 1)), byte $(wc -c <cut.mxv): expected \"# end N\"" "$mxgold" quantize cut.mxv:x -o never.safetensors
[ ! -e never.safetensors ] || fail "a refused .mxv left an output"
# ablate and ablate --gemm take columns too, as the tensors that the same suite writes.
accepts "$mxgold" gen ties --preset te-nvfp4 -o v.mxv
accepts "$mxgold" gen ties --preset te-nvfp4 -o v.safetensors
accepts "$mxgold" ablate v.safetensors:input -p nvfp4,ocp-mxfp4 --csv
# The seed of a tensor is of its name.
sed -E 's/^input,/x,/; s/(true|false),[0-9]+,/\1,/' "$scratch/stdout" >want.csv
accepts "$mxgold" ablate v.mxv:x -p nvfp4,ocp-mxfp4 --csv
sed -E 's/(true|false),[0-9]+,/\1,/' "$scratch/stdout" | cmp -s want.csv - || fail "ablate of a column: $(cat "$scratch/stdout")"
accepts "$mxgold" ablate v.mxv -p nvfp4
grep -q '^codes  *u8  *64x256  not floats$' "$scratch/stdout" || fail "ablate of a whole .mxv: $(cat "$scratch/stdout")"
# Of a whole .mxv the input is measured, not the floats that a kernel gives back, unless they are asked for.
accepts "$mxgold" gen minimal --preset te-nvfp4 --dequantized -o m.mxv
accepts "$mxgold" ablate m.mxv -p nvfp4
for line in '^x  *nvfp4 ' '^tensor_scale  *f32  *17x1  *no input$' '^dequantized  *f32  *17x2x64  *no input$' '^tensors measured  1$'; do
  grep -q "$line" "$scratch/stdout" || fail "ablate of a whole .mxv lacks $line: $(cat "$scratch/stdout")"
done
accepts "$mxgold" ablate m.mxv -p nvfp4 --include dequantized
grep -q '^dequantized  *nvfp4 ' "$scratch/stdout" || fail "ablate --include dequantized: $(cat "$scratch/stdout")"
accepts "$mxgold" ablate m.mxv:dequantized -p nvfp4
accepts "$mxgold" quantize m.mxv --all --fake --preset nvfp4 -o fake.safetensors
grep -q '^quantised  *1$' "$scratch/stdout" || fail "quantize --all of an .mxv: $(cat "$scratch/stdout")"
rm -f m.mxv fake.safetensors
accepts "$mxgold" ablate --gemm v.mxv:x v.mxv:x -p nvfp4
refuses "mxgold: codes: dtype is u8, expected f32, f16 or bf16" "$mxgold" ablate v.mxv:codes

# gen --dequantized: the values of .safetensors as a column, which verify computes again; a wrong one, and a wrong tensor scale of the header, are found.
for suite in ties minimal special "random --set block=16x16"; do
  # shellcheck disable=SC2086
  accepts "$mxgold" gen $suite --preset te-nvfp4 -o plain.mxv
  # shellcheck disable=SC2086
  accepts "$mxgold" gen $suite --preset te-nvfp4 --dequantized -o v.mxv
  # shellcheck disable=SC2086
  accepts "$mxgold" gen $suite --preset te-nvfp4 -o v.safetensors
  sed 's/ dequantized:[0-9:]*$//; /^#/!s/ | [^|]*$//' v.mxv | cmp -s plain.mxv - || fail "$suite: without --dequantized a file is not the same less that column"
  python3 - v.mxv v.safetensors <<'P' || fail "$suite: the column dequantized is not the tensor"
import json, struct, sys
text = open(sys.argv[1]).read().split("\n")
header = [l for l in text if l.startswith("# ")]
names = [c.split(":")[0] for c in header[-2].split()[2:]]
rows = [l.split(" | ") for l in text if l and l[0] != "#"]
column = lambda name: b"".join(struct.pack("<I", int(n, 16)) for r in rows for n in r[names.index(name)].split())
raw = open(sys.argv[2], "rb").read()
n = struct.unpack("<Q", raw[:8])[0]
of = {k: raw[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]] for k, v in json.loads(raw[8:8 + n]).items() if k != "__metadata__"}
assert names[-1] == "dequantized" and column("dequantized") == of["dequantized"] and len(of["dequantized"]) == 4 * sum(len(r[1].split()) for r in rows)
scale = column("tensor_scale") if "tensor_scale" in names else struct.pack("<I", int([l for l in header if "# tensor_scale=" in l][0][-8:], 16))
assert scale == of["tensor_scale"]
P
  accepts "$mxgold" verify v.mxv
  grep -q '^dequantized  *[1-9][0-9]*  *0$' "$scratch/stdout" || fail "$suite: the values are not compared: $(cat "$scratch/stdout")"
  sed '/^#/!{ s/0$/1/; t; s/.$/0/ }' v.mxv >wrong.mxv
  cmp -s v.mxv wrong.mxv && fail "$suite: nothing was changed"
  differs "equal  no" "$mxgold" verify wrong.mxv
  grep -q '^dequantized  *[0-9]*  *[1-9]' "$scratch/stdout" && grep -q '^codes  *[0-9]*  *0 *$' "$scratch/stdout" || fail "$suite: a wrong value: $(cat "$scratch/stdout")"
done
accepts "$mxgold" gen ties --preset te-nvfp4 -o v.mxv
sed 's/^# tensor_scale=.*/# tensor_scale=43e00001/' v.mxv >wrong.mxv
differs "equal  no" "$mxgold" verify wrong.mxv
grep -Eq '^tensor_scale  +1  +1  +0  +0  +43e00000  +43e00001$' "$scratch/stdout" || fail "a wrong tensor scale in the header: $(cat "$scratch/stdout")"
differs "equal  no" "$mxgold" verify v.mxv wrong.mxv
# --inputs writes them alone, in every form.
for suite in ties special; do
  accepts "$mxgold" gen $suite --inputs -o v.safetensors
  accepts "$mxgold" inspect v.safetensors --no-digests
  [ "$(grep -c ' f32 \| u8 ' "$scratch/stdout")" = 1 ] && grep -q '^input  *f32' "$scratch/stdout" || fail "$suite --inputs: $(cat "$scratch/stdout")"
done
rm -f v.safetensors v.mxv plain.mxv wrong.mxv want.csv
