"""Prints digests of quantize under every preset, of gemm, and of linear under every recipe, which are the same on every machine."""

import hashlib

import numpy as np

import mxgold


def digest(*arrays) -> str:
    return hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays if a is not None)).hexdigest()[:32]


rng = np.random.Generator(np.random.Philox(3))
x = (rng.integers(-(1 << 20), 1 << 20, (64, 256)) * np.exp2(rng.integers(-24, -8, (64, 1)))).astype(np.float32)
for name, preset in mxgold.presets().items():
    if preset.alias_of is None:
        q = mxgold.quantize(x, name)
        print("quantize", name, digest(q.codes, q.scales, q.micro, q.tensor_scale), digest(q.dequantize()))
a = mxgold.quantize(x, "ocp-mxfp4")
for accum in ("f32_block", "exact", "f32_seq", "group64"):
    print("gemm", accum, digest(mxgold.gemm(a, a, accum)))
for name in mxgold.recipes():
    y, dx, dw = mxgold.linear(x[:, :128], x[:32, :128].copy(), x[:, :32].copy(), recipe=name, seed=5)
    print("linear", name, digest(y), digest(dx), digest(dw))
