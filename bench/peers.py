#!/usr/bin/env python3
"""Measures libraries that a user would pick instead, by turns with mxgold on the same jobs: peers.py MXGOLD [TEXT]

Each library that this Python has is timed on a 4096 x 4096 float32 matrix with the library's own threads; the others are named on a line. Prints million
elements a second of both, how many times faster mxgold is, and how many times anything could be that only reads the input and writes the result once, at
the rates that `mxgold bench` measures beside it (its column roofline); medians of the rounds."""
import json, logging, statistics, subprocess, sys, time
import numpy as np

logging.disable(logging.WARNING)  # what torch says of itself as it is imported

ROUNDS, SHAPE = 3, (4096, 4096)
mxgold, only = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
x = np.random.default_rng(1).standard_normal(SHAPE, dtype=np.float32)


def torchao():
    import torch
    from torchao.prototype.mx_formats.config import ScaleCalculationMode as Mode
    from torchao.prototype.mx_formats.mx_tensor import to_mx
    from torchao.prototype.mx_formats.nvfp4_tensor import nvfp4_quantize
    t, one = torch.from_numpy(x), torch.tensor(1 / 448)
    yield "mxfp4 floor", "to_mx", lambda: to_mx(t, torch.float4_e2m1fn_x2, 32, Mode.FLOOR)
    yield "mxfp4 rceil log2f (torchao)", "to_mx", lambda: to_mx(t, torch.float4_e2m1fn_x2, 32, Mode.RCEIL)
    yield "mxfp8 e4m3", "to_mx", lambda: to_mx(t, torch.float8_e4m3fn, 32, Mode.FLOOR)
    yield "nvfp4 torchao, scale given", "nvfp4_quantize", lambda: nvfp4_quantize(t, 16, one)


def torch_casts():
    import torch
    t = torch.from_numpy(x)
    yield "encode e4m3", "to(float8_e4m3fn)", lambda: t.to(torch.float8_e4m3fn)


def ml_dtypes():
    import ml_dtypes as m
    yield "encode e2m1", "astype", lambda: x.astype(m.float4_e2m1fn)
    yield "encode e4m3", "astype", lambda: x.astype(m.float8_e4m3fn)


def gfloat():
    from gfloat import RoundMode, round_ndarray
    from gfloat.formats import format_info_ocp_e2m1
    yield "encode e2m1", "round_ndarray", lambda: round_ndarray(format_info_ocp_e2m1, x, RoundMode.TiesToEven, True)


def ours(name):
    rows = json.loads(subprocess.run([mxgold, "bench", "--only", name, "--rounds", "3", "--json"], check=True, capture_output=True).stdout)["operations"]
    row = next(r for r in rows if r["operation"] == name)
    return row["Gelem/s"] * 1e3, row["Gelem/s"] * 1e3 / row["roofline"]


print(f"{'operation':28} {'library':10} {'call':18} {'Melem/s':>10} {'mxgold':>10} {'times':>8} {'possible':>9}")
for library, jobs in (("torchao", torchao), ("torch", torch_casts), ("ml_dtypes", ml_dtypes), ("gfloat", gfloat)):
    try:
        todo = list(jobs())
    except ImportError as e:
        print(f"{library}: not run, {e}")
        continue
    for name, call, run in todo:
        if only not in name:
            continue
        theirs, own, memory = [], [], []
        for _ in range(ROUNDS):
            at = time.perf_counter()
            run()
            theirs.append(x.size / (time.perf_counter() - at) / 1e6)
            rate, most = ours(name)
            own.append(rate)
            memory.append(most)
        a, b, m = statistics.median(theirs), statistics.median(own), statistics.median(memory)
        print(f"{name:28} {library:10} {call:18} {a:10.1f} {b:10.0f} {b / a:8.1f} {m / a:9.1f}", flush=True)
