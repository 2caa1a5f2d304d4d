"""Tests mxgold.testing: what a failed assertion says, what it saves, and that the saved case fails by itself."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import unittest

import numpy as np
import pytest

import mxgold
from mxgold import testing

PRESETS = ["ocp-mxfp4", "te-nvfp4", "ocp-mxfp8-e4m3", "ocp-mxfp6-e2m3", "te-nvfp4-2d", "hif4"]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MXGOLD_SAVE", raising=False)
    monkeypatch.setattr(testing._save, "folder", None)


def message(call) -> str:
    with pytest.raises(AssertionError) as e:
        call()
    return str(e.value)


def repeat(text: str) -> subprocess.CompletedProcess[str]:
    """Runs the command with which a message ends."""
    command = text.splitlines()[-1].strip()
    assert command.startswith("mxgold ")
    return subprocess.run(shlex.split(command), capture_output=True, text=True)


@pytest.mark.parametrize("preset", PRESETS)
def test_right_kernels_pass(preset, x):
    q = mxgold.quantize(x, preset)
    testing.assert_matches(x, q.codes, q.scales, preset, q.tensor_scale, micro=q.micro)
    testing.assert_matches(x, q.unpack(), q.scales, preset=preset, micro=q.micro)
    testing.assert_matches(x, q.codes, q.scales_in("nv128x4"), preset=preset, layout="nv128x4", micro=q.micro)


def test_micro_scales_count(x, tmp_path):
    """HiF4 stores three bytes for each block beside the scale: a kernel that gets one of them wrong fails, and so does a test that omits them."""
    q = mxgold.quantize(x, "hif4")
    micro = q.micro.copy()
    micro[17, 2, 1] ^= 4
    text = message(lambda: testing.assert_matches(x, q.codes, q.scales, "hif4", micro=micro))
    lines = text.splitlines()
    assert lines[0] == "0 of 16384 codes and 1 of 256 scales differ from hif4" and lines[1].startswith("only scales or micro-scales differ")
    assert lines[2] == "Codes and scales are those of hif4; the micro-scales of 1 of 256 blocks are not, first of row 17, block 2."
    assert repeat(text).returncode == 1
    saved = mxgold.load(next(tmp_path.glob(".mxgold/*/expected.safetensors")))
    assert (saved.rows, saved.cols) == (1, 64) and np.array_equal(saved.micro[0, 0], q.micro[17, 2])
    with pytest.raises(mxgold.DtypeError, match="micro"):
        testing.assert_matches(x, q.codes, q.scales, "hif4")
    with pytest.raises(mxgold.DtypeError, match="micro"):
        testing.assert_matches(x, q.codes, q.scales, "ocp-mxfp4", micro=q.micro)
    with pytest.raises(mxgold.Error, match="micro"):
        mxgold.diff(q, codes=q.codes, scales=q.scales)
    assert "sizes" in message(lambda: testing.assert_matches(x, q.codes, q.scales, "hif4", micro=q.micro[:, :1]))
    with pytest.raises(mxgold.DtypeError, match="micro"):
        testing.assert_matches(x, q.codes, q.scales, "hif4", micro=q.micro.astype(np.float32))
    assert not mxgold.identify(x, q.codes, q.scales, micro=micro, quick=True).exact
    assert mxgold.identify(x, q.codes, q.scales, micro=q.micro, quick=True).exact


def test_where_scales_alone_differ(x):
    q = mxgold.quantize(x, "ocp-mxfp4")
    for wrong, place in ((np.ones_like(q.scales), "row 0, block column 0"), (np.zeros_like(q.scales), "row 17, block column 3")):
        if not wrong.any():
            wrong[17, 3] = wrong[40, 1] = 1
        lines = message(lambda wrong=wrong: testing.assert_matches(x, q.codes, q.scales + wrong, "ocp-mxfp4", seconds=0.2)).splitlines()
        assert lines[1].startswith(f"only scales differ, first at {place}: no code does")


def test_explain_holds_micro_scales(x):
    assert testing.explain(lambda x: mxgold.quantize(x, "hif4"), "hif4").ok

    def wrong(x):
        q = mxgold.quantize(x, "hif4")
        return q.codes, q.scales, None, q.micro & 0xFE

    found = testing.explain(wrong, "hif4")
    assert not found.ok and not found.identity.exact and "micro-scales" in found.verdict


def test_the_verdict(x, tmp_path):
    ties = mxgold.gen("ties", "te-nvfp4")[0].x
    kernel = mxgold.quantize(ties, "te-nvfp4", set="elem.round=rna")
    text = message(lambda: testing.assert_matches(ties, kernel.codes, kernel.scales, "te-nvfp4", kernel.tensor_scale))
    lines = text.splitlines()
    assert "codes and 0 of" in lines[0] and "differ from te-nvfp4" in lines[0]
    assert lines[1].startswith("first at row ") and ", column " in lines[1]
    assert lines[2] == "Every byte is explained: your kernel does what te-nvfp4 does, except that elem.round is rna (nearest, ties away from zero)."
    assert lines[3] == ""
    done = repeat(text)
    assert done.returncode == 1 and "codes that differ" in done.stdout
    saved = mxgold.load(next(tmp_path.glob(".mxgold/*/expected.safetensors")))
    assert (saved.rows, saved.cols) == (1, 16)  # one block
    assert mxgold.diff(mxgold.quantize(ties, "te-nvfp4"), kernel).codes_differ > 2
    assert testing.failures[-1].verdict == tuple(lines[:3])


@pytest.mark.parametrize("preset", PRESETS[:5])
@pytest.mark.parametrize("where", [(63, 255), (17, 100)])
def test_the_cut_fails_by_itself(preset, where, x, tmp_path):
    q = mxgold.quantize(x, preset)
    codes = q.unpack()
    codes[where] ^= 1
    text = message(lambda: testing.assert_matches(x, codes, q.scales, preset, q.tensor_scale, seconds=0.2))
    assert f"first at row {where[0]}, column {where[1]}:" in text
    assert repeat(text).returncode == 1
    saved = mxgold.load(next(tmp_path.glob(".mxgold/*/expected.safetensors")))
    assert saved.rows * saved.cols <= 256
    top, left = where[0] - where[0] % saved.rows, where[1] - where[1] % saved.cols
    assert np.array_equal(saved.unpack(), q.unpack()[top : top + saved.rows, left : left + saved.cols])


def test_scales_alone(x):
    q = mxgold.quantize(x, "ocp-mxfp4")
    zero = x.copy()
    zero[5] = 0
    q = mxgold.quantize(zero, "ocp-mxfp4")
    scales = q.scales.copy()
    scales[5, 2] = 9  # the scale of a block of zeros, so no code changes
    text = message(lambda: testing.assert_matches(zero, q.codes, scales, "ocp-mxfp4", seconds=0.2))
    assert text.startswith("0 of 16384 codes and 1 of 512 scales differ") and repeat(text).returncode == 1


def test_stochastic_rounding_is_cut_to_the_whole(x):
    q = mxgold.quantize(x[:4], "ocp-mxfp4", set="elem.round=sr", seed=3)
    codes = q.unpack()
    codes[3, 200] ^= 1
    text = message(lambda: testing.assert_matches(x[:4], codes, q.scales, "ocp-mxfp4", set="elem.round=sr", seed=3, seconds=0.2))
    assert repeat(text).returncode == 1


def test_sizes(x):
    q = mxgold.quantize(x, "ocp-mxfp4")
    assert "sizes" in message(lambda: testing.assert_matches(x, q.codes[:3], q.scales, "ocp-mxfp4"))
    assert "sizes" in message(lambda: testing.assert_matches(x, q.codes, q.scales[:, :3], "ocp-mxfp4"))
    with pytest.raises(mxgold.SpecError):
        testing.assert_matches(x, q.codes, q.scales, "ocp-mxfp5")
    with pytest.raises(mxgold.SpecError):
        testing.assert_matches(x, q.codes, q.scales, "ocp-mxfp4", layout="no-such")


def test_nan_and_zeros(x):
    x[2, 2] = np.nan
    q = mxgold.quantize(x, "ocp-mxfp4")
    codes = q.unpack()
    dead = np.argwhere(q.scales == 255)
    if len(dead):
        codes[dead[0][0], dead[0][1] * 32 + 1] ^= 1
        testing.assert_matches(x, codes, q.scales, "ocp-mxfp4")
        message(lambda: testing.assert_matches(x, codes, q.scales, "ocp-mxfp4", nan="bits", seconds=0.2))
    codes = q.unpack()
    codes[codes == 8] = 0
    testing.assert_matches(x, codes, q.scales, "ocp-mxfp4", zeros="equal")
    message(lambda: testing.assert_matches(x, codes, q.scales, "ocp-mxfp4", seconds=0.2))


def test_allowed(x):
    ties = mxgold.gen("ties", "ocp-mxfp4")[0].x
    kernel = mxgold.quantize(ties, "ocp-mxfp4", set="elem.round=rna")
    testing.assert_matches(ties, kernel.codes, kernel.scales, "ocp-mxfp4", allow="elem.round=rna")
    testing.assert_matches(ties, kernel.codes, kernel.scales, "ocp-mxfp4", allow=["elem.round=rtz", {"elem.round": "rna"}])
    message(lambda: testing.assert_matches(ties, kernel.codes, kernel.scales, "ocp-mxfp4", allow="elem.round=rtz", seconds=0.2))
    with pytest.raises(mxgold.SpecError, match=r"^allow: "):  # refused while the kernel is right, too
        testing.assert_matches(ties, *(lambda q: (q.codes, q.scales))(mxgold.quantize(ties, "ocp-mxfp4")), "ocp-mxfp4", allow="elem.rond=rna")
    for allow in ("elem.rond=rna", "rows%32=31: inputt <- zero", ["elem.round=rna", "elem.round=rnb"], ""):
        with pytest.raises(mxgold.Error, match=r"^allow: "):
            testing.assert_matches(ties, *(lambda q: (q.codes, q.scales))(mxgold.quantize(ties, "ocp-mxfp4")), "ocp-mxfp4", allow=allow)
        with pytest.raises(mxgold.Error, match=r"^allow: "):
            testing.explain(lambda x: mxgold.quantize(x, "ocp-mxfp4"), "ocp-mxfp4", suites=["ties"], allow=allow)
    unknown = {"allow": ["elem.round=rna", "sign lots"]}
    for refuse in (lambda: testing.assert_matches(ties, kernel.codes, kernel.scales, "ocp-mxfp4", **unknown), lambda: testing.explain(len, **unknown)):
        with pytest.raises(mxgold.SpecError, match=r"^allow: 'sign lots' is no known bug .*, nearest: sign lost, ") as caught:
            refuse()
        assert caught.value.argument == "allow" and caught.value.nearest[0] == "sign lost"
    fault = "rows%32=31: input <- zero"
    wrong = mxgold._verify.faulty(x, mxgold.Spec("te-nvfp4"), [fault])
    assert not mxgold.diff(mxgold.quantize(x, "te-nvfp4"), wrong).equal
    testing.assert_matches(x, wrong.codes, wrong.scales, "te-nvfp4", allow=["elem.round=rna", fault])
    message(lambda: testing.assert_matches(x, wrong.codes, wrong.scales, "te-nvfp4", allow="rows%32=30: input <- zero", seconds=0.2))


def test_allowed_keys_go_together(x):
    keys = ["elem.round=rtz", "elem.zero_sign=drop_all"]
    kernel = mxgold.quantize(x, "ocp-mxfp4", set=" ".join(keys))
    for allow in (" ".join(keys), keys, ["elem.round=rna", *keys]):
        testing.assert_matches(x, kernel.codes, kernel.scales, "ocp-mxfp4", allow=allow)
        assert testing.explain(lambda x: mxgold.quantize(x, "ocp-mxfp4", set=" ".join(keys)), "ocp-mxfp4", allow=allow, suites=["ties"]).ok
    for alone in keys:
        message(lambda alone=alone: testing.assert_matches(x, kernel.codes, kernel.scales, "ocp-mxfp4", allow=alone, seconds=0.2))


def test_an_allowed_bug_is_confirmed_over_the_preset():
    """A deviation passes if fresh inputs confirm it, and over the preset that was asked for."""

    def sign_lost(x):
        return mxgold.quantize(np.abs(x), "ocp-mxfp4")

    def worse_elsewhere(x):
        q = sign_lost(x)
        if x.shape == (48, 192):
            q.codes[...] ^= 5
        return q

    how = {"preset": "ocp-mxfp4", "suites": ["random"]}
    right = testing.explain(sign_lost, allow="sign lost", **how)
    assert (right.identity.bug["name"], right.identity.bug["preset"]) == ("sign lost", "ocp-mxfp4") and right.ok and right.confirmed
    assert not testing.explain(sign_lost, **how).ok
    wrong = testing.explain(worse_elsewhere, allow="sign lost", **how)
    assert not wrong.ok and not wrong.confirmed
    assert not testing.explain(lambda x: mxgold.quantize(np.abs(x), "torchao-rceil"), allow="sign lost", **how).ok


@pytest.mark.parametrize("preset", ["ocp-mxfp4", "te-nvfp4"])
def test_a_bug_is_said_over_the_preset_that_was_asked_for(preset, x):
    """Another preset with the same bug gives the same bytes, and fewer of its plain ones differ."""
    q = mxgold.quantize(x, preset)
    text = message(lambda: testing.assert_matches(x, q.unpack() & 7, q.scales, preset, q.tensor_scale))
    assert text.splitlines()[2].startswith(f"Your kernel does what {preset} does, except that it drops the signs of elements.")


def test_a_message_speaks_of_the_kernel(x):
    """A reader of a failed test has no A and B."""
    q = mxgold.quantize(x, "te-nvfp4")
    codes = q.unpack() ^ 1
    text = message(lambda: testing.assert_matches(x, codes, q.scales, "te-nvfp4", q.tensor_scale * 2, seconds=0.2))
    assert "in te-nvfp4" in text.splitlines()[1] and ": your kernel's is 2^1 times te-nvfp4's" in text.splitlines()[1]
    assert "expected code  your code" in text and not re.search(r"\b[AB]\b", text)
    assert repeat(text).stdout.split("\n\n")[0] in text and "in your kernel" in repeat(text).stdout
    codes[3, 5] = 0x31
    with pytest.raises(mxgold.DataError, match=r"^codes: 0x31 in row 3, column 5, expected a code of 4 bits, 0 to 15$") as caught:
        mxgold.diff(q, codes=codes, scales=q.scales)
    assert caught.value.argument == "codes" and caught.value.index == (3, 5)
    lines = message(lambda: testing.assert_matches(x, codes, q.scales, "te-nvfp4")).splitlines()
    assert lines == ["the kernel gave what is no code of te-nvfp4", str(caught.value), "no code was compared"]
    for wrong, said in (({"codes": q.codes[:3]}, "codes: 384 bytes, expected 8192"), ({"scales": q.scales[:3]}, "scales: 48 values of u8, expected 64 x 16")):
        with pytest.raises(mxgold.ShapeError) as caught:
            mxgold.diff(q, **{"codes": q.codes, "scales": q.scales, **wrong})
        assert str(caught.value) == said and [caught.value.argument] == list(wrong)


class Stated:
    """An array of bytes that says a dtype, as one of ml_dtypes or PyTorch does."""

    def __init__(self, array, dtype):
        self.__array_interface__, self.array, self.dtype = array.__array_interface__, array, dtype


def test_a_dtype_of_another_format(x):
    """Codes and scales whose own dtype is of another format than the preset's are refused; the format's own and bytes are taken."""
    q, n = mxgold.quantize(x, "ocp-mxfp8-e4m3"), mxgold.quantize(x, "te-nvfp4")
    ways = (
        lambda codes, scales, **how: testing.assert_matches(x, codes, scales, **how),
        lambda codes, scales, **how: mxgold.diff(mxgold.quantize(x, **how), codes=codes, scales=scales),
        lambda codes, scales, **how: mxgold.Quantized.of(codes, scales, shape=x.shape, **how),
        lambda codes, scales, **how: testing.explain(lambda x: (codes, scales), suites=["special"], **how),
    )
    cases = (
        ("codes", Stated(q.codes, "float8_e5m2"), q.scales, "ocp-mxfp8-e4m3", "float8_e4m3fn or uint8 for codes of e4m3"),
        ("codes", Stated(n.codes, "torch.float4_e2m1fn_x2"), q.scales, "ocp-mxfp8-e4m3", "float8_e4m3fn or uint8 for codes of e4m3"),
        ("codes", Stated(n.codes, "float8_e4m3fn"), n.scales, "te-nvfp4", "float4_e2m1fn or uint8 for codes of e2m1"),
        ("scales", n.codes, Stated(n.scales, "torch.float8_e8m0fnu"), "te-nvfp4", "float8_e4m3fn or uint8 for codes of e4m3"),
    )
    for argument, codes, scales, preset, wanted in cases:
        for way in ways:
            with pytest.raises(mxgold.DtypeError, match=rf"{argument}: dtype \w+, expected {wanted}$"):
                way(codes, scales, preset=preset)
    testing.assert_matches(x, Stated(q.codes, "float8_e4m3fn"), Stated(q.scales, "float8_e8m0fnu"), preset="ocp-mxfp8-e4m3")
    testing.assert_matches(x, Stated(n.codes, "torch.float4_e2m1fn_x2"), Stated(n.scales, "float8_e4m3fn"), preset="te-nvfp4")


def test_codes_in_wide_integers(x):
    """One an element, as a kernel's own debugging output has them."""
    q = mxgold.quantize(x, "ocp-mxfp4")
    for dtype in (np.int16, np.uint16, np.int32, np.int64, np.uint64):
        codes = q.unpack().astype(dtype)
        testing.assert_matches(x, codes, q.scales, "ocp-mxfp4")
        assert mxgold.identify(x, codes, q.scales, quick=True).exact and mxgold.diff(q, codes=codes, scales=q.scales).equal
        codes[3, 5] ^= codes.dtype.type(1)
        text = message(lambda codes=codes: testing.assert_matches(x, codes, q.scales, "ocp-mxfp4", seconds=0.2))
        assert "first at row 3, column 5:" in text and "The smallest failing part is rows 3..3" in text
        codes[3, 5] = 300
        with pytest.raises(mxgold.DataError, match=r"^codes: value 773 is 300, expected a code of one byte$") as caught:
            testing.assert_matches(x, codes, q.scales, "ocp-mxfp4")
        assert caught.value.index == (3 * 256 + 5,)
    testing.assert_matches(x, q.codes.view(np.int32), q.scales, "ocp-mxfp4")  # packed: eight codes a word


