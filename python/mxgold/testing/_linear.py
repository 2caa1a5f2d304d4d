"""Defines assert_linear(), which checks a quantised linear layer's output and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arrays import to_numpy
from .._errors import Error
from .._linear import LinearResult, linear
from .._spec import NO_CODES
from .._verify import diff_gemm
from . import _save
from ._product import product_failure

# Which operands make which output.
_PRODUCTS = {"y": (0, 1), "dx": (2, 3), "dw": (4, 5)}


def assert_linear(x: Any, w: Any, dy: Any = None, *, y: Any = None, dx: Any = None, dw: Any = None, recipe: str | None = None, **how: Any) -> None:
    """y, dx and dw are, bit for bit, those of mxgold.linear().

    x, w, dy and the keywords: as linear(). y, dx, dw: what the kernel gave, float32; those that are None are not compared.

    Raises AssertionError: three lines of verdict (which output, where, what the product of its operands was instead), the example, and the command that
    repeats the smallest failing tile of that product, which is saved under .mxgold/.

    >>> import numpy as np, mxgold, mxgold.testing
    >>> x = np.ones((32, 32), np.float32)
    >>> y, dx, dw = mxgold.linear(x, x, x, recipe="recipe-nvfp4")
    >>> mxgold.testing.assert_linear(x, x, x, y=y, dx=dx, dw=dw, recipe="recipe-nvfp4")
    """
    __tracebackhide__ = True
    given = {"y": y, "dx": dx, "dw": dw}
    if all(v is None for v in given.values()):
        raise Error("assert_linear: expected y=, dx= or dw=")
    if dy is None and (dx is not None or dw is not None):
        raise Error("assert_linear: dx= and dw= need dy")
    want = linear(x, w, dy, recipe=recipe, with_operands=True, **how)
    for name, value in given.items():
        if value is None:
            continue
        array, dtype = to_numpy(value, name)
        expected = getattr(want, name)
        if dtype != "float32" or array.shape != expected.shape:
            raise AssertionError(f"{name} is {dtype} {array.shape}\nexpected float32 {expected.shape}\nno output was compared")
        different = (array != expected) & ~(np.isnan(array) & np.isnan(expected)) | (np.signbit(array) != np.signbit(expected)) & (expected == 0)
        if different.any():
            raise _failure(name, array, want, different, how)


def _failure(name: str, got: Any, want: LinearResult, different: Any, how: dict[str, Any]) -> AssertionError:
    """Of the product that made the output, with what is known of it; where it was not quantised, of the numbers alone."""
    first, second = (want.operands[i] for i in _PRODUCTS[name])
    expected = getattr(want, name)
    flat = got.reshape(-1, got.shape[-1])
    row, col = (int(i) for i in np.argwhere(different.reshape(flat.shape))[0])
    head = (
        f"{int(different.sum())} of {got.size} outputs of {name} differ",
        f"first in {name} at row {row}, column {col}: expected {float(expected.reshape(flat.shape)[row, col]):.9g}, got {float(flat[row, col]):.9g}",
    )
    bias = how.get("bias") if name == "y" else None  # gradients of x and w do not have it
    plain = first is not None and second is not None and not {first.spec.elem, second.spec.elem} & {*NO_CODES}
    if plain and first is not None and second is not None:
        accum = how.get("accum") or "f32_block"
        found = diff_gemm(first, second, flat, accum=accum, bias=bias)
        if not found.equal:
            error = product_failure(first, second, flat, found, accum, False, None, bias, None, None, False, False, 0)
            text = str(error).split("\n")
            message = "\n".join([*head, f"{name}: {text[2]}", *text[3:]])
            last = _save.failures.pop()
            _save.failures.append(_save.Failure(last.test, (*head, f"{name}: {text[2]}"), message, last.folder, last.arguments))
            return AssertionError(message)
    return AssertionError("\n".join([*head, f"{name}: its product is not one of two quantised operands alone, so nothing more is known of it"]))
