"""Defines the pytest plugin of mxgold, which imports mxgold only if one of its options is given.

--mxgold-report=REPORT.html   a page of every failed assertion of mxgold.testing: verdict, example, command
--mxgold-save[=FOLDER]        where failing cases are saved (.mxgold by default); FOLDER is made anew
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

_failed: set[str] = set()  # names of the tests that failed, of workers too


def pytest_addoption(parser: Any) -> None:
    group = parser.getgroup("mxgold")
    group.addoption("--mxgold-report", metavar="REPORT.html", default=None, help="write a page of what failed: verdict, example, command")
    group.addoption("--mxgold-save", metavar="FOLDER", nargs="?", const=".mxgold", default=None, help="save failing cases in FOLDER, which is emptied first")


def pytest_configure(config: Any) -> None:
    folder, report = config.getoption("--mxgold-save"), config.getoption("--mxgold-report")
    worker = hasattr(config, "workerinput")  # of pytest-xdist
    if not worker:
        _check(folder, report)
    if folder is not None:
        from mxgold.testing import _save

        if not worker:
            _empty(folder)
        _save.folder = folder


def _check(folder: str | None, report: str | None) -> None:
    """Refuse, before the tests, names that cannot be written."""
    if folder is not None and Path(folder.partition("::")[0]).is_file():
        raise pytest.UsageError(f"--mxgold-save: {folder} is a file, expected a folder: write --mxgold-save=FOLDER")
    if report is not None:
        parent = Path(report).parent
        if not parent.is_dir():
            raise pytest.UsageError(f"--mxgold-report: {parent} is no folder, expected one for {Path(report).name}")
        if Path(report).is_dir():
            raise pytest.UsageError(f"--mxgold-report: {report} is a folder, expected a file's name")


def _empty(folder: str) -> None:
    """Take away the cases of an earlier run, and nothing else."""
    import shutil

    for case in Path(folder).glob("*/command.txt"):
        shutil.rmtree(case.parent)


def pytest_runtest_logreport(report: Any) -> None:
    if report.failed:
        _failed.add(report.nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Take over what the assertions of a worker of pytest-xdist said."""
    for given in getattr(node, "workeroutput", {}).get("mxgold", ()):
        from mxgold.testing import _save

        _save.failures.append(_save.unpacked(given))


def pytest_sessionfinish(session: Any) -> None:
    path = session.config.getoption("--mxgold-report")
    if path is None:
        return
    from mxgold.testing import _report, _save

    if hasattr(session.config, "workerinput"):
        session.config.workeroutput["mxgold"] = [_save.packed(f) for f in _save.failures]
    else:
        _report.write(path, [f for f in _save.failures if not f.test or f.test in _failed])


def pytest_terminal_summary(terminalreporter: Any, config: Any) -> None:
    path = config.getoption("--mxgold-report")
    if path is not None:
        terminalreporter.write_line(f"mxgold: report in {path}")
