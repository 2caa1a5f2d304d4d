"""Tests the pages that show Python: each block runs as written, and prints what the page says."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from conftest import ROOT

GUIDE = (ROOT / "docs/guide/PYTHON.md").read_text()
README = (ROOT / "README.md").read_text()


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.S | re.M)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("at", range(len(blocks(GUIDE, "python"))))
def test_recipe(at):
    code = blocks(GUIDE, "python")[at]
    for module in re.findall(r"import .*\b(torch)\b", code):
        pytest.importorskip(module)
    space = {"__name__": "recipe"}
    exec(compile(code, f"PYTHON.md, block {at + 1}", "exec"), space)
    for name, test in space.items():
        if name.startswith("test_"):  # a test with cases; run each of them
            for mark in test.pytestmark:
                for value in mark.args[1]:
                    test(*value.values)


def test_there_are_ten_recipes():
    assert len(re.findall(r"^### \d+\. ", GUIDE, re.M)) == 10 == len(blocks(GUIDE, "python"))


def test_readme():
    section = README[README.index("## From Python") :]
    code, said = blocks(section, "python")[0], blocks(section, "text")[0]
    assert len(code.splitlines()) == 5
    with pytest.raises(AssertionError) as e:
        exec(compile(code, "README.md", "exec"), {})
    assert str(e.value).splitlines()[:3] == said.splitlines()


def test_readme_of_the_package():
    code = blocks((ROOT / "python/README.md").read_text(), "python")[0]
    space: dict[str, object] = {}
    head, _, last = code.rstrip().rpartition("\n")
    exec(head, space)
    q = space["q"]
    space.update(my_codes=q.codes, my_scales=q.scales, my_scale=q.tensor_scale)
    exec(last, space)


def test_example(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", ROOT / "examples/test_kernel.py", "--rootdir", tmp_path],
        capture_output=True,
        text=True,
    )
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "your kernel does what ocp-mxfp4 does, except that elem.round is rtz_tie" in done.stdout
