"""Forty wrong kernels as they come out of ports: HIP, AVX-512, NEON, SVE, WebGPU, C models of NPUs, GGUF-like converters."""
import numpy as np

import formats as F

F32 = np.float32
FNUZ = F.float_table(4, 3, 8, 127)


def below(table, v):
    """Code of the largest value not above v; v >= 0."""
    return np.clip(np.searchsorted(table, v, side="right") - 1, 0, len(table) - 1)


def hashed(i):
    """32 random bits for each counter."""
    i = np.asarray(i).astype(np.uint32) * np.uint32(747796405) + np.uint32(2891336453)
    i = ((i >> ((i >> np.uint32(28)) + np.uint32(4))) ^ i) * np.uint32(277803737)
    return (i >> np.uint32(22)) ^ i


def stochastic(table, y, sign_bit, u):
    """Position between two codes plus u, then down."""
    v = np.abs(y)
    lo = below(table, v)
    hi = np.minimum(lo + 1, len(table) - 1)
    part = np.where(hi > lo, (v - table[lo]) / np.where(hi > lo, table[hi] - table[lo], 1), 0)
    c = np.clip(np.floor(lo + part + u), 0, len(table) - 1).astype(np.int64)
    return (c | np.where(np.signbit(y), sign_bit, 0)).astype(np.uint8)


def permuted(order):
    """Block elements written in another order."""
    return lambda c, b: c[..., np.asarray(order)]


# MXFP4


def mxfp4_packs_epi32_lanes_not_permuted(x):
    """_mm512_packs_epi32 interleaves 128-bit lanes of its two registers, and the vpermq behind it is missing."""
    i = np.arange(16).reshape(4, 4)
    return F.mx(x, code=permuted(np.concatenate([i, i + 16], 1).reshape(-1)))


def mxfp4_log2f_cast_truncates_negative_exponents(x):
    """The exponent is (int)log2f(amax), which for amax < 1 goes toward zero instead of down, so the scale is one step too large."""
    def byte(a):
        e = np.log2(np.where(a > 0, a, F32(1)).astype(np.float64))
        return np.where(a > 0, np.clip(np.trunc(e).astype(np.int64) - 2 + 127, 0, 254), 0).astype(np.uint8)
    return F.mx(x, byte=byte)


def mxfp4_vgetexp_of_zero_block_gives_byte_7d(x):
    """vgetexpps of 0 is -inf, the conversion to int gives 0x80000000, and its low byte plus 125 is stored for blocks of zeros."""
    def byte(a):
        e = np.where(a > 0, F.floor_byte(a, 2).astype(np.int64), (0x80000000 + 125) & 0xFF)
        return e.astype(np.uint8)
    return F.mx(x, byte=byte)


def mxfp4_ggml_halves_layout_read_as_pairs(x):
    """Packed as ggml does, byte j holding elements j and j + 16 of the block, where the consumer wants 2j and 2j + 1."""
    return F.mx(x, code=permuted(np.arange(32).reshape(2, 16).T.reshape(-1)))


def mxfp4_ggml_doubled_table_with_full_scale(x):
    """The table of doubled values (0, 1, 2, 3, 4, 6, 8, 12) is searched, but x was divided by the whole scale and not by its half."""
    return F.mx(x, element=lambda y: F.encode(2 * F.E2M1.astype(np.float64), y, 8))


def mxfp4_wave64_shuffle_merges_two_blocks(x):
    """The shuffle loop starts at warpSize / 2, which is 32 on a wave of 64, so two neighbouring blocks share one amax."""
    def amax(b):
        a = F.abs_max(b)
        a = np.pad(a, ((0, 0), (0, a.shape[1] % 2)))
        return np.repeat(np.maximum(a[:, 0::2], a[:, 1::2]), 2, 1)[:, : b.shape[1]]
    return F.mx(x, amax=amax)


def mxfp4_dpp_row_shr_reduces_only_16_lanes(x):
    """DPP row_shr stays in a row of 16 lanes: each half of a block divides by the scale of its own amax, lane 0 stores the first half's."""
    b = F.in_blocks(x, 32)
    h = b.reshape(b.shape[0], -1, 2, 16)
    s = F.floor_byte(F.abs_max(h), 2)
    c = F.e2m1(h.astype(np.float64) / F.power(s)[..., None])
    return F.Result(F.as_rows(c, x.shape[1]), s[:, :, 0].copy())


