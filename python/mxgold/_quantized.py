"""Defines Quantized, a quantised array as the program's files hold it."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from . import _core
from ._arguments import choice, flag
from ._arguments import path as file_name
from ._arguments import shape as lengths
from ._arrays import as_like, bfloat16, to_numpy
from ._errors import DtypeError, ShapeError
from ._spec import NO_CODES, Spec, make
from ._tables import hold_dtypes


class Quantized:
    """Codes and scales of one array, and what they were made with.

    codes         uint8 [rows][bytes]: 4-bit codes two a byte in the spec's nibble order, wider ones one a byte, each row padded to whole blocks;
                  float32 [rows][cols] under elem=none and elem=bf16
    scales        uint8, uint16 or float32 [scale_rows][scale_cols], as stored
    tensor_scale  numpy.float32 in the preset's stored convention, or None
    micro         uint8 [scale_rows][scale_cols][3], only of HiF4
    spec, shape, dtype   the Spec, and the shape and dtype of what was quantised

    Made by quantize() and load(), or from a kernel's own arrays: Quantized.of(codes, scales, preset=..., shape=...).

    >>> import numpy as np, mxgold
    >>> q = mxgold.quantize(np.float32([[1, 2, 3, 6] * 8]), "ocp-mxfp4")
    >>> q
    Quantized(ocp-mxfp4, 1 x 32 of float32: 16 bytes of codes, 1 of scales)
    >>> q.dequantize()[0, :4]
    array([1., 2., 3., 6.], dtype=float32)
    """

    __slots__ = ("codes", "scales", "tensor_scale", "spec", "shape", "dtype", "micro", "__weakref__")

    def __init__(self, codes: Any, scales: Any, tensor_scale: Any, spec: Spec, shape: tuple[int, ...], dtype: str = "float32", micro: Any = None) -> None:
        self.codes = codes
        self.scales = scales
        one = isinstance(tensor_scale, np.ndarray)  # of no dimensions, from the C module: not a bit of it may change
        self.tensor_scale: Any = tensor_scale[()] if one else None if tensor_scale is None else np.float32(tensor_scale)
        self.spec = spec
        self.shape = shape
        self.dtype = dtype
        self.micro = micro

    @classmethod
    def of(
        cls,
        codes: Any,
        scales: Any,
        *,
        preset: Any = None,
        spec: Any = None,
        set: Any = None,
        seed: Any = None,
        tensor_scale: Any = None,
        shape: tuple[int, ...] | None = None,
        dtype: str = "float32",
        micro: Any = None,
    ) -> Quantized:
        """From arrays of a kernel: codes one a byte [rows][cols] or packed as quantize() packs them, scales [scale_rows][scale_cols] in row-major order.

        shape: of what was quantised; that of the codes if they are one a byte. Raises ShapeError where sizes do not fit the spec.
        """
        what = make(preset, spec, set, seed)
        choice(dtype, "dtype", ("float32", "float16", "bfloat16"))
        hold_dtypes(what, codes, scales)
        array, _ = to_numpy(codes, "codes")
        if array.dtype.itemsize != 1 and what["elem"] not in NO_CODES:
            raise DtypeError(f"codes: dtype {array.dtype.name}, expected one byte a code, or packed codes")
        if shape is None:
            if array.ndim == 0:
                raise ShapeError("codes: a single number, expected an array")
            shape = array.shape
        shape = lengths(shape)
        rows, cols = _matrix(shape)
        if array.size == rows * cols and what["elem"] not in NO_CODES:
            array = _core.pack_codes(np.ascontiguousarray(array.reshape(rows, cols)).view(np.uint8), what)
        found = to_numpy(scales, "scales")[0]
        if micro is not None:
            micro = _micro_of(micro, found.shape, what)
        made = cls(
            array.view(np.uint8) if what["elem"] not in NO_CODES else array,
            found,
            None if tensor_scale is None else _one(tensor_scale),
            what,
            tuple(shape),
            dtype,
            micro,
        )
        _core.unpack_codes(made)  # checks every size
        return made

    @property
    def rows(self) -> int:
        """Product of all axes but the last."""
        return _matrix(self.shape)[0]

    @property
    def cols(self) -> int:
        """Length of the last axis, which blocks run along."""
        return _matrix(self.shape)[1]

    @property
    def nbytes(self) -> int:
        """Bytes of codes, scales, micro-scales and the tensor scale."""
        return int(self.codes.nbytes + self.scales.nbytes + (0 if self.micro is None else self.micro.nbytes) + (0 if self.tensor_scale is None else 4))

    @property
    def preset(self) -> str | None:
        """The preset of the spec, or None."""
        return self.spec.preset

    def dequantize(self, dtype: str = "float32", *, threads: int = 0, like: Any = None) -> Any:
        """Values in the shape of the input: code * scale * tensor scale, as the spec's deq.arith says.

        dtype: "float32", or "bfloat16" (ml_dtypes' where it is installed, else its bits as uint16). A rotation is not undone: mxgold.hadamard().
        like: as quantize(); without it the values come as the codes are held, tensors after quantize(..., like="torch").
        """
        values = _core.dequantize(self, dtype, threads)
        if dtype == "bfloat16":
            values = bfloat16(values)
        return as_like(values, self.codes if like is None else like)

    def unpack(self) -> Any:
        """Codes one a byte, uint8 [rows][cols], without padding; the floats' bits, uint32, under elem=none and elem=bf16."""
        return _core.unpack_codes(self)

    def scales_in(self, layout: str, pad: int = 0) -> Any:
        """Scales in a layout of mxgold.layouts(), flat uint8 with its padding: q.scales_in("nv128x4")."""
        return _core.layout_scales(self.scales, layout, pad)

    def save(self, path: str | os.PathLike[str], *, dequantized: bool = False, layout: str = "row", pad: int = 0) -> None:
        """Write a .safetensors file, byte for byte what `mxgold quantize` writes; whole, or not at all."""
        values = np.ascontiguousarray(self.dequantize(like="numpy")) if flag(dequantized, "dequantized") else None
        label = self.spec._label() if isinstance(self.spec, Spec) else ""  # one that somebody changed is refused by the next line
        _core.write_quantized(file_name(path), self, label, values, layout, pad)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Quantized):
            return NotImplemented
        same_scale = (self.tensor_scale is None) == (other.tensor_scale is None) and (
            self.tensor_scale is None or self.tensor_scale.tobytes() == np.float32(other.tensor_scale).tobytes()
        )
        return bool(
            self.spec == other.spec
            and self.shape == other.shape
            and same_scale
            and np.array_equal(self.codes, other.codes)
            and np.array_equal(self.scales, other.scales)
            and ((self.micro is None and other.micro is None) or np.array_equal(self.micro, other.micro))
        )

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return Quantized, (self.codes, self.scales, self.tensor_scale, self.spec, self.shape, self.dtype, self.micro)

    def _in_numpy(self) -> Quantized:
        """The same with NumPy's arrays, where like= made those of another library."""
        parts = (self.codes, self.scales, self.micro)
        if all(part is None or isinstance(part, np.ndarray) for part in parts[2:]) and all(isinstance(part, np.ndarray) for part in parts[:2]):
            return self
        codes, scales = (to_numpy(part, f"q: its {name}")[0] for part, name in zip(parts, ("codes", "scales"), strict=False))
        micro = None if self.micro is None else to_numpy(self.micro, "q: its micro-scales")[0]
        return Quantized(codes, scales, self.tensor_scale, self.spec, self.shape, self.dtype, micro)

    def _repr_html_(self) -> str:
        from ._html import quantized_html

        return quantized_html(self)

    def __repr__(self) -> str:
        extent = " x ".join(str(n) for n in self.shape) or "one number"
        scale = "" if self.tensor_scale is None else f", tensor scale {self.tensor_scale:.9g}"
        return f"Quantized({self.spec}, {extent} of {self.dtype}: {self.codes.nbytes} bytes of codes, {self.scales.nbytes} of scales{scale})"


