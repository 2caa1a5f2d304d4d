"""Defines ablate(), which says as a table what formats do to tensors."""

from __future__ import annotations

import csv
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from . import _core, _program
from ._arguments import integer, text
from ._arguments import path as file_name
from ._errors import DtypeError, Error, ProgramError, key_error
from ._spec import Spec
from ._verify import Tensor, input_tensor


class Ablation:
    """The measurements of ablate(): a sequence of rows, each a dict, one for each tensor and spec.

    columns: names of the figures, those of `mxgold ablate --json` (sqnr_db, bits, mse, behind_db with behind_low and behind_high, pareto, ...).
    specs: a row for each spec over all tensors. report: all that the program says. to_pandas(), to_polars() and to_csv() hand the rows on,
    plot_front() and plot_behind() draw them.
    """

    def __init__(self, report: Mapping[str, Any]) -> None:
        self.report = dict(report)
        self.rows: list[dict[str, Any]] = list(report["measurements"])
        self.specs: list[dict[str, Any]] = list(report["specs"])

    @property
    def columns(self) -> list[str]:
        return list(self.rows[0]) if self.rows else []

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self.rows[integer(index, "index", -(2**62), 2**62)]

    def __repr__(self) -> str:
        return f"Ablation({len({row['tensor'] for row in self.rows})} tensors, {len(self.specs)} specs)"

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write a line of names, then a line for each row."""
        path = file_name(path)
        temporary = f"{path}.tmp"
        with open(temporary, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, self.columns, lineterminator="\n")
            writer.writeheader()
            writer.writerows(self.rows)
        os.replace(temporary, path)

    def to_pandas(self) -> Any:
        """A pandas.DataFrame of the rows."""
        import pandas

        return pandas.DataFrame(self._columns())

    def to_polars(self) -> Any:
        """A polars.DataFrame of the rows; a column with fractions in it is one of floats throughout."""
        import polars

        return polars.DataFrame(self._columns())

    def _columns(self) -> dict[str, list[Any]]:
        columns = {name: [row.get(name) for row in self.rows] for name in self.columns}
        for name, values in columns.items():
            if any(isinstance(v, float) for v in values):
                columns[name] = [None if v is None else float(v) for v in values]
        return columns

    def plot_front(self, tensor: str | None = None, *, ax: Any = None) -> Any:
        """Draw the SQNR of each spec against its bits, with the front of those that nothing beats at fewer bits (extra `plot`).

        tensor: which one, if there are several. ax: matplotlib's axes to draw on; new ones by default. Returns the axes. Raises Error (tensor).
        """
        from ._plot import front

        return front(self, tensor, ax)

    def plot_behind(self, tensor: str | None = None, *, ax: Any = None) -> Any:
        """Draw how many decibels each spec is behind the best, with the interval of 95 % (extra `plot`); arguments as plot_front()."""
        from ._plot import behind

        return behind(self, tensor, ax)

    def _repr_html_(self) -> str:
        from ._html import ablation_html

        return ablation_html(self)


def _preset(value: Any) -> str:
    """A preset's name; a Spec that is a preset stands for it, since the program takes keys for all presets alone."""
    if not isinstance(value, Spec):
        return text(value, "presets")
    name, rest = value.shortest(value._like)
    if name and not rest:
        return name
    raise key_error("presets", f"{value!r}, expected presets without keys of their own: set= changes keys of all")


def _tensor(name: Any, array: Any, alone: bool) -> Tensor:
    name = text(name, "tensors")
    try:
        return input_tensor(array, name, "tensors" if alone else f"tensors: {name!r}")
    except DtypeError as error:
        error.argument = "tensors"
        raise


def _of_arguments(error: ProgramError) -> Error:
    """The program's error of a preset or a key, said of the caller's arguments."""
    said = str(error)
    if said.startswith("--set: "):
        return key_error("set", said.removeprefix("--set: "))
    return key_error("presets", said) if said.startswith("preset '") else error


def ablate(tensors: Any, presets: Sequence[str | Spec], *, set: Any = None, seed: int | None = None, repeats: int | None = None, threads: int = 0) -> Ablation:
    """What does each preset do to each tensor? Error, bits, saturation, underflow, and how far each is behind the best, with its interval.

    tensors: a mapping of names to arrays (mxgold.torch.observe() gives one), or one array, float32, float16 or bfloat16 [..., K].
    presets: names, or a Spec that is one. set: keys with values, {"elem.round": "rne,sr"}: every combination is measured.
    seed, repeats: of random specs. threads: no figure depends on it.
    Returns an Ablation. Raises DtypeError, SpecError (an unknown preset, key or value, with the nearest).

    >>> import numpy as np, mxgold
    >>> x = np.random.default_rng(0).standard_normal((64, 256)).astype(np.float32)
    >>> [row["spec"] for row in mxgold.ablate(x, ["ocp-mxfp4", "nvfp4"])]
    ['nvfp4', 'ocp-mxfp4']
    """
    if isinstance(presets, (str, Spec)):
        presets = [presets]
    if not isinstance(presets, (list, tuple)):
        raise TypeError(f"presets: expected names, not {type(presets).__name__}")
    names = [_preset(preset) for preset in presets]
    if set is not None and not isinstance(set, Mapping):
        raise TypeError(f"set: expected a mapping of keys to values, not {type(set).__name__}")
    if not names:
        raise Error("ablate: no presets, expected names of mxgold.presets()")
    named = tensors if isinstance(tensors, Mapping) else {"tensor": tensors}
    if not named:
        raise DtypeError("tensors: none, expected at least one array")
    with tempfile.TemporaryDirectory(prefix="mxgold-") as folder:
        path = os.path.join(folder, "tensors.safetensors")
        _core.write_file(path, [_tensor(name, array, named is not tensors) for name, array in named.items()], {})
        words = ["ablate", path, "--presets", ",".join(names), "--threads", str(integer(threads, "threads", 0, 1 << 20))]
        for key, values in (set or {}).items():
            if not isinstance(values, (str, list, tuple)):
                raise TypeError(f"set: {key}: expected text or a list of values, not {type(values).__name__}")
            words += ["--set", text(f"{key}={values if isinstance(values, str) else ','.join(map(str, values))}", "set")]
        words += ["--seed", str(integer(seed, "seed"))] if seed is not None else []
        words += ["--repeats", str(integer(repeats, "repeats", 1))] if repeats is not None else []
        try:
            return Ablation(_program.run_json(words)[1])
        except ProgramError as error:
            raise _of_arguments(error) from None
