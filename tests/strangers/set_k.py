"""Forty wrong quantisation kernels, each with a mistake that such kernels really have, or could have; six have two at once."""
import numpy as np

import formats as F
from formats import F32, Result


def mixed(n, salt):
    """Pseudo-random 32-bit numbers, one for each index below n: stands for the timing of a race or for a cheap generator."""
    h = np.arange(n, dtype=np.uint64) + np.uint64(salt)
    for k in (0x9E3779B1, 0x85EBCA77):
        h = (h * np.uint64(k)) & np.uint64(0xFFFFFFFF)
        h ^= h >> np.uint64(15)
    return h


# ---------------------------------------------------------------- NVFP4


def nvfp4_last_shuffle_missing(x):
    """The butterfly that reduces |x| over 16 lanes stops at offset 2, so lane 0's amax covers only the even elements."""
    return F.nv(x, amax=lambda b: F.abs_max(b[..., ::2]))


def nvfp4_tensor_amax_of_first_cta(x):
    """The tensor's amax is read before the other CTAs have done their atomicMax, so T comes from the first 16 rows only."""
    return F.nv(x, tensor=lambda x: np.abs(x[:16]).max() / F32(2688))


def nvfp4_scale_in_fnuz(x):
    """Ported from an MI300: the scale is encoded as E4M3 FNUZ, with bias 8 and a maximum of 240, and also read back so."""
    table = F.float_table(4, 3, 8, 127)
    return F.nv(x, store=lambda r: F.nearest(table, r).astype(np.uint8), read=lambda s: table[s].astype(F32))


def nvfp4_reciprocal_in_bf16(x):
    """The reciprocal 1 / (s * T) is kept in a bfloat16 register before x is multiplied with it."""

    def divide(b, f, t):
        return b * F.bf16(F32(1) / (f * t))[..., None]

    return F.nv(x, divide=divide)


def nvfp4_sixth_typed_short(x):
    """The constant 1/6 of the block scale was typed as 0.167f."""
    return F.nv(x, ratio=lambda a, t: a * F32(0.167) / t)


