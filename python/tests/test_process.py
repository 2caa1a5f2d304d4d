"""Tests what a call leaves behind and what it can run beside: memory, threads, forks, interpreters; and the wheel itself."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import peak_memory
import pytest
from conftest import ROOT

import mxgold
from mxgold import _core

CALLS = int(os.environ.get("MXGOLD_CALLS", 50000))  # 1000000 is the full test


def resident() -> int:
    """The bytes of memory that the process has now."""
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")


@pytest.mark.parametrize("name", ["quantize", "encode", "decode", "dequantize", "gemm", "linear", "spec", "errors", "torch", "fake_quantize", "torch linear"])
def test_no_leaks(name, x):
    q = mxgold.quantize(x[:1], "te-nvfp4")
    few = x[:2, :32].copy()

    def errors():
        for bad in (lambda: mxgold.quantize(x, "no-such"), lambda: mxgold.quantize([1]), lambda: mxgold.encode(few, "e2m1", bits=few)):
            with pytest.raises(ValueError):
                bad()

    calls = {
        "quantize": lambda: mxgold.quantize(few, "te-nvfp4"),
        "encode": lambda: mxgold.encode(few, "e2m1", "torch"),
        "decode": lambda: mxgold.decode(q.codes, "e2m1"),
        "dequantize": lambda: q.dequantize(),
        "gemm": lambda: mxgold.gemm(q, q),
        "linear": lambda: mxgold.linear(few, few, few[:, :2], recipe="recipe-ocp", with_operands=True),
        "spec": lambda: repr(mxgold.Spec("te-nvfp4 elem.round=sr", seed=7)),
        "errors": errors,
    }
    if name in ("torch", "fake_quantize", "torch linear"):
        torch = pytest.importorskip("torch")
        layers = pytest.importorskip("mxgold.torch")
        tensor = torch.from_numpy(few).bfloat16()
        wanted = torch.from_numpy(few).requires_grad_()
        layer = layers.Linear(32, 4, recipe="recipe-ocp")

        def step():
            wanted.grad = None
            layer.zero_grad()
            layer(wanted).sum().backward()

        calls["torch"] = lambda: mxgold.quantize(tensor, "te-nvfp4", like=tensor)
        calls["fake_quantize"] = lambda: layers.fake_quantize(tensor, "te-nvfp4")
        calls["torch linear"] = step
    slow = {"spec": 100, "errors": 40, "linear": 20, "fake_quantize": 20, "torch linear": 50}
    call, n = calls[name], CALLS // slow.get(name, 1)
    for _ in range(n // 4):
        call()
    before = resident()
    for _ in range(n):
        call()
    grown = resident() - before
    print(f"{name}: {n} calls, {grown} bytes more resident")
    assert grown < max(1 << 20, 8 * n)  # a lost array takes more than 100 bytes
    held = [few, q, q.codes, q.scales, q.spec, np.float32, mxgold.Spec("te-nvfp4")]
    counts = [sys.getrefcount(o) for o in held]
    for _ in range(200):
        call()
    assert all(abs(sys.getrefcount(o) - c) < 20 for o, c in zip(held, counts, strict=True))
    # Tracebacks leave about 20 kB in free lists, and torch's operators about 6 kB, however many calls there were.
    traced = {"errors": 4000, "torch linear": 2000, "fake_quantize": 2000}.get(name, 500)
    tracemalloc.start()
    try:
        for _ in range(500):  # the interpreter fills its lists of free objects
            call()
        gc.collect()
        first = tracemalloc.get_traced_memory()[0]
        for _ in range(traced):
            call()
        gc.collect()  # exceptions and their frames hold each other
        assert tracemalloc.get_traced_memory()[0] - first < traced * 8  # a lost Python object takes at least 16 bytes
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("preset", ["ocp-mxfp4", "te-nvfp4"])
def test_peak_memory(preset):
    """quantize takes at most 16 MiB beside its input and its output."""
    taken, output = peak_memory.taken(preset)
    assert output // 2 < taken < output + (16 << 20)  # with less, the measurement would be wrong


def test_eight_threads(x):
    want, wrong = mxgold.quantize(np.tile(x, (4, 4)), "te-nvfp4"), []

    def work(seed):
        for _ in range(10):
            if mxgold.quantize(np.tile(x, (4, 4)), "te-nvfp4", threads=1 + seed % 3) != want or mxgold.gemm(want, want)[0, 0] != first:
                wrong.append(seed)

    first = mxgold.gemm(want, want)[0, 0]
    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_the_gil_is_released(x):
    """Another thread can run during a call."""
    big, ticks, done = np.tile(x, (64, 16)), [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(1)
            done.wait(0.0005)

    other = threading.Thread(target=tick)
    other.start()
    before = len(ticks)
    mxgold.quantize(big, "ocp-mxfp4", set="elem.round=sr", threads=1)
    after = len(ticks)
    done.set()
    other.join()
    assert after > before


def test_fork(x):
    """A child of a process with threads uses one thread, and gives the same bytes."""
    want = mxgold.quantize(np.tile(x, (4, 4)), "te-nvfp4", threads=4)  # starts threads
    assert _core.thread_count(4) == 4
    child = os.fork()
    if not child:
        same = mxgold.quantize(np.tile(x, (4, 4)), "te-nvfp4", threads=4) == want
        os._exit(0 if same and _core.thread_count(4) == 1 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert mxgold.quantize(np.tile(x, (4, 4)), "te-nvfp4", threads=4) == want


def in_interpreters(inside: str, first: str = "pass") -> subprocess.CompletedProcess[str]:
    """Starts a process that runs `first`, then `inside` in three subinterpreters one after the other, and prints "end"."""
    code = f"""
{first}
try:
    import _interpreters as i
