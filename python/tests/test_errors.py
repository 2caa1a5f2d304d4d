"""Tests that bad input is a typed error that names the argument, and never a crash."""

from __future__ import annotations

import numpy as np
import pytest

import mxgold
from mxgold import DataError, DtypeError, ShapeError, SpecError

GOOD = np.ones((4, 64), np.float32)
Q = mxgold.quantize(GOOD, "ocp-mxfp4")
N = mxgold.quantize(GOOD, "te-nvfp4")
UNIT = "hopper/mma_m16n8k16_f32_f16_f16_f32"

ARRAYS = {
    "float64": GOOD.astype(np.float64),
    "int32": GOOD.astype(np.int32),
    "complex": GOOD.astype(np.complex64),
    "object": np.array([object()]),
    "string": np.array(["a"]),
    "records": np.zeros(3, [("a", "f4"), ("b", "f4")]),
    "datetime": np.zeros(3, "M8[s]"),
    "bool": GOOD > 0,
    "big-endian": GOOD.astype(">f4"),
    "list": [1.0, 2.0],
    "number": 1.0,
    "text": "abc",
    "none": None,
    "class": np.ndarray,
    "dict": {},
}


@pytest.mark.parametrize("name", ARRAYS)
def test_wrong_arrays(name):
    bad = ARRAYS[name]
    for call, argument in (
        (lambda: mxgold.quantize(bad, "ocp-mxfp4"), "x"),
        (lambda: mxgold.encode(bad, "e2m1"), "x"),
        (lambda: mxgold.hadamard(bad, 16), "x"),
        (lambda: mxgold.linear(bad, GOOD), "x"),
        (lambda: mxgold.linear(GOOD, bad), "w"),
    ):
        with pytest.raises((DtypeError, TypeError)) as e:
            call()
        assert argument in str(e.value)
    if name not in ("bool", "int32", "big-endian", "list", "number"):
        with pytest.raises((DtypeError, TypeError, ShapeError)):
            mxgold.decode(bad, "e2m1")


def test_wrong_shapes():
    for call in (
        lambda: mxgold.gemm(Q, mxgold.quantize(np.ones((4, 32), np.float32), "ocp-mxfp4")),
        lambda: mxgold.gemm(Q, Q, c=np.ones((4, 5), np.float32)),
        lambda: mxgold.gemm(Q, Q, bias=np.ones(3, np.float32)),
        lambda: mxgold.gemm(Q, Q, batch=3),
        lambda: mxgold.linear(GOOD, np.ones((4, 63), np.float32)),
        lambda: mxgold.linear(GOOD, GOOD, np.ones((3, 4), np.float32)),
        lambda: mxgold.linear(GOOD, GOOD, bias=np.ones(3, np.float32)),
        lambda: mxgold.dequantize(Q.codes, Q.scales[:2], preset="ocp-mxfp4", shape=(4, 64)),
        lambda: mxgold.dequantize(Q.codes[:2], Q.scales, preset="ocp-mxfp4", shape=(4, 64)),
        lambda: mxgold.quantize(GOOD, set="elem.round=sr", bits=np.zeros(3, np.uint32)),
        lambda: mxgold.encode(GOOD, "e2m1", round="sr", bits=np.zeros(3, np.uint8), nbits=8),
        lambda: mxgold.mma(np.zeros((16, 16), np.uint16), np.zeros((8, 32), np.uint16), model=UNIT),
        lambda: mxgold.diff_gemm(Q, Q, np.zeros((4, 3), np.float32)),
    ):
        with pytest.raises(ShapeError):
            call()


def test_wrong_words():
    for call in (
        lambda: mxgold.quantize(GOOD, "no-such-preset"),
        lambda: mxgold.quantize(GOOD, set={"no.key": 1}),
        lambda: mxgold.encode(GOOD, "e9m9"),
        lambda: mxgold.encode(GOOD, "e2m1", "no-such-cast"),
        lambda: mxgold.encode(GOOD, "e2m1", bits=np.zeros(GOOD.shape, np.uint8), nbits=8),
        lambda: mxgold.decode(np.uint8([1]), "e9m9"),
        lambda: mxgold.gemm(Q, Q, "no_such_model"),
        lambda: mxgold.gemm(Q, N),
        lambda: mxgold.mma(np.zeros((16, 16), np.uint16), np.zeros((8, 16), np.uint16), model="no/such"),
        lambda: mxgold.linear(GOOD, GOOD, recipe="recipe-nvpf4"),
        lambda: mxgold.gen("teis", "te-nvfp4"),
        lambda: Q.scales_in("nv128x5"),
    ):
        with pytest.raises(SpecError):
            call()


