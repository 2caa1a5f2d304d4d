#!/usr/bin/env python3
"""Compares `mxgold train` with PyTorch: losses and gradients from the same weights, and the seconds of a step.

    bench/torch_train.py check  MXGOLD CONFIG.json [--steps 10]   random weights; losses and gradients of both, PyTorch in float64
    bench/torch_train.py state  MXGOLD CONFIG.json STATE.safetensors [--steps 10]
                                                                  write such a case, PyTorch's side alone, for tests/lib/torch_state.py
    bench/torch_train.py linear MXGOLD                            the six operands and three products of one linear of a PyTorch model under MXFP4
    bench/torch_train.py time   MXGOLD [CASE...] [--rounds 5]     seconds of a step in turn: mxgold FP32 and MXFP4, PyTorch FP32 and fake-quantised

Needs torch, numpy and safetensors, and for one arm of `time` microxcaling (the package mx; its folder on PYTHONPATH is enough); two threads for both sides unless --threads says otherwise, and with one thread its processor time. Exit 1 if something differs by more than it may."""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

try:
    import mx as microxcaling
except ImportError:
    microxcaling = None

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import torch_models as models  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
TEXT = os.path.join(HERE, "..", "configs", "data", "tinyshakespeare.txt")
# The largest relative difference that is taken for rounding: a loss, and a gradient's norm of the difference over its norm.
LOSS_LIMIT, GRADIENT_LIMIT = 1e-5, 1e-5


def run(mxgold, config, out, *more, core=""):
    environment = dict(os.environ, OPENBLAS_CORETYPE=core) if core else None
    subprocess.run([mxgold, "train", config, "-o", out, *more], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    with open(os.path.join(out, "metrics.jsonl")) as f:
        return [json.loads(line)["loss"] for line in f]


def read_config(path):
    with open(path) as f:
        cfg = json.load(f)
    if "text" in cfg["data"]:
        cfg["data"]["text"] = os.path.join(os.path.dirname(os.path.abspath(path)), cfg["data"]["text"])
    return cfg


def text_of(cfg):
    with open(cfg["data"]["text"], "rb") as f:
        return models.tokens_of(f.read(), cfg["data"].get("tokens", "bytes"))


def write_json(path, cfg):
    with open(path, "w") as f:
        json.dump(cfg, f)


def without_key_bias(name, g):
    """The gradient of a key's bias is zero but for rounding."""
    if name.endswith("attn.c_attn.bias"):
        C = len(g) // 3
        return np.concatenate([g[:C], g[2 * C :]])
    return g


def torch_run(cfg, init, steps):
    """Ten losses and the last gradients, in float64."""
    p = {k: torch.tensor(v, dtype=torch.float64, requires_grad=True) for k, v in init.items()}
    text, opt, losses = text_of(cfg), None, []
    opt = models.optimizer_of(cfg, p)
    clip = cfg["optimizer"].get("clip", 0)
    for s in range(steps):
        opt.zero_grad()
        loss = models.loss_of(cfg, p, *models.batch(cfg, text, s))
        loss.backward()
        losses.append(loss.item())
        gradients = {k: t.grad.numpy().copy() for k, t in p.items()}
        if clip:
            torch.nn.utils.clip_grad_norm_(list(p.values()), clip)
        for group in opt.param_groups:
            group["lr"] = models.rate_of(cfg, s + 1, steps)
        opt.step()
    return losses, gradients


def random_weights(mxgold, cfg, folder, scale=1.0):
    """The program's own initial weights, spread with numpy: biases and gains that are not 0 and 1, so that a mistake in them shows."""
    one = dict(cfg, train=dict(cfg["train"], steps=1, eval_batches=0), optimizer=dict(cfg["optimizer"], lr=0, weight_decay=0))
    one.pop("quant", None)
    write_json(os.path.join(folder, "one.json"), one)
    run(mxgold, os.path.join(folder, "one.json"), os.path.join(folder, "one"))
    rng = np.random.default_rng(5)
    weights = load_file(os.path.join(folder, "one", "model.safetensors"))
    return {k: (v + 0.05 * scale * rng.standard_normal(v.shape)).astype(np.float32) for k, v in weights.items()}


def compare(cfg, losses, gradients, ours, our_gradients):
    worst_loss = max(abs(a - b) / abs(b) for a, b in zip(ours, losses))
    print(f"{cfg['model']['kind']:10} largest relative difference of {len(losses)} losses {worst_loss:.2g}")
    worst, name = 0, ""
    for k, g in gradients.items():
        a, b = without_key_bias(k, our_gradients[k].astype(np.float64)), without_key_bias(k, g)
        d = np.linalg.norm(a - b) / max(np.linalg.norm(b), 1e-300)
        if d > worst:
            worst, name = d, k
    print(f"{'':10} largest of a gradient {worst:.2g} ({name}, of {len(gradients)})")
    return worst_loss <= LOSS_LIMIT and worst <= GRADIENT_LIMIT


def prepared(cfg, steps):
    cfg["data"]["order"] = "sequential"
    cfg["train"].update(steps=steps, eval_batches=0)
    cfg.pop("quant", None)
    return cfg


def check(args):
    cfg = prepared(read_config(args.config), args.steps)
    with tempfile.TemporaryDirectory() as folder:
        init = random_weights(args.mxgold, cfg, folder)
        save_file(init, os.path.join(folder, "init.safetensors"))
        write_json(os.path.join(folder, "config.json"), cfg)
        ours = run(args.mxgold, os.path.join(folder, "config.json"), os.path.join(folder, "run"), "--init",
                   os.path.join(folder, "init.safetensors"), "--gradients", os.path.join(folder, "g.safetensors"))
        losses, gradients = torch_run(cfg, init, args.steps)
        return compare(cfg, losses, gradients, ours, load_file(os.path.join(folder, "g.safetensors")))


def state(args):
    cfg = prepared(read_config(args.config), args.steps)
    with tempfile.TemporaryDirectory() as folder:
        init = random_weights(args.mxgold, cfg, folder)
    losses, gradients = torch_run(cfg, init, args.steps)
    cfg["data"]["text"] = os.path.basename(cfg["data"]["text"])
    tensors = {f"init.{k}": v for k, v in init.items()}
    tensors.update({f"gradient.{k}": v.astype(np.float32) for k, v in gradients.items()})
    save_file(tensors, args.state, {"config": json.dumps(cfg), "losses": json.dumps(losses), "torch": torch.__version__})
    print(f"{args.state}: {os.path.getsize(args.state)} bytes")
    return True


# ---- a quantised linear, from its definition ----

GRID = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])


