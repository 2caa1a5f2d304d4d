"""Defines explain(), which finds the rule that a callable follows from inputs that tell rules apart, and confirms it on fresh ones."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _core, _program
from .._arguments import positive
from .._arrays import as_like
from .._cases import Case
from .._errors import DtypeError, Error, KernelError, OutOfTimeError
from .._files import load
from .._quantized import Quantized
from .._spec import Spec, make
from .._tables import hold_dtypes
from .._verify import Identity, beside, diff, expect_words, faulty, identity_of, judge_micro, kernel_tensors, reproduction
from ._matches import Deviations, deviations
from ._suites import cases

Kernel = Callable[[Any], Any]


@dataclass(frozen=True)
class Explanation:
    """What a kernel does.

    ok: its bytes are those of the preset that was asked for, or of a deviation that is allowed; without a preset, a spec was found and confirmed.
    verdict: one or two sentences; identity: what was found, with spec, preset and fault; confirmed: fresh inputs gave the bytes of that spec or fault;
    cases, fresh: how many tensors were used.
    """

    ok: bool
    verdict: str
    identity: Identity
    confirmed: bool
    cases: int
    fresh: int

    @property
    def spec(self) -> Spec | None:
        return self.identity.spec

    @property
    def grade(self) -> str:
        """ "confirmed" if fresh inputs gave the bytes of the answer too, else "fits" (what was seen) or "none"."""
        return "confirmed" if self.confirmed else "fits" if self.identity.grade == "confirmed" else self.identity.grade

    @property
    def fault(self) -> str | None:
        """What is wrong over a preset, as `mxgold quantize --fault` takes it; None if no fault was found."""
        return self.identity.fault

    @property
    def preset(self) -> str | None:
        return self.identity.preset

    def _repr_html_(self) -> str:
        from .._html import explanation_html

        return explanation_html(self)

    def __str__(self) -> str:
        return self.verdict


Outputs = tuple[Any, Any, Any, Any]  # codes, scales, tensor scale, micro-scales


def _outputs(kernel: Kernel, case: Case, origin: str, like: Any) -> Outputs:
    """What a kernel gives on a copy of the case's input, in which it may write; origin: the keywords of gen() that make the input again."""
    x = np.array(case.x)
    given_x = as_like(x, like) if like is not None else x
    try:
        given = kernel(given_x)
    except Exception as error:
        raise _kernel_error(error, case, origin) from error
    if isinstance(given, Quantized):
        return given.codes, given.scales, given.tensor_scale, given.micro
    if not isinstance(given, (tuple, list)) or len(given) not in (2, 3, 4):
        what = f"{len(given)} results" if isinstance(given, (tuple, list)) else type(given).__name__
        raise DtypeError(f"kernel: gave {what}, expected codes and scales, then a tensor scale, then micro-scales where there are any")
    try:
        hold_dtypes(case.spec, given[0], given[1])
    except DtypeError as error:
        raise DtypeError(f"kernel: {error}") from None
    return (*given, None, None)[:4]


def explain(
    kernel: Kernel,
    preset: str | None = None,
    *,
    spec: Any = None,
    set: Any = None,
    allow: Any = None,
    suites: Sequence[str] = ("random", "ties", "boundary", "special"),
    seed: int = 0,
    seconds: float = 10,
    like: Any = None,
    threads: int = 0,
) -> Explanation:
    """Which rule does a kernel follow?

    kernel: a callable x -> codes, scales[, tensor_scale[, micro]], or a Quantized; x is float32 [rows][cols], of the library that like=
    names. preset, spec, set: what it should do, and what the inputs are made for; without them plain OCP MXFP4's. allow: known deviations, as
    assert_matches(). suites: the inputs that tell. seed: of these; the fresh ones have another. seconds: of the search. Returns an Explanation.

    Raises KernelError if the kernel raised an exception: its message names that and the input, .x is the input, .__cause__ the kernel's exception.

    >>> import mxgold, mxgold.testing
    >>> found = mxgold.testing.explain(lambda x: mxgold.quantize(x, "ocp-mxfp4", set="elem.round=rna"), preset="ocp-mxfp4")
    >>> found.ok, found.confirmed, found.spec.elem_round
    (False, True, 'rna')
    """
    if not callable(kernel):
        raise TypeError(f"kernel: expected a callable, not {type(kernel).__name__}")
    wanted = make(preset, spec, set, None) if preset is not None or spec is not None or set is not None else None
    asked = wanted if wanted is not None else Spec()
    seconds = positive(seconds, "seconds")
    allowed = deviations(allow, asked)
    tensors: list[tuple[str, str, Any]] = []
    right = True
    outputs: list[tuple[Case, Outputs]] = []
    telling = cases(spec=asked, suites=suites, seed=seed)
    for case in telling:
        codes, scales, scale, _ = given = _outputs(kernel, case, f", seed={seed}" if seed else "", like)
        outputs.append((case, given))
        right = right and wanted is not None and _gives(asked, case, given)
        tensors += [(f"{case.suite}{case.index}.{name}", dtype, array) for name, dtype, array in kernel_tensors(codes, scales, scale, case.x)]
    found = _right(asked) if right else _with_all_micro(_search(tensors, seconds, threads, wanted), outputs)
    if not right and outputs:
        largest, given = max(outputs, key=lambda o: int(o[0].x.size))
        plainer = beside(asked, found, largest.x, *given)
        if plainer.spec is not None and all(_gives(plainer.spec, case, given) for case, given in outputs):
            found = plainer
    fresh = _fresh(kernel, asked, seed, like)
    confirmed = _confirmed(found, fresh)
    ok = confirmed and (found.exact if wanted is None else right)
    if wanted is not None and not ok and _is_allowed(allowed, asked, found, [*outputs, *fresh]):
        ok = confirmed = True  # what is allowed gives every byte, of the fresh inputs too
    said = found.verdict + ("" if confirmed or found.grade == "none" else " Fresh inputs do not confirm it.")
    return Explanation(ok, said, found, confirmed, len(telling), len(fresh))


