# Tests diff of quantised tensors: its options, lists, files of other programs, files that hold no tensor, and memory that does not grow with the tensors.
: "${scratch:?run by tests/run-cli.sh}"
python3 - <<'P'
import json, random, struct
random.seed(5)
def npy(name, shape, values):
    h = "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }" % (shape,)
    h += " " * (-(len(h) + 11) % 64) + "\n"
    open(name, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(h)) + h.encode() + struct.pack("<%df" % len(values), *values))
npy("x.npy", (40, 96), [random.gauss(0, 1) * 2.0 ** (i // 96 % 9) for i in range(3840)])
npy("short.npy", (40, 95), [0.0] * 3800)
P
# edit FROM TO PYTHON: tensors of a .safetensors file as bytearrays in t, metadata in meta
edit() { python3 - "$@" <<'P'
import json, struct, sys
b = open(sys.argv[1], "rb").read()
n = struct.unpack("<Q", b[:8])[0]
h = json.loads(b[8:8 + n])
meta = h.pop("__metadata__", {})
t = {k: bytearray(b[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]]) for k, v in h.items()}
shape = {k: v["shape"] for k, v in h.items()}
exec(sys.argv[3])
out, at, data = {}, 0, b""
if meta: out["__metadata__"] = meta
for k, v in t.items():
    out[k] = {"dtype": h[k]["dtype"] if k in h else "U8", "shape": shape[k], "data_offsets": [at, at + len(v)]}
    at += len(v)
    data += bytes(v)
text = json.dumps(out).encode()
open(sys.argv[2], "wb").write(struct.pack("<Q", len(text)) + text + data)
P
}
says() { grep -q -- "$1" "$scratch/stdout" || fail "did not say: $1; said: $(cat "$scratch/stdout")"; }

accepts "$mxgold" quantize x.npy -o a.safetensors --preset ocp-mxfp8-e4m3
accepts "$mxgold" diff a.safetensors a.safetensors
says '^equal  *yes$'
# -0 and NaN
edit a.safetensors z.safetensors 't["codes"][0:4] = b"\0\0\x7f\x7f"; t["codes"][100] = 0'
edit z.safetensors y.safetensors 't["codes"][0:4] = b"\x80\0\xff\x7f"; t["codes"][100] = 128'
differs "all are the sign of a zero" "$mxgold" diff z.safetensors y.safetensors
says '^NaN codes ignored  *1$'
accepts "$mxgold" diff z.safetensors y.safetensors --equal-zeros
differs "codes that differ          3" "$mxgold" diff z.safetensors y.safetensors --nan-bits
differs "codes that differ          1" "$mxgold" diff z.safetensors y.safetensors --nan-bits --equal-zeros
# codes under a NaN scale mean nothing, but for --nan-bits
edit a.safetensors n.safetensors 't["scales"][5] = 255'
edit n.safetensors m.safetensors 't["codes"][160:192] = bytes(32)'
accepts "$mxgold" diff n.safetensors m.safetensors
differs "all in one block (row 1, columns 64 to 95, the last of its row)" "$mxgold" diff n.safetensors m.safetensors --nan-bits
# lists
edit a.safetensors b.safetensors 't["codes"][7::32] = bytes(c ^ 1 for c in t["codes"][7::32])'
differs "all at one position in the block" "$mxgold" diff a.safetensors b.safetensors --max 3 --input x.npy
says '^3  *0  *71 '
grep -q '^4  *1  *7 ' "$scratch/stdout" && fail "--max 3 listed four"
differs "values that differ         120" "$mxgold" diff a.safetensors b.safetensors --max 0
differs '"blocks_differ": 120' "$mxgold" diff a.safetensors b.safetensors --max 1000 --json
python3 -c 'import json,sys; d=json.load(open(sys.argv[1])); assert len(d["differences"]) == 120, len(d["differences"])' "$scratch/stdout" || fail "--max 1000"
refuses "mxgold: diff: --max 1000001, expected at most 1000000" "$mxgold" diff a.safetensors b.safetensors --max 1000001
# B of others: no metadata; scales padded in a layout
edit b.safetensors foreign.safetensors 'meta = {}'
differs "all at one position in the block" "$mxgold" diff a.safetensors foreign.safetensors
accepts "$mxgold" convert a.safetensors --layout nv128x4 -o l.safetensors
edit l.safetensors padded.safetensors 'meta = {}; shape["codes"] = [3840]; shape["scales"] = [512]'
accepts "$mxgold" diff a.safetensors padded.safetensors
says "^layout of B's scales  *nv128x4$"
accepts "$mxgold" diff a.safetensors padded.safetensors --kernel
says "^layout of your scales  *nv128x4$"
edit foreign.safetensors bytes.safetensors 'shape["codes"] = [40, 96]'
differs "all at one position in the block" "$mxgold" diff a.safetensors bytes.safetensors
accepts "$mxgold" quantize x.npy -o four.safetensors --preset ocp-mxfp4
edit four.safetensors wide.safetensors 'meta = {}; t["codes"] = bytearray(n for c in t["codes"] for n in (c & 15, c >> 4)); shape["codes"] = [40, 96]'
accepts "$mxgold" diff four.safetensors wide.safetensors
# B of others: scales as values, which the format must have, and as wider integers; one for each block of several rows. A's are never taken for more.
make_scales() { # make_scales FILE DTYPE FORMAT [MORE]: the scales of a (40 x 3), value 2 to the power of s - 127 for floats; MORE edits v, a list
  dtype=$2 format=$3 more=${4-} edit a.safetensors "$1" '
import os
dtype, format = os.environ["dtype"], os.environ["format"]
v = [2.0 ** (s - 127) if dtype[0] in "FB" else s for s in t["scales"]]
exec(os.environ["more"])
meta = {}; h["scales"]["dtype"] = dtype
t["scales"] = bytearray(b"".join(struct.pack("<f", x)[2:] if dtype == "BF16" else struct.pack("<" + format, x) for x in v))
if len(v) != 120: shape["scales"] = [len(v)]'
}
for kind in F32:f F64:d BF16:- U16:H I16:h I32:i U32:I I64:q U64:Q; do
  make_scales scales.safetensors ${kind%:*} ${kind#*:}
  accepts "$mxgold" diff a.safetensors scales.safetensors
  make_scales scales.safetensors ${kind%:*} ${kind#*:} 'v[50] = v[50] * 2 if dtype[0] in "FB" else v[50] + 1'
  differs "one scale differs (row 16, block column 2)" "$mxgold" diff a.safetensors scales.safetensors
done
make_scales scales.safetensors F32 f 'v[7] = float("nan")'
differs "one scale differs (row 2, block column 1)" "$mxgold" diff a.safetensors scales.safetensors
make_scales scales.safetensors F32 f 'v[50] = 0.75'
refuses "mxgold: scales.safetensors: tensor scales (f32): 0.75 in row 16, column 2, expected a value of e8m0" "$mxgold" diff a.safetensors scales.safetensors
make_scales scales.safetensors F64 d 'v[0] = 2.0 ** 128'
refuses "mxgold: scales.safetensors: tensor scales (f64): 3.40282367e+38 in row 0, column 0, expected a value of e8m0" "$mxgold" diff a.safetensors scales.safetensors
make_scales scales.safetensors I64 q 'v[119] = -1'
refuses "mxgold: scales.safetensors: tensor scales (i64): -1 in row 39, column 2, expected a code of e8m0, 0 to 255" "$mxgold" diff a.safetensors scales.safetensors
make_scales scales.safetensors U16 H 'v[3] = 256'
refuses "mxgold: scales.safetensors: tensor scales (u16): 256 in row 1, column 0, expected a code of e8m0, 0 to 255" "$mxgold" diff a.safetensors scales.safetensors
make_scales scales.safetensors F32 f 'v = v[:30]' # 120 bytes
refuses "mxgold: scales.safetensors: tensor scales: 30 values of f32, expected 40 x 3 as in A" "$mxgold" diff a.safetensors scales.safetensors
make_scales scales.safetensors F32 f 'v = v + [1.0] * 8' # 512 bytes, as many as in a padded layout
refuses "mxgold: scales.safetensors: tensor scales: 128 values of f32, expected 40 x 3 as in A" "$mxgold" diff a.safetensors scales.safetensors
edit l.safetensors scales.safetensors 'meta = {}; h["scales"]["dtype"] = "F32"; shape["scales"] = [512]
t["scales"] = bytearray(b"".join(struct.pack("<f", 2.0 ** (s - 127)) for s in t["scales"]))'
accepts "$mxgold" diff a.safetensors scales.safetensors
says "^layout of B's scales  *nv128x4$"
words='v = [sum(b << 8 * i for i, b in enumerate(v[r:r + 3])) | 0x55000000 for r in range(0, 120, 3)]'
make_scales scales.safetensors I32 i "$words"
accepts "$mxgold" diff a.safetensors scales.safetensors
make_scales scales.safetensors U32 I "$words; v[16] ^= 1 << 16"
differs "one scale differs (row 16, block column 2)" "$mxgold" diff a.safetensors scales.safetensors
make_scales scales.safetensors F32 f 'v = v[:40]'
refuses "mxgold: scales.safetensors: tensor scales: 40 values of f32, expected 40 x 3 as in A" "$mxgold" diff a.safetensors scales.safetensors
accepts "$mxgold" quantize x.npy -o two.safetensors --preset te-nvfp4-2d
once='meta = {}; t["scales"] = bytearray(b for r in range(0, 40, 16) for b in t["scales"][6 * r:6 * r + 6]); shape["scales"] = [3, 6]'
edit two.safetensors blocks.safetensors "$once"
accepts "$mxgold" diff two.safetensors blocks.safetensors
edit two.safetensors blocks.safetensors "$once; t['scales'][17] ^= 1"
differs "scales that differ         8" "$mxgold" diff two.safetensors blocks.safetensors
edit two.safetensors blocks.safetensors "$once; t['scales'] = bytearray(b''.join(bytes(t['scales'][r:r + 6]) + b'\\x00\\x00' for r in (0, 6, 12))); h['scales']['dtype'] = 'I32'; shape['scales'] = [3, 2]"
accepts "$mxgold" diff two.safetensors blocks.safetensors
edit two.safetensors blocks.safetensors "$once; del t['scales'][17]; shape['scales'] = [17]"
refuses "mxgold: blocks.safetensors: tensor scales: 17 values of u8, expected 40 x 6 as in A" "$mxgold" diff two.safetensors blocks.safetensors
edit two.safetensors blocks.safetensors 'meta = {}; h["tensor_scale"]["dtype"] = "I32"'
refuses "mxgold: blocks.safetensors: tensor tensor_scale: 1 values of i32, expected one of f32, f16 or bf16, or one for each row" "$mxgold" diff two.safetensors blocks.safetensors
# refusals
refuses "mxgold: short.npy: 3800 values of f32, expected 40 x 96 of f32, f16 or bf16" "$mxgold" diff a.safetensors b.safetensors --input short.npy
refuses "mxgold: --explain needs the input: --input X" "$mxgold" diff a.safetensors b.safetensors --explain
edit a.safetensors few.safetensors 'meta = {}; t["scales"] = t["scales"][:-1]; shape["scales"] = [119]'
refuses "mxgold: few.safetensors: tensor scales: 119 values of u8, expected 40 x 3 as in A" "$mxgold" diff a.safetensors few.safetensors
edit a.safetensors none.safetensors 'meta = {}; del t["scales"]'
"$mxgold" diff a.safetensors none.safetensors >"$scratch/stdout" 2>"$scratch/stderr"
[ $? = 2 ] && [ "$(wc -l <"$scratch/stderr")" = 1 ] || fail "a file without scales was not refused in one line"
accepts "$mxgold" quantize x.npy -o other.safetensors --preset ocp-mxfp8-e5m2
refuses "mxgold: other.safetensors: e5m2 with e8m0 scales, expected e4m3 with e8m0 as in A" "$mxgold" diff a.safetensors other.safetensors
accepts "$mxgold" quantize short.npy -o shape.safetensors --preset ocp-mxfp8-e4m3
refuses "mxgold: shapes differ: 40 x 96 with 40 x 3 scales, and 40 x 95 with 40 x 3" "$mxgold" diff a.safetensors shape.safetensors
# Tensors of 256 MiB (holes), an f16 input of 1 GiB: memory stays what it is for small ones.
python3 - "$mxgold" <<'P' || fail "memory grows with the tensors"
import json, resource, struct, subprocess, sys
def hollow(path, tensors, meta):
    h, at = {"__metadata__": meta} if meta else {}, 0
    for name, dtype, shape, n in tensors:
        h[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + n]}
        at += n
    text = json.dumps(h).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        f.truncate(8 + len(text) + at)
    return 8 + len(text)
rows, cols = 1 << 17, 4096
meta = {"spec": "elem=e2m1", "shape": "[%d, %d]" % (rows, cols), "dtype": "f32", "block": "1x32", "preset": ""}
tensors = [("codes", "U8", [rows, cols // 2], rows * cols // 2), ("scales", "U8", [rows, cols // 32], rows * cols // 32)]
start = hollow("big.safetensors", tensors, meta)
hollow("big2.safetensors", tensors, meta)
hollow("bigx.safetensors", [("input", "F16", [rows, cols], 2 * rows * cols)], None)
with open("big2.safetensors", "r+b") as f:
    for at in (5, rows * cols // 2 - 1):
        f.seek(start + at)
        f.write(b"\x10")
p = subprocess.run([sys.argv[1], "diff", "big.safetensors", "big2.safetensors", "--input", "bigx.safetensors", "--json"], stdout=subprocess.PIPE)
d = json.loads(p.stdout)
assert p.returncode == 1 and d["codes_differ"] == 2 and d["examples"][1]["row"] in (0, rows - 1), d
used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
assert used < 96 << 10, "%d KiB" % used
P
rm -f big*.safetensors
# The report: every part is there, tags close, nothing comes from elsewhere; and it stands without an input and for wide elements.
accepts "$mxgold" quantize x.npy -o even.safetensors --preset ocp-mxfp8-e4m3 --set scale.rule=even
differs "scales that differ" "$mxgold" diff a.safetensors even.safetensors --input x.npy --html r1.html
differs "scales that differ" "$mxgold" diff a.safetensors even.safetensors --html r2.html
accepts "$mxgold" diff a.safetensors a.safetensors --html r3.html
cp r3.html kept.html # a file-size limit stands in for a full disk: the old report stays, nothing stands beside it
refuses "mxgold: kept.html: cannot write: File too large" bash -c 'ulimit -f 1; trap "" XFSZ; "$0" diff a.safetensors a.safetensors --html kept.html >/dev/null' "$mxgold"
cmp -s r3.html kept.html || fail "a full disk changed the old report"
[ -z "$(find . -name ".mxgold.*")" ] || fail "a part of a report is left behind"
rm kept.html
# A code is written one way, on the terminal and in the report; it is a number in JSON.
edit a.safetensors codes.safetensors 't["codes"][0], t["scales"][0] = 3, 133'
edit codes.safetensors others.safetensors 't["codes"][0] = 0x8a'
differs "0x3    0x8A     0x85     0x85" "$mxgold" diff codes.safetensors others.safetensors --html codes.html
says '^ *0x85 '
says '^0x0 *0x8  *1$'
grep -q 'code <code>0x3</code> under scale <code>0x85</code>, .* actual <code>0x8A</code> under <code>0x85</code>' codes.html || fail "codes in the report"
differs '"code_a": 3, "code_b": 138, "scale_a": 133, "scale_b": 133' "$mxgold" diff codes.safetensors others.safetensors --json
python3 - r1.html r2.html r3.html <<'P' || fail "the HTML report"
import html.parser, sys
class Check(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.labels, self.circles = [], [], 0
    def handle_starttag(self, tag, attrs):
        assert tag not in ("script", "link", "img", "iframe"), tag
        for k, v in attrs:
            assert k not in ("src", "href") and "//" not in (v or ""), (tag, k, v)
            if k == "aria-label": self.labels.append(v)
        self.circles += tag == "circle"
        if tag not in ("meta", "br", "line", "rect", "circle", "path"): self.open.append(tag)
    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if self.open and self.open[-1] == tag: self.open.pop()
    def handle_endtag(self, tag):
        if tag in ("rect", "circle"): return
        assert self.open and self.open.pop() == tag, tag
found = []
for path in sys.argv[1:]:
    c = Check()
    c.feed(open(path).read())
    assert not c.open, c.open
    found.append(c)
whole = ["the block on the number line"] * 3 + ["heat map of mismatches", "Distance of the quotient to the nearest tie",
         "Codes: expected (down) against actual (across)", "Position in the block", "Scale codes: expected (down) against actual (across)",
         "Scale codes: actual less expected"]
assert found[0].labels == whole, found[0].labels
assert found[0].circles == 96, found[0].circles
assert found[1].labels == [w for w in whole if "number line" not in w and "tie" not in w], found[1].labels
assert found[2].labels == []
P
