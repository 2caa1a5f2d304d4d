"""Defines strategies for Hypothesis (extra `hypothesis`): specs, and tensors that tell kernels apart.

@given(mxgold.strategies.tensors("te-nvfp4"))
def test_kernel(x):
    mxgold.testing.assert_matches(x, *my_kernel(x), preset="te-nvfp4")
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from . import _core
from ._errors import SpecError
from ._spec import _CHOICES, Spec, make
from ._tables import preset_names

__all__ = ["specs", "tensors"]


def _fits(text: tuple[str, list[str]]) -> Spec | None:
    preset, keys = text
    try:
        return Spec(preset, set=keys)
    except SpecError:  # keys that exclude each other
        return None


def specs(presets: Sequence[str] | None = None, keys: Sequence[str] = ("elem.round", "scale.rule", "elem.zero_sign", "nibble")) -> st.SearchStrategy[Spec]:
    """Specs: a preset with up to two of the keys changed to another of their choices; what excludes itself is left out.

    presets: all that are no aliases by default. keys: those that may change; only choices without a number are taken.
    """
    changes = [f"{key}={choice}" for key in keys for choice in _CHOICES[key] if not choice.endswith("=") and choice not in ("given",)]
    texts = st.tuples(
        st.sampled_from(list(presets) if presets is not None else preset_names()), st.lists(st.sampled_from(changes), max_size=2) if changes else st.just([])
    )
    return texts.map(_fits).filter(lambda spec: spec is not None)  # type: ignore[return-value]


def _edges(spec: Spec) -> list[float]:
    """Values at which rules differ: ties and steps of the spec's own suites, special values."""
    values: list[Any] = [0.0, -0.0, 1.0, 2.0**-126, 2.0**-149, float(np.finfo(np.float32).max), float("inf"), float("-inf"), float("nan")]
    for suite in ("ties", "boundary"):
        x, cols = _core.generate(suite, spec, 8, 64, 0)
        values += [float(v) for v in x[0, :, :cols].ravel()[::7]]
    return values


@lru_cache(maxsize=256)
def _suite(spec: Spec, shape: tuple[int, int], seed: int) -> Any:
    x, cols = _core.generate("ties", spec, *shape, seed)
    return x[0, :, :cols]


@st.composite
def _ties(draw: st.DrawFn, spec: Spec, shapes: st.SearchStrategy[tuple[int, int]]) -> Any:
    """A tensor of the suite of ties: edges drawn one by one also set the scales of their block and tensor, under which few of them are ties."""
    shape, seed = draw(shapes), draw(st.integers(0, 3))
    return _suite(spec, shape, seed).copy() if all(shape) else np.zeros(shape, np.float32)


def tensors(preset: str | None = None, *, spec: Any = None, set: Any = None, rows: tuple[int, int] = (0, 4), cols: tuple[int, int] = (0, 80),
            finite: bool = False) -> st.SearchStrategy[Any]:  # fmt: skip
    """float32 [rows][cols]: any numbers, those on which rules differ, and whole tensors of ties; they shrink to few.

    preset, spec, set: what the edges are made for, as quantize(). rows, cols: least and most. finite: neither NaN nor Inf.
    """
    what = make(preset, spec, set, None)
    edges = [v for v in _edges(what) if not finite or np.isfinite(v)]
    elements = st.one_of(st.sampled_from(edges), st.floats(width=32, allow_nan=not finite, allow_infinity=not finite))
    shapes = st.tuples(st.integers(*rows), st.integers(*cols))
    return st.one_of(hnp.arrays(np.float32, shapes, elements=elements), _ties(what, shapes))
