"""Forty wrong kernels of a stranger, each a mistake as made in research code, Triton kernels and ports; named by its cause."""
import numpy as np

import formats as F

F32, F64 = np.float32, np.float64
SIGNS = np.array([1, -1, -1, 1, 1, 1, -1, 1, -1, -1, 1, -1, 1, -1, 1, 1], F32)


def hashed(n):
    """A 32-bit mix of each counter, as a kernel's generator without state: numbers in [0, 1)."""
    n = np.asarray(n, np.uint64) * np.uint64(0x9E3779B1) & np.uint64(0xFFFFFFFF)
    n = (n ^ (n >> np.uint64(15))) * np.uint64(0x85EBCA6B) & np.uint64(0xFFFFFFFF)
    n = (n ^ (n >> np.uint64(13))) * np.uint64(0xC2B2AE35) & np.uint64(0xFFFFFFFF)
    return (n ^ (n >> np.uint64(16))) / 2.0**32


def sign_of(y):
    return np.where(np.signbit(y), 8, 0)


# MXFP4: axes, views, memory


def mxfp4_weight_blocks_down_the_columns(x):
    """Quantised as x.T (out, in mixed up); the codes are turned back, the scales only viewed as [rows][cols / 32]."""
    q = F.mx(np.ascontiguousarray(x.T))
    return F.Result(np.ascontiguousarray(q.codes.T), np.ascontiguousarray(q.scales.T).reshape(x.shape[0], -1))


def mxfp4_strides_ignored_on_transposed_view(x):
    """x arrives as a .t() view; the kernel walks its memory as if it were contiguous."""
    return F.mx(np.ascontiguousarray(x.T).reshape(x.shape))


def mxfp4_high_nibble_first_packing(x):
    """Element 2k goes to the upper four bits."""
    q = F.mx(x)
    c = q.codes.reshape(x.shape[0], -1, 2)[:, :, ::-1].reshape(x.shape)
    return F.Result(np.ascontiguousarray(c), q.scales)


# MXFP4: amax and scale


def mxfp4_scale_before_hadamard_codes_after(x):
    """amax fused into the load, the rotation done after it."""
    return F.mx(F.rotate(x, 32), amax=lambda b: F.abs_max(F.in_blocks(x, 32)))


def mxfp4_masked_tail_loaded_as_one(x):
    """tl.load(..., mask=mask, other=1.0)."""
    cols = x.shape[1]
    q = F.mx(np.pad(x, ((0, 0), (0, -cols % 32)), constant_values=1))
    return F.Result(np.ascontiguousarray(q.codes[:, :cols]), q.scales)


def mxfp4_log2_of_amax_plus_epsilon(x):
    """floor(log2(amax + 1e-6)): blocks of zeros get a scale of their own."""
    return F.mx(x, byte=lambda a: np.clip(np.floor(np.log2(a.astype(F64) + 1e-6)) - 2 + 127, 0, 254).astype(np.uint8))


def mxfp4_log2_rounded_not_floored(x):
    """torch.round(torch.log2(amax)) - 2."""
    return F.mx(x, byte=lambda a: np.clip(np.rint(np.log2(np.maximum(a, F32(2.0**-126)).astype(F64))) - 2 + 127, 0, 254).astype(np.uint8))


def mxfp4_ceil_scale_stored_floor_scale_divided(x):
    """The scale is written by the new helper (ceil(log2(amax / 6))), the division still uses the old one."""
    ceil = lambda a: np.clip(np.ceil(np.log2(np.maximum(a, F32(2.0**-126)).astype(F64) / 6)) + 127, 0, 254).astype(np.uint8)
    return F.mx(x, byte=ceil, divisor=lambda s, b: F.power(F.floor_byte(F.abs_max(b), 2)))


def mxfp4_max_without_abs(x):
    """tl.max(x), with the usual clamp from below."""
    return F.mx(x, amax=lambda b: np.maximum(b.max(-1), F32(1e-4)))


def mxfp4_ema_of_amax_along_rows(x):
    """amax = 0.9 * amax_of_the_row_before + 0.1 * amax, block column by block column."""

    def amax(b):
        a = F.abs_max(b).copy()
        for r in range(1, len(a)):
            a[r] = F32(0.9) * a[r - 1] + F32(0.1) * a[r]
        return a

    return F.mx(x, amax=amax)


def mxfp4_percentile_97_for_amax(x):
    """torch.quantile(x.abs(), 0.97, dim=-1) as calibration."""
    return F.mx(x, amax=lambda b: np.quantile(np.abs(b).astype(F64), 0.97, axis=-1).astype(F32))


