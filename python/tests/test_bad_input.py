"""Tests that wrong values for any argument of any public function give a typed error of one line that names the argument, and never a crash."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mxgold


@pytest.mark.parametrize("half", ["_", "testing."])
def test_every_argument(half):
    """Runs bad_input.py in a separate process, since a crash would end this one."""
    names = [half] if half == "testing." else []
    words = ["--torch"] if importlib.util.find_spec("torch") and not names else []
    done = subprocess.run([sys.executable, Path(__file__).with_name("bad_input.py"), *words, *(names or ["--not-testing"])], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " 0 findings" in done.stdout


def test_buffers_without_strides():
    """Arrays of ctypes state a shape but no strides."""
    import ctypes

    buffer = (ctypes.c_float * 64)(*range(64))
    assert np.array_equal(mxgold.quantize(buffer, "ocp-mxfp4").codes, mxgold.quantize(np.arange(64, dtype=np.float32), "ocp-mxfp4").codes)
    rows = ((ctypes.c_float * 32) * 2)(*((ctypes.c_float * 32)(*range(r, r + 32)) for r in (0, 5)))
    assert np.array_equal(mxgold.encode(rows, "e4m3"), mxgold.encode(np.asarray(rows), "e4m3"))


def test_results_of_another_library_are_compared():
    torch = pytest.importorskip("torch")
    x = torch.linspace(-3, 3, 64).reshape(2, 32)
    q = mxgold.quantize(x, "ocp-mxfp4", like=x)
    assert mxgold.diff(q, codes=q.codes, scales=q.scales).equal and mxgold.diff(q, q).equal
    assert mxgold.diff(q, codes=q.codes ^ 1, scales=q.scales).codes_differ == 32
    assert "<table>" in q._repr_html_() and "32 bytes of codes" in repr(q)
    with pytest.raises(AssertionError):
        mxgold.testing.assert_product(q, q, mxgold.gemm(q, q) + 1)


def test_keys_in_a_tuple():
    x = np.float32([0.25, 0.75, 2.5])
    assert np.array_equal(mxgold.encode(x, "e2m1", set=("elem.round=rna",)), mxgold.encode(x, "e2m1", round="rna"))
    assert mxgold.Spec(set=("elem.round=rna", "seed=3")) == mxgold.Spec(elem_round="rna", seed=3)


def test_which_argument_of_linear():
    x = np.ones((2, 32), np.float32)
    for name, value in (("recipe", "no"), ("preset", "no"), ("set", "no=1"), ("operands", "Q9:a=b"), ("train", "no=1"), ("gemms", "no"), ("accum", "no")):
        with pytest.raises(mxgold.SpecError) as e:
            mxgold.linear(x, x, **({} if name == "preset" else {"recipe": "recipe-nvfp4"}) | {name: value})
        assert e.value.argument == name and str(e.value).startswith(name + ": ")
