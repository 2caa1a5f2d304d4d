"""Forty wrong quantisation kernels: mistakes that engineers make in real ones."""
import numpy as np

import formats as F
import inputs

F32 = np.float32
E2M1 = F.E2M1.astype(np.float64)


def signed(magnitude, y, bit):
    return (np.asarray(magnitude).astype(np.int64) | np.where(np.signbit(y), bit, 0)).astype(np.uint8)


def toward_zero(table, y, bit):
    return signed(np.clip(np.searchsorted(table, np.abs(y), side="right") - 1, 0, len(table) - 1), y, bit)


def ladder(steps, y):
    """Code as the number of thresholds reached, as in a chain of >= comparisons."""
    return signed(np.searchsorted(np.array(steps, np.float64), np.abs(np.asarray(y, np.float64)), side="right"), y, 8)


AWAY = (0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5)


# ---------------------------------------------------------------- NVFP4
def nvfp4_high_half_max_without_abs(x):
    """Block scales are too small where the largest number is negative and in an odd column: of each bf16x2 word the abs mask
    0x00007FFF clears only the low half's sign before the max."""
    def amax(b):
        return np.maximum(np.abs(b[..., ::2]).max(-1), np.maximum(b[..., 1::2], 0).max(-1))
    return F.nv(x, amax=amax)


def nvfp4_tensor_max_stored_without_atomic(x):
    """The tensor scale comes from the last row only: each thread block (one a row) writes its maximum with a plain store in
    place of atomicMax, and the last block wins."""
    return F.nv(x, tensor=lambda x: np.abs(x[-1]).max() / F32(448 * 6))


def nvfp4_tensor_scale_handed_over_inverted(x):
    """Codes and block scales are right, but the tensor scale returned to the caller is the encode scale 448 * 6 / amax, where
    the GEMM's alpha expects the decode scale amax / (448 * 6)."""
    return F.nv(x, stored_tensor=lambda t: F32(1) / F32(t))


def nvfp4_block_scale_rounded_up(x):
    """Block scales are up to one e4m3 step too large: the conversion rounds toward plus infinity (the mode meant for
    ue8m0 scales was passed to the e4m3 convert too)."""
    return F.nv(x, store=lambda r: np.minimum(np.searchsorted(F.E4M3, r.astype(np.float64)), 126).astype(np.uint8))


def nvfp4_divides_by_unrounded_scale(x):
    """Elements are divided by the binary32 scale from before its rounding to e4m3, so the codes do not belong to the stored
    scale."""
    def divide(b, f, t):
        return b / np.abs(b).max(-1)[..., None] * F32(6)
    return F.nv(x, divide=divide)


def nvfp4_subnormal_scales_flushed(x):
    """Blocks with small numbers come out as zeros: a hand-written float to e4m3 routine for scales has no subnormal branch
    and returns 0 below 2^-6."""
    def store(r):
        s = F.nearest(F.E4M3, np.minimum(r, F32(448))).astype(np.uint8)
        return np.where(r < F32(2 ** -6), 0, s).astype(np.uint8)

    def divide(b, f, t):
        return np.where((f == 0)[..., None], np.copysign(F32(0), b), b / np.where(f == 0, F32(1), f * t)[..., None])
    return F.nv(x, store=store, divide=divide)