def test_scales_turned_over(x):
    q = mxgold.quantize(x, "ocp-mxfp4")
    text = message(lambda: testing.assert_matches(x, q.codes, np.ascontiguousarray(q.scales.T), "ocp-mxfp4", seconds=0.5))
    assert "scales differ from ocp-mxfp4" in text.splitlines()[0]
    assert text.splitlines()[2] == "Your kernel gives the bytes of ocp-mxfp4 in another order: the scales are transposed."
    assert repeat(text).returncode == 1


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_seconds(x, seconds):
    q = mxgold.quantize(x, "ocp-mxfp4")
    for call in (testing.assert_matches, mxgold.identify):
        with pytest.raises(mxgold.Error, match=r"^seconds: .*, expected more than 0$"):
            call(x, q.codes, q.scales, seconds=seconds)
    with pytest.raises(mxgold.Error, match=r"^seconds: "):
        testing.explain(lambda x: mxgold.quantize(x, "ocp-mxfp4", set="elem.round=rna"), suites=["ties"], seconds=seconds)
    with pytest.raises(mxgold.Error, match=r"^seconds: "):  # while the kernel is right, too
        testing.explain(lambda x: mxgold.quantize(x, "ocp-mxfp4"), "ocp-mxfp4", suites=["ties"], seconds=seconds)


