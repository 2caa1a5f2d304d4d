# The C module's functions, for type checkers. Arrays are of any library that mxgold takes; results are NumPy's.
import os
from collections.abc import Mapping, Sequence
from typing import Any, Self

from ._quantized import Quantized
from ._spec import Spec

version: str
interpreter: int  # 0: the main one
devices_in_memory: tuple[int, int, int]  # DLPack's types of devices whose memory the processor reads

class SpecBase:
    def __new__(cls, preset: str | None = None, *texts: str) -> Self: ...
    def text(self, all: bool = False) -> str: ...
    def shortest(self, like: str | None = None) -> tuple[str | None, str]: ...
    def block_of(self, rows: int, cols: int) -> tuple[int, int]: ...
    def tensor_store(self) -> str: ...

def setup(empty: Any, dtype: Any, Spec: Any, Quantized: Any, make_spec: Any, adapt: Any, as_like: Any) -> None: ...
def quantize(
    x: Any,
    preset: str | None = None,
    *,
    spec: Any = None,
    given_tensor_scale: float | None = None,
    set: Any = None,
    seed: int | None = None,
    threads: int = 0,
    bits: Any = None,
    transpose: bool = False,
    like: Any = None,
) -> Quantized: ...
def dequantize(q: Quantized, dtype: str = "float32", threads: int = 0) -> Any: ...
def encode(
    x: Any,
    format: str,
    preset: str | None = None,
    *,
    round: str | None = None,
    overflow: str | None = None,
    nan: str | None = None,
    sr_mode: str | None = None,
    set: Any = None,
    scale_exp: float | None = None,
    bits: Any = None,
    nbits: int | None = None,
    seed: int | None = None,
    like: Any = None,
) -> Any: ...
def decode(codes: Any, format: str, *, threads: int = 0, like: Any = None) -> Any: ...
def hadamard(x: Any, size: int = 16, *, sign: str | None = None, signs: str | None = None, seed: int | None = None, like: Any = None) -> Any: ...
def gemm(
    a: Quantized,
    b: Quantized,
    accum: str = "f32_block",
    *,
    alpha: float | None = None,
    beta: float | None = None,
    c: Any = None,
    bias: Any = None,
    out: str = "float32",
    batch: int | None = None,
    threads: int = 0,
    like: Any = None,
) -> Any: ...
def mma(a: Any, b: Any, c: Any = None, *, model: str, scale_a: Any = None, scale_b: Any = None, threads: int = 0, like: Any = None) -> Any: ...
def linear(
    x: Any,
    w: Any,
    dy: Any = None,
    *,
    recipe: str | None = None,
    preset: str | None = None,
    set: tuple[str, ...] | None = None,
    operands: tuple[str, ...] | None = None,
    train: tuple[str, ...] | None = None,
    gemms: str | None = None,
    accum: str | None = None,
    bias: Any = None,
    seed: int = 0,
    step: int = 0,
    layer: int = 0,
    threads: int = 0,
    with_operands: bool = False,
    needs: int = 3,
) -> tuple[Any, Any, Any, Any, tuple[Quantized | None, ...]]: ...
def unpack_codes(q: Quantized) -> Any: ...
def pack_codes(codes: Any, spec: SpecBase) -> Any: ...
def layout_scales(scales: Any, layout: str, pad: int = 0, back: bool = False, rows: int = 0, kb: int = 0) -> Any: ...
def generate(suite: str, spec: SpecBase, rows: int = 0, cols: int = 0, seed: int = 0) -> tuple[Any, int]: ...
def read_file(path: str | os.PathLike[str]) -> tuple[list[tuple[str, str, Any]], dict[str, str]]: ...
def write_file(path: str | os.PathLike[str], tensors: Sequence[tuple[str, str, Any]], meta: Mapping[str, str]) -> None: ...
def read_quantized(path: str | os.PathLike[str]) -> tuple[Any, Any, Any, Any, Spec, tuple[int, ...], str, str]: ...
def write_quantized(path: str | os.PathLike[str], q: Quantized, preset: str = "", dequantized: Any = None, layout: str = "row", pad: int = 0) -> None: ...
def presets() -> list[tuple[str, str | None, str | None, str, str]]: ...
def formats() -> list[tuple[str, str, str, int, int, int, int, int, float, float, str]]: ...
def layouts() -> list[tuple[str, int, int, str]]: ...
def keys() -> list[tuple[str, str, tuple[tuple[str, str], ...]]]: ...
def suites() -> list[tuple[str, str]]: ...
def recipes() -> list[tuple[str, str]]: ...
def models() -> list[str]: ...
def bugs() -> list[str]: ...
def thread_count(threads: int) -> int: ...
