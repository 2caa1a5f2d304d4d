"""Forty wrong quantisation kernels, each with a mistake of a kind that is made in real ones; six of them have two."""
import numpy as np

import formats as F
import inputs

F32 = np.float32


def e4m3_byte(r):
    return F.nearest(F.E4M3, np.minimum(r, F32(448))).astype(np.uint8)


def bits_of(x):
    return np.ascontiguousarray(x, F32).view(np.uint32).reshape(np.shape(x))


def signed(magnitude, y):
    return (magnitude | np.where(np.signbit(y), 8, 0)).astype(np.uint8)


def toward_zero(table, y):
    return np.searchsorted(table.astype(np.float64), np.abs(y), side="right") - 1


# ---- NVFP4 ----

def nvfp4_shuffle_reduction_misses_a_step(x):
    """The xor-shuffle reduction of the block's maximum lacks its step of 1 and the even lane writes, so odd elements are not seen."""
    return F.nv(x, amax=lambda b: np.abs(b[..., 0::2]).max(-1))


def nvfp4_combined_scale_in_bf16(x):
    """The product of block scale and tensor scale is kept in bfloat16 before the numbers are divided by it."""
    return F.nv(x, divide=lambda b, f, t: b / np.where(f == 0, F32(0), F.bf16((f * t).astype(F32)))[..., None])


def nvfp4_scale_decoded_as_fnuz(x):
    """The stored E4M3 scale is read back with the bias of the FNUZ variant (8 instead of 7), so the divisor is half of what it should be."""
    return F.nv(x, read=lambda s: (F.E4M3[s] * 0.5).astype(F32))