def test_a_search_without_time(x, monkeypatch):
    """A failure is reported even if there was no time to look for the rule."""
    q = mxgold.quantize(x, "ocp-mxfp4")

    def late(*unused, **how):
        raise mxgold._errors.OutOfTimeError("seconds: 0.01: the time ran out")

    monkeypatch.setattr(testing._matches, "identify_beside", late)
    text = message(lambda: testing.assert_matches(x, q.codes ^ 1, q.scales, "ocp-mxfp4", seconds=0.01, allow="sign lost"))
    assert text.splitlines()[2] == "Which rule the kernel follows was not found out: its time, seconds=0.01, ran out before a spec was tried."
    assert repeat(text).returncode == 1
    with pytest.raises(mxgold.Error, match=r"^seconds: 1e-09: "):
        monkeypatch.undo()
        mxgold.identify(np.tile(x, (4, 4)), np.tile(q.codes ^ 1, (4, 4)), np.tile(q.scales, (4, 4)), seconds=1e-9)


def test_given_tensor_scale(x):
    q = mxgold.quantize(x, "te-nvfp4", given_tensor_scale=77.0)
    testing.assert_matches(x, q.codes, q.scales, "te-nvfp4", q.tensor_scale, given_tensor_scale=77.0)
    message(lambda: testing.assert_matches(x, q.codes, q.scales, "te-nvfp4", q.tensor_scale, seconds=0.2))


