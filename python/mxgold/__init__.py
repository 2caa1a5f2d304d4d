"""mxgold: the exact bytes that a correct kernel for MXFP4, NVFP4, MXFP8 and other block-scaled formats must produce, and what a wrong one does instead.

    q = mxgold.quantize(x, preset="te-nvfp4")            codes, scales, tensor_scale as a right kernel gives them
    mxgold.testing.assert_matches(x, codes, scales, preset="te-nvfp4")      in a test: the failure message is the verdict

Arrays of NumPy, PyTorch, JAX, CuPy and ml_dtypes go in; NumPy arrays come out, or those of the library that like= names. Every byte is the C library's and the
same as the program's (`mxgold`, `python -m mxgold`); nothing is computed a second time in Python. Calls release the GIL, and no byte depends on threads.
"""

from __future__ import annotations

from typing import Any

from . import _core

if _core.interpreter:
    raise ImportError("mxgold is for the main interpreter of a process: NumPy, which it needs, cannot be imported safely in a subinterpreter")
try:
    import numpy as _numpy
except ImportError as error:  # not installed, or for another Python, which NumPy says over many lines
    why = next((line.strip() for line in str(error).splitlines() if line.strip()), "no reason given")
    raise ImportError(f"mxgold needs NumPy, which cannot be imported here: {why}") from None

from ._arrays import adapt as _adapt
from ._arrays import as_like as _as_like
from ._cases import Case, Cases, gen
from ._core import decode, encode, gemm, hadamard, mma, quantize
from ._errors import DataError, DtypeError, Error, FileFormatError, KernelError, ProgramError, ShapeError, SpecError, UnsupportedError
from ._files import Tensors, load, save
from ._linear import LinearResult, linear
from ._quantized import Quantized, dequantize
from ._spec import Spec
from ._spec import make as _make
from ._tables import Format, Layout, Preset, bugs, formats, keys, layouts, models, presets, recipes, suites

_core.setup(_numpy.empty, _numpy.dtype, Spec, Quantized, _make, _adapt, _as_like)

from ._ablate import Ablation, ablate  # noqa: E402
from ._verify import Diff, Identity, Judgement, Probe, diff, diff_gemm, identify, probe  # noqa: E402

__version__ = _core.version

__all__ = [
    "Ablation",
    "Case",
    "Cases",
    "DataError",
    "Diff",
    "DtypeError",
    "Error",
    "FileFormatError",
    "Format",
    "Identity",
    "Judgement",
    "KernelError",
    "Layout",
    "LinearResult",
    "Preset",
    "Probe",
    "ProgramError",
    "Quantized",
    "ShapeError",
    "Spec",
    "SpecError",
    "Tensors",
    "UnsupportedError",
    "ablate",
    "bugs",
    "decode",
    "dequantize",
    "diff",
    "diff_gemm",
    "encode",
    "formats",
    "gemm",
    "gen",
    "hadamard",
    "identify",
    "keys",
    "layouts",
    "linear",
    "load",
    "mma",
    "models",
    "presets",
    "probe",
    "quantize",
    "recipes",
    "save",
    "suites",
]


def __getattr__(name: str) -> Any:
    """mxgold.testing and mxgold.torch are imported when they are asked for."""
    if name in ("testing", "torch", "strategies"):
        import importlib

        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module 'mxgold' has no attribute {name!r}")
