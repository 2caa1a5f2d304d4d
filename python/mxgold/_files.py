"""Reads and writes the project's files: .npy, .safetensors and .mxv."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from . import _core
from ._arguments import path as file_name
from ._arguments import text
from ._arrays import bfloat16, to_numpy
from ._quantized import Quantized

# NumPy's names of dtypes to the program's.
_DTYPES = {
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "float64": "f64",
    "uint8": "u8",
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "bool": "bool",
    "float8_e4m3fn": "f8_e4m3",
    "float8_e5m2": "f8_e5m2",
    "float8_e8m0fnu": "f8_e8m0",
}
_SIGNED = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "f64": np.float64, "bool": np.bool_}


def dtype_name(name: str) -> str:
    """The program's name of a dtype; codes of narrower formats are bytes."""
    return _DTYPES.get(name, "u8" if name.startswith("float") else name)


def _typed(dtype: str, array: Any) -> Any:
    if dtype in _SIGNED:
        return array.view(_SIGNED[dtype])
    return bfloat16(array) if dtype == "bf16" else array


class Tensors(dict[str, Any]):
    """Arrays of a file by name, in the order of the file; .meta has its metadata, {str: str}."""

    def __init__(self, arrays: Mapping[str, Any], meta: Mapping[str, str]) -> None:
        super().__init__(arrays)
        self.meta = dict(meta)


def load(path: str | os.PathLike[str]) -> Quantized | Tensors:
    """Read a file: what quantize() saved as a Quantized, any other .safetensors, .npy or .mxv file as Tensors (.npy: one array named "").

    Scales come in row-major order, whatever layout the file has. Digests that the file states are checked.
    Raises FileNotFoundError, OSError, FileFormatError (the message names the place in the file).

    >>> import numpy as np, mxgold, tempfile, os
    >>> name = os.path.join(tempfile.mkdtemp(), "Q.safetensors")
    >>> q = mxgold.quantize(np.ones((1, 32), np.float32), "te-nvfp4")
    >>> q.save(name)
    >>> mxgold.load(name) == q
    True
    """
    path = file_name(path)
    tensors, meta = _core.read_file(path)
    names = {name for name, _, _ in tensors}
    if {"codes", "scales"} <= names and "spec" in meta and "input" not in names:
        codes, scales, micro, scale, spec, shape, dtype, preset = _core.read_quantized(path)
        if preset and spec.replace(nibble="low_first", seed=0, tensor_given="none") == type(spec)(preset, nibble="low_first"):
            object.__setattr__(spec, "_like", preset)
        return Quantized(codes, scales, scale, spec, shape, dtype, micro)
    return Tensors({name: _typed(dtype, array) for name, dtype, array in tensors}, meta)


def save(path: str | os.PathLike[str], arrays: Any, meta: Mapping[str, str] | None = None) -> None:
    """Write a .safetensors file of a mapping of arrays, with a digest of each; a .npy file of one array; or a Quantized. Whole, or not at all.

    Raises OSError, DtypeError (a dtype that the file cannot hold), Error (an ending that is neither).
    """
    path = file_name(path)
    if meta is not None and not (isinstance(meta, Mapping) and all(isinstance(v, str) for pair in meta.items() for v in pair)):
        raise TypeError("meta: expected a mapping of str to str")
    if isinstance(arrays, Quantized):
        arrays.save(path)
        return
    if not isinstance(arrays, Mapping):
        arrays = {"": arrays}
    tensors = []
    for name, value in arrays.items():
        array, dtype = to_numpy(value, text(name, "arrays") or "arrays")
        tensors.append((name, dtype_name(dtype), array))
    if len(tensors) == 1 and str(os.fspath(path)).endswith(".safetensors") and tensors[0][0] == "":
        tensors = [("array", tensors[0][1], tensors[0][2])]
    _core.write_file(path, tensors, dict(meta or {}))
