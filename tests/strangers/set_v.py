"""Forty wrong quantisation kernels; each takes x, float32 [rows][cols], and gives formats.Result."""
import numpy as np

import formats as F
import inputs

F32 = np.float32
E2M1 = F.E2M1.astype(np.float64)


def signed(mag, y, bit=8):
    return (mag | np.where(np.signbit(y), bit, 0)).astype(np.uint8)


def toward_zero(table, y, bit):
    return signed(np.searchsorted(table, np.abs(np.asarray(y, np.float64)), side="right").clip(1) - 1, y, bit)


def e2m1_away(y):
    """Ties away from zero."""
    a = np.abs(np.asarray(y, np.float64))
    return signed(np.searchsorted([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5], a, side="right"), y)


def scale_code(r):
    return F.nearest(F.E4M3, np.minimum(r, F32(448))).astype(np.uint8)


# NVFP4


def nvfp4_input_loaded_as_float16(x):
    """The loader converts float32 to float16 on its way to shared memory, so small rows lose bits before the quantiser sees them."""
    with np.errstate(over="ignore"):
        return F.nv(np.clip(x, -65504, 65504).astype(np.float16).astype(F32))


def nvfp4_tensor_max_plain_store_last_tile_wins(x):
    """Each 16 x 64 tile writes its maximum with a plain store where atomicMax is needed, so the tensor scale is that of the last tile."""
    return F.nv(x, tensor=lambda x: np.abs(x[-16:, -64:]).max() / F32(2688))


def nvfp4_tensor_max_buffer_starts_at_one(x):
    """The buffer of the tensor maximum is initialised to 1.0 and not to 0, so a tensor of small numbers gets the tensor scale 1/2688."""
    return F.nv(x, tensor=lambda x: np.maximum(np.abs(x).max(), F32(1)) / F32(2688))


def nvfp4_abs_only_on_low_half_of_pairs(x):
    """The packed two-element maximum clears the sign bit of the low half only; a negative number at an odd column never counts for the block maximum."""
    return F.nv(x, amax=lambda b: np.maximum(np.abs(b[..., 0::2]).max(-1), b[..., 1::2].max(-1)))


def nvfp4_elements_divided_by_unrounded_scale(x):
    """Elements are divided by amax / 6 as it was before rounding to E4M3, not by the scale that is stored."""
    return F.nv(x, divide=lambda b, f, t: b / (F.abs_max(b) / F32(6))[..., None])


def nvfp4_subnormal_scales_flushed(x):
    """The E4M3 converter of the scale flushes subnormals to zero, and the guard for a zero scale then writes zero codes for the whole block."""
    def store(r):
        c = scale_code(r)
        return np.where(c < 8, 0, c).astype(np.uint8)
    return F.nv(x, store=store, divide=lambda b, f, t: np.where(f[..., None] == 0, F32(0), b / (f * t)[..., None]))