except ImportError:
    import _xxsubinterpreters as i
for _ in range(3):
    n = i.create()
    i.run_string(n, {inside!r})
    i.destroy(n)
print("end")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    if "No module named" in done.stderr:
        pytest.skip("this Python has no module of interpreters")
    return done


def test_subinterpreter():
    """The C module works in an interpreter that shares the GIL; otherwise its import is refused in one line. The package is always refused: see below."""
    inside = f"""
import importlib.machinery, importlib.util
try:
    spec = importlib.util.spec_from_file_location("mxgold._core", {_core.__file__!r})
    core = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(core)
    assert len(core.presets()) > 100 and core.SpecBase("te-nvfp4").text()
    print("works", flush=True)
except ImportError as e:
    print("refused:", e, flush=True)
"""
    done = in_interpreters(inside)
    lines = done.stdout.split("\n")[:3]
    assert done.returncode == 0 and (lines == ["works"] * 3 or all(line.startswith("refused: ") for line in lines)), done.stdout + done.stderr


@pytest.mark.parametrize("first", ["import mxgold", "pass"], ids=["after the first", "alone"])
def test_the_package_in_subinterpreters(first):
    """It is refused in one line before NumPy is imported, since a second import of NumPy can end the process (1.24 with Python 3.11). CPython 3.13 refuses it
    even earlier."""
    inside = """
try:
    import mxgold
except ImportError as e:
    print(e, flush=True)
"""
    done = in_interpreters(inside, first)
    ours = "mxgold is for the main interpreter of a process: NumPy, which it needs, cannot be imported safely in a subinterpreter"
    lines = [line.replace("module mxgold._core does not support loading in subinterpreters", ours) for line in done.stdout.splitlines()]
    assert done.returncode == 0 and lines == [ours] * 3 + ["end"], done.stdout + done.stderr


def test_a_free_threaded_python_builds_nothing(monkeypatch, tmp_path):
    """Only a Python with the GIL has the stable ABI. The build says so in one line before it compiles, and the compiler does if make is run by hand."""
    import importlib.util
    import shutil
    import sysconfig

    location = importlib.util.spec_from_file_location("mxgold_build", ROOT / "python/mxgold_build.py")
    backend = importlib.util.module_from_spec(location)
    location.loader.exec_module(backend)
    asked = sysconfig.get_config_var
    monkeypatch.setattr(sysconfig, "get_config_var", lambda name: 1 if name == "Py_GIL_DISABLED" else asked(name))
    monkeypatch.setattr(subprocess, "run", lambda *a, **k: pytest.fail("something was started"))
    for build in (backend.build_wheel, backend.build_editable, backend.build_sdist):
        with pytest.raises(SystemExit) as e:
            build(tmp_path)
        assert str(e.value) == "mxgold: this is a free-threaded Python, which has no stable ABI to build against; build with one that has the GIL"
    assert not any(tmp_path.iterdir())
    monkeypatch.undo()
    headers = Path(sysconfig.get_paths()["include"])
    if not (headers / "Python.h").exists() or not shutil.which("cc"):
        pytest.skip("no headers of Python, or no compiler")
    words = ["cc", "-fsyntax-only", "-DPy_GIL_DISABLED=1", f"-I{ROOT}/include", "-isystem", headers, ROOT / "python/ext/error.c"]
    done = subprocess.run(words, capture_output=True, text=True)
    said = [line for line in done.stderr.splitlines() if "error:" in line]
    assert done.returncode and len(said) == 1 and "a free-threaded Python has no stable ABI to build against" in said[0], done.stderr