def nvfp4_scales_swizzled(x):
    """The scales are written in the tensor cores' swizzled order (tiles of 128 x 4), though the caller asked for the linear one."""

    def final(s):
        rows, blocks = s.shape
        return s.reshape(rows // 128, 4, 32, blocks // 4, 4).transpose(0, 3, 2, 1, 4).reshape(rows, blocks)

    return F.nv(x, final=final)


def nvfp4_operands_swapped_in_upper_half(x):
    """The second of the two inline cvt.e2m1x2 sequences of each 16 has its operands in the wrong order: pairs 4 to 7 are swapped."""

    def code(c, b):
        c = c.copy()
        c[..., 8:] = c[..., 8:].reshape(*c.shape[:-1], 4, 2)[..., ::-1].reshape(*c.shape[:-1], 8)
        return c

    return F.nv(x, code=code)


def nvfp4_extreme_keeps_its_sign(x):
    """The reduction keeps the element of largest magnitude with its sign, so the scale may be negative and all the codes of the block flip."""
    b = F.in_blocks(x, 16)
    extreme = np.take_along_axis(b, np.abs(b).argmax(-1)[..., None], -1)[..., 0]
    minus = extreme < 0
    return F.nv(
        x,
        code=lambda c, b: (c ^ np.where(minus, 8, 0)[..., None]).astype(np.uint8),
        final=lambda s: (s | np.where(minus, 0x80, 0)).astype(np.uint8),
    )


def nvfp4_stochastic_left_on(x):
    """The stochastic rounding of the backward pass is left on: a code goes up where eight hashed bits are under its fraction."""

    def element(y):
        table = F.E2M1.astype(np.float64)
        v = np.minimum(np.abs(y), 6)
        lo = np.clip(np.searchsorted(table, v, side="right") - 1, 0, 6)
        fraction = (v - table[lo]) / (table[lo + 1] - table[lo])
        dice = ((mixed(y.size, 12345) & np.uint64(255)).astype(np.float64) / 256).reshape(y.shape)
        return (lo + (dice < fraction) | np.where(np.signbit(y), 8, 0)).astype(np.uint8)

    return F.nv(x, element=element)


def nvfp4_scale_subnormals_flushed(x):
    """The hand-written E4M3 encoder of the scale has no subnormal numbers: under 2^-6 it gives 0, and x / 0 saturates."""

    def store(r):
        return np.where(r < 2.0**-6, 0, F.nearest(F.E4M3, np.minimum(r, F32(448)))).astype(np.uint8)

    return F.nv(x, store=store)


def nvfp4_amax_of_the_rotated_block(x):
    """The block's amax is taken from the copy turned by the Hadamard matrix, but the numbers that are encoded are not turned."""
    return F.nv(x, amax=lambda b: F.abs_max(F.rotate(b, 16)))


def nvfp4_tensor_scale_per_row(x):
    """T is computed for each row, as for per-token FP8, but only one number, the largest, is returned."""
    return F.nv(x, tensor=lambda x: np.abs(x).max(1, keepdims=True) / F32(2688), stored_tensor=lambda t: F32(t.max()))


def nvfp4_two_unrounded_scale_and_short_loop(x):
    """Two: elements are divided by the scale before it is rounded to E4M3, and the amax loop stops before the 16th element."""

    def amax(b):
        return F.abs_max(b[..., :15])

    return F.nv(x, amax=amax, divide=lambda b, f, t: b / (amax(b) / F32(6))[..., None])


def nvfp4_two_scale_up_and_no_minus_zero(x):
    """Two: the scale is rounded up to E4M3, and a negative number that rounds to zero loses its sign."""

    def store(r):
        return np.searchsorted(F.E4M3, np.minimum(r, F32(448)).astype(np.float64)).astype(np.uint8)

    return F.nv(x, store=store, code=lambda c, b: np.where(c == 8, 0, c).astype(np.uint8))


# ---------------------------------------------------------------- MXFP4


def mxfp4_amax_in_bf16(x):
    """The amax passes through shared memory as bfloat16, rounded to nearest, and may cross the next power of two."""
    return F.mx(x, amax=lambda b: F.bf16(F.abs_max(b)))


def mxfp4_rounding_constant_one_bit_off(x):
    """The amax is rounded before its exponent is taken, and by 0x400000 in place of 0x200000: from 1.5 on it goes up."""

    def byte(a):
        u = np.ascontiguousarray(a, F32).view(np.uint32) + np.uint32(0x400000)
        return np.where(a > 0, np.clip((u >> np.uint32(23)).astype(np.int64) - 2, 0, 254), 0).astype(np.uint8)

    return F.mx(x, byte=byte)


def mxfp4_carry_into_sign(x):
    """There is no clamp before packing: from 7 on the rounding carries out of the three bits and toggles the sign, giving a zero."""

    def code(c, b):
        y = np.abs(b.astype(np.float64)) / F.power(F.floor_byte(F.abs_max(b), 2))[..., None]
        return np.where(y >= 7, (c & 8) ^ 8, c).astype(np.uint8)

    return F.mx(x, code=code)


def mxfp4_ties_to_odd(x):
    """The comparison chain has < and <= the wrong way round, so that ties go to the odd code."""
    middles = np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5])

    def element(y):
        v = np.abs(y)
        up = [v >= m if k % 2 == 0 else v > m for k, m in enumerate(middles)]
        return (np.sum(up, 0) | np.where(np.signbit(y), 8, 0)).astype(np.uint8)

    return F.mx(x, element=element)


def mxfp4_threshold_typo(x):
    """In the comparison chain the threshold between 3 and 4 reads 3.25 instead of 3.5."""

    def element(y):
        v = np.abs(y)
        return np.where((v > 3.25) & (v < 3.5), 6, F.e2m1(y) & 7).astype(np.uint8) | np.where(np.signbit(y), 8, 0).astype(np.uint8)

    return F.mx(x, element=element)


def mxfp4_no_subnormal_code(x):
    """The bit-twiddling encoder knows only normal numbers: what should be 0.5, the one subnormal value, becomes a signed zero."""
    return F.mx(x, code=lambda c, b: np.where(c & 7 == 1, c & 8, c).astype(np.uint8))


