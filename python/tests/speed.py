"""Prints how fast calls from Python are: what one call costs, and quantize in turn with the C program and with torchao in the same process.

    speed.py [--rounds N]     medians of N rounds (9), on one thread, A B A B, by processor time

Other work on the machine slows all of them down alike, so the ratios are meaningful even if the rates are not. The rate of the C program is that of `mxgold
bench --threads 1`, which quantises into memory that it already has; Python makes a new array for each result, as callers do. Both copy the matrix between two
measurements, so that the input is equally far from the processor for both, and both have pages of the same size: NumPy asks for huge pages (madvise), which
malloc does not do by itself and which make NVFP4, which reads the matrix twice, a third faster. NUMPY_MADVISE_HUGEPAGE=0 gives both small pages.
"""

from __future__ import annotations

import os
import statistics
import sys
import time

import numpy as np
import peak_memory

import mxgold
from mxgold import _program

CALLS = 2000  # on a small array, in one measurement


def seconds(call, times: int = 1) -> float:
    """The processor time of this thread for the calls."""
    start = time.thread_time_ns()
    for _ in range(times):
        call()
    return (time.thread_time_ns() - start) * 1e-9 / times


def by_turns(calls, rounds: int, times: int = 1) -> list[list[float]]:
    """The seconds of each call, run in turn: A B A B."""
    for call in calls:
        call()
    found: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for at, call in enumerate(calls):
            found[at].append(seconds(call, times))
    return found


def overheads(rounds: int) -> None:
    """What a call of a small array costs, beside ml_dtypes' casts."""
    x = np.random.default_rng(0).standard_normal((1, 32)).astype(np.float32)
    few = x[:, :16].copy()
    calls = {
        "encode 32 values, e2m1": lambda: mxgold.encode(x, "e2m1"),
        "encode 32 values, e4m3": lambda: mxgold.encode(x, "e4m3"),
        "quantize one block, MXFP4": lambda: mxgold.quantize(x, preset="ocp-mxfp4"),
        "quantize one block, NVFP4": lambda: mxgold.quantize(few, preset="te-nvfp4"),
    }
    try:
        import ml_dtypes

        calls["ml_dtypes: astype, e2m1"] = lambda: x.astype(ml_dtypes.float4_e2m1fn)
        calls["ml_dtypes: astype, e4m3"] = lambda: x.astype(ml_dtypes.float8_e4m3fn)
    except ImportError as error:
        print(f"ml_dtypes  skipped: {error}")
    for name, found in zip(calls, by_turns(list(calls.values()), 5 * rounds, CALLS), strict=True):
        print(f"{name:26} {statistics.median(found) * 1e6:6.2f} us a call (best {min(found) * 1e6:.2f})")


def rate(seconds: list[float], n: int) -> str:
    return f"{n / statistics.median(seconds) / 1e9:6.3f} G/s (best {n / min(seconds) / 1e9:.3f})"


def _rate(report, operation: str) -> float:
    """The rate with the instruction set that the program uses by default, which comes first."""
    return next(row["Gelem/s"] for row in report["operations"] if row["operation"] == operation)


def programs(x, preset: str, operation: str, rounds: int) -> None:
    """Runs Python and `mxgold bench` in turn."""
    words = ["bench", "--only", operation, "--shape", "4096x4096", "--rounds", "3", "--threads", "1"]
    copy = np.empty_like(x)
    os.environ["GLIBC_TUNABLES"] = f"glibc.malloc.hugetlb={os.environ.get('NUMPY_MADVISE_HUGEPAGE', '1')}"  # for the program

    def python() -> float:
        found = []
        for _ in range(3):
            np.copyto(copy, x)
            found.append(seconds(lambda: mxgold.quantize(x, preset, threads=1)))
        return x.size / statistics.median(found) / 1e9

    pairs = [(python(), _rate(_program.run_json(words)[1], operation)) for _ in range(rounds)]
    ratio = statistics.median(mine / theirs for mine, theirs in pairs)
    mine, theirs = (statistics.median(side) for side in zip(*pairs, strict=True))
    print(f"{preset:9}  Python {mine:.3f} G/s, the program {theirs:.3f} G/s: median of ratios {ratio:.3f}")


def peers(x, rounds: int) -> None:
    """Compares quantize with torchao's kernels for the CPU."""
    try:
        import torch
        from torchao.prototype.mx_formats.mx_tensor import to_mx
        from torchao.prototype.mx_formats.nvfp4_tensor import nvfp4_quantize
    except ImportError as error:
        print(f"torchao  skipped: {error}")
        return
    torch.set_num_threads(1)
    tensor = torch.from_numpy(x)
    pairs = {
        "MXFP4": (
            lambda: mxgold.quantize(tensor, "torchao-floor", threads=1),
            lambda: to_mx(tensor, torch.float4_e2m1fn_x2, 32),
        ),
        "NVFP4": (lambda: mxgold.quantize(tensor, "torchao-nvfp4-2level", threads=1), lambda: nvfp4_quantize(tensor, 16, tensor.abs().max() / (448 * 6))),
    }
    for name, calls in pairs.items():
        mine, theirs = by_turns(calls, rounds)
        print(f"{name}  mxgold {rate(mine, x.size)}, torchao {rate(theirs, x.size)}: {statistics.median(theirs) / statistics.median(mine):.1f} times as fast")


def peak(preset: str) -> None:
    """Prints how much memory quantize of a 4096 x 4096 matrix takes beyond input and output."""
    grown, output = peak_memory.taken(preset)
    beyond = grown - output
    print(f"{preset:9}  peak memory beyond input and output: {beyond / (1 << 20):.2f} MiB")


def main() -> int:
    rounds = int(sys.argv[sys.argv.index("--rounds") + 1]) if "--rounds" in sys.argv else 9
    x = np.random.default_rng(0).standard_normal((4096, 4096)).astype(np.float32)
    print(f"mxgold {mxgold.__version__}, one thread, processor time, medians of {rounds} rounds, A B A B")
    overheads(rounds)
    print(f"{x.shape[0]} x {x.shape[1]} float32:")
    for preset, operation in (("ocp-mxfp4", "mxfp4 floor"), ("te-nvfp4", "nvfp4 te, with amax")):
        programs(x, preset, operation, rounds)
    for preset in ("ocp-mxfp4", "te-nvfp4"):
        peak(preset)
    peers(x, rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
