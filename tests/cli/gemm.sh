# Tests the product by the command line on small matrices worked by hand.
: "${scratch:?run by tests/run-cli.sh}"
python3 - "$scratch" <<'P'
import struct, sys
def npy(path, shape, values, descr="<f4", code="f"):
    head = ("{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (descr, shape)).encode()
    head += b" " * ((64 - (10 + len(head) + 1) % 64) % 64) + b"\n"
    open(path, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + struct.pack("<%d%s" % (len(values), code), *values))
d = sys.argv[1]
npy(d + "/a.npy", (2, 3), [1, 2, 3, -4, 6, 0.5])
npy(d + "/b.npy", (2, 3), [1, 1, 1, 6, 0, -2])
npy(d + "/c.npy", (2, 2), [1, 2, 3, 4])
npy(d + "/bias.npy", (2,), [10, 20])
P
accepts "$mxgold" quantize "$scratch/a.npy" -o "$scratch/a.safetensors"
accepts "$mxgold" quantize "$scratch/b.npy" -o "$scratch/b.safetensors"
floats() { python3 -c 'import struct,sys; b=open(sys.argv[1],"rb").read(); n=10+struct.unpack("<H",b[8:10])[0]; print(*struct.unpack("<%d"%((len(b)-n)//4)+"f",b[n:]))' "$1"; }
for model in f32_block exact f32_seq f32_pairwise f64 hopper_f16 cdna3_fp8 fused:L=32,F=13,align=rz,join=in,out=e8m13rz hopper/wgmma_m64n8k32_f32_e4m3_e5m2 blackwell/tcgen05bs_m128n8k64_block16_f32_e2m1_e2m1_ue4m3; do
  accepts "$mxgold" gemm "$scratch/a.safetensors" "$scratch/b.safetensors" -o "$scratch/d.npy" --accum $model
  [ "$(floats "$scratch/d.npy")" = "6.0 0.0 2.5 -25.0" ] || fail "gemm $model: $(floats "$scratch/d.npy")"
  accepts "$mxgold" gemm "$scratch/a.safetensors" "$scratch/b.safetensors" -o "$scratch/d.npy" --accum $model --alpha 2 --c "$scratch/c.npy" --beta -1 --bias "$scratch/bias.npy"
  [ "$(floats "$scratch/d.npy")" = "21.0 18.0 12.0 -34.0" ] || fail "gemm $model with alpha, beta, bias: $(floats "$scratch/d.npy")"
done
accepts "$mxgold" gemm "$scratch/a.safetensors" "$scratch/b.safetensors" -o "$scratch/ref.npy" --accum hopper_f16 --alpha 2 --c "$scratch/c.npy" --ref
accepts "$mxgold" gemm "$scratch/a.safetensors" "$scratch/b.safetensors" -o "$scratch/d.npy" --accum hopper_f16 --alpha 2 --c "$scratch/c.npy"
cmp -s "$scratch/ref.npy" "$scratch/d.npy" || fail "gemm --ref differs"
refuses "mxgold: $scratch/a.safetensors, $scratch/b.safetensors: model 's32': an integer sum takes no block scales, expected operands without scales" "$mxgold" gemm "$scratch/a.safetensors" "$scratch/b.safetensors" -o "$scratch/e.npy" --accum s32
refuses "mxgold: model 'f32_blok' is unknown, nearest: f32_block" "$mxgold" gemm "$scratch/a.safetensors" "$scratch/b.safetensors" -o "$scratch/e.npy" --accum f32_blok
for v in nan inf -inf; do
  refuses "mxgold: gemm: --alpha $v: expected a finite number" "$mxgold" gemm "$scratch/a.safetensors" "$scratch/b.safetensors" -o "$scratch/e.npy" --alpha $v
  refuses "mxgold: gemm: --beta $v: expected a finite number" "$mxgold" gemm "$scratch/a.safetensors" "$scratch/b.safetensors" -o "$scratch/e.npy" --c e.npy --beta $v
done
refuses "mxgold: gemm: --beta without --c" "$mxgold" gemm "$scratch/a.safetensors" "$scratch/b.safetensors" -o "$scratch/e.npy" --beta 1
refuses "mxgold: $scratch/e.npy: .npy holds no bf16, expected a .safetensors file" "$mxgold" gemm "$scratch/a.safetensors" "$scratch/b.safetensors" -o "$scratch/e.npy" --out bf16
accepts "$mxgold" quantize "$scratch/a.npy" -o "$scratch/a16.safetensors" --set block=1x16
refuses "mxgold: $scratch/a16.safetensors, $scratch/b.safetensors: A has blocks of 16 along K and B of 32, expected the same" "$mxgold" gemm "$scratch/a16.safetensors" "$scratch/b.safetensors" -o "$scratch/e.npy"
accepts "$mxgold" gemm "$scratch/a.safetensors" "$scratch/b.safetensors" -o "$scratch/d.npy" --bound "$scratch/lohi.safetensors" --bound-fraction 13
python3 - "$scratch/lohi.safetensors" <<'P' || fail "gemm --bound"
import json, struct, sys
b = open(sys.argv[1], "rb").read()
n = struct.unpack("<Q", b[:8])[0]
h = json.loads(b[8:8 + n])
lo, hi = ([*struct.unpack("<4f", b[8 + n + h[k]["data_offsets"][0]:8 + n + h[k]["data_offsets"][1]])] for k in ("lo", "hi"))
assert all(l <= d <= u and u - l < 0.2 for l, d, u in zip(lo, [6, 0, 2.5, -25], hi)), (lo, hi)
P
bound() { refuses "$1" "$mxgold" gemm "$scratch/a.safetensors" "$scratch/b.safetensors" -o "$scratch/e.npy" --bound "$scratch/e.safetensors" "$2" "$3"; }
bound "mxgold: --bound-bits: 1 to 24 expected" --bound-bits 0
bound "mxgold: $scratch/a.safetensors, $scratch/b.safetensors: bound: expected f32 out, up to 24 bits and a fraction of 0 or more" --bound-bits 25
bound "mxgold: --bound-fraction: 1 or more expected; without it nothing is cut" --bound-fraction 0
refuses "mxgold: gemm: --bound-bits, --bound-fraction or --bound-sums without --bound" "$mxgold" gemm "$scratch/a.safetensors" "$scratch/b.safetensors" -o "$scratch/e.npy" --bound-bits 11
# Partial sums of binary16 may overflow, and end below 2^-14 in steps of 2^-24: d lies inside, where f32 sums would not reach.
python3 - "$scratch" <<'P'
import struct, sys
def npy(path, shape, values):
    head = ("{'descr': '<f4', 'fortran_order': False, 'shape': %s, }" % (shape,)).encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    open(path, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + struct.pack("<%df" % len(values), *values))
npy(sys.argv[1] + "/f16.npy", (1, 32), [1.875 * 2.0 ** -12] + [1.125 * 2.0 ** -15] * 31)
P
accepts "$mxgold" quantize "$scratch/f16.npy" --set elem=e4m3 -o "$scratch/f16.safetensors"
accepts "$mxgold" gemm "$scratch/f16.safetensors" "$scratch/f16.safetensors" -o "$scratch/f16d.npy" --accum hopper_fp8_wgmma_acc16
[ "$("$mxgold" diff --gemm "$scratch/f16.safetensors" "$scratch/f16.safetensors" "$scratch/f16d.npy" --bound --bound-bits 11 --bound-fraction 13 --bound-sums f16 | grep -c 'D is right')" = 1 ] || fail "diff --bound-sums f16"
"$mxgold" diff --gemm "$scratch/f16.safetensors" "$scratch/f16.safetensors" "$scratch/f16d.npy" --bound --bound-bits 11 --bound-fraction 13 | grep -q 'D is wrong' || fail "diff --bound of f16 sums"
refuses "mxgold: gemm: --bound-bits, --bound-fraction or --bound-sums without --bound" "$mxgold" gemm "$scratch/a.safetensors" "$scratch/b.safetensors" -o "$scratch/e.npy" --bound-sums f16
