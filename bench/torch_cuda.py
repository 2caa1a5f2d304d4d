#!/usr/bin/env python3
"""Measures torch's and torchao's compiled quantisers on a GPU: bytes read and written a second on a float32 matrix, best of the rounds.

    python3 bench/torch_cuda.py [ROWS COLS]

MXFP4 (floor, blocks of 32) and NVFP4 (blocks of 16, tensor scale given), by torchao's functions, eager and through torch.compile. Set beside what
`mxgold-hip-diff --bench` prints on the same device: elements * 4 read, codes and scales written."""
import sys, time
import torch

rows, cols = (int(v) for v in sys.argv[1:3]) if len(sys.argv) > 2 else (32768, 16384)
x = torch.randn(rows, cols, device="cuda")
print(f"{torch.cuda.get_device_name(0)}, torch {torch.__version__}, {rows} x {cols}")


def rate(call, bits, rounds=10):
    for _ in range(2):
        call()
    best = float("inf")
    for _ in range(rounds):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        call()
        end.record()
        torch.cuda.synchronize()
        best = min(best, begin.elapsed_time(end) * 1e-3)
    return x.numel() * (4 + bits / 8) / best * 1e-12


def jobs():
    y = torch.empty_like(x)
    yield "copy", lambda: y.copy_(x), 32
    try:
        import torchao
        from torchao.prototype.mx_formats.config import ScaleCalculationMode as Mode
        from torchao.prototype.mx_formats.mx_tensor import to_mx
        from torchao.prototype.mx_formats.nvfp4_tensor import nvfp4_quantize
    except ImportError as e:
        print(f"torchao: not run, {e}")
        return
    print(f"torchao {torchao.__version__}")
    one = torch.tensor(1 / 448, device="cuda")
    yield "torchao MXFP4 floor", lambda t=x: to_mx(t, torch.float4_e2m1fn_x2, 32, Mode.FLOOR), 4.25
    yield "torchao MXFP8 floor", lambda t=x: to_mx(t, torch.float8_e4m3fn, 32, Mode.FLOOR), 8.25
    yield "torchao NVFP4, scale given", lambda t=x: nvfp4_quantize(t, 16, one), 4.5


for name, call, bits in jobs():
    for how in ("eager", "compiled") if name != "copy" else ("eager",):
        try:
            f = torch.compile(call) if how == "compiled" else call
            print(f"{name:28} {how:9} {rate(f, bits):6.2f} TB/s", flush=True)
        except Exception as e:  # what a version of a library cannot do is said, and the next is tried
            print(f"{name:28} {how:9} not run: {str(e).splitlines()[0][:90]}", flush=True)
        torch.cuda.empty_cache()
