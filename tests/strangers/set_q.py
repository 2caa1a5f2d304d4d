"""Forty wrong quantisation kernels, each with a mistake (six: with two) of a kind that real kernels have had."""
import numpy as np

import formats as F
import inputs

F32 = np.float32
GRID = F.E2M1.astype(np.float64)


def away(table, y, sign_bit):
    """Nearest, ties away from zero."""
    mag = np.searchsorted((table[1:] + table[:-1]) / 2, np.abs(y), "right")
    return (mag | np.where(np.signbit(y), sign_bit, 0)).astype(np.uint8)


def toward_zero(y):
    mag = np.searchsorted(GRID, np.abs(y), "right") - 1
    return (mag | np.where(np.signbit(y), 8, 0)).astype(np.uint8)


def e4m3_scale(r):
    return F.nearest(F.E4M3, np.minimum(r, F32(448))).astype(np.uint8)


def swap_nibbles(c, b):
    return c.reshape(*c.shape[:-1], -1, 2)[..., ::-1].reshape(c.shape)


def biased(e, a):
    """Byte of the exponent e, 0 for blocks of zeros."""
    return np.where(a > 0, np.clip(e + 127, 0, 254), 0).astype(np.uint8)


# ---- NVFP4

def nvfp4_shuffle_reduction_stops_at_eight_lanes(x):
    """The xor shuffles for the block maximum use offsets 4, 2, 1 and miss 8, so each half of a block of 16 has its own maximum and divisor.
    Lane 0 stores the scale of the first half."""
    def divide(b, f, t):
        f2 = F.E4M3[e4m3_scale(F.abs_max(b[..., 8:]) / F32(6) / t)].astype(F32)
        d = np.concatenate([np.repeat(f[..., None], 8, -1), np.repeat(f2[..., None], 8, -1)], -1)
        return b / (d * t)
    return F.nv(x, amax=lambda b: F.abs_max(b[..., :8]), divide=divide)


def nvfp4_tensor_amax_read_before_grid_is_done(x):
    """There is no grid-wide barrier between atomicMax and the quantising half: each row's block uses the global maximum as it is after its own row.
    The tensor scale that is stored at the end is the right one."""
    def tensor(x):
        seen = np.maximum.accumulate(np.abs(x).max(1))
        return (np.maximum(seen, F32(1e-30)) / F32(448 * 6))[:, None]
    return F.nv(x, tensor=tensor, stored_tensor=lambda t: F32(t[-1, 0]))


def nvfp4_block_amax_by_unsigned_bits_with_sign(x):
    """The block maximum is __reduce_max_sync on the raw bits as unsigned integers without clearing the sign bit.
    Any negative number beats all positive ones, so the maximum is that of the negative numbers only."""
    def amax(b):
        u = np.ascontiguousarray(b, F32).view(np.uint32).max(-1)
        return np.abs(u.view(F32))
    return F.nv(x, amax=amax)


def nvfp4_tensor_scale_stored_as_encode_scale(x):
    """Codes and block scales are right, but the global scale handed back is the encoding factor 2688 / amax, not its inverse."""
    return F.nv(x, stored_tensor=lambda t: F32(F32(1) / t))