# MXFP4: elements


def mxfp4_last_threshold_4_5(x):
    """A ladder of comparisons whose last step continues the pattern 2.5, 3.5, 4.5 instead of 5."""
    edges = np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 4.5])
    return F.mx(x, element=lambda y: (np.searchsorted(edges, np.abs(y), "left") | sign_of(y)).astype(np.uint8))


def mxfp4_sr_same_bits_for_every_row(x):
    """Stochastic rounding whose counter is the column offset: tl.rand(seed, offs_n)."""

    def element(y):
        a = np.minimum(np.abs(y), 6)
        lo = np.clip(np.searchsorted(F.E2M1, a, "right") - 1, 0, 6)
        part = (a - F.E2M1[lo]) / (F.E2M1[lo + 1] - F.E2M1[lo])
        u = hashed(np.arange(y.shape[1] * y.shape[2]) + 7).reshape(1, y.shape[1], y.shape[2])
        return (lo + (u < part) | sign_of(y)).astype(np.uint8)

    return F.mx(x, element=element)


def mxfp4_smoothing_factors_left_in(x):
    """x / s with s = sqrt(amax of the column); s never reaches the weight, nor is it undone."""
    s = np.sqrt(np.maximum(np.abs(x).max(0, keepdims=True), F32(1e-5)))
    return F.mx(x / s)


def mxfp4_already_fake_quantised_to_fp8(x):
    """The input went through per-tensor E4M3 before: quantised twice."""
    k = F32(448) / np.abs(x).max()
    c = F.e4m3(x * k)
    y = F.E4M3[c & 127].astype(F32) / k
    return F.mx(np.where(c & 128, -y, y).astype(F32))


def mxfp4_amax_of_half_block_and_ties_away(x):
    """Two: the reduction sees the lower 16 lanes only; floor(v + 0.5) rounds ties away from zero."""

    def element(y):
        edges = np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5])
        return (np.searchsorted(edges, np.abs(y), "right") | sign_of(y)).astype(np.uint8)

    return F.mx(x, amax=lambda b: F.abs_max(b[..., :16]), element=element)


# NVFP4: tensor scale


def nvfp4_tensor_amax_running_average(x):
    """A momentum observer: 0.9 * amax of the first half + 0.1 * amax of the second."""
    h = x.shape[0] // 2
    return F.nv(x, tensor=lambda x: (F32(0.9) * np.abs(x[:h]).max() + F32(0.1) * np.abs(x[h:]).max()) / F32(2688))


def nvfp4_tensor_scale_forgets_the_6(x):
    """T = amax / 448."""
    return F.nv(x, tensor=lambda x: np.abs(x).max() / F32(448))


def nvfp4_amax_keepdim_makes_tensor_scale_per_row(x):
    """x.abs().amax(-1, keepdim=True) where the tensor's was meant; broadcasting hides it, and the largest T is stored."""
    return F.nv(x, tensor=lambda x: np.maximum(np.abs(x).max(-1, keepdims=True), F32(1e-30)) / F32(2688), stored_tensor=lambda t: F32(t.max()))


# NVFP4: block scales


def nvfp4_block_scale_cut_to_e4m3(x):
    """The cast to E4M3 drops bits instead of rounding."""
    return F.nv(x, store=lambda r: (np.searchsorted(F.E4M3, np.minimum(r, F32(448)), "right") - 1).astype(np.uint8))


def nvfp4_divides_by_unrounded_scale(x):
    """The codes are made with amax / 6, not with what E4M3 kept of it."""
    return F.nv(x, divide=lambda b, f, t: b / (F.abs_max(b) / F32(6))[..., None])


def nvfp4_tile_16_by_16_scale(x):
    """The two-dimensional scale of weights, used for an activation."""

    def amax(b):
        a = F.abs_max(b)
        return np.repeat(a.reshape(-1, 16, a.shape[1]).max(1), 16, axis=0)

    return F.nv(x, amax=amax)


def nvfp4_scale_clamped_to_least_normal(x):
    """clamp(min=torch.finfo(torch.float8_e4m3fn).tiny): no subnormal scales."""
    return F.nv(x, store=lambda r: F.nearest(F.E4M3, np.clip(r, F32(2.0**-6), F32(448))).astype(np.uint8))


