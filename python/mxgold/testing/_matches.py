"""Defines assert_matches(), which checks that a quantiser's codes and scales are those of a spec."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _core
from .._arguments import choice, positive
from .._arrays import to_numpy
from .._errors import DataError, DtypeError, Error, OutOfTimeError, ProgramError, ShapeError, SpecError
from .._quantized import Quantized
from .._spec import NO_CODES, Spec, make, text_of
from .._tables import bugs, hold_dtypes
from .._verify import Diff, diff, faulty, identify_beside, input_tensor, kernel_tensors, narrow
from . import _save

Box = tuple[int, int, int, int]  # first row, end row, first column, end column


def assert_matches(
    x: Any,
    codes: Any,
    scales: Any,
    preset: str | None = None,
    tensor_scale: Any = None,
    *,
    micro: Any = None,
    spec: Any = None,
    set: Any = None,
    seed: int | None = None,
    given_tensor_scale: float | None = None,
    layout: str | None = None,
    nan: str = "equal",
    zeros: str = "signed",
    allow: Any = None,
    seconds: float = 3,
    threads: int = 0,
) -> None:
    """Codes and scales are, bit for bit, what the spec gives for x.

    x: float32, float16 or bfloat16 [..., K]. codes: one a byte, or 4-bit codes two a byte; scales: in row-major order or, with layout= or by their size, in a
    layout of mxgold.layouts(); bytes or numbers. tensor_scale: as the kernel returned it, compared if it is given; given_tensor_scale: the one that
    the kernel was given. micro: HiF4's micro-scales, uint8 [rows][K/64][3], which such a kernel must give too.
    preset, spec, set, seed: as quantize(). nan: "equal" (a NaN is a NaN, codes under a NaN scale do not count) or "bits".
    zeros: "signed", or "equal" for -0 = +0. allow: known deviations that pass, keys such as "elem.round=rna", faults as Identity.fault has them, or names of
    known bugs (mxgold.bugs()); a text or a list, of which a kernel may have any and several.
    seconds: for the verdict of a failure.

    Raises AssertionError: three lines of verdict, the example, and the command that repeats the smallest failing block, which is saved under .mxgold/.
    SpecError, DtypeError: of the arguments themselves.

    >>> import numpy as np, mxgold, mxgold.testing
    >>> x = np.random.default_rng(0).standard_normal((4, 64)).astype(np.float32)
    >>> q = mxgold.quantize(x, "te-nvfp4")
    >>> mxgold.testing.assert_matches(x, q.codes, q.scales, preset="te-nvfp4", tensor_scale=q.tensor_scale)
    """
    __tracebackhide__ = True
    choice(nan, "nan", ("equal", "bits"))
    choice(zeros, "zeros", ("signed", "equal"))
    seconds = positive(seconds, "seconds")
    what = make(preset, spec, set, seed)
    allowed = deviations(allow, what)
    want = _core.quantize(x, spec=what, given_tensor_scale=given_tensor_scale, threads=threads)
    codes = narrow(codes, want.rows * want.cols)
    hold_dtypes(what, codes, scales)
    try:
        if layout is not None:
            scales = _core.layout_scales(to_numpy(scales, "scales")[0], layout, back=True, rows=want.scales.shape[0], kb=want.scales.shape[1])
        _expect_micro(want, micro)
        bits, signless = nan == "bits", zeros == "equal"
        found = diff(want, codes=codes, scales=scales, tensor_scale=tensor_scale, micro=micro, x=x, nan_bits=bits, equal_zeros=signless, threads=threads)
    except (SpecError, DtypeError):
        raise
    except DataError as error:
        raise AssertionError(f"the kernel gave what is no code of {want.spec}\n{error}\nno code was compared") from None
    except Error as error:  # sizes that fit no form
        raise AssertionError(_sizes(want, codes, scales, error)) from None
    given = (codes, scales, tensor_scale)
    if found.equal or _allowed(allowed, x, given, micro, want, seconds, threads):
        return
    try:
        verdict = identify_beside(want.spec, x, given, micro, seconds, threads).verdict
    except OutOfTimeError:
        verdict = f"Which rule the kernel follows was not found out: its time, seconds={seconds:g}, ran out before a spec was tried."
    if found.patterns and verdict.endswith("every byte is the same."):  # identify reads scales in any order
        verdict = f"Your kernel gives the bytes of {want.spec} in another order: {found.patterns[0]}."
    if nan == "bits" and not (found.scales_differ or found.tensor_scales_differ or found.values_differ):
        verdict += " What differs is no value: codes of NaNs, or under a NaN scale, which no rule decides."
    raise _failure(x, given, micro, want, found, verdict, bits, signless)


def _expect_micro(want: Quantized, micro: Any) -> None:
    """A spec with micro-scales is not matched by codes and scales alone: that would pass kernels whose values are others."""
    if want.micro is not None and micro is None:
        raise DtypeError(f"micro: none, expected the micro-scales of {want.spec}, uint8 {want.micro.shape}")
    if want.micro is None and micro is not None:
        raise DtypeError(f"micro: {want.spec} stores no micro-scales, expected none")


def _sizes(want: Quantized, codes: Any, scales: Any, error: Error) -> str:
    given = ", ".join(f"{name} {to_numpy(a, name)[0].shape}" for name, a in (("codes", codes), ("scales", scales)))
    return "\n".join(
        (
            f"the sizes are not those of {want.spec}: {given}",
            f"expected codes {want.codes.shape} (or one a byte, {(want.rows, want.cols)}), scales {want.scales.shape}, or in a layout of mxgold.layouts()",
            str(error),
        )
    )


def allowances(allow: Any) -> list[str]:
    """allow= as a list of texts."""
    if allow is None:
        return []
    given = list(allow) if isinstance(allow, (list, tuple)) else [allow]
    for a in given:
        if not isinstance(a, (str, Mapping)):
            raise TypeError(f"allow: expected a text, a mapping or a list of these, not {type(a).__name__}")
    return [a if isinstance(a, str) else text_of(a) for a in given]


@dataclass(frozen=True)
class Deviations:
    """allow=, read: the specs that its keys make, each text alone and all that go together; groups of faults; names of known bugs."""

    specs: list[Spec]
    faults: list[list[str]]
    names: list[str]


def deviations(allow: Any, want: Spec) -> Deviations:
    """Reads allow=: a wrong key or fault is refused before a kernel is wrong."""
    texts = allowances(allow)
    try:
        specs = _combined([t for t in texts if "=" in t and "<-" not in t], want)
        faults = [t for t in texts if "<-" in t]
        for fault in faults:
            faulty(np.ones((1, 32), np.float32), want, [fault])
    except ShapeError:  # a fault of other sizes
        pass
    except Error as error:
        raise type(error)(f"allow: {error}") from None
    names = [t for t in texts if "<-" not in t and "=" not in t]
    for name in names:
        _known(name)
    return Deviations(specs, [[f] for f in faults] + [faults] * (len(faults) > 1), names)


def _known(name: str) -> None:
    if not name.strip():
        raise Error("allow: an empty text, expected keys, a fault or the name of a known bug")
    known = bugs()
    if name not in known:
        near = tuple(difflib.get_close_matches(name, known, 3, 0))
        error = SpecError(f"allow: {name!r} is no known bug (mxgold.bugs()), no key and no fault, nearest: {', '.join(near)}")
        error.argument, error.nearest = "allow", near
        raise error


def _combined(texts: list[str], want: Spec) -> list[Spec]:
    """A spec for each text and for all sets of them, since a kernel may deviate in several; of one key with several values, one of them at a time."""
    specs: list[Spec] = []
    failed: dict[str, Error] = {}
    good: set[str] = set()
    for n in range(1, len(texts) + 1) if len(texts) <= 6 else (1, len(texts)):
        for some in itertools.combinations(texts, n):
            try:
                spec = Spec(want, set=" ".join(some))
            except SpecError as error:  # alone a key may lack another that it needs
                if n == 1:
                    failed[some[0]] = error
                continue
            good.update(some)
            if spec not in specs:
                specs.append(spec)
    for text, why in failed.items():
        if text not in good:
            raise why
    return specs


def _allowed(allowed: Deviations, x: Any, given: tuple[Any, Any, Any], micro: Any, want: Quantized, seconds: float, threads: int) -> bool:
    codes, scales, tensor_scale = given
    for spec in allowed.specs:
        other = _core.quantize(x, spec=spec, threads=threads)
        if other.micro is not None and micro is None:
            continue
        if diff(other, codes=codes, scales=scales, tensor_scale=tensor_scale, micro=None if other.micro is None else micro, threads=threads).equal:
            return True
    for some in allowed.faults:
        if diff(faulty(x, want.spec, some), codes=codes, scales=scales, tensor_scale=tensor_scale, micro=micro, threads=threads).equal:
            return True
    if not allowed.names:
        return False
    try:
        bug = identify_beside(want.spec, x, given, micro, seconds, threads).bug
    except OutOfTimeError:
        return False
    return bug is not None and bug["name"] in allowed.names and not any(bug["left"].values()) and bug["preset"] in (want.preset, want.spec._like)


def _first_scale(want: Quantized, kernel: Quantized | None) -> str:
    """Where the first scale lies that differs; "" where it is not known, in layouts and packings of another kind."""
    wrong = [] if kernel is None else np.argwhere(want.scales != kernel.scales).tolist()
    return f", first at row {wrong[0][0]}, block column {wrong[0][1]}" if wrong else ""


def _lines(want: Quantized, found: Diff, verdict: str, kernel: Quantized | None) -> tuple[str, str, str]:
    scale = ", and the tensor scale" if found.tensor_scales_differ else ""
    first = f"{found.codes_differ} of {found.n_codes} codes and {found.scales_differ} of {found.n_scales} scales differ from {want.spec}{scale}"
    pattern = "; ".join(found.patterns)
    if found.examples:
        e = found.examples[0]
        where = (
            f"first at row {e['row']}, column {e['column']}: x = {float(e.get('x', 'nan')):.9g}, expected {float(e['value_a']):.9g} (code 0x{e['code_a']:x}, "
            f"scale 0x{e['scale_a']:02x}), got {float(e['value_b']):.9g} (code 0x{e['code_b']:x}, scale 0x{e['scale_b']:02x})"
        )
    elif found.scales_differ and want.micro is not None:
        where = "only scales or micro-scales differ: no code does"
    elif found.scales_differ:
        where = f"only scales differ{_first_scale(want, kernel)}: no code does"
    else:
        where = "only the tensor scale differs"
    return first, where + (f"; {pattern}" if pattern else ""), verdict


def _kernel(want: Quantized, codes: Any, scales: Any, tensor_scale: Any, micro: Any) -> Quantized | None:
    """What the kernel gave as a Quantized, where it lies as quantize() has it; None for other packings and layouts."""
    try:
        scale = want.tensor_scale if tensor_scale is None else tensor_scale
        scales = to_numpy(scales, "scales")[0].reshape(want.scales.shape)
        return Quantized.of(codes, scales, spec=want.spec, tensor_scale=scale, shape=want.shape, micro=micro)
    except (ValueError, TypeError):
        return None


def _boxes(want: Quantized, kernel: Quantized) -> Iterator[Box]:
    """Parts of the matrix that may fail by themselves, smallest first: a block, the rows of it, all."""
    rows, cols = want.rows, want.cols
    block_rows, block_cols = want.spec.block_of(rows, cols)
    width = max(block_cols, int(want.spec.had_size), 2)
    wrong = want.unpack() != kernel.unpack()
    scales = want.scales != kernel.scales
    if want.micro is not None:
        scales = scales | (want.micro != kernel.micro).any(-1)
    if wrong.any():
        row, col = (int(i) for i in np.argwhere(wrong)[0])
    elif scales.any():
        at, k = (int(i) for i in np.argwhere(scales)[0])
        row, col = (at if want.scales.shape[0] == rows else at * block_rows), k * block_cols
    else:
        return
    top, left = row // block_rows * block_rows, col // width * width
    yield top, min(top + block_rows, rows), left, min(left + width, cols)
    yield top, min(top + block_rows, rows), 0, cols


def _part(q: Quantized, box: Box) -> Quantized:
    """Codes and scales of a part: whole blocks, so that they are those of the part by itself."""
    top, bottom, left, right = box
    block_rows, block_cols = q.spec.block_of(q.rows, q.cols)
    tall = q.scales.shape[0] == q.rows
    down = slice(top, bottom) if tall else slice(top // block_rows, -(-bottom // block_rows))
    across = slice(left // block_cols, -(-right // block_cols))
    scales = np.ascontiguousarray(q.scales[down, across])
    micro = None if q.micro is None else np.ascontiguousarray(q.micro[down, across])
    codes = np.ascontiguousarray(q.unpack()[top:bottom, left:right])
    return Quantized.of(codes, scales, spec=q.spec, tensor_scale=q.tensor_scale, shape=(bottom - top, right - left), dtype=q.dtype, micro=micro)


def _cut(x: Any, want: Quantized, kernel: Quantized | None) -> tuple[Any, Quantized, Quantized, Box] | None:
    """The smallest part that fails by itself: its expected bytes are those of the whole there, and the kernel's are others. None: only the whole fails."""
    if kernel is None or want.spec.elem in NO_CODES:
        return None
    values, _ = to_numpy(x, "x")
    matrix = values.reshape(want.rows, want.cols)
    for box in _boxes(want, kernel):
        top, bottom, left, right = box
        piece = np.ascontiguousarray(matrix[top:bottom, left:right])
        try:
            mine = _core.quantize(piece if want.dtype != "bfloat16" else _wide(piece), spec=_alone(want))
            part, other = _part(want, box), _part(kernel, box)
        except (ValueError, TypeError):
            continue
        mine.dtype = want.dtype
        if _same(mine, part) and not _same(part, other):
            return piece, mine, other, box
    return None


