"""Defines the models of `mxgold train` in PyTorch, under the same parameter names, so that both can start from one file.

A model is a function of (parameters, tokens) -> logits; parameters are a dict of tensors named as in model.safetensors, matrices [out, in]. `linear` is
called for every linear that mxgold quantises and may be replaced by one that quantises its operands."""

import math

import torch
import torch.nn.functional as F


def plain(name, x, w, b=None):
    return F.linear(x, w, b)


def llama(cfg, p, tokens, linear=plain):
    """tokens [B, T] -> logits [B, T, V]."""
    m = cfg["model"]
    B, T = tokens.shape
    C, H = m["width"], m["heads"]
    D = C // H
    dtype = p["model.norm.weight"].dtype
    angle = torch.arange(T, dtype=torch.float64)[:, None] * 10000.0 ** (-torch.arange(0, D, 2, dtype=torch.float64) / D)
    cos, sin = torch.cat([angle.cos()] * 2, -1).to(dtype), torch.cat([angle.sin()] * 2, -1).to(dtype)

    def norm(x, w):
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * w

    def rotate(x):
        half = torch.cat([-x[..., D // 2 :], x[..., : D // 2]], -1)
        return x * cos + half * sin

    x = p["model.embed_tokens.weight"][tokens]
    for i in range(m["layers"]):
        at = f"model.layers.{i}."
        n = norm(x, p[at + "input_layernorm.weight"])
        q, k, v = (
            linear(at + f"self_attn.{c}_proj", n, p[at + f"self_attn.{c}_proj.weight"]).view(B, T, H, D).transpose(1, 2)
            for c in "qkv"
        )
        y = F.scaled_dot_product_attention(rotate(q), rotate(k), v, is_causal=True)
        y = y.transpose(1, 2).reshape(B, T, C)
        x = x + linear(at + "self_attn.o_proj", y, p[at + "self_attn.o_proj.weight"])
        n = norm(x, p[at + "post_attention_layernorm.weight"])
        gate = linear(at + "mlp.gate_proj", n, p[at + "mlp.gate_proj.weight"])
        up = linear(at + "mlp.up_proj", n, p[at + "mlp.up_proj.weight"])
        x = x + linear(at + "mlp.down_proj", F.silu(gate) * up, p[at + "mlp.down_proj.weight"])
    x = norm(x, p["model.norm.weight"])
    return F.linear(x, p["lm_head.weight"] if "lm_head.weight" in p else p["model.embed_tokens.weight"])


def gpt2(cfg, p, tokens, linear=plain):
    """tokens [B, T] -> logits [B, T, V]."""
    m = cfg["model"]
    B, T = tokens.shape
    C, H = m["width"], m["heads"]
    act = {"gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "gelu_erf": F.gelu, "silu": F.silu}[m.get("act", "gelu_tanh")]

    def norm(x, at):
        return F.layer_norm(x, (C,), p[at + ".weight"], p.get(at + ".bias"), 1e-5)

    def lin(at, x):
        return linear(at, x, p[at + ".weight"], p.get(at + ".bias"))

    x = p["transformer.wte.weight"][tokens] + p["transformer.wpe.weight"][:T]
    for i in range(m["layers"]):
        at = f"transformer.h.{i}."
        q, k, v = (t.view(B, T, H, C // H).transpose(1, 2) for t in lin(at + "attn.c_attn", norm(x, at + "ln_1")).split(C, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(B, T, C)
        x = x + lin(at + "attn.c_proj", y)
        x = x + lin(at + "mlp.c_proj", act(lin(at + "mlp.c_fc", norm(x, at + "ln_2"))))
    x = norm(x, "transformer.ln_f")
    return F.linear(x, p["lm_head.weight"] if "lm_head.weight" in p else p["transformer.wte.weight"])


def byte_mlp(cfg, p, tokens, linear=plain):
    """tokens [B, context] -> logits [B, V], of the token that follows."""
    h = p["embed.weight"][tokens].flatten(1)
    for i in range(3):
        z = linear(f"linear.{i}", h, p[f"linear.{i}.weight"], p[f"linear.{i}.bias"])
        h = F.relu(z + h if i else z)
    return F.linear(h, p["out.weight"], p["out.bias"])


MODELS = {"llama": llama, "gpt2": gpt2, "byte_mlp": byte_mlp}


def loss_of(cfg, p, tokens, target, linear=plain):
    """Mean cross-entropy in nats over all targets."""
    logits = MODELS[cfg["model"]["kind"]](cfg, p, tokens, linear)
    return F.cross_entropy(logits.flatten(0, -2), target.flatten())


def batch(cfg, text, s):
    """Tokens and targets of step s with data.order=sequential. text: all tokens, an int64 tensor."""
    T, B = cfg["model"]["context"], cfg["train"]["batch"]
    n_train = int(cfg["data"]["split"] * len(text))
    rows = [((s * B + i) * T) % (n_train - T) for i in range(B)]
    tokens = torch.stack([text[r : r + T] for r in rows])
    if cfg["model"]["kind"] == "byte_mlp":
        return tokens, torch.stack([text[r + T] for r in rows])
    return tokens, torch.stack([text[r + 1 : r + T + 1] for r in rows])


def tokens_of(data, how):
    """All tokens of a text (bytes) under data.tokens."""
    if how == "bytes":
        return torch.tensor(list(data))
    count = [data.count(b) for b in range(256)]
    if how == "chars":
        order = [b for b in range(256) if count[b]]
        rest = 0
    else:
        order = sorted(range(256), key=lambda b: (-count[b], b))[:95]
        rest = 95
    token = [rest] * 256
    for i, b in enumerate(order):
        token[b] = i
    return torch.tensor([token[b] for b in data])


def optimizer_of(cfg, p):
    """PyTorch's optimiser of the configuration: weight decay on parameters of two dimensions alone."""
    o = cfg["optimizer"]
    decayed = [t for t in p.values() if t.dim() == 2]
    others = [t for t in p.values() if t.dim() != 2]
    groups = [{"params": decayed, "weight_decay": o.get("weight_decay", 0)}, {"params": others, "weight_decay": 0}]
    if o["kind"] == "sgd":
        return torch.optim.SGD(groups, lr=o["lr"], momentum=o.get("momentum", 0))
    kind = torch.optim.AdamW if o["kind"] == "adamw" else torch.optim.Adam
    return kind(groups, lr=o["lr"], betas=(o.get("beta1", 0.9), o.get("beta2", 0.999)), eps=o.get("eps", 1e-8))


def rate_of(cfg, t, steps):
    """Learning rate of step t, from 1."""
    s, lr = cfg.get("schedule", {}), cfg["optimizer"]["lr"]
    warm, low = s.get("warmup", 0), s.get("min_lr", 0)
    end = s.get("decay_steps", 0) or steps
    up = min(1, t / warm) if warm else 1
    if s.get("kind", "constant") == "constant":
        return lr * up
    if s["kind"] == "linear":
        return lr * up * (1 - t / steps) + low
    if t <= warm:
        return lr * up
    if t >= end:
        return low
    return low + 0.5 * (1 + math.cos(math.pi * (t - warm) / (end - warm))) * (lr - low)
