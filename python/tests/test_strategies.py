"""Tests that mxgold.strategies give what they promise, and that the library is right on what they give."""

from __future__ import annotations

import numpy as np
import pytest

import mxgold

pytest.importorskip("hypothesis")
from hypothesis import HealthCheck, given, settings

from mxgold import strategies

QUIET = settings(max_examples=40, deadline=None, database=None, suppress_health_check=list(HealthCheck))


@QUIET
@given(strategies.tensors("te-nvfp4"))
def test_tensors(x):
    assert x.dtype == np.float32 and x.ndim == 2
    q = mxgold.quantize(x, "te-nvfp4")
    mxgold.testing.assert_matches(x, q.codes, q.scales, "te-nvfp4", q.tensor_scale)
    assert mxgold.quantize(np.asfortranarray(x), "te-nvfp4", threads=3) == q


@pytest.mark.parametrize("preset", ["te-nvfp4", "ocp-mxfp4", "te-nvfp4-2d"])
def test_ties_tell(preset):
    """Fifty tensors tell a kernel that rounds ties away from zero."""
    told = []

    @settings(QUIET, max_examples=50, derandomize=True)
    @given(strategies.tensors(preset, finite=True))
    def draw(x):
        assert np.isfinite(x).all() and x.shape[0] <= 4 and x.shape[1] <= 80
        told.append(not np.array_equal(mxgold.quantize(x, preset).codes, mxgold.quantize(x, preset, set={"elem.round": "rna"}).codes))

    draw()
    assert any(told)


@QUIET
@given(strategies.specs(), strategies.tensors("ocp-mxfp4", finite=True))
def test_specs(spec, x):
    assert isinstance(spec, mxgold.Spec) and eval(repr(spec), {"Spec": mxgold.Spec}) == spec and np.isfinite(x).all()
    q = mxgold.quantize(x, spec=spec)
    assert q.spec == spec and q.dequantize().shape == x.shape