def _same(a: Quantized, b: Quantized) -> bool:
    micro = (a.micro is None and b.micro is None) or np.array_equal(a.micro, b.micro)
    return np.array_equal(a.codes, b.codes) and np.array_equal(a.scales, b.scales) and micro


def _wide(bits: Any) -> Any:
    """bfloat16 bits as the float32 numbers that they are."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def _alone(want: Quantized) -> Spec:
    """The spec of a part: with the tensor scale of the whole."""
    if want.tensor_scale is None or want.spec.tensor_given != "none":
        return want.spec
    with np.errstate(all="ignore"):
        return Spec(want.spec, tensor_given=float(want.tensor_scale))


def _failure(x: Any, given: tuple[Any, Any, Any], micro: Any, want: Quantized, found: Diff, verdict: str, nan_bits: bool, equal_zeros: bool) -> AssertionError:
    codes, scales, tensor_scale = given
    kernel = _kernel(want, codes, scales, tensor_scale, micro)
    whole = kernel
    cut = _cut(x, want, kernel)
    name, dtype, array = input_tensor(x)
    if cut is not None:
        array, want_part, kernel, box = cut
        tensors = kernel_tensors(kernel.codes, kernel.scales, tensor_scale)
        said = f"The smallest failing part is rows {box[0]}..{box[1] - 1}, columns {box[2]}..{box[3] - 1}."
        expected = want_part
    else:
        tensors, expected, said = kernel_tensors(codes, scales, tensor_scale), want, "No part fails by itself; the case is the whole."
    where = _save.place("matches", b"".join(np.ascontiguousarray(a).tobytes() for _, _, a in tensors) + str(want.spec).encode())
    paths = [where / n for n in ("expected.safetensors", "actual.safetensors", "input.safetensors")]
    expected.save(paths[0])
    if micro is not None and kernel is not None:
        kernel.save(paths[1])  # micro-scales are read where a file says its spec
    else:
        _save.write(paths[1], tensors)
    _save.write(paths[2], [(name, dtype, array)])
    arguments = ["diff", str(paths[0]), str(paths[1]), "--kernel", "--input", f"{paths[2]}:input"] + ["--nan-bits"] * nan_bits + ["--equal-zeros"] * equal_zeros
    try:
        example = _save.shown(arguments)
    except (ShapeError, ProgramError) as error:
        example = str(error)
    return _save.fail(_lines(want, found, verdict, whole), example, where, arguments, said)
