"""Writes the page of --mxgold-report: every failed assertion, with the program's own report of the case inside, in one file without network or script."""

from __future__ import annotations

import html
import os
import tempfile
from pathlib import Path

from .. import _core, _program
from .._errors import ProgramError
from . import _save

_STYLE = """body{font:15px/1.5 system-ui,sans-serif;max-width:76rem;margin:2rem auto;padding:0 1rem;color:#222}
section{border-top:1px solid #ccc;padding:1rem 0}h2{font-size:1.05rem;margin:.2rem 0}pre{background:#f6f6f6;padding:.8rem;overflow-x:auto}
p.verdict{font-weight:600}iframe{width:100%;height:36rem;border:1px solid #ddd}"""


def _inner(failure: _save.Failure) -> str:
    """The program's page of the case; "" for products, which have none, and for a case that could not be saved."""
    if not failure.arguments or failure.arguments[:2] == ("diff", "--gemm"):
        return ""
    with tempfile.TemporaryDirectory(prefix="mxgold-") as folder:
        path = os.path.join(folder, "case.html")
        try:
            _program.run([*failure.arguments, "--html", path])
        except (ProgramError, OSError):
            return ""
        page = Path(path).read_text(encoding="utf-8")
    return f'<details><summary>The block, element by element</summary><iframe sandbox srcdoc="{html.escape(page, quote=True)}"></iframe></details>'


def page(failures: list[_save.Failure]) -> str:
    """The whole as text."""
    parts = []
    for failure in failures:
        first, where, verdict = (html.escape(line) for line in failure.verdict)
        parts.append(
            f"<section><h2>{html.escape(failure.test or failure.folder.name)}</h2><p class=verdict>{verdict}</p><p>{first}<br>{where}</p>"
            f"<pre>{html.escape(_program.command(failure.arguments) if failure.arguments else failure.message.splitlines()[-1])}</pre>"
            f"<details><summary>The message</summary><pre>{html.escape(failure.message)}</pre></details>{_inner(failure)}</section>"
        )
    n = len(failures)
    head = f"{n} failed assertion{'' if n == 1 else 's'}" if n else "Every assertion of mxgold.testing passed."
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>mxgold</title><style>{_STYLE}</style><h1>mxgold {_core.version}</h1>"
        f"<p>{head}</p>{''.join(parts)}</html>\n"
    )


def write(path: str | os.PathLike[str], failures: list[_save.Failure]) -> None:
    target = Path(path)
    temporary = target.with_name(target.name + ".tmp")
    temporary.write_text(page(failures), encoding="utf-8")
    temporary.replace(target)
