"""Puts mxgold under PyTorch: rounding inside a model, and the quantised linear layer of the training engine under any nn.Module.

    y = mxgold.torch.fake_quantize(x, "te-nvfp4")              values that went through the quantiser; the gradient passes straight through
    model = mxgold.torch.convert(model, "recipe-nvfp4")        every nn.Linear follows the recipe: six quantised operands, forward and backward
    with mxgold.torch.observe(model) as tensors: ...           inputs, weights and gradients of its linear layers by name

The operators are torch.library's (mxgold::fake_quantize, mxgold::linear), so torch.compile and activation checkpointing work. Every bit is the C library's, the
same as `mxgold linear` gives for the same recipe, seed, step and layer. Tensors on a device are copied to memory and back.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from . import _core
from ._arguments import integer, text
from ._errors import DtypeError
from ._linear import _texts
from ._spec import Spec, make

__all__ = ["Linear", "advance", "convert", "fake_quantize", "observe"]


def _numbers(value: Any, argument: str) -> None:
    """Refuse what is no dense tensor of numbers that the operators take: torch's own words for it are of many lines."""
    if not isinstance(value, Tensor):
        raise DtypeError(f"{argument}: {type(value).__name__}, expected a torch.Tensor")
    if value.layout != torch.strided:
        raise DtypeError(f"{argument}: a tensor of layout {str(value.layout).removeprefix('torch.')}, expected a dense one")
    if value.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise DtypeError(f"{argument}: dtype {str(value.dtype).removeprefix('torch.')}, expected float32, float16 or bfloat16")


def _module(model: Any, where: Any = None) -> None:
    if not isinstance(model, nn.Module):
        raise TypeError(f"model: expected a torch.nn.Module, not {type(model).__name__}")
    if where is not None and not callable(where):
        raise TypeError(f"where: expected a function of a name and a layer, not {type(where).__name__}")


def _array(tensor: Tensor) -> Tensor:
    return tensor.detach().cpu().contiguous()


def _tensor(array: Any, like: Tensor) -> Tensor:
    return torch.from_numpy(array).to(device=like.device, dtype=like.dtype)


_MOST_LAYERS = (1 << 20) - 1
# Seeds are 64 bits without a sign; an integer of a graph and of a tensor has one.
_WORD = 1 << 64


def _signed(value: Any, argument: str) -> int:
    """A seed as torch can hold it. torch.compile may trace an int that stands for any: no more is asked of it than its range."""
    if not isinstance(value, int) or value < 0 or value >= _WORD:
        value = integer(value, argument)
    return value - _WORD if value >= _WORD >> 1 else value  # type: ignore[no-any-return,unused-ignore]


@torch.library.custom_op("mxgold::fake_quantize", mutates_args=())
def _fake_quantize(x: Tensor, spec: str, seed: int | None) -> Tensor:
    how = Spec(spec) if seed is None else Spec(spec, seed=seed % _WORD)
    return _tensor(_core.quantize(_array(x), spec=how).dequantize(), x)


@_fake_quantize.register_fake
def _(x: Tensor, spec: str, seed: int | None) -> Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


@torch.compiler.assume_constant_result  # type: ignore[no-untyped-call,unused-ignore]
def _text_of(preset: str | None, spec: Any, set: Any) -> str:
    """The spec's text, which torch.compile takes as a constant of the graph: it cannot look into the C module's Spec."""
    return str(make(preset, spec, set, None))


