"""Defines linear(), the quantised linear layer, forward and backward, on arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from . import _core
from ._arrays import as_like
from ._quantized import Quantized
from ._spec import text_of


class LinearResult:
    """y, dx, dw of one call: unpacks as three; without dy the gradients are None.

    y   float32 [..., O]      dx  float32, shape of x      dw  float32, shape of w      db  float32 [O], the sum of dy's rows
    operands  the six quantised operands q1 .. q6 (x, W, dy, W^T, dy^T, x^T along their reduction axes), or Nones without with_operands=True
    """

    __slots__ = ("y", "dx", "dw", "db", "operands")

    def __init__(self, y: Any, dx: Any, dw: Any, db: Any, operands: tuple[Quantized | None, ...]) -> None:
        self.y, self.dx, self.dw, self.db, self.operands = y, dx, dw, db, operands

    def __iter__(self) -> Iterator[Any]:
        return iter((self.y, self.dx, self.dw))

    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> Any:
        return (self.y, self.dx, self.dw)[index]

    def __repr__(self) -> str:
        return f"LinearResult(y {self.y.shape}, dx {getattr(self.dx, 'shape', None)}, dw {getattr(self.dw, 'shape', None)})"


def _texts(value: Any, argument: str) -> tuple[str, ...] | None:
    if value is None:
        return None
    if isinstance(value, str):
        return (value,)
    if isinstance(value, Mapping):
        return tuple(text_of({k: v}, argument) for k, v in value.items())
    if isinstance(value, (list, tuple)) and all(isinstance(v, str) for v in value):
        return tuple(value)
    raise TypeError(f"{argument}: expected text, a mapping or a sequence of texts, not {type(value).__name__}")


def linear(
    x: Any,
    w: Any,
    dy: Any = None,
    *,
    recipe: str | None = None,
    preset: str | None = None,
    set: Any = None,
    operands: Any = None,
    train: Any = None,
    gemms: str | None = None,
    accum: str | None = None,
    bias: Any = None,
    seed: int = 0,
    step: int = 0,
    layer: int = 0,
    threads: int = 0,
    with_operands: bool = False,
    like: Any = None,
) -> LinearResult:
    """One training step of y = x W^T + bias whose products take quantised operands, to the bit as `mxgold linear` does.

    x: [..., I], w: [O][I], dy: [..., O] (without it only y is computed); float32, bfloat16 or float16. bias: [O].
    recipe: a name of mxgold.recipes(); preset: one preset for all six operands instead; recipe-ocp without either.
    set: keys of all six operands; operands: keys of one, {"Q3": "elem.round=sr"} or "Q3:elem.round=sr"; train: training keys.
    gemms: the products that are quantised, "fprop,dgrad,wgrad"; accum: as gemm(). seed, step, layer: what random words depend on.
    with_operands: also keep the six quantised operands. threads: no bit depends on it. like: as quantize().

    Returns a LinearResult, which unpacks as y, dx, dw. Raises SpecError, ShapeError, DtypeError.

    >>> import numpy as np, mxgold
    >>> x = np.ones((2, 32), np.float32); w = np.ones((3, 32), np.float32)
    >>> y, dx, dw = mxgold.linear(x, w, np.ones((2, 3), np.float32), recipe="recipe-ocp")
    >>> y.shape, dx.shape, dw.shape, float(y[0, 0])
    ((2, 3), (2, 32), (3, 32), 32.0)
    """
    own = tuple(f"{k}:{text_of(v, 'operands')}" for k, v in operands.items()) if isinstance(operands, Mapping) else _texts(operands, "operands")
    y, dx, dw, db, kept = _core.linear(
        x,
        w,
        dy,
        recipe=recipe,
        preset=preset,
        set=_texts(set, "set"),
        operands=own,
        train=_texts(train, "train"),
        gemms=gemms,
        accum=accum,
        bias=bias,
        seed=seed,
        step=step,
        layer=layer,
        threads=threads,
        with_operands=with_operands,
    )
    if like is not None:
        y, dx, dw, db = (as_like(a, like) for a in (y, dx, dw, db))
    return LinearResult(y, dx, dw, db, kept)
