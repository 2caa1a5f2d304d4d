# Tests products in the bits of a device: what they give from file to file, and what is refused.
: "${scratch:?run by tests/run-cli.sh}"
python3 - <<'P'
import json, struct
def put(path, tensors):
    h, data = {}, b""
    for name, (dtype, shape, raw) in tensors.items():
        h[name] = dict(dtype=dtype, shape=shape, data_offsets=[len(data), len(data) + len(raw)])
        data += raw
    j = json.dumps(h).encode()
    open(path, "wb").write(struct.pack("<Q", len(j)) + j + data)
one16, one32 = struct.pack("<H", 0x3C00), struct.pack("<I", 0x3F800000)
a, b = ("U16", [2, 3, 32], one16 * 192), ("U16", [2, 5, 32], one16 * 320)
c = ("U32", [2, 3, 5], one32 * 30)
put("f16.safetensors", dict(a=a, b=b, c=c))
put("no-c.safetensors", dict(a=a, b=b))
put("flat.safetensors", dict(a=("U16", [3, 32], one16 * 96), b=("U16", [5, 32], one16 * 160)))
put("k24.safetensors", dict(a=("U16", [1, 1, 24], one16 * 24), b=("U16", [1, 1, 24], one16 * 24)))
put("deep.safetensors", dict(a=a, b=("U16", [2, 5, 16], one16 * 160)))
put("fp4.safetensors", dict(a=("U8", [1, 2, 32], b"\x22" * 64), b=("U8", [1, 2, 32], b"\x22" * 64),
                            scale_a=("U8", [1, 2, 4], b"\x38" * 8), scale_b=("U8", [1, 2, 4], b"\x38" * 8)))
P
bits() { python3 - "$1" <<'P'
import json, struct, sys
b = open(sys.argv[1], "rb").read()
n = struct.unpack("<Q", b[:8])[0]
d = json.loads(b[8:8 + n])["d"]
x = b[8 + n + d["data_offsets"][0]:8 + n + d["data_offsets"][1]]
w = int(d["dtype"][1:]) // 8
print("x".join(map(str, d["shape"])), sorted({x[i:i + w][::-1].hex() for i in range(0, len(x), w)}))
P
}
gives() { local got; got=$(bits "$1"); [ "$got" = "$2" ] || fail "$1 holds $got, expected $2"; }
model=hopper/mma_m16n8k16_f32_f16_f16_f32
accepts "$mxgold" mma f16.safetensors --model $model -o d.safetensors
gives d.safetensors "2x3x5 ['42040000']" # 33
accepts "$mxgold" mma f16.safetensors --model $model -o r.safetensors --ref
cmp -s d.safetensors r.safetensors || fail "--ref gives another file"
accepts "$mxgold" mma no-c.safetensors --model fused:L=16,F=25 -o d.safetensors
gives d.safetensors "2x3x5 ['42000000']"
accepts "$mxgold" mma flat.safetensors --model hopper/mma_m16n8k16_f16_f16_f16_f16 -o d.safetensors
gives d.safetensors "3x5 ['5000']"
accepts "$mxgold" mma fp4.safetensors --model blackwell/tcgen05bs_m128n8k64_block16_f32_e2m1_e2m1_ue4m3 -o d.safetensors
gives d.safetensors "1x2x2 ['42800000']"
rm -f ./*.safetensors.* r.safetensors d.safetensors
refuses "mxgold: k24.safetensors: K=24 is not a multiple of 16, the k of $model" "$mxgold" mma k24.safetensors --model $model -o d.safetensors
refuses "mxgold: deep.safetensors: tensor b is 16 deep, 32 expected" "$mxgold" mma deep.safetensors --model $model -o d.safetensors
refuses "mxgold: fp4.safetensors: tensor a is u8, the model wants f16 in words of 2 bytes" "$mxgold" mma fp4.safetensors --model $model -o d.safetensors
refuses "mxgold: fp4.safetensors: tensor a is u8, the model wants f16 in words of 2 bytes; a=, b=, ab=, c=, d= name other types" "$mxgold" mma fp4.safetensors --model fused:L=8,F=13 -o d.safetensors
refuses "mxgold: model 'hopper/mma_m16n8k16_f32_f16_f16_f31' is unknown, nearest: $model" "$mxgold" models hopper/mma_m16n8k16_f32_f16_f16_f31
refuses "mxgold: --model is missing: ARCH/INSTRUCTION or a row that \`mxgold models\` lists" "$mxgold" mma f16.safetensors -o d.safetensors
leaves_only deep.safetensors f16.safetensors flat.safetensors fp4.safetensors k24.safetensors no-c.safetensors
accepts "$mxgold" models cdna4/ --json
python3 - "$scratch/stdout" <<'P' || fail "models cdna4/: a row that does not say it is a candidate"
import json, sys
rows = json.load(open(sys.argv[1]))["models"]
assert len(rows) > 100 and all("nothing" in r["held_to"] for r in rows)
row = next(r for r in rows if r["model"] == "cdna4/mfma_scale_f32_16x16x128_f8f6f4_e2m1_e2m1")
assert (row["shape"], row["k"], row["d"], row["a"], row["scale"], row["block"]) == ("m16n16k128", 128, "f32", "e2m1", "e8m0", 32), row
assert row["parameters"].startswith("L=16,F=24,join=after"), row
P
