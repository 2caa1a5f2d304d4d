"""Forty wrong quantisation kernels, each with a mistake (six with two) of a kind that engineers make."""
import numpy as np

import formats as F
import inputs

F32 = np.float32
LADDER = F.E2M1.astype(np.float64)


def signed(magnitude, y, bit):
    return (magnitude | np.where(np.signbit(y), bit, 0)).astype(np.uint8)


def toward_zero(table, v):
    return np.clip(np.searchsorted(table, v, side="right") - 1, 0, len(table) - 1)


def by_limits(limits, y):
    """E2M1 code by a ladder of comparisons: a number equal to a limit goes up."""
    return signed(np.searchsorted(np.asarray(limits, np.float64), np.abs(np.asarray(y, np.float64)), side="right"), y, 8)


def e2m1_ties_away(y):
    return by_limits((LADDER[1:] + LADDER[:-1]) / 2, y)


# ---------------------------------------------------------------- NVFP4


def nvfp4_input_loaded_as_fp16(x):
    """The loader casts float32 input to fp16 before anything else, so small rows lose bits (fp16 subnormals) or become zero."""
    return F.nv(np.clip(x, -65504, 65504).astype(np.float16).astype(F32))


def nvfp4_shuffle_reduction_one_step_short(x):
    """The xor shuffle for the block maximum stops at distance 4: each half of the 16 lanes keeps its own maximum and divides by its own scale.
    Lane 0 stores its scale for the whole block."""
    first = F.nv(x, amax=lambda b: np.abs(b[..., :8]).max(-1))
    second = F.nv(x, amax=lambda b: np.abs(b[..., 8:]).max(-1))
    codes = np.where(np.arange(x.shape[1]) % 16 < 8, first.codes, second.codes)
    return F.Result(codes, first.scales, first.tensor_scale)


def nvfp4_tensor_maximum_read_before_grid_sync(x):
    """Each tile of 32 rows reads the global maximum after its own atomicMax but before later tiles have done theirs.
    Early tiles work with too small a tensor scale; the one that is stored is the final one."""
    def running(x):
        tiles = np.abs(x).max(1).reshape(-1, 32).max(1)
        return np.repeat(np.maximum.accumulate(tiles), 32)[:, None] / F32(448 * 6)
    return F.nv(x, tensor=running, stored_tensor=lambda t: F32(t.max()))


def nvfp4_block_scale_at_least_least_normal(x):
    """The block scale is clamped to 2^-6 (the least normal e4m3) from below, so quiet blocks never get a subnormal scale."""
    return F.nv(x, store=lambda r: F.nearest(F.E4M3, np.clip(r, F32(2.0**-6), F32(448))).astype(np.uint8))


def nvfp4_divides_by_scale_before_e4m3(x):
    """Elements are divided by amax / 6 in float32, not by the e4m3 scale that is stored: the reader multiplies by another number."""
    def divide(b, f, t):
        return b * F32(6) / np.abs(b).max(-1, keepdims=True)
    return F.nv(x, divide=divide)


