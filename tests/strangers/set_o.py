"""Forty wrong quantisation kernels: mistakes of ports between CUDA, HIP, Triton, TPU and CPU code."""
import numpy as np

import formats as F

F32 = np.float32


# ---------------------------------------------------------------- NVFP4

def nvfp4_tensor_amax_before_grid_sync(x):
    """The tensor maximum is read before the other thread blocks have written theirs, so that it covers the first 16 rows only."""
    return F.nv(x, tensor=lambda x: np.abs(x[:16]).max() / F32(448 * 6))


def nvfp4_scale_read_as_fnuz(x):
    """The stored scale is converted back with AMD's E4M3 FNUZ (bias 8), so that the divisor is half of what it should be."""
    return F.nv(x, read=lambda s: (F.E4M3[s] / 2).astype(F32))


def nvfp4_scales_left_swizzled(x):
    """The scales are written in the tensor core's tiles of 128 x 4, while the caller expects plain rows."""
    def swizzle(s):
        m, k = np.indices(s.shape)
        tiles = s.shape[1] // 4
        at = (m // 128 * tiles + k // 4) * 512 + m % 32 * 16 + m % 128 // 32 * 4 + k % 4
        out = np.zeros(s.size, np.uint8)
        out[at] = s
        return out.reshape(s.shape)
    return F.nv(x, final=swizzle)


def nvfp4_reciprocal_in_bf16(x):
    """The reciprocal of the divisor is kept in a bfloat16 register before the multiplication."""
    def divide(b, f, t):
        return b * F.bf16(F32(1) / (f * t))[..., None]
    return F.nv(x, divide=divide)


def nvfp4_running_max_not_reset(x):
    """A thread handles two blocks and does not reset its maximum before the second."""
    def amax(b):
        a = F.abs_max(b).copy()
        a[:, 1::2] = np.maximum(a[:, 1::2], a[:, 0::2][:, : a[:, 1::2].shape[1]])
        return a
    return F.nv(x, amax=amax)


def nvfp4_tail_tile_pulled_back(x):
    """The last, partial tile of 64 columns begins at cols - 64 for the loads but at its own place for the stores."""
    rows, cols = x.shape
    start = cols // 64 * 64
    z = x.copy()
    if start < cols:
        z[:, start:] = x[:, cols - 64:cols - 64 + cols - start]
    return F.nv(z, tensor=lambda z: np.abs(x).max() / F32(448 * 6))


def nvfp4_element_through_fp16(x):
    """The scaled number is rounded to binary16 first and to E2M1 afterwards: rounded twice."""
    return F.nv(x, scaled=lambda y: np.clip(y, -1000, 1000).astype(np.float16).astype(F32))


def nvfp4_pairs_swapped_in_upper_half(x):
    """The operands of the pairwise conversion are swapped for the second eight numbers of each block."""
    def code(c, b):
        c = c.copy()
        c[..., 8::2], c[..., 9::2] = c[..., 9::2].copy(), c[..., 8::2].copy()
        return c
    return F.nv(x, code=code)


def nvfp4_weight_tiles_for_activation(x):
    """The 16 x 16 tiles of the weights' recipe are used: 16 rows share the maximum."""
    def amax(b):
        a = F.abs_max(b)
        return np.repeat(a.reshape(-1, 16, a.shape[1]).max(1), 16, 0)
    return F.nv(x, amax=amax)


def nvfp4_scale_clamped_to_least_normal(x):
    """Scales are clamped from below to 2^-6, as if E4M3 had no subnormal numbers."""
    return F.nv(x, store=lambda r: F.nearest(F.E4M3, np.clip(r, F32(2.0**-6), F32(448))).astype(np.uint8))


def nvfp4_threshold_typed_wrong(x):
    """In the chain of comparisons the boundary between 3 and 4 is typed 3.25 instead of 3.5."""
    def element(y):
        c = F.e2m1(y)
        m = np.abs(y)
        return np.where((m > 3.25) & (m <= 3.5), (c & 8) | 6, c).astype(np.uint8)
    return F.nv(x, element=element)


def nvfp4_unsigned_atomic_max(x):
    """The maximum compares the bits of signed floats as unsigned integers, so that any negative number wins over all positive ones."""
    def amax(b):
        u = np.ascontiguousarray(b).view(np.uint32).max(-1)
        return np.abs(u.view(F32))
    return F.nv(x, amax=amax)


def nvfp4_two_row_maximum_and_lost_minus_zero(x):
    """The tensor scale is each row's own (keepdims left over from a per-token path), and a negative number that becomes zero loses its sign."""
    return F.nv(x, tensor=lambda x: np.maximum(np.abs(x).max(1, keepdims=True), F32(1e-30)) / F32(448 * 6),
                stored_tensor=lambda t: F32(t.max()), code=lambda c, b: np.where(c == 8, 0, c).astype(np.uint8))


def nvfp4_two_fnuz_limit_and_truncated_scale(x):
    """The tensor scale uses 240, FNUZ's largest, for 448, and the block's scale is cut to E4M3 instead of rounded."""
    def store(r):
        return np.clip(np.searchsorted(F.E4M3, r.astype(np.float64), side="right") - 1, 0, 126).astype(np.uint8)
    return F.nv(x, tensor=lambda x: np.abs(x).max() / F32(240 * 6), store=store)


# ---------------------------------------------------------------- MXFP4

def mxfp4_fast_log2_under_powers(x):
    """A fast log2 gives a little too little, so that an exact power of two gets the exponent below."""
    def byte(a):
        with np.errstate(divide="ignore"):
            e = np.floor(np.log2(a.astype(np.float64)) - 1e-6)
        return np.where(a > 0, np.clip(np.nan_to_num(e, neginf=-200) - 2 + 127, 0, 254), 0).astype(np.uint8)
    return F.mx(x, byte=byte)


def mxfp4_max_rounded_to_bf16(x):
    """The block's maximum is rounded to bfloat16 in shared memory, so that it may carry into the next power of two."""
    return F.mx(x, amax=lambda b: F.bf16(F.abs_max(b)))


def mxfp4_scale_without_bias(x):
    """The scale is stored as a signed 8-bit exponent, without the bias of 127."""
    return F.mx(x, stored=lambda s: (s.astype(np.int64) - 127 & 255).astype(np.uint8))


def mxfp4_blocks_down_the_columns(x):
    """Blocks run down the columns (axis 0 for axis -1), and the scales are written in the order of the transposed matrix."""
    rows, cols = x.shape
    r = F.mx(np.ascontiguousarray(x.T))
    return F.Result(np.ascontiguousarray(r.codes.T), r.scales.reshape(rows, cols // 32), bits=4)


def mxfp4_shuffle_over_sixteen_lanes(x):
    """The shuffles begin at distance 8, so each half of a block divides by its own scale and only the first half's is stored."""
    r = F.mx(x, width=16)
    return F.Result(r.codes, r.scales[:, ::2].copy(), bits=4)


def mxfp4_butterfly_step_missing(x):
    """The step at distance 2 is missing from the butterfly of maxima: lanes disagree on the scale and lane 0 writes it."""
    b = F.in_blocks(x, 32)
    odd = (np.arange(32) & 2) > 0
    s0, s1 = F.floor_byte(F.abs_max(b[..., ~odd]), 2), F.floor_byte(F.abs_max(b[..., odd]), 2)
    d = np.where(odd, F.power(s1)[..., None], F.power(s0)[..., None])
    return F.Result(F.as_rows(F.e2m1(b / d), x.shape[1]), s0, bits=4)


def mxfp4_strided_blocks(x):
    """Index i * blocks + block is used for block * 32 + i: a block consists of every n-th column of the row."""
    rows, cols = x.shape
    n = cols // 32
    z = x.reshape(rows, 32, n).transpose(0, 2, 1).reshape(rows, cols)
    r = F.mx(np.ascontiguousarray(z))
    return F.Result(r.codes.reshape(rows, n, 32).transpose(0, 2, 1).reshape(rows, cols), r.scales, bits=4)


def mxfp4_below_one_cut(x):
    """Numbers below 1 take the path of E2M1's subnormal number, which shifts the mantissa right without rounding."""
    return F.mx(x, scaled=lambda y: np.where(np.abs(y) < 1, np.copysign(np.floor(np.abs(y) * 2) / 2, y), y))


def mxfp4_negative_as_twos_complement(x):
    """Negative codes are written as a two's complement nibble instead of sign and magnitude."""
    return F.mx(x, code=lambda c, b: np.where(c & 8, -(c.astype(np.int64) & 7) & 15, c).astype(np.uint8))


def mxfp4_scale_rows_overlap(x):
    """The row stride of the scale buffer is one too small, so that each row overwrites the last scale of the row before."""
    def stored(s):
        rows, n = s.shape
        flat = np.zeros(s.size, np.uint8)
        for i in range(rows):
            flat[i * (n - 1):i * (n - 1) + n] = s[i]
        return flat.reshape(rows, n)
    return F.mx(x, stored=stored)


def mxfp4_loaded_as_fp16(x):
    """The input is cast to binary16 on loading, so that small numbers are subnormal there or vanish."""
    return F.mx(np.clip(x, -65504, 65504).astype(np.float16).astype(F32))


def mxfp4_tile_not_waited_for(x):
    """Every fourth tile of 64 columns is encoded from the buffer's old contents, the tile before it, under the right scales."""
    right = F.mx(x)
    z = x.copy()
    for start in range(192, x.shape[1] - 63, 256):
        z[:, start:start + 64] = x[:, start - 64:start]
    b = F.in_blocks(z, 32)
    return F.Result(F.as_rows(F.e2m1(b / F.power(right.scales)[..., None]), x.shape[1]), right.scales, bits=4)


def mxfp4_two_ceiling_scale_and_ties_to_zero(x):
    """The exponent of the scale is the ceiling of log2, and a tie between two codes goes to the smaller."""
    def byte(a):
        m, e = np.frexp(a)
        return np.where(a > 0, np.clip(e.astype(np.int64) - (m == 0.5) - 2 + 127, 0, 254), 0).astype(np.uint8)
    def element(y):
        m = np.searchsorted([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0], np.abs(y), side="left")
        return (m | np.where(np.signbit(y), 8, 0)).astype(np.uint8)
    return F.mx(x, byte=byte, element=element)


def mxfp4_two_last_lane_missed_and_zero_block_one(x):
    """The loop of the maximum stops at 31 of 32 numbers, and a block whose maximum is zero stores a scale of one (127)."""
    def byte(a):
        return np.where(a > 0, F.floor_byte(a, 2), 127).astype(np.uint8)
    return F.mx(x, amax=lambda b: F.abs_max(b[..., :31]), byte=byte)


# ---------------------------------------------------------------- MXFP8

def mxfp8_overflow_to_nan(x):
    """The conversion to E4M3 is the one that does not saturate: what would round above 448 becomes NaN."""
    def element(y):
        c = F.e4m3(y)
        return np.where(np.abs(y) > 464, (c & 128) | 127, c).astype(np.uint8)
    return F.mxfp8(x, element=element)


def mxfp8_elements_in_fnuz(x):
    """The conversion of an MI300 is used: E4M3 FNUZ codes (bias 8, largest 240, no minus zero) under a scale for OCP's E4M3."""
    table = F.float_table(4, 3, 8, 127)
    def element(y):
        c = F.encode(table, y, 128)
        return np.where(c == 128, 0, c).astype(np.uint8)
    return F.mxfp8(x, element=element)


def mxfp8_e5m2_upper_byte_of_fp16(x):
    """E5M2 is taken as the upper byte of binary16, cut instead of rounded."""
    def element(y):
        h = np.clip(y, -57344, 57344).astype(np.float16)
        return (h.view(np.uint16) >> 8).astype(np.uint8)
    return F.mxfp8_e5m2(x, element=element)


def mxfp8_e5m2_with_emax_of_e4m3(x):
    """The constant 8 of E4M3 was left in the scale of the E5M2 kernel."""
    return F.mxfp8_e5m2(x, emax=8)


def mxfp8_subnormal_codes_flushed(x):
    """Elements below 2^-6 after scaling become a zero of their sign."""
    return F.mxfp8(x, scaled=lambda y: np.where(np.abs(y) < 2.0**-6, np.copysign(0.0, y), y))


def mxfp8_scale_index_masked(x):
    """The divisor is read from shared memory at block & 3, left over from a tile of four blocks; the stored scales are right."""
    return F.mxfp8(x, divisor=lambda s, b: F.power(s[:, np.arange(s.shape[1]) & 3]))


def mxfp8_least_scale_flushed_to_zero(x):
    """The scale 2^-127 is a subnormal binary32 number and flushed to zero, so that its block is divided by zero: 448 everywhere, NaN for zeros."""
    def code(c, b):
        s = F.floor_byte(F.abs_max(b), 8)[..., None]
        wrong = np.where(b == 0, 127, np.where(np.signbit(b), 254, 126))
        return np.where(s == 0, wrong, c).astype(np.uint8)
    return F.mxfp8(x, code=code)


def mxfp8_two_scale_rounded_up_and_ties_away(x):
    """The scale is amax / 448 rounded up to a power of two, and ties go away from zero."""
    def byte(a):
        m, e = np.frexp(a.astype(np.float64) / 448)
        return np.where(a > 0, np.clip(e.astype(np.int64) - (m == 0.5) + 127, 0, 254), 0).astype(np.uint8)
    def element(y):
        middles = (F.E4M3[1:] + F.E4M3[:-1]) / 2
        return (np.searchsorted(middles, np.abs(y), side="right") | np.where(np.signbit(y), 128, 0)).astype(np.uint8)
    return F.mxfp8(x, byte=byte, element=element)


# ---------------------------------------------------------------- MXINT8

def mxint8_sign_and_magnitude(x):
    """Codes are sign and magnitude, as in the float formats, instead of two's complement."""
    def code(c, b):
        v = c.view(np.int8).astype(np.int64)
        return (np.abs(v) | np.where(v < 0, 128, 0)).astype(np.uint8)
    return F.mxint8(x, code=code)


def mxint8_wraps_at_128(x):
    """The clamp is missing, so that what rounds to 128 wraps to -128."""
    return F.mxint8(x, element=lambda y: (np.rint(y * 64).astype(np.int64) & 255).astype(np.uint8))


def mxint8_steps_of_127(x):
    """The multiplier is 127 / 2 instead of 64, as in symmetric integer quantisation."""
    return F.mxint8(x, element=lambda y: F.int8(y * (63.5 / 64)))


def mxint8_two_wave_of_64_and_truncation(x):
    """On a wave of 64 lanes two blocks share their maximum, and the cast to an integer cuts toward zero."""
    def amax(b):
        a = F.abs_max(b)
        return np.repeat(a.reshape(len(a), -1, 2).max(-1), 2, 1)
    return F.mxint8(x, amax=amax, element=lambda y: np.clip(np.trunc(y * 64), -127, 127).astype(np.int8).view(np.uint8))


ROWS = [(f.__name__, f, kind, rows, cols) for f, kind, rows, cols in [
    (nvfp4_tensor_amax_before_grid_sync, "heavy", 256, 512),
    (nvfp4_scale_read_as_fnuz, "activation", 128, 512),
    (nvfp4_scales_left_swizzled, "heavy", 256, 512),
    (nvfp4_reciprocal_in_bf16, "activation", 128, 768),
    (nvfp4_running_max_not_reset, "activation", 64, 512),
    (nvfp4_tail_tile_pulled_back, "heavy", 96, 288),
    (nvfp4_element_through_fp16, "heavy", 256, 1024),
    (nvfp4_pairs_swapped_in_upper_half, "small", 64, 256),
    (nvfp4_weight_tiles_for_activation, "activation", 128, 512),
    (nvfp4_scale_clamped_to_least_normal, "wide", 256, 512),
    (nvfp4_threshold_typed_wrong, "activation", 128, 256),
    (nvfp4_unsigned_atomic_max, "heavy", 128, 512),
    (nvfp4_two_row_maximum_and_lost_minus_zero, "activation", 64, 512),
    (nvfp4_two_fnuz_limit_and_truncated_scale, "silent", 128, 512),
    (mxfp4_fast_log2_under_powers, "activation", 128, 1024),
    (mxfp4_max_rounded_to_bf16, "heavy", 256, 1024),
    (mxfp4_scale_without_bias, "small", 64, 512),
    (mxfp4_blocks_down_the_columns, "activation", 128, 512),
    (mxfp4_shuffle_over_sixteen_lanes, "heavy", 128, 512),
    (mxfp4_butterfly_step_missing, "activation", 128, 512),
    (mxfp4_strided_blocks, "activation", 64, 768),
    (mxfp4_below_one_cut, "heavy", 64, 256),
    (mxfp4_negative_as_twos_complement, "wide", 64, 512),
    (mxfp4_scale_rows_overlap, "small", 96, 512),
    (mxfp4_loaded_as_fp16, "small", 128, 512),
    (mxfp4_tile_not_waited_for, "activation", 64, 1024),
    (mxfp4_two_ceiling_scale_and_ties_to_zero, "activation", 128, 512),
    (mxfp4_two_last_lane_missed_and_zero_block_one, "silent", 128, 512),
    (mxfp8_overflow_to_nan, "activation", 128, 512),
    (mxfp8_elements_in_fnuz, "activation", 128, 512),
    (mxfp8_e5m2_upper_byte_of_fp16, "heavy", 64, 512),
    (mxfp8_e5m2_with_emax_of_e4m3, "activation", 128, 256),
    (mxfp8_subnormal_codes_flushed, "heavy", 256, 512),
    (mxfp8_scale_index_masked, "wide", 128, 512),
    (mxfp8_least_scale_flushed_to_zero, "special", 256, 512),
    (mxfp8_two_scale_rounded_up_and_ties_away, "activation", 128, 512),
    (mxint8_sign_and_magnitude, "activation", 64, 512),
    (mxint8_wraps_at_128, "heavy", 256, 1024),
    (mxint8_steps_of_127, "small", 128, 256),
    (mxint8_two_wave_of_64_and_truncation, "activation", 128, 512),
]]


def check():
    """Every kernel on its kind of input under two seeds: shapes, types, the same bytes twice, and at least one wrong byte."""
    import inputs
    assert len(ROWS) == len({r[0] for r in ROWS}) == 40
    for name, f, kind, rows, cols in ROWS:
        right = {"nvfp4": F.nv, "mxfp4": F.mx, "mxint8": F.mxint8}.get(name.split("_")[0]) or (F.mxfp8_e5m2 if "e5m2" in name else F.mxfp8)
        counts = []
        for seed in (0, 1):
            x = inputs.KINDS[kind](np.random.default_rng(seed), rows, cols)
            keep = x.copy()
            a, again, b = f(x), f(x), right(x)
            assert np.array_equal(x.view(np.uint32), keep.view(np.uint32)), name
            assert a.codes.shape == b.codes.shape == x.shape and a.scales.shape == b.scales.shape, name
            assert a.codes.dtype == b.codes.dtype and a.scales.dtype == b.scales.dtype and a.bits == b.bits, name
            assert np.array_equal(a.codes, again.codes) and np.array_equal(a.scales, again.scales), name
            n, m = int((a.codes != b.codes).sum()), int((a.scales != b.scales).sum())
            same = a.tensor_scale is None and b.tensor_scale is None or np.ndim(a.tensor_scale) == 0 and a.tensor_scale == b.tensor_scale
            assert n + m > 0, name
            counts.append(f"{n:7d} {m:6d} {'' if same else 'T'}")
        print(f"{name:50s}", " | ".join(counts))


if __name__ == "__main__":
    check()
