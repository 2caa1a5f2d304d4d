#!/usr/bin/env python3
"""make hip-mutants: break the device code in one place at a time; the check must notice each. mutants.py "COMPILE" "OBJECTS AND LIBRARIES" [PATH] """
import pathlib, shutil, subprocess, sys, tempfile

# file, what stands there, what is put there, kernels that are built anew
MUTANTS = [
    ("device/codec.h", "rest > half || (rest == half && odd)", "rest >= half", "quantize"),
    ("device/scale.h", "m == 1.5 && ((e + p.scale.bias) & 1)", "m == 1.5", "quantize"),
    ("device/scale.h", "if ((2 - m) * 0x1p23 <=", "if ((2 - m) * 0x1p23 <", "quantize"),
    ("device/number.h", "outward ? bits + 1 : bits - 1", "bits", "quantize dequantize tensor codec"),
    ("device/random.h", "k1 += 0xBB67AE85u", "k1 += 0xBB67AE86u", "quantize"),
    ("device/chain.h", "+ 2023 -", "+ 2024 -", "quantize tensor codec"),
    ("device/fast.h", "field - 3 <= 254 - 3", "field - 3 <= 255 - 3", "fast"),
    ("fast.hip", "if (low == high && field - 60 < 180) return low;", "return low;", "fast"),
    ("gemm.hip", "return kept | ((kept << shift) != v);", "return kept;", "gemm"),
    ("gemm.hip", "below = rest != 0;", "below = 0;", "gemm"),
    ("gemm.hip", "for (int i = 0; i < low / 32; i++) below |= w->limb[i];", "", "gemm"),
    ("gemm.hip", "return x == 0 && scale == 0 ? (float)x : (float)mxd_quotient(x, scale);", "return (float)mxd_quotient(x, scale);", "gemm"),
    ("gemm.hip", "return bf16 ? 0x7FC0 : 0x7E00;", "return bf16 ? 0x7FFF : 0x7E00;", "gemm"),
    ("gemm.hip", "if (bf16) return (uint16_t)(mxh_bits<uint32_t>((float)r) >> 16);", "if (bf16) return (uint16_t)(mxh_bits<uint32_t>((float)r) >> 15);", "gemm"),
    ("gemm.hip", "mxd_exponent(a) < -14 ? -14", "mxd_exponent(a) < -14 ? -13", "gemm"),
    ("fast.hip", "y, x, f.lead == MXD_LEAD_TE, f.drop", "y, x, true, f.drop", "fast"),
    ("device/fast.h", "drop ? s + 0.0f : s", "s", "fast"),
    ("device/fast.h", "&& v < 0x1p99f", "", "fast"),
    ("device/tile.h", "squares += (n - (double)(t.rows * t.cols)) * mean * mean;", "", "quantize fast"),
    ("device/codec.h", "how.sr_mode == MX_SR_ODD ? !(d & 1) : d & 1", "d & 1", "quantize"),
    ("device/element.h", "(float)mxd_difference(product, (double)x)", "(float)product - x", "quantize"),
    ("device/element.h", "code = mxd_code(p, s, x, mxd_widen(q), random);", "code = mxd_encode(p.elem, mxd_widen(q), p.encode, random);", "quantize"),
    ("../run/args.h", "0xD7E8", "0xD7E9", "hadamard"),
    ("layout.hip", "k % 8 / 4 * 2", "k % 8 / 4", "layout"),
    ("tensor.hip", "p.uses_chain || !p.has_tensor_scale || amax == 0 ? 1", "p.uses_chain || !p.has_tensor_scale ? 1", "tensor"),
]

compile_, link = sys.argv[1], sys.argv[2].split()
missed = 0
chosen = [m for m in MUTANTS if len(sys.argv) < 4 or m[0] == sys.argv[3]]
for path, what, instead, kernels in chosen:
    with tempfile.TemporaryDirectory() as tmp:
        shutil.copytree("hip_backend", tmp + "/hip_backend")
        file = pathlib.Path(tmp, "hip_backend/kernels", path)
        text = file.read_text()
        assert text.count(what) == 1, (path, what, text.count(what))
        file.write_text(text.replace(what, instead))
        objects = [o for o in link if not any(o.endswith(f"/kernels/{k}.o") for k in kernels.split())]
        for k in kernels.split():
            flags = compile_.replace("-I.", f"-I{tmp} -I.", 1).split()
            subprocess.run([*flags, "-w", "-x", "c++", "-c", f"{tmp}/hip_backend/kernels/{k}.hip", "-o", f"{tmp}/{k}.o"], check=True)
            objects.insert(0, f"{tmp}/{k}.o")
        subprocess.run([flags[0], *objects, "-o", tmp + "/check"], check=True)
        run = subprocess.run([tmp + "/check"], capture_output=True, text=True)
        rows = [line for line in run.stdout.splitlines() if line[:1].strip() and line.split()[-1].isdigit() and line.split()[-1] != "0"]
        if run.returncode not in (0, 1):
            sys.exit(f"hip-mutants: {path}: the check ended with {run.returncode}: {run.stdout[-300:]}{run.stderr[-300:]}")
        missed += run.returncode != 1
        print(f"{'missed' if run.returncode != 1 else 'noticed'}: {path}: {what}  ->  {instead}: {len(rows)} rows of the table differ", flush=True)
print(f"hip-mutants: {len(chosen)} broken in one place, {missed} not noticed")
sys.exit(missed != 0)
