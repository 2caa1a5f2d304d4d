#!/usr/bin/env python3
"""Runs the real libraries on fresh inputs and writes DIR/PRESET.safetensors in the layout of tests/peers.

    run_peers.py --out DIR [--seed N] [--rows N] [PREFIX...]

Needs torch 2.15.0 (CPU is enough) and, each optional: torchao 0.18.0, compressed-tensors 0.20.0, nvidia-modelopt 0.47.0, auto-round 0.16.1, gfloat 0.5.2,
amd-quark 0.13, mlx 0.32.4 (CPU), ml_dtypes 0.6.0. The casts of single values go to torch.safetensors, ml_dtypes.safetensors and gfloat-sr.safetensors,
what the libraries' own dequantisation makes of NVFP4 under a tensor scale to values.safetensors (PREFIX values: that alone).
A library that cannot be imported, or whose version is another, is named on a line and skipped. Exit 1 if nothing ran.
"""
import argparse, contextlib, importlib, importlib.metadata, json, logging, os, struct, sys
import numpy as np

FORMATS = {"e2m1": (2, 1, 6.0), "e2m3": (2, 3, 7.5), "e3m2": (3, 2, 28.0), "e4m3": (4, 3, 448.0), "e5m2": (5, 2, 57344.0), "ue5m3": (5, 3, 114688.0)}
F32MAX = np.finfo(np.float32).max
np.seterr(all="ignore")


def grid(fmt):
    """The non-negative finite values of a format, in code order."""
    eb, mb, top = FORMATS[fmt]
    bias = (1 << (eb - 1)) - 1
    v = [(m * 2.0**(1 - bias - mb) if e == 0 else (1 + m / 2**mb) * 2.0**(e - bias)) for e in range(1 << eb) for m in range(1 << mb)]
    return np.array([a for a in v if a <= top])


def codes_of(values, fmt):
    """Codes of values that are already in the format; the sign bit is the value's."""
    eb, mb, _ = FORMATS[fmt]
    return (np.searchsorted(grid(fmt), np.abs(values)) | np.signbit(values).astype(np.int64) << (eb + mb)).astype(np.uint8)


def unpack4(p):
    return np.stack([p & 15, p >> 4], -1).reshape(p.shape[0], -1)


def unpack6(p):
    b = p.reshape(p.shape[0], -1, 3).astype(np.uint32)
    w = b[..., 0] | b[..., 1] << 8 | b[..., 2] << 16
    return np.stack([w >> s & 63 for s in (0, 6, 12, 18)], -1).astype(np.uint8).reshape(p.shape[0], -1)


