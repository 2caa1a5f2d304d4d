"""Gives the library's tables as plain records: presets, formats, layouts, keys, suites, recipes, models, bugs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import _core
from ._arrays import stated_dtype
from ._errors import DtypeError, SpecError
from ._spec import Spec

# Names of dtypes of ml_dtypes, PyTorch and JAX by the format whose codes they are.
_DTYPES = {
    "e2m1": "float4_e2m1fn",
    "e2m3": "float6_e2m3fn",
    "e3m2": "float6_e3m2fn",
    "e4m3": "float8_e4m3fn",
    "e5m2": "float8_e5m2",
    "e8m0": "float8_e8m0fnu",
    "bf16": "bfloat16",
    "e4m3fnuz": "float8_e4m3fnuz",
    "e5m2fnuz": "float8_e5m2fnuz",
}


def hold_dtype(dtype: str, format: str, argument: str, packed: bool = False) -> None:
    """Refuse codes whose dtype says that they are of another format: float8_e5m2 where e4m3 is expected. Bytes and integers are codes of any format.

    packed: two codes may share a byte, as in PyTorch's float4_e2m1fn_x2.
    """
    if not dtype.startswith(("float8", "float6", "float4")):
        return
    wanted = _DTYPES.get(format)
    if wanted is None or dtype not in (wanted, f"{wanted}_x2" if packed else wanted):
        found = DtypeError(f"{argument}: dtype {dtype}, expected {f'{wanted} or ' if wanted else ''}uint8 for codes of {format}")
        found.argument = argument
        raise found


def hold_dtypes(spec: Spec, codes: Any, scales: Any) -> None:
    """Refuse arrays whose own dtype says that they are codes or scales of another format than the spec's."""
    for value, key, name in ((codes, "elem", "codes"), (scales, "scale", "scales")):
        dtype = stated_dtype(value)
        if dtype.startswith("float"):
            hold_dtype(dtype, str(spec[key]), name, packed=name == "codes")


@dataclass(frozen=True)
class Preset:
    """A named spec. keys: what differs from plain OCP MXFP4; status: 'run' (held to a library's bytes), 'standard' or 'read' (from its source)."""

    name: str
    keys: str
    alias_of: str | None
    status: str
    source: str

    @property
    def spec(self) -> Spec:
        return Spec(self.name)


@dataclass(frozen=True)
class Format:
    """A number format. table: 'elements', 'scales' or 'operands'; largest and smallest: finite and positive."""

    name: str
    table: str
    kind: str
    bits: int
    sign_bits: int
    exp_bits: int
    man_bits: int
    bias: int
    largest: float
    smallest: float
    source: str

    @property
    def dtype(self) -> Any:
        """ml_dtypes' dtype of these numbers, or NumPy's; None where neither has one, or ml_dtypes is not installed."""
        import numpy as np

        if self.name in ("f32", "f16", "f64"):
            return np.dtype({"f32": "float32", "f16": "float16", "f64": "float64"}[self.name])
        try:
            import ml_dtypes
        except ImportError:
            return None
        found = getattr(ml_dtypes, _DTYPES.get(self.name, ""), None)
        return None if found is None else np.dtype(found)

    def values(self) -> Any:
        """The value of each code, float32 [2^bits]; formats of up to 16 bits."""
        import numpy as np

        codes = np.arange(1 << self.bits, dtype=np.uint8 if self.bits <= 8 else np.uint16)
        return _core.decode(codes, self.name)


@dataclass(frozen=True)
class Layout:
    """An order of scales in memory; extents are padded to multiples of row_pad and k_pad."""

    name: str
    row_pad: int
    k_pad: int
    source: str


def _resolve(row: tuple[str, str | None, str | None, str, str], keys: dict[str, str | None]) -> Preset:
    name, own, alias, status, source = row
    return Preset(name, own or keys.get(alias or "", "") or "", alias, status, source)


def presets() -> dict[str, Preset]:
    """All presets by name, in the order of the tables.

    >>> presets()["te-nvfp4"].spec.scale
    'e4m3'
    """
    rows = _core.presets()
    keys = {row[0]: row[1] for row in rows}
    return {row[0]: _resolve(row, keys) for row in rows}


def formats() -> dict[str, Format]:
    """Element formats, scale formats and operand types by name; of two rows of one name the element, if it has codes.

    >>> formats()["e2m1"].largest
    6.0
    """
    out: dict[str, Format] = {}
    for row in _core.formats():
        if row[0] not in out or out[row[0]].kind == "none":
            out[row[0]] = Format(*row)
    return out


def layouts() -> dict[str, Layout]:
    """Layouts of scales by name.

    >>> "nv128x4" in layouts()
    True
    """
    return {row[0]: Layout(*row) for row in _core.layouts()}


def suites() -> dict[str, str]:
    """Suites of gen(), with what each shows."""
    return dict(_core.suites())


def recipes() -> dict[str, str]:
    """Recipes of linear(), with their sources."""
    return dict(_core.recipes())


def models() -> list[str]:
    """Names of accumulation models and matrix units, for gemm(accum=) and mma(model=)."""
    return list(dict.fromkeys(_core.models()))  # three names are models of the product and of a unit


def bugs() -> list[str]:
    """Names of the known bugs, which Identity.bug["name"] can be and allow= takes.

    >>> "sign lost" in bugs()
    True
    """
    return list(dict.fromkeys(_core.bugs()))


def keys() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Keys of a spec: name -> (meaning, choices); the choices of a number are empty."""
    return {name: (doc, tuple(choice for choice, _ in choices)) for name, doc, choices in _core.keys()}


def preset_names() -> list[str]:
    """Names of the presets that are no aliases."""
    return [row[0] for row in _core.presets() if row[2] is None]


def check_preset(name: str) -> str:
    """The name, if there is such a preset or alias; SpecError with the nearest names if not."""
    if not isinstance(name, str):
        raise SpecError(f"preset: expected a name, not {type(name).__name__}")
    Spec(name)
    return name
