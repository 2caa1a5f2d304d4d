"""Tests every preset of tests/peers from Python against the bytes of about twenty real libraries.

MXGOLD_PEERS=FOLDER uses the complete files instead of the slices.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT

import mxgold

PEERS = Path(os.environ.get("MXGOLD_PEERS", ROOT / "tests/peers"))
NAN_SCALE = {"e8m0": 255, "e4m3": 127, "ue5m3": 255}
SIGN = {"e2m1": 8, "e2m3": 32, "e3m2": 32, "e4m3": 128, "e5m2": 128}
FILES = {p.stem: p for p in sorted(PEERS.glob("*.safetensors"))}
TESTED = [name for name in FILES if name in mxgold.presets()]


def differing(x, want_codes, want_scales, q, meta):
    """How many codes and scales differ. NaNs of both signs count as the same; codes of blocks with a NaN scale, and the sign of a NaN input, do not count."""
    codes, scales, want_codes, want_scales = q.unpack().copy(), q.scales[:, : want_scales.shape[1]].copy(), want_codes.copy(), want_scales.copy()
    assert codes.shape == want_codes.shape and scales.shape == want_scales.shape
    if meta["scale"] == "e4m3":
        for s in (want_scales, scales):
            s[(s & 127) == 127] = 127
    for c in (want_codes, codes):
        if meta["elem"] == "e4m3":
            c[(c & 127) == 127] = 127
        if meta["elem"] == "e5m2":
            c[(c & 127) > 124] = 127
        c[np.isnan(x)] &= ~np.uint8(SIGN[meta["elem"]])
    dead = np.repeat(want_scales == NAN_SCALE.get(meta["scale"], 256), meta["block"], axis=1)[:, : x.shape[1]]
    return int(((codes != want_codes) & ~dead).sum()), int((scales != want_scales).sum())


@pytest.mark.parametrize("preset", TESTED)
def test_preset(preset):
    tensors = mxgold.load(FILES[preset])
    suites = sorted({k.split(".")[0] for k in tensors if k.endswith(".codes")} - {"elementwise"})
    for suite in suites:
        meta, x = json.loads(tensors.meta[suite]), tensors[suite + ".x"]
        q = mxgold.quantize(x, preset=preset)
        assert differing(x, tensors[suite + ".codes"], tensors[suite + ".scales"], q, meta) == (0, 0), suite
        want = tensors.get(suite + ".tensor_scale")
        if want is not None:
            assert q.tensor_scale is not None
            assert q.tensor_scale.tobytes() == want.tobytes() or (np.isnan(q.tensor_scale) and np.isnan(want[0])), suite


def test_all_are_there():
    assert len(TESTED) >= 118
