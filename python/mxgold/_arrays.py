"""Converts arrays of other libraries that the C module cannot read by itself, and results to the library that the caller asks for.

The C module takes the buffer protocol and DLPack. adapt() is asked for the rest: NumPy arrays of ml_dtypes' types, tensors that need a gradient, are negated
or lie on a device, JAX's bfloat16, objects that have an __array_interface__ alone.
"""

from __future__ import annotations

import importlib
import logging
from types import ModuleType
from typing import Any

import numpy as np

from . import _core
from ._errors import DtypeError

log = logging.getLogger("mxgold")

_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def _root(value: object) -> str:
    return type(value).__module__.partition(".")[0]


def _bits(array: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], str | None]:
    """An array whose dtype has no buffer, as unsigned words and the dtype's name."""
    if array.dtype.kind in "fiub" and array.dtype.isbuiltin == 1:
        return array, None
    name = array.dtype.name
    if name not in ("bfloat16",) and not name.startswith(("float8", "float6", "float4")):
        raise DtypeError(f"dtype {name}, expected numbers")
    return array.view(_UNSIGNED[array.dtype.itemsize]), name


def _of_torch(tensor: Any) -> tuple[Any, str | None]:
    import torch

    if tensor.requires_grad:
        tensor = tensor.detach()
    if tensor.device.type != "cpu":
        log.info("a tensor of %d bytes is copied from %s", tensor.numel() * tensor.element_size(), tensor.device)
        tensor = tensor.cpu()
    if tensor.is_conj() or tensor.is_neg():
        tensor = tensor.resolve_conj().resolve_neg()
    name = str(tensor.dtype).removeprefix("torch.")
    if name.startswith(("float8", "float4")):
        return tensor.view(torch.uint8), name
    return tensor, None


def adapt(value: Any, argument: str) -> tuple[Any, str | None]:
    """(an array that has a buffer or __dlpack__, name of its dtype if the array itself cannot say it)."""
    try:
        return _adapted(value)
    except DtypeError as error:
        raise _named(error, argument) from None
    except MemoryError:
        raise
    except Exception as error:  # what the other library says of an array that it cannot give
        raise _named(DtypeError(f"{type(value).__name__} that cannot be read: {error}"), argument) from None


def _adapted(value: Any) -> tuple[Any, str | None]:
    root = _root(value)
    if hasattr(value, "requires_grad") and any(base.__module__ == "torch" for base in type(value).__mro__):  # of another library's class too
        return _of_torch(value)
    if root == "cupy":
        log.info("an array of %d bytes is copied from the device", value.nbytes)
        return _bits(value.get())
    if isinstance(value, np.ndarray):
        return _bits(value)
    if root in ("jax", "jaxlib") or hasattr(value, "__array_interface__"):
        return _bits(np.asarray(value))
    if hasattr(value, "__dlpack_device__") and value.__dlpack_device__()[0] not in _core.devices_in_memory:
        raise DtypeError(f"{type(value).__name__} on a device (DLPack's type {int(value.__dlpack_device__()[0])}), expected an array in memory")
    hint = ": np.asarray() makes one" if isinstance(value, (list, tuple, int, float)) else ""
    raise DtypeError(f"{type(value).__name__}, expected an array{hint}")


def _named(error: DtypeError, argument: str) -> DtypeError:
    named = DtypeError(f"{argument}: {error}")
    named.argument = argument
    return named


def stated_dtype(value: Any) -> str:
    """The name of the dtype that an array says it has; "" of what says none."""
    return str(getattr(value, "dtype", "")).removeprefix("torch.")


def to_numpy(value: Any, argument: str) -> tuple[np.ndarray[Any, Any], str]:
    """Any array as NumPy's, and the name of its dtype; bfloat16 and float8 as unsigned words."""
    try:
        return _numpy_of(value, argument)
    except (DtypeError, MemoryError):
        raise
    except Exception as error:
        raise _named(DtypeError(f"{type(value).__name__} that cannot be read: {error}"), argument) from None


def _numpy_of(value: Any, argument: str) -> tuple[np.ndarray[Any, Any], str]:
    name: str | None = None
    if not isinstance(value, np.ndarray) or value.dtype.isbuiltin != 1:
        if isinstance(value, (list, tuple, int, float)):
            value = np.asarray(value)
        else:
            value, name = adapt(value, argument)
    if _root(value) == "torch":
        import torch

        if value.dtype == torch.bfloat16:
            value, name = value.view(torch.uint16), "bfloat16"
        value = value.numpy()
    array = np.asarray(value)
    return array, name or array.dtype.name


def bfloat16(bits: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """bfloat16 bits as ml_dtypes' bfloat16, where ml_dtypes is; else as they are, uint16."""
    try:
        import ml_dtypes
    except ImportError:
        return bits
    return bits.view(ml_dtypes.bfloat16)


def as_like(array: Any, like: Any) -> Any:
    """A NumPy array as the library of `like` has it: an array, a module, or a name ('torch', 'jax', 'cupy', 'numpy')."""
    if array is None or not isinstance(array, (np.ndarray, np.generic)):
        return array
    root = (like if isinstance(like, str) else like.__name__ if isinstance(like, ModuleType) else type(like).__module__).partition(".")[0]
    if root in ("numpy", "ml_dtypes"):
        return array
    library = "jax" if root == "jaxlib" else root
    if library not in ("torch", "jax", "cupy"):
        what = repr(like) if isinstance(like, (str, ModuleType)) else type(like).__name__
        raise _named(DtypeError(f"{what}, expected an array of NumPy, PyTorch, JAX or CuPy, a module of these or its name"), "like")
    try:
        module: Any = importlib.import_module("jax.numpy" if library == "jax" else library)
    except ImportError as error:
        raise _named(DtypeError(f"{library}, which cannot be imported: {error}"), "like") from None
    if library != "torch":
        return module.asarray(array)
    if array.dtype.name == "bfloat16":
        tensor = module.from_numpy(np.asarray(array).view(np.uint16)).view(module.bfloat16)
    else:
        tensor = module.from_numpy(np.asarray(array))
    return tensor.to(like.device) if isinstance(like, module.Tensor) else tensor
