"""Forty wrong kernels, written by someone who does not know the tool's list of causes.

Every function takes x, float32 [rows][cols], and gives a formats.Result. Those whose docstring begins with "Two mistakes" have two.
"""
import numpy as np

import formats as F

F32 = np.float32
FNUZ = F.float_table(4, 3, 8, 127)  # AMD's older E4M3: bias 8, largest value 240, byte 128 is NaN
E2M1 = F.E2M1.astype(np.float64)


def below(table, v):
    """Code of the value at or below v, saturating; v >= 0."""
    return np.clip(np.searchsorted(table, np.asarray(v, np.float64), side="right") - 1, 0, len(table) - 1).astype(np.int64)


def signed(magnitude, y, sign_bit=8):
    return (magnitude | np.where(np.signbit(y), sign_bit, 0)).astype(np.uint8)


def store_e4m3(r):
    return F.nearest(F.E4M3, np.minimum(r, F32(448))).astype(np.uint8)


# NVFP4


def nvfp4_divides_by_unrounded_scale(x):
    """Elements are divided by the binary32 block scale before its conversion to E4M3, not by the E4M3 scale that is stored."""
    kept = {}

    def store(r):
        kept["r"] = r
        return store_e4m3(r)

    return F.nv(x, store=store, read=lambda s: np.minimum(kept["r"], F32(448)))


def nvfp4_tensor_max_of_last_grid_tile(x):
    """Each thread block overwrites the global maximum instead of using atomicMax, so T comes from the last 4 rows only."""
    return F.nv(x, tensor=lambda x: np.abs(x[-4:]).max() / F32(448 * 6))


def nvfp4_tensor_scale_in_bfloat16(x):
    """T is passed to the kernel as bfloat16 and used so, while the host stores the binary32 T with the tensor."""
    t = F32(np.abs(x).max() / F32(448 * 6))
    return F.nv(x, tensor=lambda x: F32(F.bf16(np.array([t]))[0]), stored_tensor=lambda _: t)


def nvfp4_scale_without_subnormals(x):
    """The software conversion of block scales to E4M3 clamps the exponent at 1 and so turns each non-zero subnormal scale into 2^-6."""

    def store(r):
        return store_e4m3(np.where(r > 0, np.maximum(r, F32(2.0**-6)), r))

    return F.nv(x, store=store)


def nvfp4_shuffle_without_last_step(x):
    """The butterfly reduction leaves out the xor with 1: even and odd lanes each use a maximum of their own, and lane 0 stores the even one."""

    def divide(b, f, t):
        odd = F.E4M3[store_e4m3(np.abs(b)[..., 1::2].max(-1) / F32(6) / t)].astype(F32)
        y = b.copy()
        y[..., ::2] /= (f * t)[..., None]
        y[..., 1::2] /= (odd * t)[..., None]
        return y

    return F.nv(x, amax=lambda b: np.abs(b)[..., ::2].max(-1), divide=divide)


