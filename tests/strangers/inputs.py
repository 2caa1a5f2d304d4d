"""Inputs of a few kinds, alike from run to run."""
import numpy as np


def activation(rng, rows, cols):
    """bfloat16 numbers with channels of unlike size, a few of them outliers, and some zeros."""
    x = rng.standard_normal((rows, cols)) * np.exp(0.7 * rng.standard_normal(cols)) * np.where(rng.random(cols) < 0.01, 20, 1)
    x[rng.random((rows, cols)) < 0.02] = 0
    u = x.astype(np.float32).view(np.uint32)
    return (u & np.uint32(0xFFFF0000)).view(np.float32)


def heavy(rng, rows, cols):
    return rng.standard_t(2, (rows, cols)).astype(np.float32)


def small(rng, rows, cols):
    return (rng.standard_normal((rows, cols)) * 1e-3 * np.exp2(rng.integers(-6, 7, (rows, 1)))).astype(np.float32)


def wide(rng, rows, cols):
    """Rows of very unlike size: scales near the lower end of their format."""
    return (rng.standard_normal((rows, cols)) * np.exp2(-rng.integers(0, 19, (rows, 1)))).astype(np.float32)


def silent(rng, rows, cols):
    """Activations with blocks of zeros."""
    x = activation(rng, rows, cols)
    for k in np.flatnonzero(rng.random(rows * (cols // 32)) < 0.1):
        x[k // (cols // 32), k % (cols // 32) * 32 :][:32] = 0
    return x


def special(rng, rows, cols):
    """Normal numbers with zeros of both signs, subnormal numbers, and whole rows near the least normal one."""
    x = rng.standard_normal((rows, cols)).astype(np.float32)
    which = rng.random((rows, cols))
    x[which < 0.03] = 0
    x[which < 0.015] = -0.0
    tiny = (which > 0.97).nonzero()
    x[tiny] = (x[tiny] * 1e-40).astype(np.float32)
    x[rng.random(rows) < 0.05] *= np.float32(1e-37)
    return x


KINDS = {f.__name__: f for f in (activation, heavy, small, silent, wide, special)}
# What is found on a kind is judged on the same kind and on another one.
OTHER = {"activation": "heavy", "heavy": "activation", "small": "activation", "silent": "heavy", "wide": "heavy", "special": "activation"}
