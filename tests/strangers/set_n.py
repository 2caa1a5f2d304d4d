"""Forty wrong quantisation kernels: what bug reports, ports and reviews of microscaling quantisers bring."""
import numpy as np

import formats as F

F32 = np.float32


def truncated(table, v):
    """Code of the largest value that is not above v."""
    return np.clip(np.searchsorted(table, np.asarray(v, np.float64), side="right") - 1, 0, len(table) - 1)


def signed(magnitude, y, bit):
    return (magnitude | np.where(np.signbit(y), bit, 0)).astype(np.uint8)


def bits_of(x):
    return np.ascontiguousarray(x, F32).view(np.uint32).astype(np.int64)


# ---- NVFP4


def nvfp4_tensor_amax_last_workgroup_wins(x):
    """Each workgroup of 8 rows stores its maximum without an atomic maximum, so the tensor scale is that of the last 8 rows."""
    return F.nv(x, tensor=lambda x: np.abs(x[-8:]).max() / F32(2688))


def nvfp4_reciprocal_of_2688_in_three_digits(x):
    """The tensor scale is max|x| times 0.000372, where 1/2688 is 0.00037202."""
    return F.nv(x, tensor=lambda x: np.abs(x).max() * F32(0.000372))


def nvfp4_maximum_of_signed_bits(x):
    """The block maximum compares the bits as signed integers with the sign bit left in, so a negative number never wins against a positive one."""
    def amax(b):
        return np.abs(np.ascontiguousarray(b).view(np.int32).max(-1).view(F32))
    return F.nv(x, amax=amax)


def nvfp4_scale_truncated_and_subnormal_scale_flushed(x):
    """Two: the block scale is cut toward zero in E4M3, and a scale below 2^-6 is stored as zero."""
    def store(r):
        c = truncated(F.E4M3, r)
        return np.where(c < 8, 0, c).astype(np.uint8)
    return F.nv(x, store=store)


def nvfp4_threshold_typed_3_25(x):
    """The ladder of thresholds has 3.25 between the values 3 and 4 where 3.5 belongs."""
    def element(y):
        a = np.abs(y)
        return signed(np.where((a >= 3.25) & (a < 3.5), 6, F.nearest(F.E2M1, a)), y, 8)
    return F.nv(x, element=element)


def nvfp4_scale_of_lane_shifted_by_five(x):
    """The lane's scale is looked up with lane >> 5 * 2, left from blocks of 32, so odd blocks are divided by the scale of the even block before."""
    def divide(b, f, t):
        g = f.copy()
        g[:, 1::2] = f[:, 0::2][:, : g[:, 1::2].shape[1]]
        return b / (g * t)[..., None]
    return F.nv(x, divide=divide)


def nvfp4_tail_rows_without_tensor_scale(x):
    """The rows behind the last whole tile of 32 go through a remainder path that divides by the block scale but not by the tensor scale."""
    def divide(b, f, t):
        y = b / (f * t)[..., None]
        n = len(b) // 32 * 32
        y[n:] = b[n:] / f[n:][..., None]
        return y
    return F.nv(x, divide=divide)


def nvfp4_subnormal_scale_read_with_hidden_one(x):
    """Reading the scale back for the division, the bit shifts treat a subnormal E4M3 as a normal one with exponent -7."""
    def read(s):
        m = (s & 7).astype(F32)
        return np.where(s < 8, (1 + m / F32(8)) * F32(2.0**-7), F.E4M3[s]).astype(F32)
    return F.nv(x, read=read)