def nvfp4_scales_left_in_swizzled_order(x):
    """The epilogue writes scales in the 128 x 4 tile order of the tensor core to a buffer that is declared row-major."""
    def swizzle(s):
        r, k = s.shape
        return s.reshape(r // 128, 4, 32, k // 4, 4).transpose(0, 3, 2, 1, 4).reshape(r, k)
    return F.nv(x, final=swizzle)


def nvfp4_second_byte_of_word_packed_high_first(x):
    """Of every four elements the last two are packed with operands of the convert instruction exchanged, so their nibbles are swapped."""
    return F.nv(x, code=lambda c, b: c.reshape(*c.shape[:2], -1, 4)[..., [0, 1, 3, 2]].reshape(c.shape))


def nvfp4_stochastic_rounding_left_on_with_noise_of_column(x):
    """Stochastic rounding of the gradient path is left on in the forward path, and its random word is hashed from the column only, so all rows share it."""
    def element(y):
        rows, blocks, width = y.shape
        k = np.arange(blocks * width, dtype=np.uint64)
        u = (((k * np.uint64(2654435761) + np.uint64(12345)) >> np.uint64(8)) & np.uint64(0xFFFF)).astype(np.float64) / 65536
        a = np.minimum(np.abs(y.astype(np.float64)), 6)
        lo = np.clip(np.searchsorted(E2M1, a, side="right") - 1, 0, 6)
        part = (a - E2M1[lo]) / (E2M1[lo + 1] - E2M1[lo])
        return signed(lo + (part > u.reshape(1, blocks, width)), y)
    return F.nv(x, element=element)


def nvfp4_reciprocal_without_newton_step(x):
    """Division is replaced by a product with the hardware's approximate reciprocal; the Newton step is missing, so only 12 bits of it are right."""
    return F.nv(x, divide=lambda b, f, t: b * F.cut_to(F32(1) / (f * t), 12)[..., None])


def nvfp4_tensor_scale_for_e4m3_max_240(x):
    """The tensor scale is amax / (240 * 6): the largest E4M3 number was taken from the FNUZ type of another GPU."""
    return F.nv(x, largest_scale=F32(240))


def nvfp4_shuffle_mask_two_instead_of_one(x):
    """Two threads share a block of 16, but the butterfly shuffle uses lane mask 2, so each half takes the maximum with a half of the neighbouring block.
    Each thread quantises with its own scale, and the even thread stores its own."""
    def halves(b):
        h = np.abs(b).reshape(b.shape[0], -1, 8).max(-1)
        return np.maximum(h, h[:, np.arange(h.shape[1]) ^ 2])

    def divide(b, f, t):
        own = F.E4M3[scale_code(halves(b) / F32(6) / t)].astype(F32)
        return (b.reshape(b.shape[0], -1, 8) / (own * t)[..., None]).reshape(b.shape)
    return F.nv(x, amax=lambda b: halves(b)[:, 0::2], divide=divide)


def nvfp4_zero_block_scale_one_and_no_negative_zero(x):
    """Two mistakes: a block of zeros stores the scale 1.0 (0x38) and not 0, and negative numbers that round to zero lose their sign bit."""
    return F.nv(x, store=lambda r: np.where(r == 0, 0x38, scale_code(r)).astype(np.uint8), code=lambda c, b: np.where(c == 8, 0, c).astype(np.uint8))


def nvfp4_bfloat16_tensor_scale_and_ties_away(x):
    """Two mistakes: the tensor scale passes through a bfloat16 tensor of the framework, and elements halfway between two codes go away from zero."""
    return F.nv(x, tensor=lambda x: F32(F.bf16(np.abs(x).max() / F32(2688))), element=e2m1_away)


# MXFP4


def mxfp4_log2_of_max_in_float16(x):
    """The logarithm of the maximum is rounded to float16 before floor, so a maximum a little below a power of two gets a scale twice too large."""
    def byte(a):
        with np.errstate(divide="ignore"):
            e = np.floor(np.log2(a.astype(np.float64)).astype(np.float16).astype(np.float64))
        return np.where(a > 0, np.clip(np.where(a > 0, e, 0) - 2 + 127, 0, 254), 0).astype(np.uint8)
    return F.mx(x, byte=byte)


def mxfp4_exponent_rounded_by_added_half(x):
    """A rounding constant 0x400000 is added to the bits of the maximum before the exponent is cut out, so the exponent rises at 1.5 and is no floor."""
    def byte(a):
        e = (np.ascontiguousarray(a).view(np.uint32) + np.uint32(0x400000)) >> np.uint32(23)
        return np.clip(e.astype(np.int64) - 2, 0, 254).astype(np.uint8)
    return F.mx(x, byte=byte)


def mxfp4_round_carry_runs_into_sign(x):
    """There is no saturation before rounding: numbers above 7 carry out of the three magnitude bits into the sign bit and become a zero."""
    def element(y):
        return np.where(np.abs(y) > 7, (8 + np.where(np.signbit(y), 8, 0)) & 15, F.e2m1(y)).astype(np.uint8)
    return F.mx(x, element=element)


def mxfp4_threshold_between_3_and_4_mistyped(x):
    """In the ladder of comparisons the threshold between 3 and 4 is typed 3.25, not 3.5."""
    def element(y):
        a = np.abs(y)
        return np.where((a > 3.25) & (a < 3.5), signed(6, y), F.e2m1(y)).astype(np.uint8)
    return F.mx(x, element=element)


def mxfp4_scale_of_32_by_32_tile(x):
    """The two-dimensional mode of weights is used for activations: 32 rows of a tile share one maximum."""
    def amax(b):
        a = F.abs_max(b)
        return np.repeat(a.reshape(-1, 32, a.shape[1]).max(1), 32, 0)
    return F.mx(x, amax=amax)


def mxfp4_tail_blocks_divided_by_last_full_tile_scale(x):
    """The loop for columns beyond a multiple of 128 does not load its divisor and goes on with that of the last block of the full tiles. Stored scales are right."""
    def divisor(s, b):
        d = F.power(s)
        n = d.shape[1] // 4 * 4
        d[:, n:] = d[:, n - 1 : n]
        return d
    return F.mx(x, divisor=divisor)


def mxfp4_running_max_not_reset_in_tile(x):
    """A thread handles four blocks of a row one after another and does not set its maximum back to zero between them."""
    def amax(b):
        a = F.abs_max(b)
        return np.maximum.accumulate(a.reshape(a.shape[0], -1, 4), 2).reshape(a.shape)
    return F.mx(x, amax=amax)


def mxfp4_last_butterfly_stage_not_bypassed(x):
    """With rotation off, the Hadamard unit bypasses all stages but the last: columns i and i + 16 of each 32 become their sum and difference."""
    t = x.reshape(x.shape[0], -1, 2, 16)
    return F.mx(np.stack([t[:, :, 0] + t[:, :, 1], t[:, :, 0] - t[:, :, 1]], 2).reshape(x.shape))


def mxfp4_sign_bits_of_pair_exchanged(x):
    """The sign mask is shifted by the wrong nibble when a byte is packed: each element of a pair gets its partner's sign."""
    def code(c, b):
        swapped = c.reshape(*c.shape[:2], -1, 2)[..., ::-1].reshape(c.shape)
        return (c & 7) | (swapped & 8)
    return F.mx(x, code=code)


def mxfp4_zero_block_returns_before_scale_is_set(x):
    """For a block of zeros the code leaves early and the scale register still holds the scale of the block before it in the row, which is then stored."""
    def byte(a):
        s = F.floor_byte(a, 2)
        for k in range(1, s.shape[1]):
            s[:, k] = np.where(a[:, k] == 0, s[:, k - 1], s[:, k])
        return s
    return F.mx(x, byte=byte)


def mxfp4_subnormal_inputs_are_zeros(x):
    """The kernel is compiled with flushing to zero (-ftz=true), so subnormal float32 inputs are read as zeros of the same sign."""
    return F.mx(np.where(np.abs(x) < F32(2.0 ** -126), np.copysign(F32(0), x), x).astype(F32))


def mxfp4_last_element_left_out_of_max(x):
    """The bound of the maximum's loop is 31 and not 32: the last element of a block never counts, and saturates if it is the largest."""
    return F.mx(x, amax=lambda b: F.abs_max(b[..., :-1]))


def mxfp4_ceil_log2_minus_one_and_small_numbers_flushed(x):
    """Two mistakes: the exponent is ceil(log2(amax)) - 1, which is one too small at exact powers of two, and numbers under 0.5 become zero without rounding."""
    def byte(a):
        m, e = np.frexp(a)
        return np.where(a > 0, np.clip(e.astype(np.int64) - 1 - (m == 0.5) - 2 + 127, 0, 254), 0).astype(np.uint8)
    return F.mx(x, byte=byte, scaled=lambda y: np.where(np.abs(y) < 0.5, np.copysign(0.0, y), y))


def mxfp4_scale_rows_8_apart_exchanged_and_truncation(x):
    """Two mistakes: the two row groups of a 16-row matrix fragment store their scales at each other's rows, and elements are rounded toward zero."""
    return F.mx(x, element=lambda y: toward_zero(E2M1, y, 8), stored=lambda s: s[np.arange(len(s)) ^ 8])


# MXFP8


def mxfp8_e4m3_overflow_gives_nan(x):
    """The conversion to E4M3 is the one without saturation: scaled numbers above 464 become NaN (0x7F or 0xFF) and not 448."""
    return F.mxfp8(x, element=lambda y: np.where(np.abs(y) > 464, signed(0x7F, y, 128), F.e4m3(y)).astype(np.uint8))


def mxfp8_e4m3_subnormal_elements_flushed(x):
    """The software E4M3 encoder has no branch for subnormals: whatever lies below 2**-6 after scaling becomes a signed zero."""
    return F.mxfp8(x, code=lambda c, b: np.where((c & 127) < 8, c & 128, c).astype(np.uint8))


def mxfp8_e4m3_fnuz_codes(x):
    """Elements are converted with the FNUZ type (bias 8, largest number 240, no negative zero), but the consumer reads OCP E4M3."""
    def element(y):
        c = F.encode(F.float_table(4, 3, 8, 127), y, 128)
        return np.where(c == 128, 0, c).astype(np.uint8)
    return F.mxfp8(x, element=element)


def mxfp8_e4m3_codes_of_8_by_8_tiles_transposed(x):
    """A transposing shared-memory load is used for the store path, so each tile of 8 x 8 codes comes out transposed; scales stay where they were."""
    r = F.mxfp8(x)
    rows, cols = x.shape
    r.codes = np.ascontiguousarray(r.codes.reshape(rows // 8, 8, cols // 8, 8).transpose(0, 3, 2, 1)).reshape(rows, cols)
    return r


def mxfp8_e5m2_scale_with_emax_of_e4m3(x):
    """The scale subtracts 8, the largest exponent of E4M3, in the E5M2 instance of the template, too: scales are 128 times too large."""
    return F.mxfp8_e5m2(x, emax=8)


def mxfp8_e5m2_rounded_twice_through_float16(x):
    """Scaled numbers are rounded to float16 and then to E5M2: those just beside a tie are first rounded to the tie and then to even."""
    return F.mxfp8_e5m2(x, scaled=lambda y: np.clip(y, -57344, 57344).astype(np.float16).astype(np.float64))


def mxfp8_e5m2_scale_bytes_of_word_reversed(x):
    """Four scales are collected in a 32-bit word with the first in the highest byte, and the word is stored little-endian: their order is reversed."""
    return F.mxfp8_e5m2(x, stored=lambda s: s.reshape(s.shape[0], -1, 4)[..., ::-1].reshape(s.shape))


def mxfp8_e4m3_epsilon_in_max_and_clamp_240(x):
    """Two mistakes: the block maximum is raised to an epsilon of 1e-4, which is larger than the maximum of small blocks, and elements are clamped to 240."""
    return F.mxfp8(x, byte=lambda a: F.floor_byte(np.maximum(a, F32(1e-4)), 8), scaled=lambda y: np.clip(y, -240, 240))


# MXINT8


def mxint8_clamps_to_minus_128(x):
    """The clamp has the whole range of int8: numbers that round to -2 become the code -128, which the format's symmetric range leaves out."""
    return F.mxint8(x, element=lambda y: np.clip(np.rint(y * 64), -128, 127).astype(np.int8).view(np.uint8))


def mxint8_adds_half_and_floors(x):
    """Elements are rounded as floor(v + 0.5), so ties go toward plus infinity and not to even."""
    return F.mxint8(x, element=lambda y: np.clip(np.floor(y * 64 + 0.5), -127, 127).astype(np.int8).view(np.uint8))


def mxint8_shuffle_over_whole_warp_mixes_two_rows(x):
    """A warp holds blocks of two rows, 16 lanes each, but the maximum is reduced over all 32 lanes: rows 2i and 2i + 1 share a scale."""
    def amax(b):
        a = F.abs_max(b)
        return np.repeat(a.reshape(-1, 2, a.shape[1]).max(1), 2, 0)
    return F.mxint8(x, amax=amax)


def mxint8_step_of_63_5_and_block_halves_exchanged(x):
    """Two mistakes: elements are multiplied by 127 / 2 and not by 64, and the two 16-byte vector stores of a block go to each other's address."""
    return F.mxint8(x, element=lambda y: np.clip(np.rint(y * 63.5), -127, 127).astype(np.int8).view(np.uint8), code=lambda c, b: np.roll(c, 16, 2))


ROWS = [(f.__name__, f, kind, rows, cols) for f, kind, rows, cols in [
    (nvfp4_input_loaded_as_float16, "wide", 128, 512),
    (nvfp4_tensor_max_plain_store_last_tile_wins, "heavy", 256, 1024),
    (nvfp4_tensor_max_buffer_starts_at_one, "small", 96, 512),
    (nvfp4_abs_only_on_low_half_of_pairs, "activation", 64, 512),
    (nvfp4_elements_divided_by_unrounded_scale, "activation", 64, 512),
    (nvfp4_subnormal_scales_flushed, "wide", 128, 512),
    (nvfp4_scales_left_in_swizzled_order, "activation", 128, 512),
    (nvfp4_second_byte_of_word_packed_high_first, "heavy", 64, 256),
    (nvfp4_stochastic_rounding_left_on_with_noise_of_column, "activation", 128, 512),
    (nvfp4_reciprocal_without_newton_step, "activation", 256, 1024),
    (nvfp4_tensor_scale_for_e4m3_max_240, "activation", 64, 512),
    (nvfp4_shuffle_mask_two_instead_of_one, "activation", 128, 512),
    (nvfp4_zero_block_scale_one_and_no_negative_zero, "silent", 128, 512),
    (nvfp4_bfloat16_tensor_scale_and_ties_away, "activation", 128, 512),
    (mxfp4_log2_of_max_in_float16, "small", 256, 1024),
    (mxfp4_exponent_rounded_by_added_half, "activation", 64, 512),
    (mxfp4_round_carry_runs_into_sign, "heavy", 64, 512),
    (mxfp4_threshold_between_3_and_4_mistyped, "heavy", 64, 512),
    (mxfp4_scale_of_32_by_32_tile, "activation", 128, 512),
    (mxfp4_tail_blocks_divided_by_last_full_tile_scale, "activation", 128, 352),
    (mxfp4_running_max_not_reset_in_tile, "heavy", 128, 512),
    (mxfp4_last_butterfly_stage_not_bypassed, "activation", 64, 512),
    (mxfp4_sign_bits_of_pair_exchanged, "activation", 64, 256),
    (mxfp4_zero_block_returns_before_scale_is_set, "silent", 128, 512),
    (mxfp4_subnormal_inputs_are_zeros, "special", 256, 1024),
    (mxfp4_last_element_left_out_of_max, "heavy", 96, 512),
    (mxfp4_ceil_log2_minus_one_and_small_numbers_flushed, "activation", 256, 512),
    (mxfp4_scale_rows_8_apart_exchanged_and_truncation, "heavy", 64, 512),
    (mxfp8_e4m3_overflow_gives_nan, "activation", 128, 512),
    (mxfp8_e4m3_subnormal_elements_flushed, "heavy", 256, 1024),
    (mxfp8_e4m3_fnuz_codes, "activation", 64, 512),
    (mxfp8_e4m3_codes_of_8_by_8_tiles_transposed, "activation", 64, 256),
    (mxfp8_e5m2_scale_with_emax_of_e4m3, "activation", 64, 512),
    (mxfp8_e5m2_rounded_twice_through_float16, "heavy", 256, 1024),
    (mxfp8_e5m2_scale_bytes_of_word_reversed, "wide", 64, 512),
    (mxfp8_e4m3_epsilon_in_max_and_clamp_240, "small", 128, 512),
    (mxint8_clamps_to_minus_128, "heavy", 256, 1024),
    (mxint8_adds_half_and_floors, "activation", 64, 512),
    (mxint8_shuffle_over_whole_warp_mixes_two_rows, "heavy", 64, 512),
    (mxint8_step_of_63_5_and_block_halves_exchanged, "activation", 64, 512),
]]


def right_of(name):
    starts = {"nvfp4_": F.nv, "mxfp4_": F.mx, "mxfp8_e4m3_": F.mxfp8, "mxfp8_e5m2_": F.mxfp8_e5m2, "mxint8_": F.mxint8}
    return next(f for start, f in starts.items() if name.startswith(start))


def parts(r):
    return [r.codes, r.scales] + ([] if r.tensor_scale is None else [np.asarray(r.tensor_scale)])


def same(a, b):
    return all(np.array_equal(p, q) for p, q in zip(parts(a), parts(b)))


if __name__ == "__main__":
    names = [row[0] for row in ROWS]
    assert len(set(names)) == 40
    assert [sum(n.startswith(p) for n in names) for p in ("nvfp4_", "mxfp4_", "mxfp8_", "mxint8_")] == [14, 14, 8, 4]
    assert sum(f.__doc__.startswith("Two mistakes:") for _, f, *_ in ROWS) == 6
    for name, f, kind, rows, cols in ROWS:
        assert 64 <= rows <= 256 and 256 <= cols <= 1024 and cols % 32 == 0, name
        counts = []
        for seed in (1, 2):
            x = inputs.KINDS[kind](np.random.default_rng(seed), rows, cols)
            before = x.copy()
            got, again, right = f(x), f(x), right_of(name)(before.copy())
            assert x.tobytes() == before.tobytes(), (name, "changes its input")
            assert same(got, again), (name, "is not deterministic")
            assert (got.bits, got.packed, type(got)) == (right.bits, right.packed, F.Result), name
            assert [(p.shape, p.dtype) for p in parts(got)] == [(p.shape, p.dtype) for p in parts(right)], (name, "shape or dtype")
            assert len(parts(got)) == len(parts(right)), name
            assert not same(got, right), (name, "equals the right kernel")
            counts.append((int((got.codes != right.codes).sum()), int((got.scales != right.scales).sum())))
        print(f"{name:60} {kind:10} codes and scales that differ: {counts}")
    print("all right: 40 wrong kernels")