def test_wrong_values():
    for call in (
        lambda: mxgold.quantize(GOOD, threads=-1),
        lambda: mxgold.quantize(GOOD, seed=-1),
        lambda: mxgold.quantize(GOOD, "te-nvfp4", given_tensor_scale=0),
        lambda: mxgold.quantize(GOOD, "te-nvfp4", given_tensor_scale=float("nan")),
        lambda: mxgold.hadamard(GOOD, 3),
        lambda: mxgold.encode(GOOD, "e2m1", scale_exp=701),
        lambda: mxgold.encode(GOOD, "e2m1", round="sr", nbits=33),
        lambda: mxgold.gemm(Q, Q, out="float8"),
        lambda: mxgold.gemm(Q, Q, beta=1.0),
        lambda: mxgold.linear(GOOD, GOOD, step=2**36),
        lambda: Q.dequantize("float64"),
    ):
        with pytest.raises(ValueError):
            call()
    for call in (
        lambda: mxgold.quantize(),
        lambda: mxgold.quantize(GOOD, "a", "b"),
        lambda: mxgold.quantize(GOOD, no_such=1),
        lambda: mxgold.quantize(GOOD, x=GOOD),
        lambda: mxgold.quantize(GOOD, preset=5),
        lambda: mxgold.quantize(GOOD, threads="two"),
        lambda: mxgold.gemm(GOOD, Q),
        lambda: mxgold.gemm(Q, None),
        lambda: mxgold.dequantize(GOOD),
    ):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(TypeError, match="has no argument 'tensor_scale', nearest: given_tensor_scale"):
        mxgold.quantize(GOOD, "te-nvfp4", tensor_scale=5.0)
    with pytest.raises(TypeError, match="no argument '\udc80', nearest: "):
        mxgold.quantize(GOOD, **{"\udc80": 1})


def test_values_that_a_spec_refuses():
    bad = GOOD.copy()
    bad[2, 37] = np.nan
    with pytest.raises(DataError) as e:
        mxgold.quantize(bad, "ocp-mxfp4", set="scale.nan=error")
    assert e.value.index == (2, 37) and e.value.argument == "x"
    with pytest.raises(DataError) as e:
        mxgold.encode(bad, "e2m1", nan="error")
    assert e.value.index == (2 * 64 + 37,)
    with pytest.raises(DataError) as e:
        mxgold.Quantized.of(np.full((4, 64), 17, np.uint8), Q.scales, preset="ocp-mxfp4")
    assert e.value.index == (0, 0)


def test_a_quantized_that_was_changed():
    for name, value in (
        ("codes", Q.codes[:1]),
        ("scales", None),
        ("scales", Q.scales[:, :1]),
        ("shape", (1 << 40, 64)),
        ("shape", (4, 65)),
        ("spec", "te-nvfp4"),
        ("codes", "abc"),
    ):
        q = mxgold.quantize(GOOD, "ocp-mxfp4")
        setattr(q, name, value)
        with pytest.raises((ValueError, TypeError, AttributeError)):
            q.dequantize()
        with pytest.raises((ValueError, TypeError, AttributeError)):
            mxgold.gemm(q, q)
    q = mxgold.quantize(GOOD, "te-nvfp4")
    q.tensor_scale = None
    with pytest.raises(ValueError):
        q.dequantize()


def test_one_line_each():
    for call in (lambda: mxgold.quantize(GOOD, "x"), lambda: mxgold.quantize([1]), lambda: mxgold.gemm(Q, Q, "x"), lambda: mxgold.load(__file__)):
        with pytest.raises(Exception) as e:
            call()
        assert "\n" not in str(e.value) and len(str(e.value)) < 400


def test_a_seed_is_named():
    for call in (mxgold.quantize, lambda x, preset, seed: mxgold.Spec(preset, seed=seed)):
        with pytest.raises(mxgold.Error, match=r"^seed: -1, expected an int from 0 to ") as caught:
            call(GOOD, "te-nvfp4", seed=-1)
        assert caught.value.argument == "seed"
