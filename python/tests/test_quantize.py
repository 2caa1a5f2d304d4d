"""Tests that quantize, dequantize, encode, decode and hadamard give the bytes of the program, and a few that were worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

import mxgold


def test_by_hand():
    # amax 6: floor(log2 6) - 2 = 0, so the byte is 127; every number is representable except 5, a tie that goes to 4, the even code 6
    q = mxgold.quantize(np.float32([[0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.5, -6, 5, -0.0] + [0] * 20]), "ocp-mxfp4")
    assert q.scales.tolist() == [[127]] and q.tensor_scale is None
    assert q.unpack()[0, :12].tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 9, 15, 6, 8]
    assert q.codes[0, :6].tolist() == [0x10, 0x32, 0x54, 0x76, 0xF9, 0x86]
    assert q.dequantize()[0, :12].tolist() == [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.5, -6, 4, 0]
    assert np.signbit(q.dequantize()[0, 11])


def test_bfloat16_without_scales():
    # nearest even: 1 + 2^-8 is a tie and goes to 1, 1 + 3 * 2^-8 to 1 + 2^-6; what lies past the largest is Inf
    q = mxgold.quantize(np.float32([[1 + 2**-8, 1 + 3 * 2**-8, -0.0, 3.4e38]]), spec="elem=bf16")
    assert q.codes.dtype == np.float32 and q.codes.tolist() == [[1, 1 + 2**-6, 0, np.inf]] and np.signbit(q.codes[0, 2])
    assert np.array_equal(q.dequantize(), q.codes)
    again = mxgold.Quantized.of(q.codes, q.scales, spec="elem=bf16")
    assert np.array_equal(again.dequantize(), q.codes)
    assert mxgold.formats()["bf16"].bits == 16
    with pytest.raises(mxgold.SpecError):
        mxgold.Spec("elem=bf16 elem.round=sr")


def test_encode_by_hand():
    # e2m1's ties: 0.25 -> 0, 0.75 -> 1, 1.25 -> 1, 1.75 -> 2, 2.5 -> 2, 3.5 -> 4, 5 -> 4
    assert mxgold.encode(np.float32([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, 7, -0.0]), "e2m1").tolist() == [0, 2, 2, 4, 4, 6, 6, 7, 8]
    assert mxgold.encode(np.float32([448, 449, 1e9]), "e4m3").tolist() == [0x7E] * 3
    assert mxgold.decode(np.uint8([0, 127, 128, 254]), "e8m0").tolist() == [2.0**-127, 1, 2, 2.0**127]
    assert np.isnan(mxgold.decode(np.uint8([255]), "e8m0"))
    assert mxgold.decode(np.uint16([0x3F80, 0xC000]), "bf16").tolist() == [1, -2]


def test_decode_is_the_inverse_of_encode():
    for name in ("e2m1", "e2m3", "e3m2", "e4m3", "e5m2"):
        codes = np.arange(1 << mxgold.formats()[name].bits, dtype=np.uint8)
        values = mxgold.decode(codes, name)
        finite = np.isfinite(values)
        assert np.array_equal(mxgold.encode(values[finite], name), codes[finite]), name


@pytest.mark.parametrize("preset", ["ocp-mxfp4", "te-nvfp4", "ocp-mxfp6-e2m3", "ocp-mxfp8-e4m3", "hif4", "mxfp4-ue5m3", "ct-nvfp4"])
def test_bytes_are_the_programs(preset, x, program, tmp_path):
    path = program(x, "quantize", "--preset", preset)
    q = mxgold.quantize(x, preset)
    assert mxgold.load(path) == q
    q.save(tmp_path / "saved.safetensors")
    assert (tmp_path / "saved.safetensors").read_bytes() == path.read_bytes()


def test_options_are_the_programs(x, program, tmp_path):
    path = program(x, "quantize", "--preset", "te-nvfp4", "--set", "elem.round=sr", "--seed", "7", "--tensor-scale", "2.5")
    q = mxgold.quantize(x, "te-nvfp4", set={"elem.round": "sr"}, seed=7, given_tensor_scale=2.5)
    assert mxgold.load(path) == q and q.tensor_scale == np.float32(2.5)
    q.save(tmp_path / "saved.safetensors")
    assert (tmp_path / "saved.safetensors").read_bytes() == path.read_bytes()
    path = program(x, "quantize", "--transpose")
    assert mxgold.load(path) == mxgold.quantize(x, transpose=True)


def test_dequantized_values_are_the_programs(x, program):
    path = program(x, "quantize", "--preset", "te-nvfp4", "--dequantized")
    values = dict((n, a) for n, _, a in mxgold._core.read_file(path)[0])["dequantized"]
    q = mxgold.quantize(x, "te-nvfp4")
    assert np.array_equal(q.dequantize(), values)
    assert np.array_equal(mxgold.dequantize(q.codes, q.scales, preset="te-nvfp4", tensor_scale=q.tensor_scale, shape=x.shape), values)
    assert np.array_equal(mxgold.dequantize(q.unpack(), q.scales, preset="te-nvfp4", tensor_scale=q.tensor_scale), values)


def test_given_bits(x):
    # with random bits of 0 stochastic rounding goes toward zero; with bits of 1, away from it, if a number is between two codes
    down = mxgold.quantize(x, set="elem.round=sr sr.bits=16", bits=np.zeros(x.shape, np.uint32))
    assert np.array_equal(down.unpack(), mxgold.quantize(x, set="elem.round=rtz").unpack())
    assert down.spec.sr_source == "given"


def test_stochastic_rounding_depends_on_the_seed(x):
    a, b, c = (mxgold.quantize(x, "ocp-mxfp4", set="elem.round=sr", seed=s) for s in (1, 1, 2))
    assert a == b and not np.array_equal(a.codes, c.codes)


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_no_byte_depends_on_threads(threads, x):
    big = np.tile(x, (16, 4))
    assert mxgold.quantize(big, "te-nvfp4", threads=threads) == mxgold.quantize(big, "te-nvfp4", threads=1)


def test_hadamard(x, program):
    rotated = mxgold.hadamard(x, 32)
    assert np.array_equal(rotated, mxgold.load(program(x, "hadamard", "--size", "32", name="h.npy"))[""])
    back = mxgold.hadamard(rotated, 32)
    assert np.abs(back - x).max() <= np.abs(x).max() * 2.0**-20
    assert np.array_equal(mxgold.hadamard(np.float32([[1, 0]]), 2)[0], np.float32([0.5**0.5, 0.5**0.5]))


def test_layouts_go_there_and_back(x):
    q = mxgold.quantize(x, "ocp-mxfp4")
    for name in mxgold.layouts():
        flat = q.scales_in(name, pad=0)
        back = mxgold._core.layout_scales(flat, name, back=True, rows=q.scales.shape[0], kb=q.scales.shape[1])
        assert np.array_equal(back, q.scales), name
    # nv128x4: scale (r, k) of a tile of 128 x 4 lies at (r % 32) * 16 + (r / 32) * 4 + k
    one = np.zeros((128, 4), np.uint8)
    one[33, 2] = 200
    assert int(np.flatnonzero(mxgold._core.layout_scales(one, "nv128x4"))[0]) == 1 * 16 + 1 * 4 + 2


def test_encode_options_are_the_programs(x, program):
    flat = x.ravel()[:4096]
    for words, given in (
        (["--format", "e4m3", "--preset", "torch"], {"format": "e4m3", "preset": "torch"}),
        (["--format", "e2m1", "--round", "sr", "--seed", "3"], {"format": "e2m1", "round": "sr", "seed": 3}),
        (["--format", "e5m2", "--overflow", "ieee", "--scale-exp", "2"], {"format": "e5m2", "overflow": "ieee", "scale_exp": 2}),
        (["--format", "e8m0", "--set", "scale.negative=nan"], {"format": "e8m0", "set": {"scale.negative": "nan"}}),
        (["--format", "e2m1", "--scale-exp", "nan"], {"format": "e2m1", "scale_exp": float("nan")}),
    ):
        codes = mxgold.encode(flat, **given)
        assert np.array_equal(codes, mxgold.load(program(flat, "encode", *words, name="c.npy"))[""]), words


def test_encode_random_bits():
    # gfloat's rule with 4 bits: 0.125 is a quarter of the way from 0 to 0.5, so 4 of the 16 integers round it up
    codes = mxgold.encode(np.full(16, 0.125, np.float32), "e2m1", round="sr", bits=np.arange(16, dtype=np.uint8), nbits=4)
    assert int(codes.sum()) == 4


def test_pickle_and_copy(x):
    import copy
    import pickle

    q = mxgold.quantize(x, "te-nvfp4")
    assert pickle.loads(pickle.dumps(q)) == q and copy.deepcopy(q) == q


def test_spec_is_what_was_asked(x):
    q = mxgold.quantize(x, spec=mxgold.Spec("te-nvfp4", nibble="high_first"))
    assert q.spec.nibble == "high_first" and q.preset == "te-nvfp4"
    swapped = (q.codes >> 4) | (q.codes << 4)
    assert np.array_equal(swapped, mxgold.quantize(x, "te-nvfp4").codes)


def test_gemm_names_its_models():
    """The docstring names every accumulation model that is not a matrix unit."""
    models = mxgold.models()
    own = models[: models.index("fused")]
    assert len(own) == 6 and own[-1] == "group64" and len(set(models)) == len(models)
    assert not [name for name in own if name not in mxgold.gemm.__doc__]
