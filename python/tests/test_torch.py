"""Tests that mxgold.torch gives the bits of mxgold.linear() and quantize() through autograd, compile and checkpoint."""

from __future__ import annotations

import re

import numpy as np
import pytest
from conftest import ROOT

import mxgold
from mxgold import _core, _program

torch = pytest.importorskip("torch")
mt = pytest.importorskip("mxgold.torch")


@pytest.fixture
def arrays():
    rng = np.random.default_rng(5)
    return [torch.from_numpy(rng.standard_normal(s).astype(np.float32)) for s in ((32, 64), (48, 64), (32, 48), (48,))]


def test_fake_quantize(arrays):
    x = arrays[0].clone().requires_grad_()
    y = mt.fake_quantize(x, "te-nvfp4")
    assert np.array_equal(y.detach().numpy(), mxgold.quantize(arrays[0], "te-nvfp4").dequantize())
    y.backward(torch.full_like(y, 3))
    assert torch.equal(x.grad, torch.full_like(x, 3))
    half = mt.fake_quantize(arrays[0].bfloat16(), "ocp-mxfp4")
    assert half.dtype == torch.bfloat16 and torch.equal(half.float(), torch.from_numpy(mxgold.quantize(arrays[0].bfloat16(), "ocp-mxfp4").dequantize()))
    with pytest.raises(mxgold.SpecError):
        mt.fake_quantize(x, "no-such")


@pytest.mark.parametrize("recipe", ["recipe-nvfp4", "recipe-ocp"])
def test_linear(recipe, arrays):
    x, w, dy, bias = arrays
    layer = mt.Linear(64, 48, recipe=recipe, seed=3, layer=2)
    with torch.no_grad():
        layer.weight.copy_(w)
        layer.bias.copy_(bias)
    mt.advance(layer)
    mt.advance(layer)
    given = x.clone().requires_grad_()
    y = layer(given)
    y.backward(dy)
    want = mxgold.linear(x, w, dy, recipe=recipe, bias=bias, seed=3, layer=2, step=2)
    for got, expected in ((y.detach(), want.y), (given.grad, want.dx), (layer.weight.grad, want.dw), (layer.bias.grad, want.db)):
        assert got.numpy().tobytes() == expected.tobytes()


def test_convert_and_checkpoint(arrays):
    from torch.utils.checkpoint import checkpoint

    x, dy = arrays[0], torch.ones(32, 16)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.GELU(), torch.nn.Linear(32, 16))
    weight = model[0].weight
    assert mt.convert(model, "recipe-nvfp4", seed=1) is model and model[0].weight is weight
    assert [m.layer for m in model if isinstance(m, mt.Linear)] == [0, 1]
    grads = []
    for run in (lambda: model(x), lambda: checkpoint(model, x, use_reentrant=False)):
        model.zero_grad()
        run().backward(dy)
        grads.append([p.grad.clone() for p in model.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*grads, strict=True))
    assert "recipe-nvfp4" in repr(model[0]) and isinstance(mt.convert(torch.nn.Linear(64, 8), "recipe-ocp"), mt.Linear)
    with pytest.raises(mxgold.SpecError):
        mt.convert(torch.nn.Sequential(torch.nn.Linear(64, 8)), "recipe-nvpf4")


def test_compile(arrays):
    x, w, _, _ = arrays
    layer = mt.Linear(64, 48, bias=False, recipe="recipe-nvfp4")
    with torch.no_grad():
        layer.weight.copy_(w)
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    given = x.clone().requires_grad_()
    y = compiled(given)
    y.sum().backward()
    want = mxgold.linear(x, w, torch.ones(32, 48), recipe="recipe-nvfp4")
    assert y.detach().numpy().tobytes() == want.y.tobytes() and given.grad.numpy().tobytes() == want.dx.tobytes()


