"""Forty wrong quantisation kernels, set B. Integer datapaths as in RTL where the mistake is one of bits."""
import numpy as np

import formats as F

F32 = np.float32


# ---- a bit-true datapath: binary32 in, small float out, by shifting and guard and sticky bits ----

def fields(b):
    """Sign, exponent field, 24-bit significand; subnormal numbers normalised (exponents of 0 and less), zero with the exponent -64."""
    u = np.ascontiguousarray(b, F32).view(np.uint32).astype(np.int64).reshape(np.shape(b))
    e, m = (u >> 23) & 255, u & 0x7FFFFF
    lzc = 24 - np.frexp(m.astype(np.float64))[1]
    sig = np.where(e > 0, m | 0x800000, m << lzc)
    return u >> 31, np.where(e > 0, e, np.where(m > 0, 1 - lzc, -64)), sig


def exponent(b):
    return (np.ascontiguousarray(b, F32).view(np.uint32).astype(np.int64).reshape(np.shape(b)) >> 23) & 255


def split(b, byte, mbits=1, bias=1):
    """Magnitude code before rounding, the bits dropped and how many they are."""
    s, e, sig = fields(b)
    e = e - byte[..., None]
    emin = 1 - bias
    shift = np.minimum(23 - mbits + np.maximum(emin - e, 0), 40)
    code = (sig >> shift) + (np.maximum(e - emin, 0) << mbits)
    return s, e, sig, code, sig & ((np.int64(1) << shift) - 1), shift


def rne(code, rest, shift):
    half = np.int64(1) << (shift - 1)
    return code + ((rest > half) | ((rest == half) & (code & 1 == 1)))


def ocp(a, emax=2):
    return np.where(a > 0, np.clip(exponent(a) - emax, 0, 254), 0)


def out(x, codes, byte, bits=4):
    return F.Result(F.as_rows(codes.astype(np.uint8), x.shape[1]), byte.astype(np.uint8), bits=bits)


def right_mxfp4(x):
    b = F.in_blocks(x, 32)
    byte = ocp(F.abs_max(b))
    s, e, sig, code, rest, shift = split(b, byte)
    return out(x, np.minimum(rne(code, rest, shift), 7) | s << 3, byte)


def right_mxfp8(x):
    b = F.in_blocks(x, 32)
    byte = ocp(F.abs_max(b), 8)
    s, e, sig, code, rest, shift = split(b, byte, 3, 7)
    return out(x, np.minimum(rne(code, rest, shift), 126) | s << 7, byte, 8)


# ---- MXFP4 ----

def mxfp4_sticky_or_covers_bf16_bits_only(x):
    """The rounder came from the bf16 unit: the OR of the sticky bit ends at bit 16 of the mantissa."""
    b = F.in_blocks(x, 32)
    byte = ocp(F.abs_max(b))
    s, e, sig, code, rest, shift = split(b, byte)
    rest &= ~((np.int64(1) << np.minimum(16 + np.maximum(-e, 0), shift - 1)) - 1)
    return out(x, np.minimum(rne(code, rest, shift), 7) | s << 3, byte)


def mxfp4_denormal_shifter_drops_bits_before_sticky(x):
    """8-bit significands (bf16); the alignment shifter of small results has no sticky output."""
    b = F.in_blocks(x, 32)
    byte = ocp(F.abs_max(b))
    s, e, sig = fields(b)
    e = e - byte[..., None]
    t = (sig >> 16) >> np.minimum(np.maximum(-e, 0), 15)
    code = (t >> 6) + (np.maximum(e, 0) << 1)
    return out(x, np.minimum(rne(code, t & 63, np.int64(6)), 7) | s << 3, byte)


def mxfp4_amax_compares_raw_words_unsigned(x):
    """The maximum tree compares 32-bit words with the sign bit still in: any negative number beats every positive one."""
    b = F.in_blocks(x, 32)
    u = np.ascontiguousarray(b).view(np.uint32).max(-1) & np.uint32(0x7FFFFFFF)
    byte = ocp(u.view(F32))
    s, e, sig, code, rest, shift = split(b, byte)
    return out(x, np.minimum(rne(code, rest, shift), 7) | s << 3, byte)


