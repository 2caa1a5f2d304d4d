"""Wrong kernels, one cause each or two, written from a list of causes that users had asked about and without sight of what identify knows.

A row is (name, function of x, kind of input, rows, cols). A name says what is wrong.
"""
import numpy as np

from formats import (E2M1, E4M3, E5M2, F32, UE5M3, Result, abs_max, bf16, butterflies, cut_to, e2m1, e4m3, encode, floor_byte, in_blocks, int8,
                     mx, mxfp8, mxfp8_e5m2, mxint8, nearest, nv, power, rotate)

ROWS = []


def kernel(name, kind="activation", rows=128, cols=512):
    def add(f):
        ROWS.append((name, f, kind, rows, cols))
        return f

    return add


def row_of(codes_like):
    return np.arange(codes_like.shape[0])


# ---- the tensor scale

kernel("tensor scale inverted for the elements")(lambda x: nv(x, divide=lambda b, f, t: b / (f / t)[..., None]))
kernel("tensor scale inverted, stored and used", "heavy")(lambda x: nv(x, tensor=lambda x: F32(448 * 6) / np.abs(x).max(), ratio=lambda a, t: a / F32(6) * t,
                                                                divide=lambda b, f, t: b / (f / t)[..., None]))
kernel("448 and 6 swapped")(lambda x: nv(x, largest=F32(448), largest_scale=F32(6)))
kernel("448 alone for the tensor scale", "heavy")(lambda x: nv(x, tensor=lambda x: np.abs(x).max() / F32(448)))
kernel("one tensor scale a row")(lambda x: nv(x, tensor=lambda x: (np.abs(x).max(1) / F32(2688))[:, None],
                                              divide=lambda b, f, t: b / (f * t)[..., None], stored_tensor=lambda t: t[:, 0].astype(F32)))
kernel("tensor scale of another tensor", "heavy")(lambda x: nv(x, tensor=lambda x: F32(0.0123), stored_tensor=lambda t: F32(np.abs(x).max() / F32(2688))))
kernel("tensor maximum of the first 64 rows")(lambda x: nv(x, tensor=lambda x: np.abs(x[:64]).max() / F32(2688)))

# ---- the block's maximum

kernel("clip ratio 0.9")(lambda x: mx(x, amax=lambda b: abs_max(b) * F32(0.9)))
kernel("clip ratio 0.85, nvfp4", "heavy")(lambda x: nv(x, amax=lambda b: abs_max(b) * F32(0.85)))
kernel("clip ratio learned, 0.93125, nvfp4")(lambda x: nv(x, amax=lambda b: abs_max(b) * F32(0.93125)))
kernel("clip ratio 0.95, mxfp8", "heavy")(lambda x: mxfp8(x, amax=lambda b: abs_max(b) * F32(0.95)))


def with_neighbour(a):
    pairs = a.reshape(a.shape[0], -1, 2).max(-1)
    return np.repeat(pairs, 2, 1)


kernel("maximum shared by block pairs")(lambda x: mx(x, amax=lambda b: with_neighbour(abs_max(b))))
kernel("maximum shared by block pairs, nvfp4", "heavy")(lambda x: nv(x, amax=lambda b: with_neighbour(abs_max(b))))
kernel("no abs, and byte + 1")(lambda x: mx(x, amax=lambda b: np.maximum(b.max(-1), 0), stored=lambda s: (s + 1).astype(np.uint8)))
kernel("no abs, nvfp4", "heavy")(lambda x: nv(x, amax=lambda b: np.maximum(b.max(-1), 0)))
kernel("second largest", "heavy")(lambda x: mx(x, amax=lambda b: np.sort(np.abs(b), -1)[..., -2]))
kernel("second largest, nvfp4")(lambda x: nv(x, amax=lambda b: np.sort(np.abs(b), -1)[..., -2]))
kernel("percentile, third largest of 32")(lambda x: mx(x, amax=lambda b: np.sort(np.abs(b), -1)[..., -3]))
kernel("percentile 99, interpolated", "heavy")(lambda x: mx(x, amax=lambda b: np.percentile(np.abs(b), 99, axis=-1).astype(F32)))
kernel("percentile 90, nvfp4", "heavy")(lambda x: nv(x, amax=lambda b: np.sort(np.abs(b), -1)[..., 13]))
kernel("mean of magnitudes times 3", "heavy")(lambda x: mx(x, amax=lambda b: (np.abs(b).mean(-1) * 3).astype(F32)))
kernel("maximum of the first half", "small")(lambda x: mxfp8(x, amax=lambda b: np.abs(b[..., :16]).max(-1)))


