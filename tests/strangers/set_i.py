"""Forty wrong quantisation kernels by a GPU kernel engineer who has seen nothing of the program that must explain them."""
import numpy as np

import formats as F

F32 = F.F32
TABLE = F.E2M1.astype(np.float64)


def pcg(i):
    """PCG output hash of a 32-bit number (Jarzynski and Olano), as a number in [0, 1)."""
    with np.errstate(over="ignore"):
        s = np.asarray(i, np.uint32) * np.uint32(747796405) + np.uint32(2891336453)
        w = ((s >> ((s >> np.uint32(28)) + np.uint32(4))) ^ s) * np.uint32(277803737)
    return ((w >> np.uint32(22)) ^ w).astype(np.float64) / 2.0**32


def signed(magnitude, y, bit=8):
    return (magnitude | np.where(np.signbit(y), bit, 0)).astype(np.uint8)


def toward_zero(table, y, bit=8):
    return signed(np.clip(np.searchsorted(table, np.abs(y), "right") - 1, 0, len(table) - 1), y, bit)


def swap_pairs(c, b=None):
    """Neighbours 2i and 2i + 1 exchanged."""
    return c.reshape(*c.shape[:-1], -1, 2)[..., ::-1].reshape(c.shape)


def e4m3_byte(r):
    return F.nearest(F.E4M3, np.minimum(r, F32(448))).astype(np.uint8)


# MXFP4


def mxfp4_butterfly_without_xor_one(x):
    """One element a lane; the shuffles go 16, 8, 4, 2 and stop: lanes of odd index have another maximum; lane 0 stores the scale."""
    b = F.in_blocks(x, 32)
    even, odd = (F.floor_byte(np.abs(b[..., k::2]).max(-1), 2) for k in (0, 1))
    y = b.astype(np.float64)
    y[..., 0::2] /= F.power(even)[..., None]
    y[..., 1::2] /= F.power(odd)[..., None]
    return F.Result(F.as_rows(F.e2m1(y), x.shape[1]), even)


def mxfp4_abs_mask_on_low_half_only(x):
    """The maximum over bf16x2 registers clears the sign of the low half only (0xFFFF7FFF): odd elements count with their sign."""
    return F.mx(x, amax=lambda b: np.maximum(np.abs(b[..., 0::2]).max(-1), b[..., 1::2].max(-1)))


def mxfp4_scale_exponent_of_a_sixth(x):
    """The scale is the exponent field of amax * (1/6), not of amax less 2: too small for mantissas below 1.5."""
    return F.mx(x, byte=lambda a: ((a * F32(1 / 6)).astype(F32).view(np.uint32) >> 23).astype(np.uint8))


def mxfp4_even_scale_adds_half_a_mantissa(x):
    """Scale rounding of the 'even' rule adds 1 << 22 to the bits of amax where 1 << 21 is right: up from 1.5, not from 1.75."""

    def byte(a):
        e = ((np.ascontiguousarray(a).view(np.uint32) + np.uint32(1 << 22)) >> 23).astype(np.int64)
        return np.clip(e - 2, 0, 254).astype(np.uint8)

    return F.mx(x, byte=byte)


def mxfp4_shifts_round_half_up(x):
    """The conversion by shifts adds one below the last bit and shifts: ties go up, and the bits shifted out are forgotten."""

    def element(y):
        u = y.astype(F32).view(np.uint32).astype(np.int64)
        e, m = (u >> 23) & 255, u & 0x7FFFFF
        m = np.where(e < 127, (0x400000 | (m >> 1)) >> np.clip(126 - e, 0, 31), m)
        e = np.maximum(e, 126) - 126
        return (np.minimum((((e << 2) | (m >> 21)) + 1) >> 1, 7) | ((u >> 28) & 8)).astype(np.uint8)

    return F.mx(x, element=element)


def mxfp4_cvt_operands_in_wrong_order(x):
    """cvt.rn.satfinite.e2m1x2 puts its first operand in the upper nibble; the kernel passes the even element first."""
    return F.mx(x, code=swap_pairs)