def _kernel_error(error: Exception, case: Case, origin: str) -> KernelError:
    """Says that the kernel raised, not mxgold, and with which input."""
    odd = [name for name, there in (("NaN", np.isnan(case.x).any()), ("Inf", np.isinf(case.x).any())) if there]
    largest = np.abs(case.x, where=np.isfinite(case.x), out=np.zeros_like(case.x)).max(initial=0)
    size = f"{case.x.shape[0]} x {case.x.shape[1]}, magnitudes up to {largest:.3g}{''.join(' and ' + name for name in odd)}"
    plain = case.spec.replace(seed=0)
    spec = repr(str(plain)) if "=" not in str(plain) else f"spec=mxgold.{plain!r}"
    made = KernelError(f"kernel: raised {type(error).__name__}: {error}; on the input mxgold.gen({case.suite!r}, {spec}{origin})[{case.index}].x ({size})")
    made.argument, made.x, made.case = "kernel", np.array(case.x), case
    return made


def _gives(spec: Spec, case: Case, given: Outputs) -> bool:
    codes, scales, scale, micro = given
    right = _core.quantize(case.x, spec=spec)
    if (right.micro is None) != (micro is None):
        return False
    try:
        return diff(right, codes=codes, scales=scales, tensor_scale=scale, micro=micro).equal
    except Error:  # codes or scales of another format
        return False


def _with_all_micro(found: Identity, outputs: list[tuple[Case, Outputs]]) -> Identity:
    """The search reads codes and scales alone: the micro-scales of every case must be those of what it found."""
    for case, given in outputs:
        found = judge_micro(found, case.x, given[3])
    return found


def _right(spec: Spec) -> Identity:
    name = spec.preset or str(spec)
    said = f"Your kernel does what {name} does: every byte is the same."
    return Identity(True, spec.preset, spec, said, reproduction(spec), True, grade="confirmed")


def _search(tensors: list[tuple[str, str, Any]], seconds: float, threads: int, wanted: Spec | None) -> Identity:
    with tempfile.TemporaryDirectory(prefix="mxgold-") as folder:
        path = os.path.join(folder, "kernel.safetensors")
        _core.write_file(path, [(n.replace(".input", ".x"), d, a) for n, d, a in tensors], {})
        words = ["identify", "--output", path, *expect_words(wanted), "--quick", "--seconds", repr(positive(seconds, "seconds")), "--threads", str(threads)]
        try:
            return identity_of(_program.run_json(words)[1])
        except OutOfTimeError as error:
            raise OutOfTimeError(f"seconds: {seconds:g}: {error}") from None


def _fresh(kernel: Kernel, asked: Spec, seed: int, like: Any) -> list[tuple[Case, Outputs]]:
    """What the kernel gives on inputs that nothing was fitted to."""
    fresh = cases(spec=asked, suites=("random", "ties", "boundary"), seed=seed + 1000003, shape=(48, 192))
    return [(case, _outputs(kernel, case, f", seed={seed + 1000003}, shape=(48, 192)", like)) for case in fresh]


def _confirmed(found: Identity, fresh: list[tuple[Case, Outputs]]) -> bool:
    """Are these the bytes of what was found, a spec or a fault over a preset?"""
    if found.exact and found.spec is not None:
        spec = found.spec
        return all(_gives(spec, case, given) for case, given in fresh)
    return found.fault is not None and all(_fault_gives(found, case, given) for case, given in fresh)


def _fault_gives(found: Identity, case: Case, given: Outputs) -> bool:
    """A kernel's bytes are those of `mxgold quantize` with the fault that was found."""
    codes, scales, scale, _ = given
    with tempfile.TemporaryDirectory(prefix="mxgold-") as folder:
        source, result = (os.path.join(folder, name) for name in ("x.safetensors", "q.safetensors"))
        _core.write_file(source, [("input", "f32", case.x)], {})
        try:
            _program.run(["quantize", f"{source}:input", "-o", result, *found.report["reproduce"]])
            wrong = load(result)
            return isinstance(wrong, Quantized) and diff(wrong, codes=codes, scales=scales, tensor_scale=scale).equal
        except Error:  # a fault that was made for other sizes
            return False


def _is_allowed(allowed: Deviations, asked: Spec, found: Identity, outputs: list[tuple[Case, Outputs]]) -> bool:
    """Does one deviation that is allowed, over the spec that was asked for, give every byte of all inputs, the fresh ones too?"""
    if any(all(_gives(spec, case, given) for case, given in outputs) for spec in allowed.specs):
        return True
    faults = list(allowed.faults)
    if found.bug is not None and found.fault is not None and found.bug["name"] in allowed.names:
        faults.append([found.fault])
    return any(all(_gives_faulty(asked, some, case, given) for case, given in outputs) for some in faults)


def _gives_faulty(asked: Spec, faults: list[str], case: Case, given: Outputs) -> bool:
    codes, scales, scale, micro = given
    try:
        return diff(faulty(case.x, asked, faults), codes=codes, scales=scales, tensor_scale=scale, micro=micro).equal
    except Error:  # a fault that was made for other sizes, codes or scales of another format
        return False
