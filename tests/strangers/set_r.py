"""Forty wrong quantisation kernels, each with a mistake (six of them with two) of a kind that real kernels have had."""
import numpy as np

import formats as F
import inputs

F32 = np.float32
MIDDLES = np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5])  # halfway between neighbours of e2m1


def sign_of(y, bit):
    return np.where(np.signbit(y), bit, 0)

# NVFP4

def nvfp4_running_tensor_amax(x):
    """The amax kernel is fused with the quantising one and has no grid barrier: each tile of 16 rows uses the maximum of the tiles up to it,
    while the tensor scale handed back is the one of the last tile."""
    tiles = np.maximum.accumulate(np.abs(x).reshape(-1, 16 * x.shape[1]).max(1))
    t = (np.repeat(tiles, 16) / F32(448 * 6)).astype(F32)[:, None]
    return F.nv(x, tensor=lambda _: t, stored_tensor=lambda t: F32(t[-1, 0]))


def nvfp4_block_amax_of_raw_bits(x):
    """The block maximum compares raw bits as unsigned integers before the sign is masked off, so any negative number beats all positive ones."""

    def amax(b):
        top = np.ascontiguousarray(b).view(np.uint32).max(-1)
        return (top & np.uint32(0x7FFFFFFF)).view(F32)

    return F.nv(x, amax=amax)


def nvfp4_reciprocal_kept_in_half(x):
    """The reciprocal of the scale is kept in a half-precision register before the multiplication, so it has 11 bits instead of 24."""
    return F.nv(x, divide=lambda b, f, t: b * (F32(1) / (f * t)).astype(np.float16).astype(F32)[..., None])


def nvfp4_subnormal_scales_flushed(x):
    """The hand-written cast of block scales to e4m3 knows only normal numbers: a scale below 2^-6 is stored as zero and its block vanishes."""

    def store(r):
        s = F.nearest(F.E4M3, np.minimum(r, F32(448)))
        return np.where(s < 8, 0, s).astype(np.uint8)

    def divide(b, f, t):
        return np.where(f[..., None] > 0, b / np.where(f > 0, f * t, F32(1))[..., None], b * F32(0))

    return F.nv(x, store=store, divide=divide)


def nvfp4_bytes_swapped_in_halfwords(x):
    """Four codes are put together as a 16-bit word with the first pair in the high byte, so after a little-endian store pairs of codes change places."""
    q = F.nv(x)
    q.codes = np.ascontiguousarray(q.codes.reshape(-1, 2, 2)[:, ::-1]).reshape(q.codes.shape)
    return q


