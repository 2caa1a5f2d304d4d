"""Builds the wheel and the source archive of mxgold: a build backend (PEP 517) of one file that needs no package beside Python and the project's own make.

build_wheel() runs `make python-parts`, which compiles the extension module and the program, and packs them with the Python files. Nothing is downloaded; what
the compiler misses is said by make in one line. config settings: tag=manylinux names the wheel after the newest glibc that its binaries ask for.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
NAME = "mxgold"
# What a source archive holds: what `make python-parts` reads.
SOURCES = (
    "Makefile",
    "LICENSE",
    "README.md",
    "CHANGELOG.md",
    "formats",
    "include",
    "ref",
    "src",
    "python",
    "tools",
    "tests",
    "bench",
    "examples",
    "hip_backend",
    "docs/reference/PRESETS.md",
)


def version() -> str:
    text = (ROOT / "include/mxgold/version.h").read_text()
    found = re.search(r'define MX_VERSION "(.*)"', text)
    if not found:
        raise SystemExit("mxgold: include/mxgold/version.h says no version")
    return found[1]


def check_python() -> None:
    if sys.version_info < (3, 11):
        raise SystemExit("mxgold: Python %d.%d, expected 3.11 or later" % sys.version_info[:2])
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise SystemExit("mxgold: this is a free-threaded Python, which has no stable ABI to build against; build with one that has the GIL")


def project() -> dict:
    import tomllib

    return tomllib.loads((HERE / "pyproject.toml").read_text())["project"]


def metadata() -> str:
    p = project()
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {NAME}",
        f"Version: {version()}",
        f"Summary: {p['description']}",
        f"Requires-Python: {p['requires-python']}",
        f"License-Expression: {p['license']}",
    ]
    lines += [f"License-File: {name}" for name in licences()]
    lines += [f"Requires-Dist: {d}" for d in p["dependencies"]]
    for extra, wants in p["optional-dependencies"].items():
        lines += [f"Provides-Extra: {extra}"] + [f'Requires-Dist: {d}; extra == "{extra}"' for d in wants]
    return "\n".join([*lines, "Description-Content-Type: text/markdown", "", (HERE / "README.md").read_text()])


def licences() -> dict[str, Path]:
    out = {"LICENSE": ROOT / "LICENSE"}
    out.update({f"licenses/{p.name}": p for p in sorted((HERE / "licenses").iterdir())})
    return out


def platform_tag(binaries: list[Path], manylinux: bool) -> str:
    plain = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    if not manylinux:
        return plain
    newest = (2, 17)
    for binary in binaries:
        symbols = subprocess.run(["objdump", "-T", str(binary)], capture_output=True, text=True, check=True).stdout
        newest = max([newest, *((int(a), int(b)) for a, b in re.findall(r"GLIBC_(\d+)\.(\d+)", symbols))])
    return f"manylinux_{newest[0]}_{newest[1]}_{plain.removeprefix('linux_')}"


def build() -> Path:
    """Compile; the folder that holds _core.abi3.so and bin/mxgold."""
    check_python()
    if not shutil.which("make"):
        raise SystemExit("mxgold: no make, expected one to build from source")
    # A tree that was built has most objects. In a fresh one everything is compiled, without what only takes time here: debug information, which a wheel does
    # not carry, a developer's warnings, and the optimiser's second level for rooms where the program spends no time.
    config = "release" if (ROOT / "build/release/flags").exists() else "wheel"
    command = ["make", "-s", "-C", str(ROOT), f"-j{len(os.sched_getaffinity(0))}", f"PYTHON={sys.executable}", "INSTALL=no", f"CONFIG={config}", "python-parts"]
    if config == "wheel":
        command += ["DEBUG_INFO=", "WARN=", "OPT_COLD=-O1"]
    environment = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    if os.environ.get("MXGOLD_CC"):
        command.append(f"CC={os.environ['MXGOLD_CC']}")
    done = subprocess.run(command, env=environment, check=False)
    if done.returncode:
        raise SystemExit("mxgold: make python-parts failed; what it needs is listed above")
    return ROOT / "build" / config / "python"


def entry(archive: zipfile.ZipFile, record: list[str], name: str, data: bytes, executable: bool = False) -> None:
    info = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = (0o100755 if executable else 0o100644) << 16
    archive.writestr(info, data)
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    record.append(f"{name},sha256={digest},{len(data)}")


SCRIPT = b'''#!python
"""The program mxgold of the package: found without importing it."""
import importlib.util
import os
import sys

home = os.path.dirname(importlib.util.find_spec("mxgold").origin)
program = os.environ.get("MXGOLD_PROGRAM") or os.path.join(home, "bin", "mxgold")
os.execv(program, sys.argv)
'''


def pack(path: Path, tag: str, parts: Path | None) -> None:
    """The wheel. parts None: an editable one, whose files are those of the tree."""
    info = f"{NAME}-{version()}.dist-info"
    record: list[str] = []
    with zipfile.ZipFile(path, "w") as archive:
        if parts is None:
            entry(archive, record, f"{NAME}.pth", f"{HERE}\n".encode())
        else:
            for file in sorted((HERE / NAME).rglob("*")):
                if file.suffix in (".py", ".pyi", ".typed") or file.name == "py.typed":
                    entry(archive, record, f"{NAME}/{file.relative_to(HERE / NAME)}", file.read_bytes())
            entry(archive, record, "mxgold_pytest.py", (HERE / "mxgold_pytest.py").read_bytes())
            entry(archive, record, f"{NAME}/_core.abi3.so", (parts / "_core.abi3.so").read_bytes(), True)
            entry(archive, record, f"{NAME}/bin/mxgold", (parts / "bin/mxgold").read_bytes(), True)
        entry(archive, record, f"{NAME}-{version()}.data/scripts/mxgold", SCRIPT, True)
        for name, file in licences().items():
            entry(archive, record, f"{info}/licenses/{name}", file.read_bytes())
        entry(archive, record, f"{info}/METADATA", metadata().encode())
        entry(archive, record, f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: mxgold_build\nRoot-Is-Purelib: false\nTag: cp311-abi3-{tag}\n".encode())
        points = project().get("entry-points", {})
        text = "".join(f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in rows.items()) for group, rows in points.items())
        entry(archive, record, f"{info}/entry_points.txt", text.encode())
        record.append(f"{info}/RECORD,,")
        archive.writestr(zipfile.ZipInfo(f"{info}/RECORD", (2020, 1, 1, 0, 0, 0)), "\n".join(record) + "\n")


def setting(config_settings, name: str) -> str:
    value = (config_settings or {}).get(name, "")
    return value[-1] if isinstance(value, list) else value


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None) -> str:
    parts = build()
    tag = platform_tag([parts / "_core.abi3.so", parts / "bin/mxgold"], setting(config_settings, "tag") == "manylinux")
    name = f"{NAME}-{version()}-cp311-abi3-{tag}.whl"
    pack(Path(wheel_directory) / name, tag, parts)
    return name


def build_editable(wheel_directory, config_settings=None, metadata_directory=None) -> str:
    parts = build()
    shutil.copy2(parts / "_core.abi3.so", HERE / NAME / "_core.abi3.so")
    (HERE / NAME / "bin").mkdir(exist_ok=True)
    shutil.copy2(parts / "bin/mxgold", HERE / NAME / "bin/mxgold")
    tag = platform_tag([], False)
    name = f"{NAME}-{version()}-cp311-abi3-{tag}.whl"
    pack(Path(wheel_directory) / name, tag, None)
    return name


def build_sdist(sdist_directory, config_settings=None) -> str:
    """The tree with a pyproject.toml at its head, whose backend is this file."""
    check_python()
    stem = f"{NAME}-{version()}"
    with tempfile.TemporaryDirectory() as folder:
        head = Path(folder) / "pyproject.toml"
        head.write_text((HERE / "pyproject.toml").read_text().replace('backend-path = ["."]', 'backend-path = ["python"]'))
        info = Path(folder) / "PKG-INFO"
        info.write_text(metadata())
        with tarfile.open(Path(sdist_directory) / f"{stem}.tar.gz", "w:gz", format=tarfile.PAX_FORMAT) as archive:

            def clean(item: tarfile.TarInfo):
                if item.name.endswith((".pyc", ".so", "__pycache__")) or "/mxgold/bin" in item.name:
                    return None
                item.uid = item.gid = 0
                item.uname = item.gname = ""
                item.mtime = int(time.mktime((2020, 1, 1, 0, 0, 0, 0, 0, 0)))
                return item

            for name in SOURCES:
                if (ROOT / name).exists():
                    archive.add(ROOT / name, f"{stem}/{name}", filter=clean)
            archive.add(head, f"{stem}/pyproject.toml", filter=clean)
            archive.add(info, f"{stem}/PKG-INFO", filter=clean)
    return f"{stem}.tar.gz"


if __name__ == "__main__":  # mxgold_build.py FOLDER: what `make wheel` runs
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    for old in target.glob("*.whl"):
        old.unlink()
    print(target / build_wheel(target, {"tag": "manylinux"}))
