"""Defines assert_product(), which checks that D is the product of two quantised matrices."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .. import _program
from .._arguments import choice
from .._arrays import to_numpy
from .._errors import ShapeError
from .._quantized import Quantized
from .._verify import Judgement, judgement_of, product_words
from . import _save


def assert_product(
    a: Quantized,
    b: Quantized,
    d: Any,
    accum: str | None = None,
    *,
    bound: bool = False,
    c: Any = None,
    bias: Any = None,
    alpha: float | None = None,
    beta: float | None = None,
    nan: str = "equal",
    zeros: str = "signed",
    threads: int = 0,
) -> None:
    """D is alpha * A x B^T + beta * C + bias.

    a: Quantized [M][K]; b: Quantized [N][K]; d: [M][N] of float32, float16 or bfloat16. accum: the model that D must equal, bit for bit; without it D passes
    if it equals any model. bound: D passes if each output lies where a sum in some order may lie. nan, zeros: as assert_matches().

    Raises AssertionError: three lines of verdict (which outputs, where, what was computed instead), the example, and the command that repeats the smallest
    failing tile, which is saved under .mxgold/.

    >>> import numpy as np, mxgold, mxgold.testing
    >>> a = mxgold.quantize(np.ones((2, 32), np.float32), "ocp-mxfp4")
    >>> mxgold.testing.assert_product(a, a, mxgold.gemm(a, a), accum="f32_block")
    """
    __tracebackhide__ = True
    choice(nan, "nan", ("equal", "bits"))
    choice(zeros, "zeros", ("signed", "equal"))
    how = (accum, bound, c, bias, alpha, beta, nan == "bits", zeros == "equal", threads)
    try:
        with tempfile.TemporaryDirectory(prefix="mxgold-") as folder:
            found = judgement_of(_program.run_json(product_words(folder, a, b, d, *how))[1])
    except ShapeError as error:
        raise AssertionError(f"d does not have the shape of the product\n{error}\nno output was compared") from None
    if not found.equal:
        raise product_failure(a, b, d, found, *how)


def _lines(found: Judgement) -> tuple[str, str, str]:
    first = f"{found.differ} of {found.outputs} outputs differ from {found.judged_against}"
    e = found.examples[0]
    where = f"first at row {e['row']}, column {e['column']}: expected {float(e['expected']):.9g}, got {float(e['actual']):.9g}"
    if e.get("ulps") is not None:
        where += f", {float(e['ulps']):.3g} ulps apart"
    return first, "; ".join([where, *found.regions]), found.verdict


def _rows(q: Quantized, first: int, end: int) -> Quantized:
    """Rows of a quantised matrix in which each row has its scales, as rows of higher blocks have too."""
    micro = None if q.micro is None else np.ascontiguousarray(q.micro[first:end])
    return Quantized(
        np.ascontiguousarray(q.codes[first:end]), np.ascontiguousarray(q.scales[first:end]), q.tensor_scale, q.spec, (end - first, q.cols), q.dtype, micro
    )


def _tiles(found: Judgement, m: int, n: int) -> Iterator[tuple[int, int, int, int]]:
    row, col = found.examples[0]["row"], found.examples[0]["column"]
    for size in (1, 16):
        top, left = row // size * size, col // size * size
        yield top, min(top + size, m), left, min(left + size, n)


def _piece(value: Any, box: tuple[int, int, int, int] | None, name: str) -> Any:
    """C, the bias or D of a tile; bfloat16 as the float32 numbers that they are."""
    if value is None or box is None:
        return value
    top, bottom, left, right = box
    array, dtype = to_numpy(value, name)
    part = np.ascontiguousarray(array.reshape(-1)[left:right] if name == "bias" else array[top:bottom, left:right])
    return (part.astype(np.uint32) << 16).view(np.float32) if dtype == "bfloat16" else part


def product_failure(
    a: Quantized, b: Quantized, d: Any, found: Judgement, accum: str | None, bound: bool, c: Any, bias: Any, alpha: float | None, beta: float | None, *rest: Any
) -> AssertionError:
    """The error of a product that is wrong, with the smallest failing tile saved."""
    array, dtype = to_numpy(d, "d")
    a, b = a._in_numpy(), b._in_numpy()
    where = _save.place("product", np.ascontiguousarray(array).tobytes() + a.codes.tobytes()[:4096] + b.codes.tobytes()[:4096])
    said = "No tile fails by itself; the case is the whole."
    words = product_words(str(where), a, b, d, accum, bound, c, bias, alpha, beta, *rest)
    plain = a.scales.shape[0] == a.rows and b.scales.shape[0] == b.rows
    for box in _tiles(found, a.rows, b.rows) if plain and dtype != "bfloat16" else ():
        top, bottom, left, right = box
        small = (_rows(a, top, bottom), _rows(b, left, right), _piece(d, box, "d"), accum, bound, _piece(c, box, "c"), _piece(bias, box, "bias"), alpha, beta)
        trial = product_words(str(where), *small, *rest)
        if not _program.run_json(trial)[1]["equal"]:
            words, said = trial, f"The smallest failing part is rows {top}..{bottom - 1}, columns {left}..{right - 1} of D."
            break
    else:
        words = product_words(str(where), a, b, d, accum, bound, c, bias, alpha, beta, *rest)
    for stale in ("c", "bias"):
        if str(Path(where) / f"{stale}.safetensors") not in words:
            (Path(where) / f"{stale}.safetensors").unlink(missing_ok=True)
    return _save.fail(_lines(found), _save.shown(words), where, words, said)
