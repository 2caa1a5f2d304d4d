"""Forty wrong quantisation kernels, each with one realistic mistake (six of them with two)."""
import numpy as np

import formats as F

F32 = np.float32
U32 = np.uint32


def pcg_hash(i):
    """The 32-bit PCG hash (RXS-M-XS)."""
    i = np.asarray(i).astype(np.uint64)
    m = np.uint64(0xFFFFFFFF)
    state = (i * np.uint64(747796405) + np.uint64(2891336453)) & m
    word = (((state >> ((state >> np.uint64(28)) + np.uint64(4))) ^ state) * np.uint64(277803737)) & m
    return (word >> np.uint64(22)) ^ word


def philox4x32(counter, key):
    """Philox 4x32-10 of counter (counter, 0, 0, 0) and key (key, 0): [n][4] words."""
    m = np.uint64(0xFFFFFFFF)
    c = [np.asarray(counter).astype(np.uint64)] + [np.zeros(len(counter), np.uint64) for _ in range(3)]
    k0, k1 = key, 0
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [(p1 >> np.uint64(32)) ^ c[1] ^ np.uint64(k0), p1 & m, (p0 >> np.uint64(32)) ^ c[3] ^ np.uint64(k1), p0 & m]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack(c, 1)


def unit(word):
    """24 upper bits of a 32-bit word as a number in [0, 1)."""
    return (word >> np.uint64(8)).astype(np.float64) * 2.0 ** -24


def neighbours(a):
    """The E2M1 code at or below a (0 <= a <= 6) and the step up to the next one."""
    t = F.E2M1.astype(np.float64)
    lo = np.clip(np.searchsorted(t, a, side="right") - 1, 0, 6)
    return lo, t[lo], t[lo + 1] - t[lo]


def chain(y, bounds, ties_up):
    """E2M1 by a chain of comparisons: bounds between codes; ties_up says for each whether a tie goes up."""
    a = np.abs(y)
    c = sum(((a >= b) if up else (a > b)).astype(np.int64) for b, up in zip(bounds, ties_up))
    return (c | np.where(np.signbit(y), 8, 0)).astype(np.uint8)


# ---------------------------------------------------------------------------------------------- MXFP4

def mxfp4_scale_exponent_after_dividing_by_six(x):
    """The scale is the biased exponent of amax * (1/6), where it should be the exponent of amax, less 2."""
    def byte(a):
        v = (a.astype(F32) * F32(1 / 6)).view(U32)
        return (v >> U32(23)).astype(np.uint8)
    return F.mx(x, byte=byte)


def mxfp4_subnormal_without_implicit_one(x):
    """When a value below 1 is shifted into E2M1's subnormal place, its implicit leading one is forgotten."""
    def scaled(y):
        a = np.abs(y)
        _, e = np.frexp(a)
        without = a - np.ldexp(1.0, e - 1)
        return np.copysign(np.where((a > 0) & (a < 1), without, a), y)
    return F.mx(x, scaled=scaled)


def mxfp4_warp_reduction_misses_xor_16(x):
    """The butterfly for amax starts at offset 8: each half of a block scales by its own amax, and lane 0 stores the first half's."""
    b = F.in_blocks(x, 32)
    halves = b.reshape(*b.shape[:2], 2, 16)
    s = F.floor_byte(np.abs(halves).max(-1), 2)
    c = F.e2m1(halves.astype(np.float64) / F.power(s)[..., None])
    return F.Result(F.as_rows(c.reshape(b.shape), x.shape[1]), s[..., 0])


def mxfp4_amax_of_even_columns_only(x):
    """amax is reduced in packed pairs (bfloat16x2), and at the end only the low half of the pair is taken."""
    return F.mx(x, amax=lambda b: np.abs(b[..., ::2]).max(-1))


def mxfp4_sign_shift_smears_into_high_nibble(x):
    """The sign is (int)bits >> 28 without a mask: a negative low nibble sets all bits of the high nibble of its byte."""
    def code(c, b):
        c = c.copy()
        odd = c[..., 1::2]
        odd[c[..., ::2] >= 8] = 15
        return c
    return F.mx(x, code=code)


def mxfp4_stochastic_noise_then_nearest(x):
    """Stochastic rounding adds noise of [0, 1) step and then rounds to nearest, where it should cut (PCG hash of index + 1234)."""
    b = F.in_blocks(x, 32)
    u = unit(pcg_hash(np.arange(b.size) + 1234)).reshape(b.shape)

    def scaled(y):
        a = np.minimum(np.abs(y), 6.0)
        _, _, step = neighbours(a)
        return np.copysign(a + u * step, y)
    return F.mx(x, scaled=scaled)