def test_torch(x):
    torch = pytest.importorskip("torch")
    narrow = torch.from_numpy(x).bfloat16()
    q = mxgold.quantize(narrow, "te-nvfp4", like=narrow)
    testing.assert_matches(narrow, q.codes, q.scales, "te-nvfp4", q.tensor_scale)
    codes = q.codes.clone()
    codes[4, 4] ^= 1
    text = message(lambda: testing.assert_matches(narrow, codes, q.scales, "te-nvfp4", q.tensor_scale, seconds=0.2))
    assert repeat(text).returncode == 1


def test_product(x, tmp_path):
    a, b = mxgold.quantize(x, "ocp-mxfp8-e4m3"), mxgold.quantize(x[:48] * 3, "ocp-mxfp8-e4m3")
    d = mxgold.gemm(a, b)
    testing.assert_product(a, b, d)
    testing.assert_product(a, b, d, accum="f32_block")
    testing.assert_product(a, b, mxgold.gemm(a, b, "f32_seq"), bound=True)
    text = message(lambda: testing.assert_product(a, b, mxgold.gemm(a, b, "f32_seq"), accum="exact"))
    assert "outputs differ from exact" in text.splitlines()[0] and text.splitlines()[1].startswith("first at row ")
    assert repeat(text).returncode == 1
    assert mxgold.load(next(tmp_path.glob(".mxgold/*/a.safetensors"))).rows == 1
    bias = np.arange(48, dtype=np.float32)
    testing.assert_product(a, b, mxgold.gemm(a, b, bias=bias, alpha=0.5), bias=bias, alpha=0.5)
    text = message(lambda: testing.assert_product(a, b, d, bias=bias))
    assert repeat(text).returncode == 1
    assert "shape" in message(lambda: testing.assert_product(a, b, d[:3]))