def garbage_tail(x):
    """The last, short block finds what the buffer held: the row before."""
    b = in_blocks(x, 32)
    a = abs_max(b)
    a[:, -1] = np.maximum(a[:, -1], F32(100))
    return mx(x, amax=lambda b: a)


kernel("tail maximum over garbage", cols=500)(garbage_tail)


def ones_tail(x):
    pad = -x.shape[1] % 32
    a = abs_max(np.pad(x, ((0, 0), (0, pad)), constant_values=1).reshape(x.shape[0], -1, 32))
    return mx(x, amax=lambda b: a)


kernel("tail filled with ones", "small", cols=500)(ones_tail)
kernel("tail filled with ones, nvfp4", cols=504, kind="small")(
    lambda x: nv(x, amax=lambda b: abs_max(np.pad(x, ((0, 0), (0, -x.shape[1] % 16)), constant_values=1).reshape(b.shape))))

# ---- the scale


def reciprocal(bits):
    return lambda b, f, t: b * cut_to(F32(1) / (f * t), bits)[..., None]


kernel("reciprocal cut to 11 bits")(lambda x: nv(x, divide=reciprocal(11)))
kernel("reciprocal cut to 8 bits", "heavy")(lambda x: nv(x, divide=reciprocal(8)))


def log2_rounded(emax):
    def byte(a):
        with np.errstate(divide="ignore"):
            e = np.rint(np.log2(a.astype(np.float64) / 2.0 ** emax))
        return np.where(a > 0, np.clip(e + 127, 0, 254), 0).astype(np.uint8)

    return byte


kernel("log2 rounded")(lambda x: mx(x, byte=log2_rounded(np.log2(6))))
kernel("log2 rounded, mxfp8", "heavy")(lambda x: mxfp8(x, byte=log2_rounded(np.log2(448))))
kernel("mxfp8 with emax 7", "heavy")(lambda x: mxfp8(x, emax=7))
kernel("mxfp4 with emax 3")(lambda x: mx(x, emax=3))
kernel("mxfp8 e5m2 with emax 14", "small")(lambda x: mxfp8_e5m2(x, emax=14))


def flushed(r):
    c = nearest(E4M3, np.minimum(r, F32(448)))
    return np.where(c < 8, 0, c).astype(np.uint8)


def tensor_of(x):
    return np.abs(x).max() / F32(2688)


kernel("subnormal e4m3 scales flushed", "wide")(lambda x: nv(x, store=flushed))
kernel("subnormal e4m3 scales read as 0", "wide")(lambda x: nv(x, read=lambda s: np.where(s < 8, F32(0), E4M3[s].astype(F32))))
kernel("ue5m3 byte read as e4m3")(lambda x: nv(x, tensor=lambda x: F32(1), stored_tensor=lambda t: None,
                                               store=lambda r: nearest(UE5M3, r).astype(np.uint8),
                                               read=lambda s: E4M3[np.minimum(s & 127, 126)].astype(F32)))
kernel("e4m3 byte read as ue5m3", "heavy")(lambda x: nv(x, read=lambda s: UE5M3[s].astype(F32)))


def byte_plus_from(k):
    return lambda s: np.where(s >= k, np.minimum(s.astype(int) + 1, 254), s).astype(np.uint8)


kernel("byte + 1 from byte 127 on")(lambda x: mx(x, stored=byte_plus_from(127)))
kernel("byte + 1 from byte 126 on, used too", "heavy")(lambda x: mx(x, byte=lambda a: byte_plus_from(126)(floor_byte(a, 2))))
kernel("byte - 1 below byte 125, mxfp8", "small")(lambda x: mxfp8(x, stored=lambda s: np.where(s < 112, s - (s > 0), s).astype(np.uint8)))


def stale_last_row(s):
    s = s.copy()
    last = row_of(s)[31::32]
    s[last] = s[last - 1]
    return s


kernel("stale scale in the last row of each warp")(lambda x: mx(x, stored=stale_last_row))
kernel("stale scale in the last row of each warp, nvfp4", "heavy")(lambda x: nv(x, final=stale_last_row))


def stale_rows(x):
    """The first four rows of each tile of 64 hold those of the tile before."""
    r = mx(x)
    rows = row_of(r.codes)
    stale = rows[(rows >= 64) & (rows % 64 < 4)]
    codes, scales = r.codes.copy(), r.scales.copy()
    codes[stale], scales[stale] = r.codes[stale - 64], r.scales[stale - 64]
    return Result(codes, scales)


kernel("stale rows of the tile before", rows=256)(stale_rows)


