# Files as kernels leave them: codes in the dtypes that safetensors has for them, and a tensor scale for each row; for identify and diff.
: "${scratch:?run by tests/run-cli.sh}"
accepts "$mxgold" gen random --preset te-nvfp4 --shape 32x64 -o f.safetensors
accepts "$mxgold" gen random --preset ocp-mxfp8-e4m3 --shape 32x64 -o g.safetensors
cat >files.py <<'P'
import json, struct, subprocess, sys
def read(path):
    raw = open(path, "rb").read()
    n = struct.unpack("<Q", raw[:8])[0]
    head = json.loads(raw[8:8 + n])
    return {k: [v["dtype"], v["shape"], raw[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]]] for k, v in head.items() if k != "__metadata__"}
def write(path, tensors):
    head, data = {}, b""
    for name, (dtype, shape, raw) in tensors.items():
        head[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(head).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + data)
f = {k: v for k, v in read("f.safetensors").items() if k != "dequantized"}
g = {k: v for k, v in read("g.safetensors").items() if k != "dequantized"}
write("f4.safetensors", dict(f, codes=["F4", [32, 64], f["codes"][2]], scales=["F8_E4M3", [32, 4], f["scales"][2]]))
write("g8.safetensors", dict(g, codes=["F8_E4M3", [32, 64], g["codes"][2]], scales=["F8_E8M0", [32, 2], g["scales"][2]]))
write("fnuz.safetensors", dict(g, codes=["F8_E4M3FNUZ", [32, 64], g["codes"][2]]))
write("f6.safetensors", dict(f, codes=["F6_E2M3", [32, 32], f["codes"][2][:32 * 24]]))
scale = struct.unpack("<f", f["tensor_scale"][2])[0]
write("same.safetensors", dict(f, tensor_scale=["F32", [32, 1], struct.pack("<32f", *[scale] * 32)]))
write("half.safetensors", dict(f, tensor_scale=["F32", [32], struct.pack("<32f", *[scale * (1 + r % 2) for r in range(32)])]))
write("three.safetensors", dict(f, tensor_scale=["F32", [3], struct.pack("<3f", scale, scale, scale)]))
parts = {"codes": b"", "scales": b"", "tensor_scale": b""}
for r in range(32):
    write("row.safetensors", {"input": ["F32", [1, 64], f["input"][2][256 * r:256 * r + 256]]})
    subprocess.run([sys.argv[1], "quantize", "row.safetensors:input", "-o", "q.safetensors", "--preset", "te-nvfp4"], check=True)
    for name, value in read("q.safetensors").items():
        parts[name] = parts.get(name, b"") + value[2]
write("rows.safetensors", {"input": f["input"], "codes": ["U8", [32, 32], parts["codes"]], "scales": ["U8", [32, 4], parts["scales"]],
                           "tensor_scale": ["F32", [32], parts["tensor_scale"]]})
P
python3 files.py "$mxgold" || fail "files.py"
accepts "$mxgold" identify --output f4.safetensors --expect te-nvfp4 --quick
accepts "$mxgold" diff f.safetensors f4.safetensors
accepts "$mxgold" identify --output g8.safetensors --expect ocp-mxfp8-e4m3 --quick
accepts "$mxgold" diff g.safetensors g8.safetensors
accepts "$mxgold" diff g.safetensors fnuz.safetensors
accepts "$mxgold" inspect f6.safetensors
grep -q '^codes  *u8  *32x24  *768' "$scratch/stdout" || fail "codes of 6 bits: $(cat "$scratch/stdout")"

# A tensor scale for each row: the same for all is one; another for some is told by diff; a tensor for each row is named, and is no exit 0.
accepts "$mxgold" identify --output same.safetensors --quick
accepts "$mxgold" diff f.safetensors same.safetensors
differs "B has a tensor scale for each row: 16 of 32 are not A's" "$mxgold" diff f.safetensors half.safetensors
grep -q '^tensor scales that differ  16$' "$scratch/stdout" && grep -q '^codes that differ  *0$' "$scratch/stdout" && grep -q '^values that differ  *492$' "$scratch/stdout" ||
  fail "tensor scales of rows: $(cat "$scratch/stdout")"
differs "Your kernel takes each row for a tensor, with a tensor scale of its own. Of each row: Your kernel does what te-nvfp4 does" \
  "$mxgold" identify --output rows.safetensors --quick
grep -q '^bug  *a tensor scale for each row$' "$scratch/stdout" && grep -q '^reproduce  *none$' "$scratch/stdout" || fail "a tensor a row: $(cat "$scratch/stdout")"
differs "expected                   no" "$mxgold" identify --output rows.safetensors --expect te-nvfp4 --quick
refuses "mxgold: tensor_scale: 3 values, expected one, or one for each of 32 rows" "$mxgold" identify --output three.safetensors --quick

# diff --explain says what B does of the preset of A.
accepts "$mxgold" gen ties --preset quark-even -o a.safetensors
accepts "$mxgold" quantize a.safetensors:input --preset quark-even --fault "rows%4=3: scale store <- row -1" -o b.safetensors
differs "Your kernel does what quark-even does, except that it stores the scale of the row -1 away in rows whose number is 3 mod 4." "$mxgold" diff a.safetensors b.safetensors --explain
accepts "$mxgold" quantize a.safetensors:input --preset quark-even --set scale.rule=ceil -o c.safetensors
differs "your kernel does what quark-even does, except that scale.rule is ceil" "$mxgold" diff a.safetensors c.safetensors --explain

# A tensor scale of 1 that was given is stored by the spec that is named.
accepts "$mxgold" gen random --preset te-nvfp4 --shape 64x128 --seed 5 -o t.safetensors
accepts "$mxgold" quantize t.safetensors:input --preset vllm-nvfp4 --set tensor.given=1 -o given.safetensors
accepts "$mxgold" identify --input t.safetensors:input --output given.safetensors --quick
grep -q 'tensor.given=1$' "$scratch/stdout" && grep -q '^reproduce .*--set tensor.given=1$' "$scratch/stdout" || fail "a given tensor scale of 1: $(cat "$scratch/stdout")"

# A key that the data leave open is not asserted: magnitudes alone do not tell toward zero from downwards.
python3 - <<'P' || fail "pos.safetensors"
import json, random, struct
random.seed(1)
data = struct.pack("<1024f", *[abs(random.gauss(0, 1)) + 0.01 for _ in range(1024)])
text = json.dumps({"input": {"dtype": "F32", "shape": [16, 64], "data_offsets": [0, len(data)]}}).encode()
open("pos.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + data)
P
accepts "$mxgold" quantize pos.safetensors:input --preset ocp-mxfp4 --set elem.round=rtz -o down.safetensors
accepts "$mxgold" identify --input pos.safetensors:input --output down.safetensors
grep -q '^not decided by these data .* elem.round ' "$scratch/stdout" && grep -q 'except that elem.round may be rtz (toward zero), which these data do not decide\.$' "$scratch/stdout" ||
  fail "an open key is asserted: $(cat "$scratch/stdout")"