def nvfp4_scales_swizzled_for_tensor_core(x):
    """The scales are written in the 128x4 tiled layout that the tensor core reads, though the caller asked for row-major scales."""
    def swizzle(s):
        rows, blocks = s.shape
        return s.reshape(rows // 128, 4, 32, blocks // 4, 4).transpose(0, 3, 2, 1, 4).reshape(rows, blocks)
    return F.nv(x, final=swizzle)


def nvfp4_nibbles_swapped(x):
    """The packing puts the even column in the high nibble and the odd one in the low nibble, so that neighbours change places."""
    r = F.nv(x)
    return F.Result(np.ascontiguousarray(r.codes.reshape(len(x), -1, 2)[..., ::-1]).reshape(x.shape), r.scales, r.tensor_scale)


def nvfp4_scale_cast_truncates(x):
    """The float to e4m3 cast of the block scale drops the low mantissa bits (a shift without a rounding constant)."""
    return F.nv(x, store=lambda r: toward_zero(F.E4M3, np.minimum(r, F32(448))).astype(np.uint8))


def nvfp4_limit_between_4_and_6_typed_4_5(x):
    """In the comparison ladder of the element the last limit is 4.5 and not 5, as if the step from 3 to 4 went on; numbers in 4.5..5 become 6."""
    def element(y):
        a = np.abs(y)
        return np.where(a >= 4.5, signed(7, y, 8), F.e2m1(y)).astype(np.uint8)
    return F.nv(x, element=element)


def nvfp4_hadamard_last_stage_missing(x):
    """The loop over butterflies runs while h < n / 2: the 16-wide Hadamard rotation is really two of 8, yet it is scaled by 1/4."""
    return F.nv(F.butterflies(x, 8) * F32(0.25))


def nvfp4_stochastic_rounding_left_on(x):
    """The flag for stochastic rounding, meant for gradients only, is still set when the weights are quantised."""
    def element(y):
        i = np.arange(y.size, dtype=np.uint64) + np.uint64(0x1234)
        i = (i ^ (i >> np.uint64(7))) * np.uint64(0x9E3779B97F4A7C15)
        i = (i ^ (i >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
        u = ((i >> np.uint64(40)).astype(np.float64) / 2.0**24).reshape(y.shape)
        a = np.minimum(np.abs(y).astype(np.float64), 6)
        lo = np.minimum(toward_zero(LADDER, a), 6)
        part = (a - LADDER[lo]) / (LADDER[lo + 1] - LADDER[lo])
        return signed(lo + (part > u), y, 8)
    return F.nv(x, element=element)


def nvfp4_last_half_tile_not_launched(x):
    """The grid has cols // 64 programs and not the ceiling: with 288 columns the last 32 stay as the zero-filled buffer had them."""
    r = F.nv(x)
    codes, scales, done = r.codes.copy(), r.scales.copy(), x.shape[1] // 64 * 64
    codes[:, done:], scales[:, done // 16 :] = 0, 0
    return F.Result(codes, scales, r.tensor_scale)


def nvfp4_maximum_of_32_and_ties_away(x):
    """Two mistakes: the maximum is taken over 32 columns (left from the MXFP4 kernel) and stored for both blocks of 16.
    And a number halfway between two codes goes away from zero."""
    def amax(b):
        a = np.abs(b).max(-1)
        return np.repeat(a.reshape(len(a), -1, 2).max(-1), 2, axis=1)
    return F.nv(x, amax=amax, element=e2m1_ties_away)


def nvfp4_tensor_scale_inverted_and_no_minus_zero(x):
    """Two mistakes: the tensor scale is stored as its reciprocal (448 * 6 / amax), as the quantiser uses it and not as the reader needs it.
    And negative numbers that round to zero lose their sign."""
    return F.nv(x, stored_tensor=lambda t: F32(F32(1) / t), code=lambda c, b: np.where(c == 8, 0, c).astype(np.uint8))


# ---------------------------------------------------------------- MXFP4


def mxfp4_scale_rounds_log2(x):
    """The scale's exponent is round(log2(amax)) - 2 and not floor: blocks with a maximum above 1.414 * 2^k get twice the scale."""
    def byte(a):
        with np.errstate(divide="ignore"):
            e = np.rint(np.log2(a.astype(np.float64)))
        return np.where(a > 0, np.clip(e - 2 + 127, 0, 254), 0).astype(np.uint8)
    return F.mx(x, byte=byte)


def mxfp4_maximum_kept_in_bf16(x):
    """The block maximum is rounded to bf16 in shared memory; one just below a power of two is rounded up to it and the scale doubles."""
    return F.mx(x, amax=lambda b: F.bf16(np.abs(b).max(-1)))


def mxfp4_zero_block_has_scale_one(x):
    """A guard replaces a maximum of zero by the scale 1: blocks of zeros store byte 127 and not 0."""
    return F.mx(x, byte=lambda a: np.where(a > 0, F.floor_byte(a, 2), 127).astype(np.uint8))


def mxfp4_floor_log2_of_maximum_over_six(x):
    """The scale is 2^floor(log2(amax / 6)), dividing by the greatest value and not by its power of two.
    Maxima with a mantissa below 1.5 get half the scale, and saturate."""
    return F.mx(x, byte=lambda a: F.floor_byte((a / F32(6)).astype(F32), 0))


def mxfp4_round_carry_into_sign_bit(x):
    """The element is rounded by adding to its bits, with no clamp before: numbers of 7 and more carry from 0x7 into the sign bit and become -0."""
    def element(y):
        return np.where(np.abs(y) >= 7, 8, F.e2m1(y)).astype(np.uint8)
    return F.mx(x, element=element)


def mxfp4_half_flushed_as_subnormal(x):
    """The encoder flushes subnormal elements: what should be the code of 0.5 becomes zero (the sign stays)."""
    return F.mx(x, code=lambda c, b: np.where((c & 7) == 1, c & 8, c).astype(np.uint8))


def mxfp4_lanes_take_even_and_odd_columns(x):
    """Vector loads give each thread group every second column of 64: one scale covers the 32 even columns and the next the 32 odd ones.
    The codes are written to the right places."""
    rows, cols = x.shape
    r = F.mx(np.ascontiguousarray(x.reshape(rows, -1, 32, 2).swapaxes(2, 3)).reshape(rows, cols))
    return F.Result(np.ascontiguousarray(r.codes.reshape(rows, -1, 2, 32).swapaxes(2, 3)).reshape(rows, cols), r.scales)


def mxfp4_scales_written_column_major(x):
    """The scale's address is block * rows + row, the layout of the transposed operand, in a buffer that is read row by row."""
    r = F.mx(x)
    return F.Result(r.codes, np.ascontiguousarray(r.scales.T).reshape(r.scales.shape))


def mxfp4_maximum_not_reset_in_loop(x):
    """The accumulator of the maximum is set to zero once for each tile of 128 columns, outside the loop over its four blocks.
    A block sees the maxima of those before it."""
    def amax(b):
        a = np.abs(b).max(-1)
        return np.maximum.accumulate(a.reshape(len(a), -1, 4), -1).reshape(a.shape)
    return F.mx(x, amax=amax)


def mxfp4_sign_from_bit_15(x):
    """The sign is taken from bit 15 of the input word, right for bf16 but a mantissa bit in float32: signs are as good as random."""
    def code(c, b):
        return ((c & 7) | ((b.view(np.uint32) >> np.uint32(15) & np.uint32(1)) << np.uint32(3))).astype(np.uint8)
    return F.mx(x, code=code)


def mxfp4_row_index_modulo_128(x):
    """The row offsets of the loads are wrapped with % 128 (the tile height) and not with the number of rows: rows 128 and on repeat the first ones."""
    return F.mx(x[np.arange(len(x)) % 128])


def mxfp4_halves_packed_together(x):
    """Byte i of a block holds elements i and i + 16 (as in GGUF files), where the format wants elements 2i and 2i + 1."""
    r = F.mx(x)
    halves = r.codes.reshape(len(x), -1, 2, 16).swapaxes(2, 3)
    return F.Result(np.ascontiguousarray(halves).reshape(x.shape), r.scales)


def mxfp4_scale_of_previous_block_and_ties_away(x):
    """Two mistakes: in the pipelined loop a block is divided by the scale of the block before it in the row (the first one by its own).
    And ties go away from zero."""
    return F.mx(x, divisor=lambda s, b: F.power(np.concatenate([s[:, :1], s[:, :-1]], 1)), element=e2m1_ties_away)


def mxfp4_scale_rounded_up_and_elements_truncated(x):
    """Two mistakes: the scale's exponent is ceil(log2(amax)) - 2 and not floor.
    And the elements are rounded toward zero, since the bits are shifted out without a rounding step."""
    def byte(a):
        m, e = np.frexp(a)
        e = e.astype(np.int64) - (m == 0.5)
        return np.where(a > 0, np.clip(e - 2 + 127, 0, 254), 0).astype(np.uint8)
    return F.mx(x, byte=byte, element=lambda y: signed(toward_zero(LADDER, np.abs(y)), y, 8))


# ---------------------------------------------------------------- MXFP8


def mxfp8_e4m3_fnuz_codes(x):
    """On an older GPU the hardware cast gives e4m3fnuz (bias 8, greatest value 240): codes are one exponent too high and saturate early."""
    table = F.float_table(4, 3, 8, 127)

    def element(y):
        c = F.nearest(table, np.abs(y))
        return np.where(c > 0, signed(c, y, 128), 0).astype(np.uint8)
    return F.mxfp8(x, element=element)


def mxfp8_e4m3_rounded_twice_through_bf16(x):
    """The scaled element is stored as bf16 and then cast to e4m3: numbers just beside a tie become a tie and are rounded a second time."""
    return F.mxfp8(x, scaled=lambda y: F.bf16(y.astype(F32)))


def mxfp8_e4m3_overflow_becomes_nan(x):
    """The cast to e4m3 does not saturate: scaled elements above 464 become NaN (0x7f) where they should become 448."""
    return F.mxfp8(x, element=lambda y: np.where(np.abs(y) > 464, signed(127, y, 128), F.e4m3(y)).astype(np.uint8))


def mxfp8_e4m3_subnormal_elements_flushed(x):
    """Elements below 2^-6 after scaling are flushed to zero: the fast encoder has no branch for subnormal codes."""
    return F.mxfp8(x, code=lambda c, b: np.where((c & 127) < 8, c & 128, c).astype(np.uint8))


def mxfp8_e4m3_scale_words_in_reverse(x):
    """Four scale bytes are packed into one word with the first in the highest byte, but the word is stored little-endian: each four are reversed."""
    def stored(s):
        return np.ascontiguousarray(s.reshape(len(s), -1, 4)[..., ::-1]).reshape(s.shape)
    return F.mxfp8(x, stored=stored)


def mxfp8_e5m2_with_exponent_of_e4m3(x):
    """The constant emax is still 8, that of e4m3, in the e5m2 path: all scales are 2^7 too large and the top of the range is never used."""
    return F.mxfp8_e5m2(x, emax=8)


def mxfp8_e5m2_high_byte_of_fp16(x):
    """The element is cast to fp16 and its high byte taken as e5m2, which truncates the mantissa and does not round it."""
    def element(y):
        h = np.clip(y, -57344, 57344).astype(np.float16)
        return (h.view(np.uint16) >> np.uint16(8)).astype(np.uint8)
    return F.mxfp8_e5m2(x, element=element)


def mxfp8_e5m2_half_block_maximum_and_infinities(x):
    """Two mistakes: the maximum covers only the first 16 of the 32 elements, the width of one vector load.
    And scaled elements beyond the range become infinity (0x7c), not the greatest number."""
    def element(y):
        return np.where(np.abs(y) >= 61440, signed(124, y, 128), F.e5m2(y)).astype(np.uint8)
    return F.mxfp8_e5m2(x, amax=lambda b: np.abs(b[..., :16]).max(-1), element=element)


# ---------------------------------------------------------------- MXINT8


def mxint8_cast_truncates(x):
    """The scaled number is converted to an integer by a C cast, which truncates toward zero, without rint before."""
    return F.mxint8(x, element=lambda y: np.clip(np.trunc(y * 64), -127, 127).astype(np.int8).view(np.uint8))


def mxint8_clamps_at_minus_128(x):
    """The clamp is that of the type int8, -128 to 127, and not symmetric: the code 0x80 appears."""
    return F.mxint8(x, element=lambda y: np.clip(np.rint(y * 64), -128, 127).astype(np.int8).view(np.uint8))


def mxint8_sign_and_magnitude(x):
    """Negative codes are stored as a sign bit and a magnitude, as in the float formats, and not in two's complement."""
    return F.mxint8(x, element=lambda y: signed(np.minimum(np.rint(np.abs(y) * 64), 127).astype(np.int64), y, 128))


def mxint8_wraps_and_ties_away(x):
    """Two mistakes: there is no clamp, so that a number that rounds to 128 wraps round to -128.
    And ties are rounded away from zero, by adding a half of the sign and truncating."""
    return F.mxint8(x, element=lambda y: np.trunc(y * 64 + np.copysign(0.5, y)).astype(np.int64).astype(np.int8).view(np.uint8))


ROWS = [(f.__name__, f, kind, rows, cols) for f, kind, rows, cols in [
    (nvfp4_input_loaded_as_fp16, "wide", 128, 512),
    (nvfp4_shuffle_reduction_one_step_short, "activation", 64, 512),
    (nvfp4_tensor_maximum_read_before_grid_sync, "heavy", 256, 256),
    (nvfp4_block_scale_at_least_least_normal, "wide", 128, 512),
    (nvfp4_divides_by_scale_before_e4m3, "heavy", 64, 512),
    (nvfp4_scales_swizzled_for_tensor_core, "activation", 256, 256),
    (nvfp4_nibbles_swapped, "activation", 64, 256),
    (nvfp4_scale_cast_truncates, "activation", 128, 256),
    (nvfp4_limit_between_4_and_6_typed_4_5, "heavy", 64, 512),
    (nvfp4_hadamard_last_stage_missing, "activation", 64, 512),
    (nvfp4_stochastic_rounding_left_on, "activation", 128, 512),
    (nvfp4_last_half_tile_not_launched, "heavy", 96, 288),
    (nvfp4_maximum_of_32_and_ties_away, "activation", 128, 512),
    (nvfp4_tensor_scale_inverted_and_no_minus_zero, "small", 64, 256),
    (mxfp4_scale_rounds_log2, "activation", 64, 512),
    (mxfp4_maximum_kept_in_bf16, "heavy", 256, 1024),
    (mxfp4_zero_block_has_scale_one, "silent", 64, 512),
    (mxfp4_floor_log2_of_maximum_over_six, "heavy", 128, 256),
    (mxfp4_round_carry_into_sign_bit, "activation", 64, 512),
    (mxfp4_half_flushed_as_subnormal, "small", 64, 256),
    (mxfp4_lanes_take_even_and_odd_columns, "heavy", 128, 512),
    (mxfp4_scales_written_column_major, "wide", 64, 512),
    (mxfp4_maximum_not_reset_in_loop, "activation", 128, 512),
    (mxfp4_sign_from_bit_15, "heavy", 64, 256),
    (mxfp4_row_index_modulo_128, "activation", 192, 256),
    (mxfp4_halves_packed_together, "heavy", 64, 512),
    (mxfp4_scale_of_previous_block_and_ties_away, "activation", 128, 512),
    (mxfp4_scale_rounded_up_and_elements_truncated, "activation", 64, 512),
    (mxfp8_e4m3_fnuz_codes, "activation", 64, 512),
    (mxfp8_e4m3_rounded_twice_through_bf16, "heavy", 128, 512),
    (mxfp8_e4m3_overflow_becomes_nan, "activation", 128, 512),
    (mxfp8_e4m3_subnormal_elements_flushed, "activation", 256, 1024),
    (mxfp8_e4m3_scale_words_in_reverse, "heavy", 64, 512),
    (mxfp8_e5m2_with_exponent_of_e4m3, "heavy", 64, 256),
    (mxfp8_e5m2_high_byte_of_fp16, "activation", 64, 512),
    (mxfp8_e5m2_half_block_maximum_and_infinities, "heavy", 128, 512),
    (mxint8_cast_truncates, "activation", 64, 256),
    (mxint8_clamps_at_minus_128, "heavy", 256, 1024),
    (mxint8_sign_and_magnitude, "small", 64, 256),
    (mxint8_wraps_and_ties_away, "activation", 256, 1024),
]]


def right(name, x):
    if "hadamard" in name:
        return F.nv(F.rotate(x, 16))
    for prefix, kernel in (("nvfp4_", F.nv), ("mxfp4_", F.mx), ("mxfp8_e5m2_", F.mxfp8_e5m2), ("mxfp8_e4m3_", F.mxfp8), ("mxint8_", F.mxint8)):
        if name.startswith(prefix):
            return kernel(x)
    raise KeyError(name)


def same(a, b):
    return np.array_equal(a.codes, b.codes) and np.array_equal(a.scales, b.scales) and a.tensor_scale == b.tensor_scale


if __name__ == "__main__":
    names = [r[0] for r in ROWS]
    assert len(set(names)) == 40
    assert [sum(n.startswith(p) for n in names) for p in ("nvfp4_", "mxfp4_", "mxfp8_", "mxint8_")] == [14, 14, 8, 4]
    assert sum(f.__doc__.startswith("Two mistakes:") for _, f, *_ in ROWS) == 6
    for name, f, kind, rows, cols in ROWS:
        assert 64 <= rows <= 256 and 256 <= cols <= 1024 and cols % 32 == 0, name
        for seed in (1, 2):
            x = inputs.KINDS[kind](np.random.default_rng(seed), rows, cols)
            kept, good = x.copy(), right(name, x)
            one, two = f(x), f(x)
            assert x.dtype == F32 and np.array_equal(x.view(np.uint32), kept.view(np.uint32)), name
            assert same(one, two), name
            for a, b in ((one.codes, good.codes), (one.scales, good.scales)):
                assert a.shape == b.shape and a.dtype == b.dtype, (name, a.shape, b.shape, a.dtype, b.dtype)
            assert type(one.tensor_scale) is type(good.tensor_scale), name
            assert (one.bits, one.packed) == (good.bits, good.packed), name
            assert good.bits == 8 or one.codes.max() < 16, name
            assert not same(one, good), name
            print(f"{name:56} {kind:10} codes {np.mean(one.codes != good.codes):8.4%}  scales {np.mean(one.scales != good.scales):8.4%}")
    print("all right")
