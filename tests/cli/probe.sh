# Tests how the model of a device is found from its bits: tiles out, results in, and what is refused.
: "${scratch:?run by tests/run-cli.sh}"
accepts "$mxgold" probe --emit p.safetensors --like hopper/mma_m16n8k16_f32_f16_f16_f32 --m 8 --n 8
accepts "$mxgold" mma p.safetensors --model hopper/mma_m16n8k16_f32_f16_f16_f32 -o d.safetensors
accepts "$mxgold" probe --fit p.safetensors d.safetensors --emit-next next.safetensors --json
python3 - "$scratch/stdout" <<'P' || fail "probe --fit does not name the device"
import json, sys
r = json.load(open(sys.argv[1]))
assert r["verdict"] == "fits" and r["model"].startswith("fused:L=16,F=25"), r["verdict"]
assert "hopper/mma_m16n8k16_f32_f16_f16_f32" in [x["name"] for x in r["rows that give the same"]]
assert r["outputs predicted"] > 1000 and r["predicted wrong"] == 0
P
leaves_only d.safetensors p.safetensors
# One output that no model gives: exit 1, and that output is the counter-example.
python3 - <<'P'
import json, struct
b = bytearray(open("d.safetensors", "rb").read())
n = struct.unpack("<Q", b[:8])[0]
at = 8 + n + json.loads(b[8:8 + n])["d"]["data_offsets"][0]
b[at + 4 * 777] ^= 1
open("bad.safetensors", "wb").write(b)
P
"$mxgold" probe --fit p.safetensors bad.safetensors --json >out.json 2>err.txt
[ $? = 1 ] || fail "a wrong output: exit 1 expected"
python3 - <<'P' || fail "a wrong output is not the counter-example"
import json
r = json.load(open("out.json"))
c = r["counter-example"]
assert r["verdict"] == "no model fits" and r["of these wrong"] == 1
assert (c["tile"], c["row"], c["column"]) == (12, 1, 1), c
P
rm -f out.json err.txt bad.safetensors
refuses "mxgold: probe: --emit P.safetensors or --fit P D, one of the two" "$mxgold" probe
refuses "mxgold: probe --emit: --like MODEL or --a TYPE, one of the two" "$mxgold" probe --emit x.safetensors
refuses "mxgold: probe --emit: --k is missing: the depth of the tiles" "$mxgold" probe --emit x.safetensors --a f16
refuses "mxgold: --a: 'f17' is not a type of elements.def or operands.def" "$mxgold" probe --emit x.safetensors --a f17 --k 16
refuses "mxgold: --scale: 'e9m0' is not a format of scales.def" "$mxgold" probe --emit x.safetensors --a e2m1 --k 64 --scale e9m0
refuses "mxgold: probe: K=1, 2 to 4096 expected" "$mxgold" probe --emit x.safetensors --a f16 --k 1
refuses "mxgold: --k: 24 is not a multiple of 16, the k of hopper/mma_m16n8k16_f32_f16_f16_f32" "$mxgold" probe --emit x.safetensors --like hopper/mma_m16n8k16_f32_f16_f16_f32 --k 24
refuses "mxgold: probe: c=f32 does not widen to d=f16" "$mxgold" probe --emit x.safetensors --a f16 --k 16 --d f16 --c f32
refuses "mxgold: x.npy: probes are several tensors, a .safetensors file is needed" "$mxgold" probe --emit x.npy --a f16 --k 16
refuses "mxgold: probe --fit: files of probes and of results in turn, P D [P2 D2]..." "$mxgold" probe --fit p.safetensors
refuses "mxgold: d.safetensors: metadata has no 'mxgold.probe': not a file of mxgold probe --emit" "$mxgold" probe --fit d.safetensors p.safetensors
accepts "$mxgold" probe --emit q.safetensors --a f16 --d f16 --k 16 --m 8
accepts "$mxgold" mma q.safetensors --model fused:L=8,F=24,c=f16,d=f16 -o e.safetensors
refuses "mxgold: e.safetensors: d is not 1621 x 8 x 8, the shape of the probes" "$mxgold" probe --fit p.safetensors e.safetensors
refuses "mxgold: probe: batch 2 has other types or another K than the first" "$mxgold" probe --fit p.safetensors d.safetensors q.safetensors e.safetensors
refuses "mxgold: probe --fit: types and shape are those of the probes; no option of --emit is taken" "$mxgold" probe --fit p.safetensors d.safetensors --k 16
# With F=3 the masks join groups of 9 to 18; the model that fits says 9, and no tree beside it says otherwise.
accepts "$mxgold" probe --emit q.safetensors --a e5m2 --k 36
accepts "$mxgold" mma q.safetensors --model fused:L=9,F=3,align=rd,k=18,ab=e5m2 -o e.safetensors
"$mxgold" probe --fit q.safetensors e.safetensors >out.txt
grep -q '^model .*fused:L=9,F=3,' out.txt || fail "L=9, F=3: $(grep ^model out.txt)"
grep -q '^tree' out.txt && fail "a tree of wider groups beside L=9: $(grep ^tree out.txt | cut -c1-80)"
accepts "$mxgold" mma q.safetensors --model fused:L=9,F=20,k=18,ab=e5m2 -o e.safetensors
"$mxgold" probe --fit q.safetensors e.safetensors >out.txt
grep -q '^tree *((0+1+2+3+4+5+6+7+8+c)' out.txt || grep -q '^tree *(((0+1+2+3+4+5+6+7+8+c)' out.txt || fail "L=9, F=20 has no tree: $(grep -E '^(tree|model)' out.txt | cut -c1-120)"
rm -f out.txt
leaves_only d.safetensors e.safetensors p.safetensors q.safetensors
