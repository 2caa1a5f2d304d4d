# Tests ablate and quantize --all: what they refuse, that no number of threads changes a figure, wildcards, state, checkpoints and shards.
: "${scratch:?run by tests/run-cli.sh}"
slices=$root/tests/data/minilm_slices.safetensors
refuses "mxgold: ablate: no input, expected IN[:TENSOR]... or gen:NAME" "$mxgold" ablate
refuses "mxgold: generator 'gausian' is unknown, nearest: gaussian" "$mxgold" ablate gen:gausian
refuses "mxgold: generator 'student:0': expected student: student:NU, Student's t of NU degrees of freedom, a whole number from 1 to 64" "$mxgold" ablate gen:student:0
refuses "mxgold: $slices: no tensor 'wieght', nearest: weight" "$mxgold" ablate "$slices:wieght"
refuses "mxgold: $slices: no tensor of floats matches 'layer*'" "$mxgold" ablate "$slices:layer*"
refuses "mxgold: --shape: '3by4', expected RxC, each 1 to 1048576" "$mxgold" ablate gen:gaussian --shape 3by4
refuses "mxgold: --gemm: 1 tensors, expected two: X [rows][K] and W [columns][K]" "$mxgold" ablate --gemm "$slices:weight"
refuses "mxgold: --gemm: weight is 64x1536 and gradient 64x384, expected the same number of columns" "$mxgold" ablate --gemm "$slices:weight" "$slices:gradient"
refuses "mxgold: --six: X is 64x1536, W 64x384 and DY 128x384, expected [T][I], [O][I] and [T][O]" "$mxgold" ablate --six "$slices:weight" "$slices:gradient" "$slices:activation"
refuses "mxgold: --png: 'chart.gif', expected a name that ends in .png or .svg" "$mxgold" ablate gen:gaussian --shape 4x64 --png chart.gif
refuses "mxgold: ablate: --shape is of generated tensors, and there is none" "$mxgold" ablate "$slices" --shape 4x64
refuses "mxgold: ablate: --gemm and --six exclude each other" "$mxgold" ablate --gemm --six gen:gaussian

# Any number of threads, the same figures; a run that reads its state says the same.
accepts "$mxgold" ablate "$slices" -p ocp-mxfp4,nvfp4 --set elem.round=rne,sr --json --threads 1
cp "$scratch/stdout" one
accepts "$mxgold" ablate "$slices" -p ocp-mxfp4,nvfp4 --set elem.round=rne,sr --json --threads 3 --state state
cmp -s one "$scratch/stdout" || fail "three threads give other figures than one"
accepts "$mxgold" ablate "$slices" -p ocp-mxfp4,nvfp4 --set elem.round=rne,sr --json --state state
cmp -s one "$scratch/stdout" || fail "figures from the state differ"
[ "$(wc -l <state)" = 13 ] || fail "the state holds $(wc -l <state) lines, expected its name and 12 rows"
echo "my notes" >notes
refuses "mxgold: notes: is not a state of ablate, expected one or a name that is free" "$mxgold" ablate "$slices" --state notes
[ "$(cat notes)" = "my notes" ] || fail "--state changes a file that is not a state"
# A disk that fills (here a limit on the file's size): one line, and no file that was not there; what was there stays.
if ! ldd "$mxgold" | grep -q libomp; then # clang's OpenMP wants a file of its own before main(), which the limit forbids
  said=$( (trap '' XFSZ; ulimit -f 0; "$mxgold" ablate gen:gaussian --shape 4x64 --state fresh) 2>&1 >/dev/null)
  [ "$said" = "mxgold: fresh: cannot write: File too large" ] || fail "a full disk under --state: $said"
  [ ! -e fresh ] || fail "a full disk leaves a state of $(wc -c <fresh) bytes"
fi
python3 - one <<'P' || fail "ablate --json"
import json, sys
d = json.load(open(sys.argv[1]))
rows = d["measurements"]
assert len(rows) == 12 and {r["tensor"] for r in rows} == {"weight", "activation", "gradient"}
assert all(r["behind_db"] >= 0 and r["cosine"] > 0.97 for r in rows)
assert len(d["specs"]) == 4 and sum(s["best_for"] for s in d["specs"]) == 3
P

grep -q '"scale_histogram_log2": "-8:[0-9]*,-7:' one || fail "no histogram of scales"
head -c 3000 state >cut # a run that was stopped in the middle of a line
accepts "$mxgold" ablate "$slices" -p ocp-mxfp4,nvfp4 --set elem.round=rne,sr --json --state cut
cmp -s one "$scratch/stdout" || fail "figures from a cut state differ"
wc -l <cut >lines
accepts "$mxgold" ablate "$slices" -p ocp-mxfp4,nvfp4 --set elem.round=rne,sr --json --state cut
cmp -s one "$scratch/stdout" || fail "figures from a mended state differ"
[ "$(wc -l <cut)" = "$(cat lines)" ] || fail "a mended state is measured again"

# Charts: one line without gnuplot; with it, a picture and a page that needs nothing else.
refuses "mxgold: charts need gnuplot, which is not installed" env PATH=/nowhere "$mxgold" ablate gen:gaussian --shape 8x64 --png c.svg
if command -v gnuplot >/dev/null; then
  accepts "$mxgold" ablate gen:gaussian gen:laplace --shape 32x64 -p ocp-mxfp4,nvfp4 --png chart.svg --html page.html
  for title in 'SQNR against bits a value, mean over 2 tensors' 'Histogram of scales' 'Error against magnitude' \
    'Magnitudes before and after a Hadamard rotation of 32' 'the most damaged tensor'; do
    grep -q "$title" chart.svg || fail "the picture has no '$title'"
  done
  [ "$(grep -c '<image' chart.svg)" = 2 ] || fail "$(grep -c '<image' chart.svg) maps in the picture, expected one a spec"
  [ "$(grep -c '</svg>' page.html)" = 6 ] || fail "$(grep -c '</svg>' page.html) charts in the page, expected 6"
  # Every spec is drawn, however many: a line, a map, and a box to take both away; the best six have a tick.
  accepts "$mxgold" ablate gen:gaussian --shape 32x64 --set scale.rule=floor,ceil,even,value --set elem.round=rne,rtz,sr --png many.png --html many.html
  for i in 1 6 12; do
    grep -q "id=\"octaves_plot_$i\"" many.html && grep -q "id=map$((i - 1))>" many.html &&
      grep -q "data-spec=$((i - 1))$([ $i -gt 6 ] || echo " checked")>" many.html || fail "spec $i of 12 is not drawn, or cannot be chosen"
  done
  python3 - many.png <<'P' || fail "the picture has not its size"
import struct, sys
raw = open(sys.argv[1], "rb").read()
assert raw[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">2I", raw[16:24]) == (1500, 60 + 620 + 40 + 420 + 3 * 310), struct.unpack(">2I", raw[16:24])
P
  grep -Eq '(src|href)="?(https?:|//)|@import|<script src' page.html && fail "the page links to something outside"
  accepts "$mxgold" ablate gen:gaussian --shape 32x64 --set had.size=0,16 --html had.html
  grep -q 'Hadamard rotation of 16' had.html || fail "the chart of the rotation is not of the size asked"
  # Nothing to draw is drawn as that: a tensor of zeros, one that NaN spoils as a whole; it does not take the mean of the others with it.
  python3 - <<'P'
