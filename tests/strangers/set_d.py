"""Forty wrong quantisers as a training-framework engineer meets them; each docstring says the cause."""
import formats as F
import numpy as np

F32 = np.float32
SIGNS = np.array([1, 1, 1, -1, 1, -1, -1, -1, -1, -1, -1, 1, -1, 1, -1, -1], F32)
GRID = F.E2M1.astype(np.float64)


# Parts that are right and that several kernels share.


def philox(counter, seed):
    """Philox4x32-10: four words of 32 bits for each counter."""
    mask, low = np.uint64(0xFFFFFFFF), np.uint64(32)
    c = [np.asarray(counter, np.uint64) & mask] + [np.zeros(np.shape(counter), np.uint64) for _ in range(3)]
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(b >> low) ^ c[1] ^ np.uint64(k0), b & mask, (a >> low) ^ c[3] ^ np.uint64(k1), a & mask]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack(c, -1)


def uniform(shape, seed=1234):
    """One number in [0, 1) for each element, four to a counter."""
    n = int(np.prod(shape))
    return (philox(np.arange((n + 3) // 4), seed).ravel()[:n] * 2.0**-32).reshape(shape)


def below(y):
    """Magnitude of y cut at 6, and the code of the largest value not above it (at most that of 4)."""
    v = np.minimum(np.abs(np.asarray(y, np.float64)), 6)
    return v, np.clip(np.searchsorted(GRID, v, "right") - 1, 0, 6)


def stochastic(y, u):
    """Stochastic rounding to E2M1: up where u is less than the fraction of the step."""
    v, lo = below(y)
    up = u < (v - GRID[lo]) / (GRID[lo + 1] - GRID[lo])
    return (lo + up | np.where(np.signbit(y), 8, 0)).astype(np.uint8)


def ties_away(y):
    """Nearest E2M1, halfway cases to the larger magnitude."""
    v = np.minimum(np.abs(np.asarray(y, np.float64)), 6)
    c = np.searchsorted((GRID[1:] + GRID[:-1]) / 2, v, "right")
    return (c | np.where(np.signbit(y), 8, 0)).astype(np.uint8)


def e4m3_byte(r):
    return F.nearest(F.E4M3, np.minimum(r, F32(448))).astype(np.uint8)


# MXFP4


def mxfp4_view_of_transposed_weight_read_as_contiguous(x):
    """The autograd wrapper passes w.t() without .contiguous(), and the kernel walks the storage as if it were row-major."""
    return F.mx(x.T.copy().reshape(x.shape))


def mxfp4_autocast_casts_input_to_half(x):
    """The custom op is registered under autocast for float16, so the input is rounded to half (subnormal when small) before the kernel."""
    with np.errstate(over="ignore"):
        h = np.clip(x, -65504, 65504).astype(np.float16)
    return F.mx(h.astype(F32))


def mxfp4_rotation_over_tokens_instead_of_features(x):
    """The Hadamard transform of 32 runs down the columns (tokens), because the tile is already transposed in shared memory."""
    return F.mx(F.rotate(np.ascontiguousarray(x.T), 32).T)


def mxfp4_amax_shuffle_starts_at_offset_8(x):
    """The butterfly of __shfl_xor begins at 8, not 16: each half warp has its own amax and scale; lane 0 stores that of the first half."""
    b = F.in_blocks(x, 32)
    halves = b.reshape(*b.shape[:2], 2, 16)
    s = F.floor_byte(F.abs_max(halves), 2)
    codes = F.e2m1(halves.astype(np.float64) / F.power(s)[..., None])
    return F.Result(F.as_rows(codes, x.shape[1]), s[..., 0].copy())


def mxfp4_triton_max_without_axis(x):
    """tl.max(tl.abs(tile)) lacks its axis and reduces the whole tile of 4 rows by 32 columns to one number."""
    return F.mx(x, amax=lambda b: np.repeat(F.abs_max(b).reshape(-1, 4, b.shape[1]).max(1), 4, 0))


def mxfp4_amax_warp_runs_one_mbarrier_phase_ahead(x):
    """The amax warp waits for the wrong parity: from the third tile of a row on it reads a stage of the two-stage ring before TMA refills it."""

    def amax(b):
        a = F.abs_max(b)
        return np.concatenate([a[:, :2], a[:, :-2]], 1)

    return F.mx(x, amax=amax)


def mxfp4_tail_block_amax_sees_stale_shared_memory(x):
    """The copy of a short last block does not fill with zeros: its upper lanes still hold the previous block, which enter the amax."""
    tail = x.shape[1] % 32

    def amax(b):
        t = b.copy()
        if tail and b.shape[1] > 1:
            t[:, -1, tail:] = b[:, -2, tail:]
        return F.abs_max(t)

    return F.mx(x, amax=amax)


def mxfp4_even_scale_adds_half_of_the_wrong_mantissa_bit(x):
    """Scale rounding in the mode EVEN adds 1 << 22 to the bits of amax (for 0 bits of mantissa) where E2M1 needs 1 << 21."""

    def byte(a):
        e = ((np.ascontiguousarray(a, F32).view(np.uint32) + np.uint32(1 << 22)) >> np.uint32(23)).astype(np.int64) - 2
        return np.where(a > 0, np.clip(e, 0, 254), 0).astype(np.uint8)

    return F.mx(x, byte=byte)


def mxfp4_rceil_with_one_sixth_held_in_bf16(x):
    """The rule rounds amax / 6 up, but 1 / 6 is a scalar in the input's type, bfloat16, which is 0.2 % too large: some scales are doubled."""

    def byte(a):
        m, e = np.frexp(a * F.bf16(np.array([1 / 6], F32))[0])
        e = np.where(m == 0.5, e - 1, e).astype(np.int64) + 127
        return np.where(a > 0, np.clip(e, 0, 254), 0).astype(np.uint8)

    return F.mx(x, byte=byte)


def mxfp4_scales_stored_column_major(x):
    """The scales are stored [blocks][rows], as the old GEMM wanted them, in a buffer declared [rows][blocks]."""
    return F.mx(x, stored=lambda s: s.T.copy().reshape(s.shape))


def mxfp4_integer_encoder_half_up_and_carry_into_sign(x):
    """Two mistakes: the encoder adds half a step to the bits (ties away), and the carry of 7 and above runs into the sign bit (-0)."""

    def element(y):
        m = np.abs(y).astype(F32)
        normal = ((m.view(np.uint32) + np.uint32(1 << 21)) >> np.uint32(22)).astype(np.int64) - 252
        c = np.where(m < 1, np.floor(m * 2 + F32(0.5)).astype(np.int64), np.minimum(normal, 8))
        return ((c | np.where(np.signbit(y), 8, 0)) & 15).astype(np.uint8)

    return F.mx(x, element=element)


def mxfp4_encoder_without_subnormal_branch(x):
    """The software encoder rounds to one bit of mantissa and takes exponents below 0 as zero: the code of 0.5 is never made."""

    def element(y):
        m = np.abs(y)
        c = np.where(m < 1, np.where(m >= 0.875, 2, 0), F.nearest(GRID, m))
        return (c | np.where(np.signbit(y), 8, 0)).astype(np.uint8)

    return F.mx(x, element=element)


def mxfp4_one_philox_word_for_four_elements(x):
    """Stochastic rounding: each thread rounds four elements and takes word 0 of its Philox result for all of them."""

    def element(y):
        n = y.size // 4
        u = np.repeat(philox(np.arange(n), 1234)[:, 0] * 2.0**-32, 4).reshape(y.shape)
        return stochastic(y, u)

    return F.mx(x, element=element)


def mxfp4_stochastic_noise_added_before_round_to_nearest(x):
    """Noise of a whole step, not centred, is added and then the converter rounds to nearest instead of toward zero: magnitudes grow."""

    def element(y):
        v, lo = below(y)
        return F.e2m1(np.copysign(v + uniform(y.shape) * (GRID[lo + 1] - GRID[lo]), y))

    return F.mx(x, element=element)


def mxfp4_packed_bytes_transposed_without_nibble_exchange(x):
    """The fused transpose moves packed bytes, and the exchange of nibbles is missing: each 2 by 2 square of codes is transposed."""
    r = F.mx(x)
    rows, cols = r.codes.shape
    r.codes = r.codes.reshape(rows // 2, 2, cols // 2, 2).transpose(0, 3, 2, 1).reshape(rows, cols).copy()
    return r


def mxfp4_gguf_converter_halves_order_and_scale_halved(x):
    """Two mistakes of a converter: ggml's order (element i beside i + 16) is kept, and the scale is halved for its doubled table of values."""
    r = F.mx(x, code=lambda c, b: c.reshape(*c.shape[:2], 2, 16).swapaxes(2, 3).reshape(c.shape))
    r.scales = np.where(r.scales > 0, r.scales - 1, 0).astype(np.uint8)
    return r


# NVFP4


def nvfp4_tensor_amax_of_the_first_wave_only(x):
    """The amax kernel caps its grid and lacks the grid-stride loop: only the first eighth of the rows enters the tensor scale."""
    return F.nv(x, tensor=lambda x: np.abs(x[: max(1, len(x) // 8)]).max() / F32(448 * 6))


def nvfp4_tensor_amax_taken_before_rotation(x):
    """The tensor amax is that of the unrotated input, while the blocks are quantised after the Hadamard transform of 16."""
    return F.nv(F.rotate(x, 16), tensor=lambda _: np.abs(x).max() / F32(448 * 6))


def nvfp4_random_signs_after_the_hadamard(x):
    """The fixed random signs are multiplied after the transform of 16 (x H D), not before it (x D H)."""
    return F.nv(F.rotate(x, 16) * np.tile(SIGNS, x.shape[1] // 16))


def nvfp4_zero_block_times_infinite_reciprocal_gives_six(x):
    """A block of zeros has scale 0, its reciprocal is infinite, 0 * inf is NaN, and the saturating conversion makes NaN the code of 6."""

    def divide(b, f, t):
        y = b * (F32(1) / (f * t))[..., None]
        return np.where(np.isnan(y), F32(6), y)

    return F.nv(x, divide=divide)


def nvfp4_tensor_scale_buffer_cast_by_model_to_bf16(x):
    """The tensor scale is a registered buffer, so model.to(bfloat16) rounds it to bfloat16 before the kernel reads it."""
    return F.nv(x, tensor=lambda x: F.bf16(np.abs(x).max() / F32(448 * 6)))


def nvfp4_scale_swizzle_row_quotient_and_remainder_by_4(x):
    """The 128 by 4 swizzle of scales splits the row as r // 4 and r % 4 where the tensor core wants r % 32 and r // 32."""

    def final(s):
        rows, blocks = s.shape
        return s.reshape(rows // 128, 32, 4, blocks // 4, 4).transpose(0, 3, 2, 1, 4).reshape(rows, blocks).copy()

    return F.nv(x, final=final)


def nvfp4_amax_over_32_left_from_mxfp4_kernel(x):
    """The kernel was ported from MXFP4 and still reduces over 32 elements: two neighbouring blocks of 16 share one amax."""

    def amax(b):
        a = F.abs_max(b)
        return np.repeat(a.reshape(len(a), -1, 2).max(-1), 2, 1)

    return F.nv(x, amax=amax)


def nvfp4_tile_amax_last_warp_store_wins(x):
    """2-D scales of 16 by 16: the four warps store their amax to one shared word without atomicMax, and the last (rows 12 to 15) wins."""

    def amax(b):
        return np.repeat(F.abs_max(b).reshape(-1, 16, b.shape[1])[:, 12:].max(1), 16, 0)

    return F.nv(x, amax=amax)


def nvfp4_four_over_six_compares_errors_in_scaled_units(x):
    """Four-over-six compares the squared errors before they are multiplied by the scale, which favours the larger scale (amax to 4)."""
    b = F.in_blocks(x, 16)
    t = np.abs(x).max() / F32(256 * 6)
    best = None
    for top in (F32(6), F32(4)):
        s = e4m3_byte(F.abs_max(b) / top / t)
        d = F.E4M3[s].astype(F32) * t
        y = b / np.where(d > 0, d, F32(1))[..., None]
        c = F.e2m1(y)
        error = ((F.E2M1[c & 7] - np.abs(y)).astype(np.float64) ** 2).sum(-1)
        if best is None:
            best = c, s, error
        else:
            four = error < best[2]
            best = np.where(four[..., None], c, best[0]), np.where(four, s, best[1]), error
    return F.Result(F.as_rows(best[0], x.shape[1]), best[1], tensor_scale=F32(t))


def nvfp4_philox_subsequence_without_block_index(x):
    """Stochastic rounding: the Philox subsequence is the thread index alone, so every tile of 16 rows draws the same random numbers."""

    def element(y):
        tile = uniform((16, *y.shape[1:]))
        return stochastic(y, np.tile(tile, (-(-len(y) // 16), 1, 1))[: len(y)])

    return F.nv(x, element=element)


def nvfp4_scalar_tail_packs_high_nibble_first(x):
    """The vector path of 64 columns packs the low nibble first, the scalar path for the rest of the row the high nibble first."""
    r = F.nv(x)
    start = x.shape[1] // 64 * 64
    tail = r.codes[:, start:]
    r.codes = np.concatenate([r.codes[:, :start], tail.reshape(len(x), -1, 2)[..., ::-1].reshape(tail.shape)], 1)
    return r


def nvfp4_fused_qkv_shards_keep_scales_under_common_tensor_scale(x):
    """The converter joins Q, K and V, stores the largest of their tensor scales, and does not rescale the block scales of the other two."""
    third = len(x) // 3
    parts = [F.nv(p) for p in (x[:third], x[third : 2 * third], x[2 * third :])]
    return F.Result(
        np.concatenate([p.codes for p in parts]), np.concatenate([p.scales for p in parts]), tensor_scale=max(p.tensor_scale for p in parts)
    )


def nvfp4_tensor_scale_without_the_six_and_ties_away(x):
    """Two mistakes: the tensor scale is amax / 448 as for FP8, and the software encoder rounds ties away from zero."""
    return F.nv(x, tensor=lambda x: np.abs(x).max() / F32(448), element=ties_away)


# MXFP8, E4M3


def mxfp8_torch_cast_makes_nan_of_overflow(x):
    """The block scale is the floor rule's, and the cast is PyTorch's, which does not saturate: magnitudes above 464 become NaN."""

    def element(y):
        c = F.e4m3(y)
        return np.where(np.abs(y) > 464, c | 0x7F, c).astype(np.uint8)

    return F.mxfp8(x, element=element)


def mxfp8_double_rounding_through_half(x):
    """The scaled element is rounded to half first, as the conversion instruction takes half pairs, and then to E4M3."""
    return F.mxfp8(x, element=lambda y: F.e4m3(y.astype(F32).astype(np.float16).astype(F32)))


def mxfp8_rowwise_codes_divided_by_columnwise_scale(x):
    """The fused rowwise and columnwise kernel keeps one register for both scales: row-wise codes are divided by the column's scale."""
    columns = F.power(F.floor_byte(np.abs(x.reshape(-1, 32, x.shape[1])).max(1), 8))
    return F.mxfp8(x, divisor=lambda s, b: np.ones(s.shape), scaled=lambda y: y / F.in_blocks(np.repeat(columns, 32, 0), 32))


def mxfp8_tma_multicast_gives_cluster_the_first_tile(x):
    """The multicast mask names both CTAs of a cluster: the second one quantises the 32 rows of the first instead of its own."""
    t = x.reshape(-1, 2, 32, x.shape[1]).copy()
    t[:, 1] = t[:, 0]
    return F.mxfp8(t.reshape(x.shape))


def mxfp8_amax_clamped_to_1e_minus_4(x):
    """amax.clamp(min=1e-4) was copied from the FP8 kernel with blocks of 128: blocks of small gradients get a scale far too large."""
    return F.mxfp8(x, amax=lambda b: np.maximum(F.abs_max(b), F32(1e-4)))


def mxfp8_amax_over_448_cut_to_exponent_and_words_big_endian(x):
    """Two mistakes: amax / 448 is cut to its exponent, not rounded up, and four codes are packed into a word from the top byte down."""
    r = F.mxfp8(x, byte=lambda a: F.floor_byte(a / F32(448), 0))
    r.codes = r.codes.reshape(len(x), -1, 4)[..., ::-1].reshape(x.shape).copy()
    return r


# MXFP8, E5M2


def mxfp8_e5m2_scale_with_emax_of_e4m3(x):
    """The hybrid recipe passes one constant to both kernels: the gradient's E5M2 scale is made with E4M3's exponent 8, not 15."""
    return F.mxfp8_e5m2(x, emax=8)


def mxfp8_e5m2_is_the_upper_byte_of_half(x):
    """E5M2 is made by shifting the half right by 8 bits, so it is cut toward zero instead of rounded."""

    def element(y):
        with np.errstate(over="ignore"):
            h = np.ascontiguousarray(y.astype(F32).astype(np.float16))
        return (h.view(np.uint16) >> np.uint16(8)).astype(np.uint8)

    return F.mxfp8_e5m2(x, element=element)


def mxfp8_e5m2_persistent_loop_drops_partial_row_tile(x):
    """The tile scheduler counts rows // 32 tiles: the last rows of a partial tile are never written and stay zero."""
    r = F.mxfp8_e5m2(x)
    whole = len(x) // 32 * 32
    r.codes, r.scales = r.codes.copy(), r.scales.copy()
    r.codes[whole:] = 0
    r.scales[whole:] = 0
    return r


# MXINT8


def mxint8_rounding_to_128_wraps_to_minus_128(x):
    """There is no clamp after rounding: what rounds to 128 wraps to -128 in the int8 store."""
    return F.mxint8(x, element=lambda y: (np.rint(y * 64).astype(np.int64) & 255).astype(np.uint8))


def mxint8_cast_truncates_and_scale_without_implied_2_to_6(x):
    """Two mistakes: static_cast cuts toward zero, and the stored scale is that of integers, without the element's implied factor 2^-6."""
    r = F.mxint8(x, element=lambda y: (np.trunc(y * 64).astype(np.int64) & 255).astype(np.uint8))
    r.scales = np.maximum(r.scales.astype(np.int64) - 6, 0).astype(np.uint8)
    return r


ROWS = [
    (f.__name__, f, *rest)
    for f, *rest in [
        (mxfp4_view_of_transposed_weight_read_as_contiguous, "heavy", 64, 256),
        (mxfp4_autocast_casts_input_to_half, "small", 64, 256),
        (mxfp4_rotation_over_tokens_instead_of_features, "activation", 64, 256),
        (mxfp4_amax_shuffle_starts_at_offset_8, "activation", 64, 256),
        (mxfp4_triton_max_without_axis, "heavy", 64, 256),
        (mxfp4_amax_warp_runs_one_mbarrier_phase_ahead, "activation", 64, 512),
        (mxfp4_tail_block_amax_sees_stale_shared_memory, "heavy", 64, 240),
        (mxfp4_even_scale_adds_half_of_the_wrong_mantissa_bit, "activation", 64, 256),
        (mxfp4_rceil_with_one_sixth_held_in_bf16, "activation", 128, 512),
        (mxfp4_scales_stored_column_major, "activation", 64, 256),
        (mxfp4_integer_encoder_half_up_and_carry_into_sign, "activation", 64, 256),
        (mxfp4_encoder_without_subnormal_branch, "heavy", 64, 256),
        (mxfp4_one_philox_word_for_four_elements, "activation", 64, 256),
        (mxfp4_stochastic_noise_added_before_round_to_nearest, "heavy", 64, 256),
        (mxfp4_packed_bytes_transposed_without_nibble_exchange, "activation", 64, 256),
        (mxfp4_gguf_converter_halves_order_and_scale_halved, "heavy", 64, 256),
        (nvfp4_tensor_amax_of_the_first_wave_only, "heavy", 128, 256),
        (nvfp4_tensor_amax_taken_before_rotation, "activation", 64, 256),
        (nvfp4_random_signs_after_the_hadamard, "activation", 64, 256),
        (nvfp4_zero_block_times_infinite_reciprocal_gives_six, "silent", 64, 256),
        (nvfp4_tensor_scale_buffer_cast_by_model_to_bf16, "activation", 64, 512),
        (nvfp4_scale_swizzle_row_quotient_and_remainder_by_4, "activation", 128, 256),
        (nvfp4_amax_over_32_left_from_mxfp4_kernel, "activation", 64, 256),
        (nvfp4_tile_amax_last_warp_store_wins, "heavy", 64, 256),
        (nvfp4_four_over_six_compares_errors_in_scaled_units, "activation", 64, 256),
        (nvfp4_philox_subsequence_without_block_index, "activation", 64, 256),
        (nvfp4_scalar_tail_packs_high_nibble_first, "activation", 64, 240),
        (nvfp4_fused_qkv_shards_keep_scales_under_common_tensor_scale, "heavy", 96, 256),
        (nvfp4_tensor_scale_without_the_six_and_ties_away, "activation", 64, 256),
        (mxfp8_torch_cast_makes_nan_of_overflow, "activation", 64, 256),
        (mxfp8_double_rounding_through_half, "heavy", 64, 256),
        (mxfp8_rowwise_codes_divided_by_columnwise_scale, "activation", 64, 256),
        (mxfp8_tma_multicast_gives_cluster_the_first_tile, "heavy", 128, 256),
        (mxfp8_amax_clamped_to_1e_minus_4, "small", 64, 256),
        (mxfp8_amax_over_448_cut_to_exponent_and_words_big_endian, "activation", 64, 256),
        (mxfp8_e5m2_scale_with_emax_of_e4m3, "heavy", 64, 256),
        (mxfp8_e5m2_is_the_upper_byte_of_half, "heavy", 64, 256),
        (mxfp8_e5m2_persistent_loop_drops_partial_row_tile, "activation", 80, 256),
        (mxint8_rounding_to_128_wraps_to_minus_128, "activation", 128, 512),
        (mxint8_cast_truncates_and_scale_without_implied_2_to_6, "activation", 64, 256),
    ]
]