def test_observe(arrays):
    model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.Linear(32, 16))
    with mt.observe(model) as tensors:
        model(arrays[0]).sum().backward()
    assert sorted(tensors) == [f"{i}.{kind}" for i in "01" for kind in ("gradient", "input", "weight")]
    assert torch.equal(tensors["0.input"], arrays[0]) and torch.equal(tensors["1.gradient"], torch.ones(32, 16))


def test_opcheck(arrays):
    x, w, _, bias = arrays
    torch.library.opcheck(torch.ops.mxgold.fake_quantize.default, (x, "te-nvfp4", None), test_utils=("test_schema", "test_faketensor"))
    options = "\x1f".join(["recipe-ocp", "", "", "", "", "", ""])
    torch.library.opcheck(
        torch.ops.mxgold.linear.default,
        (x, w, bias, options, torch.zeros((), dtype=torch.int64), torch.zeros(2, dtype=torch.int64)),
        test_utils=("test_schema", "test_faketensor"),
    )


def refused(call) -> str:
    """The one line of an error of mxgold, or of a TypeError."""
    with pytest.raises((mxgold.Error, TypeError)) as e:
        call()
    assert type(e.value).__module__ == "mxgold._errors" or type(e.value) is TypeError
    assert "\n" not in str(e.value)
    return str(e.value)


NOT_TENSORS = {
    "None": lambda x: None,
    "list": lambda x: [1.0],
    "NumPy": lambda x: x.numpy(),
    "object": lambda x: object(),
    "float64": lambda x: x.double(),
    "int32": lambda x: x.int(),
    "bool": lambda x: x > 0,
    "complex": lambda x: x.to(torch.complex64),
    "float8": lambda x: x.to(torch.float8_e4m3fn),
    "sparse": lambda x: x.to_sparse(),
}


@pytest.mark.parametrize("kind", NOT_TENSORS)
def test_bad_tensors(kind, arrays):
    bad = NOT_TENSORS[kind](arrays[0])
    assert refused(lambda: mt.fake_quantize(bad, "te-nvfp4")).startswith("x: ")
    assert refused(lambda: mt.Linear(64, 8, recipe="recipe-ocp")(bad)).startswith("input: ")


def test_bad_arguments(arrays):
    x = arrays[0]
    for name, value in dict(recipe=3, preset="no", set="no=1", operands="Q9:a=b", train="no=1", gemms="no", accum=b"no", seed=-1, layer="a").items():
        for call in (lambda **how: mt.Linear(64, 8, **how), lambda **how: mt.convert(torch.nn.Linear(64, 8), **how)):
            if name != "layer":
                assert refused(lambda call=call, name=name, value=value: call(**{name: value})).startswith(f"{name}: ")
    assert refused(lambda: mt.Linear(64, 8, layer="a")).startswith("layer: ")
    assert "x" in refused(lambda: mt.Linear(32, 8, recipe="recipe-ocp")(x)) and "x" in refused(lambda: mt.Linear(64, 8)(x[0, 0]))
    assert "w: " in refused(lambda: mt.Linear(64, 8, dtype=torch.float64)(x))
    for call in (mt.advance, mt.convert, lambda model: mt.observe(model).__enter__()):
        assert refused(lambda call=call: call(None)).startswith("model: ")
    assert refused(lambda: mt.convert(torch.nn.Linear(64, 8), "recipe-ocp", where=3)).startswith("where: ")
    assert "nonsense" in refused(lambda: mt.convert(torch.nn.Linear(64, 8), "recipe-ocp", nonsense=1))
    with pytest.raises(mxgold.DataError) as e:
        mt.fake_quantize(torch.full((2, 16), float("nan")), "te-nvfp4", set="elem.nan=error")
    assert str(e.value).startswith("x: row 0, column 0")


