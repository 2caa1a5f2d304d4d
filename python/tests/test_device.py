"""Tests that tensors on a GPU give the same bytes as their copies in memory, and that a Triton kernel does what its preset says."""

from __future__ import annotations

import logging
import sys

import numpy as np
import pytest
from conftest import ROOT

import mxgold
import mxgold.testing

torch = pytest.importorskip("torch")
mt = pytest.importorskip("mxgold.torch")
on_device = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU that torch can use")
sys.path.insert(0, str(ROOT / "examples"))


@on_device
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_quantize_and_back(x, dtype, caplog):
    here = torch.from_numpy(np.clip(x, -60000, 60000)).to(dtype)
    there = here.cuda()
    caplog.set_level(logging.INFO, "mxgold")
    for preset in mxgold.presets():
        assert mxgold.quantize(there, preset) == mxgold.quantize(here, preset), preset
    assert any("copied from cuda" in r.message for r in caplog.records)
    assert mxgold.quantize(there[:, 3:131:2], "te-nvfp4") == mxgold.quantize(here[:, 3:131:2], "te-nvfp4")  # strides of the device's tensor
    assert mxgold.quantize(there.t(), "te-nvfp4") == mxgold.quantize(here.t(), "te-nvfp4")
    back = mxgold.decode(mxgold.encode(there, "e4m3", like=there), "e4m3", like=there)
    assert back.is_cuda and torch.equal(back.cpu(), torch.from_numpy(mxgold.decode(mxgold.encode(here, "e4m3"), "e4m3")))


@on_device
def test_verdicts(x):
    there = torch.from_numpy(x).cuda()
    q = mxgold.quantize(x, "ocp-mxfp4")
    codes, scales = torch.from_numpy(q.codes).cuda(), torch.from_numpy(q.scales).cuda()
    mxgold.testing.assert_matches(there, codes, scales, preset="ocp-mxfp4")
    assert mxgold.diff(q, codes=codes, scales=scales).equal
    scales[3, 2] += 1
    with pytest.raises(AssertionError, match="row 3"):
        mxgold.testing.assert_matches(there, codes, scales, preset="ocp-mxfp4")


@on_device
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_layers(dtype):
    rng = np.random.default_rng(5)
    x, dy = (torch.from_numpy(rng.standard_normal(s).astype(np.float32)).to(dtype) for s in ((32, 64), (32, 48)))
    results = []
    for device in ("cpu", "cuda"):
        torch.manual_seed(0)
        model = mt.convert(torch.nn.Sequential(torch.nn.Linear(64, 48, dtype=dtype)), "recipe-nvfp4", seed=1).to(device)
        given = x.to(device).detach().requires_grad_()
        y = model(given)
        y.backward(dy.to(device))
        results.append([t.detach().cpu() for t in (y, given.grad, model[0].weight.grad, model[0].bias.grad)])
        assert y.device.type == device
    for a, b in zip(*results, strict=True):
        assert torch.equal(a, b)
    fake = mt.fake_quantize(x.cuda(), "te-nvfp4")
    assert fake.is_cuda and torch.equal(fake.cpu(), mt.fake_quantize(x, "te-nvfp4"))


@on_device
def test_other_libraries(x):
    want = mxgold.quantize(x, "te-nvfp4")
    for name in ("cupy", "jax.numpy"):
        library = pytest.importorskip(name)
        assert mxgold.quantize(library.asarray(x), "te-nvfp4") == want
    like = mxgold.quantize(x, "te-nvfp4", like=library.asarray(x))
    assert type(like.codes).__module__.startswith("jax") and np.array_equal(np.asarray(like.codes), want.codes)


@on_device
def test_compiled_torch(x):
    """The rule of examples/torch_kernel.py, which torch.compile turns into a kernel for the device."""
    torch_kernel = pytest.importorskip("torch_kernel")
    kernel = torch.compile(lambda v: torch_kernel.quantize(v, torch))
    there = torch.from_numpy(x).cuda()
    codes, scales = kernel(there)
    mxgold.testing.assert_matches(there, codes, scales, preset="torchao-even")


@on_device
def test_triton():
    kernel = pytest.importorskip("triton_kernel")
    like = torch.empty(0, device="cuda")
    right = mxgold.testing.explain(lambda v: kernel.quantize(v, torch), preset="torchao-even", like=like)
    assert right.ok, right
    wrong = mxgold.testing.explain(lambda v: kernel.quantize(v, torch, True), preset="torchao-even", like=like)
    assert not wrong.ok and wrong.confirmed and wrong.spec.elem_round == "rna", wrong
