"""Forty wrong kernels of an outsider, each with one or two mistakes of the kind that is found in pull requests."""
import numpy as np

import formats as F

F32 = np.float32
U32 = np.uint32
E2M1 = F.E2M1.astype(np.float64)
FNUZ = F.float_table(4, 3, 8, 127)
SEED = 1234


def pcg(i, seed=SEED):
    """PCG hash of Jarzynski and Olano: 32 bits of each index."""
    s = (np.asarray(i).astype(U32) + U32(seed)) * U32(747796405) + U32(2891336453)
    w = ((s >> ((s >> U32(28)) + U32(4))) ^ s) * U32(277803737)
    return (w >> U32(22)) ^ w


def philox(counter, seed=SEED):
    """Philox4x32-10: [n][4] words; the counter is the first word, the key is (seed, 0)."""
    c = [np.asarray(counter).astype(np.uint64)] + [np.zeros(len(counter), np.uint64)] * 3
    k0, k1, low = seed, 0, np.uint64(0xFFFFFFFF)
    for _ in range(10):
        p, q = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(q >> np.uint64(32)) ^ c[1] ^ np.uint64(k0), q & low, (p >> np.uint64(32)) ^ c[3] ^ np.uint64(k1), p & low]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack(c, 1).astype(U32)


def signed(magnitude, y, bit=8):
    return (magnitude | np.where(np.signbit(y), bit, 0)).astype(np.uint8)


def below(table, y):
    """Code of the value at or below |y|, saturating."""
    return np.clip(np.searchsorted(table, np.abs(np.asarray(y, np.float64)), side="right") - 1, 0, len(table) - 1)


def away(table, v):
    """Nearest, ties to the larger magnitude, saturating; v >= 0."""
    return np.searchsorted((table[1:] + table[:-1]) / 2, np.asarray(v, np.float64), side="right")


# ---- MXFP4

def mxfp4_exponent_taken_after_division_by_six(x):
    """The scale is the exponent field of amax * (1/6) instead of that of amax, less 2."""
    def byte(a):
        return ((a * F32(1 / 6)).astype(F32).view(U32) >> U32(23)).astype(np.uint8)
    return F.mx(x, byte=byte)


def mxfp4_scale_exponent_rounded_by_top_mantissa_bit(x):
    """The conversion to E8M0 rounds to nearest: it adds 1 to the exponent where the first mantissa bit of amax is set."""
    def byte(a):
        carry = (np.ascontiguousarray(a, F32).view(U32) >> U32(22)) & U32(1)
        return (F.floor_byte(a, 2) + carry * (a > 0)).astype(np.uint8)
    return F.mx(x, byte=byte)


def mxfp4_abs_mask_clears_only_low_half_of_pairs(x):
    """The mask for the absolute value of a pair is 0x00007FFF: odd elements keep their sign in the maximum."""
    def amax(b):
        return np.maximum(np.abs(b[..., 0::2]).max(-1), b[..., 1::2].max(-1))
    return F.mx(x, amax=amax)


def mxfp4_warp_maximum_starts_at_offset_eight(x):
    """The butterfly over 32 lanes starts at 8, not 16: each half warp has its own maximum, lane 0 stores its scale."""
    def amax(b):
        return np.abs(b[..., :16]).max(-1)

    def code(c, b):
        s = F.floor_byte(np.abs(b[..., 16:]).max(-1), 2)
        c[..., 16:] = F.e2m1(b[..., 16:].astype(np.float64) / F.power(s)[..., None])
        return c
    return F.mx(x, amax=amax, code=code)


def mxfp4_ggml_block_order_kept(x):
    """The converter keeps the nibble order of ggml: byte j has elements j and j + 16 of its block."""
    def code(c, b):
        return np.stack([c[..., :16], c[..., 16:]], -1).reshape(c.shape)
    return F.mx(x, code=code)


def mxfp4_threshold_between_two_and_three_is_2_25(x):
    """In the chain of comparisons the threshold between 2 and 3 is 2.25 (the steps of 0.5 went on), not 2.5."""
    def element(y):
        c = F.e2m1(y)
        return np.where((np.abs(y) > 2.25) & (np.abs(y) <= 2.5), signed(5, y), c).astype(np.uint8)
    return F.mx(x, element=element)


