"""Finds the program mxgold that comes with the package, runs it, and reads what it prints as JSON.

The words of a verdict (identify, diff, diff --gemm, probe) come from the program. It reads packed codes, swizzled scales and scales stored as numbers in any
form, and a test's message is what the same files give at a shell.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ._errors import OutOfTimeError, ProgramError

# Folders of files that stand for the caller's arrays: their names say nothing to him.
_SCRATCH = re.compile(r"[^\s:,]*/mxgold-[^/\s]+/")

PATH = Path(__file__).with_name("bin") / "mxgold"


def path() -> Path:
    """Where the program lies: in the package; MXGOLD_PROGRAM in the environment names another."""
    other = os.environ.get("MXGOLD_PROGRAM")
    return Path(other) if other else PATH


def run(arguments: Sequence[str | os.PathLike[str]], cwd: str | os.PathLike[str] | None = None) -> tuple[int, str]:
    """Exit status and standard output. Status 2 is raised as a ProgramError with the program's one line."""
    done = subprocess.run(
        [str(path()), *(os.fspath(a) for a in arguments)], cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False
    )
    if done.returncode not in (0, 1):
        lines = done.stderr.strip().splitlines() or [f"mxgold ended with status {done.returncode}"]
        line = _SCRATCH.sub("", lines[-1].removeprefix("mxgold: "))
        raise (OutOfTimeError if "the time ran out before" in line else ProgramError)(line)
    return done.returncode, done.stdout


def run_json(arguments: Sequence[str | os.PathLike[str]], cwd: str | os.PathLike[str] | None = None) -> tuple[int, dict[str, Any]]:
    """The same of a command that takes --json."""
    status, text = run([*arguments, "--json"], cwd)
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ProgramError(f"mxgold {arguments[0]}: no JSON object on standard output")
    return status, found


def command(arguments: Sequence[str | os.PathLike[str]]) -> str:
    """The shell command that runs the same."""
    return "mxgold " + " ".join(shlex.quote(os.fspath(a)) for a in arguments)