def mxfp4_max_exponent_by_or_tree(x):
    """The shared exponent is the OR of the exponents, not their maximum."""
    b = F.in_blocks(x, 32)
    byte = np.clip(np.bitwise_or.reduce(exponent(b), -1) - 2, 0, 254)
    s, e, sig, code, rest, shift = split(b, byte)
    return out(x, np.minimum(rne(code, rest, shift), 7) | s << 3, byte)


def mxfp4_amax_register_clear_lost_each_fourth_block(x):
    """The clear of the amax register meets the write-back of each fourth block and loses."""
    def stale(b):
        a = F.abs_max(b)
        f = a.reshape(-1).copy()
        f[4::4] = np.maximum(f[4::4], f[3:-1:4][: len(f[4::4])])
        return f.reshape(a.shape)
    return F.mx(x, amax=stale)


def mxfp4_first_beat_uses_scale_of_previous_block(x):
    """Eight lanes a beat: the scale register is written in the cycle in which the first beat reads it (reset value 127)."""
    b = F.in_blocks(x, 32)
    byte = ocp(F.abs_max(b))
    late = np.concatenate([[127], byte.reshape(-1)[:-1]]).reshape(byte.shape)
    beats = []
    for k in range(4):
        s, e, sig, code, rest, shift = split(b[..., 8 * k : 8 * k + 8], late if k == 0 else byte)
        beats.append(np.minimum(rne(code, rest, shift), 7) | s << 3)
    return out(x, np.concatenate(beats, -1), byte)


