"""Tests that diff, identify, diff_gemm, probe, gemm, mma, linear and gen give what the program gives for the same files."""

from __future__ import annotations

import numpy as np
import pytest

import mxgold
from mxgold import _core, _program


def test_diff(x):
    q = mxgold.quantize(x, "te-nvfp4")
    assert mxgold.diff(q, codes=q.codes, scales=q.scales, tensor_scale=q.tensor_scale).equal
    assert mxgold.diff(q, q).equal
    codes = q.unpack()
    assert mxgold.diff(q, codes=codes, scales=q.scales).equal  # one code to a byte
    codes[3, 5] ^= 1
    found = mxgold.diff(q, codes=codes, scales=q.scales, x=x)
    assert (found.equal, found.codes_differ, found.scales_differ, found.n_codes, found.n_scales) == (False, 1, 0, x.size, x.size // 16)
    assert found.examples[0]["row"] == 3 and found.examples[0]["column"] == 5
    assert mxgold.diff(q, codes=q.codes, scales=q.scales, tensor_scale=1.0).tensor_scales_differ == 1
    rounded = mxgold.quantize(x, "te-nvfp4", set="elem.round=rtz")
    found = mxgold.diff(q, rounded, x=x, explain=True)
    assert not found.equal and "elem.round is rtz" in found.verdict and "smaller" in found.patterns[0]


def test_diff_reads_what_kernels_store(x):
    q = mxgold.quantize(x, "ocp-mxfp4")
    odd = mxgold.quantize(x[:61, :160], "ocp-mxfp4")
    for layout in mxgold.layouts():
        assert mxgold.diff(q, codes=q.codes, scales=q.scales_in(layout), layout=layout).equal, layout
        padded = odd.scales_in(layout)
        if layout == "row" or padded.size > odd.scales.size:  # the size with padding tells the layout
            assert mxgold.diff(odd, codes=odd.codes, scales=padded).equal, layout
    numbers = mxgold.decode(q.scales, "e8m0")
    assert mxgold.diff(q, codes=q.codes, scales=numbers).equal
    assert mxgold.diff(q, codes=q.unpack().astype(np.uint8), scales=q.scales.astype(np.int32)).equal


def test_diff_of_nans():
    x = np.ones((2, 32), np.float32)
    x[1, 3] = np.nan
    q = mxgold.quantize(x, "ocp-mxfp8-e4m3")
    codes = q.codes.copy()
    codes[1, 7] ^= 1  # under a NaN scale, or beside a NaN: not compared
    if q.scales[1, 0] == 255:
        assert mxgold.diff(q, codes=codes, scales=q.scales).equal
        assert not mxgold.diff(q, codes=codes, scales=q.scales, nan_bits=True).equal
    zeros = mxgold.quantize(np.float32([[-0.0] * 32, [1] * 32]), "ocp-mxfp4")
    other = zeros.unpack() & 7
    assert not mxgold.diff(zeros, codes=other, scales=zeros.scales).equal
    assert mxgold.diff(zeros, codes=other, scales=zeros.scales, equal_zeros=True).equal


def test_identify(x):
    kernel = mxgold.quantize(x, "ocp-mxfp4", set="elem.round=rna scale.rule=even")
    found = mxgold.identify(x, kernel.codes, kernel.scales, quick=True)
    assert found.exact and found.spec.elem_round in ("rna", "rne") and found.codes_differ == 0
    assert mxgold.quantize(x, spec=found.spec).codes.tobytes() == kernel.codes.tobytes()
    assert found.reproduce.startswith("mxgold quantize IN -o OUT.safetensors --preset ")
    right = mxgold.quantize(x, "te-nvfp4")
    found = mxgold.identify(x, right.codes, right.scales, right.tensor_scale, expect="te-nvfp4")
    assert found.exact and found.expected and found.preset == "te-nvfp4" and found.spec == mxgold.Spec("te-nvfp4")
    found = mxgold.identify(x, right.unpack(), right.scales, right.tensor_scale, expect="ocp-mxfp4", quick=True)
    assert found.exact and found.expected is False and mxgold.quantize(x, spec=found.spec).codes.tobytes() == right.codes.tobytes()


def test_identify_from_values(x):
    q = mxgold.quantize(x, "ocp-mxfp4")
    found = mxgold.identify(x, dequantized=q.dequantize(), quick=True)
    assert found.exact and np.array_equal(mxgold.quantize(x, spec=found.spec).dequantize(), q.dequantize())


@pytest.mark.parametrize("accum", ["f32_block", "exact", "f32_seq", "hopper_fp8_wgmma"])
def test_gemm_is_the_programs(accum, x, tmp_path):
    a, b = mxgold.quantize(x, "ocp-mxfp8-e4m3"), mxgold.quantize(x[::-1][:48], "ocp-mxfp8-e4m3")
    c, bias = np.arange(64 * 48, dtype=np.float32).reshape(64, 48), np.linspace(-1, 1, 48, dtype=np.float32)
    a.save(tmp_path / "a.safetensors")
    b.save(tmp_path / "b.safetensors")
    mxgold.save(tmp_path / "c.npy", c)
    mxgold.save(tmp_path / "bias.npy", bias)
    words = ["--accum", accum, "--c", tmp_path / "c.npy", "--bias", tmp_path / "bias.npy", "--alpha", "0.5", "--beta", "-2"]
    _program.run(["gemm", tmp_path / "a.safetensors", tmp_path / "b.safetensors", "-o", tmp_path / "d.npy", *words])
    d = mxgold.gemm(a, b, accum, c=c, bias=bias, alpha=0.5, beta=-2)
    assert d.dtype == np.float32 and d.tobytes() == mxgold.load(tmp_path / "d.npy")[""].tobytes()


def test_gemm_by_hand():
    a = mxgold.quantize(np.float32([[1, 2] + [0] * 30]), "ocp-mxfp4")
    b = mxgold.quantize(np.float32([[3, 4] + [0] * 30, [-1, 0.5] + [0] * 30]), "ocp-mxfp4")
    assert mxgold.gemm(a, b).tolist() == [[11, 0]]
    assert mxgold.gemm(a, b, out="float16").dtype == np.float16
    stacked = mxgold.quantize(np.repeat(a.dequantize(), 2, 0), "ocp-mxfp4")
    assert mxgold.gemm(stacked, b, batch=2).tolist() == [[[11]], [[0]]]


def test_answers_show_themselves_in_a_notebook(x):
    """Judgement, Probe and Explanation have tables, and what a kernel is called by is escaped."""
    a = mxgold.quantize(x, "ocp-mxfp4")
    page = mxgold.diff_gemm(a, a, mxgold.gemm(a, a) * 2, accum="f32_block")._repr_html_()
    assert "not equal" in page and "<td" in page and "4096" in page and "f32_block" in page
    unit = "hopper/mma_m16n8k16_f32_f16_f16_f32"
    page = mxgold.Probe(True, "fused:L=16", "fits <all>", (unit,))._repr_html_()
    assert unit in page and "fused:L=16" in page and "fits &lt;all&gt;" in page
    found = mxgold.testing.explain(lambda x: mxgold.quantize(x, "ocp-mxfp4", set="elem.round=rna"), "ocp-mxfp4", suites=["ties"])
    assert "elem.round is rna" in found._repr_html_() and ">confirmed<" in found._repr_html_()


def test_diff_gemm(x):
    a = mxgold.quantize(x, "ocp-mxfp4")
    d = mxgold.gemm(a, a)
    assert mxgold.diff_gemm(a, a, d).equal and mxgold.diff_gemm(a, a, d, accum="f32_block").equal
    wrong = d.copy()
    wrong[5, 7] *= 2
    found = mxgold.diff_gemm(a, a, wrong)
    assert not found.equal and found.differ == 1 and found.examples[0]["row"] == 5 and found.examples[0]["column"] == 7
    assert "ransposed" in mxgold.diff_gemm(a, mxgold.quantize(x * 2 + 1, "ocp-mxfp4"), mxgold.gemm(a, mxgold.quantize(x * 2 + 1, "ocp-mxfp4")).T.copy()).verdict


def test_mma(tmp_path):
    unit = "hopper/mma_m16n8k16_f32_f16_f16_f32"
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((3, 16, 16)).astype(np.float16), rng.standard_normal((3, 8, 16)).astype(np.float16)
    c = rng.standard_normal((3, 16, 8)).astype(np.float32)
    mxgold.save(tmp_path / "i.safetensors", {"a": a.view(np.uint16), "b": b.view(np.uint16), "c": c.view(np.uint32)})
    _program.run(["mma", tmp_path / "i.safetensors", "--model", unit, "-o", tmp_path / "o.safetensors"])
    want = mxgold.load(tmp_path / "o.safetensors")["d"]
    d = mxgold.mma(a.view(np.uint16), b.view(np.uint16), c.view(np.uint32), model=unit)
    assert d.dtype == np.uint32 and np.array_equal(d, want)
    assert np.array_equal(mxgold.mma(a, b, c, model=unit), want)  # floats seen as bits
    assert np.allclose(d.view(np.float32), np.einsum("tmk,tnk->tmn", a.astype(float), b.astype(float)) + c, atol=1e-3)
    assert np.array_equal(mxgold.mma(a[0], b[0], c[0], model=unit), want[0])


def test_linear_is_the_programs(x, tmp_path):
    rng = np.random.default_rng(3)
    w, dy = rng.standard_normal((48, 256)).astype(np.float32), rng.standard_normal((64, 48)).astype(np.float32)
    for name, array in (("x", x), ("w", w), ("dy", dy)):
        mxgold.save(tmp_path / f"{name}.npy", array)
    for recipe in ("recipe-nvfp4", "recipe-ocp"):
        words = ["linear", *(tmp_path / f"{n}.npy" for n in ("x", "w", "dy")), "--recipe", recipe, "--seed", "5", "--step", "3", "--layer", "2"]
        _program.run([*words, "-o", tmp_path / "o.safetensors"])
        want = {n: a for n, _, a in _core.read_file(tmp_path / "o.safetensors")[0]}
        got = mxgold.linear(x, w, dy, recipe=recipe, seed=5, step=3, layer=2, with_operands=True)
        y, dx, dw = got
        assert y.tobytes() == want["y"].tobytes() and dx.tobytes() == want["dx"].tobytes() and dw.tobytes() == want["dw"].tobytes()
        assert got.db.tobytes() == want["db"].tobytes()
        for i, q in enumerate(got.operands, 1):
            if q is not None and f"q{i}.codes" in want:
                assert np.array_equal(q.codes, want[f"q{i}.codes"]) and np.array_equal(q.scales, want[f"q{i}.scales"])
    assert mxgold.linear(x, w, recipe="recipe-ocp").dx is None


def test_probe():
    unit = "ampere/mma_m16n8k16_f32_f16_f16_f32"
    found = mxgold.probe(lambda a, b, c: mxgold.mma(a, b, c, model=unit), like=unit)
    assert found.fits and any("ampere" in name for name in (found.model, *found.names))
    with pytest.raises(mxgold.ShapeError):
        mxgold.probe(lambda a, b, c: c[:1], like=unit)


def test_gen():
    for suite in mxgold.suites():
        cases = mxgold.gen(suite, "te-nvfp4", seed=1)
        assert len(cases) and cases[0].x.dtype == np.float32 and cases[0].expected.rows == cases[0].x.shape[0]
    assert np.array_equal(mxgold.gen("random", "te-nvfp4", seed=1)[0].x, mxgold.gen("random", "te-nvfp4", seed=1)[0].x)
    assert not np.array_equal(mxgold.gen("random", "te-nvfp4", seed=1)[0].x, mxgold.gen("random", "te-nvfp4", seed=2)[0].x)


def test_program(tmp_path):
    import subprocess
    import sys

    said = subprocess.run([sys.executable, "-m", "mxgold", "--version"], capture_output=True, text=True, check=True).stdout
    assert said == f"mxgold {mxgold.__version__}\n"
    assert subprocess.run(["mxgold", "--version"], capture_output=True, text=True, check=True).stdout == said
    assert subprocess.run(["mxgold", "nothing"], capture_output=True).returncode == 2
    with pytest.raises(mxgold.ProgramError, match="nothing"):
        _program.run(["nothing"])


def test_ablate(x, tmp_path):
    table = mxgold.ablate({"a": x, "b": x * x}, ["ocp-mxfp4", "te-nvfp4"])
    assert len(table) == 4 and {row["tensor"] for row in table} == {"a", "b"} and len(table.specs) == 2
    best = max((row for row in table if row["tensor"] == "a"), key=lambda row: row["sqnr_db"])
    q = mxgold.quantize(x, best["spec"]).dequantize().astype(np.float64)
    assert best["mse"] == pytest.approx(np.mean((x - q) ** 2), rel=1e-12)
    table.to_csv(tmp_path / "t.csv")
    lines = (tmp_path / "t.csv").read_text().splitlines()
    assert len(lines) == 5 and lines[0].startswith("tensor,spec,bits") and "<table>" in table._repr_html_()
    assert len(mxgold.ablate(x, "ocp-mxfp4", set={"elem.round": ["rne", "rtz"]})) == 2
    assert [s["spec"] for s in mxgold.ablate(x, mxgold.Spec("te-nvfp4")).specs] == ["te-nvfp4"]
    wrong = [
        (dict(presets=["te-nvpf4"]), "presets", "te-nvfp4"),
        (dict(presets=["ocp-mxfp4"], set={"elem.rond": "rne"}), "set", "elem.round"),
        (dict(presets=["ocp-mxfp4"], set={"elem.round": "rn"}), "set", "rne"),
        (dict(presets=[mxgold.Spec("te-nvfp4", elem_round="sr")]), "presets", None),
    ]
    for how, argument, nearest in wrong:
        with pytest.raises(mxgold.SpecError, match=f"^{argument}: ") as e:
            mxgold.ablate(x, **how)
        assert e.value.argument == argument and (nearest in e.value.nearest if nearest else not e.value.nearest)
    with pytest.raises(mxgold.DtypeError, match=r"^tensors: 'bad': dtype float64") as f:
        mxgold.ablate({"good": x, "bad": x.astype(np.float64)}, "ocp-mxfp4")
    assert f.value.argument == "tensors"
    with pytest.raises(mxgold.DtypeError):
        mxgold.ablate({}, ["ocp-mxfp4"])


def test_which_argument_of_a_product(x):
    q = mxgold.quantize(x, "ocp-mxfp4")
    d = mxgold.gemm(q, q)
    wrong = mxgold.quantize(x, "ocp-mxfp4")
    wrong.spec = None
    for name, pair in (("a", (wrong, q)), ("b", (q, wrong))):
        with pytest.raises(mxgold.DtypeError, match=f"^{name}: its spec is"):
            mxgold.diff_gemm(*pair, d)
    for name in ("block", "k", "m", "n"):
        with pytest.raises(mxgold.Error, match=f"^{name}: "):
            mxgold.probe(lambda *tiles: tiles[2], **{name: 2**31})


def test_cases_go_into_a_folder_that_is_there(tmp_path):
    with pytest.raises(FileNotFoundError) as e:
        mxgold.gen("ties", "ocp-mxfp4", shape=(2, 32)).save(tmp_path / "none" / "c.mxv")
    assert e.value.filename == str(tmp_path / "none" / "c.mxv")
