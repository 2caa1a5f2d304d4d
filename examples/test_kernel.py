"""Tests a kernel that is wrong, to show what pytest then says: `pytest examples/test_kernel.py` (docs/guide/PYTHON.md).

my_kernel() makes MXFP4 with NumPy as many kernels do: it takes the exponent of the block's largest magnitude, divides, and rounds to the nearest value. Of two
equally near values np.argmin() gives the lower one, which is not what OCP's rule says of ties.
"""

import numpy as np

import mxgold

VALUES = np.float32([0, 0.5, 1, 1.5, 2, 3, 4, 6])  # e2m1's magnitudes, by code


def my_kernel(x):
    """x float32 [rows][cols], cols a multiple of 32 -> codes one a byte, scales as E8M0 bytes."""
    blocks = x.reshape(x.shape[0], -1, 32)
    amax = np.abs(blocks).max(-1, keepdims=True)
    exponent = np.where(amax > 0, np.frexp(amax)[1] - 1 - 2, -127).clip(-127, 127)
    scaled = np.abs(np.ldexp(blocks, -exponent))
    magnitudes = np.abs(scaled[..., None] - VALUES).argmin(-1)
    codes = magnitudes + 8 * np.signbit(blocks)
    return codes.astype(np.uint8).reshape(x.shape), (exponent[..., 0] + 127).astype(np.uint8)


@mxgold.testing.cases("ocp-mxfp4", suites=["random", "ties"])
def test_my_kernel(x):
    codes, scales = my_kernel(x)
    mxgold.testing.assert_matches(x, codes, scales, preset="ocp-mxfp4")