def mxfp4_blocks_down_the_columns(x):
    """Row-major and column-major strides are mixed up: blocks run down 32 rows, their scales lying one after the other in the buffer."""
    r = F.mx(np.ascontiguousarray(x.T))
    return Result(np.ascontiguousarray(r.codes.T), np.ascontiguousarray(r.scales.T).reshape(len(x), -1))


def mxfp4_missing_barrier(x):
    """Without __syncthreads some warps (one block in nine) encode with the scale of the block before, still in shared memory."""

    def divisor(s, b):
        before = np.concatenate([s[:, :1], s[:, :-1]], 1)
        late = (mixed(s.size, 77) % np.uint64(9) == 0).reshape(s.shape)
        return F.power(np.where(late, before, s))

    return F.mx(x, divisor=divisor)


def mxfp4_halves_interleaved(x):
    """Nibbles are laid out as in GGUF: each byte of a block holds elements k and k + 16 instead of 2k and 2k + 1."""
    return F.mx(x, code=lambda c, b: np.ascontiguousarray(c.reshape(*c.shape[:-1], 2, 16).swapaxes(-1, -2)).reshape(c.shape))


def mxfp4_amax_clamped_at_1e_4(x):
    """The amax is clamped from below at 1e-4, a guard copied from an FP8 kernel, so that small blocks lose their numbers."""
    return F.mx(x, amax=lambda b: np.maximum(F.abs_max(b), F32(1e-4)))


def mxfp4_float4_without_w(x):
    """Elements are loaded as float4, but the amax is taken over .x, .y and .z only."""
    return F.mx(x, amax=lambda b: F.abs_max(b.reshape(*b.shape[:-1], 8, 4)[..., :3].reshape(*b.shape[:-1], 24)))


def mxfp4_sign_mask_reversed(x):
    """The signs of each eight numbers are gathered in a mask and put back from its other end."""

    def code(c, b):
        sign = (c & 8).reshape(*c.shape[:-1], 4, 8)[..., ::-1].reshape(c.shape)
        return (c & 7 | sign).astype(np.uint8)

    return F.mx(x, code=code)


def mxfp4_two_running_amax_and_big_endian_scales(x):
    """Two: a thread does four blocks and does not reset its amax between them, and packs their four scale bytes in a word the wrong way round."""

    def amax(b):
        a = F.abs_max(b)
        return np.maximum.accumulate(a.reshape(len(a), -1, 4), -1).reshape(a.shape)

    return F.mx(x, amax=amax, stored=lambda s: np.ascontiguousarray(s.reshape(len(s), -1, 4)[..., ::-1]).reshape(s.shape))


def mxfp4_two_unsigned_compare_and_lost_rows(x):
    """Two: the amax compares raw bits as unsigned, so that any negative number beats all positive ones; rows past the last full 16 stay zero."""

    def amax(b):
        u = np.ascontiguousarray(b).view(np.uint32).max(-1) & np.uint32(0x7FFFFFFF)
        return u.view(F32)

    r = F.mx(x, amax=amax)
    end = len(x) // 16 * 16
    r.codes[end:] = 0
    r.scales[end:] = 0
    return r


# ---------------------------------------------------------------- MXFP8


def mxfp8_overflow_to_nan(x):
    """The conversion to E4M3 lacks .satfinite: from 464 on (excluding the tie) it gives the NaN 0x7F."""

    def element(y):
        return np.where(np.abs(y) > 464, np.where(np.signbit(y), 0xFF, 0x7F), F.e4m3(y)).astype(np.uint8)

    return F.mxfp8(x, element=element)


def mxfp8_e5m2_high_byte_of_half(x):
    """E5M2 is made by keeping the upper byte of the number in binary16, that is, cut and not rounded (and infinite from 65520 on)."""

    def element(y):
        with np.errstate(over="ignore"):
            return (y.astype(np.float16).view(np.uint16) >> 8).astype(np.uint8)

    return F.mxfp8_e5m2(x, element=element)


def mxfp8_scale_byte_zero_is_zero(x):
    """The scale is made a float by byte << 23, so that byte 0 gives 0 instead of 2^-127: numbers saturate, and 0 / 0 is a NaN."""

    def element(y):
        return np.where(np.isnan(y), 0x7F, F.e4m3(np.nan_to_num(y, nan=0.0))).astype(np.uint8)

    with np.errstate(divide="ignore", invalid="ignore"):
        return F.mxfp8(x, divisor=lambda s, b: np.where(s == 0, 0.0, F.power(s)), element=element)


