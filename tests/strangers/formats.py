"""What the strangers' kernels are made of: encoders in numpy, and right kernels with a place for a mistake at each stage.

Nothing here knows the library. Every kernel takes x, float32 [rows][cols], and gives a Result.
"""
from dataclasses import dataclass, field

import numpy as np

F32 = np.float32
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], F32)


@dataclass
class Result:
    """Codes [rows][cols], one a byte; scales uint8 [rows][blocks]; the tensor scale, a number, an array or None."""

    codes: np.ndarray
    scales: np.ndarray
    tensor_scale: object = None
    bits: int = 4
    packed: bool = True
    extra: dict = field(default_factory=dict)


def float_table(exponent_bits, mantissa_bits, bias, last):
    """Values of the codes 0 to last of an unsigned small float."""
    codes = np.arange(last + 1)
    e, m = codes >> mantissa_bits, codes & ((1 << mantissa_bits) - 1)
    step = 2.0 ** -mantissa_bits
    return np.where(e == 0, m * step * 2.0 ** (1 - bias), (1 + m * step) * 2.0 ** (e - bias))


E4M3 = float_table(4, 3, 7, 126)
E5M2 = float_table(5, 2, 15, 123)
UE5M3 = float_table(5, 3, 15, 254)


def nearest(table, v):
    """Code of the nearest value, ties to the even code, saturating; v >= 0."""
    v = np.asarray(v, np.float64)
    hi = np.clip(np.searchsorted(table, v), 1, len(table) - 1)
    lo = hi - 1
    below, above = v - table[lo], table[hi] - v
    up = (above < below) | ((above == below) & (hi % 2 == 0))
    return np.where(up, hi, lo).astype(np.int64)


def encode(table, y, sign_bit):
    """Sign and magnitude."""
    return (nearest(table, np.abs(y)) | np.where(np.signbit(y), sign_bit, 0)).astype(np.uint8)


def e2m1(y):
    return encode(E2M1.astype(np.float64), y, 8)


def e4m3(y):
    return encode(E4M3, y, 128)


def e5m2(y):
    return encode(E5M2, y, 128)


def int8(y):
    """OCP MXINT8: two's complement in steps of 1/64, -128 not used."""
    return np.clip(np.rint(np.asarray(y, np.float64) * 64), -127, 127).astype(np.int8).view(np.uint8)


def bf16(x):
    u = np.ascontiguousarray(x, F32).view(np.uint32).astype(np.uint64)
    return (((u + 0x7FFF + ((u >> np.uint64(16)) & np.uint64(1))) & np.uint64(0xFFFF0000)).astype(np.uint32)).view(F32).reshape(np.shape(x))


def cut_to(x, bits):
    """x with so many bits of mantissa behind the point, toward zero."""
    u = np.ascontiguousarray(x, F32).view(np.uint32)
    return (u & np.uint32(0xFFFFFFFF << (23 - bits) & 0xFFFFFFFF)).view(F32).reshape(np.shape(x))


def in_blocks(x, width):
    """[rows][blocks][width], a short last block filled with zeros."""
    rows, cols = x.shape
    pad = -cols % width
    return np.pad(x, ((0, 0), (0, pad))).reshape(rows, -1, width)


def as_rows(codes, cols):
    return codes.reshape(codes.shape[0], -1)[:, :cols]


def abs_max(b):
    return np.abs(b).max(-1)


def floor_byte(amax, emax):
    """OCP: floor(log2(amax)) - emax with the bias, byte 0 for a block of zeros."""
    _, e = np.frexp(amax)
    byte = e.astype(np.int64) - 1 - emax + 127
    return np.where(amax > 0, np.clip(byte, 0, 254), 0).astype(np.uint8)


def power(byte):
    return np.ldexp(np.float64(1), byte.astype(np.int64) - 127)


def mx(x, element=e2m1, emax=2, bits=4, width=32, amax=abs_max, byte=None, divisor=None, scaled=None, code=None, stored=None):
    """Power-of-two block scales; each argument takes the place of a stage."""
    b = in_blocks(x, width)
    s = (byte or (lambda a: floor_byte(a, emax)))(amax(b))
    d = power(s) if divisor is None else divisor(s, b)
    y = b.astype(np.float64) / d[..., None]
    if scaled:
        y = scaled(y)
    c = element(y)
    if code:
        c = code(c, b)
    if stored:
        s = stored(s)
    return Result(as_rows(c, x.shape[1]), s, bits=bits)


def mxfp8(x, **k):
    return mx(x, **{"element": e4m3, "emax": 8, "bits": 8, **k})


def mxfp8_e5m2(x, **k):
    return mx(x, **{"element": e5m2, "emax": 15, "bits": 8, **k})


def mxint8(x, **k):
    return mx(x, **{"element": int8, "emax": 0, "bits": 8, **k})


def nv(x, amax=abs_max, tensor=None, stored_tensor=None, ratio=None, store=None, read=None, divide=None, scaled=None, element=e2m1, code=None,
       final=None, largest=F32(6), largest_scale=F32(448)):
    """NVFP4: binary32 throughout, T = max|x| / (448 * 6), s = e4m3(amax / 6 / T), q = e2m1(x / (s * T))."""
    b = in_blocks(x, 16)
    t = np.abs(x).max() / F32(largest_scale * largest) if tensor is None else tensor(x)
    a = amax(b)
    r = (ratio or (lambda a, t: a / largest / t))(a, t)
    s = (store or (lambda r: nearest(E4M3, np.minimum(r, F32(448))).astype(np.uint8)))(r)
    f = (read or (lambda s: E4M3[s].astype(F32)))(s)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        y = b / (f * t)[..., None] if divide is None else divide(b, f, t)
    y = np.nan_to_num(y, nan=0.0, posinf=1e30, neginf=-1e30)
    if scaled:
        y = scaled(y)
    c = element(y)
    if code:
        c = code(c, b)
    if final:
        s = final(s)
    return Result(as_rows(c, x.shape[1]), s, tensor_scale=F32(t) if stored_tensor is None else stored_tensor(t))


def hadamard(n):
    h = np.ones((1, 1))
    while len(h) < n:
        h = np.block([[h, h], [h, -h]])
    return h


def butterflies(x, n):
    """Rows in tiles of n, each addition rounded to binary32, without the factor."""
    t = x.reshape(-1, n).astype(F32)
    h = 1
    while h < n:
        t = t.reshape(-1, n // (2 * h), 2, h)
        t = np.stack([t[:, :, 0] + t[:, :, 1], t[:, :, 0] - t[:, :, 1]], 2)
        h *= 2
    return t.reshape(x.shape)


def rotate(x, n):
    return butterflies(x, n) * F32(1 / np.sqrt(n))