def _one(value: Any) -> Any:
    """A tensor scale in whatever array or number, as one numpy.float32."""
    array, dtype = to_numpy(value, "tensor_scale")
    if array.size != 1:
        raise ShapeError(f"tensor_scale: {array.size} values, expected one")
    if dtype == "bfloat16":
        array = (array.astype(np.uint32) << 16).view(np.float32)
    return array.reshape(-1)[0] if array.dtype == np.float32 else np.float32(array.reshape(-1)[0])


def _micro_of(value: Any, scales: tuple[int, ...], spec: Spec) -> Any:
    """Micro-scales as bytes [scale_rows][scale_cols][3], in the shape of the scales."""
    array = to_numpy(value, "micro")[0]
    if array.dtype.itemsize != 1:
        raise DtypeError(f"micro: dtype {array.dtype.name}, expected bytes, three a block")
    if spec["scale.rule"] != "hif4":
        raise ShapeError(f"micro: {spec} stores no micro-scales, expected none")
    array = np.ascontiguousarray(array).view(np.uint8)
    return array.reshape(*scales, 3) if array.size == 3 * int(np.prod(scales)) else array  # other sizes are refused with those of the rest


def _matrix(shape: tuple[int, ...]) -> tuple[int, int]:
    rows = 1
    for n in shape[:-1]:
        rows *= n
    return rows, shape[-1] if shape else 1


def dequantize(
    q: Quantized | Any,
    scales: Any = None,
    *,
    preset: Any = None,
    spec: Any = None,
    set: Any = None,
    tensor_scale: Any = None,
    shape: tuple[int, ...] | None = None,
    dtype: str = "float32",
    threads: int = 0,
    like: Any = None,
) -> Any:
    """Values of a quantised array, in the shape of what was quantised.

    q: a Quantized; or codes, with scales=, preset= (or spec=, set=), tensor_scale= and, for packed codes, shape=, as Quantized.of() takes them.
    dtype: "float32" or "bfloat16". threads: no bit depends on it. like: as Quantized.dequantize().
    Raises ShapeError where sizes do not fit, DtypeError, SpecError.

    >>> import numpy as np, mxgold
    >>> mxgold.dequantize(np.uint8([[2, 4, 7, 15] * 8]), np.uint8([[128]]), preset="ocp-mxfp4")[0, :4]
    array([  2.,   4.,  12., -12.], dtype=float32)
    """
    if not isinstance(q, Quantized):
        if scales is None:
            raise DtypeError(f"q: {type(q).__name__}, expected a Quantized, or codes with scales=")
        q = Quantized.of(q, scales, preset=preset, spec=spec, set=set, tensor_scale=tensor_scale, shape=shape)
    return q.dequantize(dtype, threads=threads, like=like)
