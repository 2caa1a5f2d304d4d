"""Forty wrong quantisation kernels. Each takes x, float32 [rows][cols], and gives a Result; each docstring says what is wrong."""
import numpy as np

import formats as F
from formats import F32

E2M1 = F.E2M1.astype(np.float64)
FNUZ = F.float_table(4, 3, 8, 127)


def whole(x):
    """The right tensor scale of x."""
    return np.abs(x).max() / F32(2688)


def shuffled(order):
    """A stage that puts the codes of every group of len(order) into that order."""
    return lambda c, b: c.reshape(-1, len(order))[:, order].reshape(c.shape)


def per_lane(x, lane_amax):
    """MXFP4 in which each lane divides by the scale of its own idea of the maximum, and lane 0 stores the scale."""
    b = F.in_blocks(x, 32)
    s = F.floor_byte(lane_amax(np.abs(b)), 2)
    c = F.e2m1(b.astype(np.float64) / F.power(s))
    return F.Result(F.as_rows(c, x.shape[1]), np.ascontiguousarray(s[..., 0]))


def neighbours(v):
    """Codes of the E2M1 values below and above v >= 0, and the place of v between them, 0 to 1."""
    v = np.minimum(v, 6.0)
    lo = np.minimum(np.searchsorted(E2M1, v, side="right") - 1, 6)
    return lo, lo + 1, (v - E2M1[lo]) / (E2M1[lo + 1] - E2M1[lo])


def sign(y):
    return np.where(np.signbit(y), 8, 0)


# NVFP4


