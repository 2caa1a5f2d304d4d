"""Gives every public function wrong values for every argument, and says which calls did not end in a typed error that names the argument.

    bad_input.py [--all] [NAME...]     functions whose name contains one of NAME; --all: every value also for those that run the program, which takes minutes

Functions and arguments are read from the package, so a new function without a good call in calls() is a finding too. A call may return, or raise an error of
mxgold or a TypeError whose message is one line that names the argument (or an OSError for a path, or a MemoryError for a size). A crash ends the process,
whose last line on standard error says which call it was, for test_bad_input.py. The exit status is 1 if there is a finding.
"""

from __future__ import annotations

import ctypes
import faulthandler
import inspect
import os
import resource
import signal
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

import mxgold
import mxgold.testing

GOOD = np.random.default_rng(1).standard_normal((4, 64)).astype(np.float32)
Q = mxgold.quantize(GOOD, "ocp-mxfp4")
N = mxgold.quantize(GOOD, "te-nvfp4")
H = mxgold.quantize(GOOD, "hif4")
UNIT = "hopper/mma_m16n8k16_f32_f16_f16_f32"
W16 = np.zeros((16, 16), np.uint16)


class Raises:
    """An array that raises an error when it is asked for its memory."""

    def __dlpack__(self, **how):
        raise RuntimeError("not\nhere")


class Lies:
    """An object that claims to be an array, but is not."""

    __array_interface__ = {"shape": (2,), "typestr": "<f4", "data": None, "version": 3}


class NoIndex:
    def __index__(self):
        raise ZeroDivisionError("no index")

    def __float__(self):
        raise ZeroDivisionError("no float")

    def __str__(self):
        return "two\nlines"


def changed(**how):
    q = mxgold.quantize(GOOD, "ocp-mxfp4")
    for name, value in how.items():
        setattr(q, name, value)
    return q