def nvfp4_scales_left_swizzled(x):
    """Scales are stored in the 128 x 4 tiled order of tensor cores where rows in order were asked for."""

    def final(s):
        rows, blocks = s.shape  # a multiple of 128 and of 4
        t = s.reshape(rows // 128, 4, 32, blocks // 4, 4).transpose(0, 3, 2, 1, 4)
        return np.ascontiguousarray(t).reshape(rows, blocks)

    return F.nv(x, final=final)


def nvfp4_words_stored_big_endian(x):
    """Eight codes are packed into a 32-bit word that is stored with its bytes reversed, so that pairs of codes stand in reverse order."""
    return F.nv(x, code=lambda c, b: c.reshape(*c.shape[:2], 2, 4, 2)[..., ::-1, :].reshape(c.shape))


def nvfp4_threshold_2_25(x):
    """In the ladder of comparisons the threshold between 2 and 3 is typed as 2.25 instead of 2.5."""

    def element(y):
        a = np.abs(y)
        return np.where((a >= 2.25) & (a <= 2.5), signed(5, y), F.e2m1(y)).astype(np.uint8)

    return F.nv(x, element=element)


def nvfp4_zero_block_stores_stale_scale(x):
    """A block of zeros leaves early, before the scale's register is written, and stores the scale of the block before it in the row."""

    def store(r):
        s = store_e4m3(r)
        for k in range(1, s.shape[1]):
            s[:, k] = np.where(r[:, k] == 0, s[:, k - 1], s[:, k])
        return s

    return F.nv(x, store=store)


def nvfp4_reciprocal_in_half(x):
    """Elements are multiplied by 1 / (s T) kept in a binary16 register, which has 11 bits and overflows for small scales."""

    def divide(b, f, t):
        return b * (F32(1) / (f * t)).astype(np.float16).astype(F32)[..., None]

    return F.nv(x, divide=divide)


def nvfp4_fnuz_scales_and_240(x):
    """Two mistakes: block scales are encoded and read as E4M3 FNUZ (bias 8), and T is computed with 240 instead of 448."""
    return F.nv(x, largest_scale=F32(240), store=lambda r: F.nearest(FNUZ, np.minimum(r, F32(240))).astype(np.uint8),
                read=lambda s: FNUZ[s].astype(F32))


def nvfp4_async_copy_not_waited_for(x):
    """In some tiles of 64 columns (a race) the maximum reads the last four columns before the copy lands: the tile two before is still there."""

    def amax(b):
        rows, blocks, _ = b.shape
        seen = b.copy()
        for tile in range(2, blocks // 4):
            late = (np.arange(rows) * 7 + tile * 13) % 5 < 2
            seen[late, tile * 4 + 3, 12:] = b[late, tile * 4 - 5, 12:]
        return np.abs(seen).max(-1)

    return F.nv(x, amax=amax)


def nvfp4_max_of_15_and_no_negative_zero(x):
    """Two mistakes: the loop for the maximum stops one lane early, and a negative number that rounds to zero gets code 0 instead of 8."""
    return F.nv(x, amax=lambda b: np.abs(b[..., :15]).max(-1), code=lambda c, b: np.where(c == 8, 0, c).astype(np.uint8))


def nvfp4_tensor_scale_of_row_and_truncated_scale(x):
    """Two mistakes: each row uses a T from its own maximum (the largest is stored), and block scales are cut to E4M3, not rounded."""

    def tensor(x):
        t = np.abs(x).max(1, keepdims=True) / F32(448 * 6)
        return np.where(t > 0, t, F32(1)).astype(F32)

    return F.nv(x, tensor=tensor, store=lambda r: below(F.E4M3, np.minimum(r, F32(448))).astype(np.uint8), stored_tensor=lambda t: F32(t.max()))


# MXFP4


def mxfp4_sticky_of_low_half_word(x):
    """The sticky bit of a normal E2M1 number is the OR of the low 16 bits of the mantissa only, so bits 16 to 20 are lost."""

    def element(y):
        a = np.abs(y).astype(F32)
        u = a.view(np.uint32)
        q = below(E2M1, a)
        up = (u >> 21 & 1).astype(bool) & (((u & 0xFFFF) != 0) | (q & 1).astype(bool))
        return np.where(a >= 1, signed(np.minimum(q + up, 7), y), F.e2m1(y)).astype(np.uint8)

    return F.mx(x, element=element)


def mxfp4_subnormals_rounded_twice(x):
    """Numbers below 1 are first rounded to one bit of mantissa in their own binade and then again to a multiple of 0.5."""

    def scaled(y):
        m, e = np.frexp(y)
        return np.where(np.abs(y) < 1, np.ldexp(np.rint(m * 4) / 4, e), y)

    return F.mx(x, scaled=scaled)


def mxfp4_max_of_one_dpp_row(x):
    """The maximum is reduced within a DPP row of 16 lanes only and broadcast from lane 0: lanes 16 to 31 of a block are not in it."""
    return F.mx(x, amax=lambda b: np.abs(b[..., :16]).max(-1))


def mxfp4_tail_tile_keeps_scales(x):
    """In the last tile, shorter than 128 columns, the scales in shared memory are not renewed: those of the tile before are used and stored."""
    whole = x.shape[1] // 128 * 4

    def amax(b):
        a = np.abs(b).max(-1)
        a[:, whole:] = a[:, whole - 4 : a.shape[1] - 4].copy()
        return a

    return F.mx(x, amax=amax)


def mxfp4_input_through_half(x):
    """The input is loaded through a binary16 buffer, so small numbers lose bits or become zero."""
    with np.errstate(over="ignore"):
        return F.mx(np.clip(x, -65504, 65504).astype(np.float16).astype(F32))


def mxfp4_codes_in_accumulator_order(x):
    """The codes of a block are stored in a matrix instruction's register order: number 8 i + j of the block stands at place 4 j + i."""
    return F.mx(x, code=lambda c, b: c.reshape(*c.shape[:2], 4, 8).swapaxes(-1, -2).reshape(c.shape))


def mxfp4_divides_by_scale_of_previous_block(x):
    """The software pipeline is one step late: a block is divided by the scale of the block to its left but stores its own."""

    def divisor(s, b):
        return F.power(np.concatenate([s[:, :1], s[:, :-1]], 1))

    return F.mx(x, divisor=divisor)


def mxfp4_carry_into_sign(x):
    """There is no saturation after rounding: a number of 7 or more carries out of the three magnitude bits and flips the sign of a zero."""

    def element(y):
        c = F.e2m1(y).astype(np.int64)
        return np.where(np.abs(y) >= 7, (c + 1) & 15, c).astype(np.uint8)

    return F.mx(x, element=element)


def mxfp4_reciprocal_scale_stored(x):
    """The byte that is stored is that of the multiplier 1 / scale (254 - byte), not that of the scale."""
    return F.mx(x, stored=lambda s: (254 - s.astype(np.int64)).clip(0, 254).astype(np.uint8))


def mxfp4_lane_63_masked_off(x):
    """The execution mask of a wave of 64 is 2^63 - 1: lane 63 takes no part, so its number is not in the maximum and its code stays 0."""
    y = x.copy()
    y.reshape(-1)[63::64] = 0
    return F.mx(y)


def mxfp4_scales_with_padded_pitch(x):
    """Scales are written with a row pitch rounded up to a multiple of 4 blocks into an array without padding, cleared before."""

    def stored(s):
        rows, blocks = s.shape
        wide = np.zeros((rows, -(-blocks // 4) * 4), np.uint8)
        wide[:, :blocks] = s
        return wide.reshape(-1)[: rows * blocks].reshape(rows, blocks).copy()

    return F.mx(x, stored=stored)


def mxfp4_dither_left_on(x):
    """Stochastic rounding is left on with a seed that depends on the lane only: each lane of a block always has the same threshold."""
    lane = np.arange(32, dtype=np.uint32)
    u = ((lane * np.uint32(2654435761) + np.uint32(12345)) >> np.uint32(16)) / 65536.0

    def element(y):
        a = np.minimum(np.abs(y), 6)
        q = below(E2M1, a)
        top = np.minimum(q + 1, 7)
        gap = np.where(top > q, E2M1[top] - E2M1[q], 1)
        return signed(np.where((a - E2M1[q]) / gap > u, top, q), y)

    return F.mx(x, element=element)


def mxfp4_max_without_abs_and_truncation(x):
    """Two mistakes: the block maximum is that of the signed numbers (at least 0), and elements are rounded toward zero."""
    return F.mx(x, amax=lambda b: np.maximum(b.max(-1), F32(0)), element=lambda y: signed(below(E2M1, np.abs(y)), y))


def mxfp4_scale_rounded_at_1_5_and_swapped_nibbles(x):
    """Two mistakes: 0x400000 is added to the bits of the maximum before its exponent is taken, and the nibbles of each byte are swapped."""

    def byte(a):
        e = (np.ascontiguousarray(a, F32).view(np.uint32).astype(np.int64) + 0x400000) >> 23
        return np.where(a > 0, np.clip(e - 2, 0, 254), 0).astype(np.uint8)

    return F.mx(x, byte=byte, code=lambda c, b: c.reshape(*c.shape[:2], 16, 2)[..., ::-1].reshape(c.shape))


# MXFP8


def mxfp8_e4m3_converted_as_fnuz(x):
    """The older GPU's conversion instruction is used: elements are E4M3 FNUZ (bias 8, largest value 240, no negative zero)."""

    def element(y):
        c = F.encode(FNUZ, y, 128)
        return np.where(c == 128, 0, c).astype(np.uint8)

    return F.mxfp8(x, element=element)


def mxfp8_e4m3_nan_on_overflow(x):
    """The conversion does not saturate: a number above 464, which would round to 480, becomes NaN (0x7F with the sign)."""
    return F.mxfp8(x, element=lambda y: np.where(np.abs(y) > 464, signed(127, y, 128), F.e4m3(y)).astype(np.uint8))


def mxfp8_e5m2_high_byte_of_half(x):
    """The E5M2 code is the upper byte of the number converted to binary16, so its second rounding is a truncation."""

    def element(y):
        with np.errstate(over="ignore"):
            return (y.astype(np.float16).view(np.uint16) >> 8).astype(np.uint8)

    return F.mxfp8_e5m2(x, element=element)


def mxfp8_e5m2_rounded_twice_through_half(x):
    """Numbers are rounded to nearest binary16 and then to nearest E5M2: two roundings, wrong just beside a tie."""

    def scaled(y):
        return np.clip(y, -65504, 65504).astype(np.float16).astype(np.float64)

    return F.mxfp8_e5m2(x, scaled=scaled)


def mxfp8_e4m3_word_select_forgotten(x):
    """The packed conversion always writes the low half of the register: codes 2 and 3 of each four replace 0 and 1, and the high half stays 0."""

    def code(c, b):
        q = c.reshape(*c.shape[:2], 8, 4)
        return np.concatenate([q[..., 2:], np.zeros_like(q[..., 2:])], -1).reshape(c.shape)

    return F.mxfp8(x, code=code)


def mxfp8_e4m3_max_of_transposed_tile(x):
    """The indices of the 32 x 32 tile in shared memory are exchanged in the reduction: row i gets the maximum of the tile's column i."""

    def amax(b):
        rows, blocks, _ = b.shape
        t = np.abs(b).reshape(rows // 32, 32, blocks, 32)
        return t.max(1).swapaxes(1, 2).reshape(rows, blocks)

    return F.mxfp8(x, amax=amax)


def mxfp8_e5m2_emax_16(x):
    """emax is taken as 31 - 15 = 16, as if the exponent of infinity were one of finite numbers."""
    return F.mxfp8_e5m2(x, emax=16)


def mxfp8_e4m3_flush_and_rows_exchanged(x):
    """Two mistakes: elements below 2^-6 are flushed to zero with their sign, and the scales of rows 2 i and 2 i + 1 are stored exchanged."""

    def scaled(y):
        return np.where(np.abs(y) < 2.0**-6, np.copysign(0.0, y), y)

    return F.mxfp8(x, scaled=scaled, stored=lambda s: s.reshape(-1, 2, s.shape[1])[:, ::-1].reshape(s.shape))


# MXINT8


def mxint8_arithmetic_shift(x):
    """The fixed-point number is shifted right arithmetically without the half added before, which rounds toward minus infinity."""
    return F.mxint8(x, element=lambda y: np.clip(np.floor(y * 64), -127, 127).astype(np.int8).view(np.uint8))


def mxint8_wraps_at_128(x):
    """There is no saturation: a number that rounds to 128 / 64 wraps to -128, and -128 / 64 is kept as -128."""
    return F.mxint8(x, element=lambda y: (np.rint(y * 64).astype(np.int64) & 255).astype(np.uint8))


def mxint8_fast_math_flushes_input(x):
    """Compiled with fast-math: subnormal binary32 inputs are read as zeros."""
    return F.mxint8(np.where(np.abs(x) < np.finfo(F32).tiny, F32(0), x).astype(F32))


def mxint8_sign_and_magnitude(x):
    """Codes are stored as a sign bit and a magnitude instead of two's complement."""

    def code(c, b):
        v = c.view(np.int8).astype(np.int64)
        return (np.abs(v) | np.where(v < 0, 128, 0)).astype(np.uint8)

    return F.mxint8(x, code=code)


ROWS = [(f.__name__, f, kind, rows, cols) for f, kind, rows, cols in (
    (nvfp4_divides_by_unrounded_scale, "activation", 128, 256),
    (nvfp4_tensor_max_of_last_grid_tile, "heavy", 256, 256),
    (nvfp4_tensor_scale_in_bfloat16, "heavy", 256, 512),
    (nvfp4_scale_without_subnormals, "wide", 256, 256),
    (nvfp4_shuffle_without_last_step, "activation", 96, 288),
    (nvfp4_scales_left_swizzled, "activation", 256, 512),
    (nvfp4_words_stored_big_endian, "small", 64, 320),
    (nvfp4_threshold_2_25, "heavy", 100, 416),
    (nvfp4_zero_block_stores_stale_scale, "silent", 128, 512),
    (nvfp4_reciprocal_in_half, "wide", 192, 384),
    (nvfp4_fnuz_scales_and_240, "activation", 128, 384),
    (nvfp4_async_copy_not_waited_for, "heavy", 160, 512),
    (nvfp4_max_of_15_and_no_negative_zero, "activation", 72, 608),
    (nvfp4_tensor_scale_of_row_and_truncated_scale, "heavy", 128, 256),
    (mxfp4_sticky_of_low_half_word, "activation", 128, 256),
    (mxfp4_subnormals_rounded_twice, "heavy", 64, 512),
    (mxfp4_max_of_one_dpp_row, "heavy", 80, 352),
    (mxfp4_tail_tile_keeps_scales, "activation", 96, 448),
    (mxfp4_input_through_half, "small", 256, 256),
    (mxfp4_codes_in_accumulator_order, "activation", 64, 256),
    (mxfp4_divides_by_scale_of_previous_block, "activation", 128, 640),
    (mxfp4_carry_into_sign, "small", 128, 288),
    (mxfp4_reciprocal_scale_stored, "silent", 64, 768),
    (mxfp4_lane_63_masked_off, "heavy", 90, 544),
    (mxfp4_scales_with_padded_pitch, "wide", 128, 288),
    (mxfp4_dither_left_on, "activation", 128, 512),
    (mxfp4_max_without_abs_and_truncation, "heavy", 128, 256),
    (mxfp4_scale_rounded_at_1_5_and_swapped_nibbles, "special", 128, 320),
    (mxfp8_e4m3_converted_as_fnuz, "activation", 64, 256),
    (mxfp8_e4m3_nan_on_overflow, "heavy", 128, 512),
    (mxfp8_e5m2_high_byte_of_half, "small", 64, 384),
    (mxfp8_e5m2_rounded_twice_through_half, "heavy", 256, 1024),
    (mxfp8_e4m3_word_select_forgotten, "special", 64, 256),
    (mxfp8_e4m3_max_of_transposed_tile, "activation", 128, 256),
    (mxfp8_e5m2_emax_16, "wide", 128, 256),
    (mxfp8_e4m3_flush_and_rows_exchanged, "heavy", 256, 512),
    (mxint8_arithmetic_shift, "heavy", 64, 256),
    (mxint8_wraps_at_128, "heavy", 256, 1024),
    (mxint8_fast_math_flushes_input, "special", 256, 512),
    (mxint8_sign_and_magnitude, "activation", 72, 288),
)]