def mxfp4_tail_amax_reads_next_row_and_zero_loses_sign(x):
    """Two: no predicate on the lanes behind the end of a row in the amax; the sign is gated by code != 0."""
    rows, cols = x.shape
    n = -(-cols // 32)
    flat = np.concatenate([x.reshape(-1), np.zeros(32, F32)])
    at = np.arange(rows)[:, None] * cols + np.arange(n * 32)[None]
    byte = ocp(np.abs(flat[at]).reshape(rows, n, 32).max(-1))
    s, e, sig, code, rest, shift = split(F.in_blocks(x, 32), byte)
    c = np.minimum(rne(code, rest, shift), 7)
    return out(x, np.where(c == 0, 0, c | s << 3), byte)


def mxfp4_nibbles_of_a_word_in_big_endian_order(x):
    """Eight codes fill a 32-bit word from the top nibble down."""
    r = right_mxfp4(x)
    r.codes = np.ascontiguousarray(r.codes.reshape(x.shape[0], -1, 8)[..., ::-1].reshape(x.shape))
    return r


def lfsr16(n, state=0xACE1):
    words = np.empty(n, np.int64)
    for k in range(n):
        bit = (state ^ state >> 2 ^ state >> 3 ^ state >> 5) & 1
        state = state >> 1 | bit << 15
        words[k] = state
    return words


def mxfp4_sr_one_lfsr_word_for_all_lanes_of_a_block(x):
    """Stochastic rounding: one 16-bit LFSR, moved by one bit a block, feeds all 32 lanes."""
    b = F.in_blocks(x, 32)
    byte = ocp(F.abs_max(b))
    s, e, sig, code, rest, shift = split(b, byte)
    random = lfsr16(byte.size).reshape(byte.shape)[..., None]
    code = code + (((rest << 16 >> shift) + random) >> 16)
    return out(x, np.minimum(code, 7) | s << 3, byte)


def mxfp4_denormal_shift_amount_sliced_to_3_bits(x):
    """The alignment shifter takes bits [2:0] of the difference of exponents: far smaller numbers come back large."""
    b = F.in_blocks(x, 32)
    byte = ocp(F.abs_max(b))
    s, e, sig = fields(b)
    e = e - byte[..., None]
    shift = 22 + (np.maximum(-e, 0) & 7)
    code = (sig >> shift) + (np.maximum(e, 0) << 1)
    return out(x, np.minimum(rne(code, sig & ((np.int64(1) << shift) - 1), shift), 7) | s << 3, byte)


def mxfp4_mantissa_carry_not_added_to_exponent(x):
    """The rounding increment is one bit wide: 1.75 becomes 1.0, not 2.0."""
    b = F.in_blocks(x, 32)
    byte = ocp(F.abs_max(b))
    s, e, sig, code, rest, shift = split(b, byte)
    up = rne(code, rest, shift) - code
    c = np.where(e >= 0, code & ~1 | (code + up) & 1, code + up)
    return out(x, np.minimum(c, 7) | s << 3, byte)


def mxfp4_inf_detector_ignores_exponent_msb(x):
    """&exp[6:0] in place of &exp[7:0]: numbers from 1 to 2 pass for Inf, stay out of the amax and are encoded as 6."""
    b = F.in_blocks(x, 32)
    inf = exponent(b) & 127 == 127
    byte = ocp(np.where(inf, F32(0), np.abs(b)).max(-1))
    s, e, sig, code, rest, shift = split(b, byte)
    return out(x, np.where(inf, 7, np.minimum(rne(code, rest, shift), 7)) | s << 3, byte)


def mxfp4_rounded_twice_through_e4m3(x):
    """The FP4 converter sits behind the FP8 converter."""
    return F.mx(x, scaled=lambda y: np.copysign(F.E4M3[F.nearest(F.E4M3, np.abs(y))], y))


def mxfp4_round_overflow_carries_into_sign(x):
    """{sign, exp, man} + round with no saturation: 7 to 8 becomes a zero of the other sign."""
    b = F.in_blocks(x, 32)
    byte = ocp(F.abs_max(b))
    s, e, sig, code, rest, shift = split(b, byte)
    return out(x, ((s << 3) + rne(code, rest, shift)) & 15, byte)


def mxfp4_scale_up_from_mantissa_msb_and_ties_away(x):
    """Two: one is added to the shared exponent if bit 22 of the amax is set; the rounder adds the guard bit alone."""
    b = F.in_blocks(x, 32)
    a = F.abs_max(b)
    msb = (np.ascontiguousarray(a).view(np.uint32).astype(np.int64) >> 22) & 1
    byte = np.where(a > 0, np.clip(exponent(a) + msb - 2, 0, 254), 0)
    s, e, sig, code, rest, shift = split(b, byte)
    return out(x, np.minimum(code + (rest >> (shift - 1)), 7) | s << 3, byte)


# ---- NVFP4 ----

def nvfp4_reciprocal_rom_of_six_bits(x):
    """The division is a multiplication by 1/mantissa from a ROM of eight words of six bits, cut off."""
    def divide(b, f, t):
        m, e = np.frexp(f)
        with np.errstate(divide="ignore"):
            rom = np.floor(64 / (2 * m.astype(np.float64))) / 64
        r = np.where(f > 0, np.ldexp(rom, 1 - e), 0).astype(F32)
        return b * r[..., None] * (F32(1) / t)
    return F.nv(x, divide=divide)


def nvfp4_tensor_amax_register_read_one_tile_early(x):
    """Tiles of 16 rows use the maximum of the tiles before them (the register's reset value is 1.0); the last value is stored."""
    def running(x):
        n = -(-x.shape[0] // 16)
        tiles = np.pad(np.abs(x).max(-1), (0, n * 16 - x.shape[0])).reshape(n, 16).max(-1)
        before = np.concatenate([[F32(1)], np.maximum.accumulate(tiles)[:-1]])
        return np.repeat(before, 16)[: x.shape[0], None] / F32(2688)
    return F.nv(x, tensor=running, stored_tensor=lambda t: np.abs(x).max() / F32(2688))


E4M3FNUZ = F.float_table(4, 3, 8, 127)


def nvfp4_scale_in_e4m3_fnuz(x):
    """The format table of the other vendor: bias 8, largest number 240."""
    return F.nv(x, store=lambda r: F.nearest(E4M3FNUZ, np.minimum(r, F32(240))).astype(np.uint8), read=lambda s: E4M3FNUZ[s].astype(F32))


def nvfp4_subnormal_scales_flushed_to_zero(x):
    """Scales below 2^-6 become 0, and their blocks too."""
    def store(r):
        s = F.nearest(F.E4M3, np.minimum(r, F32(448)))
        return np.where(r < F32(2**-6), 0, s).astype(np.uint8)

    def divide(b, f, t):
        return np.where(f[..., None] > 0, b / (f * t)[..., None], b * F32(0))
    return F.nv(x, store=store, divide=divide)


def nvfp4_scale_rounded_to_bf16_then_e4m3(x):
    return F.nv(x, ratio=lambda a, t: F.bf16(a / F32(6) / t))


def nvfp4_scale_pointer_steps_each_32_elements(x):
    """The encoder was written for MX: it takes the scale number column/32 of the row."""
    return F.nv(x, divide=lambda b, f, t: b / (f[:, np.arange(f.shape[1]) // 2] * t)[..., None])


def nvfp4_scales_left_in_128x4_tiles(x):
    """Scales lie in the order of the tensor core's tiles where rows are expected."""
    def swizzle(s):
        rows, n = s.shape
        t = s.reshape(rows // 128, 4, 32, n // 4, 4).transpose(0, 3, 2, 1, 4)
        return np.ascontiguousarray(t).reshape(rows, n)
    return F.nv(x, final=swizzle)


def nvfp4_element_table_with_hidden_bit_in_subnormal(x):
    """Code 1 is thought to be 0.75 (1.5 * 2^-1), not 0.5."""
    table = np.array([0, 0.75, 1, 1.5, 2, 3, 4, 6])
    return F.nv(x, element=lambda y: F.encode(table, y, 8))


def pcg(n):
    """PCG-RXS-M-XS of a counter."""
    with np.errstate(over="ignore"):
        s = n.astype(np.uint32) * np.uint32(747796405) + np.uint32(2891336453)
        w = ((s >> ((s >> np.uint32(28)) + np.uint32(4))) ^ s) * np.uint32(277803737)
    return (w >> np.uint32(22)) ^ w


def nvfp4_sr_counter_without_row_and_random_one_bit_low(x):
    """Two: the counter of the generator is the column, alike in all rows; the random word is added one bit too low."""
    def element(y):
        y = np.minimum(np.maximum(y, -6), 6).astype(F32)
        zero = np.full(y.shape[:2], 127)
        s, e, sig, code, rest, shift = split(y, zero)
        n = np.arange(y.shape[1] * 16, dtype=np.uint32).reshape(1, -1, 16)
        random = (pcg(n) >> np.uint32(16)).astype(np.int64) >> 1
        return (np.minimum(code + (((rest << 16 >> shift) + random) >> 16), 7) | s << 3).astype(np.uint8)
    return F.nv(x, element=element)


def nvfp4_tensor_scale_without_its_mantissa(x):
    """The tensor scale goes through an E8M0 port: its exponent alone is used and stored."""
    return F.nv(x, tensor=lambda x: F.cut_to(np.abs(x).max() / F32(2688), 0).reshape(-1)[0])


def nvfp4_tensor_scale_from_row_0_and_scale_overflow_wraps(x):
    """Two: the amax of the tensor is that of row 0; an E4M3 scale above 448 loses its upper bits."""
    def store(r):
        s, e, sig, code, rest, shift = split(r.astype(F32)[..., None], np.full(r.shape, 127), 3, 7)
        return (rne(code, rest, shift)[..., 0] & 127).astype(np.uint8)
    table = F.float_table(4, 3, 7, 127)
    return F.nv(x, tensor=lambda x: np.abs(x[0]).max() / F32(2688), store=store, read=lambda s: table[s].astype(F32))


def nvfp4_scale_lzc_casez_matches_0001_as_two(x):
    """Leading zeros by nibbles, and in a nibble casez 00?? gives 2 for 0001 too: the exponent is one too large, the mantissa starts with the leading one."""
    def store(r):
        fixed = np.floor(np.minimum(r, F32(448)).astype(np.float64) * 2**14).astype(np.int64)
        top = np.frexp(fixed.astype(np.float64))[1] - 1
        lzc = 23 - top - (top % 4 == 0)
        sig = np.where(fixed > 0, fixed << np.where(fixed > 0, lzc, 0) | 1 << 23, 0)
        value = np.ldexp(sig.astype(np.float64), 9 - lzc - 23)
        return F.nearest(F.E4M3, np.minimum(value, 448)).astype(np.uint8)
    return F.nv(x, store=store)


def nvfp4_amax_gathers_strided_lanes(x):
    """The reduction sees the row as [16][blocks], the encoder as [blocks][16]."""
    return F.nv(x, amax=lambda b: np.abs(b.reshape(b.shape[0], 16, b.shape[1])).max(1))


# ---- MXFP8 ----

def mxfp8_e4m3_table_of_ieee_ends_at_240(x):
    """The top exponent is kept for Inf and NaN: emax 7, largest number 240."""
    table = F.float_table(4, 3, 7, 119)
    return F.mxfp8(x, emax=7, element=lambda y: F.encode(table, y, 128))


def mxfp8_overflow_gives_nan(x):
    """A number that rounds above 448 becomes 0x7f, not 448."""
    b = F.in_blocks(x, 32)
    byte = ocp(F.abs_max(b), 8)
    s, e, sig, code, rest, shift = split(b, byte, 3, 7)
    return out(x, np.minimum(rne(code, rest, shift), 127) | s << 7, byte, 8)


def mxfp8_subnormal_shift_one_too_small(x):
    """Subnormal elements are aligned to 2^-bias, not to 2^(1-bias)."""
    b = F.in_blocks(x, 32)
    byte = ocp(F.abs_max(b), 8)
    s, e, sig = fields(b)
    e = e - byte[..., None]
    shift = np.minimum(20 + np.maximum(-7 - e, 0), 40)
    code = (sig >> shift) + (np.maximum(e + 6, 0) << 3)
    return out(x, np.minimum(rne(code, sig & ((np.int64(1) << shift) - 1), shift), 126) | s << 7, byte, 8)


def mxfp8_subnormal_inputs_are_zero(x):
    """Denormals are zero: binary32 numbers below 2^-126 count as zeros (with their sign)."""
    return F.mxfp8(np.where(np.abs(x) < F32(2.0**-126), np.copysign(F32(0), x), x))


def mxfp8_scale_subtractor_borrow_ignored(x):
    """exp - 8 in eight bits with no clamp: a block of tiny numbers gets a huge scale."""
    b = F.in_blocks(x, 32)
    a = F.abs_max(b)
    byte = np.where(a > 0, (exponent(a) - 8) & 255, 0)
    s, e, sig, code, rest, shift = split(b, byte, 3, 7)
    return out(x, np.minimum(rne(code, rest, shift), 126) | s << 7, byte, 8)


def mxfp8_scale_bytes_of_a_word_reversed(x):
    """Four scales are packed into a word with the first one on top."""
    return F.mxfp8(x, stored=lambda s: np.ascontiguousarray(s.reshape(s.shape[0], -1, 4)[..., ::-1]).reshape(s.shape))


def mxfp8_short_tail_joined_to_previous_block(x):
    """A last block of fewer than 16 numbers takes the scale of the block before it."""
    def byte(a):
        s = F.floor_byte(a, 8)
        if 0 < x.shape[1] % 32 < 16:
            s[:, -1] = s[:, -2]
        return s
    return F.mxfp8(x, byte=byte)


def mxfp8_e5m2_rounded_twice_through_fp16(x):
    """binary32 to binary16 to E5M2, both to nearest even."""
    return F.mxfp8_e5m2(x, scaled=lambda y: np.clip(y, -65504, 65504).astype(np.float16).astype(np.float64))


def mxfp8_e5m2_scales_transposed_and_overflow_gives_inf(x):
    """Two: scales are written blocks first; a number that rounds above 57344 becomes Inf."""
    b = F.in_blocks(x, 32)
    byte = ocp(F.abs_max(b), 15)
    s, e, sig, code, rest, shift = split(b, byte, 2, 15)
    codes = np.minimum(rne(code, rest, shift), 124) | s << 7
    return out(x, codes, np.ascontiguousarray(byte.T).reshape(byte.shape), 8)


# ---- MXINT8 ----

def mxint8_adds_half_then_arithmetic_shift(x):
    """Two's complement first, then (v + half) >> n: ties go up."""
    return F.mxint8(x, element=lambda y: np.clip(np.floor(y * 64 + 0.5), -127, 127).astype(np.int8).view(np.uint8))


def mxint8_ones_complement_and_lane_31_not_in_amax(x):
    """Two: negative numbers are inverted with no one added; the maximum tree has 31 leaves."""
    def element(y):
        m = np.minimum(np.rint(np.abs(y) * 64), 127).astype(np.int64)
        return np.where(np.signbit(y), ~m, m).astype(np.int8).view(np.uint8)
    return F.mxint8(x, amax=lambda b: np.abs(b[..., :31]).max(-1), element=element)


def mxint8_round_to_128_wraps(x):
    """No saturation behind the rounder: 127.5 and more becomes -128."""
    return F.mxint8(x, element=lambda y: (np.rint(y * 64).astype(np.int64) & 255).astype(np.uint8))


ROWS = [(f.__name__, f, kind, rows, cols) for f, kind, rows, cols in [
    (mxfp4_sticky_or_covers_bf16_bits_only, "heavy", 128, 512),
    (mxfp4_denormal_shifter_drops_bits_before_sticky, "activation", 64, 512),
    (mxfp4_amax_compares_raw_words_unsigned, "heavy", 96, 256),
    (mxfp4_max_exponent_by_or_tree, "small", 64, 256),
    (mxfp4_amax_register_clear_lost_each_fourth_block, "heavy", 128, 480),
    (mxfp4_first_beat_uses_scale_of_previous_block, "activation", 80, 768),
    (mxfp4_tail_amax_reads_next_row_and_zero_loses_sign, "heavy", 96, 200),
    (mxfp4_nibbles_of_a_word_in_big_endian_order, "heavy", 48, 384),
    (mxfp4_sr_one_lfsr_word_for_all_lanes_of_a_block, "small", 128, 512),
    (mxfp4_denormal_shift_amount_sliced_to_3_bits, "silent", 128, 1024),
    (mxfp4_mantissa_carry_not_added_to_exponent, "activation", 64, 360),
    (mxfp4_inf_detector_ignores_exponent_msb, "activation", 128, 256),
    (mxfp4_rounded_twice_through_e4m3, "heavy", 100, 300),
    (mxfp4_round_overflow_carries_into_sign, "activation", 256, 256),
    (mxfp4_scale_up_from_mantissa_msb_and_ties_away, "activation", 72, 640),
    (nvfp4_reciprocal_rom_of_six_bits, "heavy", 64, 512),
    (nvfp4_tensor_amax_register_read_one_tile_early, "heavy", 160, 256),
    (nvfp4_scale_in_e4m3_fnuz, "activation", 128, 512),
    (nvfp4_subnormal_scales_flushed_to_zero, "wide", 128, 256),
    (nvfp4_scale_rounded_to_bf16_then_e4m3, "activation", 256, 512),
    (nvfp4_scale_pointer_steps_each_32_elements, "heavy", 64, 448),
    (nvfp4_scales_left_in_128x4_tiles, "activation", 128, 512),
    (nvfp4_element_table_with_hidden_bit_in_subnormal, "heavy", 64, 328),
    (nvfp4_sr_counter_without_row_and_random_one_bit_low, "heavy", 128, 512),
    (nvfp4_tensor_scale_without_its_mantissa, "heavy", 64, 1024),
    (nvfp4_tensor_scale_from_row_0_and_scale_overflow_wraps, "heavy", 96, 512),
    (nvfp4_scale_lzc_casez_matches_0001_as_two, "wide", 128, 512),
    (nvfp4_amax_gathers_strided_lanes, "heavy", 64, 256),
    (mxfp8_e4m3_table_of_ieee_ends_at_240, "activation", 64, 256),
    (mxfp8_overflow_gives_nan, "heavy", 128, 320),
    (mxfp8_subnormal_shift_one_too_small, "silent", 96, 1024),
    (mxfp8_subnormal_inputs_are_zero, "special", 256, 512),
    (mxfp8_scale_subtractor_borrow_ignored, "special", 192, 256),
    (mxfp8_scale_bytes_of_a_word_reversed, "heavy", 64, 512),
    (mxfp8_short_tail_joined_to_previous_block, "heavy", 128, 328),
    (mxfp8_e5m2_rounded_twice_through_fp16, "heavy", 128, 512),
    (mxfp8_e5m2_scales_transposed_and_overflow_gives_inf, "heavy", 64, 1024),
    (mxint8_adds_half_then_arithmetic_shift, "activation", 64, 512),
    (mxint8_ones_complement_and_lane_31_not_in_amax, "heavy", 128, 256),
    (mxint8_round_to_128_wraps, "small", 200, 200),
]]
