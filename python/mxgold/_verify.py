"""Answers on arrays, by the program, what differs, which rule a kernel follows, whether D is the product, and what a matrix unit computes."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from . import _core, _program
from ._arguments import flag, integer, number, positive, text
from ._arrays import to_numpy
from ._errors import DataError, DtypeError, Error, OutOfTimeError, ProgramError, ShapeError
from ._files import dtype_name, load
from ._quantized import Quantized
from ._spec import Spec, make, meaning
from ._tables import hold_dtypes

Tensor = tuple[str, str, Any]


def _threads(n: Any) -> list[str]:
    return ["--threads", str(integer(n, "threads", 0, 1 << 20))]


# What the program says of a tensor that stands for an argument, or of the whole file.
_OF_KERNEL = re.compile(r"^((?:actual|kernel)\.safetensors: )?(?:(?:tensor )?(codes|scales|tensor_scale|micro|x): )?(.*?)(?: as in A)?$")


def _of_arguments(error: ProgramError) -> Error:
    """The program's error, said of the caller's arrays: he knows no files."""
    found = _OF_KERNEL.match(str(error))
    if not found or not (found[1] or found[2]):
        return error
    name, text = found[2] or "other", found[3]
    place = re.search(r"in row (\d+), column (\d+)", text)
    made: Error = DataError(f"{name}: {text}") if place else ShapeError(f"{name}: {text}")
    made.argument = name
    if place and isinstance(made, DataError):
        made.index = int(place[1]), int(place[2])
    return made


def narrow(codes: Any, elements: int) -> Any:
    """Codes one an element in integers wider than a byte, such as torch's own int64, as bytes; anything else as it is."""
    array, dtype = to_numpy(codes, "codes")
    if array.size != elements or array.dtype.itemsize == 1 or not dtype.startswith(("int", "uint")):
        return codes
    flat = array.ravel()
    wrong = np.flatnonzero((flat > 255) | (flat < -128 if array.dtype.kind == "i" else False))
    if wrong.size:
        error = DataError(f"codes: value {int(wrong[0])} is {int(flat[wrong[0]])}, expected a code of one byte")
        error.argument, error.index = "codes", (int(wrong[0]),)
        raise error
    return array.astype(np.uint8)


def _codes_tensor(name: str, value: Any) -> Tensor:
    """Codes of any dtype as bytes, or as the integers that they are."""
    array, dtype = to_numpy(value, name)
    if dtype in ("float32", "float16", "float64") and name == "codes":
        raise DtypeError(f"codes: dtype {dtype}, expected codes as integers")
    return name, "u8" if array.dtype.itemsize == 1 else dtype_name(dtype), array.view(np.uint8) if array.dtype.itemsize == 1 else array


def _scale_tensor(value: Any) -> Tensor:
    array, dtype = to_numpy(value, "tensor_scale")
    if array.size != 1:
        raise ShapeError(f"tensor_scale: {array.size} values, expected one")
    if dtype == "bfloat16":
        return "tensor_scale", "bf16", array.reshape(1)
    return "tensor_scale", "f32", array.astype(np.float32).reshape(1)


def input_tensor(value: Any, name: str = "input", argument: str = "x") -> Tensor:
    """An input of a kernel as a tensor of a file."""
    array, dtype = to_numpy(value, argument)
    if dtype not in ("float32", "float16", "bfloat16"):
        error = DtypeError(f"{argument}: dtype {dtype}, expected float32, float16 or bfloat16")
        error.argument = argument
        raise error
    return name, dtype_name(dtype), array


def kernel_tensors(codes: Any, scales: Any, tensor_scale: Any, x: Any = None) -> list[Tensor]:
    """What a kernel gave, as the tensors of a file that the program reads: any packing, scales in any form."""
    tensors = [] if x is None else [input_tensor(x)]
    if tensors:
        codes = narrow(codes, int(tensors[0][2].size))
    tensors += [_codes_tensor("codes", codes), _codes_tensor("scales", scales)]
    if tensor_scale is not None:
        tensors.append(_scale_tensor(tensor_scale))
    return tensors