import struct
def save(path, v):
    h = b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 32), }".ljust(117) + b"\n"
    open(path, "wb").write(h + struct.pack("<64f", *v))
save("zeros.npy", [0.0] * 64)
save("spoiled.npy", [1.0] * 63 + [float("nan")])
P
  accepts "$mxgold" ablate zeros.npy spoiled.npy -p nvfp4 --png nothing.svg --html nothing.html
  accepts "$mxgold" ablate zeros.npy -p ocp-mxfp4,nvfp4 --png nothing.svg --html nothing.html
  grep -q 'nothing to draw' nothing.svg || fail "the picture of a tensor of zeros"
  accepts "$mxgold" ablate zeros.npy gen:gaussian gen:laplace --shape 8x64 -p ocp-mxfp4,nvfp4 --png some.svg
  grep -q 'mean over 2 tensors' some.svg || fail "a tensor of zeros takes the mean of the others with it"
  refuses "mxgold: .: is a folder, expected the name of a file" "$mxgold" ablate gen:gaussian --shape 8x64 --html .
  refuses "mxgold: nowhere/page.html: cannot create: No such file or directory" "$mxgold" ablate gen:gaussian --shape 8x64 --html nowhere/page.html
  refuses "mxgold: nowhere/chart.png: cannot create: No such file or directory" "$mxgold" ablate gen:gaussian --shape 8x64 --png nowhere/chart.png
fi

# Scales with and without a tensor scale: what stored scales are multiplied by is told.
accepts "$mxgold" ablate gen:gaussian --shape 8x64 -p nvfp4,ocp-mxfp4 --json
python3 - "$scratch/stdout" <<'P' || fail "the tensor scale's factor"
import json, sys
d = {r["spec"]: r for r in json.load(open(sys.argv[1]))["measurements"]}
assert d["ocp-mxfp4"]["tensor_scale_factor"] == 1 and 0.0005 < d["nvfp4"]["tensor_scale_factor"] < 0.005, d
P

# NaN is counted, or refused.
python3 - <<'P'
import struct
v = [1.0] * 64
v[33] = float("nan")
h = b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 32), }".ljust(117) + b"\n"
open("nan.npy", "wb").write(h + struct.pack("<64f", *v))
P
accepts "$mxgold" ablate nan.npy --json
grep -q '"nan": 1,.*"spoiled": 31' "$scratch/stdout" || fail "NaN is not counted"
refuses "mxgold: nan.npy: row 1, column 1 is NaN, which --refuse-nan refuses" "$mxgold" ablate nan.npy --refuse-nan

# A preset that spoils the tensor is not the best one, and the mean behind stays a number.
accepts "$mxgold" ablate nan.npy "$slices:weight" -p nvfp4,ocp-mxfp4 --json
python3 - "$scratch/stdout" <<'P' || fail "a spoiled tensor is ranked as if nothing were wrong"
import json, sys
d = json.load(open(sys.argv[1]))
spoiled = [r for r in d["measurements"] if r["tensor"] == "nan.npy" and r["spec"] == "nvfp4"][0]
assert spoiled["values"] == 0 and spoiled["spoiled"] == 63 and 0 < spoiled["behind_db"] < 100, spoiled
assert not spoiled["pareto"]
assert all(0 <= s["mean_behind_db"] < 500 for s in d["specs"]), d["specs"]
P
accepts "$mxgold" ablate nan.npy -p nvfp4,ocp-mxfp4
grep -q 'nvfp4 .* none left ' "$scratch/stdout" || fail "no word on a tensor of which nothing is left"

# Over tensors of several sizes bits are those of all values together: a small one with short rows is not half of the checkpoint.
python3 - <<'P'
import array, json, random, struct
random.seed(11)
at, h, body = 0, {}, b""
for k, shape in (("conv", [8, 4, 3, 3]), ("matrix", [64, 1024]), ("ids", [2, 2]), ("norm", [8]), ("none", [0, 4])):
    n = 1
    for d in shape:
        n *= d
    raw = array.array("f", (random.gauss(0, 1) for _ in range(n * (2 if k == "ids" else 1)))).tobytes()
    h[k] = {"dtype": "I64" if k == "ids" else "F32", "shape": shape, "data_offsets": [at, at + len(raw)]}
    at += len(raw)
    body += raw
t = json.dumps(h).encode()
t += b" " * (-len(t) % 8)
open("sizes.safetensors", "wb").write(struct.pack("<Q", len(t)) + t + body)
P
accepts "$mxgold" ablate sizes.safetensors -p ocp-mxfp4,nvfp4 --json
python3 - "$scratch/stdout" <<'P' || fail "means over tensors are not weighted by values"
import json, sys
d = json.load(open(sys.argv[1]))
for s in d["specs"]:
    rows = [r for r in d["measurements"] if r["spec"] == s["spec"]]
    n = sum(r["values"] for r in rows)
    assert n == 64 * 1024 + 288 and len(rows) == 2
    for mean, one in (("bits", "bits"), ("mean_behind_db", "behind_db")):
        assert abs(s[mean] - sum(r[one] * r["values"] for r in rows) / n) < 1e-9, (s, mean)
mx, nv = (s["bits"] for s in d["specs"])
assert mx < nv < 4.6, (mx, nv)
P

# What a whole file has that is not measured is named; a size of rotation that does not divide one tensor's columns leaves that one out, unless it was
# asked for by name or nothing else is there. Rows shorter than a block have a note.
python3 - "$scratch/stdout" <<'P' || fail "what is left out of a whole file"
import json, sys
d = json.load(open(sys.argv[1]))
assert {t["tensor"]: t["why"] for t in d["tensors_left_out"]} == {"ids": "not floats", "norm": "no matrix", "none": "empty"}, d["tensors_left_out"]
assert d["n_tensors"] == 2 and d["n_left_out"] == 3
notes = {(r["tensor"], r["spec"]): (r["rows"], r["columns"], r["note"]) for r in d["measurements"]}
assert notes["conv", "nvfp4"] == (96, 3, "rows of 3 in blocks of 16") and notes["matrix", "nvfp4"] == (64, 1024, ""), notes
P
for which in sizes.safetensors "sizes.safetensors:[cm]*"; do
  accepts "$mxgold" ablate "$which" --set had.size=0,16 --json
  python3 - "$scratch/stdout" <<'P' || fail "$which: a tensor that cannot be rotated"
import json, sys
d = json.load(open(sys.argv[1]))
assert {r["tensor"] for r in d["measurements"]} == {"matrix"} and len(d["measurements"]) == 2
assert [t["why"] for t in d["tensors_left_out"] if t["tensor"] == "conv"] == ["had.size does not divide its columns"]
P
done
accepts "$mxgold" ablate sizes.safetensors --set had.size=0,16
grep -q '^conv  *f32  *8x4x3x3  had.size does not divide its columns$' "$scratch/stdout" && grep -q '^tensors left out  4$' "$scratch/stdout" || fail "tensors that are left out are not named"
accepts "$mxgold" ablate sizes.safetensors -p nvfp4
grep -q '^conv .*rows of 3 in blocks of 16$' "$scratch/stdout" || fail "no note on short rows"
for which in sizes.safetensors:conv "sizes.safetensors:con*"; do
  refuses "mxgold: conv, ocp-mxfp4 had.size=16: had.size=16 does not divide the 3 columns, so that the rotation cannot be undone" "$mxgold" ablate "$which" --set had.size=0,16
