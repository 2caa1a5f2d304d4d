"""Tests that each notebook of examples/notebooks runs from top to bottom as plain Python, and in a Jupyter kernel if nbclient is installed."""

from __future__ import annotations

import ast
import json

import pytest
from conftest import ROOT

BOOKS = sorted((ROOT / "examples/notebooks").glob("*.ipynb"))


def test_there_are_three():
    guide = (ROOT / "docs/guide/PYTHON.md").read_text()
    assert len(BOOKS) == 3 and all(f"../../examples/notebooks/{book.name}" in guide for book in BOOKS)


@pytest.mark.parametrize("book", BOOKS, ids=lambda book: book.stem)
def test_as_plain_python(book, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    cells = json.loads(book.read_text())["cells"]
    space: dict[str, object] = {"__name__": "__main__"}
    shown = 0
    for at, cell in enumerate(cells):
        if cell["cell_type"] != "code":
            continue
        assert cell["outputs"] == [] and cell["execution_count"] is None, "outputs are stripped"
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, f"{book.name}, cell {at}", "exec"), space)
        if last is not None:  # what the notebook would show
            value = eval(compile(ast.Expression(last.value), f"{book.name}, cell {at}", "eval"), space)
            shown += hasattr(value, "_repr_html_") and "<" in value._repr_html_()
    assert shown or book.stem == "wrong_kernel" or "Cases(" in repr(space["cases"])


@pytest.mark.parametrize("book", BOOKS, ids=lambda book: book.stem)
def test_by_a_kernel(book, tmp_path):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    pages = nbformat.read(book, as_version=4)
    nbformat.validate(pages)
    nbclient.NotebookClient(pages, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert all(cell.execution_count for cell in pages.cells if cell.cell_type == "code")