@dataclass(frozen=True)
class Diff:
    """What differs between what is expected and what a kernel gave.

    Codes, scales, tensor scales and dequantised values are counted each by itself. A NaN equals a NaN and codes under a NaN scale do not count, unless
    nan_bits; -0 is not +0, unless equal_zeros. patterns: what all differences have in common; examples: first, worst and smallest, as dicts; verdict: which
    rule the kernel follows instead (with explain); report: all that the program says.
    """

    equal: bool
    codes_differ: int
    scales_differ: int
    tensor_scales_differ: int = 0
    values_differ: int = 0
    zero_signs: int = 0
    n_codes: int = 0
    n_scales: int = 0
    rows_differ: int = 0
    blocks_differ: int = 0
    layout: str | None = None
    patterns: tuple[str, ...] = ()
    verdict: str = ""
    examples: tuple[dict[str, Any], ...] = ()
    report: dict[str, Any] = field(default_factory=dict, repr=False)

    def _repr_html_(self) -> str:
        from ._html import diff_html

        return diff_html(self)

    def __str__(self) -> str:
        if self.equal:
            return f"equal: {self.n_codes} codes, {self.n_scales} scales"
        said = f"{self.codes_differ} of {self.n_codes} codes and {self.scales_differ} of {self.n_scales} scales differ"
        return "; ".join([said + (", and the tensor scale" if self.tensor_scales_differ else ""), *self.patterns, *([self.verdict] if self.verdict else [])])


def _diff_of(report: dict[str, Any]) -> Diff:
    return Diff(
        equal=report["equal"],
        codes_differ=report["codes_differ"],
        scales_differ=report["scales_differ"],
        tensor_scales_differ=report["tensor_scales_differ"],
        values_differ=report["values_differ"],
        zero_signs=report["zero_signs"],
        n_codes=report["codes"],
        n_scales=report["scales"],
        rows_differ=report["rows_differ"],
        blocks_differ=report["blocks_differ"],
        layout=report.get("scale_layout"),
        patterns=tuple(report["patterns"]),
        verdict=report.get("verdict", ""),
        examples=tuple(report.get("examples", ())),
        report=report,
    )


def same_bytes(q: Quantized, tensors: list[Tensor], micro: Any = None) -> bool:
    """Are the arrays, byte for byte, those of q?"""
    given = {name: array for name, _, array in tensors}
    codes, scales = given["codes"], given["scales"]
    if codes.size == q.rows * q.cols and codes.size != q.codes.size:
        codes_same = codes.itemsize == 1 and np.array_equal(codes.reshape(q.rows, q.cols), q.unpack())
    else:
        codes_same = codes.nbytes == q.codes.nbytes and np.ascontiguousarray(codes).tobytes() == q.codes.tobytes()
    if not codes_same or scales.dtype.itemsize != q.scales.dtype.itemsize or np.ascontiguousarray(scales).tobytes() != q.scales.tobytes():
        return False
    if (q.micro is None) != (micro is None) or (q.micro is not None and to_numpy(micro, "micro")[0].tobytes() != to_numpy(q.micro, "micro")[0].tobytes()):
        return False
    if q.tensor_scale is None or "tensor_scale" not in given:
        return True
    return bool(given["tensor_scale"].tobytes() == q.tensor_scale.tobytes())


def _with_micro(q: Quantized, codes: Any, scales: Any, micro: Any) -> Quantized | None:
    """A kernel's arrays with the micro-scales that q's spec stores; None if it stores none. They are part of what a kernel must give."""
    if q.micro is None:
        if micro is not None:
            raise Error(f"micro: {q.spec} stores no micro-scales, expected none")
        return None
    if micro is None:
        raise Error(f"micro: {q.spec} stores three bytes of micro-scales a block, expected them as micro=")
    return Quantized.of(codes, scales, spec=q.spec, shape=q.shape, dtype=q.dtype, micro=micro)