def mxfp4_preshuffled_scales_in_plain_buffer(x):
    """The scales come out in the 32 x 8 tile order that the CDNA matrix product wants (preshuffled), although the caller asked for rows."""
    def shuffle(s):
        r, k = s.shape
        p = np.pad(s, ((0, -r % 32), (0, -k % 8)))
        t = p.reshape(p.shape[0] // 32, 2, 16, p.shape[1] // 8, 2, 4).transpose(0, 3, 5, 2, 4, 1)
        return t.reshape(p.shape)[:r, :k].copy()
    return F.mx(x, stored=shuffle)


def mxfp4_fwht32_stage_between_lane_rows_missing(x):
    """Hadamard rotation of 32 in registers: the last butterfly crosses a row of 16 lanes and is skipped, the factor stays 1 / sqrt(32)."""
    return F.mx(F.butterflies(x, 16) * F32(1 / np.sqrt(32)))


def mxfp4_stochastic_random_byte_is_signed(x):
    """The random byte is an int8_t: stochastic rounding adds a number in [-1/2, 1/2) of a step instead of [0, 1) before it cuts."""
    def element(y):
        u = (hashed(np.arange(y.size)).reshape(y.shape) & np.uint32(255)).astype(np.uint8).view(np.int8).astype(np.float64) / 256
        return stochastic(F.E2M1.astype(np.float64), y, 8, u)
    return F.mx(x, element=element)


def mxfp4_sve_merging_load_keeps_stale_tail_lanes(x):
    """Merging instead of zeroing predication in the last, short block: its idle lanes still hold the block before and count for amax."""
    b = F.in_blocks(x, 32).copy()
    tail = x.shape[1] % 32
    if tail and b.shape[1] > 1:
        b[:, -1, tail:] = b[:, -2, tail:]
    s = F.floor_byte(F.abs_max(b), 2)
    return F.Result(F.as_rows(F.e2m1(b.astype(np.float64) / F.power(s)[..., None]), x.shape[1]), s)


def mxfp4_converted_to_fp8_first_rounds_twice(x):
    """No direct conversion on this target: x / scale is rounded to e4m3 by the hardware and then once more to e2m1."""
    return F.mx(x, scaled=lambda y: np.copysign(F.E4M3[F.nearest(F.E4M3, np.abs(y))], y))


def mxfp4_missing_barrier_divides_by_previous_block_amax(x):
    """No barrier behind the write of amax to LDS: the lanes divide by the scale of the block before, lane 0 stores the right one."""
    def divisor(s, b):
        a = np.pad(F.abs_max(b), ((0, 0), (1, 0)))[:, :-1]
        return F.power(F.floor_byte(a, 2))
    return F.mx(x, divisor=divisor)


def mxfp4_input_through_half_and_table_search_keeps_first_minimum(x):
    """Two: the converter reads the weights as float16; the search of 16 values keeps the first of equals (ties toward zero, no -0)."""
    values = np.concatenate([F.E2M1, -F.E2M1]).astype(np.float64)
    h = np.clip(x, -65504, 65504).astype(np.float16).astype(F32)
    return F.mx(h, element=lambda y: np.abs(y[..., None] - values).argmin(-1).astype(np.uint8))


def mxfp4_even_scale_constant_doubled_and_first_in_top_nibble(x):
    """Two: rounding amax to the scale adds 0x400000 in place of 0x200000 to its bits; 8 codes of a u32 are packed from the top nibble."""
    def byte(a):
        e = ((np.ascontiguousarray(a, F32).view(np.uint32) + np.uint32(0x400000)) >> np.uint32(23)).astype(np.int64)
        return np.where(a > 0, np.clip(e - 2, 0, 254), 0).astype(np.uint8)
    return F.mx(x, byte=byte, code=permuted(np.arange(32).reshape(4, 8)[:, ::-1].reshape(-1)))


# NVFP4


def nvfp4_vrecpe_without_newton_step(x):
    """NEON vrecpeq_f32 gives 8 bits of 1 / (s * T), and no vrecpsq step follows it."""
    def divide(b, f, t):
        d = (f * t).astype(F32)
        m, e = np.frexp(d)
        a = np.maximum((m.astype(np.float64) * 512).astype(np.int64), 256)
        r = ((1 << 19) // (2 * a + 1) + 1) // 2
        rec = np.where(d > 0, np.ldexp(r / 256.0, -e.astype(np.int64)), np.inf).astype(F32)
        return b * rec[..., None]
    return F.nv(x, divide=divide)


def nvfp4_each_workgroup_takes_its_row_amax_for_the_tensor(x):
    """The maximum for T is reduced inside a workgroup, one a row, never across the grid; the last group's T stays in memory."""
    def tensor(x):
        a = np.abs(x).max(1, keepdims=True)
        return np.where(a > 0, a, F32(1)) / F32(448 * 6)
    return F.nv(x, tensor=tensor, stored_tensor=lambda t: F32(t[-1, 0]))


def nvfp4_tensor_scale_without_element_maximum(x):
    """T = max|x| / 448, the 6 of e2m1 forgotten, so that the block scales use only a sixth of the range of e4m3."""
    return F.nv(x, tensor=lambda x: np.abs(x).max() / F32(448))


def nvfp4_scale_converted_by_fnuz_instruction(x):
    """The gfx942 conversion gives e4m3fnuz (bias 8, maximum 240): each scale byte is one exponent higher, and large scales saturate."""
    return F.nv(x, store=lambda r: F.nearest(FNUZ, r).astype(np.uint8), read=lambda s: FNUZ[s].astype(F32))


def nvfp4_scale_swizzle_mixes_row_mod_4_with_row_div_32(x):
    """Swizzle of 128 x 4 scales: the offset is (row / 4) * 16 + (row % 4) * 4 in place of (row % 32) * 16 + (row / 32) * 4."""
    def final(s):
        rows, k = s.shape
        p = np.pad(s, ((0, -rows % 128), (0, -k % 4)))
        tiles = p.reshape(-1, 128, p.shape[1] // 4, 4).transpose(0, 2, 1, 3)
        buffer = tiles.reshape(tiles.shape[0], tiles.shape[1], 512)
        r, c = np.meshgrid(np.arange(128), np.arange(4), indexing="ij")
        read = buffer[:, :, (r % 32) * 16 + r // 32 * 4 + c]
        return read.transpose(0, 2, 1, 3).reshape(p.shape)[:rows, :k].copy()
    return F.nv(x, final=final)


def nvfp4_subnormal_scales_flushed_to_zero(x):
    """The C model's e4m3 unit knows no subnormal numbers: scales under 2^-6 become 0, and such blocks are written as zeros."""
    def store(r):
        s = F.nearest(F.E4M3, np.minimum(r, F32(448)))
        return np.where(s < 8, 0, s).astype(np.uint8)

    def divide(b, f, t):
        return np.where(f[..., None] > 0, b / np.where(f > 0, f * t, F32(1))[..., None], b * F32(0))
    return F.nv(x, store=store, divide=divide)


def nvfp4_threshold_between_3_and_4_typed_as_3p25(x):
    """The ladder of comparisons in the shader has 3.25 where 3.5 belongs."""
    def element(y):
        v = np.abs(y)
        c = (v > 0.25).astype(np.int64) + (v >= 0.75) + (v > 1.25) + (v >= 1.75) + (v > 2.5) + (v >= 3.25) + (v > 5)
        return (c | np.where(np.signbit(y), 8, 0)).astype(np.uint8)
    return F.nv(x, element=element)


def nvfp4_random_hadamard_sign_mask_read_from_the_wrong_end(x):
    """Signs before the Hadamard rotation of 16: bit 15 of the mask belongs to column 0, the kernel takes bit 0."""
    signs = np.array([1, 1, 1, -1, 1, -1, -1, -1, -1, -1, -1, 1, -1, 1, -1, -1], F32)[::-1]
    return F.nv(F.rotate(x * np.tile(signs, x.shape[1] // 16), 16))


def nvfp4_leading_dimension_is_number_of_rows(x):
    """Element (r, c) is loaded from r * rows + c, as the caller passed M where the row stride K belongs."""
    rows, cols = x.shape
    i = np.arange(rows)[:, None] * rows + np.arange(cols)
    t = np.abs(x).max() / F32(448 * 6)
    return F.nv(x.reshape(-1).take(i, mode="clip"), tensor=lambda _: t)


def nvfp4_remainder_loop_reuses_the_last_full_block_scale(x):
    """The scalar loop for the last cols % 16 columns does not compute a scale: it divides by and stores the one left in the variable."""
    def ratio(a, t):
        r = a / F32(6) / t
        if x.shape[1] % 16 and r.shape[1] > 1:
            r[:, -1] = r[:, -2]
        return r
    return F.nv(x, ratio=ratio)


def nvfp4_maximum_without_abs_and_scale_cast_truncates(x):
    """Two: the block reduction is vmaxvq of x itself, not of |x|; the cast of the scale to e4m3 cuts the mantissa."""
    return F.nv(x, amax=lambda b: np.maximum(b.max(-1), F32(0)), store=lambda r: below(F.E4M3, np.minimum(r, F32(448))).astype(np.uint8))


def nvfp4_divides_by_unrounded_scale_and_loses_minus_zero(x):
    """Two: elements are multiplied by 6 / amax, not by what the stored scale stands for; the sign is taken from code < 0, so no -0."""
    def divide(b, f, t):
        a = F.abs_max(b)
        return b * (F32(6) / np.where(a > 0, a, F32(6)))[..., None]
    return F.nv(x, divide=divide, code=lambda c, b: np.where(c == 8, 0, c).astype(np.uint8))


# MXFP8, e4m3


def mxfp8_elements_in_fnuz_encoding(x):
    """HIP's __hip_fp8_e4m3_fnuz in place of __hip_fp8_e4m3: bias 8, saturation at 240, -0 becomes +0."""
    def element(y):
        c = F.encode(FNUZ, y, 128)
        return np.where(c == 128, 0, c).astype(np.uint8)
    return F.mxfp8(x, element=element)


def mxfp8_subnormal_elements_flushed(x):
    """The bit-twiddling encoder returns a signed zero where the exponent field would be 0, so everything under 2^-6 is lost."""
    def code(c, b):
        return np.where((c & 0x78) == 0, c & 0x80, c).astype(np.uint8)
    return F.mxfp8(x, code=code)


def mxfp8_carry_of_rounded_mantissa_lost(x):
    """Rounding up 1.111 wraps the mantissa to 000, but the carry is masked away and the exponent is not increased."""
    def element(y):
        c, lo = F.e4m3(y), below(F.E4M3, np.abs(y))
        lost = (lo >= 8) & (lo % 8 == 7) & ((c & 127) == lo + 1)
        return np.where(lost, (c & 128) | (lo & 0x78), c).astype(np.uint8)
    return F.mxfp8(x, element=element)


def mxfp8_rceil_adds_one_also_to_exact_powers(x):
    """The scale is rounded up by always adding 1 to the exponent of amax / 448, also where the mantissa is zero."""
    def byte(a):
        _, e = np.frexp(a / F32(448))
        return np.where(a > 0, np.clip(e.astype(np.int64) + 127, 0, 254), 0).astype(np.uint8)
    return F.mxfp8(x, byte=byte)


def mxfp8_unrolled_rows_store_scale_of_the_first(x):
    """The loop handles four rows at once and stores the first row's scale for all four; the elements use their own."""
    return F.mxfp8(x, stored=lambda s: s[np.arange(len(s)) // 4 * 4])


def mxfp8_k_chunks_left_in_matrix_core_order(x):
    """Groups of 8 bytes of a block are stored in the order 0, 2, 1, 3 of the matrix instruction's registers."""
    return F.mxfp8(x, code=permuted(np.arange(32).reshape(4, 8)[[0, 2, 1, 3]].reshape(-1)))


def mxfp8_overflow_is_nan_and_scales_in_column_order(x):
    """Two: the conversion does not saturate, and numbers above 464 become NaN (0x7f); the scale buffer is filled column by column."""
    def element(y):
        return np.where(np.abs(y) > 464, 127 | np.where(np.signbit(y), 128, 0), F.e4m3(y)).astype(np.uint8)
    return F.mxfp8(x, element=element, stored=lambda s: s.T.reshape(s.shape).copy())


# MXFP8, e5m2


def mxfp8_e5m2_high_byte_of_half(x):
    """x / scale is converted to float16 and its high byte is stored: the low mantissa bits are cut instead of rounded."""
    def element(y):
        with np.errstate(over="ignore"):
            return (y.astype(F32).astype(np.float16).view(np.uint16) >> 8).astype(np.uint8)
    return F.mxfp8_e5m2(x, element=element)


def mxfp8_e5m2_scale_byte_zero_shifted_into_a_float_is_zero(x):
    """The divisor is the float with bits byte << 23, which for byte 0 is 0 and not 2^-127; inf saturates, and fmax makes NaN the minimum."""
    def divisor(s, b):
        return (s.astype(np.uint32) << np.uint32(23)).view(F32).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return F.mxfp8_e5m2(x, divisor=divisor, scaled=lambda y: np.fmin(np.fmax(y, -57344.0), 57344.0))


def mxfp8_e5m2_stochastic_counter_ignores_the_row(x):
    """The counter of the random numbers is the thread's column, so that each row is rounded with the same ones."""
    def element(y):
        u = hashed(np.arange(y.shape[1] * y.shape[2])).reshape(1, *y.shape[1:]).astype(np.float64) / 2.0 ** 32
        return stochastic(F.E5M2, y, 128, u)
    return F.mxfp8_e5m2(x, element=element)


# MXINT8


def mxint8_saturating_narrow_keeps_minus_128(x):
    """vqmovn clamps to -128..127, where the range of the format is symmetric."""
    return F.mxint8(x, element=lambda y: np.clip(np.rint(y * 64), -128, 127).astype(np.int8).view(np.uint8))


def mxint8_adds_half_and_truncates(x):
    """(int)(y * 64 + 0.5f): right for positive numbers, but negative ones are cut toward zero after half was added."""
    return F.mxint8(x, element=lambda y: np.clip(np.trunc(y * 64 + 0.5), -127, 127).astype(np.int8).view(np.uint8))


def mxint8_steps_of_2_over_127(x):
    """The habit of int8 quantisers: x / scale is multiplied by 127 / 2 and not by 64."""
    return F.mxint8(x, element=lambda y: np.clip(np.rint(y * 63.5), -127, 127).astype(np.int8).view(np.uint8))


ROWS = [(f.__name__, f, *rest) for f, *rest in [
    (mxfp4_packs_epi32_lanes_not_permuted, "activation", 64, 256),
    (mxfp4_log2f_cast_truncates_negative_exponents, "small", 64, 256),
    (mxfp4_vgetexp_of_zero_block_gives_byte_7d, "silent", 64, 256),
    (mxfp4_ggml_halves_layout_read_as_pairs, "heavy", 64, 256),
    (mxfp4_ggml_doubled_table_with_full_scale, "activation", 64, 256),
    (mxfp4_wave64_shuffle_merges_two_blocks, "activation", 64, 256),
    (mxfp4_dpp_row_shr_reduces_only_16_lanes, "heavy", 64, 256),
    (mxfp4_preshuffled_scales_in_plain_buffer, "heavy", 64, 256),
    (mxfp4_fwht32_stage_between_lane_rows_missing, "activation", 64, 256),
    (mxfp4_stochastic_random_byte_is_signed, "activation", 64, 256),
    (mxfp4_sve_merging_load_keeps_stale_tail_lanes, "activation", 64, 232),
    (mxfp4_converted_to_fp8_first_rounds_twice, "heavy", 64, 256),
    (mxfp4_missing_barrier_divides_by_previous_block_amax, "activation", 64, 256),
    (mxfp4_input_through_half_and_table_search_keeps_first_minimum, "small", 64, 256),
    (mxfp4_even_scale_constant_doubled_and_first_in_top_nibble, "activation", 64, 256),
    (nvfp4_vrecpe_without_newton_step, "heavy", 64, 256),
    (nvfp4_each_workgroup_takes_its_row_amax_for_the_tensor, "activation", 64, 256),
    (nvfp4_tensor_scale_without_element_maximum, "activation", 64, 256),
    (nvfp4_scale_converted_by_fnuz_instruction, "activation", 64, 256),
    (nvfp4_scale_swizzle_mixes_row_mod_4_with_row_div_32, "heavy", 128, 256),
    (nvfp4_subnormal_scales_flushed_to_zero, "wide", 64, 256),
    (nvfp4_threshold_between_3_and_4_typed_as_3p25, "activation", 64, 256),
    (nvfp4_random_hadamard_sign_mask_read_from_the_wrong_end, "activation", 64, 256),
    (nvfp4_leading_dimension_is_number_of_rows, "activation", 64, 256),
    (nvfp4_remainder_loop_reuses_the_last_full_block_scale, "activation", 64, 250),
    (nvfp4_maximum_without_abs_and_scale_cast_truncates, "heavy", 64, 256),
    (nvfp4_divides_by_unrounded_scale_and_loses_minus_zero, "activation", 64, 256),
    (mxfp8_elements_in_fnuz_encoding, "activation", 64, 256),
    (mxfp8_subnormal_elements_flushed, "activation", 256, 256),
    (mxfp8_carry_of_rounded_mantissa_lost, "heavy", 64, 256),
    (mxfp8_rceil_adds_one_also_to_exact_powers, "activation", 256, 256),
    (mxfp8_unrolled_rows_store_scale_of_the_first, "activation", 64, 256),
    (mxfp8_k_chunks_left_in_matrix_core_order, "heavy", 64, 256),
    (mxfp8_overflow_is_nan_and_scales_in_column_order, "activation", 64, 256),
    (mxfp8_e5m2_high_byte_of_half, "heavy", 64, 256),
    (mxfp8_e5m2_scale_byte_zero_shifted_into_a_float_is_zero, "special", 256, 256),
    (mxfp8_e5m2_stochastic_counter_ignores_the_row, "activation", 64, 256),
    (mxint8_saturating_narrow_keeps_minus_128, "heavy", 256, 512),
    (mxint8_adds_half_and_truncates, "activation", 64, 256),
    (mxint8_steps_of_2_over_127, "heavy", 64, 256),
]]
