"""Checks single values that are arguments: each is converted to what it should be, or refused with one line that names the argument."""

from __future__ import annotations

import operator
import os
from typing import Any

from ._errors import Error, ShapeError


def _wrong(argument: str, text: str) -> Error:
    """An error that knows its argument, so that nobody names another."""
    error = Error(f"{argument}: {text}")
    error.argument = argument
    return error


def _refused(argument: str, value: Any, wanted: str) -> TypeError:
    return TypeError(f"{argument}: expected {wanted}, not {type(value).__name__}")


def integer(value: Any, argument: str, low: int = 0, high: int = 2**64 - 1) -> int:
    """An int, or anything that is one by __index__."""
    try:
        n = operator.index(value)
    except Exception:  # whatever the object's own method raises
        raise _refused(argument, value, "an int") from None
    if not low <= n <= high:
        raise _wrong(argument, f"{n}, expected an int from {low} to {high}")
    return n


def number(value: Any, argument: str) -> float:
    """A float, or anything that is one by __float__; no text."""
    try:
        if isinstance(value, (str, bytes, bytearray)):
            raise TypeError
        return float(value)
    except Exception:
        raise _refused(argument, value, "a number") from None


def positive(value: Any, argument: str) -> float:
    """A number of seconds and the like: more than 0."""
    found = number(value, argument)
    if not found > 0:
        raise _wrong(argument, f"{found:g}, expected more than 0")
    return found


def flag(value: Any, argument: str) -> bool:
    """True or False: an array or a text given for a flag is a mistake."""
    if isinstance(value, (bool, int)) or type(value).__name__ in ("bool_", "bool"):
        return bool(value)
    raise _refused(argument, value, "True or False")


def text(value: Any, argument: str) -> str:
    if not isinstance(value, str):
        raise _refused(argument, value, "a str")
    if "\0" in value or (not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value)):
        raise _wrong(argument, f"{value!r}, expected text that a shell can hold")
    return value


def choice(value: Any, argument: str, choices: tuple[str, ...]) -> str:
    if text(value, argument) not in choices:
        raise _wrong(argument, f"{value!r}, expected {' or '.join(repr(c) for c in choices)}")
    return str(value)


def shape(value: Any, argument: str = "shape", dimensions: int | None = None) -> tuple[int, ...]:
    """Lengths as a tuple of ints; an array's .shape, a list or a torch.Size are."""
    if not isinstance(value, (tuple, list)):
        raise _refused(argument, value, "a tuple of lengths")
    lengths = tuple(integer(n, argument, 0, 2**62) for n in value)
    if dimensions is not None and len(lengths) != dimensions:
        raise ShapeError(f"{argument}: {len(lengths)} lengths, expected {dimensions}")
    if len(lengths) > 32:
        raise ShapeError(f"{argument}: {len(lengths)} lengths, expected at most 32")
    size = 1
    for n in lengths:
        size *= n or 1
    if size > 2**60:
        raise ShapeError(f"{argument}: {lengths} holds more than memory can")
    return lengths


def path(value: Any, argument: str = "path") -> str:
    """A file's name: str or os.PathLike; bytes as the file system has them."""
    try:
        name = os.fsdecode(value)
        os.fsencode(name)
    except Exception:
        raise _refused(argument, value, "a file's name") from None
    if len(os.fsencode(name)) > 4095:
        raise _wrong(argument, f"a name of {len(name)} characters, expected at most 4095")
    return text(name, argument) if "\0" in name else name