def mxfp4_sign_taken_from_rounded_value(x):
    """The sign bit is (rounded value < 0): what rounds to zero from below gets +0, not -0."""
    def element(y):
        c = F.e2m1(y)
        return np.where(c == 8, 0, c).astype(np.uint8)
    return F.mx(x, element=element)


def mxfp4_second_half_reads_scale_before_barrier(x):
    """No barrier: in one block of 8 (by a hash) the second half warp still reads the scale of the block before."""
    def divisor(s, b):
        return F.power(s)

    def code(c, b):
        s = F.floor_byte(F.abs_max(b), 2)
        lost = (pcg(np.arange(s.size)).reshape(s.shape) & U32(7)) == 0
        lost[:, 0] = False
        old = F.power(np.concatenate([s[:, :1], s[:, :-1]], 1))
        c[..., 16:] = np.where(lost[..., None], F.e2m1(b[..., 16:].astype(np.float64) / old[..., None]), c[..., 16:])
        return c
    return F.mx(x, divisor=divisor, code=code)


def mxfp4_hadamard_32_without_its_factor(x):
    """The rotation by a Hadamard matrix of 32 forgets the factor 1/sqrt(32)."""
    return F.mx(F.butterflies(x, 32))


def mxfp4_stochastic_noise_counts_columns_only(x):
    """Stochastic rounding whose counter is the column: all rows use the same random numbers."""
    n = F.in_blocks(x, 32).shape[1] * 32
    u = ((pcg(np.arange(n)) >> U32(8)) / 2.0 ** 24).reshape(-1, 32)

    def element(y):
        lo = below(E2M1, y)
        hi = np.minimum(lo + 1, 7)
        part = np.where(hi > lo, (np.abs(y) - E2M1[lo]) / np.where(hi > lo, E2M1[hi] - E2M1[lo], 1), 0)
        return signed(np.where(u < part, hi, lo), y)
    return F.mx(x, element=element)


def mxfp4_tail_block_maximum_reads_next_row(x):
    """The load of a row's last, short block has no mask: its maximum takes in the first numbers of the next row."""
    rows, cols = x.shape
    pad = -cols % 32
    after = np.concatenate([x[1:, :pad], np.zeros((1, pad), F32)])

    def amax(b):
        a = F.abs_max(b)
        a[:, -1] = np.maximum(a[:, -1], np.abs(after).max(-1, initial=0))
        return a
    return F.mx(x, amax=amax)


def mxfp4_zero_block_gets_scale_of_one(x):
    """To keep log2 from zero, the maximum of a block of zeros is replaced by 1: its scale byte is 125, not 0."""
    return F.mx(x, byte=lambda a: F.floor_byte(np.where(a == 0, F32(1), a), 2))


def mxfp4_ceil_of_log2_and_ties_away(x):
    """Two mistakes: the scale is 2^(ceil(log2(amax)) - 2), and ties of elements go away from zero."""
    def byte(a):
        e = np.ceil(np.log2(np.where(a > 0, a, 1).astype(np.float64)))
        return np.where(a > 0, np.clip(e - 2 + 127, 0, 254), 0).astype(np.uint8)
    return F.mx(x, byte=byte, element=lambda y: signed(away(E2M1, np.abs(y)), y))


def mxfp4_high_nibble_first_and_scale_words_reversed(x):
    """Two mistakes: the first code of a byte is in its high nibble, and four scales are packed into a word the wrong way round."""
    def code(c, b):
        return c.reshape(*c.shape[:-1], -1, 2)[..., ::-1].reshape(c.shape)

    def stored(s):
        return s.reshape(s.shape[0], -1, 4)[..., ::-1].reshape(s.shape)
    return F.mx(x, code=code, stored=stored)


# ---- NVFP4

def nvfp4_tensor_maximum_stored_not_atomic(x):
    """Each row's thread block stores its maximum instead of atomicMax: the tensor scale is that of the last row."""
    return F.nv(x, tensor=lambda x: max(np.abs(x[-1]).max(), F32(1e-12)) / F32(2688))


def nvfp4_square_tiles_of_weights_used(x):
    """The flag for weights is left on: all 16 rows of a tile of 16 x 16 share one scale."""
    def amax(b):
        a = F.abs_max(b)
        return np.repeat(a.reshape(-1, 16, a.shape[1]).max(1), 16, 0)
    return F.nv(x, amax=amax)