def diff(
    q: Quantized,
    other: Quantized | None = None,
    *,
    codes: Any = None,
    scales: Any = None,
    tensor_scale: Any = None,
    micro: Any = None,
    layout: str | None = None,
    x: Any = None,
    explain: bool = False,
    nan_bits: bool = False,
    equal_zeros: bool = False,
    threads: int = 0,
) -> Diff:
    """What differs between q, which is expected, and what a kernel gave.

    other: a Quantized; or codes= and scales= as the kernel stores them: one code a byte or two, scales in row-major order or a layout of mxgold.layouts(),
    as bytes or as numbers (layout= says which, where the sizes do not); tensor_scale= as
    it stores it, compared only if it is given. micro=: HiF4's micro-scales, uint8 [scale_rows][scale_cols][3], which count as part of the scale that they
    stand beside; its codes and scales are then one a byte or as quantize() packs them. x: the input, for examples in full; explain: also which rule the kernel
    follows (needs x). Raises ShapeError (sizes that fit no form), DtypeError (of another format, too), DataError (what is no code of the format: .index).

    >>> import numpy as np, mxgold
    >>> x = np.linspace(-3, 3, 64, dtype=np.float32).reshape(2, 32)
    >>> q = mxgold.quantize(x, "ocp-mxfp4")
    >>> mxgold.diff(q, codes=q.codes ^ 1, scales=q.scales).codes_differ
    32
    """
    if not isinstance(q, Quantized):
        raise DtypeError(f"q: {type(q).__name__}, expected a Quantized")
    explain, nan_bits, equal_zeros = (flag(v, n) for v, n in ((explain, "explain"), (nan_bits, "nan_bits"), (equal_zeros, "equal_zeros")))
    if other is not None:
        if not isinstance(other, Quantized):
            raise DtypeError(f"other: {type(other).__name__}, expected a Quantized")
        codes, scales, tensor_scale, micro = other.codes, other.scales, other.tensor_scale, other.micro
    if codes is None or scales is None:
        raise Error("diff: expected another Quantized, or codes= and scales=")
    if explain and x is None:
        raise Error("diff: explain needs the input, x=")
    hold_dtypes(q.spec, codes, scales)
    if layout is not None:
        scales = _core.layout_scales(to_numpy(scales, "scales")[0], layout, back=True, rows=q.scales.shape[0], kb=q.scales.shape[1])
    if other is None:
        codes = narrow(codes, q.rows * q.cols)
        other = _with_micro(q, codes, scales, micro)
    tensors = kernel_tensors(codes, scales, tensor_scale)
    q = q._in_numpy()
    if not nan_bits and same_bytes(q, tensors, micro):
        return Diff(True, 0, 0, n_codes=q.rows * q.cols, n_scales=int(q.scales.size))
    with tempfile.TemporaryDirectory(prefix="mxgold-") as folder:
        expected, actual, given = (os.path.join(folder, n) for n in ("expected.safetensors", "actual.safetensors", "input.safetensors"))
        q.save(expected)
        if other is not None:
            other.save(actual)
        else:
            _core.write_file(actual, tensors, {})
        words = ["diff", expected, actual, "--kernel", *_threads(threads)]
        if x is not None:
            _core.write_file(given, [input_tensor(x)], {})
            words += ["--input", given + ":input"]
        words += ["--explain"] * explain + ["--nan-bits"] * nan_bits + ["--equal-zeros"] * equal_zeros
        try:
            return _diff_of(_program.run_json(words)[1])
        except ProgramError as error:
            raise _of_arguments(error) from None


@dataclass(frozen=True)
class Identity:
    """The spec that a kernel follows.

    exact: a spec gives every byte. grade: "confirmed" (on data that it was not fitted to as well), "fits" (these data) or "none". preset: the preset that
    gives these bytes, or None; spec: the keys that were found, None where more than one byte in 20 stays wrong; verdict: one or two sentences; reproduce: the
    shell command that gives the same bytes, "" if there is none. undecided: keys that these data cannot decide; bug: what is wrong over a preset, or None,
    with its "fault" for `mxgold quantize --fault`; expected: whether the bytes are those of expect=, None without it; report: all that the program says.
    """

    exact: bool
    preset: str | None
    spec: Spec | None
    verdict: str
    reproduce: str
    expected: bool | None = None
    codes_differ: int = 0
    scales_differ: int = 0
    undecided: tuple[str, ...] = ()
    bug: dict[str, Any] | None = None
    nibble: str | None = None
    layout: str | None = None
    grade: str = "none"
    report: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def fault(self) -> str | None:
        """What is wrong over a preset, as `mxgold quantize --fault` takes it; None if no fault was found."""
        return self.bug.get("fault") if self.bug else None

    def _repr_html_(self) -> str:
        from ._html import identity_html

        return identity_html(self)

    def __str__(self) -> str:
        return self.verdict