def nvfp4_scales_left_in_tensor_core_layout(x):
    """Scales are written in the 128x4 swizzled layout of the tensor core, though the caller asked for plain rows and nothing undoes it."""
    q = F.nv(x)
    rows, blocks = q.scales.shape
    s = q.scales.reshape(rows // 128, 4, 32, blocks // 4, 4).transpose(0, 3, 2, 1, 4)
    q.scales = np.ascontiguousarray(s).reshape(rows, blocks)
    return q


def nvfp4_threshold_one_and_a_half(x):
    """One constant of the ladder of comparisons is a value (1.5) where the midpoint (1.75) belongs, so nearly all that should be 1.5 becomes 2."""

    def element(y):
        m = np.abs(y)
        t = MIDDLES.copy()
        t[3] = 1.5
        code = sum((m >= t[i]) if i % 2 else (m > t[i]) for i in range(7))
        return (code.astype(np.int64) | sign_of(y, 8)).astype(np.uint8)

    return F.nv(x, element=element)


def nvfp4_tensor_scale_for_fnuz(x):
    """The tensor scale divides by 240, the largest e4m3 of the fnuz kind, where 448 belongs: scales keep to the lower half of their range."""
    return F.nv(x, largest_scale=F32(240))


def nvfp4_one_random_number_a_row(x):
    """Stochastic rounding is left on in the forward pass, and its counter lacks the column: all elements of a row are rounded with one random number."""
    u = np.random.default_rng(1234).random((x.shape[0], 1, 1))
    table = F.E2M1.astype(np.float64)

    def element(y):
        m = np.minimum(np.abs(y).astype(np.float64), 6)
        lo = np.clip(np.searchsorted(table, m, side="right") - 1, 0, 6)
        up = (m - table[lo]) / (table[lo + 1] - table[lo]) > u
        return (lo + up | sign_of(y, 8)).astype(np.uint8)

    return F.nv(x, element=element)


def nvfp4_two_threads_never_share_the_maximum(x):
    """Two threads hold eight elements each of a block and the shuffle between them is missing: each divides by its own scale, but only the first one's
    is stored."""
    rows, cols = x.shape
    t = np.abs(x).max() / F32(448 * 6)
    h = x.reshape(rows, cols // 16, 2, 8)
    s = F.nearest(F.E4M3, np.minimum(F.abs_max(h) / F32(6) / t, F32(448))).astype(np.uint8)
    with np.errstate(divide="ignore", invalid="ignore"):
        y = h / (F.E4M3[s].astype(F32) * t)[..., None]
    y = np.nan_to_num(y, nan=0.0, posinf=1e30, neginf=-1e30)
    return F.Result(F.e2m1(y).reshape(rows, cols), np.ascontiguousarray(s[..., 0]), tensor_scale=F32(t))


def nvfp4_tensor_amax_before_rotation(x):
    """The kernel rotates (Hadamard, 16) and then quantises, but its tensor scale comes from the maximum of the input before the rotation."""
    return F.nv(F.rotate(x, 16), tensor=lambda _: np.abs(x).max() / F32(448 * 6))


def nvfp4_activations_get_weight_blocks(x):
    """The flag for two-dimensional scales, meant for weights, is also set for activations: each 16x16 square shares one scale."""

    def amax(b):
        a = F.abs_max(b)
        return np.repeat(a.reshape(-1, 16, a.shape[1]).max(1), 16, axis=0)

    return F.nv(x, amax=amax)


def nvfp4_half_input_and_unrounded_divisor(x):
    """Two mistakes: the input is loaded through half precision, where small numbers lose bits, and elements are divided by amax / 6 instead of by the
    scale as it was rounded to e4m3."""
    h = x.astype(np.float16).astype(F32)
    return F.nv(h, divide=lambda b, f, t: b / (F.abs_max(b) / F32(6))[..., None])


def nvfp4_inverse_tensor_scale_and_scales_rounded_up(x):
    """Two mistakes: the tensor scale handed back is the one for encoding (2688 / amax) and not its inverse, and block scales are rounded up to e4m3
    instead of to the nearest."""

    def store(r):
        return np.minimum(np.searchsorted(F.E4M3, r.astype(np.float64)), 126).astype(np.uint8)

    return F.nv(x, store=store, stored_tensor=lambda t: F32(1) / F32(t))

# MXFP4

def mxfp4_exponent_from_bfloat16_logarithm(x):
    """The shared exponent is floor(log2(amax)) with the logarithm in bfloat16, which rounds up to a whole number when amax is just below a power of two."""

    def byte(a):
        e = np.floor(F.bf16(np.log2(np.where(a > 0, a, F32(1)))))
        return np.where(a > 0, np.clip(e.astype(np.int64) - 2 + 127, 0, 254), 0).astype(np.uint8)

    return F.mx(x, byte=byte)


def mxfp4_maximum_not_reset(x):
    """A thread handles four blocks in a loop and its running maximum is set to zero before the loop, not inside: later blocks inherit earlier maxima."""

    def amax(b):
        a = F.abs_max(b)
        return np.maximum.accumulate(a.reshape(a.shape[0], -1, 4), axis=2).reshape(a.shape)

    return F.mx(x, amax=amax)


def mxfp4_scale_stride_padded_to_four(x):
    """Scales are written with a row stride rounded up to four blocks into a buffer without padding: rows drift apart, gaps keep zero, the end is cut."""
    q = F.mx(x)
    rows, blocks = q.scales.shape
    place = np.arange(rows)[:, None] * (-(-blocks // 4) * 4) + np.arange(blocks)
    out = np.zeros(rows * blocks, np.uint8)
    inside = place < out.size
    out[place[inside]] = q.scales[inside]
    q.scales = out.reshape(rows, blocks)
    return q


def mxfp4_subnormal_inputs_read_as_zero(x):
    """The kernel is compiled with fast math, so subnormal inputs are read as zeros, although E8M0 scales reach low enough to keep them."""
    return F.mx(np.where(np.abs(x) < np.finfo(F32).tiny, np.copysign(F32(0), x), x))


def mxfp4_ties_toward_plus_infinity(x):
    """Elements are rounded with floor(v + 0.5) on signed numbers: positive ties go up and negative ones toward zero, instead of to the even code."""

    def element(y):
        m = np.abs(y)
        code = np.where(y > 0, np.searchsorted(MIDDLES, m, side="right"), np.searchsorted(MIDDLES, m, side="left"))
        return (code | sign_of(y, 8)).astype(np.uint8)

    return F.mx(x, element=element)


def mxfp4_overflow_carries_into_sign(x):
    """The rounding increment is added to the bits without a clamp: what rounds up beyond 6 carries into the sign bit and becomes a zero."""
    table = np.append(F.E2M1.astype(np.float64), 8)
    return F.mx(x, element=lambda y: ((F.nearest(table, np.abs(y)) + sign_of(y, 8)) & 15).astype(np.uint8))


def mxfp4_blocks_down_the_columns(x):
    """In the 32x32 tile in shared memory the reduction runs down the columns instead of along the rows; each tile's 32 scales are stored all the same."""
    q = F.mx(np.ascontiguousarray(x.T))
    rows, cols = x.shape
    s = q.scales.reshape(cols // 32, 32, rows // 32).transpose(2, 1, 0)
    return F.Result(np.ascontiguousarray(q.codes.T), np.ascontiguousarray(s).reshape(rows, cols // 32), bits=q.bits)


def mxfp4_bank_swizzle_left_in_output(x):
    """Chunks of eight codes are stored in shared memory at chunk xor (row mod 4) to avoid bank conflicts, and the copy to memory forgets to undo it."""
    q = F.mx(x)
    rows, cols = x.shape
    c = q.codes.reshape(rows, cols // 32, 4, 8)
    chunk = np.arange(4)[None, :] ^ (np.arange(rows) % 4)[:, None]
    q.codes = np.ascontiguousarray(np.take_along_axis(c, chunk[:, None, :, None], axis=2)).reshape(rows, cols)
    return q


def mxfp4_block_halves_interleaved(x):
    """Byte j of a block holds elements j and j + 16, as in llama.cpp's files, where the consumer expects neighbours 2j and 2j + 1."""
    q = F.mx(x)
    rows, cols = x.shape
    q.codes = np.ascontiguousarray(q.codes.reshape(rows, cols // 32, 2, 16).transpose(0, 1, 3, 2)).reshape(rows, cols)
    return q


def mxfp4_code_of_one_half_never_used(x):
    """The element conversion has no branch for e2m1's only subnormal number: what should become 0.5 becomes 0."""

    def element(y):
        code = F.nearest(F.E2M1.astype(np.float64), np.abs(y))
        return (np.where(code == 1, 0, code) | sign_of(y, 8)).astype(np.uint8)

    return F.mx(x, element=element)


def mxfp4_fourth_lane_missing_in_maximum(x):
    """The maximum over a float4 load takes .x, .y and .z only, so an outlier in every fourth column does not count and is clamped."""
    return F.mx(x, amax=lambda b: np.abs(b.reshape(*b.shape[:2], 8, 4)[..., :3]).max((-1, -2)))


def mxfp4_last_butterfly_missing(x):
    """The Hadamard rotation of 32 runs four of its five butterfly stages (a loop ends at < 16) but still multiplies by 1 / sqrt(32)."""
    return F.mx(F.butterflies(x, 16) * F32(1 / np.sqrt(32)))


def mxfp4_scale_floor_of_half_and_nibbles_swapped(x):
    """Two mistakes: scales are clamped from below at 2^-14, the least normal half-precision number, and the first code of each pair goes to the high
    nibble."""
    q = F.mx(x, byte=lambda a: np.maximum(F.floor_byte(a, 2), 127 - 14).astype(np.uint8))
    q.codes = np.ascontiguousarray(q.codes.reshape(-1, 2)[:, ::-1]).reshape(q.codes.shape)
    return q


def mxfp4_rounded_by_way_of_fp8_and_scale_of_even_block(x):
    """Two mistakes: elements are rounded to e4m3 first and to e2m1 after that (double rounding), and the scale index is b & ~1, so odd blocks use
    their left neighbour's scale."""

    def amax(b):
        a = F.abs_max(b)
        return a[:, np.arange(a.shape[1]) & ~1]

    return F.mx(x, amax=amax, scaled=lambda y: np.copysign(F.E4M3[F.nearest(F.E4M3, np.abs(y))], y))

# MXFP8

def mxfp8_e4m3_exponent_of_ieee_kind(x):
    """The largest exponent of e4m3 is taken as 7 (an IEEE kind, largest number 240) instead of 8, so scales are twice too large."""
    return F.mxfp8(x, emax=7)


def mxfp8_e5m2_upper_byte_of_half(x):
    """e5m2 is made as the upper byte of a half-precision number: that cuts where it should round, and the very largest numbers become infinity."""

    def element(y):
        with np.errstate(over="ignore"):
            h = np.ascontiguousarray(y.astype(np.float16))
        return (h.view(np.uint16) >> 8).astype(np.uint8)

    return F.mxfp8_e5m2(x, element=element)


def mxfp8_e4m3_overflow_becomes_nan(x):
    """The conversion lacks the satfinite modifier: what rounds to more than 448 becomes NaN (0x7f or 0xff) instead of 448."""
    return F.mxfp8(x, element=lambda y: np.where(np.abs(y) > 464, 0x7F | sign_of(y, 128), F.e4m3(y)).astype(np.uint8))


def mxfp8_e4m3_subnormal_codes_flushed(x):
    """A software conversion rebiases the exponent and flushes what falls below 2^-6: the codes 1 to 7 are never written."""

    def element(y):
        c = F.e4m3(y)
        return np.where((c & 127) < 8, c & 128, c).astype(np.uint8)

    return F.mxfp8(x, element=element)


def mxfp8_e5m2_shared_exponent_rounded(x):
    """Half of the mantissa's range (0x400000) is added to the bits of amax before the exponent is cut out, so the scale is rounded, not floored."""

    def byte(a):
        e = (np.ascontiguousarray(a).view(np.uint32).astype(np.int64) + 0x400000) >> 23
        return np.where(a > 0, np.clip(e - 15, 0, 254), 0).astype(np.uint8)

    return F.mxfp8_e5m2(x, byte=byte)


def mxfp8_e4m3_scales_of_previous_stage(x):
    """In the pipelined loop over tiles of 128 columns the stage index of the scales is flipped too late: each tile but the first divides by the
    scales of the tile before it, while the right ones are stored."""

    def divisor(s, b):
        d = F.power(s)
        return np.concatenate([d[:, :4], d[:, :-4]], axis=1)

    return F.mxfp8(x, divisor=divisor)


def mxfp8_e5m2_input_cut_to_bfloat16(x):
    """The float32 input is turned into bfloat16 by dropping 16 bits (a shift, no rounding) on load, which pushes numbers onto ties and below them."""
    return F.mxfp8_e5m2(F.cut_to(x, 7))


def mxfp8_e4m3_maximum_without_abs_and_clamp_at_240(x):
    """Two mistakes: the block maximum is of signed numbers, so a large negative number does not count, and elements are clamped at 240, not at 448."""
    return F.mxfp8(x, amax=lambda b: b.max(-1), scaled=lambda y: np.clip(y, -240, 240))

# MXINT8

def mxint8_overflow_wraps(x):
    """There is no clamp before the conversion to int8: a number that rounds to 128 wraps to -128."""
    return F.mxint8(x, element=lambda y: (np.rint(y * 64).astype(np.int64) & 255).astype(np.uint8))


def mxint8_half_added_to_negative_numbers(x):
    """Elements are rounded as (int)(v + 0.5f) whatever their sign, so nearly every negative number ends one step too near to zero."""
    return F.mxint8(x, element=lambda y: np.clip(np.trunc(y * 64 + 0.5), -127, 127).astype(np.int8).view(np.uint8))


def mxint8_codes_in_sign_and_magnitude(x):
    """The store routine of the float formats is used again for integers: codes are a sign bit and a magnitude instead of two's complement."""
    return F.mxint8(x, element=lambda y: (np.minimum(np.rint(np.abs(y) * 64), 127).astype(np.int64) | sign_of(y, 128)).astype(np.uint8))


def mxint8_scale_of_one_step_and_truncation(x):
    """Two mistakes: the stored scale belongs to whole integers (2^-6 is folded into it, which the format has already), and elements are cut toward zero."""
    return F.mxint8(x, element=lambda y: np.clip(np.trunc(y * 64), -127, 127).astype(np.int8).view(np.uint8),
                    stored=lambda s: np.where(s > 0, np.maximum(s.astype(np.int64) - 6, 0), 0).astype(np.uint8))


ROWS = [(f.__name__, f, kind, rows, cols) for f, kind, rows, cols in [
    (nvfp4_running_tensor_amax, "heavy", 128, 256),
    (nvfp4_block_amax_of_raw_bits, "activation", 64, 512),
    (nvfp4_reciprocal_kept_in_half, "heavy", 256, 512),
    (nvfp4_subnormal_scales_flushed, "wide", 256, 256),
    (nvfp4_bytes_swapped_in_halfwords, "activation", 64, 256),
    (nvfp4_scales_left_in_tensor_core_layout, "activation", 128, 512),
    (nvfp4_threshold_one_and_a_half, "heavy", 64, 512),
    (nvfp4_tensor_scale_for_fnuz, "activation", 96, 512),
    (nvfp4_one_random_number_a_row, "activation", 128, 256),
    (nvfp4_two_threads_never_share_the_maximum, "heavy", 64, 512),
    (nvfp4_tensor_amax_before_rotation, "activation", 128, 256),
    (nvfp4_activations_get_weight_blocks, "activation", 128, 256),
    (nvfp4_half_input_and_unrounded_divisor, "small", 128, 256),
    (nvfp4_inverse_tensor_scale_and_scales_rounded_up, "activation", 64, 512),
    (mxfp4_exponent_from_bfloat16_logarithm, "heavy", 128, 1024),
    (mxfp4_maximum_not_reset, "activation", 64, 512),
    (mxfp4_scale_stride_padded_to_four, "activation", 96, 288),
    (mxfp4_subnormal_inputs_read_as_zero, "special", 256, 512),
    (mxfp4_ties_toward_plus_infinity, "activation", 128, 512),
    (mxfp4_overflow_carries_into_sign, "heavy", 64, 512),
    (mxfp4_blocks_down_the_columns, "activation", 64, 256),
    (mxfp4_bank_swizzle_left_in_output, "activation", 64, 320),
    (mxfp4_block_halves_interleaved, "heavy", 64, 256),
    (mxfp4_code_of_one_half_never_used, "activation", 64, 512),
    (mxfp4_fourth_lane_missing_in_maximum, "heavy", 128, 512),
    (mxfp4_last_butterfly_missing, "activation", 128, 256),
    (mxfp4_scale_floor_of_half_and_nibbles_swapped, "small", 128, 256),
    (mxfp4_rounded_by_way_of_fp8_and_scale_of_even_block, "activation", 128, 512),
    (mxfp8_e4m3_exponent_of_ieee_kind, "activation", 64, 512),
    (mxfp8_e5m2_upper_byte_of_half, "heavy", 64, 512),
    (mxfp8_e4m3_overflow_becomes_nan, "activation", 128, 512),
    (mxfp8_e4m3_subnormal_codes_flushed, "heavy", 128, 512),
    (mxfp8_e5m2_shared_exponent_rounded, "silent", 64, 512),
    (mxfp8_e4m3_scales_of_previous_stage, "activation", 64, 512),
    (mxfp8_e5m2_input_cut_to_bfloat16, "heavy", 128, 512),
    (mxfp8_e4m3_maximum_without_abs_and_clamp_at_240, "heavy", 64, 512),
    (mxint8_overflow_wraps, "heavy", 256, 1024),
    (mxint8_half_added_to_negative_numbers, "activation", 64, 512),
    (mxint8_codes_in_sign_and_magnitude, "silent", 64, 256),
    (mxint8_scale_of_one_step_and_truncation, "heavy", 64, 512),
]]
ROTATED = {"nvfp4_tensor_amax_before_rotation": 16, "mxfp4_last_butterfly_missing": 32}
RIGHT = {"nvfp4_": F.nv, "mxfp4_": F.mx, "mxfp8_e4m3_": F.mxfp8, "mxfp8_e5m2_": F.mxfp8_e5m2, "mxint8_": F.mxint8}


def differences(a, b):
    return int((a.codes != b.codes).sum()), int((a.scales != b.scales).sum()), a.tensor_scale != b.tensor_scale


if __name__ == "__main__":
    names = [r[0] for r in ROWS]
    assert len(set(names)) == 40 and [sum(n.startswith(p) for n in names) for p in ("nvfp4_", "mxfp4_", "mxfp8_", "mxint8_")] == [14, 14, 8, 4]
    assert sum(f.__doc__.startswith("Two mistakes:") for _, f, *_ in ROWS) == 6
    for name, f, kind, rows, cols in ROWS:
        assert 64 <= rows <= 256 and 256 <= cols <= 1024 and cols % 32 == 0
        right = next(k for p, k in RIGHT.items() if name.startswith(p))
        for seed in (1, 2):
            x = inputs.KINDS[kind](np.random.default_rng(seed), rows, cols)
            before = x.copy()
            got, again = f(x), f(x)
            assert x.tobytes() == before.tobytes(), name
            assert isinstance(got, F.Result) and differences(got, again) == (0, 0, False), name
            # A kernel that rotates is held to the right kernel of the rotated input and to that of the plain one.
            for rotation in {0, ROTATED.get(name, 0)}:
                want = right(F.rotate(x, rotation) if rotation else x)
                for g, w in ((got.codes, want.codes), (got.scales, want.scales)):
                    assert g.shape == w.shape and g.dtype == w.dtype == np.uint8, name
                assert type(got.tensor_scale) is type(want.tensor_scale) and (got.bits, got.packed) == (want.bits, want.packed), name
                d = differences(got, want)
                assert any(d), name
                print(f"{name:55} {kind:10} seed {seed} rotation {rotation:2}: codes {d[0]}, scales {d[1]}, tensor scale {bool(d[2])}")
    print("all forty as meant")
