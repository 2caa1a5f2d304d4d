"""Defines gen(): suites of inputs that tell kernels apart, with what a right kernel gives."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from . import _core, _program
from ._arguments import flag, integer
from ._arguments import path as file_name
from ._arguments import shape as lengths
from ._arrays import as_like
from ._errors import ShapeError
from ._quantized import Quantized
from ._spec import Spec, make


@dataclass(frozen=True)
class Case:
    """One tensor of a suite: x float32 [rows][cols], and where it comes from."""

    suite: str
    index: int
    x: Any
    spec: Spec

    @property
    def expected(self) -> Quantized:
        """What a right kernel gives."""
        found = _core.quantize(self.x, spec=self.spec)
        assert isinstance(found, Quantized)
        return found

    @property
    def id(self) -> str:
        return f"{self.suite}-{self.index}"


class Cases:
    """The tensors of a suite, in order: a sequence of Case."""

    def __init__(self, suite: str, spec: Spec, x: Any, cols: int, seed: int, shape: tuple[int, int] | None) -> None:
        self.suite, self.spec, self.seed = suite, spec, seed
        self._x, self._cols, self._shape = x, cols, shape

    def __len__(self) -> int:
        return int(self._x.shape[0])

    def __getitem__(self, index: int) -> Case:
        at = range(len(self))[integer(index, "index", -(2**62), 2**62)]
        return Case(self.suite, at, self._x[at, :, : self._cols], self.spec)

    def __iter__(self) -> Iterator[Case]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"Cases({self.suite!r}, {str(self.spec)!r}: {len(self)} of {self._x.shape[1]} x {self._cols})"

    def save(self, path: str | os.PathLike[str], *, inputs: bool = False) -> None:
        """Write a .mxv or .safetensors file as `mxgold gen` does, with the expected results; inputs: without them."""
        name = file_name(path)
        if not os.path.isdir(os.path.dirname(name) or "."):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        words: list[str] = ["gen", self.suite, "--seed", str(self.seed), "-o", name]
        preset, rest = self.spec.replace(seed=0).shortest(self.spec._like)
        words += ["--preset", preset] if preset else []
        for item in rest.split():
            words += ["--set", item]
        if self._shape:
            words += ["--shape", f"{self._shape[0]}x{self._shape[1]}"]
        _program.run([*words, "--inputs"] if flag(inputs, "inputs") else words)


def gen(
    suite: str, preset: str | None = None, *, spec: Any = None, set: Any = None, seed: int = 0, shape: tuple[int, int] | None = None, like: Any = None
) -> Cases:
    """The tensors of a suite for a spec: its formats, block and chain say where ties and steps lie.

    suite: a name of mxgold.suites(): random, ties, boundary, codes, special, tails, padding, layout, order, cancel, minimal.
    preset, spec, set: as quantize(). seed: of the suite's random parts, and of the spec's. shape: (rows, cols); by default the suite's own.
    Returns Cases, a sequence of Case with .x (float32 [rows][cols]) and .expected (Quantized). The same on every machine.
    Raises SpecError (an unknown suite, with .nearest), UnsupportedError (rows too long for suite order).

    >>> cases = gen("ties", "te-nvfp4")
    >>> len(cases), cases[0].x.dtype
    (1, dtype('float32'))
    """
    seed = integer(seed, "seed")
    what = make(preset, spec, set, seed or None)
    rows, cols = lengths(shape, "shape", 2) if shape is not None else (0, 0)
    if max(rows, cols) > 1 << 28:
        raise ShapeError(f"shape: {rows} x {cols}, expected at most {1 << 28} of each")
    x, width = _core.generate(suite, what, rows, cols, seed)
    return Cases(suite, what, x if like is None else as_like(x, like), width, seed, tuple(shape) if shape is not None else None)  # type: ignore[arg-type]
