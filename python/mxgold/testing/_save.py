"""Saves failing cases, with the command that repeats them and what a report is made of."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import _core, _program

# Set by the pytest plugin (--mxgold-save); otherwise MXGOLD_SAVE, or .mxgold in the current folder.
folder: str | None = None


# Folders of cases that cannot be saved, which fail() takes away again, with the reason.
_unsaved: dict[Path, str] = {}


@dataclass(frozen=True)
class Failure:
    """One failed assertion: lines of its verdict, its message, the folder of its files, and the arguments of the program that repeat it."""

    test: str
    verdict: tuple[str, str, str]
    message: str
    folder: Path
    arguments: tuple[str, ...]


failures: list[Failure] = []
"""Assertions that failed in this process, oldest first; at most the last hundred."""


def packed(failure: Failure) -> list[object]:
    """A failure as plain lists and texts, which a worker of pytest-xdist can send."""
    return [failure.test, list(failure.verdict), failure.message, str(failure.folder), list(failure.arguments)]


def unpacked(given: list[Any]) -> Failure:
    test, verdict, message, where, arguments = given
    first, second, third = verdict
    return Failure(test, (first, second, third), message, Path(where), tuple(arguments))


def root() -> Path:
    return Path(folder or os.environ.get("MXGOLD_SAVE") or ".mxgold")


def test_name() -> str:
    """Of the test that is running, "" outside pytest."""
    return os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]


def place(kind: str, content: bytes) -> Path:
    """A folder for a case: named after the test, or what it holds, so that the same failure has the same folder."""
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", test_name().rpartition("::")[2]).strip("-")[:60] or kind
    path = root() / f"{name}-{hashlib.blake2b(content, digest_size=4).hexdigest()}"
    try:
        path.mkdir(parents=True, exist_ok=True)
        (path / "command.txt").write_text("")
        ignore = root() / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n")
    except OSError as error:  # the verdict counts more than the case
        path = Path(tempfile.mkdtemp(prefix="mxgold-"))
        _unsaved[path] = f"{error.strerror or error}: {root()}"
    return path


def write(path: Path, tensors: list[tuple[str, str, Any]]) -> Path:
    _core.write_file(path, tensors, {})
    return path


def fail(lines: tuple[str, str, str], example: str, where: Path, arguments: Sequence[str | os.PathLike[str]], cut: str) -> AssertionError:
    """The error to raise: three lines of verdict, the example, the command."""
    words = tuple(os.fspath(a) for a in arguments)
    command = _program.command(words)
    why = _unsaved.pop(where, None)
    if why is None:
        (where / "command.txt").write_text(command + "\n")
        last = [f"{cut} To repeat it:", f"  {command}"]
    else:
        shutil.rmtree(where, ignore_errors=True)
        words = ()
        last = [cut, f"The case was not saved: {why}."]
    message = "\n".join([*lines, "", example.rstrip("\n"), "", *last])
    failures.append(Failure(test_name(), lines, message, where, words))
    del failures[:-100]
    return AssertionError(message)


def shown(arguments: Sequence[str | os.PathLike[str]]) -> str:
    """What the program prints for a case: the counts and the examples, without the tables that follow them."""
    text = _program.run(arguments)[1]
    blocks = text.strip("\n").split("\n\n")
    return "\n\n".join(blocks[:2])