def mxfp8_halves_reduced_apart(x):
    """The shuffle's width is 4 lanes instead of 8: each half of a block is encoded with its own scale, and only the first half's is stored."""
    r = F.mxfp8(x, width=16)
    return Result(r.codes, np.ascontiguousarray(r.scales[:, ::2]), bits=8)


def mxfp8_e5m2_with_emax_of_e4m3(x):
    """The template for E5M2 still has E4M3's greatest exponent, 8 instead of 15."""
    return F.mxfp8_e5m2(x, emax=8)


def mxfp8_scale_nearest_power(x):
    """The scale is the power of two nearest to amax / 448 by __float2int_rn(log2f()), neither its floor nor its ceiling."""

    def byte(a):
        with np.errstate(divide="ignore"):
            e = np.rint(np.log2(np.asarray(a, F32) / F32(448)))
        return np.where(a > 0, np.clip(np.where(a > 0, e, 0) + 127, 0, 254), 0).astype(np.uint8)

    return F.mxfp8(x, byte=byte)


def mxfp8_subnormals_cut(x):
    """The shift that makes subnormal E4M3 codes drops the low bits without rounding; normal numbers are rounded rightly."""

    def element(y):
        v = np.abs(y)
        cut = np.floor(np.minimum(v, 1) * 512).astype(np.int64) | np.where(np.signbit(y), 128, 0)
        return np.where(v < 2.0**-6, cut, F.e4m3(y)).astype(np.uint8)

    return F.mxfp8(x, element=element)


def mxfp8_two_limit_240_and_scales_transposed(x):
    """Two: elements are clamped at 240, the greatest number of E4M3 FNUZ, and the scales are stored block by block instead of row by row."""
    return F.mxfp8(
        x,
        scaled=lambda y: np.clip(y, -240, 240),
        stored=lambda s: np.ascontiguousarray(s.T).reshape(s.shape),
    )


# ---------------------------------------------------------------- MXINT8


def mxint8_wraps_at_128(x):
    """There is no clamp: a number that rounds to 128 steps wraps to -128, and -128 is used too."""
    return F.mxint8(x, element=lambda y: np.rint(y * 64).astype(np.int64).astype(np.uint8))


def mxint8_step_of_127(x):
    """The step is 2/127 instead of 1/64, as in ordinary symmetric int8, so that a block's limit of 2 becomes 127."""
    return F.mxint8(x, element=lambda y: np.clip(np.rint(y * 63.5), -127, 127).astype(np.int8).view(np.uint8))


def mxint8_arithmetic_shift(x):
    """The fixed-point number is brought to eight bits by an arithmetic right shift, that is, rounded toward minus infinity."""
    return F.mxint8(x, element=lambda y: np.clip(np.floor(y * 64), -127, 127).astype(np.int8).view(np.uint8))


def mxint8_two_ones_complement_and_frexp(x):
    """Two: negative numbers are the inverted bits of their magnitude (one too low), and frexp's exponent is used without taking 1 away."""

    def element(y):
        q = np.clip(np.rint(np.abs(y) * 64), 0, 127).astype(np.uint8)
        return np.where(np.signbit(y), ~q, q).astype(np.uint8)

    return F.mxint8(x, element=element, byte=lambda a: F.floor_byte(a, -1))