def test_linear(x):
    rng = np.random.default_rng(3)
    w, dy = rng.standard_normal((48, 256)).astype(np.float32), rng.standard_normal((64, 48)).astype(np.float32)
    y, dx, dw = mxgold.linear(x, w, dy, recipe="recipe-nvfp4", seed=3)
    testing.assert_linear(x, w, dy, y=y, dx=dx, dw=dw, recipe="recipe-nvfp4", seed=3)
    for name, value in (("y", y), ("dx", dx), ("dw", dw)):
        wrong = value.copy()
        wrong[7, 3] += 1
        text = message(lambda name=name, wrong=wrong: testing.assert_linear(x, w, dy, **{name: wrong}, recipe="recipe-nvfp4", seed=3))
        assert f"1 of {value.size} outputs of {name} differ" in text and f"first in {name} at row 7, column 3" in text
        assert repeat(text).returncode == 1


def test_linear_with_a_bias(x):
    rng = np.random.default_rng(4)
    w, dy = rng.standard_normal((48, 256)).astype(np.float32), rng.standard_normal((64, 48)).astype(np.float32)
    how = {"recipe": "recipe-nvfp4", "bias": rng.standard_normal(48).astype(np.float32)}
    y, dx, dw = mxgold.linear(x, w, dy, **how)
    testing.assert_linear(x, w, dy, y=y, dx=dx, dw=dw, **how)
    for name, value in (("y", y), ("dx", dx), ("dw", dw)):
        wrong = value.copy()
        wrong[7, 3] += 1
        text = message(lambda name=name, wrong=wrong: testing.assert_linear(x, w, dy, **{name: wrong}, **how))
        assert f"1 of {value.size} outputs of {name} differ" in text and "nothing more is known" not in text
        assert repeat(text).returncode == 1
    text = message(lambda: testing.assert_linear(x, w, y=mxgold.linear(x, w, recipe="recipe-nvfp4").y, **how))
    assert "nothing more is known" not in text and repeat(text).returncode == 1