def identity_of(report: dict[str, Any], expected: bool | None = None) -> Identity:
    """From what `mxgold identify --json` says."""
    spec: Spec | None = None
    if report["spec"]:
        spec = Spec({k: v for k, v in report["spec"].items() if not (k == "had.signs" and set(str(v)) <= {"0"})})
    if spec is not None and report["preset"]:
        spec = _named(spec, report["preset"])
    return Identity(
        exact=report["exact"],
        preset=report["preset"],
        spec=spec,
        verdict=report["verdict"],
        reproduce=_program.command(["quantize", "IN", "-o", "OUT.safetensors", *report["reproduce"]]) if report["reproduce"] else "",
        expected=expected,
        codes_differ=report["codes_differ"],
        scales_differ=report["scales_differ"],
        undecided=tuple(report.get("undecided", ())),
        bug=report.get("bug"),
        nibble=report.get("nibble"),
        layout=report.get("scale_layout"),
        grade=report["grade"],
        report=report,
    )


def beside(want: Spec, found: Identity, x: Any, codes: Any, scales: Any, tensor_scale: Any, micro: Any = None) -> Identity:
    """What was found, said of the spec that was expected: presets that give the same bytes on these data have several names. A single key of the answer
    that turns what is expected into the kernel's bytes is the plainest answer; otherwise the answer stays."""
    if not found.exact or found.spec is None or found.spec == want:
        return found
    mine, theirs = dict(want), dict(found.spec)
    for key in (k for k in mine if mine[k] != theirs[k]):
        try:
            spec = want.replace(**{key.replace(".", "_"): theirs[key]})
            if not diff(_core.quantize(x, spec=spec), codes=codes, scales=scales, tensor_scale=tensor_scale, micro=micro).equal:
                continue
        except Error:  # keys that exclude each other
            continue
        value = str(theirs[key])
        what = f" ({meaning(key, value)})" if meaning(key, value) else ""
        name = want.preset or str(want)
        said = f"Every byte is explained: your kernel does what {name} does, except that {key} is {value}{what}."
        return replace(found, spec=spec, preset=spec.preset, verdict=said, reproduce=reproduction(spec))
    return found


def _options(spec: Spec) -> list[str]:
    return [w for part in str(spec).split() for w in (["--set", part] if "=" in part else ["--preset", part])]


def reproduction(spec: Spec) -> str:
    """The shell command that gives the bytes of a spec."""
    return _program.command(["quantize", "IN", "-o", "OUT.safetensors", *_options(spec)])


def faulty(x: Any, spec: Spec, faults: list[str]) -> Quantized:
    """What a kernel with these faults gives, by `mxgold quantize --fault`."""
    with tempfile.TemporaryDirectory(prefix="mxgold-") as folder:
        source, result = (os.path.join(folder, name) for name in ("x.safetensors", "q.safetensors"))
        _core.write_file(source, [input_tensor(x)], {})
        _program.run(["quantize", f"{source}:input", "-o", result, *_options(spec), *(w for fault in faults for w in ("--fault", fault))])
        found = load(result)
        assert isinstance(found, Quantized)
        return found


def judge_micro(found: Identity, x: Any, micro: Any) -> Identity:
    """The search reads codes and scales; what it found must give the micro-scales too."""
    if micro is None or not found.exact or found.spec is None:
        return found
    mine = _core.quantize(x, spec=found.spec).micro
    given = to_numpy(micro, "micro")[0]
    if mine is not None and mine.size == given.size and np.array_equal(mine.ravel(), given.ravel()):
        return found
    name = found.spec.preset or str(found.spec)
    if mine is None or mine.size != given.size:
        return replace(found, exact=False, grade="none", verdict=f"Codes and scales are those of {name}, which stores no such micro-scales.")
    wrong = np.argwhere((mine != given.reshape(mine.shape)).any(-1))
    row, block = (int(i) for i in wrong[0])
    said = f"Codes and scales are those of {name}; the micro-scales of {len(wrong)} of {mine.size // 3} blocks are not, first of row {row}, block {block}."
    return replace(found, exact=False, grade="none", preset=None, verdict=said)


def _named(spec: Spec, preset: str) -> Spec:
    object.__setattr__(spec, "_like", preset)
    return spec


