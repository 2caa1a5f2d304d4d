"""Defines what the tests share. They run against the installed package, a wheel in its own environment (`make check-python`)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def x() -> np.ndarray:
    """64 x 256 normally distributed numbers, with each row times its own power of two."""
    rng = np.random.default_rng(1)
    return (rng.standard_normal((64, 256)) * np.exp2(rng.integers(-8, 8, (64, 1)))).astype(np.float32)


@pytest.fixture
def program(tmp_path):
    """Runs the package's program mxgold on files and returns what it wrote, with which the results in Python are compared."""
    import mxgold
    from mxgold import _program

    def run(x, *arguments, name="out.safetensors"):
        mxgold.save(tmp_path / "in.npy" if np.asarray(x).dtype != np.uint16 else tmp_path / "in.safetensors", x)
        _program.run([arguments[0], tmp_path / "in.npy", *arguments[1:], "-o", tmp_path / name])
        return tmp_path / name

    return run
