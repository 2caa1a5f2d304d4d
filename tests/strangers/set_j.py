"""Forty wrong kernels by an outsider who ports microscaling kernels: each has one mistake, six of them have two."""
import numpy as np

import formats as F

F32 = np.float32
SEED = 1234


def uniform(n, seed=SEED):
    """Murmur3's finaliser of index ^ seed, as a number in [0, 1)."""
    h = np.arange(n, dtype=np.uint32) ^ np.uint32(seed)
    h ^= h >> np.uint32(16)
    h *= np.uint32(0x85EBCA6B)
    h ^= h >> np.uint32(13)
    h *= np.uint32(0xC2B2AE35)
    h ^= h >> np.uint32(16)
    return (h >> np.uint32(8)).astype(np.float64) / 2**24


def away(table, y, sign_bit):
    """Nearest, ties away from zero, saturating."""
    a = np.abs(np.asarray(y, np.float64))
    c = np.searchsorted((table[1:] + table[:-1]) / 2, a, side="right")
    return (c | np.where(np.signbit(y), sign_bit, 0)).astype(np.uint8)


E2M1 = F.E2M1.astype(np.float64)


# ---- MXFP4

def mxfp4_divides_by_the_unrounded_scale(x):
    """Stores the scale as a power of two but divides by amax / 4, the scale before it was rounded down."""
    def exact(s, b):
        a = F.abs_max(b).astype(np.float64)
        return np.where(a > 0, a / 4, 1)
    return F.mx(x, divisor=exact)


def mxfp4_shuffle_reduction_starts_at_8(x):
    """The warp's xor shuffles start at 8, not 16: each half of a block divides by its own scale, and lane 0 stores the first."""
    r = F.mx(x, width=16)
    return F.Result(r.codes, r.scales[:, ::2].copy())


def mxfp4_even_scale_wrong_bit_and_carry_into_sign(x):
    """Two mistakes: amax is rounded with 1 << 20 (two mantissa bits), not 1 << 21, and values of 7 and more carry into the sign bit."""
    def byte(a):
        u = np.ascontiguousarray(a, F32).view(np.uint32) + np.uint32(1 << 20)
        return F.floor_byte((u & np.uint32(0xFF800000)).view(F32).reshape(a.shape), 2)

    def element(y):
        m = F.nearest(np.append(E2M1, 8.0), np.abs(y))
        return ((m + np.where(np.signbit(y), 8, 0)) & 15).astype(np.uint8)
    return F.mx(x, byte=byte, element=element)