def zero_keeps(x, f, width):
    b = in_blocks(x, width)
    r = f(x)
    s = r.scales.copy()
    zero = abs_max(b) == 0
    for k in range(1, s.shape[1]):
        s[:, k] = np.where(zero[:, k], s[:, k - 1], s[:, k])
    return Result(r.codes, s, r.tensor_scale, r.bits)


kernel("zero blocks keep the scale before", "silent")(lambda x: zero_keeps(x, mx, 32))
kernel("zero blocks keep the scale before, mxfp8", "silent")(lambda x: zero_keeps(x, mxfp8, 32))

# ---- elements

kernel("clamp before the division")(lambda x: nv(np.clip(x, F32(-6), F32(6))))
kernel("clamp to 448 before the division, mxfp8", "heavy")(lambda x: mxfp8(np.clip(x, F32(-4), F32(4))))


@kernel("elements clamped to 6 before the division alone", "heavy")
def elements_clamped(x):
    s = mx(x).scales
    b = np.clip(in_blocks(x, 32), F32(-6), F32(6))
    return Result(as_cols(e2m1(b / power(s)[..., None]), x), s)


def as_cols(c, x):
    return c.reshape(c.shape[0], -1)[:, : x.shape[1]]


kernel("fp8 first, then fp4")(lambda x: mx(x, scaled=lambda y: np.sign(y) * E4M3[nearest(E4M3, np.abs(y))]))
kernel("fp8 input first, then nvfp4", "heavy")(lambda x: nv((np.sign(x) * E4M3[nearest(E4M3, np.abs(x))]).astype(F32)))
kernel("fp8 first, then nvfp4", "heavy")(lambda x: nv(x, scaled=lambda y: np.sign(y) * E4M3[nearest(E4M3, np.abs(y))]))


def zeros_at_odd(c, b):
    odd = np.arange(c.shape[-1]) % 2 == 1
    return np.where((c == 8) & ~odd, 0, np.where((c == 0) & odd, 8, c)).astype(np.uint8)


kernel("-0 at odd elements only")(lambda x: mx(x, code=lambda c, b: np.where((c == 8) & (np.arange(32) % 2 == 0), 0, c).astype(np.uint8)))
kernel("+0 becomes -0 at odd elements", "heavy")(lambda x: nv(x, code=zeros_at_odd))


def neighbours_sign(c, b):
    c = c.copy()
    c[..., 0::2], c[..., 1::2] = c[..., 0::2] & 7 | c[..., 1::2] & 8, c[..., 1::2] & 7 | c[..., 0::2] & 8
    return c


kernel("sign of the neighbour")(lambda x: mx(x, code=neighbours_sign))
kernel("sign of the element before", "heavy")(lambda x: mx(x, code=lambda c, b: (c & 7 | np.roll(c, 1, -1) & 8).astype(np.uint8)))
kernel("int8 that saturates at -128")(lambda x: mxint8(x, element=lambda y: np.clip(np.rint(y * 64), -128, 127).astype(np.int8).view(np.uint8)))
kernel("int8 in steps of 1/128", "heavy")(lambda x: mxint8(x, element=lambda y: np.clip(np.rint(y * 128), -127, 127).astype(np.int8).view(np.uint8)))

# ---- rotation


def had(n, **k):
    return lambda x: mx(rotate(x, n), **k)


def signs_after(x, n=16):
    s = np.where(np.arange(n) % 3 == 0, F32(-1), F32(1))
    return mx((rotate(x, n).reshape(-1, n) * s).reshape(x.shape))


kernel("signs after the rotation")(signs_after)


def sequency(n):
    """Row of the Hadamard matrix with k changes of sign."""
    h = np.array([[1]])
    while len(h) < n:
        h = np.block([[h, h], [h, -h]])
    return np.argsort([(np.diff(r) != 0).sum() for r in h])


kernel("sequency order, 16")(lambda x: mx(rotate(x, 16).reshape(-1, 16)[:, sequency(16)].reshape(x.shape)))
kernel("sequency order, 32", "heavy")(lambda x: mx(rotate(x, 32).reshape(-1, 32)[:, sequency(32)].reshape(x.shape)))


def first_tiles(x, n=32, tiles=4):
    y = x.copy()
    y[:, : n * tiles] = rotate(np.ascontiguousarray(x[:, : n * tiles]), n)
    return mx(y)


kernel("rotation of the first tiles alone")(first_tiles)
kernel("unnormalised rotation, truncated scale")(lambda x: nv(butterflies(x, 16), store=lambda r: (
    np.searchsorted(E4M3, np.minimum(r, F32(448)), side="right") - 1).astype(np.uint8)))