def test_without_numpy():
    """The error has one line, however many lines NumPy's has."""
    code = (
        "import sys\n"
        "class Refuse:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'numpy': raise ImportError('\\n\\n  not in here\\n  at all\\n')\n"
        "sys.meta_path.insert(0, Refuse())\n"
        "try:\n"
        "    import mxgold\n"
        "except ImportError as e:\n"
        "    print(e)\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said == "mxgold needs NumPy, which cannot be imported here: not in here\n"


def test_a_second_import():
    """A second import of the module in one process works, with a new state."""
    code = (
        "import mxgold, sys\n"
        "for n in [m for m in sys.modules if m.startswith('mxgold')]: del sys.modules[n]\n"
        "import mxgold as m, numpy as np\n"
        "print(m.quantize(np.ones((1, 32), np.float32)).scales[0, 0])\n"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "125\n"


@pytest.fixture
def wheel():
    path = os.environ.get("MXGOLD_WHEEL")
    if not path:
        pytest.skip("MXGOLD_WHEEL names no wheel")
    return Path(path)


def test_wheel(wheel, tmp_path):
    assert "-cp311-abi3-manylinux_2_" in wheel.name and wheel.stat().st_size < 8 << 20
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(tmp_path)
    for wanted in ("mxgold/py.typed", "mxgold/_core.pyi", "mxgold/bin/mxgold", "mxgold_pytest.py"):
        assert wanted in names
    assert any(n.endswith("licenses/licenses/NOTICE.txt") for n in names) and any(n.endswith("licenses/LICENSE") for n in names)
    needed = subprocess.run(["readelf", "-d", tmp_path / "mxgold/_core.abi3.so"], capture_output=True, text=True, check=True).stdout
    assert not any(lib in needed for lib in ("gomp", "jansson", "xxhash", "gmp", "python"))
    exported = subprocess.run(["nm", "-D", "--defined-only", tmp_path / "mxgold/_core.abi3.so"], capture_output=True, text=True, check=True).stdout
    assert [line.split()[-1] for line in exported.splitlines()] == ["PyInit__core"]
    program = subprocess.run(["readelf", "-d", tmp_path / "mxgold/bin/mxgold"], capture_output=True, text=True, check=True).stdout
    assert not any(lib in program for lib in ("gomp", "jansson", "xxhash", "gmp"))


def test_wheel_is_the_same_again(wheel, tmp_path):
    """Entries have fixed times and a fixed order, so that two wheels of one build have the same bytes."""
    with zipfile.ZipFile(wheel) as archive:
        assert {i.date_time for i in archive.infolist()} == {(2020, 1, 1, 0, 0, 0)}


def test_auditwheel_grants_the_tag(wheel):
    pytest.importorskip("auditwheel")
    said = subprocess.run([sys.executable, "-m", "auditwheel", "show", wheel], capture_output=True, text=True).stdout.replace("\n", " ")
    tag = wheel.name.split("-")[-1].removesuffix(".whl")
    assert f'"{tag}"' in said, said


def test_types_and_style():
    """Runs mypy --strict and ruff if they are installed."""
    checked = 0
    for module, words in (("mypy", ["--strict", "mxgold", "mxgold_pytest.py"]), ("ruff", ["check", "."])):
        if subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True).returncode:
            continue
        done = subprocess.run([sys.executable, "-m", module, *words], capture_output=True, text=True, cwd=ROOT / "python")
        assert done.returncode == 0, done.stdout + done.stderr
        checked += 1
    if not checked:
        pytest.skip("neither mypy nor ruff is there")


def test_docstrings_run():
    """The examples of the docstrings give what they say."""
    import doctest
    import importlib

    import mxgold.testing

    tried = 0
    for name in (
        "_quantized",
        "_spec",
        "_tables",
        "_linear",
        "_cases",
        "_files",
        "_verify",
        "_ablate",
        "testing._matches",
        "testing._product",
        "testing._linear",
        "testing._suites",
    ):
        module = importlib.import_module(f"mxgold.{name}")
        result = doctest.testmod(module, extraglobs={"mxgold": mxgold}, optionflags=doctest.NORMALIZE_WHITESPACE)
        assert result.failed == 0, name
        tried += result.attempted
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner(verbose=False)
    for function in (mxgold.quantize, mxgold.encode, mxgold.decode, mxgold.gemm):
        for test in finder.find(function, function.__name__, module=False, globs={"mxgold": mxgold}):
            assert runner.run(test).failed == 0
            tried += len(test.examples)
    assert tried > 30


def test_every_public_name_has_a_docstring():
    for name in mxgold.__all__:
        assert (getattr(mxgold, name).__doc__ or "").strip(), name
    import inspect

    for name in ("quantize", "encode", "decode", "gemm", "mma", "hadamard"):
        assert "x" in inspect.signature(getattr(mxgold, name)).parameters or name in ("decode", "gemm", "mma")