def test_explain():
    found = testing.explain(lambda x: mxgold.quantize(x, "te-nvfp4"), "te-nvfp4", suites=["ties", "special"])
    assert found.ok and found.confirmed and found.preset == "te-nvfp4"

    def rounds_away(x):
        q = mxgold.quantize(x, "te-nvfp4", set="elem.round=rna")
        return q.codes, q.scales, q.tensor_scale

    found = testing.explain(rounds_away, "te-nvfp4", suites=["ties", "random"])
    assert not found.ok and found.confirmed and found.spec == mxgold.Spec("te-nvfp4", elem_round="rna")
    assert testing.explain(rounds_away, "te-nvfp4", allow="elem.round=rna", suites=["ties"]).ok
    with pytest.raises(mxgold.DtypeError):
        testing.explain(lambda x: x, "te-nvfp4")


def test_an_exception_of_the_kernel_is_the_kernels():
    """A race of which the seed is a sum of the input: int() of an infinite sum raises."""

    def racing(x):
        q = mxgold.quantize(x, "ocp-mxfp4")
        bad = np.random.default_rng(int(np.nansum(np.abs(x)))).random(q.scales.shape) < 0.001
        return np.where(np.repeat(bad, 16, 1), 0, q.codes).astype(np.uint8), q.scales

    for asked in ({"preset": "ocp-mxfp4"}, {"spec": mxgold.Spec("te-nvfp4", elem_round="rna", seed=5)}):
        with pytest.raises(mxgold.KernelError, match=r"^kernel: raised OverflowError: cannot convert float infinity to integer; on the input mxgold") as caught:
            testing.explain(racing, **asked, suites=["special"], seed=7)
        assert isinstance(caught.value.__cause__, OverflowError)
        assert "\n" not in str(caught.value) and caught.value.argument == "kernel" and caught.value.case.suite == "special"
        code = re.search(r"on the input (.*) \(\d+ x \d+, magnitudes up to [0-9.e+]+( and NaN)? and Inf\)$", str(caught.value))[1]
        again = eval(code, {"mxgold": mxgold})  # what the message names is the input
        assert np.array_equal(again, caught.value.x, equal_nan=True)
        assert np.isinf(again).any()

    calls = []

    def fails_on_fresh(x):
        calls.append(x)
        if len(calls) > len(testing.cases("ocp-mxfp4", ["ties"])):
            raise mxgold.ShapeError("of the kernel's own")
        return mxgold.quantize(x, "ocp-mxfp4")

    with pytest.raises(mxgold.KernelError, match=r"raised ShapeError: of the kernel's own") as caught:
        testing.explain(fails_on_fresh, "ocp-mxfp4", suites=["ties"])
    code = re.search(r"on the input (.*) \(48 x 192, magnitudes up to [0-9.e+]+\)$", str(caught.value))[1]
    assert np.array_equal(eval(code, {"mxgold": mxgold}), caught.value.x)


