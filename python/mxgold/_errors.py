"""Defines the exceptions: every refusal of mxgold is one of these, with one line that says what is wrong, where, and what was expected."""

from __future__ import annotations

import re
from typing import Any

# Statuses of include/mxgold/status.h, in its order; -1 is a wrong dtype.
_OK, _ARG, _SHAPE, _KEY, _CONFLICT, _DATA, _NOMEM, _IO, _FORMAT, _UNSUPPORTED, _TIME = range(11)
_DTYPE = -1


class Error(ValueError):
    """Base of mxgold's exceptions.

    argument: name of the argument that is wrong, or None.
    """

    argument: str | None = None

    def __str__(self) -> str:
        """One line, whatever the text that is quoted in it holds."""
        return " ".join(super().__str__().splitlines())


class SpecError(Error):
    """A preset, key, value or model that is unknown, or keys that exclude each other.

    nearest: the nearest names, or the choices of a key; empty for keys that exclude each other.
    """

    nearest: tuple[str, ...] = ()


class ShapeError(Error):
    """An array whose shape does not fit the others, or the spec."""


class DataError(Error):
    """A value that is refused.

    index: where it stands, one int an axis of the array seen as a matrix [rows][cols], or one int for a flat index; None if no single place is meant.
    """

    index: tuple[int, ...] | None = None


class DtypeError(DataError, TypeError):
    """An array of a dtype that is not taken, or an object that is no array."""


class FileFormatError(Error):
    """A file that is not what it should be; the message names the file and the place."""


class UnsupportedError(Error, NotImplementedError):
    """What the library cannot compute, though the request makes sense."""


class ProgramError(Error):
    """The program mxgold said that something is wrong (exit status 2)."""


class KernelError(Error):
    """A kernel under test that raised an exception of its own, which is __cause__.

    x: the input that it was given, in NumPy; case: the Case that it comes from.
    """

    x: Any = None
    case: Any = None


class OutOfTimeError(ProgramError):
    """The seconds of a search ran out before anything was tried."""


def _nearest(text: str) -> tuple[str, ...]:
    found = re.search(r"nearest: (.*)$", text) or re.search(r"expected one of (.*)$", text)
    return tuple(name for name in re.split(r"[,| ]+", found[1]) if name) if found else ()


def _index(text: str) -> tuple[int, ...] | None:
    place = re.search(r"row (\d+), column (\d+)", text)
    if place:
        return int(place[1]), int(place[2])
    flat = re.search(r"(?:value|integer) (\d+) is", text)
    return (int(flat[1]),) if flat else None


def key_error(argument: str, text: str) -> SpecError:
    """A preset, key or value that the program does not know, said of an argument."""
    error = SpecError(f"{argument}: {text}")
    error.argument, error.nearest = argument, _nearest(text)
    return error


def make(kind: int, argument: str | None, text: str) -> Exception:
    """The exception of a status of the C library, with its message."""
    said = f"{argument}: {text}" if argument else text
    if kind == _NOMEM:
        return MemoryError(said)
    if kind == _IO:
        return FileNotFoundError(said) if text.endswith("No such file or directory") else OSError(said)
    error: Error
    if kind in (_KEY, _CONFLICT):
        error = SpecError(said)
        error.nearest = _nearest(text) if kind == _KEY else ()
    elif kind == _SHAPE:
        error = ShapeError(said)
    elif kind == _DATA:
        error = DataError(said)
        error.index = _index(text)
    elif kind == _DTYPE:
        error = DtypeError(said)
    elif kind == _FORMAT:
        error = FileFormatError(said)
    elif kind == _UNSUPPORTED:
        error = UnsupportedError(said)
    else:
        error = Error(said)
    error.argument = argument
    return error
