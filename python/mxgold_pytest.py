"""Defines the pytest plugin of mxgold, which imports mxgold only if one of its options is given.

--mxgold-report=REPORT.html   a page of every failed assertion of mxgold.testing: verdict, example, command
--mxgold-save[=FOLDER]        where failing cases are saved (.mxgold by default); FOLDER is made anew
"""

from __future__ import annotations

from typing import Any


def pytest_addoption(parser: Any) -> None:
    group = parser.getgroup("mxgold")
    group.addoption("--mxgold-report", metavar="REPORT.html", default=None, help="write a page of what failed: verdict, example, command")
    group.addoption("--mxgold-save", metavar="FOLDER", nargs="?", const=".mxgold", default=None, help="save failing cases in FOLDER, which is emptied first")


def pytest_configure(config: Any) -> None:
    folder = config.getoption("--mxgold-save")
    if folder is not None and not hasattr(config, "workerinput"):
        from mxgold.testing import _save

        _empty(folder)
        _save.folder = folder


def _empty(folder: str) -> None:
    """Take away the cases of an earlier run, and nothing else."""
    import shutil
    from pathlib import Path

    for case in Path(folder).glob("*/command.txt"):
        shutil.rmtree(case.parent)


def pytest_sessionfinish(session: Any) -> None:
    path = session.config.getoption("--mxgold-report")
    if path is None:
        return
    from mxgold.testing import _report

    _report.write(path)


def pytest_terminal_summary(terminalreporter: Any, config: Any) -> None:
    path = config.getoption("--mxgold-report")
    if path is not None:
        terminalreporter.write_line(f"mxgold: report in {path}")