def test_other_strides_and_no_elements(arrays):
    """Tensors that are not stored row by row give the same as their copies; those without rows or columns have results of that shape."""
    x = arrays[0]
    layer = mt.Linear(64, 8, recipe="recipe-ocp")
    views = (torch.flip(x, [1]), torch.ones(1).expand(32, 64), torch.cat([x, x], 1)[:, ::2], x.reshape(64, 32).T, x.reshape(2, 16, 64))
    for view in views:
        assert torch.equal(mt.fake_quantize(view, "te-nvfp4"), mt.fake_quantize(view.clone(memory_format=torch.contiguous_format), "te-nvfp4"))
        assert torch.equal(layer(view), layer(view.clone(memory_format=torch.contiguous_format)))
    assert mt.fake_quantize(x[:0], "te-nvfp4").shape == (0, 64) and mt.fake_quantize(x[:, :0], "te-nvfp4").shape == (32, 0)
    assert layer(x[:0]).shape == (0, 8)


def test_docstrings_run():
    import doctest

    result = doctest.testmod(mt, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0 and result.attempted > 12


ROWS = re.findall(r'^MX_RECIPE\("([^"]+)"', (ROOT / "formats/recipes.def").read_text(), re.M)


def test_every_recipe_is_here():
    assert list(mxgold.recipes()) == ROWS and len(ROWS) >= 20


@pytest.mark.parametrize("recipe", mxgold.recipes())
def test_every_recipe_is_the_programs(recipe, tmp_path):
    """Compares forward and backward passes under autograd, through torch.compile and under checkpoint with the file of `mxgold linear`."""
    from torch.utils.checkpoint import checkpoint

    rng = np.random.default_rng(7)
    names, shapes = ("x", "w", "dy", "bias"), ((128, 256), (128, 256), (128, 128), (128,))
    arrays = {n: (rng.standard_normal(s) * np.exp2(rng.integers(-4, 4, s))).astype(np.float32) for n, s in zip(names, shapes, strict=True)}
    for name, array in arrays.items():
        mxgold.save(tmp_path / f"{name}.npy", array)
    words = ["linear", *(tmp_path / f"{n}.npy" for n in ("x", "w", "dy")), "--bias", tmp_path / "bias.npy", "--recipe", recipe]
    _program.run([*words, "--seed", "11", "--step", "2", "--layer", "3", "-o", tmp_path / "o.safetensors"])
    want = {n: a for n, _, a in _core.read_file(tmp_path / "o.safetensors")[0]}

    layer = mt.Linear(256, 128, recipe=recipe, seed=11, layer=3)
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(arrays["w"]))
        layer.bias.copy_(torch.from_numpy(arrays["bias"]))
    mt.advance(layer)
    mt.advance(layer)
    torch._dynamo.reset()
    ways = {
        "autograd": layer,
        "compile": torch.compile(layer, backend="aot_eager", fullgraph=True),
        "checkpoint": lambda x: checkpoint(layer, x, use_reentrant=False),
    }
    for way, run in ways.items():
        layer.zero_grad()
        x = torch.from_numpy(arrays["x"]).requires_grad_()
        y = run(x)
        y.backward(torch.from_numpy(arrays["dy"]))
        for name, got in (("y", y.detach()), ("dx", x.grad), ("dw", layer.weight.grad), ("db", layer.bias.grad)):
            assert got.numpy().tobytes() == want[name].tobytes(), (way, name)


def test_fake_quantize_in_one_graph():
    """torch.compile(fullgraph=True), by whatever words the spec is given, and with another spec on the next call."""
    rows = torch.randn(4, 64, generator=torch.Generator().manual_seed(1))
    torch._dynamo.reset()
    compiled = torch.compile(lambda x, **how: mt.fake_quantize(x, **how), backend="aot_eager", fullgraph=True)
    away = mxgold.Spec("te-nvfp4", elem_round="rna")
    ways = ({"preset": "te-nvfp4"}, {"preset": "ocp-mxfp4"}, {"spec": away}, {"spec": away.replace(elem_round="rtz")})
    for how in (*ways, {"preset": "te-nvfp4", "set": {"elem.round": "rtz"}}):
        x = rows.clone().requires_grad_()
        y = compiled(x, **how)
        y.sum().backward()
        assert torch.equal(y, mt.fake_quantize(rows, **how)) and torch.equal(x.grad, torch.ones_like(x))