def nvfp4_swizzled_scales_read_as_rows(x):
    """Scales left in the 128 x 4 layout of the tensor core, viewed as [rows][blocks]."""

    def final(s):
        rows, n = s.shape
        return np.ascontiguousarray(s.reshape(rows // 128, 4, 32, n // 4, 4).transpose(0, 3, 2, 1, 4)).reshape(rows, n)

    return F.nv(x, final=final)


# NVFP4: elements and transforms


def nvfp4_round_to_halves_then_e2m1(x):
    """jnp.round(y * 2) / 2 first, then the table: rounded twice above 2."""
    return F.nv(x, scaled=lambda y: np.rint(y * F32(2)) / F32(2))


def nvfp4_random_signs_after_hadamard(x):
    """(x H) D where (x D) H was meant."""
    r = F.rotate(x, 16)
    return F.nv((r.reshape(-1, 16) * SIGNS).reshape(x.shape))


def nvfp4_fnuz_240_and_input_through_fp16(x):
    """Two: the largest E4M3 of another vendor, and x.half() on the way in."""
    h = np.clip(x, -65504, 65504).astype(np.float16).astype(F32)
    return F.nv(h, largest_scale=F32(240), store=lambda r: F.nearest(F.E4M3, np.minimum(r, F32(240))).astype(np.uint8))


def nvfp4_clip_ratio_0_9_and_bf16_divisor(x):
    """Two: amax * 0.9 left from a search, and the product s * T kept in bfloat16."""
    return F.nv(x, amax=lambda b: F.abs_max(b) * F32(0.9), divide=lambda b, f, t: b / F.bf16(f * t)[..., None])


# MXFP8


def mxfp8_emax_and_clamp_of_240(x):
    """Constants of E4M3FNUZ: emax 7 and clamp to 240."""
    return F.mxfp8(x, emax=7, scaled=lambda y: np.clip(y, -240, 240))


def mxfp8_cast_without_saturation_gives_nan(x):
    """.to(float8_e4m3fn) with no clamp: above 464 it is NaN."""
    return F.mxfp8(x, element=lambda y: np.where(np.abs(y) > 464, 127 | np.where(np.signbit(y), 128, 0), F.e4m3(y)).astype(np.uint8))


def mxfp8_amax_of_row_not_block(x):
    """The reshape to blocks came after the reduction: every block of a row has the row's scale."""
    return F.mxfp8(x, amax=lambda b: np.broadcast_to(np.abs(b).max((1, 2), keepdims=True)[..., 0], b.shape[:2]))


def mxfp8_scales_repeat_for_repeat_interleave(x):
    """s.repeat(1, 32) for repeat_interleave(32): column j is divided by scale j % blocks."""
    s = F.floor_byte(F.abs_max(F.in_blocks(x, 32)), 8)
    d = F.power(s)[:, np.arange(x.shape[1]) % s.shape[1]]
    return F.Result(F.e4m3(x.astype(F64) / d), s, bits=8)


def mxfp8_tail_without_mask_reads_next_row(x):
    """No mask on the last block's load: its amax includes the beginning of the next row."""
    rows, cols = x.shape
    flat = np.append(x.ravel(), np.zeros(32, F32))
    blocks = -(-cols // 32)
    at = np.arange(rows)[:, None] * cols + np.arange(blocks * 32)
    return F.mxfp8(x, amax=lambda b: np.abs(flat[at]).reshape(rows, blocks, 32).max(-1))


def mxfp8_pipelined_scale_of_block_before(x):
    """Software pipelining: a block is divided by the scale still in the register."""
    return F.mxfp8(x, divisor=lambda s, b: F.power(np.concatenate([s[:, :1], s[:, :-1]], 1)))


def mxfp8_ceil_of_amax_over_448_with_epsilon(x):
    """Two: ceil(log2(amax / 448)) for floor(log2(amax)) - 8, and amax + 1e-3."""
    return F.mxfp8(x, byte=lambda a: np.clip(np.ceil(np.log2((a.astype(F64) + 1e-3) / 448)) + 127, 0, 254).astype(np.uint8))


def mxfp8_e5m2_with_emax_of_e4m3(x):
    """emax stays 8 when the element becomes E5M2."""
    return F.mxfp8_e5m2(x, emax=8)


def mxfp8_e5m2_upper_byte_of_half(x):
    """E5M2 is the upper byte of binary16, so the lower one is dropped, not rounded."""

    def element(y):
        with np.errstate(over="ignore"):
            return (np.clip(y, -57344, 57344).astype(np.float16).view(np.uint16) >> 8).astype(np.uint8)

    return F.mxfp8_e5m2(x, element=element)


# MXINT8


def mxint8_steps_of_2_over_127(x):
    """The symmetric integer habit: y * 127 / 2 instead of y * 64."""
    return F.mxint8(x, element=lambda y: np.rint(y * 63.5).astype(np.int8).view(np.uint8))


def mxint8_truncated_and_offset_binary(x):
    """Two: .to(torch.int8) truncates, and the zero point 128 of uint8 is added."""
    return F.mxint8(x, element=lambda y: (np.clip(np.trunc(y * 64), -127, 127) + 128).astype(np.uint8))


def mxint8_sr_one_number_for_a_block(x):
    """Stochastic rounding with one random number a block, broadcast."""

    def element(y):
        u = hashed(np.arange(y.shape[0] * y.shape[1]) + 11).reshape(y.shape[:2])[..., None]
        return np.clip(np.floor(y * 64 + u), -127, 127).astype(np.int8).view(np.uint8)

    return F.mxint8(x, element=element)


ROWS = [(f.__name__, f, *rest) for f, *rest in [
    (mxfp4_weight_blocks_down_the_columns, "heavy", 64, 256),
    (mxfp4_strides_ignored_on_transposed_view, "activation", 96, 320),
    (mxfp4_high_nibble_first_packing, "heavy", 48, 192),
    (mxfp4_scale_before_hadamard_codes_after, "activation", 64, 512),
    (mxfp4_masked_tail_loaded_as_one, "small", 80, 100),
    (mxfp4_log2_of_amax_plus_epsilon, "silent", 64, 384),
    (mxfp4_log2_rounded_not_floored, "activation", 128, 200),
    (mxfp4_ceil_scale_stored_floor_scale_divided, "heavy", 64, 256),
    (mxfp4_max_without_abs, "heavy", 96, 128),
    (mxfp4_ema_of_amax_along_rows, "activation", 128, 256),
    (mxfp4_percentile_97_for_amax, "heavy", 64, 640),
    (mxfp4_last_threshold_4_5, "activation", 40, 1000),
    (mxfp4_sr_same_bits_for_every_row, "small", 64, 256),
    (mxfp4_smoothing_factors_left_in, "activation", 64, 1024),
    (mxfp4_already_fake_quantised_to_fp8, "heavy", 64, 288),
    (mxfp4_amax_of_half_block_and_ties_away, "activation", 96, 224),
    (nvfp4_tensor_amax_running_average, "heavy", 256, 128),
    (nvfp4_tensor_scale_forgets_the_6, "activation", 64, 256),
    (nvfp4_amax_keepdim_makes_tensor_scale_per_row, "wide", 96, 256),
    (nvfp4_block_scale_cut_to_e4m3, "heavy", 64, 136),
    (nvfp4_divides_by_unrounded_scale, "activation", 64, 512),
    (nvfp4_tile_16_by_16_scale, "activation", 64, 208),
    (nvfp4_scale_clamped_to_least_normal, "wide", 128, 64),
    (nvfp4_swizzled_scales_read_as_rows, "heavy", 128, 256),
    (nvfp4_round_to_halves_then_e2m1, "activation", 32, 328),
    (nvfp4_random_signs_after_hadamard, "heavy", 64, 256),
    (nvfp4_fnuz_240_and_input_through_fp16, "heavy", 64, 256),
    (nvfp4_clip_ratio_0_9_and_bf16_divisor, "small", 72, 240),
    (mxfp8_emax_and_clamp_of_240, "activation", 64, 256),
    (mxfp8_cast_without_saturation_gives_nan, "heavy", 96, 160),
    (mxfp8_amax_of_row_not_block, "silent", 32, 512),
    (mxfp8_scales_repeat_for_repeat_interleave, "heavy", 64, 256),
    (mxfp8_tail_without_mask_reads_next_row, "wide", 112, 200),
    (mxfp8_pipelined_scale_of_block_before, "activation", 64, 320),
    (mxfp8_ceil_of_amax_over_448_with_epsilon, "small", 96, 256),
    (mxfp8_e5m2_with_emax_of_e4m3, "special", 64, 256),
    (mxfp8_e5m2_upper_byte_of_half, "heavy", 64, 176),
    (mxint8_steps_of_2_over_127, "activation", 64, 256),
    (mxint8_truncated_and_offset_binary, "heavy", 64, 96),
    (mxint8_sr_one_number_for_a_block, "special", 128, 144),
]]
