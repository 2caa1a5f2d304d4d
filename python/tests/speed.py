"""Prints how fast quantize is from Python: against the C program's own measurement, and against torchao in the same process, A B A B.

    speed.py [--rounds N]     medians of N rounds (9) of a 4096 x 4096 float32 matrix, on one thread each

The C program's rate is that of `mxgold bench`, which quantises into memory that it already has; Python makes a new array for each result, as a caller does.
What other work does to the machine falls on both, so the ratios hold where the rates do not.
"""

from __future__ import annotations

import statistics
import sys
import time

import numpy as np

import mxgold
from mxgold import _program


def by_turns(calls, rounds: int) -> list[list[float]]:
    """Seconds of each call, A B A B."""
    for call in calls:
        call()
    found: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for at, call in enumerate(calls):
            start = time.perf_counter()
            call()
            found[at].append(time.perf_counter() - start)
    return found


def rate(seconds: list[float], n: int) -> str:
    return f"{n / statistics.median(seconds) / 1e9:6.3f} G/s (best {n / min(seconds) / 1e9:.3f})"


def _rate(report, operation: str) -> float:
    """Of the instruction set that the program uses by itself, which comes first."""
    return next(row["Gelem/s"] for row in report["operations"] if row["operation"] == operation)


def programs(x, preset: str, operation: str, rounds: int) -> None:
    """Python against `mxgold bench`, by turns."""
    words = ["bench", "--only", operation, "--shape", "4096x4096", "--rounds", "3", "--threads", "1"]

    def python() -> float:
        seconds = []
        for _ in range(3):
            start = time.perf_counter()
            mxgold.quantize(x, preset, threads=1)
            seconds.append(time.perf_counter() - start)
        return x.size / statistics.median(seconds) / 1e9

    pairs = [(python(), _rate(_program.run_json(words)[1], operation)) for _ in range(rounds)]
    ratio = statistics.median(mine / theirs for mine, theirs in pairs)
    mine, theirs = (statistics.median(side) for side in zip(*pairs, strict=True))
    print(f"{preset:9}  Python {mine:.3f} G/s, the program {theirs:.3f} G/s: median of ratios {ratio:.3f}")


def main() -> int:
    rounds = int(sys.argv[sys.argv.index("--rounds") + 1]) if "--rounds" in sys.argv else 9
    x = np.random.default_rng(0).standard_normal((4096, 4096)).astype(np.float32)
    print(f"mxgold {mxgold.__version__}, {x.shape[0]} x {x.shape[1]} float32, one thread, medians of {rounds} rounds, A B A B")
    for preset, operation in (("ocp-mxfp4", "mxfp4 floor"), ("te-nvfp4", "nvfp4 te, with amax")):
        programs(x, preset, operation, rounds)
    try:
        import torch
        from torchao.prototype.mx_formats.mx_tensor import to_mx
        from torchao.prototype.mx_formats.nvfp4_tensor import nvfp4_quantize
    except ImportError as error:
        print(f"torchao  skipped: {error}")
        return 0
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
    return 0


if __name__ == "__main__":
    sys.exit(main())
