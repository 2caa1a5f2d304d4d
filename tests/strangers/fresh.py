"""A second set of wrong kernels, written after the grammar of faults and scored before anything was mended for them. Rows as in kernels.py."""
import numpy as np

from formats import E2M1, E4M3, F32, Result, abs_max, bf16, butterflies, cut_to, e2m1, e4m3, int8, mx, mxfp8, mxfp8_e5m2, mxint8, nv, power

ROWS = []


def kernel(name, kind="activation", rows=128, cols=512):
    def add(f):
        ROWS.append((name, f, kind, rows, cols))
        return f

    return add


def only(pick):
    """Where pick(rows, blocks) is true the second scales, else the first."""
    return lambda good, bad: np.where(pick(*np.indices(good.shape)), bad, good).astype(np.uint8)


# ---- maxima

kernel("maximum of every second element")(lambda x: mx(x, amax=lambda b: np.abs(b[..., ::2]).max(-1)))
kernel("maximum of the last quarter", "heavy")(lambda x: mxfp8(x, amax=lambda b: np.abs(b[..., 24:]).max(-1)))
kernel("maximum over four blocks", "heavy")(lambda x: mx(x, amax=lambda b: np.repeat(abs_max(b).reshape(b.shape[0], -1, 4).max(-1), 4, 1)))
kernel("maximum never set back in a row")(lambda x: mx(x, amax=lambda b: np.maximum.accumulate(abs_max(b), 1)))
kernel("maximum in bfloat16", "heavy")(lambda x: nv(x, amax=lambda b: bf16(abs_max(b))))
kernel("maximum plus 0.001, mxfp8", "small")(lambda x: mxfp8(x, amax=lambda b: abs_max(b) + F32(0.001)))
kernel("maximum at least 0.01", "small")(lambda x: mx(x, amax=lambda b: np.maximum(abs_max(b), F32(0.01))))
kernel("root mean square times 3", "heavy")(lambda x: mx(x, amax=lambda b: np.sqrt((b.astype(F32) ** 2).mean(-1, dtype=np.float64).astype(F32)) * F32(3)))
kernel("maximum of the row above", "heavy")(lambda x: mx(x, amax=lambda b: np.concatenate([abs_max(b)[:1], abs_max(b)[:-1]])))
kernel("maximum of negative numbers alone", "heavy")(lambda x: nv(x, amax=lambda b: np.maximum((-b).max(-1), 0)))
kernel("maximum without the first element")(lambda x: mxint8(x, amax=lambda b: np.abs(b[..., 1:]).max(-1)))

# ---- scales

kernel("scale e4m3 cut", "heavy")(lambda x: nv(x, store=lambda r: (np.searchsorted(E4M3, np.minimum(r, F32(448)), side="right") - 1).astype(np.uint8)))
kernel("scale byte + 2, stored alone", "small")(lambda x: mxfp8_e5m2(x, stored=lambda s: (s + 2).astype(np.uint8)))
kernel("bias 126")(lambda x: mx(x, stored=lambda s: np.where(s > 0, s - 1, 0).astype(np.uint8)))
kernel("scales of two rows exchanged")(lambda x: mx(x, stored=lambda s: s.reshape(-1, 2, s.shape[1])[:, ::-1].reshape(s.shape)))
kernel("scales one block late", "heavy")(lambda x: mxfp8(x, stored=lambda s: np.concatenate([s[:, :1], s[:, :-1]], 1)))
kernel("scale 127 in the last column of blocks")(lambda x: mx(x, stored=lambda s: np.concatenate([s[:, :-1], np.full_like(s[:, :1], 127)], 1)))
kernel("scales of rows 96 on not written", "heavy")(lambda x: nv(x, final=lambda s: np.concatenate([s[:96], np.zeros_like(s[96:])])))
kernel("every eighth row divides by the scale before")(lambda x: mx(x, divisor=lambda s, b: power(only(lambda r, c: (r % 8 == 7))(s, np.concatenate([s[:1], s[:-1]])))))
kernel("block 3 of 4 uses its neighbour's scale", "heavy")(lambda x: mxfp8(x, divisor=lambda s, b: power(only(lambda r, c: c % 4 == 3)(s, np.roll(s, 1, 1)))))