done
# So has a short block at the end of rows, or of columns under tiles.
accepts "$mxgold" ablate gen:gaussian --shape 40x70
grep -q '^gen:gaussian  ocp-mxfp4  5.829 .*rows of 70: the last block of 32 holds 6$' "$scratch/stdout" || fail "no note on a short last block"
accepts "$mxgold" ablate gen:gaussian --shape 40x64 --set block=16x16
grep -q '40 rows: the last blocks of 16 hold 8$' "$scratch/stdout" || fail "no note on tiles that are cut"
accepts "$mxgold" ablate gen:gaussian --shape 40x64 --set block=1x32,col
! grep -q 'note' "$scratch/stdout" || fail "a note on blocks that are full"
# The same notes in --fake's table and in the page.
accepts "$mxgold" quantize sizes.safetensors --all --fake --preset nvfp4 -o noted.safetensors
grep -q '^conv .*rows of 3 in blocks of 16$' "$scratch/stdout" || fail "quantize --all: no note on short rows"
if command -v gnuplot >/dev/null; then
  accepts "$mxgold" ablate sizes.safetensors -p nvfp4 --html noted.html
  grep -q '<td class=t>rows of 3 in blocks of 16</td>' noted.html && grep -q '<td class=t>norm</td>.*<td class=t>no matrix</td>' noted.html || fail "the page has no notes"
fi

# --include and --exclude as quantize --all has them; overlapping patterns measure a tensor once, and an operand twice.
for args in "sizes.safetensors --exclude ^conv$" "sizes.safetensors --include matrix" "sizes.safetensors:[cm]* --exclude conv"; do
  # shellcheck disable=SC2086
  accepts "$mxgold" ablate $args --set had.size=0,16 --json
  python3 - "$scratch/stdout" <<'P' || fail "$args"
import json, sys
d = json.load(open(sys.argv[1]))
assert {r["tensor"] for r in d["measurements"]} == {"matrix"} and d["n_tensors"] == 1, d["measurements"]
assert [t["why"] for t in d["tensors_left_out"] if t["tensor"] == "conv"][0] in ("excluded", "not included"), d["tensors_left_out"]
P
done
accepts "$mxgold" ablate sizes.safetensors --include 'norm|conv' -p ocp-mxfp4
[ "$(grep -c '^tensors measured  2$' "$scratch/stdout")" = 1 ] || fail "--include does not take vectors"
refuses "mxgold: ablate: --include and --exclude leave no tensor of floats" "$mxgold" ablate sizes.safetensors --include nothing
refuses "mxgold: --exclude: '[': Invalid regular expression, expected an extended regular expression" "$mxgold" ablate sizes.safetensors --exclude '['
accepts "$mxgold" ablate "sizes.safetensors:m*" "./sizes.safetensors:*x" sizes.safetensors:matrix sizes.safetensors --exclude conv --json
python3 - "$scratch/stdout" <<'P' || fail "overlapping patterns count a tensor twice"
import json, sys
d = json.load(open(sys.argv[1]))
assert d["n_tensors"] == 1 and len(d["measurements"]) == 1 and len({t["tensor"] for t in d["tensors_left_out"]}) == d["n_left_out"] == 4, d
P
accepts "$mxgold" ablate --gemm "$slices:weight" "$slices:weight"

# JSON: a field has one type; null where there is no number.
python3 - <<'P'
import struct
for path, v in (("zeros.npy", 0.0), ("void.npy", float("nan"))):
    h = b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 32), }".ljust(117) + b"\n"
    open(path, "wb").write(h + struct.pack("<64f", *[v] * 64))
P
accepts "$mxgold" ablate void.npy zeros.npy sizes.safetensors:matrix -p ocp-mxfp4,nvfp4 --json
python3 - "$scratch/stdout" <<'P' || fail "a figure in JSON is not a number and not null"
import json, sys
d = json.load(open(sys.argv[1]))
text = {"spec", "tensor", "scale_histogram_log2", "note", "same_values_as", "digest", "keys", "seed"}
for r in d["measurements"] + d["specs"]:
    for k, v in r.items():
        assert isinstance(v, str) if k in text else v is None or isinstance(v, (int, float)), (k, v)
of = {r["tensor"]: r for r in d["measurements"]}
assert of["void.npy"]["sqnr_db"] is None and of["void.npy"]["values"] == 0
assert of["zeros.npy"]["sqnr_db"] is None and of["zeros.npy"]["mse"] == 0 and of["zeros.npy"]["values"] == 64
assert of["matrix"]["sqnr_db"] > 10
P

# numpy's defaults: binary64 is not rounded behind a user's back, and Fortran order is refused; both with the way out in one line.
python3 - <<'P'
import json, struct
def save(path, descr, order, form, n):
    h = ("{'descr': '%s', 'fortran_order': %s, 'shape': (2, 32), }" % (descr, order)).encode()
    open(path, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + h.ljust(117) + b"\n" + struct.pack(form, *[1.5] * n))
save("f64.npy", "<f8", False, "<64d", 64)
save("fortran.npy", "<f4", True, "<64f", 64)
h = {"wide": {"dtype": "F64", "shape": [2, 32], "data_offsets": [0, 512]}, "w": {"dtype": "F32", "shape": [2, 32], "data_offsets": [512, 768]}}
t = json.dumps(h).encode()
t += b" " * (-len(t) % 8)
open("wide.safetensors", "wb").write(struct.pack("<Q", len(t)) + t + struct.pack("<64d64f", *[1.5] * 128))
P
way="dtype is f64, expected f32, f16 or bf16: round it to float32 first, in numpy x.astype('float32')"
refuses "mxgold: f64.npy: $way" "$mxgold" ablate f64.npy
refuses "mxgold: f64.npy: $way" "$mxgold" quantize f64.npy -o q.safetensors
refuses "mxgold: wide: $way" "$mxgold" ablate wide.safetensors:wide
accepts "$mxgold" ablate wide.safetensors -p ocp-mxfp4
grep -q '^wide  *f64  *2x32  *f64: round it to float32 first$' "$scratch/stdout" || fail "ablate does not say why a tensor of binary64 is left out"
accepts "$mxgold" quantize wide.safetensors --all --fake -o fake64.safetensors
grep -q '^wide  *f64  *2x32  *f64: round it to float32 first$' "$scratch/stdout" || fail "quantize --all does not say why a tensor of binary64 is left as it is"
for c in "ablate fortran.npy" "quantize fortran.npy -o q.safetensors"; do
  # shellcheck disable=SC2086
  "$mxgold" $c 2>&1 | grep -q 'Fortran order, expected C order: save numpy.ascontiguousarray(x)$' || fail "$c: no word on the order"
done

