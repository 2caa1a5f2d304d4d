#!/usr/bin/env python3
"""Peak memory of `mxgold gemm` on large operands: under inputs + output + 64 MiB.   tests/memory.py MXGOLD DIR"""
import os
import resource
import struct
import subprocess
import sys

mxgold, scratch = sys.argv[1:3]
os.makedirs(scratch, exist_ok=True)


def npy(name, rows, cols):
    """Numbers of one size: what they are does not matter here."""
    path = os.path.join(scratch, name)
    head = ("{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }" % (rows, cols)).encode()
    head += b" " * ((64 - (10 + len(head) + 1) % 64) % 64) + b"\n"
    pattern = struct.pack("<61f", *[1 + i % 7 - 0.25 * (i % 11) for i in range(61)]) * (cols // 61 + 2)
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head)
        for r in range(rows):
            f.write(pattern[r % 61 * 4:][:cols * 4])
    return path


def quantised(name, rows, cols, *keys):
    source, out = npy(name + ".npy", rows, cols), os.path.join(scratch, name + ".safetensors")
    subprocess.run([mxgold, "quantize", source, "-o", out, *keys], check=True, stdout=subprocess.DEVNULL)
    os.remove(source)
    return out


def peak(*arguments):
    """MiB of the child alone: a process of its own asks, so that earlier children do not count."""
    pid = os.fork()
    if pid == 0:
        ok = subprocess.run([mxgold, *arguments], stdout=subprocess.DEVNULL).returncode == 0
        kib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        with open(os.path.join(scratch, "peak"), "w") as f:
            f.write(str(kib if ok else -1))
        os._exit(0)
    os.waitpid(pid, 0)
    with open(os.path.join(scratch, "peak")) as f:
        return int(f.read()) / 1024


K, LONG = 16384, 1 << 17
cases = [
    ("f32_block", 2048, 4096, K, []),
    ("f32_block", 512, 4096, K, ["--set", "elem=e4m3"]),
    ("exact", 64, 2048, K, ["--set", "elem=e4m3"]),
    ("f32_seq", 64, 1024, K, []),
    ("hopper_fp8_wgmma", 32, 512, K, ["--set", "elem=e4m3"]),
    ("blackwell/tcgen05bs_m128n8k64_block32_f32_e2m1_e2m1_ue8m0", 32, 512, K, []),
    ("f32_block", 3, 128, LONG, []),
    ("exact", 3, 128, LONG, []),
    ("f64", 20, 64, LONG, []),
    ("f32_pairwise", 20, 64, LONG, []),
    ("hopper_f16", 20, 64, LONG, []),
]
worst = 0
for model, M, N, depth, keys in cases:
    a, b, d = quantised("a", M, depth, *keys), quantised("b", N, depth, *keys), os.path.join(scratch, "d.npy")
    got = peak("gemm", a, b, "-o", d, "--accum", model, "--threads", "2")
    allowed = (os.path.getsize(a) + os.path.getsize(b) + os.path.getsize(d)) / 2**20 + 64
    print("%-62s %5d x %5d x %6d %-10s peak %7.1f MiB, inputs and output %7.1f, over them %6.1f" %
          (model, M, N, depth, keys[1] if keys else "", got, allowed - 64, got - allowed + 64), flush=True)
    if got < 0 or got > allowed:
        worst = 1
        print("memory: more than 64 MiB beside inputs and output")
    for path in (a, b, d):
        os.remove(path)
sys.exit(worst)