def mxfp4_scale_rounds_up_from_one_and_a_half(x):
    """amax is rounded to a power of two with + 0x400000 (up from 1.5), where + 0x200000 (up from 1.75) was meant."""
    def byte(a):
        e = ((a.astype(F32).view(U32) + U32(0x400000)) >> U32(23)).astype(np.int64) - 2
        return np.where(a > 0, np.clip(e, 0, 254), 0).astype(np.uint8)
    return F.mx(x, byte=byte)


def mxfp4_log2_in_bfloat16(x):
    """floor(log2(amax)) with the logarithm rounded to bfloat16: an amax a little below a power of two counts as that power."""
    def byte(a):
        g = F.bf16(np.log2(np.where(a > 0, a, 1).astype(F32)).astype(F32))
        return np.where(a > 0, np.clip(np.floor(g).astype(np.int64) - 2 + 127, 0, 254), 0).astype(np.uint8)
    return F.mx(x, byte=byte)


def mxfp4_last_warp_reads_scale_before_barrier(x):
    """A barrier is missing: the last of four warps still reads the scale that its slot in shared memory had one tile earlier."""
    def divisor(s, b):
        used = s.copy()
        slot = s[:, 3::4].ravel()
        used[:, 3::4] = np.concatenate([[127], slot[:-1]]).reshape(len(s), -1)
        return F.power(used)
    return F.mx(x, divisor=divisor)