# A shard of one tensor is as one of many: no matrix, no floats.
python3 - <<'P'
import json, struct
def save(path, name, dtype, shape, size):
    t = json.dumps({name: {"dtype": dtype, "shape": shape, "data_offsets": [0, size]}}).encode()
    t += b" " * (-len(t) % 8)
    open(path, "wb").write(struct.pack("<Q", len(t)) + t + struct.pack("<f", 1.5) * (size // 4))
save("o-1.safetensors", "w", "F32", [4, 32], 512)
save("o-2.safetensors", "norm", "F32", [32], 128)
save("o-3.safetensors", "ids", "I64", [4], 32)
save("o-4.safetensors", "odd", "F32", [4, 24], 384)
json.dump({"weight_map": {"w": "o-1.safetensors", "norm": "o-2.safetensors", "ids": "o-3.safetensors", "odd": "o-4.safetensors"}}, open("o.safetensors.index.json", "w"))
P
accepts "$mxgold" ablate o.safetensors.index.json --set had.size=16
for line in '^norm  *f32  *32  *no matrix$' '^ids  *i64  *4  *not floats$' '^odd .*had.size does not divide its columns$' '^tensors measured  1$'; do
  grep -q "$line" "$scratch/stdout" || fail "shards of one tensor: no line $line"
done

# No preset is best for a tensor of NaN alone, and no mean holds it.
python3 - <<'P'
import struct
h = b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 32), }".ljust(117) + b"\n"
open("void.npy", "wb").write(h + struct.pack("<64f", *[float("nan")] * 64))
P
accepts "$mxgold" ablate void.npy gen:gaussian -p ocp-mxfp4,nvfp4 --json
python3 - "$scratch/stdout" <<'P' || fail "a tensor of NaN has a best preset"
import json, sys
d = json.load(open(sys.argv[1]))
assert sum(s["best_for"] for s in d["specs"]) == 1 and not any(r["pareto"] for r in d["measurements"] if r["tensor"] == "void.npy"), d
P
accepts "$mxgold" ablate void.npy -p ocp-mxfp4,nvfp4
[ "$(grep -c 'none left *none left' "$scratch/stdout")" = 2 ] || fail "what is said of a tensor of NaN"

# A few blocks have no interval, and decide nothing; at 20 parts of 64 values they have one.
for shape in 1x64 4x64 19x64; do
  accepts "$mxgold" ablate gen:gaussian --shape $shape --seed 3 --presets ocp-mxfp4,torchao-rceil,ocp-mxfp8-e4m3 --json --state few
  cp "$scratch/stdout" few.json
  accepts "$mxgold" ablate gen:gaussian --shape $shape --seed 3 --presets ocp-mxfp4,torchao-rceil,ocp-mxfp8-e4m3 --json --state few
  cmp -s few.json "$scratch/stdout" || fail "$shape: no interval does not come back from a state"
  ! grep -q '"matters": true' few.json && grep -q '"equal_to_best_for": 0' few.json && ! grep -q '"equal_to_best_for": 1' few.json || fail "$shape: a few blocks decide"
  accepts "$mxgold" ablate gen:gaussian --shape $shape --seed 3 --presets ocp-mxfp4,torchao-rceil,ocp-mxfp8-e4m3
  [ "$(grep -c '[0-9] (few blocks) ~' "$scratch/stdout")" = 2 ] && [ "$(grep -c ' best ' "$scratch/stdout")" -ge 1 ] || fail "$shape: an interval over a few blocks"
done
accepts "$mxgold" ablate gen:gaussian --shape 20x64 --seed 3 --presets ocp-mxfp4,ocp-mxfp8-e4m3
grep -q '[0-9] ([0-9.]*\.\.[0-9.]*) ' "$scratch/stdout" || fail "no interval over 20 parts"

# A key given twice takes all its values; repeats; presets of one operand.
accepts "$mxgold" ablate gen:gaussian --shape 8x64 --set scale.rule=floor,even --set scale.rule=ceil --json
[ "$(grep -o '"spec": "ocp-mxfp4 scale.rule=[a-z]*", "bits"[^}]*sqnr' "$scratch/stdout" | cut -d'"' -f4 | sort -u | wc -l)" = 3 ] || fail "values of a key that is set twice"
# What is asked for twice is measured and printed once, in every mode: presets, values of a key, and those of a key that is given again.
for mode in "gen:gaussian" "--gemm gen:gaussian gen:laplace" "--six gen:gaussian gen:laplace gen:rows:1.5"; do
  # shellcheck disable=SC2086
  accepts "$mxgold" ablate $mode --shape 32x32 -p nvfp4,hif4 --set elem.round=rne,sr --repeats 2
  cp "$scratch/stdout" once
  # shellcheck disable=SC2086
  accepts "$mxgold" ablate $mode --shape 32x32 -p nvfp4,hif4,nvfp4,hif4 --set elem.round=rne,rne --set elem.round=sr,rne,sr --repeats 2
  cmp -s once "$scratch/stdout" || fail "$mode: what is asked for twice is printed twice"
done
refuses "mxgold: --repeats: 0, expected 1 to 1000000" "$mxgold" ablate gen:gaussian --repeats 0
accepts "$mxgold" ablate gen:gaussian --shape 8x64 --set elem.round=sr --repeats 1
grep -q '^bias  not told from noise by one repeat' "$scratch/stdout" || fail "one repeat: the bias passes for one"
accepts "$mxgold" ablate --gemm gen:gaussian gen:laplace --shape 16x64 --operand Q2:preset=ocp-mxfp8-e4m3 --json
cp "$scratch/stdout" two
accepts "$mxgold" ablate --gemm gen:gaussian gen:laplace --shape 16x64 --operand Q2:elem=e4m3 --json
cmp -s two "$scratch/stdout" || fail "--operand Q2:preset= is not that preset"
refuses "mxgold: --operand: Q2: preset 'ocp-mxfp9' is unknown, nearest: ocp-mxfp4" "$mxgold" ablate --gemm gen:gaussian gen:laplace --operand Q2:preset=ocp-mxfp9

# Recipes: names of a wrong preset's neighbours, six operands alone, the same as their operands by hand.
refuses "mxgold: preset 'quartet' is unknown, nearest: recipe-quartet, recipe-quartet2, quark" "$mxgold" ablate gen:gaussian -p quartet
refuses "mxgold: 'recipe-quartet' is a recipe, of six operands: it goes with --six" "$mxgold" ablate gen:gaussian -p recipe-quartet
refuses "mxgold: 'recipe-quartet' is a recipe, of six operands: it goes with --six" "$mxgold" ablate --gemm gen:gaussian gen:laplace -p recipe-quartet
six="$mxgold ablate --six gen:gaussian gen:laplace gen:rows:1.5 --shape 64x64 --json"
# shellcheck disable=SC2086
accepts $six -p recipe-nvfp4
sed 's/"preset": "[^"]*"//' "$scratch/stdout" >recipe
# shellcheck disable=SC2086
accepts $six -p te-nvfp4 --operand Q2:block=16x16 --operand Q4:block=16x16 --operand Q3:elem.round=sr --operand Q5:elem.round=sr,had.size=16,had.sign=te --operand Q6:had.size=16,had.sign=te
sed 's/"preset": "[^"]*"//' "$scratch/stdout" | cmp -s - recipe || fail "recipe-nvfp4 is not its operands"
for name in $(grep -o '^MX_RECIPE("[a-z0-9-]*' "$root/formats/recipes.def" | cut -d'"' -f2); do
  grep -q "\`$name\`" "$root/docs/guide/ABLATE.md" || fail "docs/guide/ABLATE.md does not name $name"
done

# Operands of a product draw apart: the same generator twice gives two matrices, and other errors.
accepts "$mxgold" ablate --gemm gen:gaussian gen:gaussian --shape 32x64 -p nvfp4 --json
python3 - "$scratch/stdout" <<'P' || fail "X and W of a product are the same draws"
import json, sys
d = {r["quantised"]: r["relative_error"] for r in json.load(open(sys.argv[1]))["error"]}
assert abs(d["first operand alone"] / d["second operand alone"] - 1) > 1e-4, d
# Of independent operands the errors add as squares.
assert abs(d["both, binary64 sums"] ** 2 / (d["first operand alone"] ** 2 + d["second operand alone"] ** 2) - 1) < 0.1, d
P

# Every accumulation model that gemm has, under either name; what does not go with a product is refused.
fp8="$mxgold ablate --gemm gen:gaussian gen:laplace --shape 16x64 -p ocp-mxfp8-e4m3 --json"
for model in exact f32_block f32_seq f32_pairwise f64 dequantized hopper_fp8_wgmma fused:F=13; do
  # shellcheck disable=SC2086
  accepts $fp8 --accum $model
  cp "$scratch/stdout" "sum-$model"
done
# shellcheck disable=SC2086
accepts $fp8 --accumulate fused:F=13
cmp -s "$scratch/stdout" sum-fused:F=13 || fail "--accumulate is not --accum"
python3 - <<'P' || fail "a sum of 13 bits costs nothing"
import json
e = {m: [r["relative_error"] for r in json.load(open("sum-" + m))["error"] if r["quantised"] == "sums alone"][0] for m in ("fused:F=13", "f32_block", "dequantized")}
assert e["fused:F=13"] > 100 * e["f32_block"] > 0 == e["dequantized"], e
P
refuses "mxgold: model 'f23_block' is unknown, nearest: f32_block" "$mxgold" ablate --gemm gen:gaussian gen:laplace --accum f23_block
refuses "mxgold: ablate: --accum goes with --gemm or --six" "$mxgold" ablate gen:gaussian --accum exact
refuses "mxgold: --png: 'p.gif', expected a name that ends in .png or .svg" "$mxgold" ablate --gemm gen:gaussian gen:laplace --png p.gif
refuses "mxgold: notes: is not a state of ablate, expected one or a name that is free" "$mxgold" ablate --gemm gen:gaussian gen:laplace --state notes
refuses "mxgold: nan.npy: row 1, column 1 is NaN, which --refuse-nan refuses" "$mxgold" ablate --gemm nan.npy nan.npy --refuse-nan
accepts "$mxgold" ablate --gemm nan.npy nan.npy --json
grep -q '"X_nan_or_inf": 1' "$scratch/stdout" || fail "NaN in an operand is not counted"
grep -q '"left_out": 3' "$scratch/stdout" || fail "what NaN spoils of a product is not counted"
accepts "$mxgold" ablate --six nan.npy nan.npy gen:gaussian --shape 2x2 --json
grep -q '"W_nan_or_inf": 1' "$scratch/stdout" && grep -q '"spoiled": 31' "$scratch/stdout" || fail "--six: NaN in an operand is not counted"

# Checkpoints: same names, shapes and dtypes; what is left out is left as it was.
refuses "mxgold: quantize: --all without --fake, expected both" "$mxgold" quantize "$slices" --all -o out.safetensors
refuses "mxgold: quantize: --fake, --include, --exclude, --refuse-nan and --json go with --all" "$mxgold" quantize "$slices:weight" --fake -o out.safetensors
refuses "mxgold: --include: '(': Unmatched ( or \\(, expected an extended regular expression" "$mxgold" quantize "$slices" --all --fake --include '(' -o out.safetensors
python3 - "$slices" <<'P'
import json, struct, sys
raw = open(sys.argv[1], "rb").read()
n = struct.unpack("<Q", raw[:8])[0]
head, data = json.loads(raw[8:8 + n]), raw[8 + n:]
def floats(name):
    a, b = head[name]["data_offsets"]
    return data[a:b]
def save(path, tensors):
    at, h, body = 0, {}, b""
    for name, (dtype, shape, raw) in tensors.items():
        h[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(raw)]}
        at += len(raw)
        body += raw
    t = json.dumps(h).encode()
    t += b" " * (-len(t) % 8)
    open(path, "wb").write(struct.pack("<Q", len(t)) + t + body)
