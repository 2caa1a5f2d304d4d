#!/usr/bin/env python3
"""Holds `mxgold train` to PyTorch's losses and gradients in float64 from the same weights.

    torch_state.py MXGOLD STATE.safetensors...

A state is one file that `bench/torch_train.py state` wrote: the configuration, initial weights (init.*), ten losses, and the gradients of the last step
(gradient.*). Losses must agree within 1e-5 relative, and of each gradient the norm of the difference within 1e-5 of its norm; the biases of keys, whose
gradient is zero but for rounding, are left out. Standard library alone."""

import array
import json
import math
import os
import struct
import subprocess
import sys
import tempfile

LIMIT = 1e-5
DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "configs", "data")


def read(path):
    with open(path, "rb") as f:
        size = struct.unpack("<Q", f.read(8))[0]
        header = json.loads(f.read(size))
        data = f.read()
    meta = header.pop("__metadata__", {})
    tensors = {}
    for name, t in header.items():
        values = array.array("f")
        values.frombytes(data[slice(*t["data_offsets"])])
        tensors[name] = (t["shape"], values)
    return meta, tensors


def write(path, tensors):
    header, parts, at = {}, [], 0
    for name, (shape, values) in tensors.items():
        raw = values.tobytes()
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + len(raw)]}
        parts.append(raw)
        at += len(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(parts))


def without_key_bias(name, values):
    if not name.endswith("attn.c_attn.bias"):
        return values
    width = len(values) // 3
    return values[:width] + values[2 * width :]


def apart(name, ours, theirs):
    """Norm of the difference over the norm."""
    a, b = without_key_bias(name, ours), without_key_bias(name, theirs)
    norm = math.sqrt(math.fsum(y * y for y in b))
    return math.sqrt(math.fsum((x - y) ** 2 for x, y in zip(a, b))) / norm if norm else float("inf")


def hold(mxgold, path):
    meta, tensors = read(path)
    config, losses = json.loads(meta["config"]), json.loads(meta["losses"])
    config["data"]["text"] = os.path.join(DATA, config["data"]["text"])
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        at = lambda name: os.path.join(folder, name)
        with open(at("config.json"), "w") as f:
            json.dump(config, f)
        write(at("init.safetensors"), {k[5:]: t for k, t in tensors.items() if k.startswith("init.")})
        subprocess.run([mxgold, "train", at("config.json"), "-o", at("run"), "--init", at("init.safetensors"), "--gradients", at("g.safetensors")],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(at("run/metrics.jsonl")) as f:
            ours = [json.loads(line)["loss"] for line in f]
        _, got = read(at("g.safetensors"))
    if len(ours) != len(losses):
        wrong.append(f"{len(ours)} losses, expected {len(losses)}")
    worst_loss = max(abs(a - b) / abs(b) for a, b in zip(ours, losses))
    distances = {k[9:]: apart(k[9:], got[k[9:]][1], t[1]) for k, t in tensors.items() if k.startswith("gradient.")}
    worst = max(distances, key=distances.get)
    if not worst_loss <= LIMIT:
        wrong.append(f"a loss differs by {worst_loss:.2g}, expected at most {LIMIT}")
    wrong += [f"gradient of {k} differs by {d:.2g}, expected at most {LIMIT}" for k, d in distances.items() if not d <= LIMIT]
    name = os.path.basename(path)
    print(f"{name}: {len(losses)} losses of PyTorch {meta['torch']} within {worst_loss:.1e}, {len(distances)} gradients within {distances[worst]:.1e} ({worst})")
    for line in wrong:
        print(f"{name}: {line}", file=sys.stderr)
    return not wrong


if len(sys.argv) < 3:
    sys.exit(__doc__)
sys.exit(0 if all([hold(sys.argv[1], path) for path in sys.argv[2:]]) else 1)