def nvfp4_scale_rows_swizzled_with_32_and_4_exchanged(x):
    """The 128x4 scale layout is filled with row / 4 and row % 4 where row % 32 and row / 32 belong, so the scales of each 128 rows come out permuted."""
    def final(s):
        rows, blocks = s.shape
        return np.ascontiguousarray(s.reshape(rows // 128, 32, 4, blocks).swapaxes(1, 2)).reshape(rows, blocks)
    return F.nv(x, final=final)


def nvfp4_block_scale_cast_flushes_e4m3_subnormals(x):
    """The hand-written cast of block scales to e4m3 rebiases the exponent and flushes to zero what is below 2^-6; blocks with such a scale get codes of zero."""
    def store(r):
        s = e4m3_scale(r)
        return np.where(s < 8, 0, s).astype(np.uint8)

    def divide(b, f, t):
        d = (f * t)[..., None]
        return np.where(d > 0, b / np.where(d > 0, d, 1), F32(0) * b)
    return F.nv(x, store=store, divide=divide)


def nvfp4_tensor_scale_for_256_and_scale_through_bf16(x):
    """Two mistakes: the tensor scale is amax / (256 * 6), left over from the four-over-six recipe, instead of amax / (448 * 6).
    The block scale is rounded to bfloat16 before e4m3, which rounds twice."""
    return F.nv(x, tensor=lambda x: np.abs(x).max() / F32(256 * 6), store=lambda r: e4m3_scale(F.bf16(r)))


def nvfp4_elements_divided_by_unrounded_scale(x):
    """The elements are divided by the binary32 amax / 6 kept in a register, not by the e4m3 scale that is stored and that the reader will use."""
    def divide(b, f, t):
        return b / (F.abs_max(b) / F32(6))[..., None]
    return F.nv(x, divide=divide)


def nvfp4_reciprocal_kept_in_bf16(x):
    """The reciprocal of scale times tensor scale is held in the input's type, bfloat16, and the elements are multiplied by that rounded number."""
    return F.nv(x, divide=lambda b, f, t: b * F.bf16(F32(1) / (f * t))[..., None])


def nvfp4_bytes_of_packed_word_reversed(x):
    """Eight codes are collected in a 32-bit word whose four bytes are written in big-endian order; the nibbles within each byte are right."""
    def code(c, b):
        return c.reshape(*c.shape[:-1], 2, 4, 2)[..., ::-1, :].reshape(c.shape)
    return F.nv(x, code=code)


def nvfp4_stochastic_rounding_left_on(x):
    """The flag for stochastic rounding of gradients is also on in the forward pass, and one random word is shared by the eight elements of a thread."""
    def element(y):
        v = np.minimum(np.abs(y).astype(np.float64), 6.0)
        lo = np.clip(np.searchsorted(GRID, v, "right") - 1, 0, 6)
        i = (np.arange(y.size, dtype=np.uint64) // np.uint64(8)).reshape(y.shape)
        h = (i * np.uint64(2654435761) + np.uint64(12345)) & np.uint64(0xFFFFFFFF)
        h = ((h ^ (h >> np.uint64(15))) * np.uint64(2246822519)) & np.uint64(0xFFFFFFFF)
        u = (h ^ (h >> np.uint64(13))) / 2.0 ** 32
        up = u < (v - GRID[lo]) / (GRID[lo + 1] - GRID[lo])
        return ((lo + up) | np.where(np.signbit(y), 8, 0)).astype(np.uint8)
    return F.nv(x, element=element)


def nvfp4_divisor_indexed_by_column_over_32(x):
    """The second pass reads the block scale at column >> 5, the index of MX formats, where NVFP4 needs column >> 4; the stored scales are right."""
    def divide(b, f, t):
        g = f[:, np.arange(f.shape[1]) // 2]
        return b / (g * t)[..., None]
    return F.nv(x, divide=divide)


def nvfp4_partial_column_tile_uses_shared_scales_of_last_tile(x):
    """In the last tile of fewer than 128 columns the divisors in shared memory are not written again, so those of the full tile before it are used.
    The scales in global memory are right."""
    def divide(b, f, t):
        g = f.copy()
        full = f.shape[1] // 8 * 8
        rest = f.shape[1] - full
        if full and rest:
            g[:, full:] = f[:, full - 8 : full - 8 + rest]
        return b / (g * t)[..., None]
    return F.nv(x, divide=divide)


def nvfp4_rotated_block_amax_before_hadamard_and_nibbles_swapped(x):
    """Two mistakes: the fused Hadamard of 16 is applied after the block maximum was taken, so the scale is that of the unrotated numbers.
    The operands of cvt.e2m1x2 are in the wrong order, so the even column is in the high nibble."""
    return F.nv(F.rotate(x, 16), amax=lambda b: F.abs_max(F.in_blocks(x, 16)), code=swap_nibbles)


# ---- MXFP4

def mxfp4_shared_exponent_by_rounded_log2(x):
    """The shared exponent is rint(log2(amax)) - 2 instead of floor(log2(amax)) - 2, so the scale doubles where amax is above sqrt(2) times a power of two."""
    def byte(a):
        return biased(np.rint(np.log2(np.where(a > 0, a, 1).astype(np.float64))).astype(np.int64) - 2, a)
    return F.mx(x, byte=byte)


def mxfp4_scale_stored_without_bias(x):
    """The scale is stored as a signed 8-bit exponent: the bias of 127 of E8M0 is not added. The codes are right."""
    return F.mx(x, stored=lambda s: ((s.astype(np.int64) - 127) & 255).astype(np.uint8))


def mxfp4_zero_block_gets_scale_of_one(x):
    """For a block of zeros the guard against log2(0) replaces amax with 4, so the scale byte is 127 (a scale of 1), not 0."""
    return F.mx(x, byte=lambda a: F.floor_byte(np.where(a > 0, a, F32(4)), 2))


def mxfp4_ties_go_up_in_threshold_ladder(x):
    """The ladder of comparisons that finds the code uses >= at each midpoint, so all ties go to the larger magnitude instead of the even code."""
    return F.mx(x, element=lambda y: away(GRID, y, 8))


def mxfp4_subnormal_half_never_made(x):
    """The bit trick that makes e2m1 from the float's exponent and mantissa has no case for the subnormal 0.5; what should be 0.5 becomes a zero of its sign."""
    def code(c, b):
        return np.where((c & 7) == 1, c & 8, c).astype(np.uint8)
    return F.mx(x, code=code)


def mxfp4_sign_lost_when_rounded_to_zero(x):
    """The sign is taken by comparing the rounded number with 0, so negative numbers that round to zero, and -0, get code 0 instead of 8."""
    return F.mx(x, code=lambda c, b: np.where(c == 8, 0, c).astype(np.uint8))


def mxfp4_scales_written_block_major(x):
    """The scales are written with index block * rows + row into a buffer that the reader takes as [rows][blocks]."""
    return F.mx(x, stored=lambda s: np.ascontiguousarray(s.T).reshape(s.shape))


def mxfp4_one_scale_for_tile_of_32_by_32(x):
    """The maximum is reduced over the tile of 32 rows and 32 columns of a thread block, as for weights, so all 32 rows of a tile share one scale."""
    def amax(b):
        a = F.abs_max(b)
        return np.repeat(a.reshape(-1, 32, a.shape[1]).max(1), 32, 0)
    return F.mx(x, amax=amax)


def mxfp4_missing_barrier_odd_blocks_see_previous_row(x):
    """A __syncthreads is missing in the loop over the 16 rows of a thread block: the warp of the odd blocks reads the maximum of the row before.
    Only the first row after the loop's start is right."""
    def amax(b):
        a = F.abs_max(b)
        g = a.copy()
        late = np.flatnonzero(np.arange(len(a)) % 16)
        g[late, 1::2] = a[late - 1, 1::2]
        return g
    return F.mx(x, amax=amax)


def mxfp4_amax_register_not_reset_between_blocks(x):
    """Each thread handles four blocks in a loop and sets its maximum to zero only before the loop, so a block's scale comes from all blocks so far."""
    def amax(b):
        a = F.abs_max(b)
        return np.maximum.accumulate(a.reshape(len(a), -1, 4), -1).reshape(a.shape)
    return F.mx(x, amax=amax)


def mxfp4_amax_loop_one_vector_short(x):
    """The loop over four vectors of eight numbers runs to i < 3 for the maximum, so the last eight of each 32 do not count and may saturate."""
    return F.mx(x, amax=lambda b: F.abs_max(b[..., :24]))


def mxfp4_rotated_last_butterfly_stage_skipped(x):
    """The Hadamard of 32 has only four stages of butterflies (the one across half-warps is missing), though the factor is that of 32."""
    return F.mx(F.butterflies(x, 16) * F32(1 / np.sqrt(32)))


def mxfp4_input_cast_to_half_and_elements_cut(x):
    """Two mistakes: the float32 input is cast to float16 when loaded, so small numbers become float16 subnormals with few bits.
    The elements are rounded toward zero because the mantissa is shifted without a rounding addend."""
    return F.mx(np.clip(x, -65504, 65504).astype(np.float16).astype(F32), element=toward_zero)


def mxfp4_exponent_rounded_up_and_scale_pairs_swapped(x):
    """Two mistakes: the scale is amax / 6 rounded up to a power of two (cvt.rp) instead of OCP's floor rule.
    Two scales are joined into a 16-bit store with the first one in the high byte."""
    def byte(a):
        m, e = np.frexp(a / F32(6))
        return biased(np.where(m == 0.5, e - 1, e).astype(np.int64), a)
    return F.mx(x, byte=byte, stored=lambda s: np.ascontiguousarray(s.reshape(len(s), -1, 2)[..., ::-1]).reshape(s.shape))


# ---- MXFP8

def mxfp8_e4m3_fnuz_codes(x):
    """The conversion instruction of the older AMD chips is used: codes are e4m3 FNUZ (bias 8, largest 240, no negative zero) where OCP's e4m3 is expected."""
    def element(y):
        c = F.encode(F.float_table(4, 3, 8, 127), y, 128)
        return np.where(c == 128, 0, c).astype(np.uint8)
    return F.mxfp8(x, element=element)


def mxfp8_e4m3_cast_without_saturation(x):
    """The cast to e4m3 does not saturate: a scaled number above 464 becomes NaN (0x7f or 0xff) instead of 448."""
    def element(y):
        c = F.e4m3(y)
        return np.where(np.abs(y) > 464, c | 127, c).astype(np.uint8)
    return F.mxfp8(x, element=element)


def mxfp8_e5m2_is_high_byte_of_half(x):
    """The element is converted to float16 and its high byte taken as e5m2, so the last eight bits are cut off instead of rounded."""
    def element(y):
        with np.errstate(over="ignore"):
            h = y.astype(np.float16)
        return (np.ascontiguousarray(h).view(np.uint16) >> 8).astype(np.uint8)
    return F.mxfp8_e5m2(x, element=element)


def mxfp8_e4m3_floor_of_log2_of_amax_over_448(x):
    """The exponent is floor(log2(amax / 448)), which for most blocks is one less than floor(log2(amax)) - 8, so numbers up to 896 saturate at 448."""
    def byte(a):
        return biased(np.frexp(a / F32(448))[1].astype(np.int64) - 1, a)
    return F.mxfp8(x, byte=byte)


def mxfp8_e5m2_with_emax_of_e4m3(x):
    """The template for e5m2 still subtracts 8, the largest exponent of e4m3, instead of 15: scales are 128 times too large and small numbers underflow."""
    return F.mxfp8_e5m2(x, emax=8)


def mxfp8_e4m3_subnormal_inputs_flushed(x):
    """Compiled with fast math: subnormal float32 inputs are taken as zeros of their sign, which shows in blocks of tiny numbers."""
    return F.mxfp8(np.where(np.abs(x) < F32(2.0 ** -126), np.copysign(F32(0), x), x).astype(F32))


def mxfp8_e4m3_grid_rounded_down_leaves_last_rows(x):
    """The number of thread blocks is rows / 128 without rounding up, so the rows after the last full 128 keep the zeros of the fresh buffers."""
    r = F.mxfp8(x)
    full = len(x) // 128 * 128
    r.codes[full:] = 0
    r.scales[full:] = 0
    return r


def mxfp8_e4m3_ties_away_and_inverse_scale_stored(x):
    """Two mistakes: the rounding adds half a unit to the mantissa and cuts, so ties go away from zero.
    The byte that is stored is that of the multiplier (254 - byte), the scale's inverse."""
    return F.mxfp8(x, element=lambda y: away(F.E4M3, y, 128), stored=lambda s: (254 - s).astype(np.uint8))


# ---- MXINT8

def mxint8_positive_overflow_wraps(x):
    """The rounded element is cast to int8 without an upper clamp: +127.5 steps and more round to 128 and wrap to -128."""
    def element(y):
        return np.maximum(np.rint(y * 64), -127).astype(np.int64).astype(np.int8).view(np.uint8)
    return F.mxint8(x, element=element)


def mxint8_sign_and_magnitude_codes(x):
    """Negative elements are stored as a sign bit and a magnitude, as the float formats are, instead of two's complement."""
    def code(c, b):
        v = c.view(np.int8).astype(np.int64)
        return (np.abs(v) | np.where(v < 0, 128, 0)).astype(np.uint8)
    return F.mxint8(x, code=code)


def mxint8_sixteen_codes_transposed_as_4_by_4(x):
    """The byte permutes that pack for dp4a transpose each group of 16 codes as a 4 by 4 matrix, and nothing transposes them back."""
    def code(c, b):
        return np.ascontiguousarray(c.reshape(*c.shape[:-1], 2, 4, 4).swapaxes(-1, -2)).reshape(c.shape)
    return F.mxint8(x, code=code)


def mxint8_cast_truncates_and_last_block_uses_scale_before(x):
    """Two mistakes: the float is converted to int by a C cast, which cuts toward zero instead of rounding.
    The block index is clamped to blocks - 2, so the last block of each row is scaled, and its scale stored, with the maximum of the block before."""
    def amax(b):
        a = F.abs_max(b)
        a[:, -1] = a[:, -2]
        return a

    def element(y):
        return np.clip(np.trunc(y * 64), -127, 127).astype(np.int8).view(np.uint8)
    return F.mxint8(x, amax=amax, element=element)


ROWS = [(f.__name__, f, kind, rows, cols) for f, kind, rows, cols in [
    (nvfp4_shuffle_reduction_stops_at_eight_lanes, "activation", 128, 512),
    (nvfp4_tensor_amax_read_before_grid_is_done, "heavy", 256, 512),
    (nvfp4_block_amax_by_unsigned_bits_with_sign, "activation", 128, 256),
    (nvfp4_tensor_scale_stored_as_encode_scale, "activation", 64, 256),
    (nvfp4_scale_rows_swizzled_with_32_and_4_exchanged, "activation", 256, 256),
    (nvfp4_block_scale_cast_flushes_e4m3_subnormals, "wide", 128, 256),
    (nvfp4_tensor_scale_for_256_and_scale_through_bf16, "heavy", 256, 512),
    (nvfp4_elements_divided_by_unrounded_scale, "heavy", 128, 512),
    (nvfp4_reciprocal_kept_in_bf16, "small", 128, 512),
    (nvfp4_bytes_of_packed_word_reversed, "activation", 64, 512),
    (nvfp4_stochastic_rounding_left_on, "heavy", 128, 512),
    (nvfp4_divisor_indexed_by_column_over_32, "activation", 96, 512),
    (nvfp4_partial_column_tile_uses_shared_scales_of_last_tile, "heavy", 128, 288),
    (nvfp4_rotated_block_amax_before_hadamard_and_nibbles_swapped, "activation", 128, 512),
    (mxfp4_shared_exponent_by_rounded_log2, "activation", 128, 512),
    (mxfp4_scale_stored_without_bias, "small", 128, 256),
    (mxfp4_zero_block_gets_scale_of_one, "silent", 128, 512),
    (mxfp4_ties_go_up_in_threshold_ladder, "activation", 128, 512),
    (mxfp4_subnormal_half_never_made, "heavy", 128, 256),
    (mxfp4_sign_lost_when_rounded_to_zero, "special", 128, 512),
    (mxfp4_scales_written_block_major, "activation", 128, 512),
    (mxfp4_one_scale_for_tile_of_32_by_32, "heavy", 128, 512),
    (mxfp4_missing_barrier_odd_blocks_see_previous_row, "heavy", 128, 512),
    (mxfp4_amax_register_not_reset_between_blocks, "activation", 128, 512),
    (mxfp4_amax_loop_one_vector_short, "activation", 128, 512),
    (mxfp4_rotated_last_butterfly_stage_skipped, "activation", 128, 512),
    (mxfp4_input_cast_to_half_and_elements_cut, "small", 128, 512),
    (mxfp4_exponent_rounded_up_and_scale_pairs_swapped, "activation", 128, 512),
    (mxfp8_e4m3_fnuz_codes, "activation", 128, 512),
    (mxfp8_e4m3_cast_without_saturation, "heavy", 128, 512),
    (mxfp8_e5m2_is_high_byte_of_half, "heavy", 128, 512),
    (mxfp8_e4m3_floor_of_log2_of_amax_over_448, "activation", 128, 512),
    (mxfp8_e5m2_with_emax_of_e4m3, "heavy", 128, 512),
    (mxfp8_e4m3_subnormal_inputs_flushed, "special", 256, 512),
    (mxfp8_e4m3_grid_rounded_down_leaves_last_rows, "activation", 200, 256),
    (mxfp8_e4m3_ties_away_and_inverse_scale_stored, "activation", 128, 512),
    (mxint8_positive_overflow_wraps, "heavy", 256, 1024),
    (mxint8_sign_and_magnitude_codes, "activation", 128, 256),
    (mxint8_sixteen_codes_transposed_as_4_by_4, "heavy", 64, 512),
    (mxint8_cast_truncates_and_last_block_uses_scale_before, "activation", 128, 512),
]]


def right(name, x):
    """What the right kernel gives: with a rotation for the kernels named so."""
    if "_rotated_" in name:
        return F.nv(F.rotate(x, 16)) if name.startswith("nvfp4") else F.mx(F.rotate(x, 32))
    return {"nvfp4": F.nv, "mxfp4": F.mx, "mxint8": F.mxint8, "mxfp8_e4m3": F.mxfp8, "mxfp8_e5m2": F.mxfp8_e5m2}[
        "_".join(name.split("_")[: 2 if name.startswith("mxfp8") else 1])](x)


if __name__ == "__main__":
    names = [r[0] for r in ROWS]
    assert len(set(names)) == 40 and [sum(n.startswith(p) for n in names) for p in ("nvfp4_", "mxfp4_", "mxfp8_", "mxint8_")] == [14, 14, 8, 4]
    assert sum(f.__doc__.startswith("Two mistakes:") for _, f, *_ in ROWS) == 6
    for name, f, kind, rows, cols in ROWS:
        assert 64 <= rows <= 256 and 256 <= cols <= 1024 and cols % 32 == 0, name
        for seed in (1, 2):
            x = inputs.KINDS[kind](np.random.default_rng(seed), rows, cols)
            kept = x.copy()
            a, b, r = f(x), f(x), right(name, x)
            assert x.tobytes() == kept.tobytes(), name
            for p, q in ((a.codes, r.codes), (a.scales, r.scales)):
                assert p.shape == q.shape and p.dtype == q.dtype == np.uint8, name
            assert (a.bits, a.packed, type(a.tensor_scale)) == (r.bits, r.packed, type(r.tensor_scale)), name
            assert a.codes.tobytes() == b.codes.tobytes() and a.scales.tobytes() == b.scales.tobytes() and a.tensor_scale == b.tensor_scale, name
            codes, scales = int((a.codes != r.codes).sum()), int((a.scales != r.scales).sum())
            assert codes or scales or a.tensor_scale != r.tensor_scale, name
            print(f"{name:64} {seed} codes {codes:6} of {a.codes.size:6}  scales {scales:5} of {a.scales.size:5}  T {a.tensor_scale != r.tensor_scale}")
    print("ok")