ROWS = [
    ("nvfp4_last_shuffle_missing", nvfp4_last_shuffle_missing, "activation", 128, 512),
    ("nvfp4_tensor_amax_of_first_cta", nvfp4_tensor_amax_of_first_cta, "heavy", 256, 512),
    ("nvfp4_scale_in_fnuz", nvfp4_scale_in_fnuz, "activation", 96, 384),
    ("nvfp4_reciprocal_in_bf16", nvfp4_reciprocal_in_bf16, "heavy", 128, 512),
    ("nvfp4_sixth_typed_short", nvfp4_sixth_typed_short, "activation", 128, 768),
    ("nvfp4_scales_swizzled", nvfp4_scales_swizzled, "activation", 256, 256),
    ("nvfp4_operands_swapped_in_upper_half", nvfp4_operands_swapped_in_upper_half, "small", 64, 512),
    ("nvfp4_extreme_keeps_its_sign", nvfp4_extreme_keeps_its_sign, "heavy", 64, 256),
    ("nvfp4_stochastic_left_on", nvfp4_stochastic_left_on, "activation", 128, 512),
    ("nvfp4_scale_subnormals_flushed", nvfp4_scale_subnormals_flushed, "wide", 256, 256),
    ("nvfp4_amax_of_the_rotated_block", nvfp4_amax_of_the_rotated_block, "activation", 128, 256),
    ("nvfp4_tensor_scale_per_row", nvfp4_tensor_scale_per_row, "small", 192, 512),
    ("nvfp4_two_unrounded_scale_and_short_loop", nvfp4_two_unrounded_scale_and_short_loop, "heavy", 128, 512),
    ("nvfp4_two_scale_up_and_no_minus_zero", nvfp4_two_scale_up_and_no_minus_zero, "silent", 128, 512),
    ("mxfp4_amax_in_bf16", mxfp4_amax_in_bf16, "heavy", 256, 1024),
    ("mxfp4_rounding_constant_one_bit_off", mxfp4_rounding_constant_one_bit_off, "activation", 128, 512),
    ("mxfp4_carry_into_sign", mxfp4_carry_into_sign, "heavy", 96, 512),
    ("mxfp4_ties_to_odd", mxfp4_ties_to_odd, "activation", 256, 512),
    ("mxfp4_threshold_typo", mxfp4_threshold_typo, "small", 128, 512),
    ("mxfp4_no_subnormal_code", mxfp4_no_subnormal_code, "wide", 64, 512),
    ("mxfp4_blocks_down_the_columns", mxfp4_blocks_down_the_columns, "activation", 128, 256),
    ("mxfp4_missing_barrier", mxfp4_missing_barrier, "activation", 128, 1024),
    ("mxfp4_halves_interleaved", mxfp4_halves_interleaved, "heavy", 64, 256),
    ("mxfp4_amax_clamped_at_1e_4", mxfp4_amax_clamped_at_1e_4, "small", 256, 256),
    ("mxfp4_float4_without_w", mxfp4_float4_without_w, "activation", 128, 512),
    ("mxfp4_sign_mask_reversed", mxfp4_sign_mask_reversed, "special", 64, 512),
    ("mxfp4_two_running_amax_and_big_endian_scales", mxfp4_two_running_amax_and_big_endian_scales, "silent", 128, 512),
    ("mxfp4_two_unsigned_compare_and_lost_rows", mxfp4_two_unsigned_compare_and_lost_rows, "heavy", 100, 512),
    ("mxfp8_overflow_to_nan", mxfp8_overflow_to_nan, "activation", 128, 512),
    ("mxfp8_e5m2_high_byte_of_half", mxfp8_e5m2_high_byte_of_half, "heavy", 128, 256),
    ("mxfp8_scale_byte_zero_is_zero", mxfp8_scale_byte_zero_is_zero, "special", 256, 512),
    ("mxfp8_halves_reduced_apart", mxfp8_halves_reduced_apart, "activation", 128, 256),
    ("mxfp8_e5m2_with_emax_of_e4m3", mxfp8_e5m2_with_emax_of_e4m3, "activation", 64, 512),
    ("mxfp8_scale_nearest_power", mxfp8_scale_nearest_power, "silent", 128, 512),
    ("mxfp8_subnormals_cut", mxfp8_subnormals_cut, "heavy", 256, 512),
    ("mxfp8_two_limit_240_and_scales_transposed", mxfp8_two_limit_240_and_scales_transposed, "activation", 128, 512),
    ("mxint8_wraps_at_128", mxint8_wraps_at_128, "heavy", 128, 512),
    ("mxint8_step_of_127", mxint8_step_of_127, "activation", 64, 512),
    ("mxint8_arithmetic_shift", mxint8_arithmetic_shift, "small", 96, 256),
    ("mxint8_two_ones_complement_and_frexp", mxint8_two_ones_complement_and_frexp, "activation", 128, 256),
]