def values() -> dict[str, object]:
    """Wrong values for arguments, a few of which are right for some argument."""
    read_only = GOOD.copy()
    read_only.setflags(write=False)
    odd = np.ndarray(GOOD.shape, np.float32, bytearray(GOOD.nbytes + 1), 1)
    found = {
        "True": True,
        "0": 0,
        "-1": -1,
        "3": 3,
        "2^31": 1 << 31,
        "2^36": 1 << 36,
        "2^63": 1 << 63,
        "2^64": 1 << 64,
        "-10^30": -(10**30),
        "0.5": 0.5,
        "nan": float("nan"),
        "-inf": float("-inf"),
        "1e300": 1e300,
        "complex": 1j,
        "empty text": "",
        "text": "abc",
        "preset": "te-nvfp4",
        "keys": "elem.round=sr",
        "NUL": "a\0b",
        "surrogate": "\ud800",
        "long text": "elem.round=" + "x" * 70000,
        "lines": "two\nlines",
        "bytes": b"abc",
        "bytearray": bytearray(8),
        "list": [1.0, 2.0],
        "texts": ["elem.round=sr", "no=such"],
        "nested": [[1], [1, 2]],
        "empty list": [],
        "empty tuple": (),
        "shape": (1 << 40, 64),
        "negative shape": (-4, 64),
        "floats as shape": (4.5, "a"),
        "dict": {"elem.round": "sr"},
        "dict of wrong": {1: None, "a": object()},
        "empty dict": {},
        "object": object(),
        "class": np.ndarray,
        "module": np,
        "function": lambda *a: None,
        "function of wrong": lambda *a: (1, 2),
        "NoIndex": NoIndex(),
        "Raises": Raises(),
        "Lies": Lies(),
        "Path": Path("/no/such/folder/x.safetensors"),
        "float32": GOOD,
        "0-d": np.float32(1.5),
        "0-d array": np.array(1.5, np.float32),
        "one": GOOD[:1, :1],
        "row": GOOD[0],
        "wide": np.zeros((4, 65), np.float32),
        "3-d": np.zeros((2, 4, 64), np.float32),
        "no rows": np.zeros((0, 64), np.float32),
        "no columns": np.zeros((4, 0), np.float32),
        "backward": GOOD[::-1, ::-1],
        "turned": GOOD.T,
        "broadcast": np.broadcast_to(GOOD[:1, :1], (4, 64)),
        "huge": np.broadcast_to(np.float32(1), (1 << 30, 1 << 28)),
        "32 axes": np.zeros((1,) * 32, np.float32),  # the most that NumPy 1 has
        "30 axes": np.zeros((1,) * 30, np.float32),
        "read-only": read_only,
        "misaligned": odd,
        "big-endian": GOOD.astype(">f4"),
        "float64": GOOD.astype(np.float64),
        "float16": GOOD.astype(np.float16),
        "longdouble": GOOD.astype(np.longdouble),
        "int8": GOOD.astype(np.int8),
        "int32": GOOD.astype(np.int32),
        "int64": GOOD.astype(np.int64),
        "uint8": np.zeros((4, 64), np.uint8),
        "uint8 255": np.full((4, 64), 255, np.uint8),
        "uint16": np.zeros((4, 64), np.uint16),
        "uint32": np.zeros((4, 64), np.uint32),
        "bool": GOOD > 0,
        "complex64": GOOD.astype(np.complex64),
        "objects": np.array([object(), None]),
        "texts of NumPy": np.array(["a", "bc"]),
        "records": np.zeros(3, [("a", "f4"), ("b", "f4")]),
        "dates": np.zeros(3, "M8[s]"),
        "void": np.zeros(3, "V7"),
        "masked": np.ma.masked_array(GOOD, GOOD > 0),
        "NaNs": np.full((4, 64), np.nan, np.float32),
        "infinities": np.full((4, 64), np.inf, np.float32),
        "memoryview": memoryview(GOOD),
        "released": released(),
        "ctypes": (ctypes.c_float * 64)(),
        "Quantized": Q,
        "te-nvfp4": N,
        "hif4": H,
        "torch's": mxgold.quantize(GOOD, "ocp-mxfp4", like="torch") if "torch" in sys.modules else Q,
        "changed codes": changed(codes=None),
        "changed scales": changed(scales="abc"),
        "changed shape": changed(shape=(1 << 40, 1 << 40)),
        "changed shape 2": changed(shape="ab"),
        "changed spec": changed(spec=None),
        "changed micro": changed(micro=GOOD),
        "Spec": mxgold.Spec("te-nvfp4"),
    }
    try:
        import ml_dtypes

        for name in ("bfloat16", "float8_e4m3fn", "float4_e2m1fn", "int4", "float8_e8m0fnu"):
            found[f"ml_dtypes {name}"] = np.zeros((4, 64), getattr(ml_dtypes, name))
    except ImportError:
        pass
    if "torch" in sys.modules:
        import torch

        tensor = torch.from_numpy(GOOD.copy())
        found |= {
            "torch": tensor,
            "torch gradient": tensor.clone().requires_grad_(),
            "torch bfloat16": tensor.bfloat16(),
            "torch complex": torch.zeros(4, 64, dtype=torch.complex64).conj(),
            "torch meta": torch.zeros(4, 64, device="meta"),
            "torch sparse": tensor.to_sparse(),
            "torch expanded": torch.ones(1).expand(1 << 61, 2),
            "torch turned": tensor.T,
            "torch quantised": torch.quantize_per_tensor(tensor, 0.1, 0, torch.qint8),
            "torch bool": tensor > 0,
            "torch float8": torch.zeros(4, 64, dtype=torch.float8_e4m3fn),
        }
        if hasattr(torch, "float4_e2m1fn_x2"):
            found["torch float4"] = torch.zeros(4, 32, dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
    return found


def released():
    view = memoryview(bytearray(8))
    view.release()
    return view


def calls(folder: str) -> dict[str, tuple[object, dict[str, object]]]:
    """Every public function with arguments that it takes; `quick` functions do not run the program."""
    q = dict(codes=Q.codes, scales=Q.scales)
    path = os.path.join(folder, "q.safetensors")
    Q.save(path)
    y, dx, dw = mxgold.linear(GOOD, GOOD, GOOD[:, :4], recipe="recipe-ocp")
    cases = mxgold.gen("ties", "ocp-mxfp4", shape=(2, 32))
    table = mxgold.ablate(GOOD, ["ocp-mxfp4"])
    wrong = mxgold.diff(Q, codes=Q.codes ^ 1, scales=Q.scales)
    t = mxgold.testing
    return {
        "Spec": (mxgold.Spec, dict(spec="te-nvfp4", set=None, seed=None)),
        "Spec.replace": (mxgold.Spec("te-nvfp4").replace, dict(keys=None)),
        "Spec.__getitem__": (mxgold.Spec("te-nvfp4").__getitem__, dict(name="elem")),
        "Quantized.of": (mxgold.Quantized.of, dict(q, preset="ocp-mxfp4", shape=(4, 64))),
        "Quantized.dequantize": (Q.dequantize, {}),
        "Quantized.scales_in": (Q.scales_in, dict(layout="nv128x4")),
        "Quantized.save": (Q.save, dict(path=path)),
        "quantize": (mxgold.quantize, dict(x=GOOD, preset="ocp-mxfp4")),
        "dequantize": (mxgold.dequantize, dict(q=Q.codes, scales=Q.scales, preset="ocp-mxfp4", shape=(4, 64))),
        "encode": (mxgold.encode, dict(x=GOOD, format="e2m1")),
        "decode": (mxgold.decode, dict(codes=np.uint8([1, 2]), format="e2m1")),
        "hadamard": (mxgold.hadamard, dict(x=GOOD)),
        "gemm": (mxgold.gemm, dict(a=Q, b=Q)),
        "mma": (mxgold.mma, dict(a=W16, b=W16[:8], model=UNIT)),
        "linear": (mxgold.linear, dict(x=GOOD, w=GOOD, dy=GOOD[:, :4], recipe="recipe-ocp")),
        "gen": (mxgold.gen, dict(suite="ties", preset="ocp-mxfp4", shape=(2, 32))),
        "Cases.save": (cases.save, dict(path=os.path.join(folder, "c.mxv"))),
        "Cases.__getitem__": (cases.__getitem__, dict(index=0)),
        "load": (mxgold.load, dict(path=path)),
        "save": (mxgold.save, dict(path=os.path.join(folder, "s.safetensors"), arrays={"a": GOOD})),
        "ablate": (mxgold.ablate, dict(tensors=GOOD, presets=["ocp-mxfp4"])),
        "Ablation.to_csv": (table.to_csv, dict(path=os.path.join(folder, "t.csv"))),
        "Ablation.__getitem__": (table.__getitem__, dict(index=0)),
        "diff": (mxgold.diff, dict(q, q=Q)),
        "diff_gemm": (mxgold.diff_gemm, dict(a=Q, b=Q, d=mxgold.gemm(Q, Q))),
        "identify": (mxgold.identify, dict(q, x=GOOD, expect="ocp-mxfp4", seconds=0.05)),
        "probe": (mxgold.probe, dict(device=lambda a, b, c: mxgold.mma(a, b, c, model=UNIT), like=UNIT)),
        "Format.values": (mxgold.formats()["e2m1"].values, {}),
        "Diff.__str__": (wrong.__str__, {}),
        "testing.assert_matches": (t.assert_matches, dict(q, x=GOOD, preset="ocp-mxfp4", seconds=0.05)),
        "testing.assert_product": (t.assert_product, dict(a=Q, b=Q, d=mxgold.gemm(Q, Q))),
        "testing.assert_linear": (t.assert_linear, dict(x=GOOD, w=GOOD, dy=GOOD[:, :4], y=y, dx=dx, dw=dw, recipe="recipe-ocp")),
        "testing.cases": (t.cases, dict(preset="ocp-mxfp4", suites=["ties"], shape=(2, 32))),
        "testing.explain": (t.explain, dict(kernel=lambda x: mxgold.quantize(x, "ocp-mxfp4"), preset="ocp-mxfp4", suites=["ties"], seconds=0.05)),
    }


# These start the program for most values: with --all they get every value, without it the few that differ in kind.
SLOW = ("Cases.save", "ablate", "diff_gemm", "identify", "probe", "testing.assert_matches", "testing.assert_product", "testing.explain", "diff")
FEW = ("-1", "2^64", "nan", "text", "surrogate", "list", "object", "Raises", "huge", "no rows", "objects", "changed codes", "torch meta")
# Names that a message may use for an argument: those of the parts that it is made of.
ALSO = {
    "keys": ("spec", "set", "key", "Spec", "elem"),
    "spec": ("preset", "set", "key", "codes", "scales", "shape"),
    "preset": ("spec", "key", "codes", "scales", "shape", "x"),
    "set": ("key", "codes", "scales"),
    "expect": ("preset",),
    "kernel": ("x", "codes", "scales"),
    "q": ("codes", "scales", "shape"),
    "scales": ("q:",),
    "tensors": ("x:", "tensor"),
    "arrays": ("array", "tensor", "q:"),
    "device": ("model",),
    "other": ("q:", "codes", "scales"),
    "suites": ("suite",),
    "path": ("expected a name that ends", "expected .mxv", "unknown kind of output"),
    "presets": ("preset",),
    "accum": ("model",),
    "like": ("model", "x: Tensor"),
    "how": ("assert_linear()",),
}


def public() -> set[str]:
    """Names of what can be called: functions of mxgold and mxgold.testing."""
    own = {n for n in mxgold.__all__ if inspect.isroutine(getattr(mxgold, n))}
    return own | {f"testing.{n}" for n in mxgold.testing.__all__ if inspect.isroutine(getattr(mxgold.testing, n))}


def verdict(error: BaseException | None, argument: str, value: object) -> str:
    """Returns "" if a call ended as it may, and otherwise what is wrong."""
    if error is None or isinstance(error, AssertionError):
        return ""
    text = str(error)
    kind = type(error)
    told = kind.__module__ == "mxgold._errors" or kind is TypeError
    told = told or (isinstance(error, OSError) and argument in ("path", "preset", "folder")) or kind is MemoryError
    told = told or (kind in (IndexError, KeyError) and argument in ("index", "name"))
    told = told or (argument == "device" and value is np.ndarray)  # what a caller's own function raises is passed on unchanged
    if not told:
        return f"{kind.__name__}: {text[:120]!r}, no error of mxgold's"
    if "\n" in text:
        return f"{kind.__name__}: more than one line: {text[:120]!r}"
    if text.startswith("seconds: "):  # of a search that was given too little of them here
        return ""
    named = kind in (MemoryError, IndexError, KeyError) or isinstance(error, OSError)
    named = named or (argument == "device" and value is np.ndarray) or any(word in text for word in (argument, *ALSO.get(argument, ())))
    return "" if named else f"{kind.__name__}: {text[:160]!r} does not name {argument}"


def late(*unused):
    raise TimeoutError("more than 20 seconds")


def main() -> int:
    faulthandler.enable()
    signal.signal(signal.SIGALRM, late)
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (48 << 30, 48 << 30))  # so that a huge size fails instead of filling the memory of the machine
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    words = sys.argv[1:]
    thorough = "--all" in words
    only = [w for w in words if not w.startswith("-")]
    findings = n = 0
    told: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        table, pool = calls(folder), values()
        for name in sorted(public() - set(table) - {"formats", "bugs", "keys", "layouts", "models", "presets", "recipes", "suites"}):
            print(f"{name}: public, and not in CALLS")
            findings += 1
        for name, (function, good) in table.items():
            if (only and not any(w in name for w in only)) or ("--not-testing" in words and name.startswith("testing.")):
                continue
            base = {
                k: v
                for k, v in good.items()
                if k not in ("spec", "keys", "name", "index") or (name not in ("Spec", "Spec.__getitem__") and "__getitem__" not in name)
            }
            at_place = name in ("Spec", "Spec.__getitem__", "Cases.__getitem__", "Ablation.__getitem__")
            if at_place:
                function(*[v for v in list(good.values())[:1]])
            elif name == "Spec.replace":
                base = {}
            else:
                function(**base)  # the good call is one
            parameters = list(inspect.signature(function).parameters.values())
            for p in parameters:
                for label, value in pool.items():
                    if name in SLOW and not thorough and label not in FEW:
                        continue
                    print(f"{name}({p.name}={label})", file=sys.stderr, flush=True)
                    error = None
                    signal.alarm(20)
                    try:
                        if p.kind is p.POSITIONAL_ONLY or (at_place and p is parameters[0]):
                            function(value)
                        elif p.kind is p.VAR_KEYWORD:
                            function(elem_round=value)
                        elif p.kind is not p.VAR_POSITIONAL:
                            function(**{**base, p.name: value})
                    except Exception as e:
                        error = e
                    signal.alarm(0)
                    n += 1
                    wrong = verdict(error, p.name, value)
                    if wrong:
                        findings += 1
                        kind = f"{name} {p.name} {wrong[:40]}"
                        told[kind] = told.get(kind, 0) + 1
                        if told[kind] <= 2:  # the first of a kind
                            print(f"{name}({p.name}={label}): {wrong}", flush=True)
        os.chdir("/")
    print(f"{n} calls, {findings} findings")
    return findings > 0


if __name__ == "__main__":
    if "--torch" in sys.argv:
        import torch  # noqa: F401
    sys.exit(main())