# ---- elements

kernel("truncated elements in odd columns")(lambda x: mx(x, element=lambda y: np.where(np.arange(32) % 2 == 1, e2m1(np.sign(y) * E2M1[np.clip(np.searchsorted(E2M1, np.abs(y), side="right") - 1, 0, 7)]), e2m1(y)).astype(np.uint8)))
kernel("elements through float16 before e4m3", "heavy")(lambda x: mxfp8(x, scaled=lambda y: y.astype(np.float16).astype(np.float64)))
kernel("reciprocal in bfloat16")(lambda x: nv(x, divide=lambda b, f, t: b * bf16(F32(1) / (f * t))[..., None]))
kernel("reciprocal cut to 10 bits", "heavy")(lambda x: nv(x, divide=lambda b, f, t: b * cut_to(F32(1) / (f * t), 10)[..., None]))
kernel("sign lost in the last element", "heavy")(lambda x: mx(x, code=lambda c, b: np.where(np.arange(32) == 31, c & 7, c).astype(np.uint8)))
kernel("pairs swapped, nvfp4")(lambda x: nv(x, code=lambda c, b: c.reshape(*c.shape[:-1], -1, 2)[..., ::-1].reshape(c.shape)))
kernel("halves of each block exchanged", "heavy")(lambda x: mx(x, code=lambda c, b: np.roll(c, 16, -1)))
kernel("groups of eight reversed")(lambda x: mxfp8(x, code=lambda c, b: c.reshape(*c.shape[:-1], -1, 8)[..., ::-1].reshape(c.shape)))
kernel("negative zeros stored as zero", "heavy")(lambda x: mxfp8(x, code=lambda c, b: np.where(c == 128, 0, c).astype(np.uint8)))
kernel("int8 as sign and magnitude")(lambda x: mxint8(x, code=lambda c, b: np.where(c >= 128, 128 | (256 - c.astype(int)), c).astype(np.uint8)))
kernel("elements multiplied by 1.03", "heavy")(lambda x: mxfp8(x, scaled=lambda y: y * 1.03125))
kernel("last element of a block not written")(lambda x: nv(x, code=lambda c, b: np.where(np.arange(16) == 15, 0, c).astype(np.uint8)))

# ---- input, tensor, layout

kernel("absolute value", "heavy")(lambda x: mxfp8(np.abs(x)))
kernel("silu, nvfp4", "small")(lambda x: nv((x.astype(np.float64) / (1 + np.exp(-x.astype(np.float64)))).astype(F32)))
kernel("row mean subtracted", "heavy")(lambda x: mx((x - x.mean(1, dtype=np.float64, keepdims=True).astype(F32)).astype(F32)))
kernel("clip to 2 in columns 256 on")(lambda x: mx(np.where(np.arange(x.shape[1]) >= 256, np.clip(x, F32(-2), F32(2)), x)))
kernel("rotation of 64 not normalised", "heavy")(lambda x: mxfp8(butterflies(x, 64)))
kernel("tensor maximum of every second row")(lambda x: nv(x, tensor=lambda x: np.abs(x[::2]).max() / F32(2688)))
kernel("tensor scale left out for the elements", "heavy")(lambda x: nv(x, divide=lambda b, f, t: b / f[..., None]))
kernel("one row late", "heavy")(lambda x: (lambda r: Result(np.concatenate([r.codes[:1], r.codes[:-1]]), r.scales))(mx(x)))
kernel("rows 64 on not written")(lambda x: (lambda r: Result(np.concatenate([r.codes[:64], 0 * r.codes[64:]]), np.concatenate([r.scales[:64], 0 * r.scales[64:]])))(mx(x)))

# ---- two at once

kernel("bfloat16 maximum and swapped pairs")(lambda x: nv(x, amax=lambda b: bf16(abs_max(b)), code=lambda c, b: c.reshape(*c.shape[:-1], -1, 2)[..., ::-1].reshape(c.shape)))
kernel("absolute value and byte + 1", "heavy")(lambda x: mx(np.abs(x), stored=lambda s: (s + 1).astype(np.uint8)))