def nvfp4_scales_cast_to_e4m3fnuz(x):
    """The block scale is cast to e4m3fnuz (bias 8, at most 240) as on an older AMD GPU."""
    def store(r):
        return F.nearest(FNUZ, np.minimum(r, F32(240))).astype(np.uint8)
    return F.nv(x, store=store, read=lambda s: FNUZ[s].astype(F32))


def nvfp4_block_of_32_with_scale_repeated(x):
    """The block size is that of MXFP4: the maximum is over 32 numbers and both halves get its scale."""
    def amax(b):
        a = F.abs_max(b)
        return np.repeat(a.reshape(len(a), -1, 2).max(-1), 2, -1)
    return F.nv(x, amax=amax)


def nvfp4_tensor_scale_not_applied_to_input(x):
    """The tensor scale is in the block scale but not in the division of the elements: most of them become zero."""
    return F.nv(x, divide=lambda b, f, t: b / f[..., None])


def nvfp4_largest_value_seven_from_int4(x):
    """The largest element is 7, as copied from the INT4 path, in the block scale and in the tensor scale."""
    return F.nv(x, largest=F32(7))


def nvfp4_subnormal_scales_flushed(x):
    """A cast in software flushes subnormal E4M3 scales to zero."""
    def store(r):
        s = F.nearest(F.E4M3, np.minimum(r, F32(448))).astype(np.uint8)
        return np.where(s < 8, 0, s).astype(np.uint8)
    return F.nv(x, store=store)