def identify(
    x: Any,
    codes: Any = None,
    scales: Any = None,
    tensor_scale: Any = None,
    expect: Any = None,
    *,
    micro: Any = None,
    dequantized: Any = None,
    packed: bool = False,
    transpose: bool = False,
    block: int | None = None,
    quick: bool = False,
    seconds: float | None = None,
    threads: int = 0,
) -> Identity:
    """Which spec does a kernel follow?

    x: its input. codes, scales: as it stores them: one code a byte or two, scales in row-major order or a layout of mxgold.layouts(), bytes or numbers;
    tensor_scale: in whatever convention. micro: of HiF4, as diff(). dequantized: its values, if there is nothing else. expect: a preset or Spec that is
    tried first, so that a right kernel is told at once. packed, transpose, block: what the shapes may not say. quick: leave out the keys
    that the data cannot decide. seconds: of the search; 10.
    Returns an Identity. Raises ShapeError, DtypeError, SpecError (expect), ProgramError.

    >>> import numpy as np, mxgold
    >>> x = np.random.default_rng(0).standard_normal((4, 64)).astype(np.float32)
    >>> q = mxgold.quantize(x, "ocp-mxfp4", set="elem.round=rtz")
    >>> mxgold.identify(x, q.codes, q.scales, quick=True).verdict
    'Every byte is explained: your kernel does what ocp-mxfp4 does, except that elem.round is rtz (toward zero).'
    """
    options = [f"--{n}" for n, v in (("packed", packed), ("transpose", transpose), ("quick", quick)) if flag(v, n)] + _threads(threads)
    options += ["--block", str(integer(block, "block", 1, 2**31))] if block is not None else []
    options += ["--seconds", repr(positive(seconds, "seconds"))] if seconds is not None else []
    if dequantized is None and (codes is None or scales is None):
        raise Error("identify: expected codes and scales, or dequantized=")
    expected: bool | None = None
    want: Spec | None = None
    if expect is not None and dequantized is None and not transpose:
        try:
            want = make(expect, None, None, None) if isinstance(expect, str) and " " not in expect else make(None, expect, None, None)
        except (Error, TypeError) as error:
            raise type(error)(f"expect: {error}") from None
        right = _core.quantize(x, spec=want, threads=threads)
        try:
            expected = diff(right, codes=codes, scales=scales, tensor_scale=tensor_scale, micro=micro, threads=threads).equal
        except Error:
            expected = False
        if expected:
            name = want.preset or str(want)
            return Identity(True, want.preset, want, f"Your kernel does what {name} does: every byte is the same.", reproduction(want), True, grade="confirmed")
    return _searched(x, (codes, scales, tensor_scale), micro, dequantized, options, seconds, want, expected)


def identify_beside(want: Spec, x: Any, given: tuple[Any, Any, Any], micro: Any, seconds: float, threads: int) -> Identity:
    """identify() of a kernel that should do what `want` does and does not, said of that."""
    options = ["--quick", "--seconds", repr(seconds), *_threads(threads)]
    return _searched(x, given, micro, None, options, seconds, want, False)


def expect_words(want: Spec | None) -> list[str]:
    """Options of `mxgold identify`: the answer is said of this preset where that explains as much."""
    return ["--expect", want.preset] if want is not None and want.preset else []


def _searched(
    x: Any, given: tuple[Any, Any, Any], micro: Any, dequantized: Any, options: list[str], seconds: float | None, want: Spec | None, expected: bool | None
) -> Identity:
    codes, scales, tensor_scale = given
    with tempfile.TemporaryDirectory(prefix="mxgold-") as folder:
        path = os.path.join(folder, "kernel.safetensors")
        if dequantized is not None:
            array, dtype = to_numpy(dequantized, "dequantized")
            _core.write_file(path, [input_tensor(x), ("dequantized", dtype_name(dtype), array)], {})
            words = ["identify", "--input", path + ":input", "--dequantized", path + ":dequantized"]
        else:
            _core.write_file(path, kernel_tensors(codes, scales, tensor_scale, x), {})
            words = ["identify", "--output", path, *expect_words(want)]
        words += options
        try:
            found = judge_micro(identity_of(_program.run_json(words)[1], expected), x, micro)
        except OutOfTimeError as error:
            raise OutOfTimeError(f"seconds: {10 if seconds is None else seconds}: {error}") from None
        except ProgramError as error:
            raise _of_arguments(error) from None
    return beside(want, found, x, codes, scales, tensor_scale, micro) if want is not None else found