class Graphs:
    """A backend of torch.compile that counts the graphs that it is given."""

    n = 0

    def __call__(self, graph, inputs):
        self.n += 1
        return torch._dynamo.lookup_backend("aot_eager")(graph, inputs)


def test_seeds_that_change_in_one_graph():
    """Every seed gives its own bits under torch.compile(fullgraph=True), which compiles a few times at most: 0, 1, the first other int, any int."""
    x = torch.randn(4, 64, generator=torch.Generator().manual_seed(1))
    torch._dynamo.reset()
    graphs, seeds = Graphs(), [0, 1, *range(7, 19), 2**62]
    compiled = torch.compile(lambda x, seed: mt.fake_quantize(x, "te-nvfp4", set="elem.round=sr", seed=seed), backend=graphs, fullgraph=True)
    for seed in seeds:
        want = mxgold.quantize(x, "te-nvfp4", set="elem.round=sr", seed=seed).dequantize()
        assert torch.equal(compiled(x, seed), torch.from_numpy(want)), seed
    assert graphs.n <= 5
    last = mt.fake_quantize(x, "te-nvfp4", set=f"elem.round=sr seed={2**64 - 1}")
    assert torch.equal(mt.fake_quantize(x, "te-nvfp4", set="elem.round=sr", seed=2**64 - 1), last)
    for seed in (-1, 2**64, "a"):
        assert refused(lambda seed=seed: mt.fake_quantize(x, "te-nvfp4", seed=seed)).startswith("seed: ")

    torch._dynamo.reset()
    graphs, layer = Graphs(), mt.Linear(64, 32, bias=False, recipe="recipe-nvfp4", seed=2**63 + 5, layer=4)
    assert (layer.seed, layer.layer) == (2**63 + 5, 4) and list(layer.state_dict()) == ["weight", "step"]
    compiled, dy = torch.compile(layer, backend=graphs, fullgraph=True), torch.ones(4, 32)
    for seed, number in ((2**63 + 5, 4), (0, 4), (1, 0), *((n, n % 3) for n in range(2, 14))):
        layer.seed, layer.layer = seed, number
        given = x.clone().requires_grad_()
        compiled(given).backward(dy)
        assert given.grad.numpy().tobytes() == mxgold.linear(x, layer.weight, dy, recipe="recipe-nvfp4", seed=seed, layer=number).dx.tobytes(), seed
    assert graphs.n == 1


def test_convert_of_shared_layers_and_a_second_call():
    shared = torch.nn.Linear(32, 32)
    model = torch.nn.Sequential(shared, torch.nn.Linear(32, 32), shared)
    mt.convert(model, "recipe-nvfp4")
    assert isinstance(model[0], mt.Linear) and model[2] is model[0] and [model[0].layer, model[1].layer] == [0, 1]
    model.append(torch.nn.Linear(32, 32))
    mt.convert(model, "recipe-nvfp4")
    assert [m.layer for m in model] == [0, 1, 0, 2]


def test_convert_warns_of_what_it_leaves():
    class Own(torch.nn.Linear):
        pass

    model = torch.nn.ModuleDict({"own": Own(32, 32), "attention": torch.nn.MultiheadAttention(32, 2), "plain": torch.nn.Linear(32, 32)})
    with pytest.warns(UserWarning) as caught:
        mt.convert(model, "recipe-nvfp4")
    said = [str(w.message) for w in caught if str(w.message).startswith("convert: ")]
    assert said == ["convert: not quantised, since they are no plain nn.Linear: attention (MultiheadAttention), own (Own)"]
    assert type(model["own"]) is Own and isinstance(model["plain"], mt.Linear)