def mxfp4(x):
    """Rows of x in blocks of 32, OCP's floor rule, ties to even: codes, scale bytes, values."""
    rows, cols = x.shape
    blocks = x.astype(np.float64).reshape(rows, cols // 32, 32)
    amax = np.abs(blocks).max(-1)
    exponent = np.where(amax > 0, np.floor(np.log2(np.where(amax > 0, amax, 1))) - 2, -127).clip(-127, 127)
    y = np.abs(blocks) / np.exp2(exponent)[..., None]
    index = np.zeros(y.shape, np.uint8)
    for i in range(7):  # past the midpoint, or on it where the lower code is odd
        middle = (GRID[i] + GRID[i + 1]) / 2
        index += ((y > middle) | ((y == middle) & (i % 2 == 1))).astype(np.uint8)
    values = np.copysign(GRID[index], blocks) * np.exp2(exponent)[..., None]
    codes = index | (np.signbit(blocks).astype(np.uint8) << 3)
    return codes.reshape(rows, cols), (exponent + 127).astype(np.uint8), values.reshape(rows, cols)


def f32_block(a, b):
    """a [M][K], b [N][K] -> [M][N]: each block of 32 exactly, rounded to float32, added to the sum so far in float32, k ascending."""
    total = np.zeros((a.shape[0], b.shape[0]), np.float32)
    for k in range(0, a.shape[1], 32):
        total += (a[:, k : k + 32] @ b[:, k : k + 32].T).astype(np.float32)
    return total


def linear(args):
    """The x, W and dy of a linear in a PyTorch model go through `mxgold linear`; the definition above must give the same bits."""
    cfg = {"model": dict(kind="llama", width=64, layers=1, heads=2, ffn=96, context=32),
           "data": dict(text=TEXT, split=0.9), "train": dict(batch=2, steps=1)}
    torch.manual_seed(3)
    C, Fw = 64, 96
    p = {"model.embed_tokens.weight": torch.randn(256, C), "model.norm.weight": torch.ones(C), "lm_head.weight": torch.randn(256, C) * 0.1}
    for name, shape in {"input_layernorm": (C,), "post_attention_layernorm": (C,), "self_attn.q_proj": (C, C), "self_attn.k_proj": (C, C),
                        "self_attn.v_proj": (C, C), "self_attn.o_proj": (C, C), "mlp.gate_proj": (Fw, C), "mlp.up_proj": (Fw, C),
                        "mlp.down_proj": (C, Fw)}.items():
        p[f"model.layers.0.{name}.weight"] = torch.ones(C) if len(shape) == 1 else torch.randn(*shape) * shape[1] ** -0.5
    seen = {}

    def spy(name, x, w, b=None):
        y = models.plain(name, x, w, b)
        y.register_hook(lambda g: seen.__setitem__(name, (x.detach().flatten(0, -2).numpy(), w.detach().numpy(), g.flatten(0, -2).numpy())))
        return y

    for t in p.values():
        t.requires_grad_(True)
    models.loss_of(cfg, p, *models.batch(cfg, text_of(cfg), 0), linear=spy).backward()
    wrong = compared = 0
    for name, (x, w, dy) in seen.items():
        with tempfile.TemporaryDirectory() as folder:
            paths = [os.path.join(folder, f"{n}.npy") for n in ("x", "w", "dy")]
            for path, array in zip(paths, (x, w, dy)):
                np.save(path, np.ascontiguousarray(array, np.float32))
            out = os.path.join(folder, "out.safetensors")
            subprocess.run([args.mxgold, "linear", *paths, "--recipe", "recipe-ocp", "--accum", "f32_block", "-o", out], check=True,
                           stdout=subprocess.DEVNULL)
            with safe_open(out, "numpy") as f:
                got = {k: f.get_tensor(k) for k in f.keys()}
        operands = [x, w, dy, w.T, dy.T, x.T]
        q = [mxfp4(np.ascontiguousarray(o)) for o in operands]
        for i, (codes, scales, _) in enumerate(q):
            stored = got[f"q{i + 1}.codes"]
            mine = codes[:, 0::2] | (codes[:, 1::2] << 4)
            wrong += int((stored != mine).sum()) + int((got[f"q{i + 1}.scales"] != scales).sum())
            compared += stored.size + scales.size
        for key, a, b in (("y", 0, 1), ("dx", 2, 3), ("dw", 4, 5)):
            d = f32_block(q[a][2], q[b][2])
            wrong += int((got[key].view(np.uint32) != d.view(np.uint32)).sum())
            compared += d.size
    print(f"linear     {len(seen)} linears of a llama, {compared} bytes of operands and products, {wrong} differ")
    return wrong == 0


# ---- seconds of a step ----

CASES = {
    "byte_mlp": {"model": dict(kind="byte_mlp", width=256, context=16), "data": dict(text=TEXT, split=0.95, tokens="top95"),
                 "train": dict(batch=512, seed=1), "optimizer": dict(kind="adam", lr=2e-3)},
    "gpt2": {"model": dict(kind="gpt2", width=128, layers=4, heads=4, context=64), "data": dict(text=TEXT, split=0.9),
             "train": dict(batch=12, seed=1), "optimizer": dict(kind="adamw", lr=1e-3, beta2=0.99, weight_decay=0.1, clip=1)},
    "llama": {"model": dict(kind="llama", width=256, layers=4, heads=4, ffn=704, context=128), "data": dict(text=TEXT, split=0.9),
              "train": dict(batch=32, seed=1), "optimizer": dict(kind="adamw", lr=1e-3, beta2=0.95, weight_decay=0.1, clip=1)},
}
CORES = ["", "Haswell", "Zen", "SkylakeX"]
STEPS = {"byte_mlp": 60, "gpt2": 20, "llama": 3}
ARMS = {"mxgold FP32": None, "mxgold FP32 OpenBLAS": None, "mxgold MXFP4": {"recipe": "recipe-ocp", "accum": "f32_block"},
        "mxgold MXFP4 H16": {"recipe": "recipe-ocp", "set": ["had.size=16"], "accum": "f32_block"},
        "mxgold recipe-nvfp4": {"recipe": "recipe-nvfp4", "accum": "f32_block"}}


class FakeQuantised(torch.autograd.Function):
    """What a user writes in PyTorch: MXFP4 by tensor operations on each of the six operands, and matmul."""

    @staticmethod
    def quantise(x):
        shape = x.shape
        b = torch.nn.functional.pad(x, (0, -shape[-1] % 32)).unflatten(-1, (-1, 32))
        scale = torch.exp2(torch.floor(torch.log2(b.abs().amax(-1, keepdim=True).clamp_min(2.0**-126))) - 2)
        y = b / scale
        a = y.abs().clamp(max=6)
        step = torch.where(a < 2, 0.5, torch.where(a < 4, 1.0, 2.0))
        q = torch.round(a / step) * step
        return (torch.copysign(q, y) * scale).flatten(-2)[..., : shape[-1]]

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return FakeQuantised.quantise(x) @ FakeQuantised.quantise(w).T

    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensors
        q = FakeQuantised.quantise
        flat, xf = dy.flatten(0, -2), x.flatten(0, -2)
        return q(dy) @ q(w.T.contiguous()).T, q(flat.T.contiguous()) @ q(xf.T.contiguous()).T


def fake(name, x, w, b=None):
    y = FakeQuantised.apply(x, w)
    return y if b is None else y + b


def microxcaling_linear():
    """What mx.Linear calls, with its quantiser of torch operations: E2M1 in blocks of 32 under E8M0 in all three products, nothing rounded to bfloat16."""
    specs = dict(scale_bits=8, w_elem_format="fp4_e2m1", a_elem_format="fp4_e2m1", block_size=32, bfloat=0, round="even", custom_cuda=False)
    specs = microxcaling.finalize_mx_specs(specs)
    return lambda name, x, w, b=None: microxcaling.linear(x, w, b, mx_specs=specs)


def torch_stepper(cfg, init, linear):
    p = {k: torch.tensor(v, requires_grad=True) for k, v in init.items()}
    text, opt = text_of(cfg), models.optimizer_of(cfg, p)
    clip = cfg["optimizer"].get("clip", 0)

    def step(s):
        opt.zero_grad(set_to_none=True)
        models.loss_of(cfg, p, *models.batch(cfg, text, s), linear=linear).backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(list(p.values()), clip)
        opt.step()

    return step


def clock(threads):
    """Seconds; of one thread its processor time, which other programs hardly change."""
    if threads > 1:
        return time.perf_counter()
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def timed(args):
    torch.set_num_threads(args.threads)
    how = f"{args.threads} threads" if args.threads > 1 else "processor time of one thread"
    print(f"torch {torch.__version__}, {how}, median of {args.rounds} rounds in turn, milliseconds of a step and over PyTorch's FP32")
    for name in args.cases or CASES:
        cfg, steps = CASES[name], STEPS[name]
        with tempfile.TemporaryDirectory() as folder:
            cfg = dict(cfg, train=dict(cfg["train"], steps=1, eval_batches=0))
            cfg["data"]["order"] = "sequential"
            init = random_weights(args.mxgold, cfg, folder, 0.1)
            torch_arms = {"PyTorch FP32": models.plain, "PyTorch fake-quantised": fake}
            if microxcaling:
                torch_arms["PyTorch microxcaling"] = microxcaling_linear()
            steppers = {k: torch_stepper(cfg, init, f) for k, f in torch_arms.items()}
            for stepper in steppers.values():
                stepper(0)
            ours = {}
            for arm, quant in ARMS.items():
                ours[arm] = os.path.join(folder, arm.replace(" ", "_") + ".json")
                write_json(ours[arm], dict(cfg, quant=quant) if quant else cfg)
            seconds = {k: [] for k in [*ARMS, *torch_arms]}

            def whole(arm, n, core=""):
                begin = clock(args.threads)
                more = ["--set", "gemm.fp32=openblas"] if "OpenBLAS" in arm else []
                run(args.mxgold, ours[arm], os.path.join(folder, "run"), "--set", f"train.steps={n}", "--threads", str(args.threads), *more, core=core)
                return clock(args.threads) - begin

            # Old versions choose slow kernels on processors that they do not know: the best of those that run here.
            cores = {c: whole("mxgold FP32 OpenBLAS", 1 + steps, c) for c in CORES}
            best = min(cores, key=cores.get)
            for _ in range(args.rounds):
                for arm in ARMS:
                    core = best if "OpenBLAS" in arm else ""
                    seconds[arm].append((whole(arm, 1 + steps, core) - whole(arm, 1, core)) / steps)
                for arm, stepper in steppers.items():
                    n = steps if arm == "PyTorch FP32" else max(1, steps // 3)
                    begin = clock(args.threads)
                    for s in range(n):
                        stepper(s)
                    seconds[arm].append((clock(args.threads) - begin) / n)
        base = statistics.median(seconds["PyTorch FP32"])
        for arm, values in seconds.items():
            m = statistics.median(values)
            print(f"{name:10} {arm:24} {m * 1e3:9.2f} {m / base:7.2f}{'  ' + (best or 'default') if 'OpenBLAS' in arm else ''}", flush=True)
        if not microxcaling:
            print(f"{name:10} {'PyTorch microxcaling':24} not installed")
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sub = parser.add_subparsers(dest="command", required=True)
    for name, call in {"check": check, "state": state, "linear": linear, "time": timed}.items():
        one = sub.add_parser(name)
        one.set_defaults(call=call)
        one.add_argument("mxgold")
        if name in ("check", "state"):
            one.add_argument("config")
            one.add_argument("--steps", type=int, default=10)
        if name == "state":
            one.add_argument("state")
        if name == "time":
            one.add_argument("cases", nargs="*")
            one.add_argument("--rounds", type=int, default=5)
            one.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    sys.exit(0 if args.call(args) else 1)


main()
