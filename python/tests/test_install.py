"""Tests the commands with which README.md and docs/guide install the package, as written, in one shell, in a fresh environment and without a network.

What pip would download (NumPy, pytest and what they need) it finds in a folder of wheels, which are made here from the packages of the current interpreter.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from conftest import ROOT

MARK = "# installs packages"


def install_blocks() -> dict[str, str]:
    """The console block of each page that has marked commands."""
    found = {}
    for page in [ROOT / "README.md", *sorted((ROOT / "docs/guide").glob("*.md"))]:
        for block in re.findall(r"^```console\n(.*?)^```", page.read_text(), re.S | re.M):
            if MARK in block:
                assert page.name not in found, "more than one block of commands that install packages"
                found[page.name] = block
    return found


def files_of(package: metadata.Distribution) -> list[tuple[str, Path]]:
    """The name in a wheel and the path of each file of an installed package. Debian's egg-info lists no files, but names folders."""
    site = Path(str(package.locate_file("")))
    if package.files:
        names = [str(name) for name in package.files]
    else:
        tops = [site / name for name in (package.read_text("top_level.txt") or "").split()]
        paths = [path for top in tops for path in (top.rglob("*") if top.is_dir() else [top.with_suffix(".py")])]
        names = [str(path.relative_to(site)) for path in paths]
    own = [name for name in names if not name.startswith("..") and ".dist-info/" not in name and not name.endswith(".pyc")]
    return [(name, site / name) for name in own if (site / name).is_file() and "/tests/" not in name]


def make_wheel(folder: Path, package: metadata.Distribution) -> None:
    name = re.sub(r"[-_.]+", "_", package.metadata["Name"])
    stem = f"{name}-{package.version}"
    record = []
    with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as archive:
        for inside, path in files_of(package):
            archive.write(path, inside)
            record.append(f"{inside},,\n")
        texts = {
            "METADATA": package.read_text("METADATA") or package.read_text("PKG-INFO") or "",
            "WHEEL": "Wheel-Version: 1.0\nGenerator: test_install\nRoot-Is-Purelib: false\nTag: py3-none-any\n",
            "entry_points.txt": package.read_text("entry_points.txt") or "",
        }
        for inside, text in texts.items():
            archive.writestr(f"{stem}.dist-info/{inside}", text)
            record.append(f"{stem}.dist-info/{inside},,\n")
        archive.writestr(f"{stem}.dist-info/RECORD", "".join(record))


def make_wheels(folder: Path, wanted: list[str]) -> None:
    """Makes a wheel of each package, and of each package that it needs here."""
    folder.mkdir()
    done = set()
    while wanted:
        name = re.match(r"[\w.-]+", wanted.pop())[0].lower()
        try:
            package = metadata.distribution(name)
        except metadata.PackageNotFoundError:  # it is only needed for another version of Python or another system
            continue
        if name not in done:
            done.add(name)
            make_wheel(folder, package)
            wanted += [need for need in package.requires or [] if "extra ==" not in need]


def test_the_pages_say_the_same():
    blocks = install_blocks()
    assert sorted(blocks) == ["PYTHON.md", "README.md"]
    assert len(set(blocks.values())) == 1


@pytest.mark.skipif(not shutil.which("bash"), reason="no bash")
def test_the_commands_as_written(tmp_path):
    lines = install_blocks()["README.md"].splitlines()
    commands = [line[2:] for line in lines if line.startswith("$ ")]
    assert commands and lines == [f"$ {command}" for command in commands] + ["...", "(exit status 1)"]
    assert all(command.endswith(MARK) for command in commands)
    make_wheels(tmp_path / "wheels", ["numpy", "pytest"])
    work = tmp_path / "mxgold"
    work.mkdir()
    (work / "python").symlink_to(ROOT / "python")
    shutil.copytree(ROOT / "examples", work / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYTEST", "PIP_", "VIRTUAL_ENV"))}
    local = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "wheels"), "PIP_NO_COMPILE": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    script = "".join(f"{command}\n[ $? = 0 ] || exit 9\n" for command in commands[:-1]) + commands[-1]
    done = subprocess.run(["bash", "-c", script], cwd=work, env={**kept, **local}, capture_output=True, text=True)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 failed, 1 passed" in done.stdout
    assert "your kernel does what ocp-mxfp4 does, except that elem.round is rtz_tie" in done.stdout
    assert list(work.glob("env/lib/python3*/site-packages/mxgold/_core.abi3.so")), "mxgold is not in the fresh environment"
