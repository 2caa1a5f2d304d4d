"""Forty wrong quantisation kernels, each with a mistake of a kind that is made in real kernels (six of them with two)."""
import numpy as np

import formats as F
import inputs

F32 = np.float32
E2M1 = F.E2M1.astype(np.float64)


def coded(table, v, sign_bit, up):
    """Sign and magnitude like F.encode; up(below, above, u) says whether v goes to the larger neighbour."""
    m = np.minimum(np.abs(np.asarray(v, np.float64)), table[-1])
    hi = np.clip(np.searchsorted(table, m), 1, len(table) - 1)
    below, above = m - table[hi - 1], table[hi] - m
    return (np.where(up(below, above), hi, hi - 1) | np.where(np.signbit(v), sign_bit, 0)).astype(np.uint8)


def swapped_pairs(c):
    return np.ascontiguousarray(c.reshape(*c.shape[:-1], -1, 2)[..., ::-1]).reshape(c.shape)


# NVFP4


def nvfp4_abs_missing_on_odd_half(x):
    """The block maximum is taken on packed pairs, and the sign is masked off only in the low half of each pair: negative numbers in odd columns do not count."""
    return F.nv(x, amax=lambda b: np.maximum(np.abs(b[..., ::2]).max(-1), b[..., 1::2].max(-1)))


def nvfp4_elements_divided_by_unrounded_scale(x):
    """The elements are divided by amax / 6 in binary32, not by the value of the E4M3 scale that is stored."""
    return F.nv(x, divide=lambda b, f, t: b / (F.abs_max(b) / F32(6))[..., None])


def nvfp4_tensor_amax_last_row_wins(x):
    """Each thread block stores its row's maximum to the one global amax with a plain store where atomicMax was meant: the last row's maximum stays."""
    return F.nv(x, tensor=lambda x: np.abs(x[-1]).max() / F32(448 * 6))


def nvfp4_tensor_amax_converted_to_int(x):
    """The atomicMax of the tensor's maximum gets (int)v where __float_as_int(v) was meant, so that the fraction of the amax is lost."""
    return F.nv(x, tensor=lambda x: np.maximum(np.trunc(np.abs(x).max()), F32(1)) / F32(448 * 6))


def nvfp4_reciprocal_kept_in_bf16(x):
    """The elements are multiplied by 1 / (s * T), and this reciprocal is kept in a bfloat16 variable of the input's type."""
    return F.nv(x, divide=lambda b, f, t: b * F.bf16(1 / (f * t))[..., None])


def nvfp4_shuffle_over_whole_warp(x):
    """The maximum's butterfly of shuffles begins at a lane distance of 16 where 8 was right, so two neighbouring blocks of 16 share the larger maximum."""
    def amax(b):
        a = F.abs_max(b)
        return np.repeat(a.reshape(len(a), -1, 2).max(-1), 2, axis=1)
    return F.nv(x, amax=amax)


def nvfp4_scale_swizzle_row_parts_swapped(x):
    """Scales are stored to the 128 x 4 tiles with row / 4 and row % 4 where row % 32 and row / 32 belong: within each 128 rows they come out at the wrong row."""
    def final(s):
        return np.ascontiguousarray(s.reshape(-1, 32, 4, s.shape[1]).transpose(0, 2, 1, 3)).reshape(s.shape)
    return F.nv(x, final=final)


def nvfp4_shared_max_not_reset_between_tiles(x):
    """The shared-memory slot of the block maximum is cleared at the kernel's start only; over the eight blocks that a warp walks through it is a running maximum."""
    def amax(b):
        a = F.abs_max(b)
        return np.maximum.accumulate(a.reshape(len(a), -1, 8), axis=-1).reshape(a.shape)
    return F.nv(x, amax=amax)


def nvfp4_rotated16_tensor_amax_before_rotation(x):
    """The kernel rotates by a Hadamard matrix of 16, but the tensor scale comes from an amax pass over the tensor before rotation."""
    t = np.abs(x).max() / F32(448 * 6)
    return F.nv(F.rotate(x, 16), tensor=lambda _: t)


