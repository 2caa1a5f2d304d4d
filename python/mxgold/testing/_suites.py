"""Defines cases(), which gives a test the tensors that tell kernels apart as its parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from .._arrays import as_like
from .._cases import Case, gen

Test = TypeVar("Test", bound=Callable[..., Any])


class CaseSet:
    """The cases of some suites: a decorator for pytest, and an iterable of Case for everything else."""

    def __init__(self, found: Sequence[Case], argument: str, like: Any) -> None:
        self._cases, self._argument, self._like = list(found), argument, like

    def __iter__(self) -> Iterator[Case]:
        return iter(self._cases)

    def __len__(self) -> int:
        return len(self._cases)

    def __call__(self, test: Test) -> Test:
        import pytest

        values = [pytest.param(as_like(c.x, self._like) if self._like is not None else c.x, id=c.id) for c in self._cases]
        return pytest.mark.parametrize(self._argument, values)(test)  # type: ignore[no-any-return]


def cases(
    preset: str | None = None,
    suites: Sequence[str] = ("ties", "boundary", "special"),
    *,
    spec: Any = None,
    set: Any = None,
    seed: int = 0,
    shape: tuple[int, int] | None = None,
    argument: str = "x",
    like: Any = None,
) -> CaseSet:
    """Tensors of suites, for a test with an argument x: each is a case of its own.

        @mxgold.testing.cases("te-nvfp4", suites=["ties", "special"])
        def test_kernel(x):
            codes, scales, scale = my_kernel(x)
            mxgold.testing.assert_matches(x, codes, scales, "te-nvfp4", scale)

    preset, spec, set, seed: as gen(). shape: of suites that can have any. argument: the test's. like: an array, module or name, such as "torch".
    Without pytest it is an iterable of Case (.x, .expected, .id).

    >>> len(cases("te-nvfp4", suites=["ties"]))
    1
    """
    if not isinstance(suites, (list, tuple)):
        raise TypeError(f"suites: expected a list of names, not {type(suites).__name__}")
    found: list[Case] = []
    for suite in suites:
        own = shape if suite not in ("special", "minimal") else None
        found += gen(suite, preset, spec=spec, set=set, seed=seed, shape=own)
    return CaseSet(found, argument, like)