def _straight_through(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
    return grad, None, None


_fake_quantize.register_autograd(_straight_through)


def fake_quantize(x: Tensor, preset: str | None = None, *, spec: Any = None, set: Any = None, seed: int | None = None) -> Tensor:
    """x after quantising and dequantising along its last axis, in its own dtype; the gradient is that of the identity (straight-through).

    x: float32, float16 or bfloat16 [..., K]. preset, spec, set, seed: as quantize(). A rotation of the spec is not undone.
    Raises DtypeError, SpecError, DataError (a NaN under elem.nan=error: .index).

    >>> import torch, mxgold.torch
    >>> x = torch.tensor([[1.0, 2.2, 0.3, 6.0] * 8], requires_grad=True)
    >>> y = mxgold.torch.fake_quantize(x, "ocp-mxfp4")
    >>> y[0, :4].tolist()
    [1.0, 2.0, 0.5, 6.0]
    >>> y.sum().backward(); x.grad[0, :4].tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    _numbers(x, "x")
    return _fake_quantize(x, _text_of(preset, spec, set), None if seed is None else _signed(seed, "seed"))  # type: ignore[no-any-return]


# options: recipe, preset, gemms, accum, then the texts of set, operands and train, one a line each group; "" for none
# step, place: int64 [] and [2], the seed and the layer's number: as tensors, so that no graph of torch.compile holds to their values
def _call(x: Tensor, w: Tensor, dy: Tensor | None, bias: Tensor | None, options: str, step: Tensor, place: Tensor) -> tuple[Any, ...]:
    seed, layer = place.tolist()
    words: list[Any] = [part or None for part in options.split("\x1f")]
    recipe, preset, gemms, accum = words[:4]
    given, operands, train = (tuple(text.split("\n")) if text else None for text in words[4:])
    arrays = (_array(x), _array(w), None if dy is None else _array(dy))
    how = {"recipe": recipe, "preset": preset, "set": given, "operands": operands, "train": train, "gemms": gemms, "accum": accum}
    return _core.linear(*arrays, **how, bias=None if bias is None else _array(bias), seed=seed % _WORD, step=int(step.item()), layer=layer)


@torch.library.custom_op("mxgold::linear", mutates_args=())
def _linear(x: Tensor, w: Tensor, bias: Tensor | None, options: str, step: Tensor, place: Tensor) -> Tensor:
    return _tensor(_call(x, w, None, bias, options, step, place)[0], x)


@_linear.register_fake
def _(x: Tensor, w: Tensor, bias: Tensor | None, options: str, step: Tensor, place: Tensor) -> Tensor:
    return x.new_empty((*x.shape[:-1], w.shape[0]))


@torch.library.custom_op("mxgold::linear_backward", mutates_args=())
def _linear_backward(x: Tensor, w: Tensor, dy: Tensor, options: str, step: Tensor, place: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    _, dx, dw, db, _ = _call(x, w, dy, None, options, step, place)
    return _tensor(dx, x), _tensor(dw, w), _tensor(db, w)


@_linear_backward.register_fake
def _(x: Tensor, w: Tensor, dy: Tensor, options: str, step: Tensor, place: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return torch.empty_like(x, memory_format=torch.contiguous_format), torch.empty_like(w, memory_format=torch.contiguous_format), w.new_empty(w.shape[0])


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, w, bias, ctx.options, step, place = inputs
    ctx.has_bias = bias is not None
    ctx.save_for_backward(x, w, step, place)


def _gradients(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    x, w, step, place = ctx.saved_tensors
    dx, dw, db = _linear_backward(x, w, grad.contiguous(), ctx.options, step, place)
    return dx, dw, db if ctx.has_bias else None, None, None, None


_linear.register_autograd(_gradients, setup_context=_keep)


class Linear(nn.Linear):
    """nn.Linear whose three products take quantised operands: y = x W^T + bias, dx = dy W, dw = dy^T x.

    recipe, preset, set, operands, train, gemms, accum: as mxgold.linear(). seed and layer: what its random words depend on, beside the step, which advance()
    counts. Parameters may be float32, bfloat16 or float16; products are accumulated in binary32. The backward pass quantises x and W again, to the same bits.
    Raises SpecError where a name is unknown, and in forward() DtypeError and ShapeError.

    >>> import torch, mxgold.torch
    >>> layer = mxgold.torch.Linear(64, 32, recipe="recipe-nvfp4", seed=7)
    >>> layer(torch.ones(4, 64)).shape
    torch.Size([4, 32])
    """

    step: Tensor
    _place: Tensor

    def __init__(self, in_features: int, out_features: int, bias: bool = True, *, recipe: str | None = None, preset: str | None = None, set: Any = None,
                 operands: Any = None, train: Any = None, gemms: str | None = None, accum: str | None = None, seed: int = 0, layer: int = 0,
                 device: Any = None, dtype: Any = None) -> None:  # fmt: skip
        super().__init__(in_features, out_features, bias, device=device, dtype=dtype)
        self._quantise(recipe, preset, set, operands, train, gemms, accum, seed, layer)

    def _quantise(
        self, recipe: str | None, preset: str | None, set: Any, operands: Any, train: Any, gemms: str | None, accum: str | None, seed: int, layer: int
    ) -> None:
        for name, value in (("recipe", recipe), ("preset", preset), ("gemms", gemms), ("accum", accum)):
            if value is not None:
                text(value, name)
        lists = ["\n".join(_texts(value, name) or ()) for name, value in (("set", set), ("operands", operands), ("train", train))]
        self.options = "\x1f".join([recipe or "", preset or "", "" if gemms is None else gemms, accum or "", *lists])
        self.register_buffer("step", torch.zeros((), dtype=torch.int64), persistent=True)
        place = [_signed(seed, "seed"), integer(layer, "layer", 0, _MOST_LAYERS)]
        self.register_buffer("_place", torch.tensor(place, dtype=torch.int64), persistent=False)
        one = torch.zeros((1, self.in_features))
        _call(one, torch.zeros((1, self.in_features)), None, None, self.options, self.step, self._place)  # an unknown recipe is told here

    @property
    def seed(self) -> int:
        """What the layer's random words depend on, beside its number and the step. Setting it compiles nothing again."""
        return int(self._place[0]) % _WORD

    @seed.setter
    def seed(self, value: int) -> None:
        self._place[0] = _signed(value, "seed")

    @property
    def layer(self) -> int:
        """The number of the layer in its model."""
        return int(self._place[1])

    @layer.setter
    def layer(self, value: int) -> None:
        self._place[1] = integer(value, "layer", 0, _MOST_LAYERS)

    def forward(self, input: Tensor) -> Tensor:
        _numbers(input, "input")
        return _linear(input, self.weight, self.bias, self.options, self.step.clone(), self._place.clone())  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, {' '.join(part for part in self.options.split(chr(31)) if part) or 'recipe-ocp'}, layer={self.layer}"


def convert(model: nn.Module, recipe: str | None = None, *, where: Callable[[str, nn.Linear], bool] | None = None, seed: int = 0, preset: str | None = None,
            set: Any = None, operands: Any = None, train: Any = None, gemms: str | None = None, accum: str | None = None) -> nn.Module:  # fmt: skip
    """Put Linear in the place of every nn.Linear of a model, in place. Parameters stay the same objects; layers are numbered as named_modules() lists them,
    after those that the model has already. A layer under several names becomes one new layer under all of them. Subclasses of nn.Linear and
    nn.MultiheadAttention, which call no nn.Linear, stay as they are, which a warning says.

    recipe and the keywords: as Linear. where: a function of the name and the layer that says which; all by default. Keys of a whole model and of its
    optimiser (high.first, high.last, q2.ema, ramp, tensor.hold) are those of `mxgold train` and change nothing here. Returns the model (a new one if it
    is itself an nn.Linear). Raises SpecError.

    >>> import torch, mxgold.torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.GELU(), torch.nn.Linear(32, 16))
    >>> mxgold.torch.convert(model, "recipe-nvfp4", where=lambda name, layer: name != "2")[0]
    Linear(in_features=64, out_features=32, bias=True, recipe-nvfp4, layer=0)
    """
    _module(model, where)
    number = max((m.layer + 1 for m in model.modules() if isinstance(m, Linear)), default=0)
    done: dict[nn.Module, Linear] = {}
    _warn_of_others(model, where)
    for name, module in list(model.named_modules(remove_duplicate=False)):
        if type(module) is not nn.Linear or (where is not None and not where(name, module)):
            continue
        if module in done:
            _put(model, name, done[module])
            continue
        made = Linear.__new__(Linear)
        nn.Module.__init__(made)
        made.in_features, made.out_features = module.in_features, module.out_features
        made.weight, made.bias = module.weight, module.bias
        made._quantise(recipe, preset, set, operands, train, gemms, accum, seed, number)
        made.train(module.training)
        number += 1
        if not name:
            return made
        done[module] = made
        _put(model, name, made)
    return model


def _put(model: nn.Module, name: str, made: Linear) -> None:
    parent, _, own = name.rpartition(".")
    setattr(model.get_submodule(parent), own, made)


def _warn_of_others(model: nn.Module, where: Callable[[str, nn.Linear], bool] | None) -> None:
    """Name the layers that multiply by weights and are not converted: a user would take them for quantised."""
    attentions = [n for n, m in model.named_modules() if isinstance(m, nn.MultiheadAttention)]
    left = [f"{n or 'the model'} (MultiheadAttention)" for n in attentions if where is None]
    for name, module in model.named_modules():
        if not isinstance(module, nn.Linear) or type(module) is nn.Linear or isinstance(module, Linear) or name.rpartition(".")[0] in attentions:
            continue
        if where is None or where(name, module):
            left.append(f"{name or 'the model'} ({type(module).__name__})")
    if left:
        warnings.warn(f"convert: not quantised, since they are no plain nn.Linear: {', '.join(left)}", stacklevel=3)


def advance(model: nn.Module) -> None:
    """Count a training step in every Linear of a model, after optimizer.step(): random words of the next step are others. A forward pass does not count, so
    that a checkpointed block that runs again in the backward pass has the same bits.

    >>> import mxgold.torch
    >>> layer = mxgold.torch.Linear(64, 32, recipe="recipe-nvfp4")
    >>> mxgold.torch.advance(layer); int(layer.step)
    1
    """
    _module(model)
    for module in model.modules():
        if isinstance(module, Linear):
            module.step += 1


@contextmanager
def observe(model: nn.Module, where: Callable[[str, nn.Linear], bool] | None = None) -> Iterator[dict[str, Tensor]]:
    """Collect tensors of a model's linear layers while it runs: NAME.input, NAME.weight, and with a backward pass NAME.gradient (of the layer's output).

    Of several calls the last stays. Tensors are detached copies in memory, as matrices [rows][features].

    >>> import torch, mxgold.torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(64, 32))
    >>> with mxgold.torch.observe(model) as tensors:
    ...     model(torch.ones(2, 64)).sum().backward()
    >>> sorted(tensors)
    ['0.gradient', '0.input', '0.weight']
    """
    _module(model, where)
    found: dict[str, Tensor] = {}

    def hook(name: str) -> Callable[..., None]:
        def keep(module: nn.Linear, inputs: tuple[Any, ...], output: Tensor) -> None:
            x = inputs[0]
            found[f"{name}.input"] = x.detach().reshape(-1, x.shape[-1]).cpu().clone()
            found[f"{name}.weight"] = module.weight.detach().cpu().clone()
            if output.requires_grad:
                output.register_hook(lambda grad: found.__setitem__(f"{name}.gradient", grad.detach().reshape(-1, grad.shape[-1]).cpu().clone()))  # type: ignore[no-untyped-call]

        return keep

    handles = [m.register_forward_hook(hook(n or "linear")) for n, m in model.named_modules() if isinstance(m, nn.Linear) and (where is None or where(n, m))]
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()