def mxfp4_tail_amax_reads_next_row(x):
    """The short last block of a row is loaded without a mask: its amax includes the first numbers of the next row."""
    rows, cols = x.shape
    flat = np.concatenate([x.ravel(), np.zeros(32, F32)])
    start = np.arange(rows)[:, None, None] * cols + np.arange(-(-cols // 32))[None, :, None] * 32
    seen = np.abs(flat[start + np.arange(32)])
    return F.mx(x, amax=lambda b: seen.max(-1))


def mxfp4_hadamard_32_misses_last_stage(x):
    """The rotation by 32 runs its loop while h < 16: the last butterfly stage is missing, the factor 1/sqrt(32) is there."""
    return F.mx(F.butterflies(x, 16) * F32(1 / np.sqrt(32)))


def mxfp4_sign_lost_where_rounded_to_zero(x):
    """The sign is taken from (rounded value < 0): negative numbers that round to zero become +0."""
    return F.mx(x, code=lambda c, b: np.where(c == 8, 0, c).astype(np.uint8))


def mxfp4_scales_left_in_matrix_core_shuffle(x):
    """The scales are left in the order that the 32 x 8 matrix core kernel wants, where the caller expects plain rows."""
    def stored(s):
        m, n = s.shape
        return s.reshape(m // 32, 2, 16, n // 8, 2, 4).transpose(0, 3, 5, 2, 4, 1).reshape(m, n)
    return F.mx(x, stored=stored)


def mxfp4_scale_rows_at_padded_stride(x):
    """Scales are written at a row stride rounded up to 8 blocks (padding 127) and read at the stride without padding."""
    def stored(s):
        m, n = s.shape
        padded = np.pad(s, ((0, 0), (0, -n % 8)), constant_values=127)
        return padded.ravel()[: m * n].reshape(m, n)
    return F.mx(x, stored=stored)


def mxfp4_ties_away_and_scale_pairs_swapped(x):
    """Two: every bound of the comparison chain has >= (ties away from zero), and scales leave two a time as a big-endian uint16."""
    def stored(s):
        return s.reshape(len(s), -1, 2)[..., ::-1].reshape(s.shape)
    return F.mx(x, element=lambda y: chain(y, (0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0), (1,) * 7), stored=stored)


def mxfp4_bound_3_0_for_3_5_and_grid_rounded_down(x):
    """Two: the bound between 3 and 4 is typed 3.0, and the grid is rows / 16 rounded down, so the last rows stay zero."""
    r = F.mx(x, element=lambda y: chain(y, (0.25, 0.75, 1.25, 1.75, 2.5, 3.0, 5.0), (0, 1, 0, 1, 0, 0, 0)))
    done = len(x) // 16 * 16
    r.codes[done:] = 0
    r.scales[done:] = 0
    return r


# ---------------------------------------------------------------------------------------------- NVFP4

def nvfp4_tensor_amax_of_first_tile_only(x):
    """The reduction over the tensor does not advance its pointer: the tensor scale comes from the first 2048 numbers."""
    return F.nv(x, tensor=lambda x: np.abs(x.ravel()[:2048]).max() / F32(2688))


def nvfp4_scales_encoded_as_fnuz(x):
    """The block scales are written as E4M3 FNUZ (bias 8, at most 240), as an older GPU's type does, where OCP's bias is 7."""
    table = F.float_table(4, 3, 8, 127)
    return F.nv(x, store=lambda r: F.nearest(table, np.minimum(r, F32(240))).astype(np.uint8), read=lambda s: table[s].astype(F32))


def nvfp4_elements_divided_by_unrounded_scale(x):
    """The elements are divided by the scale before its rounding to E4M3, the rounded one is stored."""
    def divide(b, f, t):
        a = np.abs(b).max(-1)
        return b / ((a / F32(6) / t) * t)[..., None]
    return F.nv(x, divide=divide)


def nvfp4_tensor_scale_missing_in_elements(x):
    """The tensor scale enters the block scales but not the elements: these are x / s, not x / (s * T)."""
    return F.nv(x, divide=lambda b, f, t: b / f[..., None])


def nvfp4_one_sixth_in_bfloat16(x):
    """amax is multiplied by 1/6 held as a bfloat16 (0.1669921875)."""
    return F.nv(x, ratio=lambda a, t: a * F.bf16(F32(1 / 6)) / t)


def nvfp4_unswizzle_exchanges_4_and_32(x):
    """The scales' 128 x 4 tiles are unswizzled with the extents 32 and 4 of the row index exchanged."""
    def final(s):
        m, n = s.shape
        return s.reshape(m // 128, 4, 32, n).transpose(0, 2, 1, 3).reshape(m, n)
    return F.nv(x, final=final)


def nvfp4_subnormal_scales_flushed(x):
    """Block scales below 2^-6 are flushed to zero by the conversion, and the guard against 1/0 then makes all codes zero."""
    def store(r):
        return np.where(r < F32(2.0 ** -6), 0, F.nearest(F.E4M3, np.minimum(r, F32(448)))).astype(np.uint8)

    def divide(b, f, t):
        return np.where(f[..., None] > 0, b / (f * t)[..., None], b * F32(0))
    return F.nv(x, store=store, divide=divide)


def nvfp4_lane_pairs_cross_rows(x):
    """Two lanes of 8 numbers share amax by xor 1 of the flat thread index: with an odd count of lanes a row, odd rows pair wrongly."""
    rows, cols = x.shape
    lanes = cols // 8
    v = x.reshape(rows * lanes, 8)
    own = np.abs(v).max(-1)
    partner = np.minimum(np.arange(rows * lanes) ^ 1, rows * lanes - 1)
    t = np.abs(x).max() / F32(2688)
    s = F.nearest(F.E4M3, np.minimum(np.maximum(own, own[partner]) / F32(6) / t, F32(448))).astype(np.uint8)
    f = (F.E4M3[s].astype(F32) * t)[:, None]
    y = np.where(f > 0, v / np.where(f > 0, f, F32(1)), F32(0))
    return F.Result(F.e2m1(y).reshape(rows, cols), s.reshape(rows, lanes)[:, ::2].copy(), tensor_scale=F32(t))


def nvfp4_stochastic_noise_by_column_only(x):
    """Stochastic rounding draws its noise from the column alone (Philox, key 42), so every row has the same noise."""
    cols = -(-x.shape[1] // 16) * 16
    u = unit(philox4x32(np.arange(cols // 4), 42).ravel()).reshape(1, -1, 16)

    def element(y):
        a = np.minimum(np.abs(y.astype(np.float64)), 6.0)
        lo, below, step = neighbours(a)
        c = lo + (u < (a - below) / step)
        return (c | np.where(np.signbit(y), 8, 0)).astype(np.uint8)
    return F.nv(x, element=element)


def nvfp4_no_grid_wait_before_tensor_amax(x):
    """Each group of 16 rows reads the tensor's amax before the others have added theirs: it uses its own, the whole one is stored."""
    parts = [F.nv(x[k : k + 16]) for k in range(0, len(x), 16)]
    t = np.abs(x).max() / F32(2688)
    return F.Result(np.concatenate([p.codes for p in parts]), np.concatenate([p.scales for p in parts]), tensor_scale=F32(t))


def nvfp4_scale_cut_and_words_reversed(x):
    """Two: the scale's mantissa is cut to 3 bits, not rounded, and 8 codes are shifted into a word from the wrong end."""
    def store(r):
        return (np.searchsorted(F.E4M3, np.minimum(r, F32(448)).astype(np.float64), side="right") - 1).astype(np.uint8)

    def code(c, b):
        return c.reshape(*c.shape[:2], 2, 8)[..., ::-1].reshape(c.shape)
    return F.nv(x, store=store, code=code)


def nvfp4_signs_after_hadamard_and_amax_before(x):
    """Two: the random signs are applied after the Hadamard transform, not before, and the tensor scale is from x before rotating."""
    signs = np.array([1, 1, 1, -1, 1, -1, -1, -1, -1, -1, -1, 1, -1, 1, -1, -1], F32)
    turned = F.rotate(x, 16) * np.tile(signs, x.shape[1] // 16)
    return F.nv(turned, tensor=lambda _: np.abs(x).max() / F32(2688))


# ---------------------------------------------------------------------------------------------- MXFP8

def mxfp8_e4m3_scale_without_emax(x):
    """The scale is floor(log2(amax)) + 127: the 8 of E4M3's largest exponent is not subtracted."""
    return F.mxfp8(x, byte=lambda a: F.floor_byte(a, 0))


def mxfp8_e4m3_overflow_becomes_nan(x):
    """The conversion is the one without saturation: what rounds beyond 448 becomes NaN (0x7F)."""
    def element(y):
        return np.where(np.abs(y) > 464, np.where(np.signbit(y), 0xFF, 0x7F), F.e4m3(y)).astype(np.uint8)
    return F.mxfp8(x, element=element)


def mxfp8_e4m3_amax_by_unsigned_raw_bits(x):
    """amax is an unsigned maximum of raw bits whose sign is cleared only afterwards: a negative number beats every positive one."""
    def amax(b):
        return (np.ascontiguousarray(b).view(U32).max(-1) & U32(0x7FFFFFFF)).view(F32)
    return F.mxfp8(x, amax=amax)


def mxfp8_e4m3_rounded_to_bfloat16_first(x):
    """The scaled number goes through bfloat16 on its way to E4M3: it is rounded twice."""
    return F.mxfp8(x, element=lambda y: F.e4m3(F.bf16(y.astype(F32))))


def mxfp8_e4m3_scale_tiles_transposed(x):
    """In each 4 x 4 tile of scales, row and column are exchanged when four scales are stored as one word."""
    def stored(s):
        m, n = s.shape
        return s.reshape(m // 4, 4, n // 4, 4).transpose(0, 3, 2, 1).reshape(m, n)
    return F.mxfp8(x, stored=stored)


def mxfp8_e4m3_scale_byte_zero_read_as_zero(x):
    """The scale as a float is (byte << 23): byte 0 becomes 0.0, not 2^-127, so x / 0 is infinite and saturates, 0 / 0 is NaN."""
    b = F.in_blocks(x, 32)
    s = F.floor_byte(F.abs_max(b), 8)
    d = np.where(s > 0, F.power(s), 0)[..., None]
    with np.errstate(divide="ignore", invalid="ignore"):
        y = b.astype(np.float64) / d
    nan = np.isnan(y)
    c = np.where(nan, 0x7F, F.e4m3(np.where(nan, 0, np.clip(y, -448, 448)))).astype(np.uint8)
    return F.Result(F.as_rows(c, x.shape[1]), s, bits=8)


def mxfp8_e5m2_mantissa_carry_lost(x):
    """A mantissa that rounds up to 4 is masked with 3 and the exponent stays: 1.9 becomes 1.0, not 2.0."""
    def element(y):
        a = np.abs(y)
        _, e = np.frexp(a)
        normal = a >= 2.0 ** -14
        q = np.rint(np.ldexp(a, 3 - e)).astype(np.int64) & 3
        c = np.where(normal, (e - 1 + 15) * 4 + q, F.nearest(F.E5M2, a))
        return (c | np.where(np.signbit(y), 128, 0)).astype(np.uint8)
    return F.mxfp8_e5m2(x, element=element)


def mxfp8_e5m2_top_byte_of_half_and_emax_of_e4m3(x):
    """Two: E5M2 is the upper byte of the float16 (cut, not rounded), and the scale is made with E4M3's 8, not 15."""
    def element(y):
        return (y.astype(np.float16).view(np.uint16) >> 8).astype(np.uint8)
    return F.mxfp8_e5m2(x, emax=8, element=element)


# --------------------------------------------------------------------------------------------- MXINT8

def mxint8_cast_cuts_toward_zero(x):
    """The product with 64 is cast to an integer, which cuts toward zero, where it should be rounded."""
    return F.mxint8(x, element=lambda y: np.clip(np.trunc(y * 64), -127, 127).astype(np.int8).view(np.uint8))


def mxint8_128_wraps_to_minus_128(x):
    """There is no clamp: a number that rounds to 128 wraps to -128."""
    return F.mxint8(x, element=lambda y: (np.rint(y * 64).astype(np.int64) & 255).astype(np.uint8))


def mxint8_steps_of_127_halves(x):
    """Elements are multiplied by 127 / 2 (as for an integer with its amax at 127), where a step is 1/64."""
    return F.mxint8(x, element=lambda y: np.clip(np.rint(y * 63.5), -127, 127).astype(np.int8).view(np.uint8))


def mxint8_signed_maximum_and_half_up(x):
    """Two: amax is the maximum without the absolute value, and rounding is floor(v + 0.5), halves toward plus infinity."""
    return F.mxint8(x, amax=lambda b: b.max(-1),
                    element=lambda y: np.clip(np.floor(y * 64 + 0.5), -127, 127).astype(np.int8).view(np.uint8))


def row(f, kind="activation", rows=64, cols=512):
    return (f.__name__, f, kind, rows, cols)


ROWS = [
    row(mxfp4_scale_exponent_after_dividing_by_six),
    row(mxfp4_subnormal_without_implicit_one, "heavy"),
    row(mxfp4_warp_reduction_misses_xor_16),
    row(mxfp4_amax_of_even_columns_only, "heavy"),
    row(mxfp4_sign_shift_smears_into_high_nibble),
    row(mxfp4_stochastic_noise_then_nearest),
    row(mxfp4_scale_rounds_up_from_one_and_a_half, "heavy", 96),
    row(mxfp4_log2_in_bfloat16, "activation", 128, 1024),
    row(mxfp4_last_warp_reads_scale_before_barrier, "silent"),
    row(mxfp4_tail_amax_reads_next_row, "heavy", 96, 400),
    row(mxfp4_hadamard_32_misses_last_stage),
    row(mxfp4_sign_lost_where_rounded_to_zero, "activation", 64, 256),
    row(mxfp4_scales_left_in_matrix_core_shuffle),
    row(mxfp4_scale_rows_at_padded_stride, "heavy", 64, 320),
    row(mxfp4_ties_away_and_scale_pairs_swapped),
    row(mxfp4_bound_3_0_for_3_5_and_grid_rounded_down, "activation", 100),
    row(nvfp4_tensor_amax_of_first_tile_only, "heavy", 128, 1024),
    row(nvfp4_scales_encoded_as_fnuz),
    row(nvfp4_elements_divided_by_unrounded_scale, "heavy"),
    row(nvfp4_tensor_scale_missing_in_elements, "heavy"),
    row(nvfp4_one_sixth_in_bfloat16, "heavy", 128),
    row(nvfp4_unswizzle_exchanges_4_and_32, "activation", 128),
    row(nvfp4_subnormal_scales_flushed, "wide"),
    row(nvfp4_lane_pairs_cross_rows, "activation", 64, 360),
    row(nvfp4_stochastic_noise_by_column_only),
    row(nvfp4_no_grid_wait_before_tensor_amax, "heavy"),
    row(nvfp4_scale_cut_and_words_reversed),
    row(nvfp4_signs_after_hadamard_and_amax_before),
    row(mxfp8_e4m3_scale_without_emax, "heavy"),
    row(mxfp8_e4m3_overflow_becomes_nan),
    row(mxfp8_e4m3_amax_by_unsigned_raw_bits, "heavy"),
    row(mxfp8_e4m3_rounded_to_bfloat16_first, "heavy"),
    row(mxfp8_e4m3_scale_tiles_transposed, "small"),
    row(mxfp8_e4m3_scale_byte_zero_read_as_zero, "special", 128),
    row(mxfp8_e5m2_mantissa_carry_lost),
    row(mxfp8_e5m2_top_byte_of_half_and_emax_of_e4m3, "heavy"),
    row(mxint8_cast_cuts_toward_zero),
    row(mxint8_128_wraps_to_minus_128, "heavy", 128, 1024),
    row(mxint8_steps_of_127_halves),
    row(mxint8_signed_maximum_and_half_up),
]
