"""Forty kernels with mistakes as they come out of RTL, SIMD ports, GPU kernels, eager reference code and exporters."""
import numpy as np

import formats as F

F32 = np.float32
SIGNS16 = np.array([1, 1, 1, -1, 1, -1, -1, -1, -1, -1, -1, 1, -1, 1, -1, -1], F32)


# Random numbers of the kernels with stochastic rounding.

def pcg_hash(i):
    """The well known 32-bit PCG hash (RXS-M-XS)."""
    m = np.uint64(0xFFFFFFFF)
    state = (np.asarray(i, np.uint64) * np.uint64(747796405) + np.uint64(2891336453)) & m
    word = (((state >> ((state >> np.uint64(28)) + np.uint64(4))) ^ state) * np.uint64(277803737)) & m
    return (word >> np.uint64(22)) ^ word


def xorshift32(state):
    """One step of Marsaglia's xorshift32."""
    m = np.uint64(0xFFFFFFFF)
    s = np.asarray(state, np.uint64) & m
    s ^= (s << np.uint64(13)) & m
    s ^= s >> np.uint64(17)
    s ^= (s << np.uint64(5)) & m
    return s


def philox4x32(counter, key):
    """Philox4x32-10, counter (counter, 0, 0, 0), key (key, 0); gives [..., 4] words."""
    m, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    c = [np.asarray(counter, np.uint64)] + [np.zeros(np.shape(counter), np.uint64)] * 3
    k0, k1 = key, 0
    for _ in range(10):
        p0, p1 = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(p1 >> half) ^ c[1] ^ np.uint64(k0), p1 & m, (p0 >> half) ^ c[3] ^ np.uint64(k1), p0 & m]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack(c, -1)


def stochastic(table, y, u, sign_bit):
    """Up where u (0 to 1) is below the part of the step that is left."""
    v = np.minimum(np.abs(np.asarray(y, np.float64)), table[-1])
    lo = np.clip(np.searchsorted(table, v, side="right") - 1, 0, len(table) - 2)
    part = (v - table[lo]) / (table[lo + 1] - table[lo])
    return ((lo + (u < part)) | np.where(np.signbit(y), sign_bit, 0)).astype(np.uint8)


# Small pieces.

E2M1 = F.E2M1.astype(np.float64)
MIDDLES = (E2M1[1:] + E2M1[:-1]) / 2


def sign4(y):
    return np.where(np.signbit(y), 8, 0)


def ties_away(y):
    """E2M1, ties away from zero."""
    return (np.searchsorted(MIDDLES, np.abs(np.asarray(y, np.float64)), side="right") | sign4(y)).astype(np.uint8)


def swap_pairs(c):
    return c.reshape(*c.shape[:-1], -1, 2)[..., ::-1].reshape(c.shape)


# MXFP4

def mxfp4_subnormal_shift_drops_sticky_bits(x):
    """Below 1 the significand is shifted right into three bits before rounding, without a sticky bit, so 0.3 looks like a tie."""
    def element(y):
        v = np.abs(y)
        return F.e2m1(np.copysign(np.where(v < 1, np.floor(v * 8) / 8, v), y))
    return F.mx(x, element=element)


def mxfp4_threshold_compares_swapped(x):
    """A chain of compares with the seven middles has >= where > belongs and the reverse, so ties go to the odd code."""
    def element(y):
        v = np.abs(y)
        code = sum((v >= m) if k % 2 == 0 else (v > m) for k, m in enumerate(MIDDLES))
        return (code.astype(np.int64) | sign4(y)).astype(np.uint8)
    return F.mx(x, element=element)