def test_explain_of_a_kernel_that_writes_in_its_input():
    def in_place(x):
        q = mxgold.quantize(x, "ocp-mxfp4")
        x[:] = 0
        return q

    assert testing.explain(in_place, "ocp-mxfp4", suites=["ties"]).ok


@testing.cases("te-nvfp4", suites=["ties", "special"])
def test_cases(x):
    assert x.dtype == np.float32 and x.ndim == 2


class UnderUnittest(unittest.TestCase):
    def test_it(self):
        for case in testing.cases("te-nvfp4", suites=["ties"]):
            want = case.expected
            testing.assert_matches(case.x, want.codes, want.scales, "te-nvfp4")
            with self.assertRaises(AssertionError):
                testing.assert_matches(case.x, want.codes ^ 1, want.scales, "te-nvfp4", seconds=0.2)


def test_plugin(tmp_path):
    (tmp_path / "test_kernel.py").write_text(
        "import mxgold, numpy as np\n"
        "x = np.ones((2, 32), np.float32)\n"
        "q = mxgold.quantize(x, 'ocp-mxfp4')\n"
        "def test_right(): mxgold.testing.assert_matches(x, q.codes, q.scales, 'ocp-mxfp4')\n"
        "def test_wrong(): mxgold.testing.assert_matches(x, q.codes ^ 1, q.scales, 'ocp-mxfp4', seconds=0.2)\n"
    )
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_kernel.py"]
    done = subprocess.run([*words, "--mxgold-report=report.html", "--mxgold-save=kept"], capture_output=True, text=True, cwd=tmp_path)
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    page = (tmp_path / "report.html").read_text()
    assert "test_wrong" in page and "mxgold diff" in page and "http" not in page.replace("http-equiv", "").replace("http://www.w3.org", "")
    assert len(list((tmp_path / "kept").glob("test_wrong-*/command.txt"))) == 1 and not (tmp_path / ".mxgold").exists()
    plain = subprocess.run([*words, "--co"], capture_output=True, text=True, cwd=tmp_path)
    assert "2 tests collected" in plain.stdout