kernel("unnormalised rotation", "heavy")(lambda x: mx(butterflies(x, 32)))

# ---- the input


def minus_mean(x, width):
    b = in_blocks(x, width)
    return (b - b.mean(-1, dtype=F32, keepdims=True)).astype(F32).reshape(x.shape)


kernel("block mean subtracted")(lambda x: mx(minus_mean(x, 32)))
kernel("block mean subtracted, nvfp4", "heavy")(lambda x: nv(minus_mean(x, 16)))
kernel("relu")(lambda x: mx(np.maximum(x, F32(0))))
kernel("relu, nvfp4", "heavy")(lambda x: nv(np.maximum(x, F32(0))))
kernel("clip to 3", "heavy")(lambda x: mxfp8(np.clip(x, F32(-3), F32(3))))
kernel("float16 with overflow", "heavy")(lambda x: mx(np.where(np.abs(x) > 8, x, x).astype(np.float16).astype(F32)))
kernel("float16, nvfp4", "small")(lambda x: nv(x.astype(np.float16).astype(F32)))
kernel("bfloat16, mxfp8", "heavy")(lambda x: mxfp8(bf16(x)))

# ---- four over six


def four_six(x, larger):
    t = tensor_of(x)
    b = in_blocks(x, 16)
    a = abs_max(b)
    out = []
    for m in (6, 4):
        s = nearest(E4M3, np.minimum(a / F32(m) / t, F32(448)))
        d = np.maximum(E4M3[s].astype(F32) * t, F32(1e-30))[..., None]
        c = e2m1(b / d)
        v = np.where(c & 8, -1, 1) * E2M1[c & 7] * d
        out.append((s, c, ((v - b).astype(np.float64) ** 2).sum(-1)))
    pick = out[1][2] > out[0][2] if larger else out[1][2] < out[0][2]
    return Result(as_cols(np.where(pick[..., None], out[1][1], out[0][1]), x), np.where(pick, out[1][0], out[0][0]).astype(np.uint8), F32(t))


kernel("4/6 choosing the larger error")(lambda x: four_six(x, True))

# ---- layout


def swizzle(s, rows=128):
    """128 x 4 tiles of scales."""
    r, k = s.shape
    t = s.reshape(r // 128, 4, 32, k // 4, 4)
    return np.ascontiguousarray(t.transpose(0, 3, 2, 1, 4)).reshape(s.shape)


kernel("swizzled once", rows=256, cols=1024)(lambda x: mx(x, stored=swizzle))
kernel("swizzled twice", rows=256, cols=1024)(lambda x: mx(x, stored=lambda s: swizzle(swizzle(s))))


def last_tile_plain(s):
    out = s.copy()
    tiles = swizzle(s[:-128])
    out[:-128] = tiles
    return out


kernel("last tile not swizzled", "heavy", rows=384, cols=1024)(lambda x: mx(x, stored=last_tile_plain))
kernel("transposed blocks", rows=256, cols=256)(lambda x: (lambda r: Result(np.ascontiguousarray(r.codes.T), r.scales))(mx(np.ascontiguousarray(x.T))))
kernel("two tensors' scales mixed up", "heavy")(lambda x: Result(mx(x).codes, mx(np.ascontiguousarray(x[::-1] * F32(1.7))).scales))


def race(x, share, seed=5):
    """A share of the blocks keeps zeros: which, nobody knows."""
    r = mx(x)
    rng = np.random.default_rng(int(np.abs(x).sum()) + seed)
    bad = rng.random(r.scales.shape) < share
    codes = np.where(np.repeat(bad, 32, 1), 0, r.codes).astype(np.uint8)
    return Result(codes, r.scales)


kernel("0.1 % of blocks at random")(lambda x: race(x, 0.001))
kernel("1 % of blocks at random", "heavy")(lambda x: race(x, 0.01))

# ---- two at once

kernel("relu, then second largest")(lambda x: mx(np.maximum(x, F32(0)), amax=lambda b: np.sort(np.abs(b), -1)[..., -2]))
kernel("clip ratio 0.9 and the sign of the neighbour")(lambda x: mx(x, amax=lambda b: abs_max(b) * F32(0.9), code=neighbours_sign))
kernel("byte + 1 and a stale last row", "heavy")(lambda x: mx(x, byte=lambda a: byte_plus_from(0)(floor_byte(a, 2)), stored=stale_last_row))

# ---- right

kernel("right, mxfp4")(mx)
kernel("right, mxfp8", "heavy")(mxfp8)
kernel("right, nvfp4")(nv)
kernel("right, mxint8", "small")(mxint8)