def nvfp4_stochastic_dither_then_nearest(x):
    """Stochastic rounding adds a random part of a step in [0, 1) and then rounds to nearest instead of down."""
    n = x.shape[0] * F.in_blocks(x, 16).shape[1] * 16
    u = ((philox(np.arange(n // 4)).reshape(-1) >> U32(8)) / 2.0 ** 24).reshape(x.shape[0], -1, 16)

    def element(y):
        m = np.minimum(np.abs(y.astype(np.float64)), 6)
        step = np.where(m < 2, 0.5, np.where(m < 4, 1, 2))
        return signed(F.nearest(E2M1, m + u * step), y)
    return F.nv(x, element=element)


def nvfp4_hadamard_16_rounds_each_step_to_bf16(x):
    """The rotation by a Hadamard matrix of 16 keeps its intermediate sums in bfloat16."""
    t = x.reshape(-1, 16).astype(F32)
    h = 1
    while h < 16:
        t = t.reshape(-1, 16 // (2 * h), 2, h)
        t = F.bf16(np.stack([t[:, :, 0] + t[:, :, 1], t[:, :, 0] - t[:, :, 1]], 2))
        h *= 2
    return F.nv(t.reshape(x.shape) * F32(0.25))


def nvfp4_fused_halves_keep_own_tensor_scale(x):
    """Two layers fused by rows (gate and up): each is quantised by its own tensor scale, the larger one is stored."""
    half = x.shape[0] // 2
    a, b = F.nv(x[:half]), F.nv(x[half:])
    return F.Result(np.concatenate([a.codes, b.codes]), np.concatenate([a.scales, b.scales]), max(a.tensor_scale, b.tensor_scale))


def nvfp4_pair_maximum_by_shuffle_down(x):
    """Two lanes of 8 numbers share a block by shuffle down, not xor: odd lanes take the maximum with the next block's first half."""
    def code(c, b):
        halves = np.abs(b.reshape(len(b), -1, 8)).max(-1)
        other = np.concatenate([halves[:, 1:], halves[:, -1:]], 1)
        lane = np.arange(halves.shape[1])
        other[:, lane % 32 == 31] = halves[:, lane % 32 == 31]
        t = np.abs(x).max() / F32(2688)
        r = np.maximum(halves, other)[:, 1::2] / F32(6) / t
        f = F.E4M3[F.nearest(F.E4M3, np.minimum(r, F32(448)))].astype(F32)
        with np.errstate(divide="ignore", invalid="ignore"):
            y = np.nan_to_num(b[..., 8:] / (f * t)[..., None], nan=0.0, posinf=1e30, neginf=-1e30)
        c[..., 8:] = F.e2m1(y)
        return c
    return F.nv(x, code=code)


def nvfp4_low_nibble_masked_with_seven(x):
    """Packing masks the low nibble with 7: elements of even columns lose their sign."""
    def code(c, b):
        c[..., 0::2] &= 7
        return c
    return F.nv(x, code=code)


def nvfp4_elements_divided_by_unrounded_scale(x):
    """The elements are divided by amax / 6 as it was before it was rounded to E4M3."""
    def divide(b, f, t):
        return b / (F.abs_max(b) / F32(6))[..., None]
    return F.nv(x, divide=divide)


def nvfp4_scales_left_swizzled_and_tensor_scale_inverted(x):
    """Two mistakes: scales stay in the 128 x 4 order of the matrix unit, and the tensor scale is stored as a divisor, 1 / T."""
    def final(s):
        r, c = np.indices(s.shape)
        place = (r // 128 * (s.shape[1] // 4) + c // 4) * 512 + r % 32 * 16 + r % 128 // 32 * 4 + c % 4
        out = np.zeros(s.size, np.uint8)
        out[place.reshape(-1)] = s.reshape(-1)
        return out.reshape(s.shape)
    return F.nv(x, final=final, stored_tensor=lambda t: F32(1) / F32(t))


def nvfp4_scale_truncated_and_quotient_in_bf16(x):
    """Two mistakes: the cast of the scale to E4M3 truncates, and the scaled elements are rounded to bfloat16 first."""
    def store(r):
        return below(F.E4M3, np.minimum(r, F32(448))).astype(np.uint8)
    return F.nv(x, store=store, scaled=lambda y: F.bf16(np.clip(y, -1e30, 1e30).astype(F32)))


# ---- MXFP8

def mxfp8_overflow_becomes_nan(x):
    """The cast to E4M3 does not saturate: what would round above 448 becomes NaN (0x7F)."""
    def element(y):
        return np.where(np.abs(y) > 464, signed(0x7F, y, 128), F.e4m3(y)).astype(np.uint8)
    return F.mxfp8(x, element=element)


def mxfp8_scale_exponent_is_nearest_log2(x):
    """The scale is 2^round(log2(amax / 448)): it is too small for half of the blocks."""
    def byte(a):
        e = np.rint(np.log2(np.where(a > 0, a, 1).astype(np.float64) / 448))
        return np.where(a > 0, np.clip(e + 127, 0, 254), 0).astype(np.uint8)
    return F.mxfp8(x, byte=byte)


def mxfp8_scales_written_with_padded_pitch(x):
    """Scales are written with rows padded to a multiple of 4 blocks and read as if the rows were dense."""
    def stored(s):
        return np.pad(s, ((0, 0), (0, -s.shape[1] % 4))).reshape(-1)[: s.size].reshape(s.shape)
    return F.mxfp8(x, stored=stored)


def mxfp8_maximum_not_reset_within_tile(x):
    """The running maximum is reset at each tile of 128 columns, not at each of its 4 blocks."""
    def amax(b):
        a = F.abs_max(b)
        return np.maximum.accumulate(a.reshape(len(a), -1, 4), -1).reshape(a.shape)
    return F.mxfp8(x, amax=amax)


def mxfp8_e5m2_with_exponent_of_e4m3(x):
    """The largest exponent of E4M3, 8, is used for E5M2, whose is 15."""
    return F.mxfp8_e5m2(x, emax=8)


def mxfp8_e5m2_is_high_byte_of_half(x):
    """E5M2 is made by a cast to float16 whose low byte is dropped."""
    def element(y):
        with np.errstate(over="ignore"):
            return (y.astype(np.float16).view(np.uint16) >> 8).astype(np.uint8)
    return F.mxfp8_e5m2(x, element=element)


def mxfp8_half_added_before_shift_and_maximum_of_first_16(x):
    """Two mistakes: elements are rounded by adding half a step and truncating (ties away), and the maximum is of 16 of the 32 numbers."""
    return F.mxfp8(x, amax=lambda b: F.abs_max(b[..., :16]), element=lambda y: signed(away(F.E4M3, np.abs(y)), y, 128))


# ---- MXINT8

def mxint8_minimum_is_minus_128(x):
    """Codes are clipped to -128..127, not to -127..127."""
    return F.mxint8(x, element=lambda y: np.clip(np.rint(y * 64), -128, 127).astype(np.int8).view(np.uint8))


def mxint8_codes_in_sign_and_magnitude(x):
    """Codes are stored as a sign bit and a magnitude instead of two's complement."""
    def element(y):
        return signed(np.minimum(np.rint(np.abs(y) * 64), 127).astype(np.int64), y, 128)
    return F.mxint8(x, element=element)


def mxint8_cast_to_integer_truncates(x):
    """The cast to int8 has no rounding before it: it truncates toward zero."""
    return F.mxint8(x, element=lambda y: np.clip(np.trunc(y * 64), -127, 127).astype(np.int8).view(np.uint8))


def mxint8_floor_of_half_added_and_wraps(x):
    """Two mistakes: codes are floor(v + 0.5), and they are not clipped: +128 wraps to -128."""
    return F.mxint8(x, element=lambda y: np.floor(y * 64 + 0.5).astype(np.int64).astype(np.int8).view(np.uint8))


def row(f, kind="activation", rows=64, cols=512):
    return (f.__name__, f, kind, rows, cols)


ROWS = [
    row(mxfp4_exponent_taken_after_division_by_six),
    row(mxfp4_scale_exponent_rounded_by_top_mantissa_bit, "heavy"),
    row(mxfp4_abs_mask_clears_only_low_half_of_pairs),
    row(mxfp4_warp_maximum_starts_at_offset_eight, "heavy"),
    row(mxfp4_ggml_block_order_kept),
    row(mxfp4_threshold_between_two_and_three_is_2_25, "heavy", 64, 256),
    row(mxfp4_sign_taken_from_rounded_value),
    row(mxfp4_second_half_reads_scale_before_barrier, "heavy", 128, 512),
    row(mxfp4_hadamard_32_without_its_factor, "activation", 64, 1024),
    row(mxfp4_stochastic_noise_counts_columns_only, "activation", 128, 512),
    row(mxfp4_tail_block_maximum_reads_next_row, "heavy", 128, 336),
    row(mxfp4_zero_block_gets_scale_of_one, "silent"),
    row(mxfp4_ceil_of_log2_and_ties_away, "activation", 128, 512),
    row(mxfp4_high_nibble_first_and_scale_words_reversed, "heavy"),
    row(nvfp4_tensor_maximum_stored_not_atomic, "heavy"),
    row(nvfp4_square_tiles_of_weights_used),
    row(nvfp4_scales_cast_to_e4m3fnuz),
    row(nvfp4_block_of_32_with_scale_repeated, "heavy"),
    row(nvfp4_tensor_scale_not_applied_to_input),
    row(nvfp4_largest_value_seven_from_int4),
    row(nvfp4_subnormal_scales_flushed, "wide"),
    row(nvfp4_stochastic_dither_then_nearest, "heavy"),
    row(nvfp4_hadamard_16_rounds_each_step_to_bf16, "activation", 64, 1024),
    row(nvfp4_fused_halves_keep_own_tensor_scale, "heavy", 128, 512),
    row(nvfp4_pair_maximum_by_shuffle_down),
    row(nvfp4_low_nibble_masked_with_seven, "heavy", 64, 256),
    row(nvfp4_elements_divided_by_unrounded_scale),
    row(nvfp4_scales_left_swizzled_and_tensor_scale_inverted, "activation", 128, 512),
    row(nvfp4_scale_truncated_and_quotient_in_bf16, "heavy", 128, 512),
    row(mxfp8_overflow_becomes_nan),
    row(mxfp8_scale_exponent_is_nearest_log2, "heavy"),
    row(mxfp8_scales_written_with_padded_pitch, "activation", 64, 320),
    row(mxfp8_maximum_not_reset_within_tile, "heavy"),
    row(mxfp8_e5m2_with_exponent_of_e4m3),
    row(mxfp8_e5m2_is_high_byte_of_half, "heavy"),
    row(mxfp8_half_added_before_shift_and_maximum_of_first_16, "activation", 128, 512),
    row(mxint8_minimum_is_minus_128, "activation", 128, 1024),
    row(mxint8_codes_in_sign_and_magnitude, "heavy"),
    row(mxint8_cast_to_integer_truncates),
    row(mxint8_floor_of_half_added_and_wraps, "activation", 128, 1024),
]