def nvfp4_scales_swizzled_as_linear(x):
    """The scales are written in the 128 x 4 tile order of the tensor core, into a buffer that the caller takes for plain rows."""

    def final(s):
        rows, blocks = s.shape
        t = s.reshape(rows // 128, 4, 32, blocks // 4, 4)
        return np.ascontiguousarray(t.transpose(0, 3, 2, 1, 4)).reshape(rows, blocks)

    return F.nv(x, final=final)


def nvfp4_load_offset_uint16(x):
    """The offset of a load is held in 16 bits, so from element 65536 on the kernel reads the beginning of the tensor again."""
    i = np.arange(x.size) & 0xFFFF
    return F.nv(x.reshape(-1)[i].reshape(x.shape), tensor=lambda _: whole(x))


def nvfp4_tensor_amax_of_last_tile(x):
    """Each thread block stores its maximum instead of an atomic max, so the tensor scale is that of the last tile of 8 rows."""
    return F.nv(x, tensor=lambda x: whole(x[-8:]))


def nvfp4_tensor_scale_per_row(x):
    """The kernel takes the maximum of each row (a per-token recipe) for the tensor's, but hands back one scale for the tensor."""
    return F.nv(x, tensor=lambda x: np.abs(x).max(1, keepdims=True) / F32(2688), stored_tensor=lambda t: F32(t.max()))


def nvfp4_last_threshold_4_5(x):
    """The ladder of comparisons goes from 4 to 6 at 4.5 instead of at 5."""

    def element(y):
        a = np.abs(y)
        return np.where((a > 4.5) & (a <= 5), 7 | sign(y), F.e2m1(y)).astype(np.uint8)

    return F.nv(x, element=element)


def nvfp4_scale_as_fnuz(x):
    """On an older AMD GPU the scale is cast to E4M3 FNUZ (bias 8, at most 240) in place of E4M3 FN."""
    return F.nv(x, store=lambda r: F.nearest(FNUZ, r).astype(np.uint8), read=lambda s: FNUZ[s].astype(F32))


def nvfp4_reciprocal_in_bf16(x):
    """The inverse of scale times tensor scale is kept in bfloat16, and the numbers are multiplied by it."""
    return F.nv(x, divide=lambda b, f, t: b * F.bf16(F32(1) / (f * t))[..., None])


def nvfp4_scale_clamped_at_tiny(x):
    """The scale is clamped from below at finfo(float8_e4m3fn).tiny = 2^-6, the least normal number, so subnormal scales never occur."""
    return F.nv(x, store=lambda r: F.nearest(F.E4M3, np.clip(r, F32(2**-6), F32(448))).astype(np.uint8))


def nvfp4_cvt_operands_swapped_in_upper_half(x):
    """Of each eight numbers the last four go into cvt.e2m1x2 with the two operands exchanged, so the nibbles of two bytes in four are swapped."""
    return F.nv(x, code=shuffled([0, 1, 2, 3, 5, 4, 7, 6]))


def nvfp4_tail_tile_shifted_load(x):
    """The last tile of 128 columns is moved left to fit into the row for the load, but its results are stored where it was before."""
    cols = x.shape[1]
    tail = cols % 128
    z = x.copy()
    z[:, cols - tail :] = x[:, cols - 128 : cols - 128 + tail]
    return F.nv(z, tensor=lambda _: whole(x))


def nvfp4_random_hadamard_left_on(x):
    """The random Hadamard rotation of the weight gradient (16 numbers, fixed signs) is applied in the forward pass as well."""
    signs = np.array([1, 1, 1, -1, 1, -1, -1, -1, -1, -1, -1, 1, -1, 1, -1, -1], F32)
    return F.nv(F.rotate((x.reshape(-1, 16) * signs).reshape(x.shape), 16))


def nvfp4_stochastic_left_on(x):
    """The stochastic rounding of the gradients stays on, with a generator that is a hash of the element's number."""

    def element(y):
        h = np.arange(y.size, dtype=np.uint64) * np.uint64(2654435761) & np.uint64(0xFFFFFFFF)
        h = ((h ^ (h >> np.uint64(15))) * np.uint64(0x2C1B3C6D)) & np.uint64(0xFFFFFFFF)
        u = (h >> np.uint64(8)).reshape(y.shape) / 2.0**24
        lo, hi, part = neighbours(np.abs(y).astype(np.float64))
        return (np.where(part > u, hi, lo) | sign(y)).astype(np.uint8)

    return F.nv(x, element=element)


def nvfp4_scale_truncated_and_unrounded_divisor(x):
    """Two mistakes: the scale is cut to E4M3 toward zero, and the numbers are divided by the scale from before the cast."""

    def store(r):
        return (np.searchsorted(F.E4M3, np.minimum(r, F32(448)), side="right") - 1).astype(np.uint8)

    return F.nv(x, store=store, divide=lambda b, f, t: b / (F.abs_max(b) / F32(6) / t * t)[..., None])


def nvfp4_tensor_256_and_zero_block_scale_one(x):
    """Two mistakes: the tensor scale is max / (256 * 6), as in another recipe, and a block of zeros gets the scale 1.0 (0x38)."""

    def store(r):
        return np.where(r == 0, 0x38, F.nearest(F.E4M3, np.minimum(r, F32(448)))).astype(np.uint8)

    return F.nv(x, largest_scale=F32(256), store=store)


# MXFP4


def mxfp4_log2_in_bf16(x):
    """The floor is taken of a logarithm that was rounded to bfloat16, so a maximum just below a power of two counts as that power."""

    def byte(a):
        e = np.floor(F.bf16(np.log2(np.maximum(a, F32(2**-126)))))
        return np.where(a > 0, np.clip(e - 2 + 127, 0, 254), 0).astype(np.uint8)

    return F.mx(x, byte=byte)


def mxfp4_even_scale_with_e4m3_constant(x):
    """The maximum is rounded before its exponent is taken, with 0x080000, the constant that belongs to a mantissa of three bits."""

    def amax(b):
        return (F.abs_max(b).view(np.uint32) + np.uint32(0x080000)).view(F32)

    return F.mx(x, byte=lambda a: np.where(a < 2.0**-126, 0, F.floor_byte(a, 2)).astype(np.uint8), amax=amax)


def mxfp4_shuffle_without_last_step(x):
    """The exchange of maxima between lanes (xor 16, 8, 4, 2) lacks the step 1: even and odd lanes divide by scales of their own."""

    def lanes(a):
        return np.tile(np.stack([a[..., 0::2].max(-1), a[..., 1::2].max(-1)], -1), 16)

    return per_lane(x, lanes)


def mxfp4_shfl_down_not_broadcast(x):
    """The maximum is found with shuffles downward and not sent back, so lane i divides by the scale of the numbers from i on."""

    def lanes(a):
        for step in (16, 8, 4, 2, 1):
            other = a.copy()
            other[..., : 32 - step] = a[..., step:]
            a = np.maximum(a, other)
        return a

    return per_lane(x, lanes)


def mxfp4_ldmatrix_trans(x):
    """Codes pass through a load that transposes each tile of 8 x 8 on the way out."""
    r = F.mx(x)
    rows, cols = x.shape
    r.codes = np.ascontiguousarray(r.codes.reshape(rows // 8, 8, cols // 8, 8).transpose(0, 3, 2, 1)).reshape(rows, cols)
    return r


def mxfp4_awq_order_kept(x):
    """Each eight codes are left in the order 0 2 4 6 1 3 5 7 that a weight-only kernel wants for its fast unpacking."""
    return F.mx(x, code=shuffled([0, 2, 4, 6, 1, 3, 5, 7]))


def mxfp4_half_up_on_signed_value(x):
    """Rounding is floor(y / step + 1/2) on the signed number, so ties go toward plus infinity."""

    def element(y):
        lo, hi, part = neighbours(np.abs(y))
        up = (part > 0.5) | ((part == 0.5) & ~np.signbit(y))
        return (np.where(up, hi, lo) | sign(y)).astype(np.uint8)

    return F.mx(x, element=element)


def mxfp4_carry_into_sign(x):
    """No saturation: a number from 7 to 8 is rounded to 8, and the carry runs from the exponent into the sign bit."""

    def element(y):
        return ((F.nearest(np.append(E2M1, 8.0), np.abs(y)) + sign(y)) & 15).astype(np.uint8)

    return F.mx(x, element=element)


def mxfp4_exponent_minus_two_wraps(x):
    """The scale byte is the exponent field minus 2 in uint8 without a clamp, so a block of zeros gets the byte 254."""

    def byte(a):
        return ((a.view(np.uint32) >> np.uint32(23)).astype(np.uint8) - np.uint8(2)).astype(np.uint8)

    return F.mx(x, byte=byte)


def mxfp4_staged_in_fp16_flushed(x):
    """The input is staged in shared memory as float16, whose subnormal numbers are flushed to zero."""
    h = np.clip(x, -65504, 65504).astype(np.float16).astype(F32)
    return F.mx(np.where(np.abs(h) < 2.0**-14, np.copysign(F32(0), h), h).astype(F32))


def mxfp4_under_one_truncated(x):
    """The branch for the subnormal codes shifts without rounding, so magnitudes under 1 are cut to 0 or 0.5."""

    def element(y):
        a = np.abs(y)
        return np.where(a < 1, np.floor(a * 2).astype(np.int64) | sign(y), F.e2m1(y)).astype(np.uint8)

    return F.mx(x, element=element)


def mxfp4_stale_scale_in_pipeline(x):
    """In a pipeline of four stages the last slot is read before it is filled, so every fourth block is divided by the scale of four blocks before."""

    def divisor(s, b):
        d = F.power(s)
        late = np.arange(7, s.shape[1], 4)
        e = d.copy()
        e[:, late] = d[:, late - 4]
        return e

    return F.mx(x, divisor=divisor)


def mxfp4_row_tail_unwritten_and_no_minus_zero(x):
    """Two mistakes: the grid is rows // 64 tiles, so the codes of the last rows stay 0, and a negative number rounded to zero loses its sign."""
    r = F.mx(x, code=lambda c, b: np.where(c == 8, 0, c).astype(np.uint8))
    r.codes[x.shape[0] // 64 * 64 :] = 0
    return r


def mxfp4_through_e4m3_and_scales_column_major(x):
    """Two mistakes: numbers are cast to E4M3 first and from there to E2M1 (rounded twice), and the scales are stored column by column."""

    def element(y):
        return F.e2m1(np.copysign(F.E4M3[F.nearest(F.E4M3, np.abs(y))], y))

    return F.mx(x, element=element, stored=lambda s: np.ascontiguousarray(s.T).reshape(s.shape))


# MXFP8


def mxfp8_e5m2_emax_16(x):
    """The largest exponent of E5M2 is taken for 16 (31 - 15), forgetting that the last field holds infinity and NaN."""
    return F.mxfp8_e5m2(x, emax=16)


def mxfp8_e4m3_not_satfinite(x):
    """The cast lacks satfinite: what lies above 464 becomes NaN (0x7F or 0xFF) in place of 448."""

    def element(y):
        return np.where(np.abs(y) > 464, F.e4m3(y) | 0x7F, F.e4m3(y)).astype(np.uint8)

    return F.mxfp8(x, element=element)


def mxfp8_e5m2_high_byte_of_fp16(x):
    """E5M2 is made by keeping the high byte of a float16: toward zero, and infinity for what float16 cannot hold."""

    def element(y):
        with np.errstate(over="ignore"):
            return (y.astype(np.float16).view(np.uint16) >> 8).astype(np.uint8)

    return F.mxfp8_e5m2(x, element=element)


def mxfp8_e4m3_columnwise_scales(x):
    """The scales returned are those of the columnwise copy (32 rows to a scale), of which there are as many, beside the rowwise codes."""
    r = F.mxfp8(x)
    rows, cols = x.shape
    r.scales = F.floor_byte(np.abs(x).reshape(rows // 32, 32, cols).max(1), 8).reshape(r.scales.shape)
    return r


def mxfp8_e4m3_quotient_in_bf16(x):
    """The product with the inverse scale is kept in bfloat16 before the cast, so numbers are rounded twice."""
    return F.mxfp8(x, element=lambda y: F.e4m3(F.bf16(np.clip(y, -1e30, 1e30).astype(F32))))


def mxfp8_e4m3_byte_zero_is_zero(x):
    """The scale is read as the bits byte << 23, so byte 0 is 0.0 in place of 2^-127: numbers become infinity and saturate, zeros become NaN."""

    def element(y):
        return np.where(np.isnan(y), 0x7F, F.e4m3(np.nan_to_num(y, nan=0.0))).astype(np.uint8)

    with np.errstate(divide="ignore", invalid="ignore"):
        return F.mxfp8(x, divisor=lambda s, b: np.where(s == 0, 0.0, F.power(s)), element=element)


def mxfp8_e4m3_words_byte_swapped(x):
    """Four codes are packed into a 32-bit word with the first one on top, and the word is stored little end first."""
    return F.mxfp8(x, code=shuffled([3, 2, 1, 0]))


def mxfp8_e4m3_amax_128_and_subnormals_flushed(x):
    """Two mistakes: the maximum is taken over 128 numbers (another recipe's block), and results below 2^-6 are flushed to zero."""

    def amax(b):
        a = F.abs_max(b)
        return np.repeat(a.reshape(a.shape[0], -1, 4).max(-1), 4, axis=1)

    return F.mxfp8(x, amax=amax, code=lambda c, b: np.where((c & 0x7F) < 8, c & 0x80, c).astype(np.uint8))


# MXINT8


def as_int8(v):
    return v.astype(np.int64).astype(np.int8).view(np.uint8)


def mxint8_add_half_and_cast(x):
    """Rounding is (int)(y * 64 + 0.5), which is right for positive numbers and moves negative ones up."""
    return F.mxint8(x, element=lambda y: as_int8(np.clip(np.trunc(y * 64 + 0.5), -127, 127)))


def mxint8_uses_minus_128(x):
    """The clamp is that of the type, -128 to 127, so the code -128, which is not to be used, appears."""
    return F.mxint8(x, element=lambda y: as_int8(np.clip(np.rint(y * 64), -128, 127)))


def mxint8_step_of_127(x):
    """Numbers are multiplied by 127 / 2 in place of 64, as in symmetric int8 with a real scale."""
    return F.mxint8(x, element=lambda y: as_int8(np.clip(np.rint(y * 63.5), -127, 127)))


def mxint8_signed_max_and_arithmetic_shift(x):
    """Two mistakes: the maximum is taken without the absolute value, and the fixed-point number is cut by an arithmetic shift (floor)."""
    return F.mxint8(x, amax=lambda b: np.maximum(b.max(-1), F32(0)), element=lambda y: as_int8(np.clip(np.floor(y * 64), -127, 127)))


def _row(function, kind, rows, cols):
    return function.__name__, function, kind, rows, cols


ROWS = [
    _row(nvfp4_scales_swizzled_as_linear, "activation", 256, 512),
    _row(nvfp4_load_offset_uint16, "heavy", 192, 512),
    _row(nvfp4_tensor_amax_of_last_tile, "heavy", 256, 256),
    _row(nvfp4_tensor_scale_per_row, "activation", 96, 512),
    _row(nvfp4_last_threshold_4_5, "activation", 64, 512),
    _row(nvfp4_scale_as_fnuz, "heavy", 128, 512),
    _row(nvfp4_reciprocal_in_bf16, "activation", 128, 1024),
    _row(nvfp4_scale_clamped_at_tiny, "wide", 128, 256),
    _row(nvfp4_cvt_operands_swapped_in_upper_half, "heavy", 64, 256),
    _row(nvfp4_tail_tile_shifted_load, "activation", 80, 416),
    _row(nvfp4_random_hadamard_left_on, "heavy", 128, 512),
    _row(nvfp4_stochastic_left_on, "activation", 128, 512),
    _row(nvfp4_scale_truncated_and_unrounded_divisor, "activation", 128, 512),
    _row(nvfp4_tensor_256_and_zero_block_scale_one, "silent", 128, 512),
    _row(mxfp4_log2_in_bf16, "heavy", 256, 1024),
    _row(mxfp4_even_scale_with_e4m3_constant, "activation", 256, 512),
    _row(mxfp4_shuffle_without_last_step, "activation", 128, 256),
    _row(mxfp4_shfl_down_not_broadcast, "heavy", 128, 512),
    _row(mxfp4_ldmatrix_trans, "activation", 64, 512),
    _row(mxfp4_awq_order_kept, "small", 128, 256),
    _row(mxfp4_half_up_on_signed_value, "activation", 128, 512),
    _row(mxfp4_carry_into_sign, "heavy", 128, 512),
    _row(mxfp4_exponent_minus_two_wraps, "silent", 128, 512),
    _row(mxfp4_staged_in_fp16_flushed, "small", 256, 256),
    _row(mxfp4_under_one_truncated, "special", 128, 256),
    _row(mxfp4_stale_scale_in_pipeline, "activation", 128, 1024),
    _row(mxfp4_row_tail_unwritten_and_no_minus_zero, "activation", 100, 512),
    _row(mxfp4_through_e4m3_and_scales_column_major, "activation", 128, 512),
    _row(mxfp8_e5m2_emax_16, "wide", 128, 512),
    _row(mxfp8_e4m3_not_satfinite, "activation", 128, 512),
    _row(mxfp8_e5m2_high_byte_of_fp16, "heavy", 128, 512),
    _row(mxfp8_e4m3_columnwise_scales, "activation", 128, 256),
    _row(mxfp8_e4m3_quotient_in_bf16, "heavy", 128, 512),
    _row(mxfp8_e4m3_byte_zero_is_zero, "special", 256, 512),
    _row(mxfp8_e4m3_words_byte_swapped, "small", 64, 256),
    _row(mxfp8_e4m3_amax_128_and_subnormals_flushed, "activation", 128, 512),
    _row(mxint8_add_half_and_cast, "activation", 128, 256),
    _row(mxint8_uses_minus_128, "heavy", 256, 512),
    _row(mxint8_step_of_127, "small", 128, 256),
    _row(mxint8_signed_max_and_arithmetic_shift, "activation", 128, 512),
]
