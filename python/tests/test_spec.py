"""Tests that a Spec can be made from names, texts and mappings, and gives them back."""

from __future__ import annotations

import pickle

import pytest

import mxgold
from mxgold import Spec, SpecError


def test_ways_to_say_the_same():
    one = Spec("te-nvfp4", elem_round="sr", seed=7)
    for other in (
        Spec("te-nvfp4 elem.round=sr seed=7"),
        Spec("te-nvfp4", set={"elem.round": "sr"}, seed=7),
        Spec("te-nvfp4", set="elem.round=sr,seed=7"),
        Spec("te-nvfp4", set=["elem.round=sr", "seed=7"]),
        Spec({"preset": "te-nvfp4", "elem.round": "sr", "seed": 7}),
        Spec('{"preset": "te-nvfp4", "elem.round": "sr", "seed": 7}'),
        Spec("te-nvfp4").replace(elem_round="sr", seed=7),
        Spec(one),
    ):
        assert other == one and hash(other) == hash(one)
    assert one != Spec("te-nvfp4") and one != "te-nvfp4"


def test_prints_as_what_makes_it_again():
    assert repr(Spec("te-nvfp4", elem_round="sr", seed=7)) == "Spec('te-nvfp4', elem_round='sr', seed=7)"
    assert str(Spec("te-nvfp4", elem_round="sr", seed=7)) == "te-nvfp4 elem.round=sr seed=7"
    assert repr(Spec()) == "Spec()"
    for name in mxgold.presets():
        spec = Spec(name)
        assert eval(repr(spec)) == spec and Spec(str(spec)) == spec and str(spec) == name, name


def test_finds_the_preset_again():
    text = Spec("te-nvfp4", elem_round="rtz").text(True)
    assert repr(Spec(text)) == "Spec('te-nvfp4', elem_round='rtz')"
    assert Spec(Spec("mxfp4-e4m3").text(True)).preset is not None
    assert Spec("te-nvfp4", elem_round="rtz").preset is None
    assert Spec("te-nvfp4", seed=9, nibble="high_first", tensor_given=2.0).preset == "te-nvfp4"


def test_keys():
    spec = Spec("te-nvfp4", had_size=16, scale_min=2.0**-6)
    assert spec.scale == "e4m3" and spec["scale"] == "e4m3" and spec.block == "1x16"
    assert spec.had_size == 16 and spec.scale_min == 2.0**-6 and dict(spec)["elem"] == "e2m1"
    assert Spec(dict(spec)) == spec
    assert Spec(block=(2, 16)).block == "2x16" and Spec(flush=True).flush == "on"
    with pytest.raises(AttributeError):
        spec.no_such_key
    with pytest.raises(KeyError):
        spec["no.such.key"]
    with pytest.raises(AttributeError):
        spec.elem = "e4m3"


def test_pickle():
    for spec in (Spec(), Spec("te-nvfp4"), Spec("te-nvfp4", elem_round="sr", seed=2**63)):
        back = pickle.loads(pickle.dumps(spec))
        assert back == spec and repr(back) == repr(spec)


def test_as_a_key():
    assert {Spec("ocp-mxfp4"): 1}[Spec()] == 1


def test_errors():
    with pytest.raises(SpecError, match="te-nvpf4") as e:
        Spec("te-nvpf4")
    assert e.value.nearest == ("te-nvfp4",)
    with pytest.raises(SpecError) as e:
        Spec("te-nvfp4", elem_ruond="sr")
    assert e.value.nearest == ("elem_round",)
    with pytest.raises(SpecError) as e:
        Spec(elem_round="srr")
    assert "sr" in e.value.nearest
    with pytest.raises(SpecError):
        Spec(elem="e4m3", nibble="half_block", scale_rule="hif4")
    with pytest.raises(SpecError):
        mxgold.quantize([1.0], preset="ocp-mxfp4", spec=Spec())
    for bad in (5, b"te-nvfp4", ["te-nvfp4"]):
        with pytest.raises((TypeError, SpecError)):
            Spec(bad)


def test_no_subclass():
    with pytest.raises(TypeError):
        type("Mine", (Spec,), {})


def test_tables():
    presets = mxgold.presets()
    assert len(presets) >= 143 and presets["te-nvfp4"].status == "run" and presets["te-nvfp4"].spec == Spec("te-nvfp4")
    assert mxgold.formats()["e4m3"].largest == 448 and mxgold.formats()["e8m0"].table == "scales"
    assert mxgold.formats()["e2m1"].values().tolist()[:8] == [0, 0.5, 1, 1.5, 2, 3, 4, 6]
    assert "nv128x4" in mxgold.layouts() and "ties" in mxgold.suites() and "recipe-nvfp4" in mxgold.recipes()
    assert {"sign lost", "amax without abs", "transposed"} <= set(mxgold.bugs()) and len(set(mxgold.bugs())) == len(mxgold.bugs()) > 100
    assert "f32_block" in mxgold.models() and "elem.round" in mxgold.keys() and "sr" in mxgold.keys()["elem.round"][1]


def test_what_notebooks_show():
    import numpy as np

    x = np.linspace(-3, 3, 64, dtype=np.float32).reshape(2, 32)
    q = mxgold.quantize(x, "te-nvfp4")
    assert "e4m3" in q.spec._repr_html_() and "<table>" in q._repr_html_() and "0x" in q._repr_html_()
    other = mxgold.quantize(x, "te-nvfp4", set="elem.round=rtz")
    page = mxgold.diff(q, other, x=x)._repr_html_()
    assert "not equal" in page and "smaller" in page and "<script" not in page
    found = mxgold.identify(x, q.codes, q.scales, q.tensor_scale, expect="te-nvfp4")
    assert "te-nvfp4" in found._repr_html_() and "mxgold quantize" in found._repr_html_()
    assert "<table>" not in mxgold.quantize(np.zeros((0, 32), np.float32))._repr_html_() and "plain" in Spec()._repr_html_()


def test_what_notebooks_show_of_numbers(x):
    """Codes and scales of examples are shown as diff prints them, and shares and decibels with the digits that matter."""
    q, other = mxgold.quantize(x, "te-nvfp4"), mxgold.quantize(x, "te-nvfp4", set="elem.round=rtz")
    page = mxgold.diff(q, other, x=x)._repr_html_()
    first = mxgold.diff(q, other, x=x).examples[0]
    assert f">{first['code_a']:#x}<" in page and f">{first['scale_a']:#x}<" in page and "code_a" not in page
    shown = mxgold.ablate(x, ["ocp-mxfp4", "nvfp4"])._repr_html_()
    assert ">4.250<" in shown and "dB behind (95 %)" in shown and shown.count("%<") == 4 and shown.count("..") == 1
    assert all(page.count('<div style="overflow-x:auto') == page.count("<table>") > 0 for page in (page, shown, q._repr_html_()))