@dataclass(frozen=True)
class Judgement:
    """Is D the product, and if not, what is it?

    equal: D is right. differ: outputs that are not. judged_against: the model that D is compared with. findings: what was computed instead, best first;
    models: how far D is from each; regions: where D differs, in words; examples: first and worst; report: all that the program says.
    """

    equal: bool
    differ: int
    outputs: int
    judged_against: str
    verdict: str
    findings: tuple[dict[str, Any], ...] = ()
    models: tuple[dict[str, Any], ...] = ()
    regions: tuple[str, ...] = ()
    examples: tuple[dict[str, Any], ...] = ()
    report: dict[str, Any] = field(default_factory=dict, repr=False)

    def _repr_html_(self) -> str:
        from ._html import judgement_html

        return judgement_html(self)

    def __str__(self) -> str:
        return self.verdict


def product_words(
    folder: str,
    a: Quantized,
    b: Quantized,
    d: Any,
    accum: str | None,
    bound: bool,
    c: Any,
    bias: Any,
    alpha: float | None,
    beta: float | None,
    nan_bits: bool,
    equal_zeros: bool,
    threads: int,
) -> list[str]:
    """`mxgold diff --gemm` on files that are written into folder."""
    paths = {n: os.path.join(folder, n + ".safetensors") for n in ("a", "b", "d", "c", "bias")}
    for name, q in (("a", a), ("b", b)):
        if not isinstance(q, Quantized):
            raise DtypeError(f"{name}: {type(q).__name__}, expected a Quantized")
        try:
            q.save(paths[name])
        except Error as error:  # of a Quantized whose parts somebody changed
            raise type(error)(f"{name}: {str(error).removeprefix('q: ')}") from None
    for name, value in (("d", d), ("c", c), ("bias", bias)):
        if value is None:
            continue
        array, dtype = to_numpy(value, name)
        if dtype not in ("float32", "float16", "bfloat16"):
            raise DtypeError(f"{name}: dtype {dtype}, expected float32, float16 or bfloat16")
        if name == "d" and (array.ndim < 2 or array.shape[-2:] != (a.rows, b.rows)):
            raise ShapeError(f"d: {array.shape}, expected ({a.rows}, {b.rows}): a row for each of a, a column for each row of b")
        _core.write_file(paths[name], [(name, dtype_name(dtype), array)], {})
    words = ["diff", "--gemm", paths["a"], paths["b"], paths["d"]]
    words += _threads(threads) if integer(threads, "threads") else []
    words += ["--accum", text(accum, "accum")] if accum is not None else []
    words += ["--bound"] * flag(bound, "bound") + ["--nan-bits"] * flag(nan_bits, "nan_bits") + ["--equal-zeros"] * flag(equal_zeros, "equal_zeros")
    words += ["--c", paths["c"]] if c is not None else []
    words += ["--bias", paths["bias"]] if bias is not None else []
    words += ["--alpha", repr(number(alpha, "alpha"))] if alpha is not None else []
    words += ["--beta", repr(number(beta, "beta"))] if beta is not None else []
    return words


def judgement_of(report: dict[str, Any]) -> Judgement:
    """From what `mxgold diff --gemm --json` says."""
    return Judgement(
        equal=report["equal"],
        differ=report["outputs_differ"],
        outputs=report["outputs"],
        judged_against=report["judged_against"],
        verdict=report["verdict"],
        findings=tuple(report.get("findings", ())),
        models=tuple(report.get("models", ())),
        regions=tuple(report["where"]),
        examples=tuple(report.get("examples", ())),
        report=report,
    )


def diff_gemm(
    a: Quantized,
    b: Quantized,
    d: Any,
    *,
    accum: str | None = None,
    bound: bool = False,
    c: Any = None,
    bias: Any = None,
    alpha: float | None = None,
    beta: float | None = None,
    nan_bits: bool = False,
    equal_zeros: bool = False,
    threads: int = 0,
) -> Judgement:
    """Is D = alpha * A x B^T + beta * C + bias, and if not, what was computed instead?

    a: Quantized [M][K]; b: Quantized [N][K]; d: [M][N] of float32, float16 or bfloat16, from the kernel. accum: the model that D must equal; without it D is
    right if it equals any. bound: D is right if each output lies where a sum in some order may lie. Returns a Judgement.
    Raises ShapeError, DtypeError, ProgramError (an unknown model).

    >>> import numpy as np, mxgold
    >>> a = mxgold.quantize(np.ones((2, 32), np.float32), "ocp-mxfp4")
    >>> mxgold.diff_gemm(a, a, mxgold.gemm(a, a)).equal
    True
    """
    with tempfile.TemporaryDirectory(prefix="mxgold-") as folder:
        words = product_words(folder, a, b, d, accum, bound, c, bias, alpha, beta, nan_bits, equal_zeros, threads)
        return judgement_of(_program.run_json(words)[1])