def nvfp4_scales_left_in_tensor_core_layout(x):
    """The scales are written in the swizzled 128 x 4 tile order of the tensor cores, although the caller asked for plain rows."""
    def swizzle(s):
        r, c = s.shape
        return s.reshape(r // 128, 4, 32, c // 4, 4).transpose(0, 3, 2, 1, 4).reshape(r, c).copy()
    return F.nv(x, final=swizzle)


def nvfp4_subnormal_scales_flushed(x):
    """The bit-trick conversion of the scale to E4M3 does not know subnormal numbers: scales below 2^-6 become zero and so do their codes."""
    r = F.nv(x, store=lambda r: np.where(e4m3_byte(r) < 8, 0, e4m3_byte(r)).astype(np.uint8))
    r.codes = np.where(np.repeat(r.scales, 16, 1) == 0, r.codes & 8, r.codes).astype(np.uint8)
    return r


def nvfp4_input_through_half(x):
    """The input is cast to binary16 on loading (template instantiated for half), so small numbers lose bits."""
    return F.nv(x.astype(np.float16).astype(F32))


def nvfp4_nibbles_of_a_word_reversed(x):
    """Eight codes are packed into a 32-bit word from the top nibble down, so each group of eight comes out in reverse order."""
    return F.nv(x, code=lambda c, b: c.reshape(*c.shape[:-1], 2, 8)[..., ::-1].reshape(c.shape).copy())


def nvfp4_threshold_typo(x):
    """In the chain of comparisons the threshold between 3 and 4 was typed as 3.25 instead of 3.5."""
    def element(y):
        c = F.e2m1(y)
        return np.where((np.abs(y) > 3.25) & (np.abs(y) < 3.5), (c & 8) | 6, c).astype(np.uint8)
    return F.nv(x, element=element)


def nvfp4_amax_window_off_by_one(x):
    """The loop for the block's maximum runs from 1 to 16 instead of from 0 to 15: it sees the next block's first element and not its own."""
    flat = np.abs(x).reshape(-1)
    moved = np.append(flat[1:], F32(0)).reshape(x.shape)
    return F.nv(x, amax=lambda b: F.in_blocks(moved, 16).max(-1))


def nvfp4_zero_block_gets_scale_one(x):
    """A guard against division by zero sets the scale of a block of zeros to 1.0 (byte 0x38) and stores it."""
    return F.nv(x, ratio=lambda a, t: np.where(a == 0, F32(1), a / F32(6) / t))


def nvfp4_running_maximum_not_reset_at_row_start(x):
    """The register with the maximum is cleared after each block but the last of a row, so it leaks into the first block of the next row."""
    def amax(b):
        a = np.abs(b).max(-1)
        out = a.copy()
        out[1:, 0] = np.maximum(a[1:, 0], a[:-1, -1])
        return out
    return F.nv(x, amax=amax)


def nvfp4_per_token_scale_used_per_tensor_stored(x):
    """The block scales are made relative to each row's own maximum (per-token scaling), while the tensor's scale is what is stored."""
    whole = F32(np.abs(x).max() / F32(448 * 6))
    return F.nv(x, tensor=lambda x: np.maximum(np.abs(x).max(1, keepdims=True), F32(1e-30)) / F32(448 * 6), stored_tensor=lambda t: whole)


def nvfp4_weight_blocks_16x16_and_scale_toward_zero(x):
    """Two mistakes: the maximum is taken over 16 x 16 tiles as for weights, and the scale is converted to E4M3 toward zero."""
    def amax(b):
        a = np.abs(b).max(-1)
        r, c = a.shape
        return np.repeat(a.reshape(r // 16, 16, c).max(1), 16, 0)
    return F.nv(x, amax=amax, store=lambda r: toward_zero(F.E4M3, np.minimum(r, F32(448))).astype(np.uint8))


def nvfp4_dithered_and_negative_zero_lost(x):
    """Two mistakes: stochastic rounding with a counter hash was left on, and the sign is lost of everything that becomes zero."""
    def element(y):
        n = np.arange(y.size, dtype=np.uint64) * np.uint64(2654435761) & np.uint64(0xFFFFFFFF)
        n = (n ^ (n >> np.uint64(15))) * np.uint64(2246822519) & np.uint64(0xFFFFFFFF)
        u = ((n >> np.uint64(8)).astype(np.float64) / 2 ** 24).reshape(y.shape)
        table = F.E2M1.astype(np.float64)
        v = np.minimum(np.abs(y.astype(np.float64)), 6)
        lo = toward_zero(table, v)
        hi = np.minimum(lo + 1, 7)
        gap = np.where(hi > lo, table[hi] - table[lo], 1)
        m = np.where((v - table[lo]) / gap > u, hi, lo)
        return np.where(m == 0, 0, signed(m, y)).astype(np.uint8)
    return F.nv(x, element=element)


# ---- MXFP4 ----

def mxfp4_exponent_rounded_not_floored(x):
    """The shared exponent is lrintf(log2f(amax)) instead of floor, so blocks with a maximum above 1.414 times a power get the next one."""
    def byte(a):
        with np.errstate(divide="ignore"):
            e = np.rint(np.log2(a.astype(np.float64)))
        return np.where(a > 0, np.clip(np.where(a > 0, e, 0) - 2 + 127, 0, 254), 0).astype(np.uint8)
    return F.mx(x, byte=byte)


def mxfp4_unsigned_maximum_with_sign_bit(x):
    """The maximum is an atomicMax of the raw unsigned bits without the sign masked, so the most negative number wins over every positive one."""
    return F.mx(x, amax=lambda b: (bits_of(b).max(-1) & np.uint32(0x7FFFFFFF)).view(F32))


def mxfp4_half_step_elements_truncated(x):
    """The rounding constant is added only for normal elements: numbers below 1 are truncated to 0 or 0.5."""
    def element(y):
        t = toward_zero(F.E2M1, y)
        return np.where(np.abs(y) < 1, signed(t, y), F.e2m1(y)).astype(np.uint8)
    return F.mx(x, element=element)


def mxfp4_overflow_carries_into_the_sign(x):
    """There is no saturation: a number that rounds up to 8 becomes magnitude 8, whose carry flips the sign bit and leaves a zero."""
    def element(y):
        return np.where(np.abs(y) >= 7, (F.e2m1(y) & 8) ^ 8, F.e2m1(y)).astype(np.uint8)
    return F.mx(x, element=element)


def mxfp4_half_warps_race_for_the_scale(x):
    """The two half warps of a block never exchange their maxima: each scales its 16 numbers by its own, and the second one's scale is stored."""
    r = F.mx(x, width=16)
    return F.Result(r.codes, r.scales[:, 1::2].copy())


def mxfp4_scalar_tail_truncates(x):
    """Columns after the last whole 128 go through a scalar tail loop that casts toward zero instead of rounding."""
    cut = x.shape[1] // 128 * 128
    a = F.mx(x)
    b = F.mx(x, element=lambda y: signed(toward_zero(F.E2M1, y), y))
    return F.Result(np.concatenate([a.codes[:, :cut], b.codes[:, cut:]], 1), a.scales)


def mxfp4_maximum_of_the_wrong_row(x):
    """The maximum is read from shared memory at the row within the tile, without the tile's base: rows from 64 on use the first tile's maxima."""
    return F.mx(x, amax=lambda b: np.abs(b).max(-1)[np.arange(len(b)) % 64])


def mxfp4_scales_column_major(x):
    """The scales are written column by column (a leftover of a Fortran-ordered GEMM) into a buffer that is read row by row."""
    return F.mx(x, stored=lambda s: s.T.reshape(s.shape).copy())


def mxfp4_scale_stored_without_bias(x):
    """The scale byte is the exponent as a signed 8-bit integer, without the bias of 127."""
    return F.mx(x, stored=lambda s: (s.astype(np.int64) - 127).astype(np.int8).view(np.uint8))


def mxfp4_even_scale_rounds_at_the_wrong_bit(x):
    """The maximum gets 0x00600000 added before its exponent is taken, so all but the lowest quarter of an octave get a scale twice as large."""
    return F.mx(x, byte=lambda a: F.floor_byte((bits_of(a) + np.where(a > 0, np.uint32(0x00600000), np.uint32(0)).astype(np.uint32)).view(F32), 2))


def mxfp4_element_fields_swapped(x):
    """The element's bits are assembled as sign, mantissa, exponent instead of sign, exponent, mantissa."""
    return F.mx(x, code=lambda c, b: ((c & 8) | (c & 1) << 2 | (c & 7) >> 1).astype(np.uint8))


def mxfp4_ties_toward_plus_infinity(x):
    """Rounding is floor(v + half a step) on the signed number, so every tie goes toward plus infinity, not to the even code."""
    def element(y):
        c = F.e2m1(y)
        v = np.abs(y)
        table = F.E2M1.astype(np.float64)
        lo = np.minimum(toward_zero(table, y), 6)
        tie = v - table[lo] == table[lo + 1] - v
        return np.where(tie, signed(np.where(np.signbit(y), lo, lo + 1), y), c).astype(np.uint8)
    return F.mx(x, element=element)


def mxfp4_pair_swapped_and_emax_one(x):
    """Two mistakes: the two codes of a byte are packed high nibble first, and the largest exponent is taken as 1 instead of 2."""
    def code(c, b):
        return c.reshape(*c.shape[:-1], 16, 2)[..., ::-1].reshape(c.shape).copy()
    return F.mx(x, emax=1, code=code)


def mxfp4_scale_of_the_previous_block_and_zero_block_127(x):
    """Two mistakes: a pipelined loop divides by the scale of the block before (the first by its own), and blocks of zeros store byte 127."""
    def divisor(s, b):
        p = F.power(s)
        return np.concatenate([p[:, :1], p[:, :-1]], 1)
    return F.mx(x, byte=lambda a: np.where(a > 0, F.floor_byte(a, 2), 127).astype(np.uint8), divisor=divisor)


# ---- MXFP8 ----

def mxfp8_e5m2_with_emax_of_e4m3(x):
    """The E5M2 kernel was copied from the E4M3 one and still subtracts 8 from the exponent instead of 15."""
    return F.mxfp8_e5m2(x, emax=8)


def mxfp8_e4m3_rounded_twice(x):
    """The scaled number is first rounded to bfloat16 and then to E4M3, so numbers near a tie are rounded twice."""
    return F.mxfp8(x, scaled=lambda y: F.bf16(y.astype(F32)).astype(np.float64))


def mxfp8_e4m3_overflow_is_nan(x):
    """The conversion without .satfinite is used: numbers that would round above 448 become NaN (0x7F)."""
    return F.mxfp8(x, element=lambda y: np.where(np.abs(y) > 464, F.e4m3(y) | 0x7F, F.e4m3(y)).astype(np.uint8))


def mxfp8_e5m2_overflow_is_infinity(x):
    """Numbers that would round above 57344 become infinity (0x7C) instead of saturating."""
    return F.mxfp8_e5m2(x, element=lambda y: np.where(np.abs(y) >= 61440, F.e5m2(y) & 0x80 | 0x7C, F.e5m2(y)).astype(np.uint8))


def mxfp8_e4m3_clamped_at_240(x):
    """The clamp before the conversion uses 240, the largest number of E4M3FNUZ on gfx942, instead of 448."""
    return F.mxfp8(x, scaled=lambda y: np.clip(y, -240, 240))


def mxfp8_e4m3_subnormal_codes_flushed(x):
    """Numbers below the least normal E4M3 number (2^-6) are flushed to a zero of their sign."""
    return F.mxfp8(x, element=lambda y: np.where(np.abs(y) < 2.0 ** -6, F.e4m3(y) & 0x80, F.e4m3(y)).astype(np.uint8))


def mxfp8_e4m3_blocks_down_the_columns(x):
    """The scales are shared by 32 rows of a column (the layout for the transposed operand) and written out as they come."""
    r = F.mxfp8(np.ascontiguousarray(x.T))
    return F.Result(r.codes.T.copy(), r.scales.T.reshape(x.shape[0], -1).copy(), bits=8)


def mxfp8_e5m2_cut_from_half_and_exponent_ceiled(x):
    """Two mistakes: E5M2 is the upper byte of a binary16 number cut off without rounding, and the shared exponent is rounded up."""
    def byte(a):
        m, e = np.frexp(a)
        up = e.astype(np.int64) - (m == 0.5)
        return np.where(a > 0, np.clip(up - 15 + 127, 0, 254), 0).astype(np.uint8)
    return F.mxfp8_e5m2(x, byte=byte, element=lambda y: ((y.astype(np.float16).view(np.uint16) >> 8) & 0xFF).astype(np.uint8))


# ---- MXINT8 ----

def mxint8_minus_128_allowed(x):
    """The clamp is -128 to 127 as for an ordinary int8 cast, so the largest negative numbers become -128."""
    return F.mxint8(x, element=lambda y: np.clip(np.rint(y * 64), -128, 127).astype(np.int8).view(np.uint8))


def mxint8_half_away_from_zero(x):
    """roundf is used instead of rintf: halves go away from zero."""
    return F.mxint8(x, element=lambda y: np.clip(np.copysign(np.floor(np.abs(y) * 64 + 0.5), y), -127, 127).astype(np.int8).view(np.uint8))


def mxint8_every_fourth_byte_lane_in_wrong_place(x):
    """The byte permute that packs four int8 into a word has the selector 0x3120, so the middle two of every four are exchanged."""
    return F.mxint8(x, code=lambda c, b: c.reshape(*c.shape[:-1], 8, 4)[..., [0, 2, 1, 3]].reshape(c.shape).copy())


def mxint8_sign_magnitude_and_truncated(x):
    """Two mistakes: codes are sign and magnitude instead of two's complement, and the conversion to an integer truncates."""
    return F.mxint8(x, element=lambda y: (np.minimum(np.trunc(np.abs(y) * 64), 127).astype(np.uint8) | np.where(np.signbit(y), 128, 0)).astype(np.uint8))


ROWS = [(f.__name__, f, kind, rows, cols) for f, kind, rows, cols in [
    (nvfp4_shuffle_reduction_misses_a_step, "activation", 64, 512),
    (nvfp4_combined_scale_in_bf16, "heavy", 128, 512),
    (nvfp4_scale_decoded_as_fnuz, "activation", 64, 256),
    (nvfp4_scales_left_in_tensor_core_layout, "activation", 256, 512),
    (nvfp4_subnormal_scales_flushed, "wide", 128, 512),
    (nvfp4_input_through_half, "small", 128, 768),
    (nvfp4_nibbles_of_a_word_reversed, "heavy", 64, 288),
    (nvfp4_threshold_typo, "activation", 96, 416),
    (nvfp4_amax_window_off_by_one, "heavy", 128, 320),
    (nvfp4_zero_block_gets_scale_one, "silent", 128, 512),
    (nvfp4_running_maximum_not_reset_at_row_start, "activation", 192, 256),
    (nvfp4_per_token_scale_used_per_tensor_stored, "heavy", 96, 512),
    (nvfp4_weight_blocks_16x16_and_scale_toward_zero, "activation", 128, 384),
    (nvfp4_dithered_and_negative_zero_lost, "activation", 64, 512),
    (mxfp4_exponent_rounded_not_floored, "activation", 128, 512),
    (mxfp4_unsigned_maximum_with_sign_bit, "heavy", 64, 512),
    (mxfp4_half_step_elements_truncated, "activation", 128, 256),
    (mxfp4_overflow_carries_into_the_sign, "small", 128, 512),
    (mxfp4_half_warps_race_for_the_scale, "heavy", 128, 384),
    (mxfp4_scalar_tail_truncates, "activation", 64, 352),
    (mxfp4_maximum_of_the_wrong_row, "activation", 160, 256),
    (mxfp4_scales_column_major, "wide", 128, 512),
    (mxfp4_scale_stored_without_bias, "small", 64, 256),
    (mxfp4_even_scale_rounds_at_the_wrong_bit, "special", 128, 512),
    (mxfp4_element_fields_swapped, "heavy", 64, 320),
    (mxfp4_ties_toward_plus_infinity, "activation", 256, 512),
    (mxfp4_pair_swapped_and_emax_one, "activation", 96, 288),
    (mxfp4_scale_of_the_previous_block_and_zero_block_127, "silent", 128, 512),
    (mxfp8_e5m2_with_emax_of_e4m3, "activation", 64, 512),
    (mxfp8_e4m3_rounded_twice, "heavy", 256, 512),
    (mxfp8_e4m3_overflow_is_nan, "heavy", 128, 512),
    (mxfp8_e5m2_overflow_is_infinity, "activation", 256, 512),
    (mxfp8_e4m3_clamped_at_240, "small", 64, 512),
    (mxfp8_e4m3_subnormal_codes_flushed, "heavy", 256, 1024),
    (mxfp8_e4m3_blocks_down_the_columns, "activation", 128, 512),
    (mxfp8_e5m2_cut_from_half_and_exponent_ceiled, "heavy", 64, 384),
    (mxint8_minus_128_allowed, "heavy", 256, 1024),
    (mxint8_half_away_from_zero, "activation", 128, 512),
    (mxint8_every_fourth_byte_lane_in_wrong_place, "small", 64, 256),
    (mxint8_sign_magnitude_and_truncated, "special", 96, 512),
]]


def right(name):
    for start, f in (("nvfp4", F.nv), ("mxfp4", F.mx), ("mxfp8_e5m2", F.mxfp8_e5m2), ("mxfp8", F.mxfp8), ("mxint8", F.mxint8)):
        if name.startswith(start):
            return f


if __name__ == "__main__":
    assert len(ROWS) == len({r[0] for r in ROWS}) == 40 and sum("Two mistakes" in r[1].__doc__ for r in ROWS) == 6
    for name, f, kind, rows, cols in ROWS:
        counts = []
        for seed in (1, 2):
            x = inputs.KINDS[kind](np.random.default_rng(seed), rows, cols)
            keep = x.copy()
            a, b, again = right(name)(x), f(x), f(x)
            assert (x.view(np.uint32) == keep.view(np.uint32)).all() and (b.codes == again.codes).all() and (b.scales == again.scales).all(), name
            for p, q in ((a.codes, b.codes), (a.scales, b.scales)):
                assert p.shape == q.shape and p.dtype == q.dtype, (name, p.shape, q.shape, p.dtype, q.dtype)
            assert a.bits == b.bits and type(a.tensor_scale) is type(b.tensor_scale), name
            counts += [int((a.codes != b.codes).sum()), int((a.scales != b.scales).sum())]
            assert any(counts[-2:]), name
        print(f"{name:56}", *counts)