KERNEL_TESTS = """
import mxgold, numpy as np, pytest
x = np.ones((2, 32), np.float32)
q = mxgold.quantize(x, "ocp-mxfp4")
def wrong(): mxgold.testing.assert_matches(x, q.codes ^ 1, q.scales, "ocp-mxfp4", seconds=0.2)
def test_right(): mxgold.testing.assert_matches(x, q.codes, q.scales, "ocp-mxfp4")
def test_expected():
    with pytest.raises(AssertionError): wrong()
"""


def run_plugin(folder, source, *options):
    (folder / "test_kernel.py").write_text(source)
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_kernel.py"]
    return subprocess.run([*words, *options], capture_output=True, text=True, cwd=folder)


@pytest.mark.parametrize("options", [(), ("-n", "2")])
def test_the_report_counts_tests_that_fail(tmp_path, options):
    """An assertion that a test expects is no failure; one in a worker of pytest-xdist is."""
    if options:
        pytest.importorskip("xdist")
    done = run_plugin(tmp_path, KERNEL_TESTS, "--mxgold-report=report.html", *options)
    assert "2 passed" in done.stdout, done.stdout + done.stderr
    assert "Every assertion of mxgold.testing passed." in (tmp_path / "report.html").read_text()
    done = run_plugin(tmp_path, KERNEL_TESTS + "def test_wrong(): wrong()\n", "--mxgold-report=report.html", "--mxgold-save=kept", *options)
    assert "1 failed, 2 passed" in done.stdout, done.stdout + done.stderr
    page = (tmp_path / "report.html").read_text()
    assert "1 failed assertion<" in page and "test_kernel.py::test_wrong" in page and "test_expected" not in page
    assert len(list((tmp_path / "kept").glob("test_wrong-*/command.txt"))) == 1


def test_names_that_cannot_be_written_are_refused_before_the_tests(tmp_path):
    (tmp_path / "test_a.py").write_text("def test_a(): pass\n")
    for options, said in (
        (("--mxgold-save", "test_a.py"), "--mxgold-save: test_a.py is a file, expected a folder: write --mxgold-save=FOLDER"),
        (("--mxgold-report=no/such/r.html",), "--mxgold-report: no/such is no folder, expected one for r.html"),
    ):
        done = run_plugin(tmp_path, KERNEL_TESTS, *options)
        assert done.returncode == 4 and done.stderr.strip() == f"ERROR: {said}" and "passed" not in done.stdout


def test_the_verdict_where_nothing_can_be_saved(x, tmp_path):
    (tmp_path / ".mxgold").write_text("a file")
    q = mxgold.quantize(x, "ocp-mxfp4")
    lines = message(lambda: testing.assert_matches(x, q.codes ^ 1, q.scales, "ocp-mxfp4", seconds=0.2)).splitlines()
    assert "codes and 0 of 512 scales differ from ocp-mxfp4" in lines[0] and lines[1].startswith("first at row 0, column ")
    assert lines[-1] == "The case was not saved: Not a directory: .mxgold." and "To repeat it" not in lines[-2]
    d = mxgold.gemm(q, q)
    lines = message(lambda: testing.assert_product(q, q, d + 1, accum="f32_block")).splitlines()
    assert "outputs differ from f32_block" in lines[0] and lines[-1] == "The case was not saved: Not a directory: .mxgold."
    assert testing.failures[-1].arguments == () and (tmp_path / ".mxgold").read_text() == "a file"