def mxfp4_blocks_straddle_rows(x):
    """reshape(-1, 32) though a row is not a whole number of blocks: the tail of a row shares a block with the next row."""
    rows, cols = x.shape
    q = F.mx(x.reshape(1, -1))
    per_row = -(-cols // 32)
    scales = np.zeros(rows * per_row, np.uint8)
    scales[: q.scales.size] = q.scales.reshape(-1)
    return F.Result(q.codes.reshape(rows, cols), scales.reshape(rows, per_row))


def mxfp4_scale_row_pitch_not_padded(x):
    """Scales are written with the pitch ceil(cols / 32) into a buffer (filled with 127) whose rows are padded to 8 scales."""
    q = F.mx(x)
    rows, n = q.scales.shape
    pitch = -(-n // 8) * 8
    buffer = np.full(rows * pitch, 127, np.uint8)
    buffer[: rows * n] = q.scales.reshape(-1)
    q.scales = buffer.reshape(rows, pitch)[:, :n].copy()
    return q


def mxfp4_rounding_carry_lost(x):
    """RTL: when the mantissa rounds up past its one bit, it wraps to 0 and the carry never reaches the exponent field."""
    def element(y):
        v = np.abs(y)
        e = np.clip(np.frexp(np.where(v < 1, 1, v))[1] - 1, 0, 2)
        m = np.rint((v / 2.0 ** e - 1) * 2).astype(np.int64)
        normal = np.where(v >= 6, 7, 2 * (e + 1) + (m & 1))
        return (np.where(v < 1, np.rint(v * 2).astype(np.int64), normal) | sign4(y)).astype(np.uint8)
    return F.mx(x, element=element)


def mxfp4_scale_rounding_constant_one_bit_low(x):
    """The scale that rounds amax up from 1.75 adds 1 << 20 in place of 1 << 21 to the bits, so it rounds up only from 1.875."""
    def byte(a):
        bits = a.astype(F32).view(np.uint32).astype(np.int64)
        return np.where(a > 0, np.clip(((bits + (1 << 20)) >> 23) - 2, 0, 254), 0).astype(np.uint8)
    return F.mx(x, byte=byte)


def mxfp4_shuffle_reduction_misses_last_step(x):
    """Eight lanes hold four numbers each; the xor shuffle loop ends before mask 1, so even and odd lanes have their own amax."""
    b = F.in_blocks(x, 32)
    lanes = np.abs(b).reshape(*b.shape[:2], 4, 2, 4).max((2, 4))
    own = F.floor_byte(lanes, 2)
    d = np.broadcast_to(F.power(own)[:, :, None, :, None], (*b.shape[:2], 4, 2, 4)).reshape(b.shape)
    return F.Result(F.as_rows(F.e2m1(b.astype(np.float64) / d), x.shape[1]), own[..., 0].copy())


def mxfp4_amax_not_cleared_between_blocks(x):
    """A thread takes four blocks one after another and does not set its running amax back to 0 between them."""
    def amax(b):
        a = F.abs_max(b)
        rows, n = a.shape
        a = np.pad(a, ((0, 0), (0, -n % 4))).reshape(rows, -1, 4)
        return np.maximum.accumulate(a, -1).reshape(rows, -1)[:, :n]
    return F.mx(x, amax=amax)


def mxfp4_stochastic_dither_ignores_subnormal_step(x):
    """Stochastic rounding (PCG hash of index, seed 1234) adds bits below the mantissa bit also under 1, where the step is 0.5."""
    def element(y):
        index = np.arange(y.size, dtype=np.uint64).reshape(y.shape)
        noise = (pcg_hash(index ^ np.uint64(1234)) >> np.uint64(10)).astype(np.int64)
        v = np.abs(y).astype(F32).view(np.uint32).astype(np.int64) + noise
        v = (v & 0x7FC00000).astype(np.uint32).view(F32).astype(np.float64)
        return ((np.searchsorted(E2M1, v, side="right") - 1) | sign4(y)).astype(np.uint8)
    return F.mx(x, element=element)


def mxfp4_fixed_point_rounds_half_up(x):
    """DSP port: numbers are signed fixed point and floor(v + half) is taken with the sign on, so ties go towards plus infinity."""
    def element(y):
        v = np.abs(y)
        step = np.where(v < 2, 0.5, np.where(v < 4, 1.0, 2.0))
        return F.e2m1(np.copysign(np.clip(np.floor(y / step + 0.5) * step, -6, 6), y))
    return F.mx(x, element=element)


def mxfp4_log2_rounded_to_bfloat16(x):
    """Eager code under autocast: log2(amax) is a bfloat16 before the floor, so just below a power of two it rounds up to it."""
    def byte(a):
        e = np.floor(F.bf16(np.log2(np.where(a > 0, a, 1).astype(F32)))).astype(np.int64)
        return np.where(a > 0, np.clip(e - 2 + 127, 0, 254), 0).astype(np.uint8)
    return F.mx(x, byte=byte)


def mxfp4_amax_without_abs_and_high_nibble_first(x):
    """Two mistakes: the block maximum is that of the signed numbers, and the first number of a byte goes to the high nibble."""
    q = F.mx(x, amax=lambda b: np.maximum(b.max(-1), 0))
    q.codes = swap_pairs(q.codes)
    return q


def mxfp4_avx2_pack_order_and_ties_away(x):
    """Two mistakes: AVX2 packs work in 128-bit lanes and the last permute is missing; and ties are rounded away from zero."""
    def code(c, b):
        return c.reshape(*c.shape[:-1], 8, 4)[..., [0, 2, 4, 6, 1, 3, 5, 7], :].reshape(c.shape)
    return F.mx(x, element=ties_away, code=code)


def mxfp4_scale_exponent_without_bias(x):
    """The exporter stores the scale's exponent as a signed byte, without adding 127."""
    return F.mx(x, stored=lambda s: (s.astype(np.int64) - 127).astype(np.int8).view(np.uint8))


def mxfp4_zero_block_log2_cast_to_int(x):
    """A block of zeros is not caught: int32(floor(log2(0))) is the least int, less 2 plus 127 its low byte is 125."""
    def byte(a):
        return np.where(a > 0, F.floor_byte(a, 2), ((-(1 << 31) - 2 + 127) & 0xFF)).astype(np.uint8)
    return F.mx(x, byte=byte)


# NVFP4

def nvfp4_elements_divided_by_unrounded_scale(x):
    """Export path: the numbers are divided by the block scale before it was rounded to E4M3, not by the published one."""
    b = F.in_blocks(x, 16)
    t = np.abs(x).max() / F32(448 * 6)
    r = F.abs_max(b) / F32(6) / t
    return F.nv(x, divide=lambda b, f, t: b / (r * t)[..., None])


def nvfp4_scales_in_fnuz(x):
    """The block scales use the float8_e4m3fnuz type of an older GPU (bias 8, largest 240), while T still reckons with 448."""
    fnuz = F.float_table(4, 3, 8, 127)
    return F.nv(x, store=lambda r: F.nearest(fnuz, r).astype(np.uint8), read=lambda s: fnuz[s].astype(F32))


def nvfp4_amax_over_two_blocks(x):
    """A shuffle left over from blocks of 32 joins the amax of two neighbouring blocks of 16."""
    def amax(b):
        a = F.abs_max(b)
        return np.repeat(a.reshape(a.shape[0], -1, 2).max(-1), 2, -1)
    return F.nv(x, amax=amax)


def nvfp4_reciprocal_kept_in_bfloat16(x):
    """The reciprocal of block scale times tensor scale is held in the input's type, bfloat16, before the numbers are multiplied."""
    return F.nv(x, divide=lambda b, f, t: b * F.bf16(F32(1) / (f * t))[..., None])


def nvfp4_rotation_signs_applied_after(x):
    """Randomised Hadamard transform of 16: the sign vector multiplies the result, not the input."""
    return F.nv(F.rotate(x, 16) * np.tile(SIGNS16, x.shape[1] // 16))


def nvfp4_tensor_amax_from_before_rotation(x):
    """The numbers are rotated (Hadamard, 16) first, but the tensor scale comes from the amax of the numbers not rotated."""
    return F.nv(F.rotate(x, 16), tensor=lambda _: np.abs(x).max() / F32(448 * 6))


def nvfp4_stochastic_word_shared_by_pair(x):
    """Stochastic rounding (Philox4x32-10, seed 42): both numbers of a packed byte use one random word, counter byte // 4."""
    def element(y):
        pair = np.arange(y.size).reshape(y.shape) // 2
        words = philox4x32(np.arange(-(-y.size // 8), dtype=np.uint64), 42).reshape(-1)
        return stochastic(E2M1, y, words[pair] / 2.0 ** 32, 8)
    return F.nv(x, element=element)


def nvfp4_subnormal_scales_flushed(x):
    """Block scales below 2^-6 (E4M3 subnormals) are flushed to 0, and the numbers of such a block become 0."""
    def store(r):
        s = F.nearest(F.E4M3, np.minimum(r, F32(448))).astype(np.uint8)
        return np.where(s < 8, 0, s).astype(np.uint8)
    return F.nv(x, store=store, divide=lambda b, f, t: np.where(f[..., None] > 0, b / (f * t)[..., None], b * 0))


def nvfp4_sign_bits_swapped_in_pair(x):
    """The sign bits are gathered apart from the magnitudes and put back in the other order within each byte."""
    def code(c, b):
        return (c & 7) | swap_pairs(c & 8)
    return F.nv(x, code=code)


def nvfp4_halves_of_block_in_nibbles(x):
    """A byte holds number j in its low and number j + 8 in its high nibble (the GGUF way), where neighbours are expected."""
    def code(c, b):
        return c.reshape(*c.shape[:-1], 2, 8).swapaxes(-1, -2).reshape(c.shape)
    return F.nv(x, code=code)


def nvfp4_scale_truncated_and_left_swizzled(x):
    """Two mistakes: the scale is cut to E4M3 toward zero, and scales come in the 128 x 4 tile order of the matrix unit."""
    def store(r):
        return np.clip(np.searchsorted(F.E4M3, r.astype(np.float64), side="right") - 1, 0, 126).astype(np.uint8)

    def final(s):
        rows, n = s.shape
        tiles = s.reshape(rows // 128, 4, 32, n // 4, 4).transpose(0, 3, 2, 1, 4)
        return np.ascontiguousarray(tiles).reshape(rows, n)
    return F.nv(x, store=store, final=final)


def nvfp4_tensor_scale_without_six_and_middle_mistyped(x):
    """Two mistakes: T is amax / 448 without the factor 6, and the limit between the codes of 3 and 4 is typed 3.25, not 3.5."""
    def element(y):
        c = F.e2m1(y)
        return np.where((np.abs(y) > 3.25) & ((c & 7) == 5), c + 1, c).astype(np.uint8)
    return F.nv(x, tensor=lambda x: np.abs(x).max() / F32(448), element=element)


def nvfp4_tensor_amax_last_store_wins(x):
    """One thread block a row stores its amax with a plain store in place of an atomic maximum: that of the last row stays."""
    return F.nv(x, tensor=lambda x: np.abs(x[-1]).max() / F32(448 * 6))


# MXFP8

def mxfp8_e4m3_block_maximum_maps_to_one(x):
    """The scale is 2^floor(log2(amax)): the largest exponent of E4M3, 8, is not subtracted."""
    return F.mxfp8(x, byte=lambda a: F.floor_byte(a, 0))


def mxfp8_e4m3_amax_through_bfloat16(x):
    """amax is rounded to bfloat16 before its exponent is taken, so just below a power of two it gets the next exponent."""
    return F.mxfp8(x, byte=lambda a: F.floor_byte(F.bf16(a), 8))


def mxfp8_e4m3_overflow_becomes_nan(x):
    """The cast to E4M3 does not saturate: what rounds past 448 becomes NaN, 0x7f or 0xff."""
    def element(y):
        return np.where(np.abs(y) > 464, 0x7F | np.where(np.signbit(y), 128, 0), F.e4m3(y)).astype(np.uint8)
    return F.mxfp8(x, element=element)


def mxfp8_e4m3_amax_of_square_tile(x):
    """The amax is that of a 32 x 32 tile, as for weights, where each row should have its own blocks of 32."""
    def amax(b):
        a = F.abs_max(b)
        return np.repeat(a.reshape(-1, 32, a.shape[1]).max(1), 32, 0)
    return F.mxfp8(x, amax=amax)


def mxfp8_e4m3_tail_amax_reads_next_row(x):
    """The short last block of a row is loaded without a mask, so its amax takes in the first numbers of the next row."""
    rows, cols = x.shape
    n = -(-cols // 32)
    flat = np.concatenate([x.reshape(-1), np.zeros(n * 32, F32)])
    loaded = flat[(np.arange(rows) * cols)[:, None] + np.arange(n * 32)].reshape(rows, n, 32)
    return F.mxfp8(x, amax=lambda b: F.abs_max(loaded))


def mxfp8_e4m3_subnormals_flushed_and_words_reversed(x):
    """Two mistakes: numbers below 2^-6 become 0 with their sign, and the four bytes of each 32-bit word are in reverse order."""
    q = F.mxfp8(x)
    c = np.where((q.codes & 127) < 8, q.codes & 128, q.codes).astype(np.uint8)
    q.codes = c.reshape(len(c), -1, 4)[..., ::-1].reshape(c.shape)
    return q


def mxfp8_e5m2_upper_byte_of_float16(x):
    """E5M2 is made as the upper byte of the float16: toward zero, and infinity where the float16 overflows."""
    def element(y):
        with np.errstate(over="ignore"):
            return (y.astype(np.float16).view(np.uint16) >> 8).astype(np.uint8)
    return F.mxfp8_e5m2(x, element=element)


def mxfp8_e5m2_stochastic_counter_restarts_each_row(x):
    """Stochastic rounding (xorshift32, two steps from 2463534242 + column): the row is not in the counter, so all rows share a noise."""
    def element(y):
        column = np.arange(y[0].size, dtype=np.uint64).reshape(y[0].shape)
        u = xorshift32(xorshift32(column + np.uint64(2463534242))) / 2.0 ** 32
        return stochastic(F.E5M2, y, u, 128)
    return F.mxfp8_e5m2(x, element=element)


# MXINT8

def mxint8_no_clamp_wraps(x):
    """What rounds to +128 steps is not clamped and wraps to -128; -128 is also kept as it is."""
    return F.mxint8(x, element=lambda y: (np.rint(y * 64).astype(np.int64) & 0xFF).astype(np.uint8))


def mxint8_arithmetic_shift_floors(x):
    """RTL: the significand in two's complement is shifted right without a rounding bit, so all go towards minus infinity."""
    return F.mxint8(x, element=lambda y: np.clip(np.floor(y * 64), -127, 127).astype(np.int8).view(np.uint8))


def mxint8_ceil_exponent_and_half_up(x):
    """Two mistakes: the exponent is ceil(log2(amax)), which wastes a bit, and rounding is floor(v + 0.5)."""
    def byte(a):
        m, e = np.frexp(a)
        return np.where(a > 0, np.clip(e.astype(np.int64) - (m == 0.5) + 127, 0, 254), 0).astype(np.uint8)
    return F.mxint8(x, byte=byte, element=lambda y: np.clip(np.floor(y * 64 + 0.5), -127, 127).astype(np.int8).view(np.uint8))


def mxint8_shifter_uses_exponent_of_block_before(x):
    """RTL pipeline one stage short: a block is shifted by the exponent of the block before it (127 at reset); its own is stored."""
    def divisor(s, b):
        return F.power(np.concatenate([[np.uint8(127)], s.reshape(-1)[:-1]]).reshape(s.shape))
    return F.mxint8(x, divisor=divisor)


def row(f, kind="activation", rows=64, cols=512):
    return f.__name__, f, kind, rows, cols


ROWS = [
    row(mxfp4_subnormal_shift_drops_sticky_bits),
    row(mxfp4_threshold_compares_swapped, cols=768),
    row(mxfp4_blocks_straddle_rows, cols=496),
    row(mxfp4_scale_row_pitch_not_padded, rows=96, cols=320),
    row(mxfp4_rounding_carry_lost, "heavy"),
    row(mxfp4_scale_rounding_constant_one_bit_low, "heavy", 128, 512),
    row(mxfp4_shuffle_reduction_misses_last_step, "heavy"),
    row(mxfp4_amax_not_cleared_between_blocks, cols=1024),
    row(mxfp4_stochastic_dither_ignores_subnormal_step, "heavy", 128, 512),
    row(mxfp4_fixed_point_rounds_half_up),
    row(mxfp4_log2_rounded_to_bfloat16, "heavy", 128, 1024),
    row(mxfp4_amax_without_abs_and_high_nibble_first),
    row(mxfp4_avx2_pack_order_and_ties_away),
    row(mxfp4_scale_exponent_without_bias, "small"),
    row(mxfp4_zero_block_log2_cast_to_int, "silent"),
    row(nvfp4_elements_divided_by_unrounded_scale),
    row(nvfp4_scales_in_fnuz),
    row(nvfp4_amax_over_two_blocks, "heavy"),
    row(nvfp4_reciprocal_kept_in_bfloat16, cols=1024),
    row(nvfp4_rotation_signs_applied_after, "heavy"),
    row(nvfp4_tensor_amax_from_before_rotation),
    row(nvfp4_stochastic_word_shared_by_pair, "heavy", 128, 512),
    row(nvfp4_subnormal_scales_flushed, "wide", 128, 256),
    row(nvfp4_sign_bits_swapped_in_pair),
    row(nvfp4_halves_of_block_in_nibbles, cols=256),
    row(nvfp4_scale_truncated_and_left_swizzled, "activation", 128, 512),
    row(nvfp4_tensor_scale_without_six_and_middle_mistyped),
    row(nvfp4_tensor_amax_last_store_wins, "heavy", 128, 512),
    row(mxfp8_e4m3_block_maximum_maps_to_one),
    row(mxfp8_e4m3_amax_through_bfloat16, "heavy", 128, 1024),
    row(mxfp8_e4m3_overflow_becomes_nan),
    row(mxfp8_e4m3_amax_of_square_tile, rows=96),
    row(mxfp8_e4m3_tail_amax_reads_next_row, "heavy", 96, 304),
    row(mxfp8_e4m3_subnormals_flushed_and_words_reversed, "heavy", 128, 1024),
    row(mxfp8_e5m2_upper_byte_of_float16, "heavy"),
    row(mxfp8_e5m2_stochastic_counter_restarts_each_row, "heavy"),
    row(mxint8_no_clamp_wraps, rows=128, cols=1024),
    row(mxint8_arithmetic_shift_floors),
    row(mxint8_ceil_exponent_and_half_up),
    row(mxint8_shifter_uses_exponent_of_block_before, "heavy", 64, 256),
]