def mxfp4_words_big_endian_and_ties_away(x):
    """Two mistakes: the four bytes of each 32-bit word of codes are in reverse order, and ties are rounded away from zero."""
    r = F.mx(x, element=lambda y: away(E2M1, y, 8))
    rows, cols = r.codes.shape
    c = r.codes.reshape(rows, cols // 8, 4, 2)[:, :, ::-1]
    return F.Result(np.ascontiguousarray(c).reshape(rows, cols), r.scales)


def mxfp4_last_threshold_is_4_5(x):
    """In the chain of comparisons the boundary between 4 and 6 is written 4.5, continuing 2.5 and 3.5, where 5 is meant."""
    def element(y):
        c = F.e2m1(y)
        up = (np.abs(y) > 4.5) & ((c & 7) == 6)
        return np.where(up, c + 1, c).astype(np.uint8)
    return F.mx(x, element=element)


def mxfp4_input_through_half(x):
    """Loads the input as float16: small numbers lose bits to the subnormal range."""
    return F.mx(x.astype(np.float16).astype(F32))


def mxfp4_scales_swizzled_for_tensor_cores(x):
    """Writes scales in the 128 x 4 tile order (32 x 4 x 4) into a buffer that is read as plain rows."""
    r = F.mx(x)
    rows, blocks = r.scales.shape
    s = r.scales.reshape(rows // 128, 4, 32, blocks // 4, 4).transpose(0, 3, 2, 1, 4)
    return F.Result(r.codes, np.ascontiguousarray(s).reshape(rows, blocks))


def mxfp4_tail_reads_into_the_next_row(x):
    """The load of a row's short last block has no mask, so its amax includes the first numbers of the next row."""
    rows, cols = x.shape
    pad = -cols % 32
    nxt = np.vstack([x[1:, :pad], np.zeros((1, pad), F32)])
    r = F.mx(np.hstack([x, nxt]))
    return F.Result(r.codes[:, :cols].copy(), r.scales)


def mxfp4_hadamard_lacks_its_last_stage(x):
    """The butterflies of a Hadamard rotation of 32 stop at a stride of 8: two rotations of 16, with the factor for 32."""
    return F.mx(F.butterflies(x, 16) * F32(1 / np.sqrt(32)))


def mxfp4_dither_of_one_half_everywhere(x):
    """Stochastic rounding adds a dither of the step 0.5 also above 2 and 4, where the steps are 1 and 2."""
    def element(y):
        d = uniform(y.size).reshape(y.shape) * 0.5
        return (F.nearest(E2M1, np.maximum(np.abs(y) + d - 0.25, 0)) | np.where(np.signbit(y), 8, 0)).astype(np.uint8)
    return F.mx(x, element=element)


def mxfp4_ties_toward_plus_infinity(x):
    """Rounds the signed number by floor(v / step + 0.5), so ties of negative numbers go toward zero and of positive ones away from it."""
    def element(y):
        a = np.abs(y)
        step = np.where(a < 2, 0.5, np.where(a < 4, 1.0, 2.0))
        v = np.clip(np.floor(y / step + 0.5) * step, -6, 6)
        return (F.nearest(E2M1, np.abs(v)) | np.where(np.signbit(y), 8, 0)).astype(np.uint8)
    return F.mx(x, element=element)


def mxfp4_sign_by_comparison(x):
    """Takes the sign from x < 0, so that minus zero loses it (numbers that underflow keep it)."""
    return F.mx(x, code=lambda c, b: np.where(b < 0, c, c & 7).astype(np.uint8))


def mxfp4_scale_exponent_clamped_at_minus_14(x):
    """Clamps the scale's exponent to -14, the least normal float16, because the scale once was a half."""
    return F.mx(x, byte=lambda a: np.where(a > 0, np.maximum(F.floor_byte(a, 2), 127 - 14), 0).astype(np.uint8))


def mxfp4_zero_block_keeps_the_previous_scale(x):
    """The scale's register is only set if amax > 0, so a block of zeros stores the scale of the block before it in its row."""
    r = F.mx(x)
    s = r.scales.copy()
    zero = F.abs_max(F.in_blocks(x, 32)) == 0
    for k in range(1, s.shape[1]):
        s[:, k] = np.where(zero[:, k], s[:, k - 1], s[:, k])
    return F.Result(r.codes, s)


def mxfp4_amax_of_strided_numbers(x):
    """Coalesced loads: amax k is taken over columns k, k + blocks, k + 2 * blocks ..., but serves the 32 columns from 32 * k on."""
    rows, cols = x.shape
    a = np.abs(x).reshape(rows, 32, cols // 32).max(1)
    return F.mx(x, amax=lambda b: a)


# ---- NVFP4

def nvfp4_tensor_scale_of_each_tile(x):
    """The amax is not reduced over the grid: each tile of 16 rows uses a tensor scale of its own, and the last tile's is stored."""
    def tensor(x):
        a = np.abs(x).reshape(len(x) // 16, -1).max(1) / F32(448 * 6)
        return np.repeat(a, 16)[:, None]
    return F.nv(x, tensor=tensor, stored_tensor=lambda t: F32(t[-1, 0]))


def nvfp4_scales_in_fnuz(x):
    """Block scales in AMD's e4m3fnuz (largest 240, bias 8) instead of OCP's e4m3fn."""
    table = F.float_table(4, 3, 8, 127)
    return F.nv(x, largest_scale=F32(240), store=lambda r: F.nearest(table, np.minimum(r, F32(240))).astype(np.uint8),
                read=lambda s: table[s].astype(F32))


def nvfp4_later_simd_groups_share_an_amax(x):
    """Splits a SIMD group of 32 by the grid's index, not the lane: from column 32 on, two blocks share the maximum of both."""
    def amax(b):
        a = F.abs_max(b)
        both = np.repeat(a.reshape(len(a), -1, 2).max(-1), 2, axis=1)
        both[:, :2] = a[:, :2]
        return both
    return F.nv(x, amax=amax)


def nvfp4_scale_clamped_to_eps_for_tiny(x):
    """Clamps the block scale from below to finfo(e4m3).eps, 0.125, where finfo.tiny is meant."""
    return F.nv(x, store=lambda r: F.nearest(F.E4M3, np.clip(r, F32(0.125), F32(448))).astype(np.uint8))


def nvfp4_codes_in_fast_dequant_order(x):
    """Eight codes of a word are left in the order 0 2 4 6 1 3 5 7 of a fast dequantisation, where plain order is expected."""
    r = F.nv(x)
    c = r.codes.reshape(len(x), -1, 8)[:, :, [0, 2, 4, 6, 1, 3, 5, 7]]
    return F.Result(np.ascontiguousarray(c).reshape(x.shape), r.scales, tensor_scale=r.tensor_scale)


def nvfp4_scale_rows_with_mxfp4_stride(x):
    """Scale rows are written cols / 32 bytes apart, as for MXFP4: each row overwrites half of the one before, and the rest stays zero."""
    r = F.nv(x)
    rows, blocks = r.scales.shape
    out = np.zeros(rows * blocks, np.uint8)
    for k in range(rows):
        out[k * (blocks // 2):][:blocks] = r.scales[k]
    return F.Result(r.codes, out.reshape(rows, blocks), tensor_scale=r.tensor_scale)


def nvfp4_tensor_amax_before_rotation(x):
    """Rotates by a Hadamard matrix of 16, but the tensor scale comes from the amax of the tensor before its rotation."""
    t = np.abs(x).max() / F32(448 * 6)
    return F.nv(F.rotate(x, 16), tensor=lambda _: t)


def nvfp4_one_random_number_a_block(x):
    """Stochastic rounding hashes the index of the block, not of the element: the sixteen numbers of a block share one random number."""
    def element(y):
        u = uniform(y.shape[0] * y.shape[1]).reshape(y.shape[0], y.shape[1], 1)
        a = np.minimum(np.abs(y.astype(np.float64)), 6)
        lo = np.clip(np.searchsorted(E2M1, a, side="right") - 1, 0, 6)
        up = (a - E2M1[lo]) / (E2M1[lo + 1] - E2M1[lo]) > u
        return ((lo + up) | np.where(np.signbit(y), 8, 0)).astype(np.uint8)
    return F.nv(x, element=element)


def nvfp4_scale_broadcast_over_32_lanes(x):
    """The scale is broadcast from lane 0 of 32, not of 16: odd blocks are divided by their left neighbour's scale, but store their own."""
    def divide(b, f, t):
        return b / (np.repeat(f[:, ::2], 2, axis=1)[:, : f.shape[1]] * t)[..., None]
    return F.nv(x, divide=divide)


def nvfp4_negative_codes_in_twos_complement(x):
    """Packs negative codes as int4: the nibble is minus the magnitude's code in two's complement, not a sign and a magnitude."""
    return F.nv(x, code=lambda c, b: np.where(c & 8, (16 - (c & 7)) & 15, c).astype(np.uint8))


def nvfp4_scale_truncated_and_codes_by_roundf(x):
    """Two mistakes: the block scale is cut to three mantissa bits instead of rounded, and the codes' ties go away from zero."""
    def store(r):
        c = np.searchsorted(F.E4M3, np.minimum(r, F32(448)).astype(np.float64), side="right") - 1
        return np.clip(c, 0, 126).astype(np.uint8)
    return F.nv(x, store=store, element=lambda y: away(E2M1, y, 8))


def nvfp4_signed_tensor_amax_and_swapped_nibbles(x):
    """Two mistakes: the tensor's amax is x.max() without abs, and the two operands of cvt.e2m1x2 are swapped, so each pair of codes is."""
    r = F.nv(x, tensor=lambda x: x.max() / F32(448 * 6))
    c = r.codes.reshape(len(x), -1, 2)[:, :, ::-1]
    return F.Result(np.ascontiguousarray(c).reshape(x.shape), r.scales, tensor_scale=r.tensor_scale)


def nvfp4_tail_never_written(x):
    """The loop runs cols / 16 times, rounded down: the codes and the scale of a short last block stay zero."""
    r = F.nv(x)
    full = x.shape[1] // 16
    c, s = r.codes.copy(), r.scales.copy()
    c[:, full * 16:] = 0
    s[:, full:] = 0
    return F.Result(c, s, tensor_scale=r.tensor_scale)


def nvfp4_reciprocal_kept_in_half(x):
    """Multiplies by the reciprocal of scale times tensor scale, which was kept in a float16."""
    def divide(b, f, t):
        inv = np.minimum(F32(1) / (f * t), F32(65504)).astype(np.float16).astype(F32)
        return b * inv[..., None]
    return F.nv(x, divide=divide)


# ---- MXFP8

def mxfp8_e4m3_emax_of_fnuz(x):
    """Uses emax 7 of e4m3fnuz for the scale, where e4m3fn has 8: each scale is twice as large."""
    return F.mxfp8(x, byte=lambda a: F.floor_byte(a, 7))


def mxfp8_e4m3_overflow_becomes_nan(x):
    """Casts without a clamp: what rounds above 448 becomes the NaN 0x7F."""
    def element(y):
        c = F.e4m3(y)
        return np.where(np.abs(y) > 464, c | 0x7F, c).astype(np.uint8)
    return F.mxfp8(x, element=element)


def mxfp8_e4m3_subnormal_codes_flushed(x):
    """Elements below 2^-6, the least normal number of e4m3, become zero with their sign."""
    return F.mxfp8(x, code=lambda c, b: np.where((c & 0x78) == 0, c & 0x80, c).astype(np.uint8))


def mxfp8_e4m3_scales_of_the_columnwise_copy(x):
    """Returns the codes quantised along rows with the scales of the copy quantised along columns; both buffers have the same size."""
    r = F.mxfp8(x)
    a = np.abs(x).reshape(len(x) // 32, 32, -1).max(1)
    return F.Result(r.codes, F.floor_byte(a, 8).reshape(r.scales.shape), bits=8)


def mxfp8_e4m3_amax_misses_the_last_float4(x):
    """The vector loop of the amax ends one float4 early: the last four numbers of each block are not looked at."""
    return F.mxfp8(x, amax=lambda b: F.abs_max(b[..., :28]))


def mxfp8_e5m2_is_the_top_byte_of_a_half(x):
    """Takes the high byte of the float16 as e5m2: the mantissa is cut, not rounded, and 65520 and more give infinity."""
    def element(y):
        with np.errstate(over="ignore"):
            return (y.astype(np.float16).view(np.uint16) >> 8).astype(np.uint8)
    return F.mxfp8_e5m2(x, element=element)


def mxfp8_e5m2_emax_of_e4m3_and_ties_away(x):
    """Two mistakes: the scale is made with emax 8 of e4m3 instead of 15, and ties are rounded away from zero by adding half a step."""
    return F.mxfp8_e5m2(x, byte=lambda a: F.floor_byte(a, 8), element=lambda y: away(F.E5M2, y, 128))


# ---- MXINT8

def mxint8_adds_half_before_the_cast(x):
    """Rounds by (int)(v * 64 + 0.5) for both signs: negative numbers end up to one step too high."""
    return F.mxint8(x, element=lambda y: np.clip(np.trunc(y * 64 + 0.5), -127, 127).astype(np.int8).view(np.uint8))


def mxint8_no_clamp_wraps_to_minus_128(x):
    """No clamp after rounding: 128 is cast to a byte and becomes -128 (and -128 is used)."""
    return F.mxint8(x, element=lambda y: (np.rint(y * 64).astype(np.int64) & 255).astype(np.uint8))


def mxint8_codes_as_sign_and_magnitude(x):
    """Stores a sign bit and seven bits of magnitude, as the float formats do, instead of two's complement."""
    def element(y):
        m = np.minimum(np.rint(np.abs(y) * 64), 127).astype(np.int64)
        return (m | np.where(np.signbit(y), 128, 0)).astype(np.uint8)
    return F.mxint8(x, element=element)


def mxint8_truncates_and_scale_words_reversed(x):
    """Two mistakes: elements are truncated toward zero by the cast, and four scales are packed into a word from its highest byte down."""
    r = F.mxint8(x, element=lambda y: np.clip(np.trunc(y * 64), -127, 127).astype(np.int8).view(np.uint8))
    s = r.scales.reshape(len(x), -1, 4)[:, :, ::-1]
    return F.Result(r.codes, np.ascontiguousarray(s).reshape(r.scales.shape), bits=8)


def row(f, kind="activation", rows=64, cols=512):
    return (f.__name__, f, kind, rows, cols)


ROWS = [
    row(mxfp4_divides_by_the_unrounded_scale),
    row(mxfp4_shuffle_reduction_starts_at_8, "heavy"),
    row(mxfp4_even_scale_wrong_bit_and_carry_into_sign),
    row(mxfp4_words_big_endian_and_ties_away, rows=96),
    row(mxfp4_last_threshold_is_4_5, "heavy", cols=256),
    row(mxfp4_input_through_half, "small"),
    row(mxfp4_scales_swizzled_for_tensor_cores, rows=128),
    row(mxfp4_tail_reads_into_the_next_row, "heavy", cols=496),
    row(mxfp4_hadamard_lacks_its_last_stage, "heavy"),
    row(mxfp4_dither_of_one_half_everywhere),
    row(mxfp4_ties_toward_plus_infinity, rows=96),
    row(mxfp4_sign_by_comparison, "special"),
    row(mxfp4_scale_exponent_clamped_at_minus_14, "small"),
    row(mxfp4_zero_block_keeps_the_previous_scale, "silent"),
    row(mxfp4_amax_of_strided_numbers, "heavy"),
    row(nvfp4_tensor_scale_of_each_tile, "heavy"),
    row(nvfp4_scales_in_fnuz),
    row(nvfp4_later_simd_groups_share_an_amax),
    row(nvfp4_scale_clamped_to_eps_for_tiny, "wide"),
    row(nvfp4_codes_in_fast_dequant_order),
    row(nvfp4_scale_rows_with_mxfp4_stride, "heavy"),
    row(nvfp4_tensor_amax_before_rotation),
    row(nvfp4_one_random_number_a_block, rows=128),
    row(nvfp4_scale_broadcast_over_32_lanes, "heavy"),
    row(nvfp4_negative_codes_in_twos_complement, cols=256),
    row(nvfp4_scale_truncated_and_codes_by_roundf),
    row(nvfp4_signed_tensor_amax_and_swapped_nibbles, "heavy"),
    row(nvfp4_tail_never_written, cols=504),
    row(nvfp4_reciprocal_kept_in_half, "heavy", 128, 1024),
    row(mxfp8_e4m3_emax_of_fnuz),
    row(mxfp8_e4m3_overflow_becomes_nan, "heavy"),
    row(mxfp8_e4m3_subnormal_codes_flushed, rows=128, cols=1024),
    row(mxfp8_e4m3_scales_of_the_columnwise_copy),
    row(mxfp8_e4m3_amax_misses_the_last_float4, "heavy"),
    row(mxfp8_e5m2_is_the_top_byte_of_a_half),
    row(mxfp8_e5m2_emax_of_e4m3_and_ties_away),
    row(mxint8_adds_half_before_the_cast, "heavy"),
    row(mxint8_no_clamp_wraps_to_minus_128, "heavy", 128, 1024),
    row(mxint8_codes_as_sign_and_magnitude),
    row(mxint8_truncates_and_scale_words_reversed),
]