g = floats("gradient")
bf16 = b"".join(g[i + 2:i + 4] for i in range(0, len(g), 4))
f16 = struct.pack("<%de" % (len(g) // 4), *[1000 * v for v in struct.unpack("<%df" % (len(g) // 4), g)])
save("a-1.safetensors", {"x.weight": ("BF16", [64, 384], bf16), "x.bias": ("F32", [384], g[:1536])})
save("a-2.safetensors", {"y.weight": ("F16", [64, 384], f16), "ids": ("I64", [2, 2], bytes(range(32))), "empty": ("F32", [0, 4], b"")})
json.dump({"metadata": {}, "weight_map": {"x.weight": "a-1.safetensors", "x.bias": "a-1.safetensors", "y.weight": "a-2.safetensors", "ids": "a-2.safetensors", "empty": "a-2.safetensors"}}, open("a.safetensors.index.json", "w"))
json.dump({"weight_map": {"x": "../a-1.safetensors"}}, open("up.index.json", "w"))
json.dump({"weight_map": {"x": "a-1.safetensors", "z": "gone.safetensors"}}, open("gone.index.json", "w"))
P
accepts "$mxgold" quantize a.safetensors.index.json --all --fake --preset nvfp4 -o fake
cmp -s a.safetensors.index.json fake/a.safetensors.index.json || fail "the index is not copied"
python3 - <<'P' || fail "shards: names, shapes, dtypes or what was to be left alone"
import json, struct
def load(path):
    raw = open(path, "rb").read()
    n = struct.unpack("<Q", raw[:8])[0]
    h = json.loads(raw[8:8 + n])
    h.pop("__metadata__", None)
    return {k: (v["dtype"], v["shape"], raw[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]]) for k, v in h.items()}
for name in ("a-1", "a-2"):
    a, b = load(name + ".safetensors"), load("fake/" + name + ".safetensors")
    assert list(a) == list(b)
    for k in a:
        assert a[k][:2] == b[k][:2], k
        assert (a[k][2] == b[k][2]) == (not k.endswith("weight")), k
P
accepts "$mxgold" ablate a.safetensors.index.json:*.weight --json
[ "$(grep -c '"tensor"' "$scratch/stdout")" = 2 ] || fail "an index with a pattern"
# A folder is the checkpoint in it: its index, or its only file.
mkdir folder none twin
cp a-1.safetensors a-2.safetensors a.safetensors.index.json folder
cp a-1.safetensors twin
accepts "$mxgold" quantize folder --all --fake --preset nvfp4 -o folder-fake
cmp -s folder-fake/a-1.safetensors fake/a-1.safetensors && cmp -s folder-fake/a-2.safetensors fake/a-2.safetensors &&
  cmp -s folder-fake/a.safetensors.index.json a.safetensors.index.json || fail "a folder is not its checkpoint"
accepts "$mxgold" ablate "folder/:*.weight" --json
[ "$(grep -c '"tensor"' "$scratch/stdout")" = 2 ] || fail "a folder with a pattern"
accepts "$mxgold" ablate twin --json
[ "$(grep -c '"tensor".*"spec"' "$scratch/stdout")" = 1 ] || fail "a folder of one file"
refuses "mxgold: folder: is the folder of the input, expected another" "$mxgold" quantize folder --all --fake -o folder
refuses "mxgold: none: a folder with 0 .safetensors files and no index of them, expected one file, or the name of one" "$mxgold" ablate none
cp a-2.safetensors twin
refuses "mxgold: twin: a folder with 2 .safetensors files and no index of them, expected one file, or the name of one" "$mxgold" quantize twin --all --fake -o twin-fake
cp a.safetensors.index.json twin
cp a.safetensors.index.json twin/b.index.json
refuses "mxgold: twin: a folder with 2 indexes of shards, expected one, or the name of one" "$mxgold" ablate twin
refuses "mxgold: up.index.json: weight_map of 'x' is not the name of a file in the same folder" "$mxgold" quantize up.index.json --all --fake -o up
refuses "mxgold: gone.safetensors: cannot be opened: No such file or directory" "$mxgold" quantize gone.index.json --all --fake -o gone
cp a-1.safetensors b-1.safetensors
head -c 1000 a-2.safetensors >b-2.safetensors
sed 's/a-/b-/g' a.safetensors.index.json >b.index.json
"$mxgold" quantize b.index.json --all --fake -o b >"$scratch/stdout" 2>"$scratch/stderr" && fail "a truncated shard is accepted"
[ "$(wc -l <"$scratch/stderr")" = 1 ] || fail "more or less than one line on a truncated shard"
[ ! -e b ] || fail "a failed run left $(ls -A b)"
refuses "mxgold: .: is the folder of the input, expected another" "$mxgold" quantize a.safetensors.index.json --all --fake -o .
[ ! -e up ] && [ ! -e gone ] || fail "a refused checkpoint left a folder"
# The same bytes as the tensor by itself, dequantised.
accepts "$mxgold" quantize "$slices" --all --fake --preset nvfp4 -o whole.safetensors --threads 1
accepts "$mxgold" quantize "$slices:weight" --preset nvfp4 --dequantized -o w.safetensors
python3 - <<'P' || fail "--all gives other values than quantize --dequantized"
import json, struct
def get(path, name):
    raw = open(path, "rb").read()
    n = struct.unpack("<Q", raw[:8])[0]
    a, b = json.loads(raw[8:8 + n])[name]["data_offsets"]
    return raw[8 + n + a:8 + n + b]
assert get("whole.safetensors", "weight") == get("w.safetensors", "dequantized")
P

# Threads do not wait for each other in small steps: eight of them cost no more processor time than one, and write the same checkpoint.
cpu_ms() { python3 - "$@" <<'P'
import os, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
t = os.times()
print(int(1000 * (t.children_user + t.children_system)))
P
}
few=$(cpu_ms "$mxgold" ablate gen:gaussian gen:laplace -p ocp-mxfp4,nvfp4,hif4,fouroversix --set elem.round=sr --repeats 4 --threads 1)
many=$(cpu_ms "$mxgold" ablate gen:gaussian gen:laplace -p ocp-mxfp4,nvfp4,hif4,fouroversix --set elem.round=sr --repeats 4 --threads 8)
[ "$many" -lt $((2 * few + 300)) ] || fail "ablate: $many ms of processor time on eight threads, $few ms on one"
python3 - <<'P'
import array, json, random, struct
random.seed(1)
names = {"a": ("F32", [700, 1000]), "b": ("BF16", [64, 32]), "c": ("F32", [3, 500]), "d": ("BF16", [900, 512])}
at, h, body = 0, {}, b""
for k, (dtype, shape) in names.items():
    n = shape[0] * shape[1]
    raw = array.array("f", (random.gauss(0, 1) * (1 + i // 50000) for i in range(n))).tobytes()
    if dtype == "BF16":
        raw = b"".join(raw[i + 2:i + 4] for i in range(0, len(raw), 4))
    h[k] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(raw)]}
    at += len(raw)
    body += raw
t = json.dumps(h).encode()
t += b" " * (-len(t) % 8)
open("pieces.safetensors", "wb").write(struct.pack("<Q", len(t)) + t + body)
P
for preset in nvfp4 "ocp-mxfp4 --set elem.round=sr"; do
  # shellcheck disable=SC2086
  for n in 1 3; do
    accepts "$mxgold" quantize pieces.safetensors --all --fake --preset $preset --json --threads $n -o fake-$n.safetensors
    cp "$scratch/stdout" fake-$n.json
  done
  cmp -s fake-1.safetensors fake-3.safetensors || fail "$preset: three threads write another checkpoint than one"
  cmp -s fake-1.json fake-3.json || fail "$preset: three threads give other figures of a checkpoint than one"
done

# Equal tensors of one checkpoint draw different bits, those of the seed that the help states.
python3 - <<'P'
import array, json, random, struct
random.seed(5)
raw = array.array("f", (random.gauss(0, 1) for _ in range(8 * 64))).tobytes()
h = {k: {"dtype": "F32", "shape": [8, 64], "data_offsets": [i * len(raw), (i + 1) * len(raw)]} for i, k in enumerate("ab")}
t = json.dumps(h).encode()
t += b" " * (-len(t) % 8)
open("equal.safetensors", "wb").write(struct.pack("<Q", len(t)) + t + raw + raw)
fnv = 0xCBF29CE484222325
for c in b"b":
    fnv = (fnv ^ c) * 0x100000001B3 % 2**64
open("seed", "w").write(str(7 ^ fnv))
bad = bytearray(raw)
for row in range(8):
    bad[row * 256:row * 256 + 4] = struct.pack("<f", float("nan"))
open("spoiled.safetensors", "wb").write(struct.pack("<Q", len(t)) + t + bytes(bad) + raw)
P
accepts "$mxgold" quantize equal.safetensors --all --fake --set elem.round=sr --seed 7 -o apart.safetensors
accepts "$mxgold" quantize equal.safetensors:b --set elem.round=sr --seed "$(cat seed)" -o b.safetensors
accepts "$mxgold" dequantize b.safetensors -o b.npy
python3 - <<'P' || fail "tensors of one checkpoint: the same random bits, or others than those stated"
raw = open("apart.safetensors", "rb").read()
body = raw[8 + int.from_bytes(raw[:8], "little"):]
b = open("b.npy", "rb").read()[-2048:]
assert body[:2048] != body[2048:4096] and body[2048:4096] == b
P
# `ablate` draws for each what --fake draws: the same figure of one repeat, another for each of the equal tensors.
accepts "$mxgold" quantize equal.safetensors --all --fake --set elem.round=sr --seed 7 --json -o apart.safetensors
cp "$scratch/stdout" apart.json
accepts "$mxgold" ablate equal.safetensors --set elem.round=sr --seed 7 --repeats 1 --json --state equal.state
python3 - "$scratch/stdout" "$(cat seed)" <<'P' || fail "ablate draws other bits than --fake, or the same for every tensor"
import json, sys
fake = {r["tensor"]: r["sqnr_db"] for r in json.load(open("apart.json"))["tensors"]}
rows = json.load(open(sys.argv[1]))["measurements"]
assert len(fake) > 1 and len(set(fake.values())) == len(fake) and {r["tensor"]: r["sqnr_db"] for r in rows} == fake, (fake, rows)
assert [r["seed"] for r in rows if r["tensor"] == "b"] == [sys.argv[2]]
P
cp "$scratch/stdout" equal.json
accepts "$mxgold" ablate equal.safetensors --set elem.round=sr --seed 7 --repeats 1 --json --state equal.state
cmp -s equal.json "$scratch/stdout" || fail "a state gives one tensor's figures to another of the same values"
rm equal.state
# A product of which NaN leaves nothing is not a product without error.
accepts "$mxgold" ablate --gemm spoiled.safetensors:a spoiled.safetensors:b --presets ocp-mxfp4
[ "$(grep -c 'none left' "$scratch/stdout")" = 5 ] || fail "a product of NaN passes for one without error"
accepts "$mxgold" ablate --gemm spoiled.safetensors:b equal.safetensors:a --presets ocp-mxfp4
grep -q 'none left' "$scratch/stdout" && fail "a plain product is said to be spoiled"
rm equal.safetensors apart.safetensors b.safetensors b.npy seed spoiled.safetensors

# Values go back into 16 bits by RNE: a rotation leaves values of every fraction under an unrounded scale.
accepts "$mxgold" quantize pieces.safetensors --all --fake --set had.size=16 --set scale=fp32 --set scale.rule=value -o narrow.safetensors
python3 - <<'P'
import json, struct
def load(path):
    raw = open(path, "rb").read()
    n = struct.unpack("<Q", raw[:8])[0]
    return json.loads(raw[8:8 + n]), raw[8 + n:]
h, data = load("pieces.safetensors")
a, b = h["d"]["data_offsets"]
wide = b"".join(b"\0\0" + data[i:i + 2] for i in range(a, b, 2))
t = json.dumps({"d": {"dtype": "F32", "shape": h["d"]["shape"], "data_offsets": [0, len(wide)]}}).encode()
t += b" " * (-len(t) % 8)
open("wide.safetensors", "wb").write(struct.pack("<Q", len(t)) + t + wide)
P
accepts "$mxgold" quantize wide.safetensors --all --fake --set had.size=16 --set scale=fp32 --set scale.rule=value -o wide-fake.safetensors
python3 - <<'P' || fail "--all: bfloat16 is not the nearest to what was quantised"
import array, json, struct
def get(path):
    raw = open(path, "rb").read()
    n = struct.unpack("<Q", raw[:8])[0]
    a, b = json.loads(raw[8:8 + n])["d"]["data_offsets"]
    return raw[8 + n + a:8 + n + b]
wide = array.array("I", get("wide-fake.safetensors"))
want = array.array("H", (((v & 0x7FFFFFFF) + 0x7FFF + (v >> 16 & 1)) >> 16 | v >> 16 & 0x8000 for v in wide))
assert sum(0x7000 < v & 0xFFFF < 0x7FFF for v in wide) > 100 and sum(v & 0xFFFF == 0x8000 for v in wide) > 0, "nothing to decide by"
assert array.array("H", get("narrow.safetensors")) == want
P

# What was done stands in the metadata: keys, the preset as long as it is one, the tensors of this file, by which version. What an earlier --fake said goes.
meta() { python3 - "$1" <<'P'
import json, struct, sys
raw = open(sys.argv[1], "rb").read()
m = json.loads(raw[8:8 + struct.unpack("<Q", raw[:8])[0]])["__metadata__"]
keys = dict(k.split("=", 1) for k in m["mxgold.fake"].split())
print(m["mxgold.fake.preset"] or "-", sorted(json.loads(m["mxgold.fake.tensors"])), m["mxgold.fake.version"], keys["elem.round"], len([k for k in m if k.startswith("mxgold.")]))
P
}
version=$("$mxgold" --version | cut -d' ' -f2)
accepts "$mxgold" quantize "$slices" --all --fake --preset nvfp4 --exclude weight -o told.safetensors
[ "$(meta told.safetensors)" = "nvfp4 ['activation', 'gradient'] $version rne 4" ] || fail "metadata of --fake: $(meta told.safetensors)"
accepts "$mxgold" quantize told.safetensors --all --fake --preset nvfp4 --set elem.round=rna --include weight -o told-again.safetensors
[ "$(meta told-again.safetensors)" = "- ['weight'] $version rna 4" ] || fail "metadata of --fake behind --fake: $(meta told-again.safetensors)"
accepts "$mxgold" quantize a.safetensors.index.json --all --fake --preset nvfp4 -o told
[ "$(meta told/a-1.safetensors)" = "nvfp4 ['x.weight'] $version rne 4" ] || fail "metadata of a shard: $(meta told/a-1.safetensors)"

# --all: the input is not overwritten; what is left as it is is named; NaN is counted or refused; --include must match.
cp "$slices" own.safetensors
ln own.safetensors link.safetensors
refuses "mxgold: own.safetensors: is the input itself, expected another file" "$mxgold" quantize own.safetensors --all --fake -o own.safetensors
refuses "mxgold: link.safetensors: is the input itself, expected another file" "$mxgold" quantize own.safetensors --all --fake -o link.safetensors
refuses "mxgold: --include: no tensor matches 'wieght', nearest: weight" "$mxgold" quantize own.safetensors --all --fake --include wieght -o none.safetensors
[ ! -e none.safetensors ] || fail "--include without a match leaves a file"
accepts "$mxgold" quantize pieces.safetensors --all --fake --set had.size=16 --exclude a --json -o had.safetensors
python3 - "$scratch/stdout" <<'P' || fail "--all: tensors that are left as they are"
import json, sys
d = json.load(open(sys.argv[1]))
assert {t["tensor"]: t["why"] for t in d["kept"]} == {"a": "excluded", "c": "had.size does not divide its columns"}, d["kept"]
assert d["copied"] == 2 and d["quantised"] == 2
raw = bytearray(open("pieces.safetensors", "rb").read())
import struct
n = struct.unpack("<Q", raw[:8])[0]
h = json.loads(raw[8:8 + n])
raw[8 + n + 4 * 1001:8 + n + 4 * 1002] = struct.pack("<f", float("nan"))
open("nan.safetensors", "wb").write(raw)
P
accepts "$mxgold" quantize nan.safetensors --all --fake --include a --json -o nan-out.safetensors
grep -q '"nan_or_inf": 1, "spoiled": 31' "$scratch/stdout" || fail "--all: NaN and what it spoils are not counted"
accepts "$mxgold" quantize nan.safetensors --all --fake --preset nvfp4 --include a -o nan-out.safetensors
grep -q '^a  *f32  *700x1000  *none left' "$scratch/stdout" && grep -q '^SQNR dB of all  none left' "$scratch/stdout" || fail "--all: a tensor that is spoiled as a whole passes for one without error"
refuses "mxgold: a: row 1, column 1 is NaN, which --refuse-nan refuses" "$mxgold" quantize nan.safetensors --all --fake --refuse-nan -o refused.safetensors
[ ! -e refused.safetensors ] || fail "a refused checkpoint is left"

# Interrupted in the second shard, or between the two: the message says that the first stays.
python3 - <<'P'
import json, struct
def shard(path, name, rows):
    n = rows * 8192 * 4
    t = json.dumps({name: {"dtype": "F32", "shape": [rows, 8192], "data_offsets": [0, n]}}).encode()
    t += b" " * (-len(t) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(t)) + t)
        f.truncate(8 + len(t) + n)
shard("s-1.safetensors", "x", 1)
shard("s-2.safetensors", "y", 256)
json.dump({"weight_map": {"x": "s-1.safetensors", "y": "s-2.safetensors"}}, open("s.safetensors.index.json", "w"))
P
for at in linkat:1 open:2 pwrite:5 pwrite:6; do
  interrupted $at:15 "mxgold: interrupted by SIGTERM, the files that were finished stay" "$mxgold" quantize s.safetensors.index.json --all --fake -o s
  [ "$(ls -A s)" = s-1.safetensors ] || fail "interrupted at $at: there is $(ls -A s)"
  rm -r s
done
rm s-2.safetensors

# What a report says can be computed again from it: its name has the preset and every key of --set, also of one value; `keys` has all, as options;
# the seed, the version and the tensor's digest are there, of products each operand's too.
accepts "$mxgold" ablate "$slices:gradient" -p nvfp4 --set scale=ue5m3 --set elem.round=sr --repeats 1 --seed 5 --json
cp "$scratch/stdout" report.json
python3 - <<'P' || fail "a report does not say what it is of"
import json
d = json.load(open("report.json"))
row, spec = d["measurements"][0], d["specs"][0]
assert row["spec"] == spec["spec"] == "nvfp4 scale=ue5m3 elem.round=sr", row["spec"]
assert d["seed"] == 5 and d["repeats_asked"] == 1 and d["mxgold"] and len(row["digest"]) == 32
keys = spec["keys"].split(" ")
assert "scale=ue5m3" in keys and "seed=5" in keys and "tensor.norm=nv" in keys, keys
open("again", "w").write(" ".join("--set " + k for k in keys))
P
# shellcheck disable=SC2046
accepts "$mxgold" quantize "$slices" --all --fake --include gradient $(cat again) --json -o again.safetensors
python3 - "$scratch/stdout" <<'P' || fail "the keys of a report are not what it measured"
import json, sys
assert json.load(open(sys.argv[1]))["keys"] == json.load(open("report.json"))["specs"][0]["keys"]
P
accepts "$mxgold" ablate --gemm gen:gaussian gen:laplace --shape 8x64 --operand Q2:elem.round=sr --seed 6 --json
python3 - "$scratch/stdout" <<'P' || fail "a product's report does not say what it is of"
import json, sys
d = json.load(open(sys.argv[1]))
assert d["seed"] == 6 and d["W"] == "gen:laplace" and d["W_shape"] == [8, 64] and d["X_digest"] != d["W_digest"]
assert ["elem.round=sr" in s["keys"] for s in d["specs"]] == [False, True], d["specs"]
P
if command -v gnuplot >/dev/null; then
  accepts "$mxgold" ablate gen:gaussian --shape 8x64 -p nvfp4 --set scale=ue5m3 --seed 5 --html report.html
  grep -q 'nvfp4 scale=ue5m3' report.html && grep -q -- '--seed 5, --repeats 8' report.html && grep -q '<code>elem=e2m1 scale=ue5m3 .* seed=5 .*</code>' report.html &&
    grep -Eq '<code>[0-9a-f]{32}</code>' report.html || fail "a page does not say what it is of"
fi

# One NaN: a preset that loses the tensor to it says so, and that this matters; so does one that is worse in every block, though the spoiled block is most of
# both errors. Of a tensor of which nothing is left there are no figures.
python3 - <<'P'
import array, random, struct
random.seed(5)
x = array.array("f", (random.gauss(0, 1) for _ in range(64 * 256)))
x[1000] = float("nan")
h = b"{'descr': '<f4', 'fortran_order': False, 'shape': (64, 256), }"
open("one-nan.npy", "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + h.ljust(117) + b"\n" + x.tobytes())
P
accepts "$mxgold" ablate one-nan.npy nan.npy -p nvfp4,ocp-mxfp8-e5m2,ocp-mxfp4 --json
python3 - "$scratch/stdout" <<'P' || fail "a preset that loses a tensor to one NaN"
import json, sys
d = json.load(open(sys.argv[1]))
rows = {(r["tensor"], r["spec"]): r for r in d["measurements"]}
lost, best, worse = (rows["one-nan.npy", p] for p in ("nvfp4", "ocp-mxfp8-e5m2", "ocp-mxfp4"))
assert lost["values"] == 0 and lost["matters"] and lost["behind_low"] > 10, lost
assert all(lost[k] is None for k in ("sqnr_db", "mse", "gain", "bias", "cosine", "relative_error", "max_error", "max_relative", "underflow")), lost
assert best["behind_db"] == 0 and not best["matters"]
assert worse["matters"] and 0 < worse["behind_low"] < worse["behind_db"] < worse["behind_high"] < 10, worse
small = rows["nan.npy", "nvfp4"]
assert small["values"] == 0 and small["matters"] and small["behind_low"] is None, small
assert all(s["equal_to_best_for"] == 0 for s in d["specs"] if s["spec"] != "ocp-mxfp4"), d["specs"]
P
accepts "$mxgold" ablate one-nan.npy -p nvfp4,ocp-mxfp4
grep -Eq '^one-nan.npy  nvfp4 +4.[0-9]+  none left  none left +- +- +[0-9.]+ +- ' "$scratch/stdout" || fail "figures of nothing"
accepts "$mxgold" ablate one-nan.npy -p nvfp4
! grep -q best "$scratch/stdout" || fail "a preset that loses the tensor is its best"
accepts "$mxgold" ablate --six one-nan.npy one-nan.npy gen:gaussian --shape 64x64 -p nvfp4 --json
python3 - "$scratch/stdout" <<'P' || fail "figures of an operand of which nothing is left"
import json, sys
assert all(r["sqnr_db"] is None and r["gain"] is None and r["underflow_percent"] is None for r in json.load(open(sys.argv[1]))["operands"] if r["operand"][:2] in ("Q1", "Q2"))
P
if command -v gnuplot >/dev/null; then
  accepts "$mxgold" ablate one-nan.npy -p nvfp4,ocp-mxfp4 --html lost.html
  grep -q '<td class=t>none left</td><td class=t>none left</td>' lost.html || fail "the page has figures of nothing"
fi

refuses "mxgold: ablate: --include and --exclude do not go with --gemm or --six" "$mxgold" ablate --gemm gen:gaussian gen:laplace --include foo
refuses "mxgold: ablate: --include and --exclude do not go with --gemm or --six" "$mxgold" ablate --six gen:gaussian gen:laplace gen:rows --exclude foo

# A state whose bits have flipped is measured again: each digit of each number, in turn.
accepts "$mxgold" ablate gen:gaussian --shape 4x64 -p ocp-mxfp4,nvfp4 --json --state flip
cp "$scratch/stdout" flip.json
python3 - flip <<'P'
import sys
raw = open(sys.argv[1], "rb").read()
head = raw.index(b"\n") + 1
for i, at in enumerate(range(head, len(raw), 41)):
    bad = bytearray(raw)
    bad[at] ^= 1
    open("flip-%d" % i, "wb").write(bad)
P
for f in flip-*; do
  accepts "$mxgold" ablate gen:gaussian --shape 4x64 -p ocp-mxfp4,nvfp4 --json --state "$f"
  cmp -s flip.json "$scratch/stdout" || fail "a flipped bit in the state is believed: $f"
done

# What a generator takes without parameters is what the help says.
for pair in student/student:3 rows/rows:2.5 outliers/outliers:0.01:20 outliers:0.1/outliers:0.1:20; do
  accepts "$mxgold" ablate "gen:${pair%/*}" --shape 4x64 --json
  sed 's/"tensor": "[^"]*"//' "$scratch/stdout" >default
  accepts "$mxgold" ablate "gen:${pair#*/}" --shape 4x64 --json
  sed 's/"tensor": "[^"]*"//' "$scratch/stdout" | cmp -s - default || fail "gen:${pair%/*} is not gen:${pair#*/}"
done

accepts "$mxgold" ablate void.npy -p ocp-mxfp4,nvfp4 --json
[ "$(grep -c '"mean_behind_db": null, "worst_behind_db": null' "$scratch/stdout")" = 2 ] || fail "means over nothing"
accepts "$mxgold" ablate void.npy -p ocp-mxfp4,nvfp4
[ "$(grep -c ' nan *nan$' "$scratch/stdout")" = 2 ] || fail "means over nothing in the table"
