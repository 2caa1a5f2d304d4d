"""Defines MXFP4 with the even rule as a Triton kernel, for examples/torch_kernel.py --kernel triton_kernel.

One program takes 64 blocks of 32. TRITON_INTERPRET=1 runs it without a GPU."""
import triton
import triton.language as tl


@triton.jit
def mxfp4_even(x, codes, scales, n, cols, blocks, half_away: tl.constexpr):
    index = tl.program_id(0) * 64 + tl.arange(0, 64)
    row, first = index // blocks, index % blocks * 32
    col = first[:, None] + tl.arange(0, 32)[None, :]
    at = row[:, None] * cols + col
    here = (index < n)[:, None] & (col < cols)
    v = tl.load(x + at, mask=here, other=0.0)
    bits = v.to(tl.int32, bitcast=True)
    amax = tl.max(bits & 0x7FFFFFFF, 1)
    byte = tl.minimum(tl.maximum(((amax + 0x200000) >> 23) - 2, 0), 253)
    special = (amax > 0x7F800000)[:, None]
    # Exact quotient: binary64 holds it, and a power of two is its exponent field. torchao divides by 2^-126 at least, the least normal number.
    factor = ((1023 + 127 - tl.maximum(byte, 1)).to(tl.int64) << 52).to(tl.float64, bitcast=True)
    m = tl.abs(v.to(tl.float64) * factor[:, None])
    code = (m > 0.25).to(tl.int32) + (m >= 0.75).to(tl.int32) + (m > 1.25).to(tl.int32) + (m >= 1.75).to(tl.int32)
    code += (m > 2.5).to(tl.int32) + (m >= 3.5).to(tl.int32) + (m > 5.0).to(tl.int32)
    if half_away:
        code = (m >= 0.25).to(tl.int32) + (m >= 0.75).to(tl.int32) + (m >= 1.25).to(tl.int32) + (m >= 1.75).to(tl.int32)
        code += (m >= 2.5).to(tl.int32) + (m >= 3.5).to(tl.int32) + (m >= 5.0).to(tl.int32)
    sign = bits >> 31 & 1
    nan = (bits & 0x7FFFFFFF) > 0x7F800000
    code = tl.where(special, tl.where(nan, 7 | sign << 3, 7), code | sign << 3)
    tl.store(codes + at, code.to(tl.uint8), mask=here)
    tl.store(scales + index, tl.where(amax > 0x7F800000, 255, byte).to(tl.uint8), mask=index < n)


def quantize(x, torch, bug=False):
    rows, cols = x.shape
    blocks = (cols + 31) // 32
    codes = torch.empty((rows, cols), dtype=torch.uint8, device=x.device)
    scales = torch.empty((rows, blocks), dtype=torch.uint8, device=x.device)
    n = rows * blocks
    mxfp4_even[((n + 63) // 64,)](x, codes, scales, n, cols, blocks, bug)
    return codes, scales
