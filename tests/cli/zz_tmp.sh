python=${PYTHON:-python3}
: "${scratch:?run by tests/run-cli.sh}"
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
differs "values of e8m0" "$mxgold" identify --output odd.safetensors --quick --seconds 4
[ "$(sed -n 's/^scales that differ *//p' "$scratch/stdout")" -le 3 ] || fail "scales as values: $(cat "$scratch/stdout")"
[ "$(sed -n 's/^codes that differ *//p' "$scratch/stdout")" -le 201 ] || fail "scales as values: $(cat "$scratch/stdout")"
