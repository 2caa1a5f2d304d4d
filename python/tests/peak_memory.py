"""Measures in a separate process how much memory quantize of a 4096 x 4096 matrix takes."""

from __future__ import annotations

import subprocess
import sys


def taken(preset: str) -> tuple[int, int]:
    """The bytes by which the peak of the process grew, and those of the output. VmHWM is of this process alone; ru_maxrss may be that of its parent."""
    code = (
        "import numpy as np, mxgold\n"
        "def peak(): return next(int(line.split()[1]) << 10 for line in open('/proc/self/status') if line.startswith('VmHWM'))\n"
        "x = np.ones((4096, 4096), np.float32)\n"
        f"mxgold.quantize(x[:64], '{preset}')\n"
        "before = peak()\n"
        f"q = mxgold.quantize(x, '{preset}')\n"
        "print(peak() - before, q.nbytes)\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    return int(said[0]), int(said[1])