def mxfp4_scale_rows_at_padded_stride(x):
    """Scale rows are written at a stride rounded up to 8 blocks, but the tensor handed back has the unpadded stride."""
    r = F.mx(x)
    rows, blocks = r.scales.shape
    buffer = np.zeros((rows, -(-blocks // 8) * 8), np.uint8)
    buffer[:, :blocks] = r.scales
    return F.Result(r.codes, buffer.reshape(-1)[: rows * blocks].reshape(rows, blocks))


def mxfp4_swizzle_splits_rows_by_four(x):
    """The 128x4 scale tile takes a row as (r / 4, r % 4) where the reader takes it as (r % 32, r / 32): rows are permuted."""
    r = F.mx(x)
    padded = np.pad(r.scales, ((0, -len(x) % 128), (0, 0)))
    rows = np.arange(len(x))
    return F.Result(r.codes, padded[rows // 128 * 128 + rows % 32 * 4 + rows % 128 // 32])


def mxfp4_tail_loads_next_row(x):
    """No mask on the load of the short last block: its maximum takes in the beginning of the next row; the store is masked."""
    rows, cols = x.shape
    blocks = -(-cols // 32)
    at = np.arange(rows)[:, None, None] * cols + np.arange(blocks)[:, None] * 32 + np.arange(32)
    b = np.append(x.reshape(-1), np.zeros(32, F32))[np.minimum(at, x.size)]
    s = F.floor_byte(np.abs(b).max(-1), 2)
    return F.Result(F.as_rows(F.e2m1(b.astype(np.float64) / F.power(s)[..., None]), cols), s)


def mxfp4_hadamard_lacks_stage_across_lanes(x):
    """The Hadamard transform of 32 does its four stages in registers and not the one across lanes; the factor is that of 32."""
    return F.mx(F.butterflies(x, 16) * F32(1 / np.sqrt(32)))


def mxfp4_noise_then_nearest(x):
    """Stochastic rounding adds a random part of a step, as it should before truncation, and then calls the nearest conversion."""
    u = F.in_blocks(pcg(np.arange(x.size)).reshape(x.shape), 32)

    def element(y):
        a = np.abs(y)
        step = np.where(a < 2, 0.5, np.where(a < 4, 1, 2))
        return signed(F.nearest(TABLE, a + u * step), y)

    return F.mx(x, element=element)


def mxfp4_running_max_is_not_reset(x):
    """Sixteen persistent thread blocks stride over the rows; the register of the maximum is set to zero before the loop, not in it."""
    s = np.empty((len(x), -(-x.shape[1] // 32)), np.uint8)
    a = F.abs_max(F.in_blocks(x, 32))
    for k in range(16):
        s[k::16] = F.floor_byte(np.maximum.accumulate(a[k::16], 0), 2)
    return F.mx(x, byte=lambda a: s)


def mxfp4_last_warp_reads_old_scale(x):
    """A barrier is missing: of four warps, a row each, the last divides by what shared memory holds from the round before."""

    def divisor(s, b):
        d = F.power(s)
        d[7::4] = F.power(s[3:-4:4])
        return d

    return F.mx(x, divisor=divisor)


def mxfp4_zero_block_one_and_no_minus_zero(x):
    """Two mistakes: a block of zeros stores scale 127 (1.0), and the sign is set by comparing the rounded value with zero."""
    r = F.mx(x, code=lambda c, b: np.where(c == 8, 0, c).astype(np.uint8))
    zero = F.abs_max(F.in_blocks(x, 32)) == 0
    return F.Result(r.codes, np.where(zero, 127, r.scales).astype(np.uint8))


def mxfp4_xor_four_for_two_and_ties_away(x):
    """Two mistakes: lanes of 8 elements reduce over xor 1 and 4 (not 1 and 2), and a chain of >= rounds ties away from zero."""
    b = F.in_blocks(x, 64)
    lanes = np.abs(b).reshape(*b.shape[:2], 8, 8).max(-1)
    k = np.arange(8)
    pair = np.maximum(lanes, lanes[..., k ^ 1])
    s = F.floor_byte(np.maximum(pair, pair[..., k ^ 4]), 2)
    y = b.astype(np.float64) / np.repeat(F.power(s), 8, -1)
    c = signed(np.searchsorted([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5], np.abs(y), "right"), y)
    return F.Result(F.as_rows(c, x.shape[1]), s[..., ::4].reshape(len(x), -1)[:, : -(-x.shape[1] // 32)])


# NVFP4


def nvfp4_reciprocal_kept_in_bf16(x):
    """1 / (s * T) is put into a bf16x2 register, and the elements are multiplied by that."""

    def divide(b, f, t):
        return b * F.bf16((F32(1) / (f * t)).astype(F32))[..., None]

    return F.nv(x, divide=divide)


def nvfp4_scale_cut_to_e4m3(x):
    """The block scale is brought to E4M3 by shifting mantissa bits out: toward zero, not to the nearest."""
    return F.nv(x, store=lambda r: np.clip(np.searchsorted(F.E4M3, r, "right") - 1, 0, 126).astype(np.uint8))


def nvfp4_divides_by_scale_before_rounding(x):
    """The elements are divided by the binary32 scale amax / 6, not by the E4M3 number that was stored."""
    return F.nv(x, divide=lambda b, f, t: b * (F32(6) / F.abs_max(b))[..., None])


def nvfp4_tensor_max_without_grid_barrier(x):
    """The thread block of a row adds its maximum to the global one and uses it at once: it has only the rows so far."""
    so_far = (np.maximum.accumulate(np.abs(x).max(1)) / F32(448 * 6)).astype(F32)[:, None]
    return F.nv(x, tensor=lambda x: so_far, stored_tensor=lambda t: F32(t[-1, 0]))


def nvfp4_scales_in_fnuz(x):
    """Ported from MI300: block scales are E4M3FNUZ (bias 8, at most 240), while the tensor scale still assumes 448."""
    table = F.float_table(4, 3, 8, 127)
    return F.nv(x, store=lambda r: F.nearest(table, np.minimum(r, F32(240))).astype(np.uint8), read=lambda s: table[s].astype(F32))


def nvfp4_subnormal_scales_flushed(x):
    """A block scale below the least normal E4M3 number, 2^-6, becomes 0, and the guard against 1 / 0 makes the block zero."""

    def store(r):
        return np.where(r < F32(2**-6), 0, e4m3_byte(r)).astype(np.uint8)

    def divide(b, f, t):
        return b * np.where(f > 0, F32(1) / (f * t), 0).astype(F32)[..., None]

    return F.nv(x, store=store, divide=divide)


def nvfp4_swizzle_exchanges_row_group_and_column(x):
    """In the 128x4 scale tile the byte is (r % 32) * 16 + (c % 4) * 4 + r / 32: the row group and the column are exchanged."""
    r = F.nv(x)
    rows, blocks = r.scales.shape
    p = np.pad(r.scales, ((0, -rows % 128), (0, -blocks % 4)))
    s = p.reshape(len(p) // 128, 4, 32, -1, 4).transpose(0, 4, 2, 3, 1).reshape(p.shape)[:rows, :blocks]
    return F.Result(r.codes, np.ascontiguousarray(s), tensor_scale=r.tensor_scale)


def nvfp4_shfl_down_for_shfl_xor(x):
    """Two lanes of 8 make a block; shfl_down serves the even lane, but the odd lane takes in the next block's first half."""
    b = F.in_blocks(x, 16)
    t = np.abs(x).max() / F32(448 * 6)
    m = np.abs(b).reshape(len(x), -1, 8).max(-1)
    lane = np.arange(m.shape[1])
    m = np.maximum(m, m[:, np.where((lane % 32 == 31) | (lane == lane[-1]), lane, np.minimum(lane + 1, lane[-1]))])
    s = e4m3_byte(m / F32(6) / t)
    with np.errstate(divide="ignore", invalid="ignore"):
        y = b.reshape(len(x), -1, 8) / (F.E4M3[s].astype(F32) * t)[..., None]
    c = F.e2m1(np.nan_to_num(y, nan=0.0, posinf=1e30, neginf=-1e30))
    return F.Result(F.as_rows(c, x.shape[1]), s[:, ::2], tensor_scale=F32(t))


def nvfp4_four_or_six_by_scaled_error(x):
    """Four-over-six takes the better of amax / 6 and amax / 4, but compares the errors before multiplying by the two scales."""
    b = F.in_blocks(x, 16)
    t = np.abs(x).max() / F32(256 * 6)
    found = []
    for largest in (6, 4):
        s = e4m3_byte(F.abs_max(b) / F32(largest) / t)
        f = (F.E4M3[s].astype(F32) * t)[..., None]
        y = np.divide(b, f, out=np.zeros_like(b), where=f > 0)
        c = F.e2m1(y)
        found.append((s, c, ((TABLE[c & 7] - np.abs(y)) ** 2).sum(-1)))
    (s6, c6, e6), (s4, c4, e4) = found
    four = e4 < e6
    return F.Result(F.as_rows(np.where(four[..., None], c4, c6), x.shape[1]), np.where(four, s4, s6), tensor_scale=F32(t))


def nvfp4_hadamard_down_the_columns(x):
    """The Hadamard transform of 16 before quantising runs down tiles of 16 rows; the blocks run along the rows."""
    return F.nv(np.ascontiguousarray(F.rotate(np.ascontiguousarray(x.T), 16).T))


def nvfp4_one_random_number_per_block(x):
    """Stochastic rounding calls its generator (PCG of the block's index) once a block and uses the number for all 16 elements."""
    blocks = -(-x.shape[1] // 16)
    u = pcg(np.arange(len(x) * blocks)).reshape(len(x), blocks, 1)

    def element(y):
        a = np.minimum(np.abs(y.astype(np.float64)), 6)
        low = np.clip(np.searchsorted(TABLE, a, "right") - 1, 0, 6)
        return signed(low + ((a - TABLE[low]) / (TABLE[low + 1] - TABLE[low]) > u), y)

    return F.nv(x, element=element)


def nvfp4_two_words_exchanged(x):
    """The two 32-bit words of a block, eight codes each, are joined for the 64-bit store in the wrong order."""
    return F.nv(x, code=lambda c, b: np.roll(c, 8, -1))


def nvfp4_bf16_elements_and_nibbles_exchanged(x):
    """Two mistakes: the scale comes from binary32 but the elements pass through bf16, and the two nibbles of a byte are exchanged."""
    return F.nv(x, divide=lambda b, f, t: F.bf16(b) / (f * t)[..., None], code=swap_pairs)


def nvfp4_scale_one_stage_late_and_cut(x):
    """Two mistakes: in an unrolled pair of blocks the second divides by the first one's scale, and elements are cut toward zero."""

    def divide(b, f, t):
        g = f.copy()
        g[:, 1::2] = f[:, 0::2][:, : g[:, 1::2].shape[1]]
        return b / (g * t)[..., None]

    return F.nv(x, divide=divide, element=lambda y: toward_zero(TABLE, y))


# MXFP8


def mxfp8_scale_without_emax(x):
    """The scale is floor(log2(amax)) + 127 and 8 is not taken off: the largest element lands near 1, not near 448."""
    return F.mxfp8(x, emax=0)


def mxfp8_through_fp16_cut(x):
    """The conversion to E4M3 goes through fp16 with truncation first, as a compiler lowers it: ties are made below the real value."""
    return F.mxfp8(x, scaled=lambda y: np.where(np.abs(y) >= 2**-14, F.cut_to(y.astype(F32), 10), np.trunc(y * 2**24) / 2**24))


def mxfp8_nan_above_largest(x):
    """The conversion lacks satfinite: what rounds above 448 becomes the NaN code 0x7F."""
    table = F.float_table(4, 3, 7, 127)
    return F.mxfp8(x, element=lambda y: F.encode(table, y, 128))


def mxfp8_e5m2_is_upper_byte_of_half(x):
    """E5M2 is taken as the upper byte of the fp16 number: the eight lower bits are dropped, not rounded."""
    return F.mxfp8_e5m2(x, element=lambda y: (np.clip(y, -65504, 65504).astype(np.float16).view(np.uint16) >> 8).astype(np.uint8))


def mxfp8_subnormal_codes_flushed(x):
    """A conversion by bits knows no subnormal E4M3 numbers: scaled elements below 2^-6 become zero and keep their sign."""
    return F.mxfp8(x, scaled=lambda y: np.where(np.abs(y) < 2**-6, np.copysign(0.0, y), y))


def mxfp8_shared_max_has_no_row_index(x):
    """atomicMax goes to smem[block], not to smem[row][block]: the 32 rows of a tile share the scale of their largest element."""

    def byte(a):
        m = a.copy()
        for r in range(0, len(a), 32):
            m[r : r + 32] = a[r : r + 32].max(0)
        return F.floor_byte(m, 8)

    return F.mxfp8(x, byte=byte)


def mxfp8_scale_byte_wraps(x):
    """floor(log2(amax)) - 8 + 127 is cast to uint8_t without a clamp at 0: blocks of tiny numbers get a huge scale."""

    def byte(a):
        _, e = np.frexp(a)
        return np.where(a > 0, (e.astype(np.int64) - 1 - 8 + 127) & 255, 0).astype(np.uint8)

    return F.mxfp8(x, byte=byte)


def mxfp8_e5m2_emax_16_and_readfirstlane(x):
    """Two mistakes: emax is 1 << (exponent bits - 1), 16 and not 15; both halves of a wave64 divide by the first half's scale."""

    def divisor(s, b):
        return F.power(s[:, np.arange(s.shape[1]) // 2 * 2])

    return F.mxfp8_e5m2(x, emax=16, divisor=divisor)


# MXINT8


def mxint8_rounding_overflow_wraps(x):
    """No saturation after rounding: what rounds to +128 is cast to int8 and becomes -128; -128 is used too."""
    return F.mxint8(x, element=lambda y: (np.rint(y * 64).astype(np.int64) & 255).astype(np.uint8))


def mxint8_floor_of_half_more(x):
    """Rounds by floor(v + 0.5): ties go up, also for negative numbers."""
    return F.mxint8(x, element=lambda y: np.clip(np.floor(y * 64 + 0.5), -127, 127).astype(np.int8).view(np.uint8))


def mxint8_half_of_127_steps_and_cast(x):
    """Two mistakes: multiplies by 127 / 2 as in plain int8, where a step is 1 / 64, and casts to int8_t, which cuts toward zero."""
    return F.mxint8(x, element=lambda y: np.trunc(y * 63.5).astype(np.int8).view(np.uint8))


def row(f, kind="activation", rows=64, cols=512):
    return (f.__name__, f, kind, rows, cols)


ROWS = [
    row(mxfp4_butterfly_without_xor_one),
    row(mxfp4_abs_mask_on_low_half_only),
    row(mxfp4_scale_exponent_of_a_sixth, "heavy"),
    row(mxfp4_even_scale_adds_half_a_mantissa),
    row(mxfp4_shifts_round_half_up),
    row(mxfp4_cvt_operands_in_wrong_order, "heavy", 64, 256),
    row(mxfp4_scale_rows_at_padded_stride, cols=288),
    row(mxfp4_swizzle_splits_rows_by_four, "heavy", 128, 512),
    row(mxfp4_tail_loads_next_row, "heavy", 128, 272),
    row(mxfp4_hadamard_lacks_stage_across_lanes),
    row(mxfp4_noise_then_nearest),
    row(mxfp4_running_max_is_not_reset, "heavy"),
    row(mxfp4_last_warp_reads_old_scale),
    row(mxfp4_zero_block_one_and_no_minus_zero, "silent"),
    row(mxfp4_xor_four_for_two_and_ties_away),
    row(nvfp4_reciprocal_kept_in_bf16),
    row(nvfp4_scale_cut_to_e4m3, "heavy"),
    row(nvfp4_divides_by_scale_before_rounding),
    row(nvfp4_tensor_max_without_grid_barrier, "heavy"),
    row(nvfp4_scales_in_fnuz),
    row(nvfp4_subnormal_scales_flushed, "wide"),
    row(nvfp4_swizzle_exchanges_row_group_and_column, rows=128),
    row(nvfp4_shfl_down_for_shfl_xor),
    row(nvfp4_four_or_six_by_scaled_error),
    row(nvfp4_hadamard_down_the_columns),
    row(nvfp4_one_random_number_per_block, "heavy"),
    row(nvfp4_two_words_exchanged, cols=256),
    row(nvfp4_bf16_elements_and_nibbles_exchanged, "heavy", 128, 1024),
    row(nvfp4_scale_one_stage_late_and_cut),
    row(mxfp8_scale_without_emax, "heavy"),
    row(mxfp8_through_fp16_cut, "heavy", 128, 1024),
    row(mxfp8_nan_above_largest),
    row(mxfp8_e5m2_is_upper_byte_of_half),
    row(mxfp8_subnormal_codes_flushed, "heavy", 128, 1024),
    row(mxfp8_shared_max_has_no_row_index),
    row(mxfp8_scale_byte_wraps, "special", 128, 512),
    row(mxfp8_e5m2_emax_16_and_readfirstlane),
    row(mxint8_rounding_overflow_wraps, "heavy", 128, 1024),
    row(mxint8_floor_of_half_more),
    row(mxint8_half_of_127_steps_and_cast, "heavy"),
]