# ---- the libraries: each yields (preset, elem, scale, notes, run); run(x) -> codes, scales[, tensor_scale] ----
def torchao():
    import torch
    from torchao.prototype.mx_formats.config import ScaleCalculationMode as Mode
    from torchao.prototype.mx_formats.constants import DTYPE_FP6_E2M3, DTYPE_FP6_E3M2
    from torchao.prototype.mx_formats.mx_tensor import to_mx
    from torchao.prototype.mx_formats.nvfp4_tensor import nvfp4_quantize, per_tensor_amax_to_scale
    dtypes = {"e2m1": torch.float4_e2m1fn_x2, "e2m3": DTYPE_FP6_E2M3, "e3m2": DTYPE_FP6_E3M2, "e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}

    def mx(mode, elem):
        def run(x):
            s, q = to_mx(torch.from_numpy(x), dtypes[elem], 32, mode)
            q = q.view(torch.uint8).numpy()
            return unpack4(q) if elem == "e2m1" else q, s.view(torch.uint8).numpy()
        return run

    def nv(two):
        def run(x):
            t = torch.from_numpy(x)
            g = per_tensor_amax_to_scale(t.abs().max()) if two else None
            s, q = nvfp4_quantize(t, 16, g)
            return unpack4(q.numpy()), s.view(torch.uint8).numpy(), *([g.numpy()] if two else [])
        return run

    for mode in (Mode.FLOOR, Mode.CEIL, Mode.EVEN, Mode.RCEIL):
        for elem in dtypes:
            yield "torchao-" + mode.value + ("" if elem == "e2m1" else "-" + elem), elem, "e8m0", "to_mx, eager", mx(mode, elem)
    yield "torchao-nvfp4", "e2m1", "e4m3", "nvfp4_quantize, no tensor scale", nv(False)
    yield "torchao-nvfp4-2level", "e2m1", "e4m3", "nvfp4_quantize, per_tensor_amax_to_scale of the tensor; a multiplier", nv(True)


def compressed_tensors():
    import torch
    from compressed_tensors.compressors import MXFP4PackedCompressor, MXFP6PackedCompressor, MXFP8QuantizationCompressor, NVFP4PackedCompressor
    from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
    from compressed_tensors.quantization.utils import compute_dynamic_scales_and_zp, generate_gparam

    def make(compressor, nbits, key, unpack):
        nv = compressor is NVFP4PackedCompressor
        args = QuantizationArgs(num_bits=nbits, type="float", symmetric=True, strategy="tensor_group" if nv else "group", group_size=16 if nv else 32,
                                scale_dtype=torch.float8_e4m3fn if nv else torch.uint8, zp_dtype=torch.float8_e4m3fn if nv else torch.uint8)
        scheme = QuantizationScheme(targets=["Linear"], weights=args)

        def run(x):
            t = torch.from_numpy(x)
            g = generate_gparam(t.min(), t.max()) if nv else None
            s, _ = compute_dynamic_scales_and_zp(t, args, None, g)
            state = {"weight": t, "weight_scale": s}
            if nv:
                state["weight_global_scale"] = g
            o = compressor.compress(state, scheme)
            return unpack(o[key].view(torch.uint8).numpy()), o["weight_scale"].view(torch.uint8).numpy(), *([g.numpy()] if nv else [])
        return run

    yield "ct-mxfp4", "e2m1", "e8m0", "compress()", make(MXFP4PackedCompressor, 4, "weight_packed", unpack4)
    yield "ct-mxfp6", "e2m3", "e8m0", "compress()", make(MXFP6PackedCompressor, 6, "weight_packed", unpack6)
    yield "ct-mxfp8", "e4m3", "e8m0", "compress()", make(MXFP8QuantizationCompressor, 8, "weight", lambda c: c)
    yield "ct-nvfp4", "e2m1", "e4m3", "compress(); tensor_scale is a divisor", make(NVFP4PackedCompressor, 4, "weight_packed", unpack4)


def modelopt():
    import torch
    from modelopt.torch.quantization.qtensor import MXFP4QTensor, MXFP8QTensor, NVFP4QTensor

    def mxfp4(x):
        q, s = MXFP4QTensor.quantize(torch.from_numpy(x), 32)
        return unpack4(q._quantized_data.numpy()), s.reshape(x.shape[0], -1).numpy()

    def mxfp8(x):
        q, s = MXFP8QTensor.quantize(torch.from_numpy(x))
        return q._quantized_data.view(torch.uint8).numpy(), s.numpy()

    def nvfp4(x):
        q, s, g = NVFP4QTensor.quantize(torch.from_numpy(x), 16)
        return unpack4(q._quantized_data.numpy()), s.view(torch.uint8).numpy(), g.numpy()

    yield "modelopt-mxfp4", "e2m1", "e8m0", "MXFP4QTensor.quantize", mxfp4
    yield "modelopt-mxfp8", "e4m3", "e8m0", "MXFP8QTensor.quantize", mxfp8
    yield "modelopt-nvfp4", "e2m1", "e4m3", "NVFP4QTensor.quantize; tensor_scale is a multiplier", nvfp4


def autoround():
    import torch
    from auto_round.data_type import mxfp, nvfp
    from auto_round.export.export_to_autoround.qlinear_fp import QuantLinear

    def record(module, name, call):
        """What module.name returned last during call()."""
        real, seen = getattr(module, name), []
        setattr(module, name, lambda *a, **k: seen.append(real(*a, **k)) or seen[-1])
        try:
            return call(), seen[-1].numpy()
        finally:
            setattr(module, name, real)

    def mx(fn, elem):
        def run(x):
            (_, e, _), v = record(mxfp, "quant_element", lambda: fn(torch.from_numpy(x.copy()), bits=FORMATS[elem][0] + FORMATS[elem][1] + 1, group_size=32, data_type="mx_fp%d%s" % (1 + sum(FORMATS[elem][:2]), elem)))
            e = e.numpy().reshape(x.shape[0], -1)
            dead = np.isnan(e)
            if dead.any():                               # no byte is defined: such blocks become zeros
                x.reshape(x.shape[0], -1, 32)[dead] = 0
                return run(x)
            return codes_of(v.reshape(x.shape), elem), (e + 127).astype(np.uint8)
        return run

    def packed(x, data_type, quantise, gs):
        weight, scale, _ = quantise(torch.from_numpy(x.copy()))
        layer = torch.nn.Linear(x.shape[1], x.shape[0], bias=False)
        layer.weight.data = weight
        q = QuantLinear(4, 16, x.shape[1], x.shape[0], False, data_type=data_type, act_bits=16)
        q.pack(layer, scale.reshape(x.shape[0], -1), global_scale=gs, device="cpu")
        return unpack4(q.weight_packed.numpy()), q.weight_scale.view(torch.uint8).numpy(), *([] if gs is None else [gs.numpy()])

    def nv(x):
        g = nvfp.calculate_gparam(torch.from_numpy(x))
        return packed(x, "nv_fp4", lambda t: nvfp.nv_fp4(t, global_scale=g), g)

    def e5m3(x):
        return packed(x, "nvfp4_v2", lambda t: nvfp.nvfp4_v2(t, group_size=16), None)

    def e5m3_2level(x):
        t = torch.from_numpy(x.copy())
        (_, s, _), v = record(nvfp, "cast_to_fp4", lambda: nvfp.nvfp4_v2_with_global_scale(t, group_size=16))
        g = 688128.0 * nvfp.get_reciprocal(t.abs().max())
        return codes_of(v.reshape(x.shape), "e2m1"), nvfp.float_to_e5m3_frexp(s).numpy().reshape(x.shape[0], -1), g.numpy()

    for elem in ("e2m1", "e2m3", "e3m2", "e4m3", "e5m2"):
        tail = "" if elem == "e2m1" else "-" + elem
        yield "autoround-floor" + tail, elem, "e8m0", "quant_mx; codes of what quant_element returned", mx(mxfp.quant_mx, elem)
        yield "autoround-rceil" + tail, elem, "e8m0", "quant_mx_rceil; codes of what quant_element returned", mx(mxfp.quant_mx_rceil, elem)
    yield "autoround-rceil2", "e2m1", "e8m0", "quant_mx_rceil_v2", mx(mxfp.quant_mx_rceil_v2, "e2m1")
    yield "autoround-nvfp4", "e2m1", "e4m3", "nv_fp4, then QuantLinear.pack; tensor_scale is a divisor", nv
    yield "autoround-e5m3", "e2m1", "ue5m3", "nvfp4_v2, then QuantLinear.pack", e5m3
    yield "autoround-e5m3-2level", "e2m1", "ue5m3", "nvfp4_v2_with_global_scale; codes of what cast_to_fp4 returned; tensor_scale is a divisor", e5m3_2level


def gfloat():
    from gfloat import BlockFormatInfo, compute_scale_amax, encode_block, formats

    def make(elem):
        fi = BlockFormatInfo("mx", getattr(formats, "format_info_ocp_" + elem), 32, formats.format_info_ocp_e8m0)

        def run(x):
            b = []
            for v in x.reshape(-1, 32):
                s = compute_scale_amax(fi.etype.emax, v)
                b.append(list(encode_block(fi, s, v / s)))
            b = np.array(b, np.uint8)
            return b[:, 1:].reshape(x.shape), b[:, 0].reshape(x.shape[0], -1)
        return run

    for elem in ("e2m1", "e2m3", "e3m2", "e4m3", "e5m2"):
        yield "gfloat-ocp" + ("" if elem == "e2m1" else "-" + elem), elem, "e8m0", "compute_scale_amax, encode_block", make(elem)


def quark():
    import torch
    import quark.torch.kernel
    from quark.torch import ModelQuantizer
    from quark.torch.export.nn.modules.realquantizer import get_real_quantizer
    from quark.torch.kernel.float8_e5m3.reference import reference_convert_fp32_to_e5m3_bits
    from quark.torch.kernel.mx.triton import DequantScaleRoundingMode, downcast_to_mxfp_torch
    from quark.torch.quantization.config.config import AmdFP4Spec, QConfig, QLayerConfig, QTensorConfig
    from quark.torch.quantization.config.template import FP4Block16ScaleE4M3Scheme
    from quark.torch.quantization.config.type import Dtype, QSchemeType, RoundType, ScaleType
    from quark.torch.quantization.observer.observer import PerBlockMXObserver
    from quark.torch.utils.numerics import to_e8m0_uint8
    from quark.torch.utils.pack import Pack_fp4, Pack_fp6

    def downcast(mode, dtype):
        def run(x):
            q, s = downcast_to_mxfp_torch(torch.from_numpy(x), dtype, -1, DEQUANT_SCALE_ROUNDING_MODE=mode)
            return unpack4(q.numpy()) if dtype == torch.uint8 else q.view(torch.uint8).numpy(), s.numpy()
        return run

    def export(mode, elem):
        dtype = {"e2m1": Dtype.fp4, "e2m3": Dtype.fp6_e2m3, "e3m2": Dtype.fp6_e3m2}[elem]
        config = QTensorConfig(dtype=dtype, observer_cls=PerBlockMXObserver, qscheme=QSchemeType.per_group, group_size=32, ch_axis=-1, is_dynamic=False,
                               round_method=RoundType.half_even, scale_type=ScaleType.float32, scale_format="e8m0", scale_calculation_mode=mode)
        top = FORMATS[elem][2]

        def run(x):
            observer, t = PerBlockMXObserver(config), torch.from_numpy(x)    # an observer keeps a running maximum: a new one each time
            observer(t)
            s, zero = observer.calculate_qparams()
            y = quark.torch.kernel.scaled_real_quantize(dtype.value, t, s, zero, -1, 32, -top, top, 8, "per_group")
            packer = Pack_fp4("per_group", "fp4") if elem == "e2m1" else Pack_fp6("per_group", dtype.value, *FORMATS[elem][:2])
            b = packer.pack(y, False).numpy()
            return (unpack4 if elem == "e2m1" else unpack6)(b.reshape(x.shape[0], -1)), to_e8m0_uint8(s).numpy().reshape(x.shape[0], -1)
        return run

    mode = DequantScaleRoundingMode
    yield "quark-even", "e2m1", "e8m0", "downcast_to_mxfp_torch", downcast(mode.EVEN, torch.uint8)
    for elem, dtype in (("e2m1", torch.uint8), ("e4m3", torch.float8_e4m3fn), ("e5m2", torch.float8_e5m2)):
        tail = "" if elem == "e2m1" else "-" + elem
        yield "quark-up" + tail, elem, "e8m0", "downcast_to_mxfp_torch", downcast(mode.ROUND_UP, dtype)
        yield "quark-down" + tail, elem, "e8m0", "downcast_to_mxfp_torch", downcast(mode.ROUND_DOWN, dtype)
    for how, elem in (("even", "e2m1"), ("floor", "e2m1"), ("ceil", "e2m1"), ("even", "e2m3"), ("even", "e3m2")):
        tail = "" if elem == "e2m1" else "-" + elem
        yield "quark-export-" + how + tail, elem, "e8m0", "PerBlockMXObserver, scaled_real_quantize, Pack, to_e8m0_uint8", export(how, elem)

    def e5m3(x):
        spec = AmdFP4Spec(ch_axis=-1, group_size=16, is_dynamic=False).to_quantization_spec()
        observer, t = PerBlockMXObserver(spec), torch.from_numpy(x)
        observer(t)
        s, zero = observer.calculate_qparams()
        y = quark.torch.kernel.scaled_real_quantize("fp4", t, s, zero, -1, 16, -6.0, 6.0, 8, "per_group")
        b = Pack_fp4("per_group", "fp4").pack(y, False).numpy()
        return unpack4(b.reshape(x.shape[0], -1)), reference_convert_fp32_to_e5m3_bits(s).numpy().reshape(x.shape[0], -1)

    def nvfp4(x):
        model = torch.nn.Sequential(torch.nn.Linear(x.shape[1], x.shape[0], bias=False))
        model[0].weight.data = torch.from_numpy(x)
        logging.disable(logging.INFO)                    # a page of lines for each call, and two progress bars
        with open(os.devnull, "w") as quiet, contextlib.redirect_stderr(quiet):
            model = ModelQuantizer(QConfig(global_quant_config=QLayerConfig(weight=FP4Block16ScaleE4M3Scheme().config.weight))).quantize_model(model)
        stages = model[0]._weight_quantizer
        real = get_real_quantizer([q.quant_spec for q in stages], stages, False, False, torch.float32, torch.device("cpu"))
        b = real.to_real_quantize_params(model[0].weight.data).numpy()
        real.maybe_convert_and_transpose_scale()
        blocks, whole = real
        return unpack4(b), blocks.scale.view(torch.uint8).numpy().reshape(x.shape[0], -1), whole.scale.numpy()

    yield "quark-nvfp4", "e2m1", "e4m3", "FP4Block16ScaleE4M3Scheme, ModelQuantizer, get_real_quantizer; tensor_scale is a multiplier", nvfp4
    yield "quark-e5m3", "e2m1", "ue5m3", "AmdFP4Spec: PerBlockMXObserver, scaled_real_quantize, Pack, reference_convert_fp32_to_e5m3_bits", e5m3


def mlx():
    import mlx.core as mx

    def make(mode, bits, block, two):
        def run(x):
            g = np.array([np.abs(x).max()], np.float32)
            q, s = mx.quantize(mx.array(x), group_size=block, bits=bits, mode=mode, **(dict(global_scale=mx.array(g[0])) if two else {}), stream=mx.cpu)
            b = np.array(q).view(np.uint8)
            return unpack4(b) if bits == 4 else b, np.array(s), *([g] if two else [])
        return run

    yield "mlx-mxfp4", "e2m1", "e8m0", "mx.quantize, CPU", make("mxfp4", 4, 32, False)
    yield "mlx-mxfp8", "e4m3", "e8m0", "mx.quantize, CPU", make("mxfp8", 8, 32, False)
    yield "mlx-nvfp4", "e2m1", "e4m3", "mx.quantize, CPU", make("nvfp4", 4, 16, False)
    yield "mlx-nvfp4-gs", "e2m1", "e4m3", "mx.quantize, CPU; tensor_scale is the amax", make("nvfp4", 4, 16, True)


# ---- casts of single values: each returns (prefix of the arrays, package, {array: codes}) of x, or raises ImportError ----
def cast_torch(x, rng):
    import torch
    t = torch.from_numpy(x)
    return "elementwise.", "torch", {k: t.to(getattr(torch, k)).view(torch.uint8).numpy() for k in ("float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu")}


def cast_ml_dtypes(x, rng):
    import ml_dtypes
    kinds = ("float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu")
    return "elementwise.", "ml_dtypes", {k: x.astype(getattr(ml_dtypes, k)).view(np.uint8) for k in kinds}


def cast_gfloat(x, rng):
    from gfloat import RoundMode, encode_float, formats, round_float
    fi, out = formats.format_info_ocp_e2m1, {}
    modes = dict(src=RoundMode.Stochastic, odd=RoundMode.StochasticOdd, fast=RoundMode.StochasticFast, fastest=RoundMode.StochasticFastest)
    for n in (1, 2, 4, 8, 16):
        bits = out[f"bits{n}"] = rng.integers(0, 1 << n, x.size).astype(np.uint16)
        for name, mode in modes.items():
            out[name + str(n)] = np.array([encode_float(fi, round_float(fi, float(v), mode, True, int(b), n)) for v, b in zip(x, bits)], np.uint8)
    return "data.", "gfloat", out


def casts(seed):
    """(file, its tensors, version) of each library that is there; a line for one that is not."""
    rng = np.random.default_rng(seed)
    wide = np.concatenate([heavy(rng, 100000), ulps(rng.normal(size=50000), 0), np.array([0, -0.0, np.inf, -np.inf, np.nan, -np.nan], np.float32),
                           rng.integers(0, 2**32, 50000).astype(np.uint32).view(np.float32)])
    near = np.concatenate([rng.uniform(-7, 7, 2048), rng.integers(-24, 25, 1024) / 4, rng.normal(size=1024) * 2.0**rng.integers(-20, 4, 1024)]).astype(np.float32)
    for name, cast, x in (("torch", cast_torch, wide), ("ml_dtypes", cast_ml_dtypes, wide), ("gfloat-sr", cast_gfloat, near)):
        try:
            prefix, package, arrays = cast(x, rng)
        except ImportError as e:
            print(f"skipped {name}: {e}", flush=True)
            continue
        yield name, {prefix + "x": x, **{prefix + k: a for k, a in arrays.items()}}, importlib.metadata.version(package).split("+")[0]


# ---- what the libraries' own dequantisation makes of NVFP4 under a tensor scale: each returns the values of x ----
def values_torchao(x):
    import torch
    from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor, per_tensor_amax_to_scale
    t = torch.from_numpy(x)
    q = NVFP4Tensor.to_nvfp4(t, per_tensor_scale=per_tensor_amax_to_scale(t.abs().max()), is_swizzled_scales=False)
    return q.dequantize(torch.float32).numpy()


def values_modelopt(x):
    import torch
    from modelopt.torch.quantization.qtensor import NVFP4QTensor
    q, s, g = NVFP4QTensor.quantize(torch.from_numpy(x), 16)
    return q.dequantize(dtype=torch.float32, scale=s, double_scale=g, block_sizes={-1: 16}).numpy()


def values_ct(x):
    import torch
    from compressed_tensors.quantization import QuantizationArgs
    from compressed_tensors.quantization.lifecycle.forward import fake_quantize
    from compressed_tensors.quantization.utils import compute_dynamic_scales_and_zp, generate_gparam
    args = QuantizationArgs(num_bits=4, type="float", symmetric=True, strategy="tensor_group", group_size=16, scale_dtype=torch.float8_e4m3fn,
                            zp_dtype=torch.float8_e4m3fn)
    t = torch.from_numpy(x)
    g = generate_gparam(t.min(), t.max())
    s, _ = compute_dynamic_scales_and_zp(t, args, None, g)
    return fake_quantize(t, s.to(torch.float32), torch.zeros(1), args, global_scale=g).numpy()


def values_quark(x):
    import torch
    from quark.torch import ModelQuantizer
    from quark.torch.quantization.config.config import QConfig, QLayerConfig
    from quark.torch.quantization.config.template import FP4Block16ScaleE4M3Scheme
    model = torch.nn.Sequential(torch.nn.Linear(x.shape[1], x.shape[0], bias=False))
    model[0].weight.data = torch.from_numpy(x)
    logging.disable(logging.INFO)
    with open(os.devnull, "w") as quiet, contextlib.redirect_stderr(quiet):
        model = ModelQuantizer(QConfig(global_quant_config=QLayerConfig(weight=FP4Block16ScaleE4M3Scheme().config.weight))).quantize_model(model)
    return model[0]._weight_quantizer(model[0].weight.data).detach().numpy()


def values_mlx(x):
    import mlx.core as mx
    how = dict(group_size=16, bits=4, mode="nvfp4", global_scale=mx.array(np.abs(x).max()), stream=mx.cpu)
    q, s = mx.quantize(mx.array(x), **how)
    return np.array(mx.dequantize(q, s, dtype=mx.float32, **how))


VALUES = [("torchao-nvfp4-2level", values_torchao, "torchao", "NVFP4Tensor.dequantize"), ("modelopt-nvfp4", values_modelopt, "nvidia-modelopt", "NVFP4QTensor.dequantize"),
          ("ct-nvfp4", values_ct, "compressed-tensors", "fake_quantize"), ("quark-nvfp4", values_quark, "amd-quark", "the frozen quantiser of FP4Block16ScaleE4M3Scheme"),
          ("mlx-nvfp4-gs", values_mlx, "mlx", "mx.dequantize, CPU")]


def values(seed, rows=6, cols=96):
    """PRESET.x and PRESET.values of each library that is there, and what they are of."""
    tensors, meta = {}, {}
    pins = {package: pin for _, package, pin in LIBRARIES}
    for preset, run, package, notes in VALUES:
        rng = np.random.default_rng([seed, *preset.encode()])
        x = (rng.normal(size=(rows, cols)) * 2.0**rng.integers(-3, 3, (rows, 1))).astype(np.float32)
        try:
            version = importlib.metadata.version(package)
            if version != pins[package]:
                raise ImportError(f"version {version}, want {pins[package]}")
            y = run(x.copy())
        except ImportError as e:
            print(f"skipped values of {package}: {e}", flush=True)
            continue
        tensors.update({preset + ".x": x, preset + ".values": np.asarray(y, np.float32)})
        meta[preset] = json.dumps(dict(peer=package, version=version, preset=preset, notes=notes))
    return tensors, meta


LIBRARIES = [(torchao, "torchao", "0.18.0"), (compressed_tensors, "compressed-tensors", "0.20.0"), (modelopt, "nvidia-modelopt", "0.47.0"),
             (autoround, "auto-round", "0.16.1"), (gfloat, "gfloat", "0.5.2"), (quark, "amd-quark", "0.13"), (mlx, "mlx", "0.32.4")]


# ---- inputs ----
def ulps(a, n):
    """a moved by n units in the last place, sign kept, never past zero or FLT_MAX."""
    b = np.asarray(a, np.float32).view(np.int32)
    return ((b & -0x80000000) | np.clip((b & 0x7FFFFFFF).astype(np.int64) + n, 0, 0x7F7FFFFF)).astype(np.int32).view(np.float32)


def heavy(rng, shape):
    return (rng.integers(0, 0x7F800000, shape).astype(np.uint32) | rng.integers(0, 2, shape).astype(np.uint32) << 31).view(np.float32)


def with_amax(rng, amax):
    """Blocks of 32 whose largest magnitude is amax (any shape), at a random place; the rest is smaller, over many binades."""
    amax = np.asarray(amax, np.float32).ravel()
    b = (rng.uniform(-1, 1, (amax.size, 32)) * 2.0**-rng.integers(0, 12, (amax.size, 32)) * amax[:, None].astype(np.float64)).astype(np.float32)
    b[rng.random(b.shape) < .05] = 0
    b[rng.random(b.shape) < .05] *= -0.0
    b[np.arange(amax.size), rng.integers(0, 32, amax.size)] = amax * rng.choice([-1, 1], amax.size)
    return b


def rows(b, width):
    """Blocks to whole rows of width, zeros behind."""
    flat = b.ravel()
    return np.pad(flat, (0, -flat.size % width)).reshape(-1, width).astype(np.float32)


def boundary(rng, n, elem, scale):
    """Amax at the steps of every scale rule: max*2^k, 2^k, 7.25*2^k, the carries of `even`; for value scales their midpoints; a few ulps around."""
    k = rng.integers(-149, 128, n)
    m = rng.choice([1, 1.5, 1.75, 1.875, 1.9375, 1.96875, 7.25, FORMATS[elem][2]], n)
    a = np.minimum(np.ldexp(m, np.where(m < 2, k, k - int(np.log2(m.max())))), F32MAX)
    if scale != "e8m0":
        g = grid(scale)
        mid = (g[1:] + g[:-1]) / 2
        a[::2] = 6 * rng.choice(np.concatenate([g, mid]), a[::2].size)
    return ulps(a, rng.integers(-3, 4, n))


def special(rng, width):
    tiny = np.float32(2.0**-149)
    pool = [np.zeros(width), np.full(width, -0.0), rng.choice([0.0, -0.0], width), rng.integers(-9, 9, width) * tiny, rng.integers(-2**23, 2**23, width) * tiny,
            rng.choice([F32MAX, -F32MAX, 1e38], width), rng.choice([F32MAX, tiny, -tiny, 0.0, 1.0], width), rng.choice([2.0**-126, -2.0**-127, 2.0**-125, 0.0], width)]
    one = [np.where(np.arange(width) % 32 == rng.integers(32), v, 0.0) for v in (1.0, -1.0, tiny, -tiny, F32MAX, 2.0**-126, 2.0**127)]
    return np.array(pool + one, np.float32)


def ties(rng, run, n, width, elem, scale, block):
    """Two passes: quantise blocks of known amax, then put elements on midpoints of the scale that came out, within one ulp."""
    x = rows(with_amax(rng, np.abs(rng.normal(size=n)).astype(np.float32) * 2.0**rng.integers(-3, 4, n)), width)
    r = run(x.copy())
    s = r[1].astype(np.int64)
    if scale == "e8m0":
        s = 2.0**(s - 127.0)
    else:
        g = np.append(grid(scale), [0.0] * 256)
        s = g[s]
        if len(r) > 2:
            t = np.float64(np.ravel(r[2])[0])
            s = s * t if t < 1 else s / t
    g = grid(elem)
    mid = rng.choice((g[1:] + g[:-1]) / 2, x.shape) * rng.choice([-1, 1], x.shape)
    v = ulps((mid * np.repeat(s, block, 1)).astype(np.float32), rng.integers(-1, 2, x.shape))
    top = np.repeat(np.abs(x).reshape(x.shape[0], -1, block).max(-1), block, 1)
    return np.where((np.abs(x) == top) | (np.abs(v) > top), x, v).astype(np.float32)


def suites(rng, run, n, elem, scale, block, tensor):
    w = 8 * block
    yield "randn", rng.normal(size=(n, w)).astype(np.float32)
    yield "heavy", heavy(rng, (n, w))
    yield "boundary", rows(with_amax(rng, boundary(rng, 8 * n, elem, scale)), w)
    yield "special", special(rng, w)
    x = np.ldexp(rng.normal(size=(n, w)), rng.choice([-60, 0, 0, 18, 100], (n, 1))).astype(np.float32)    # a byte for NaN is a scale that others meet
    x[rng.random(x.shape) < .02] = np.inf
    x[rng.random(x.shape) < .01] = -np.inf
    x[rng.random(x.shape) < .01] = np.nan
    yield "nonfinite", x
    yield "ties", ties(rng, run, 8 * n, w, elem, scale, block)
    for name, a in dict(tmax0=0.0, tmaxmin=2.0**-149, tmaxsub=2.0**-130, tmaxlow=7.9e-36, tmax1=1.0, tmax448=448.0, tmax2688=2688.0, tmaxflt=F32MAX, tmaxinf=np.inf).items() if tensor else ():
        with_a = rows(with_amax(rng, min(a, F32MAX) * rng.uniform(0, 1, 4 * n)), w)
        with_a[0, 3] = a
        with_a[-1, :] *= 0
        yield name, with_a
    for name, shape in dict(row=(1, block), odd=(7, 6 * block)).items():
        yield name, rng.normal(size=shape).astype(np.float32)
    e = rng.integers(-149, 127, (n, 8))
    one = np.minimum(np.ldexp(rng.choice([1, 1.125, 1.5, 1.75, 1 + 2.0**-23, 2 - 2.0**-23], e.shape), e), F32MAX).astype(np.float32)
    yield "constant", one.repeat(block, 1) * rng.choice([-1, 1], (n, w)).astype(np.float32)
    yield "subnormal", rng.integers(0, 2**23, (n, w)).astype(np.uint32).view(np.float32) * rng.choice([-1, 1], (n, w)).astype(np.float32)
    yield "binade", ulps(np.ldexp(1.0, rng.integers(-149, 128, (n, 8))), rng.integers(-2, 3, (n, 8))).repeat(block, 1) * rng.choice(
        [1, -1, .5, .75, -.25, .125, 0], (n, w)).astype(np.float32)
    x = rng.integers(0, 2**32, (n, w)).astype(np.uint32).view(np.float32)
    yield "bits", np.where(np.isnan(x), np.float32(np.nan), x)               # what a NaN's payload becomes is in tests/peers/peers.md
    for name, v in dict(nan1=np.nan, inf1=np.inf, ninf1=-np.inf).items():
        x = rng.normal(size=(n, w)).astype(np.float32)
        x[rng.integers(n), rng.integers(w)] = v
        yield name, x


def write(path, tensors, meta):
    dtype, head, off = {"float32": "F32", "uint8": "U8", "uint16": "U16"}, {"__metadata__": meta}, 0
    for k, a in tensors.items():
        head[k] = dict(dtype=dtype[a.dtype.name], shape=list(a.shape), data_offsets=[off, off + a.nbytes])
        off += a.nbytes
    j = json.dumps(head).encode()
    j += b" " * (-len(j) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(j)) + j + b"".join(np.ascontiguousarray(a).tobytes() for a in tensors.values()))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--out", required=True)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--rows", type=int, default=16)
    ap.add_argument("prefix", nargs="*")
    opt = ap.parse_args()
    os.makedirs(opt.out, exist_ok=True)
    count = 0
    for library, package, pin in LIBRARIES:
        try:
            version = importlib.metadata.version(package)
            if version != pin:
                raise ImportError(f"version {version}, want {pin}")
            presets = list(library())
        except ImportError as e:
            print(f"skipped {package} {pin}: {e}", flush=True)
            continue
        for preset, elem, scale, notes, run in presets:
            if opt.prefix and not preset.startswith(tuple(opt.prefix)):
                continue
            rng = np.random.default_rng([opt.seed, *preset.encode()])
            block = 32 if scale == "e8m0" else 16
            tensors, meta = {}, {}
            for suite, x in suites(rng, run, opt.rows, elem, scale, block, "nvfp4" in preset and preset != "torchao-nvfp4" or "2level" in preset):
                if package == "auto-round" and not np.isfinite(x).all():
                    continue                             # its exponents are NaN there: no bytes
                try:
                    codes, scales, *ts = run(x)          # may zero blocks of x
                except ValueError as e:
                    print(f"{preset} {suite}: raised {e}", flush=True)
                    continue
                tensors.update({suite + ".x": x, suite + ".codes": codes, suite + ".scales": scales})
                if ts:
                    tensors[suite + ".tensor_scale"] = np.asarray(ts[0], np.float32).reshape(1)
                meta[suite] = json.dumps(dict(peer=package, version=version, preset=preset, suite=suite, elem=elem, scale=scale, block=block, notes=notes))
            write(f"{opt.out}/{preset}.safetensors", tensors, meta)
            print(f"{preset}: {', '.join(meta)}", flush=True)
            count += 1
    if not opt.prefix or "values" in opt.prefix:
        tensors, meta = values(opt.seed)
        if tensors:
            write(f"{opt.out}/values.safetensors", tensors, meta)
            print(f"values: {', '.join(meta)}", flush=True)
            count += 1
    for name, tensors, version in casts(opt.seed) if not opt.prefix else ():
        write(f"{opt.out}/{name}.safetensors", tensors, {"casts": json.dumps(dict(peer=name, version=version))})
        print(f"{name}: {', '.join(tensors)}", flush=True)
    return count == 0


if __name__ == "__main__":
    sys.exit(main())