def nvfp4_amax_over_strided_lanes(x):
    """The maximum of block k of a tile of 64 is taken over columns k, k + 4, k + 8 and so on, the codes over 16 neighbours."""
    def amax(b):
        rows, blocks, _ = b.shape
        n = blocks // 4 * 4
        a = F.abs_max(b)
        a[:, :n] = np.abs(b[:, :n]).reshape(rows, n // 4, 16, 4).max(2).reshape(rows, n)
        return a
    return F.nv(x, amax=amax)


def nvfp4_loaded_as_half(x):
    """The input is converted to binary16 on loading, so small numbers lose bits."""
    return F.nv(x.astype(np.float16).astype(F32))


def nvfp4_square_tiles_for_activations(x):
    """The scale of the weights' rule is used: one maximum for 16 rows x 16 columns, written to each of the 16 rows."""
    def amax(b):
        a = F.abs_max(b)
        for r in range(0, len(a), 16):
            a[r : r + 16] = a[r : r + 16].max(0)
        return a
    return F.nv(x, amax=amax)


def nvfp4_swizzle_with_4_and_32_exchanged(x):
    """The scale writer splits the row of a 128-row tile with % 4 and / 4 where % 32 and / 32 belong; seen after the right un-swizzle."""
    def final(s):
        r = np.arange(len(s))
        q = r % 128
        # The reader of row q fetches the place (q % 32, q / 32); the writer had put row (q / 32) + 4 * (q % 32) there.
        return s[r - q + q // 32 + 4 * (q % 32)]
    return F.nv(x, final=final)


def nvfp4_stochastic_rounding_left_on(x):
    """The forward pass calls the gradient's rounding: up with the probability of the fraction, the noise a hash of row and column."""
    def element(y):
        a = np.minimum(np.abs(y), 6).astype(np.float64)
        i = np.arange(a.size, dtype=np.uint64).reshape(a.shape)
        h = (i * np.uint64(2654435761)) & np.uint64(0xFFFFFFFF)
        h = ((h ^ (h >> np.uint64(15))) * np.uint64(2246822519)) & np.uint64(0xFFFFFFFF)
        u = (h >> np.uint64(8)).astype(np.float64) / 2**24
        lo = np.minimum(truncated(F.E2M1, a), 6)
        part = (a - F.E2M1[lo]) / (F.E2M1[lo + 1] - F.E2M1[lo])
        return signed(lo + (part > u), y, 8)
    return F.nv(x, element=element)


def nvfp4_short_reciprocals_twice(x):
    """Two: amax is multiplied by 0.1667 in place of being divided by 6, and the data by a reciprocal cut to 12 bits of mantissa."""
    def divide(b, f, t):
        return b * F.cut_to(F32(1) / (f * t), 12)[..., None]
    return F.nv(x, ratio=lambda a, t: a * F32(0.1667) / t, divide=divide)


# ---- MXFP4


def mxfp4_rounding_constant_one_bit_low(x):
    """The maximum's bits get 1 << 20 added before the exponent is cut out, so blocks with a mantissa from 1.875 on take a scale twice as large."""
    def byte(a):
        return F.floor_byte((bits_of(a) + (1 << 20)).astype(np.uint32).view(F32), 2)
    return F.mx(x, byte=byte)


def mxfp4_log2_in_bfloat16(x):
    """log2(amax) is computed in bfloat16 before floor, so a maximum just below a power of two counts as that power."""
    def byte(a):
        with np.errstate(divide="ignore"):
            l = np.floor(F.bf16(np.log2(a).astype(F32)))
        return np.where(a > 0, np.clip(np.where(a > 0, l, 0) - 2 + 127, 0, 254), 0).astype(np.uint8)
    return F.mx(x, byte=byte)


def mxfp4_overflow_wraps_to_zero(x):
    """No saturation: a magnitude from 7 on rounds to 8, whose code is masked with 7 and becomes zero with the right sign."""
    table = np.append(F.E2M1.astype(np.float64), 8.0)
    return F.mx(x, element=lambda y: signed(F.nearest(table, np.abs(y)) & 7, y, 8))


def mxfp4_reduction_misses_offset_16(x):
    """The butterfly over 32 lanes begins at offset 8: each half divides by its own scale, and lane 0 stores that of the first half."""
    halves = np.abs(F.in_blocks(x, 16)).max(-1)
    own = F.floor_byte(halves, 2).reshape(len(x), -1, 2)
    b = F.in_blocks(x, 32).astype(np.float64)
    c = F.e2m1(b / np.repeat(F.power(own), 16, axis=-1))
    return F.Result(F.as_rows(c, x.shape[1]), np.ascontiguousarray(own[..., 0]))


def mxfp4_subnormal_input_flushed(x):
    """Compiled with flush-to-zero: a subnormal input counts as a zero of its sign."""
    return F.mx(np.where(np.abs(x) < F32(2.0**-126), np.copysign(F32(0), x), x))


def mxfp4_halves_interleaved(x):
    """Element j and element j + 16 share a byte, as in GGUF, where the format asks for neighbours."""
    return F.mx(x, code=lambda c, b: c.reshape(*c.shape[:2], 2, 16).swapaxes(-1, -2).reshape(c.shape))


def mxfp4_doubled_table_first_best(x):
    """Two: the table holds doubled values (0, 1, 2, ... 12) but the scale is not halved, and the search keeps the first of two equally near."""
    table = 2 * F.E2M1.astype(np.float64)

    def element(y):
        return signed(np.abs(np.abs(y)[..., None] - table).argmin(-1), y, 8)
    return F.mx(x, element=element)


def mxfp4_signed_maximum_flips_block(x):
    """The scale keeps the sign of the element of largest magnitude, as in Q4_0; E8M0 loses it, so such blocks come out negated."""
    def code(c, b):
        i = np.abs(b).argmax(-1)
        top = np.take_along_axis(b, i[..., None], -1)
        return np.where(top < 0, c ^ 8, c).astype(np.uint8)
    return F.mx(x, code=code)


def mxfp4_blocks_down_the_columns(x):
    """Strides exchanged: a block is 32 rows of one column, and the scales lie as [rows / 32][cols] in the buffer for [rows][cols / 32]."""
    r = F.mx(np.ascontiguousarray(x.T))
    return F.Result(np.ascontiguousarray(r.codes.T), np.ascontiguousarray(r.scales.T).reshape(len(x), -1))


def mxfp4_half_encoded_as_normal(x):
    """The integer trick cuts exponent and one mantissa bit without the shift for subnormal codes: 0.5 becomes 0, and 0.75 to 1 becomes 0.5 or 1."""
    def element(y):
        u = bits_of(np.abs(y).astype(F32))
        c = (u + 0x1FFFFF + ((u >> 22) & 1) >> 22) - 252
        return signed(np.clip(c, 0, 7), y, 8)
    return F.mx(x, element=element)


def mxfp4_scale_one_block_late(x):
    """Software pipelining: the codes of a block are made with the scale of the block before, in the order of memory; the stored scales are right."""
    def divisor(s, b):
        d = F.power(s).ravel()
        return np.concatenate([d[:1], d[:-1]]).reshape(s.shape)
    return F.mx(x, divisor=divisor)


def mxfp4_scalar_tail_truncates(x):
    """Vectors of 64 columns; the remaining 32 columns of a row go through scalar code that cuts toward zero."""
    r = F.mx(x)
    n = x.shape[1] // 64 * 64
    tail = F.mx(np.ascontiguousarray(x[:, n:]), element=lambda y: signed(truncated(F.E2M1, np.abs(y)), y, 8))
    r.codes[:, n:] = tail.codes
    return r


def mxfp4_exponent_cast_toward_zero(x):
    """(int)log2f(amax) in place of floor: below 1 the exponent is one too large unless amax is a power of two."""
    def byte(a):
        m, e = np.frexp(a)
        e = e.astype(np.int64) - 1
        e = np.where((e < 0) & (m != 0.5), e + 1, e)
        return np.where(a > 0, np.clip(e - 2 + 127, 0, 254), 0).astype(np.uint8)
    return F.mx(x, byte=byte)


def mxfp4_rotated_data_plain_maximum(x):
    """Two: a Hadamard rotation by 32 is left switched on, and the scale still comes from the block before the rotation."""
    plain = F.abs_max(F.in_blocks(x, 32))
    return F.mx(F.rotate(x, 32), amax=lambda b: plain)


# ---- MXFP8


def mxfp8_e4m3_saturates_at_240(x):
    """The clamp is that of the E4M3 with infinities: magnitudes above 240 become 240."""
    return F.mxfp8(x, scaled=lambda y: np.clip(y, -240, 240))


def mxfp8_e4m3_rounded_through_bfloat16(x):
    """The scaled number is rounded to bfloat16 and then to E4M3."""
    return F.mxfp8(x, scaled=lambda y: F.bf16(y.astype(F32)))


def mxfp8_e4m3_overflow_becomes_nan(x):
    """The conversion does not saturate: from 464 on (the tie goes up) the code is NaN, 0x7F or 0xFF."""
    def element(y):
        a = np.abs(y)
        return signed(np.where(a >= 464, 127, F.nearest(F.E4M3, a)), y, 128)
    return F.mxfp8(x, element=element)


def mxfp8_e4m3_maximum_window_16_late(x):
    """The pointer for the maximum is 16 elements ahead of the one for the data, so each scale covers half its block and half the next in memory."""
    ahead = F.abs_max(F.in_blocks(np.roll(x.ravel(), -16).reshape(x.shape), 32))
    return F.mxfp8(x, amax=lambda b: ahead)


def mxfp8_e4m3_subnormal_shift_one_short(x):
    """Below 2^-6 the mantissa is shifted one place too little, so subnormal codes are twice too large, capped at 7."""
    def element(y):
        a = np.abs(y)
        return signed(np.where(a < 2.0**-6, np.minimum(np.rint(a * 1024), 7).astype(np.int64), F.nearest(F.E4M3, a)), y, 128)
    return F.mxfp8(x, element=element)


def mxfp8_e5m2_high_byte_of_half_shared_by_64(x):
    """Two: E5M2 is made as the upper byte of a binary16 (cut toward zero), and two neighbouring blocks share their maximum."""
    def amax(b):
        a = F.abs_max(b)
        n = a.shape[1] // 2 * 2
        a[:, :n] = np.repeat(a[:, :n].reshape(len(a), -1, 2).max(-1), 2, axis=1)
        return a
    return F.mxfp8_e5m2(x, amax=amax, element=lambda y: signed(truncated(F.E5M2, np.abs(y)), y, 128))


def mxfp8_e5m2_rounds_into_infinity(x):
    """The carry of rounding is not caught: from 61440 on the code is infinity, 0x7C, in place of the largest number."""
    def element(y):
        a = np.abs(y)
        return signed(np.where(a >= 61440, 0x7C, F.nearest(F.E5M2, a)), y, 128)
    return F.mxfp8_e5m2(x, element=element)


def mxfp8_e5m2_four_bytes_reversed(x):
    """Four codes are put into a 32-bit word with the first in the highest byte, on a little-endian device."""
    return F.mxfp8_e5m2(x, code=lambda c, b: c.reshape(*c.shape[:2], 8, 4)[..., ::-1].reshape(c.shape))


# ---- MXINT8


def mxint8_wraps_at_128(x):
    """No clamp before the cast to 8 bits: +128 wraps to -128, and -128 is kept."""
    return F.mxint8(x, element=lambda y: (np.rint(y * 64).astype(np.int64) & 0xFF).astype(np.uint8))


def mxint8_half_added_before_cast(x):
    """(int)(v + 0.5f) for both signs: negative numbers are moved toward zero."""
    return F.mxint8(x, element=lambda y: np.clip(np.trunc(y * 64 + 0.5), -127, 127).astype(np.int8).view(np.uint8))


def mxint8_sign_and_magnitude(x):
    """A negative number is written as a sign bit and a magnitude, not as two's complement."""
    def element(y):
        v = np.clip(np.rint(y * 64), -127, 127).astype(np.int64)
        return (np.abs(v) | np.where(v < 0, 128, 0)).astype(np.uint8)
    return F.mxint8(x, element=element)


def mxint8_steps_of_63_5_and_floor_on_maximum(x):
    """Two: the number is multiplied by 127 / 2 in place of 64, and the block maximum is held at 1e-4 at least."""
    return F.mxint8(x, amax=lambda b: np.maximum(F.abs_max(b), F32(1e-4)),
                    element=lambda y: np.clip(np.rint(y * 63.5), -127, 127).astype(np.int8).view(np.uint8))


ROWS = [(f.__name__, f, kind, rows, cols) for f, kind, rows, cols in [
    (nvfp4_tensor_amax_last_workgroup_wins, "heavy", 256, 512),
    (nvfp4_reciprocal_of_2688_in_three_digits, "heavy", 256, 1024),
    (nvfp4_maximum_of_signed_bits, "activation", 128, 512),
    (nvfp4_scale_truncated_and_subnormal_scale_flushed, "wide", 192, 512),
    (nvfp4_threshold_typed_3_25, "activation", 64, 256),
    (nvfp4_scale_of_lane_shifted_by_five, "silent", 96, 512),
    (nvfp4_tail_rows_without_tensor_scale, "activation", 100, 512),
    (nvfp4_subnormal_scale_read_with_hidden_one, "wide", 256, 256),
    (nvfp4_amax_over_strided_lanes, "heavy", 128, 256),
    (nvfp4_loaded_as_half, "small", 256, 512),
    (nvfp4_square_tiles_for_activations, "silent", 128, 512),
    (nvfp4_swizzle_with_4_and_32_exchanged, "activation", 256, 512),
    (nvfp4_stochastic_rounding_left_on, "heavy", 128, 512),
    (nvfp4_short_reciprocals_twice, "heavy", 256, 1024),
    (mxfp4_rounding_constant_one_bit_low, "activation", 128, 512),
    (mxfp4_log2_in_bfloat16, "small", 128, 512),
    (mxfp4_overflow_wraps_to_zero, "heavy", 64, 512),
    (mxfp4_reduction_misses_offset_16, "activation", 128, 256),
    (mxfp4_subnormal_input_flushed, "special", 256, 512),
    (mxfp4_halves_interleaved, "activation", 64, 256),
    (mxfp4_doubled_table_first_best, "activation", 128, 384),
    (mxfp4_signed_maximum_flips_block, "silent", 128, 512),
    (mxfp4_blocks_down_the_columns, "heavy", 128, 384),
    (mxfp4_half_encoded_as_normal, "activation", 96, 256),
    (mxfp4_scale_one_block_late, "silent", 100, 512),
    (mxfp4_scalar_tail_truncates, "activation", 128, 288),
    (mxfp4_exponent_cast_toward_zero, "wide", 128, 256),
    (mxfp4_rotated_data_plain_maximum, "activation", 128, 512),
    (mxfp8_e4m3_saturates_at_240, "heavy", 64, 512),
    (mxfp8_e4m3_rounded_through_bfloat16, "heavy", 256, 512),
    (mxfp8_e4m3_overflow_becomes_nan, "activation", 128, 512),
    (mxfp8_e4m3_maximum_window_16_late, "silent", 128, 256),
    (mxfp8_e4m3_subnormal_shift_one_short, "activation", 256, 512),
    (mxfp8_e5m2_high_byte_of_half_shared_by_64, "heavy", 128, 512),
    (mxfp8_e5m2_rounds_into_infinity, "special", 128, 512),
    (mxfp8_e5m2_four_bytes_reversed, "wide", 64, 256),
    (mxint8_wraps_at_128, "heavy", 128, 1024),
    (mxint8_half_added_before_cast, "activation", 128, 256),
    (mxint8_sign_and_magnitude, "silent", 64, 512),
    (mxint8_steps_of_63_5_and_floor_on_maximum, "small", 128, 512),
]]