def nvfp4_scales_left_in_tensor_core_layout(x):
    """The scales are returned in the 128x4 interleaved layout of the block-scaled MMA (32 x 4 x 4 inside each tile), though
    the linear row-major layout was asked for."""
    def final(s):
        rows, n = s.shape
        r, k = np.arange(rows)[:, None], np.arange(n)[None]
        out = np.empty(s.size, np.uint8)
        out[(r // 128 * (n // 4) + k // 4) * 512 + r % 32 * 16 + r // 32 % 4 * 4 + k % 4] = s
        return out.reshape(rows, n)
    return F.nv(x, final=final)


def nvfp4_max_register_not_reset(x):
    """Each thread handles four blocks one after the other and sets its maximum to 0 only before the loop, so the second to
    fourth block have the running maximum of those before them."""
    def amax(b):
        a = np.abs(b).max(-1)
        return np.maximum.accumulate(a.reshape(len(a), -1, 4), axis=2).reshape(a.shape)
    return F.nv(x, amax=amax)


def nvfp4_reciprocal_kept_in_bf16(x):
    """Some elements go to the neighbouring code: the reciprocal of scale times tensor scale is kept in a bf16 register of the
    input's type before the multiplication."""
    def divide(b, f, t):
        return b * F.bf16(F32(1) / (f * t))[..., None]
    return F.nv(x, divide=divide)


def nvfp4_stochastic_rounding_left_on(x):
    """Elements of the forward pass must be rounded to nearest, but the gradients' stochastic rounding is left on, with a hash of
    the element's index as random numbers."""
    def element(y):
        a = np.minimum(np.abs(np.asarray(y, np.float64)), 6)
        lo = np.minimum(np.searchsorted(E2M1, a, side="right") - 1, 6)
        h = (np.arange(y.size, dtype=np.uint64) * np.uint64(2654435761) + np.uint64(12345)) & np.uint64(0xFFFFFFFF)
        h = (h ^ h >> np.uint64(15)) * np.uint64(2246822519) & np.uint64(0xFFFFFFFF)
        u = (h.astype(np.float64) / 2 ** 32).reshape(y.shape)
        return signed(lo + (u < (a - E2M1[lo]) / (E2M1[lo + 1] - E2M1[lo])), y, 8)
    return F.nv(x, element=element)


def nvfp4_gradient_rotation_left_on(x):
    """The random-sign Hadamard transform of width 16, meant for the operands of the weight gradient only, is applied to the
    row-wise forward copy also."""
    signs = np.array([1, 1, 1, -1, 1, -1, -1, -1, -1, -1, -1, 1, -1, 1, -1, -1], F32)
    return F.nv(F.rotate(x * np.tile(signs, x.shape[1] // 16), 16))


def nvfp4_last_half_tile_of_columns_unwritten(x):
    """The last 32 columns are never written when columns are not a multiple of 64: the grid is cols / 64 in place of the
    ceiling, so codes and scales keep the zeros of the allocation."""
    q, done = F.nv(x), x.shape[1] // 64 * 64
    q.codes, q.scales = q.codes.copy(), q.scales.copy()
    q.codes[:, done:] = 0
    q.scales[:, done // 16:] = 0
    return q


def nvfp4_nibbles_swapped_and_tensor_scale_without_448(x):
    """Two mistakes: the even column goes to the high nibble of each byte; and the tensor scale is amax / 6, the 448 of the
    block scale's range forgotten, so that block scales are at most 1."""
    def code(c, b):
        return c.reshape(*c.shape[:-1], -1, 2)[..., ::-1].reshape(c.shape)
    return F.nv(x, tensor=lambda x: np.abs(x).max() / F32(6), code=code)


def nvfp4_zero_blocks_scale_one_and_half_code_flushed(x):
    """Two mistakes: blocks of zeros get the scale 1.0 (byte 0x38) from a guard against division by zero; and e2m1's only
    subnormal, 0.5 (code 1), is flushed to zero with its sign kept, since the bit-twiddling encoder treats exponent 0 as zero."""
    return F.nv(x, code=lambda c, b: np.where(c & 7 == 1, c & 8, c).astype(np.uint8), final=lambda s: np.where(s == 0, 0x38, s).astype(np.uint8))


# ---------------------------------------------------------------- MXFP4
def mxfp4_scale_floor_of_amax_over_six(x):
    """Scales are one power too small for maxima of 4 to 6 times a power of two, which then saturate: the code takes
    floor(log2(amax / 6)), mixing up the largest value with its exponent."""
    def byte(a):
        _, e = np.frexp(a.astype(np.float64) / 6)
        return np.where(a > 0, np.clip(e.astype(np.int64) - 1 + 127, 0, 254), 0).astype(np.uint8)
    return F.mx(x, byte=byte)


def mxfp4_warp_shuffle_stops_at_half(x):
    """The butterfly reduction begins at the offset 8 in place of 16: each half of the warp has its own maximum and codes with
    it, and only lane 0 (the first half) stores its scale."""
    b = F.in_blocks(x, 32)
    halves = F.floor_byte(np.abs(b.reshape(*b.shape[:2], 2, 16)).max(-1), 2)
    y = b.astype(np.float64) / np.repeat(F.power(halves), 16, axis=-1)
    return F.Result(F.as_rows(F.e2m1(y), x.shape[1]), halves[..., 0].copy())


def mxfp4_input_cast_to_half(x):
    """The loader casts binary32 input to half precision before anything else, so numbers under 2^-14 lose bits or vanish."""
    return F.mx(x.astype(np.float16).astype(F32))


def mxfp4_sign_dropped_on_zero_codes(x):
    """Negative numbers that round to zero give code 0x0, not 0x8: the sign is tested as q < 0 after rounding."""
    return F.mx(x, code=lambda c, b: np.where(c == 8, 0, c).astype(np.uint8))


def mxfp4_last_threshold_typed_wrong(x):
    """Scaled numbers from 4.5 to 5 become 6 in place of 4: the last threshold of the comparison chain follows the pattern
    2.5, 3.5, 4.5, though the step there is 2."""
    def element(y):
        a = np.abs(y)
        return np.where((a > 4.5) & (a <= 5), signed(np.full(y.shape, 7), y, 8), F.e2m1(y)).astype(np.uint8)
    return F.mx(x, element=element)


def mxfp4_scale_of_previous_pipeline_stage(x):
    """In the double-buffered loop block k is coded and stored with the maximum of block k - 1, because the buffer index
    flips too late; the first block of a row, from the prologue, is right."""
    def amax(b):
        a = np.abs(b).max(-1)
        return np.concatenate([a[:, :1], a[:, :-1]], axis=1)
    return F.mx(x, amax=amax)


def mxfp4_scale_rows_strided_as_if_padded(x):
    """Scales are written with a row stride rounded up to a multiple of 4, into a buffer that has no padding: rows after the
    first are shifted, gaps hold zeros and the last rows' scales are out of bounds and dropped."""
    q = F.mx(x)
    rows, n = q.scales.shape
    at = np.arange(rows)[:, None] * (-(-n // 4) * 4) + np.arange(n)
    out = np.zeros(rows * n, np.uint8)
    out[at[at < out.size]] = q.scales[at < out.size]
    q.scales = out.reshape(rows, n)
    return q


def mxfp4_eight_nibbles_in_reverse_order(x):
    """Eight codes are shifted into a 32-bit word from the left (w = w << 4 | c), so that the first column ends in the
    highest nibble and each group of eight is reversed in memory."""
    return F.mx(x, code=lambda c, b: c.reshape(*c.shape[:-1], 4, 8)[..., ::-1].reshape(c.shape))


def mxfp4_clamped_before_scaling(x):
    """The clamp to [-6, 6] is applied to the raw input and not to the scaled one, so every outlier above 6 is cut to 6 in the
    codes (the scale is still that of the true maximum)."""
    b = np.clip(F.in_blocks(x, 32), F32(-6), F32(6))
    s = F.floor_byte(F.abs_max(F.in_blocks(x, 32)), 2)
    return F.Result(F.as_rows(F.e2m1(b.astype(np.float64) / F.power(s)[..., None]), x.shape[1]), s)


def mxfp4_tile_stored_transposed(x):
    """Within each 32 x 32 tile the codes are transposed: the epilogue reads the shared tile with row and column swapped,
    which nobody saw as the tile is square. The scales are in their right places."""
    q = F.mx(x)
    rows, cols = x.shape
    t = q.codes.reshape(rows // 32, 32, cols // 32, 32)
    q.codes = np.ascontiguousarray(t.transpose(0, 3, 2, 1)).reshape(rows, cols)
    return q


def mxfp4_rotated_scale_from_unrotated_max(x):
    """The fused kernel rotates each block by a Hadamard matrix of 32 before coding (as it should), but takes the block's
    maximum from the registers loaded before the rotation."""
    before = F.abs_max(F.in_blocks(x, 32))
    return F.mx(F.rotate(x, 32), amax=lambda b: before)


def mxfp4_second_vector_not_in_max(x):
    """Threads load eight numbers as two float4, but only the first takes part in the maximum; a larger number in columns 4
    to 7 of each eight saturates."""
    return F.mx(x, amax=lambda b: np.abs(b.reshape(*b.shape[:-1], 4, 8)[..., :4]).max((-1, -2)))


def mxfp4_stored_bias_128_and_truncated_elements(x):
    """Two mistakes: the stored scale byte has the bias 128, so that it is one too high though the divisor is right; and
    elements are cut toward zero, for want of adding a half before the shift."""
    def stored(s):
        return np.where(s > 0, np.minimum(s.astype(np.int64) + 1, 254), 0).astype(np.uint8)
    return F.mx(x, element=lambda y: toward_zero(E2M1, y, 8), stored=stored)


def mxfp4_scale_broadcast_across_rows_and_ties_away(x):
    """Two mistakes: a warp holds two rows, and the scale is broadcast from lane 0 of the warp, so odd rows use and store that of
    the row above; and elements halfway between two codes are rounded up in magnitude."""
    def byte(a):
        s = F.floor_byte(a, 2)
        return s[np.arange(len(s)) // 2 * 2]
    return F.mx(x, byte=byte, element=lambda y: ladder(AWAY, y))


# ---------------------------------------------------------------- MXFP8
def mxfp8_e4m3_written_as_fnuz(x):
    """On the older GPU the compiler's fp8 type is e4m3fnuz: bias 8, largest value 240 and no negative zero. The scale is
    still computed for e4m3fn, so codes are one exponent off and large ones saturate."""
    table = F.float_table(4, 3, 8, 127)

    def element(y):
        c = F.encode(table, y, 128)
        return np.where(c == 128, 0, c).astype(np.uint8)
    return F.mxfp8(x, element=element)


def mxfp8_e4m3_overflow_becomes_nan(x):
    """Scaled numbers that round above 448 become NaN (0x7F): the conversion was called without saturation, and the floor rule
    lets maxima come up to 512."""
    def element(y):
        return np.where(np.abs(y) > 464, signed(np.full(y.shape, 127), y, 128), F.e4m3(y)).astype(np.uint8)
    return F.mxfp8(x, element=element)


def mxfp8_e5m2_with_emax_of_e4m3(x):
    """The scale of the e5m2 path subtracts 8, the largest exponent of e4m3, in place of 15: a constant of the template was not
    specialised. All scales are 128 times too large."""
    return F.mxfp8_e5m2(x, emax=8)


def mxfp8_e5m2_top_byte_of_half(x):
    """e5m2 codes are made by casting to half precision and keeping the upper byte, which cuts toward zero in place of rounding
    to nearest even."""
    def element(y):
        return (np.clip(y, -57344, 57344).astype(np.float16).view(np.uint16) >> 8).astype(np.uint8)
    return F.mxfp8_e5m2(x, element=element)


def mxfp8_e4m3_rounded_twice_through_bf16(x):
    """The product with the inverse scale is kept in bf16 and converted to e4m3 from there: two roundings, and numbers just off
    a tie go the wrong way."""
    return F.mxfp8(x, scaled=lambda y: F.bf16(y.astype(F32)))


def mxfp8_e4m3_amax_raised_to_1e_4(x):
    """Blocks of very small numbers lose precision: the maximum is clamped from below to 1e-4, copied from a kernel with
    binary32 scales. Blocks of zeros get a scale too."""
    return F.mxfp8(x, amax=lambda b: np.maximum(np.abs(b).max(-1), F32(1e-4)))


def mxfp8_e4m3_scales_stored_column_major(x):
    """The scales are stored as [blocks][rows] (the layout for TMA loads of the other operand) into a buffer that the caller
    reads as [rows][blocks]."""
    return F.mxfp8(x, stored=lambda s: np.ascontiguousarray(s.T).reshape(s.shape))


def mxfp8_e4m3_barrier_missing_and_subnormals_flushed(x):
    """Two mistakes: for want of a barrier every fourth block's maximum is read before the last eight lanes have put theirs in;
    and e4m3 subnormals (under 2^-6 after scaling) are flushed to zero."""
    def amax(b):
        a = np.abs(b).max(-1)
        a[:, 3::4] = np.abs(b[:, 3::4, :24]).max(-1)
        return a

    def element(y):
        return F.e4m3(np.where(np.abs(y) < 2.0 ** -6, np.copysign(0.0, y), y))
    return F.mxfp8(x, amax=amax, element=element)


# ---------------------------------------------------------------- MXINT8


def mxint8_cast_truncates(x):
    """The C cast from float to int8 cuts toward zero; the call to rint before it is missing."""
    return F.mxint8(x, element=lambda y: np.clip(np.trunc(y * 64), -127, 127).astype(np.int8).view(np.uint8))


def mxint8_minus_128_allowed(x):
    """The clamp is to the range of int8, -128 to 127, and not to the symmetric range, so the most negative numbers give 0x80."""
    return F.mxint8(x, element=lambda y: np.clip(np.rint(y * 64), -128, 127).astype(np.int8).view(np.uint8))


def mxint8_sign_and_magnitude_codes(x):
    """Negative elements are written as sign bit and magnitude, as in the code shared with the fp8 path, not in two's
    complement."""
    return F.mxint8(x, element=lambda y: signed(np.minimum(np.rint(np.abs(y) * 64), 127), y, 128))


def mxint8_wraps_and_max_skips_last_lane(x):
    """Two mistakes: the loop for the maximum ends at i < 31, so the block's last number is not in it; and the cast to int8 keeps
    the low byte without saturating, so that large positive numbers become negative."""
    def element(y):
        return (np.rint(y * 64).astype(np.int64) & 255).astype(np.uint8)
    return F.mxint8(x, amax=lambda b: np.abs(b[..., :31]).max(-1), element=element)


ROWS = [(f.__name__, f, kind, rows, cols) for f, kind, rows, cols in [
    (nvfp4_high_half_max_without_abs, "activation", 64, 512),
    (nvfp4_tensor_max_stored_without_atomic, "activation", 256, 256),
    (nvfp4_tensor_scale_handed_over_inverted, "activation", 64, 256),
    (nvfp4_block_scale_rounded_up, "heavy", 64, 512),
    (nvfp4_divides_by_unrounded_scale, "activation", 128, 256),
    (nvfp4_subnormal_scales_flushed, "wide", 128, 256),
    (nvfp4_scales_left_in_tensor_core_layout, "heavy", 256, 512),
    (nvfp4_max_register_not_reset, "activation", 64, 512),
    (nvfp4_reciprocal_kept_in_bf16, "activation", 128, 512),
    (nvfp4_stochastic_rounding_left_on, "heavy", 64, 512),
    (nvfp4_gradient_rotation_left_on, "activation", 128, 256),
    (nvfp4_last_half_tile_of_columns_unwritten, "activation", 96, 352),
    (nvfp4_nibbles_swapped_and_tensor_scale_without_448, "activation", 64, 512),
    (nvfp4_zero_blocks_scale_one_and_half_code_flushed, "silent", 256, 1024),
    (mxfp4_scale_floor_of_amax_over_six, "heavy", 64, 512),
    (mxfp4_warp_shuffle_stops_at_half, "activation", 128, 256),
    (mxfp4_input_cast_to_half, "wide", 128, 512),
    (mxfp4_sign_dropped_on_zero_codes, "special", 64, 256),
    (mxfp4_last_threshold_typed_wrong, "activation", 64, 512),
    (mxfp4_scale_of_previous_pipeline_stage, "heavy", 64, 1024),
    (mxfp4_scale_rows_strided_as_if_padded, "activation", 64, 288),
    (mxfp4_eight_nibbles_in_reverse_order, "small", 64, 256),
    (mxfp4_clamped_before_scaling, "heavy", 128, 512),
    (mxfp4_tile_stored_transposed, "activation", 128, 256),
    (mxfp4_rotated_scale_from_unrotated_max, "activation", 128, 512),
    (mxfp4_second_vector_not_in_max, "heavy", 64, 512),
    (mxfp4_stored_bias_128_and_truncated_elements, "activation", 64, 512),
    (mxfp4_scale_broadcast_across_rows_and_ties_away, "activation", 128, 512),
    (mxfp8_e4m3_written_as_fnuz, "activation", 64, 512),
    (mxfp8_e4m3_overflow_becomes_nan, "heavy", 128, 512),
    (mxfp8_e5m2_with_emax_of_e4m3, "heavy", 64, 256),
    (mxfp8_e5m2_top_byte_of_half, "activation", 64, 512),
    (mxfp8_e4m3_rounded_twice_through_bf16, "heavy", 128, 1024),
    (mxfp8_e4m3_amax_raised_to_1e_4, "small", 128, 256),
    (mxfp8_e4m3_scales_stored_column_major, "activation", 96, 512),
    (mxfp8_e4m3_barrier_missing_and_subnormals_flushed, "activation", 256, 1024),
    (mxint8_cast_truncates, "heavy", 64, 256),
    (mxint8_minus_128_allowed, "heavy", 256, 1024),
    (mxint8_sign_and_magnitude_codes, "activation", 64, 256),
    (mxint8_wraps_and_max_skips_last_lane, "activation", 256, 512),
]]


def right(name, x):
    for start, kernel in (("nvfp4_", F.nv), ("mxfp4_", F.mx), ("mxfp8_e4m3", F.mxfp8), ("mxfp8_e5m2", F.mxfp8_e5m2), ("mxint8_", F.mxint8)):
        if name.startswith(start):
            return kernel(x)
    raise KeyError(name)


if __name__ == "__main__":
    names = {r[0] for r in ROWS}
    assert [sum(n.startswith(p) for n in names) for p in ("nvfp4_", "mxfp4_", "mxfp8_", "mxint8_")] == [14, 14, 8, 4]
    assert sum(r[1].__doc__.startswith("Two mistakes:") for r in ROWS) == 6
    for name, f, kind, rows, cols in ROWS:
        assert 64 <= rows <= 256 and 256 <= cols <= 1024 and cols % 32 == 0, name
        for seed in (1, 2):
            x = inputs.KINDS[kind](np.random.default_rng(seed), rows, cols)
            before = x.tobytes()
            a, b = f(x), f(x)
            assert x.tobytes() == before, name
            rights = [right(name, x)] + ([right(name, F.rotate(x, 32))] if "_rotated_" in name else [])
            for g in [b, *rights]:
                for p, q in ((a.codes, g.codes), (a.scales, g.scales)):
                    assert p.shape == q.shape and p.dtype == q.dtype, name
                assert type(a.tensor_scale) is type(g.tensor_scale) and (a.bits, a.packed) == (g.bits, g.packed), name
            assert np.array_equal(a.codes, b.codes) and np.array_equal(a.scales, b.scales) and a.tensor_scale == b.tensor_scale, name
            for g in rights:
                d = int((a.codes != g.codes).sum()), int((a.scales != g.scales).sum()), a.tensor_scale != g.tensor_scale
                assert any(d), name
                print(f"{name:55} {seed} codes {d[0]:7} of {a.codes.size:7} scales {d[1]:6} of {a.scales.size:6} tensor {d[2]}")
    print("all forty differ as they should")