def nvfp4_stochastic_rounding_left_on_in_forward(x):
    """Stochastic rounding of the elements, meant for gradients only, is left on in the forward pass, where nearest was asked for (a fixed seed, one draw an element)."""
    u = np.random.default_rng(1234).random((x.shape[0], -(-x.shape[1] // 16), 16))
    return F.nv(x, element=lambda y: coded(E2M1, y, 8, lambda below, above: u * (below + above) < below))


def nvfp4_scale_clamped_to_least_normal(x):
    """Block scales are clamped from below to 2^-6, the least normal E4M3 number, so small blocks (and blocks of zeros) never get a subnormal or zero scale."""
    return F.nv(x, store=lambda r: F.nearest(F.E4M3, np.clip(r, F32(2**-6), F32(448))).astype(np.uint8))


def nvfp4_tensor_scale_stored_as_reciprocal(x):
    """Codes and scales are right, but the tensor scale that is handed out is the encoding one (448 * 6 / amax), and not its reciprocal."""
    return F.nv(x, stored_tensor=lambda t: F32(1) / F32(t))


def nvfp4_scale_rounded_up_and_ties_away(x):
    """Two mistakes: the block scale is rounded to E4M3 toward plus infinity, and elements halfway between two codes go to the larger one, not to the even one."""
    return F.nv(x, store=lambda r: np.searchsorted(F.E4M3, np.minimum(r, F32(448))).astype(np.uint8),
                element=lambda y: coded(E2M1, y, 8, lambda below, above: above <= below))


def nvfp4_fp16_input_and_nibbles_swapped(x):
    """Two mistakes: the binary32 input is loaded through binary16, and the first element of each pair is packed into the high nibble, not the low one."""
    return F.nv(x.astype(np.float16).astype(F32), code=lambda c, b: swapped_pairs(c))


# MXFP4


def mxfp4_scale_exponent_of_amax_rounded_to_fp8_bits(x):
    """Before its exponent is read, the amax gets half a step of a three-bit mantissa added, a constant left from the E4M3 kernel; the exponent should be the plain floor."""
    def byte(a):
        return F.floor_byte((a.view(np.uint32) + np.uint32(1 << 19)).view(F32), 2)
    return F.mx(x, byte=byte)


def mxfp4_least_magnitude_flushed(x):
    """The hand-written E2M1 conversion handles exponents only and has no subnormal case: what should become 0.5 becomes a zero of the same sign."""
    return F.mx(x, code=lambda c, b: np.where(c & 7 == 1, c & 8, c).astype(np.uint8))


def mxfp4_overflow_carries_into_sign(x):
    """There is no clamp at 6: from 7 on, rounding carries out of the three magnitude bits into the sign bit, and the largest elements of a block become -0."""
    def element(y):
        return np.where(np.abs(y) >= 7, 8, F.e2m1(y)).astype(np.uint8)
    return F.mx(x, element=element)


def mxfp4_elements_through_fp8_first(x):
    """Scaled elements are first converted to E4M3 (the intrinsic at hand) and from there to E2M1, which rounds twice."""
    return F.mx(x, scaled=lambda y: np.copysign(F.E4M3[F.nearest(F.E4M3, np.abs(y))], y))


def mxfp4_scale_bytes_reversed_in_words(x):
    """Four scale bytes are gathered in a 32-bit word with the first one at the top, and a little-endian store reverses each group of four."""
    return F.mx(x, stored=lambda s: np.ascontiguousarray(s.reshape(len(s), -1, 4)[..., ::-1]).reshape(s.shape))


def mxfp4_skipped_zeros_keep_old_code(x):
    """A shortcut skips the conversion of elements that are zero, and the register still holds this lane's code of the row's block before."""
    def code(c, b):
        c = c.copy()
        for k in range(1, c.shape[1]):
            c[:, k] = np.where(b[:, k] == 0, c[:, k - 1], c[:, k])
        return c
    return F.mx(x, code=code)


def mxfp4_tail_block_half_reduced(x):
    """The rows are read 64 columns at a time; the remainder of 32 columns is reduced by half the threads, so the last block's maximum is that of its first 16 elements."""
    def amax(b):
        a = F.abs_max(b)
        if b.shape[1] % 2:
            a[:, -1] = np.abs(b[:, -1, :16]).max(-1)
        return a
    return F.mx(x, amax=amax)


def mxfp4_codes_left_in_fragment_order(x):
    """Codes are written in the register order of a matrix-unit fragment: in each 16 columns the pairs come out as columns 0, 1, 8, 9, 2, 3, 10, 11 and so on."""
    order = np.arange(16).reshape(2, 4, 2).transpose(1, 0, 2).ravel()
    return F.mx(x, code=lambda c, b: c.reshape(len(c), -1, 16)[..., order].reshape(c.shape))


def mxfp4_subnormal_inputs_flushed(x):
    """The kernel is compiled with flush-to-zero (-use_fast_math): subnormal inputs count as zeros, which shows in rows near the least normal number."""
    return F.mx(np.where(np.abs(x) < F32(2.0**-126), np.copysign(F32(0), x), x))


def mxfp4_low_nibble_sign_extended(x):
    """Nibbles are packed as hi << 4 | lo with lo in a sign-extended signed char: where the even element is negative, the odd element's nibble is ORed to 0xF."""
    def code(c, b):
        c = c.copy()
        c[..., 1::2] |= np.where(c[..., ::2] & 8, 15, 0).astype(np.uint8)
        return c
    return F.mx(x, code=code)


def mxfp4_rotated32_last_stage_sign_of_upper_lanes(x):
    """In the last butterfly of the 32-point Hadamard rotation, done by a shuffle at distance 16, the upper lanes take own minus partner, not partner minus own."""
    y = F.rotate(x, 32).reshape(len(x), -1, 2, 16).copy()
    y[:, :, 1] *= F32(-1)
    return F.mx(y.reshape(x.shape))


def mxfp4_scale_exponent_to_nearest(x):
    """The shared exponent is rintf(log2f(amax)) - 2 where floorf was meant, so the scale is doubled for each block whose amax has a mantissa above the root of two."""
    def byte(a):
        e = np.rint(np.log2(np.where(a > 0, a, 1).astype(np.float64))).astype(np.int64)
        return np.where(a > 0, np.clip(e - 2 + 127, 0, 254), 0).astype(np.uint8)
    return F.mx(x, byte=byte)


def mxfp4_half_block_max_and_ties_down(x):
    """Two mistakes: the maximum is over the first 16 of 32 elements (a block width left from NVFP4), and thresholds are compared with > so that all ties go toward zero."""
    return F.mx(x, amax=lambda b: np.abs(b[..., :16]).max(-1), element=lambda y: coded(E2M1, y, 8, lambda below, above: above < below))


def mxfp4_scale_stored_without_emax_and_last_tile_row_repeated(x):
    """Two mistakes: the stored byte is the exponent of the amax without the 2 taken off that the divisor has, and a row clamp one too low makes row 63 of each 64 repeat row 62."""
    rows = np.arange(len(x))
    return F.mx(x[rows - (rows % 64 == 63)], stored=lambda s: np.where(s > 0, s + np.uint8(2), s).astype(np.uint8))


# MXFP8


def mxfp8_e4m3_clamped_to_240(x):
    """Scaled elements are clamped to 240, the largest number of AMD's older E4M3 (fnuz), though the scale is chosen for 448."""
    return F.mxfp8(x, scaled=lambda y: np.clip(y, -240, 240))


def mxfp8_e4m3_overflow_becomes_nan(x):
    """The conversion to E4M3 is the one without saturation: scaled elements above 464 become NaN (0x7F, 0xFF), not 448."""
    return F.mxfp8(x, element=lambda y: np.where(np.abs(y) > 464, F.e4m3(y) | 127, F.e4m3(y)).astype(np.uint8))


def mxfp8_e5m2_top_byte_of_half(x):
    """E5M2 codes are made by taking the upper byte of a binary16 number, which rounds toward zero."""
    return F.mxfp8_e5m2(x, element=lambda y: coded(F.E5M2, y, 128, lambda below, above: above == 0))


def mxfp8_e4m3_subnormal_codes_flushed(x):
    """The software conversion to E4M3 returns a zero of the same sign for all results below 2^-6, as if the format had no subnormal numbers."""
    return F.mxfp8(x, code=lambda c, b: np.where(c & 127 < 8, c & 128, c).astype(np.uint8))


def mxfp8_e5m2_sign_by_comparison(x):
    """The sign bit is set by x < 0 and not copied from the input, so a negative zero is stored as a positive zero."""
    return F.mxfp8_e5m2(x, code=lambda c, b: np.where(b < 0, c, c & 127).astype(np.uint8))


def mxfp8_e4m3_divisor_of_previous_stage(x):
    """In the software pipeline the scale register is rotated too late: each block but a row's first is divided by the scale of the block before, while its own is stored."""
    return F.mxfp8(x, divisor=lambda s, b: F.power(np.concatenate([s[:, :1], s[:, :-1]], 1)))


def mxfp8_e5m2_input_through_fp16(x):
    """The input is loaded as binary16 before scaling, so small tensors lose bits to binary16's subnormal range and are rounded twice."""
    return F.mxfp8_e5m2(x.astype(np.float16).astype(F32))


def mxfp8_e4m3_scale_ceil_and_row_pair_exchanged(x):
    """Two mistakes: the exponent of the amax is rounded up, not down, and a warp writes the codes of its two rows to each other's place (scales stay where they belong)."""
    def byte(a):
        m, _ = np.frexp(a)
        return (F.floor_byte(a, 8) + np.where(m > 0.5, 1, 0)).astype(np.uint8)
    rows = np.arange(len(x))
    return F.mxfp8(x, byte=byte, code=lambda c, b: c[rows ^ 1])


# MXINT8


def mxint8_minus_128_allowed(x):
    """The clamp is to the whole range of int8, -128 to 127, where the format's symmetric range ends at -127."""
    return F.mxint8(x, element=lambda y: np.clip(np.rint(y * 64), -128, 127).astype(np.int8).view(np.uint8))


def mxint8_multiplied_by_half_of_127(x):
    """Scaled elements are multiplied by 127 / 2 as in plain symmetric int8, where the format's step is 1/64."""
    return F.mxint8(x, element=lambda y: F.int8(y * (63.5 / 64)))


def mxint8_arithmetic_shift_rounds_down(x):
    """The fixed-point number is shifted right arithmetically without a rounding term, which rounds toward minus infinity."""
    return F.mxint8(x, element=lambda y: np.clip(np.floor(y * 64), -127, 127).astype(np.int8).view(np.uint8))


def mxint8_max_skips_last_element_and_wraps(x):
    """Two mistakes: the maximum's loop ends one element early in each block of 32, and the conversion to int8 wraps around where it should saturate."""
    return F.mxint8(x, amax=lambda b: np.abs(b[..., :-1]).max(-1),
                    element=lambda y: (np.rint(np.clip(y, -2.0**40, 2.0**40) * 64).astype(np.int64) & 255).astype(np.uint8))


ROWS = [(f.__name__, f, kind, rows, cols) for f, kind, rows, cols in [
    (nvfp4_abs_missing_on_odd_half, "activation", 64, 512),
    (nvfp4_elements_divided_by_unrounded_scale, "activation", 128, 256),
    (nvfp4_tensor_amax_last_row_wins, "heavy", 256, 256),
    (nvfp4_tensor_amax_converted_to_int, "heavy", 64, 512),
    (nvfp4_reciprocal_kept_in_bf16, "heavy", 128, 512),
    (nvfp4_shuffle_over_whole_warp, "activation", 96, 352),
    (nvfp4_scale_swizzle_row_parts_swapped, "heavy", 256, 512),
    (nvfp4_shared_max_not_reset_between_tiles, "activation", 64, 512),
    (nvfp4_rotated16_tensor_amax_before_rotation, "activation", 128, 256),
    (nvfp4_stochastic_rounding_left_on_in_forward, "activation", 64, 512),
    (nvfp4_scale_clamped_to_least_normal, "wide", 128, 256),
    (nvfp4_tensor_scale_stored_as_reciprocal, "activation", 64, 256),
    (nvfp4_scale_rounded_up_and_ties_away, "activation", 128, 512),
    (nvfp4_fp16_input_and_nibbles_swapped, "small", 64, 1024),
    (mxfp4_scale_exponent_of_amax_rounded_to_fp8_bits, "heavy", 128, 512),
    (mxfp4_least_magnitude_flushed, "activation", 64, 256),
    (mxfp4_overflow_carries_into_sign, "heavy", 64, 512),
    (mxfp4_elements_through_fp8_first, "heavy", 128, 512),
    (mxfp4_scale_bytes_reversed_in_words, "activation", 64, 512),
    (mxfp4_skipped_zeros_keep_old_code, "silent", 128, 512),
    (mxfp4_tail_block_half_reduced, "heavy", 128, 352),
    (mxfp4_codes_left_in_fragment_order, "activation", 64, 256),
    (mxfp4_subnormal_inputs_flushed, "special", 256, 512),
    (mxfp4_low_nibble_sign_extended, "heavy", 64, 256),
    (mxfp4_rotated32_last_stage_sign_of_upper_lanes, "activation", 64, 512),
    (mxfp4_scale_exponent_to_nearest, "activation", 64, 1024),
    (mxfp4_half_block_max_and_ties_down, "activation", 128, 512),
    (mxfp4_scale_stored_without_emax_and_last_tile_row_repeated, "heavy", 128, 256),
    (mxfp8_e4m3_clamped_to_240, "activation", 64, 512),
    (mxfp8_e4m3_overflow_becomes_nan, "heavy", 128, 512),
    (mxfp8_e5m2_top_byte_of_half, "heavy", 64, 256),
    (mxfp8_e4m3_subnormal_codes_flushed, "activation", 128, 1024),
    (mxfp8_e5m2_sign_by_comparison, "special", 128, 256),
    (mxfp8_e4m3_divisor_of_previous_stage, "heavy", 64, 512),
    (mxfp8_e5m2_input_through_fp16, "small", 128, 512),
    (mxfp8_e4m3_scale_ceil_and_row_pair_exchanged, "activation", 64, 256),
    (mxint8_minus_128_allowed, "heavy", 256, 1024),
    (mxint8_multiplied_by_half_of_127, "activation", 64, 256),
    (mxint8_arithmetic_shift_rounds_down, "heavy", 64, 512),
    (mxint8_max_skips_last_element_and_wraps, "heavy", 128, 512),
]]


def right(name, x):
    """What the right kernel gives, with the rotation that the name says."""
    for n in (16, 32):
        if f"_rotated{n}_" in name:
            x = F.rotate(x, n)
    kernels = {"nvfp4_": F.nv, "mxfp4_": F.mx, "mxfp8_e4m3_": F.mxfp8, "mxfp8_e5m2_": F.mxfp8_e5m2, "mxint8_": F.mxint8}
    return next(f for prefix, f in kernels.items() if name.startswith(prefix))(x)


def same(a, b):
    tensor = a.tensor_scale is b.tensor_scale or np.array_equal(a.tensor_scale, b.tensor_scale)
    return np.array_equal(a.codes, b.codes) and np.array_equal(a.scales, b.scales) and tensor


def main():
    names = [row[0] for row in ROWS]
    assert len(set(names)) == 40
    assert [sum(n.startswith(p) for n in names) for p in ("nvfp4_", "mxfp4_", "mxfp8_", "mxint8_")] == [14, 14, 8, 4]
    assert sum(f.__doc__.startswith("Two mistakes:") for _, f, *_ in ROWS) == 6
    for name, f, kind, rows, cols in ROWS:
        assert 64 <= rows <= 256 and 256 <= cols <= 1024 and cols % 32 == 0, name
        counts = []
        for seed in (1, 2):
            x = inputs.KINDS[kind](np.random.default_rng(seed), rows, cols)
            kept = x.copy()
            got, again, want = f(x), f(x), right(name, x)
            assert x.tobytes() == kept.tobytes(), (name, "input changed")
            assert same(got, again), (name, "not deterministic")
            for part in ("codes", "scales"):
                g, w = getattr(got, part), getattr(want, part)
                assert g.shape == w.shape and g.dtype == w.dtype, (name, part, g.shape, w.shape, g.dtype, w.dtype)
            assert type(got.tensor_scale) is type(want.tensor_scale) and np.shape(got.tensor_scale) == np.shape(want.tensor_scale), name
            assert (got.bits, got.packed) == (want.bits, want.packed), name
            assert not same(got, want), (name, seed, "does not differ")
            counts.append((int((got.codes != want.codes).sum()), int((got.scales != want.scales).sum()), got.tensor_scale != want.tensor_scale))
        print(name, kind, rows, cols, *counts)


if __name__ == "__main__":
    main()
