# Tests diff --gemm by the command line: a right product, wrong ones, and files that hold none. tests/test_judge.c tests each bug.
: "${scratch:?run by tests/run-cli.sh}"
python3 - <<'P'
import random, struct
random.seed(3)
def npy(name, shape, values, descr="<f4", code="f"):
    h = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (descr, shape)
    h += " " * (-(len(h) + 11) % 64) + "\n"
    open(name, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(h)) + h.encode() + struct.pack("<%d%s" % (len(values), code), *values))
npy("a.npy", (24, 100), [random.gauss(0, 1) * 2.0 ** (i // 32 % 20) for i in range(2400)])
npy("b.npy", (40, 100), [random.gauss(0, 1) for i in range(4000)])
npy("c.npy", (24, 40), [random.gauss(0, 9e5) for i in range(960)])
npy("u.npy", (24, 40), [0] * 960, "<u2", "H")
npy("i.npy", (24, 40), [0] * 960, "<i4", "i")
npy("short.npy", (24, 39), [0] * 936)
npy("bias.npy", (40,), [i * 1e5 for i in range(40)])
P
damage() { python3 - "$@" <<'P'
import struct, sys
b = bytearray(open(sys.argv[1], "rb").read())
n = 10 + struct.unpack("<H", b[8:10])[0]
d = list(struct.unpack("<960f", b[n:]))
exec(sys.argv[3])
b[n:] = struct.pack("<960f", *d)
open(sys.argv[2], "wb").write(b)
P
}
accepts "$mxgold" quantize a.npy -o a.safetensors --preset ocp-mxfp8-e4m3
accepts "$mxgold" quantize b.npy -o b.safetensors --preset ocp-mxfp8-e4m3
judge="$mxgold diff --gemm a.safetensors b.safetensors"
accepts "$mxgold" gemm a.safetensors b.safetensors -o d.npy --accum f32_seq
accepts $judge d.npy
grep -q 'D is right, bit for bit, under f32_seq' "$scratch/stdout" || fail "f32_seq was not named"
accepts $judge d.npy --accum f32_seq
accepts $judge d.npy --bound
differs "D is the product under another model, f32_seq" $judge d.npy --accum f32_block
accepts "$mxgold" gemm a.safetensors b.safetensors -o h.npy --accum hopper_fp8_wgmma
accepts $judge h.npy
grep -q 'D is right, bit for bit, under hopper_fp8_wgmma' "$scratch/stdout" || fail "hopper_fp8_wgmma was not named"
accepts $judge h.npy --accum hopper_fp8_wgmma
accepts $judge h.npy --accum hopper_fp8_wgmma:F=13
damage d.npy e.npy 'd[16*40:] = [0] * 320'
differs "all in rows 16 to 23 (the last 8, the tail of tiles of 16); everything there is wrong" $judge e.npy
differs "D is zero there" $judge e.npy --bound
differs "D is wrong: a tile was never written, or lost: it is zero in rows 16 to 23. That gives 320 of the 320" $judge e.npy
damage d.npy e.npy 'd = [max(x, 0.0) for x in d]'
differs "D is wrong: a ReLU follows: what is negative is zero. That gives" $judge e.npy
damage d.npy e.npy 'd = [float(round(x)) for x in d]'
differs "D is wrong: outputs are rounded to integers, to nearest even. That gives" $judge e.npy
# Sums that no known order gives, but that some order may: that is no error, unless a model was asked for.
damage d.npy e.npy 'random = __import__("random"); random.seed(1); d = [struct.unpack("<f", struct.pack("<i", struct.unpack("<i", struct.pack("<f", x))[0] + random.choice((-2, -1, 1, 2))))[0] for x in d]'
differs "D follows some legal order of summation, not one that is known: every output looked at lies where" $judge e.npy
differs "D is wrong: every output looked at lies where" $judge e.npy --accum f32_seq
accepts "$mxgold" gemm a.safetensors b.safetensors -o f.npy --accum f32_seq --alpha 0.3
damage f.npy e.npy 'd = [struct.unpack("<f", struct.pack("<i", struct.unpack("<i", struct.pack("<f", x))[0] + i % 2))[0] for i, x in enumerate(d)]'
differs "D has the sums of f32_seq, and a factor behind them that is another one in columns with index % 2 = 1: every output that differs is within 2 units in the last place" $judge e.npy --alpha 0.3
# A factor whose rounding alone is another says nothing of the order of summation.
damage d.npy e.npy 'random = __import__("random"); random.seed(1); d = [struct.unpack("<f", struct.pack("<f", x * 1.2345 * (1 + random.uniform(-1e-5, 1e-5))))[0] for x in d]'
differs "D is wrong: every output is about 1.23" $judge e.npy
grep -q 'times what it should be (to rounding)\.$' "$scratch/stdout" || fail "the order of summation behind a factor: $(grep verdict "$scratch/stdout")"
# One K block has nothing to sum in another order with exact products: models are not told apart, and that is said.
accepts "$mxgold" gen random --preset ocp-mxfp4 --shape 8x32 -o one.safetensors
accepts "$mxgold" gemm one.safetensors one.safetensors -o one.npy
accepts "$mxgold" diff --gemm one.safetensors one.safetensors one.npy
grep -qE 'D is right, bit for bit, under [a-z0-9_]+, [a-z0-9_]+, [a-z0-9_]+ and [0-9]+ other models: these data cannot tell their orders of summation apart\.$' "$scratch/stdout" ||
  fail "models that are not told apart: $(grep verdict "$scratch/stdout")"
damage d.npy e.npy 'd[17*40+33] *= 1.25'
differs "D is wrong: one output alone: row 17, column 33 is 1.25 times what it should be" $judge e.npy
damage d.npy e.npy 'd[200:240], d[360:400] = d[360:400], d[200:240]'
differs "D is wrong: rows 5 and 9 of D are swapped. That gives 80 of the 80" $judge e.npy
damage d.npy e.npy 'd[1::2] = [0.0 for x in d[1::2]]'
differs "it is zero in columns with index % 2 = 1. That gives 480 of the 480" $judge e.npy
accepts "$mxgold" gemm a.safetensors b.safetensors -o n.npy --accum hopper_fp8_wgmma_acc16 --alpha 1e-3
accepts $judge n.npy --alpha 1e-3
grep -q 'D is right, bit for bit, but only under .*: an accumulator of 11 bits, not the 24 of binary32' "$scratch/stdout" || fail "a narrow accumulator was not told"
accepts $judge n.npy --alpha 1e-3 --accum hopper_fp8_wgmma_acc16
grep -q 'but only' "$scratch/stdout" && fail "a model that was asked for is not a surprise"
damage d.npy e.npy 'd = [struct.unpack("<f", struct.pack("<f", 1.5 * x))[0] for x in d]'
differs "every output is 1.5 times what it should be: alpha is 1.5, not 1. That gives 960 of the 960 wrong outputs bit for bit" $judge e.npy
accepts "$mxgold" gemm a.safetensors b.safetensors -o d.npy --alpha 0.5 --c c.npy --beta 2 --bias bias.npy
accepts $judge d.npy --alpha 0.5 --c c.npy --beta 2 --bias bias.npy
accepts "$mxgold" gemm a.safetensors b.safetensors -o d.npy --alpha 0.5 --c c.npy --bias bias.npy
differs "beta is forgotten: C is added as it is" $judge d.npy --alpha 0.5 --c c.npy --beta 2 --bias bias.npy --junit j.xml
grep -q '<testsuite name="d.npy" tests="1" failures="1" skipped="0">' j.xml || fail "no JUnit failure"
accepts "$mxgold" gemm a.safetensors b.safetensors -o d.npy --c c.npy --bias bias.npy
differs "alpha is forgotten" $judge d.npy --alpha 0.25 --c c.npy --bias bias.npy --json
python3 - "$scratch/stdout" <<'P' || fail "diff --gemm --json"
import json, sys
d = json.load(open(sys.argv[1]))
assert d["equal"] is False and d["shape"] == [24, 40, 100] and d["outputs"] == 960 and d["models_tried"] > 40 and len(d["models"]) == 12, d
P
accepts "$mxgold" gemm a.safetensors b.safetensors -o d16.npy --out f16 --alpha 1e-6
accepts $judge d16.npy --alpha 1e-6
accepts "$mxgold" gemm a.safetensors b.safetensors -o d16.safetensors --out bf16
accepts $judge d16.safetensors:d
refuses "mxgold: diff: --gemm: no D, expected mxgold diff --gemm A.safetensors B.safetensors D.npy" $judge
refuses "mxgold: short.npy: 936 values, expected D of 24 x 40" $judge short.npy
refuses "mxgold: i.npy: dtype is i32, expected f32, f16 or bf16 (uint16 with --out bf16)" $judge i.npy
refuses "mxgold: u.npy: dtype is u16, expected f32, f16 or bf16 (uint16 with --out bf16)" $judge u.npy
differs "D is zero there" $judge u.npy --out bf16
refuses "mxgold: d.npy: dtype is f32, not the f16 of --out" $judge d.npy --out f16
refuses "mxgold: diff: --alpha nan: expected a finite number" $judge d.npy --alpha nan
refuses "mxgold: diff: --beta without --c" $judge d.npy --beta 2
refuses "mxgold: diff: --accum and --bound exclude each other" $judge d.npy --bound --accum f64
refuses "mxgold: --bound-bits: 1 to 24 expected" $judge d.npy --bound --bound-bits 0
refuses "mxgold: --bound-fraction: 1 or more expected; without it nothing is cut" $judge d.npy --bound --bound-fraction 0
refuses "mxgold: diff: --bound-bits, --bound-fraction or --bound-sums without --bound" $judge d.npy --bound-bits 11
refuses "mxgold: a.safetensors, b.safetensors: bound: expected f32 out, up to 24 bits and a fraction of 0 or more" $judge d.npy --bound --bound-bits 25
refuses "mxgold: a.safetensors, b.safetensors: model 'f32_blok' is not one that takes these operands, nearest: f32_block" $judge d.npy --accum f32_blok
refuses "mxgold: diff: --accum, --bound, --c, --bias, --alpha, --beta and --out need --gemm" "$mxgold" diff a.safetensors b.safetensors --alpha 2
refuses "mxgold: diff: 'd.npy' is one argument too many, expected A and B, or --gemm A B D" "$mxgold" diff a.safetensors b.safetensors d.npy
refuses "mxgold: none.npy: cannot open: No such file or directory" $judge none.npy
accepts "$mxgold" quantize b.npy -o b16.safetensors --preset ocp-mxfp8-e4m3 --set block=1x16
refuses "mxgold: a.safetensors, b16.safetensors: A has blocks of 32 along K and B of 16, expected the same" "$mxgold" diff --gemm a.safetensors b16.safetensors d.npy
head -c 200 d.npy >cut.npy
"$mxgold" diff --gemm a.safetensors b.safetensors cut.npy >"$scratch/stdout" 2>"$scratch/stderr"
[ $? = 2 ] && [ "$(wc -l <"$scratch/stderr")" = 1 ] || fail "a cut .npy was not refused in one line"