@dataclass(frozen=True)
class Probe:
    """The model of a matrix unit. fits: every output is explained; model: text for mma(model=); names: rows of the tables that give the same bits."""

    fits: bool
    model: str
    verdict: str
    names: tuple[str, ...] = ()
    report: dict[str, Any] = field(default_factory=dict, repr=False)

    def _repr_html_(self) -> str:
        from ._html import probe_html

        return probe_html(self)


_SIZES = {"block": (1, 4096), "k": (1, 4096), "m": (1, 256), "n": (1, 256)}  # least and most of a tile


def probe(
    device: Callable[..., Any],
    like: str | None = None,
    *,
    a: str | None = None,
    b: str | None = None,
    c: str | None = None,
    d: str | None = None,
    scale: str | None = None,
    block: int | None = None,
    k: int | None = None,
    m: int | None = None,
    n: int | None = None,
    seed: int = 1,
    rounds: int = 3,
    threads: int = 0,
) -> Probe:
    """Which model does a matrix unit follow? Tiles go to the device, a named model comes back.

    device: called as device(a, b, c) or, with scales, device(a, b, c, scale_a, scale_b), raw bits [T][M][K], [T][N][K], [T][M][N] as mma() takes them; returns
    raw bits [T][M][N]. like: types and shape of a model of mxgold.models(); or a, b, c, d (types), scale, block, k, m, n. rounds: at most so many batches of
    tiles, where several models fit the first. Returns a Probe. Raises ShapeError (what the device gave), ProgramError.

    >>> import mxgold
    >>> unit = "hopper/mma_m16n8k16_f32_f16_f16_f32"
    >>> mxgold.probe(lambda a, b, c: mxgold.mma(a, b, c, model=unit), like=unit).fits
    True
    """
    options: list[str] = ["--seed", str(integer(seed, "seed"))]
    if not callable(device):
        raise TypeError(f"device: expected a callable, not {type(device).__name__}")
    rounds = integer(rounds, "rounds")
    given = {"like": like, "a": a, "b": b, "c": c, "d": d, "scale": scale, "block": block, "k": k, "m": m, "n": n}
    for name, value in given.items():
        if value is not None:
            options += [f"--{name}", str(integer(value, name, *_SIZES[name])) if name in _SIZES else text(value, name)]
    with tempfile.TemporaryDirectory(prefix="mxgold-") as folder:
        files: list[str] = []
        tiles = os.path.join(folder, "p0.safetensors")
        _program.run(["probe", "--emit", tiles, *options])
        for at in range(max(rounds, 1)):
            results = os.path.join(folder, f"d{at}.safetensors")
            _run_device(device, tiles, results)
            files += [tiles, results]
            tiles = os.path.join(folder, f"p{at + 1}.safetensors")
            status, report = _program.run_json(["probe", "--fit", *files, "--emit-next", tiles, *_threads(threads)])
            if status or not os.path.exists(tiles):
                break
    names = tuple(row["name"] for row in report.get("rows that give the same", ()))
    return Probe(status == 0, report.get("model", report.get("nearest model", "")), report["verdict"], names, report)


def _run_device(device: Callable[..., Any], tiles: str, results: str) -> None:
    arrays = {name: array for name, _, array in _core.read_file(tiles)[0]}
    operands = [arrays[n] for n in ("a", "b", "c", "scale_a", "scale_b") if n in arrays]
    given, _ = to_numpy(device(*operands), "device")
    if given.shape != arrays["c"].shape:
        raise ShapeError(f"device: gave {given.shape}, expected {arrays['c'].shape}")
    words = given.view({1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[given.dtype.itemsize])
    _core.write_file(results, [("d", f"u{8 * words.itemsize}", words)], {})
