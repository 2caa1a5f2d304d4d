#!/usr/bin/env python3
"""Cuts MMA-Sim's outputs to the part that tests need: slice-mma-sim.py FOLDER OUT.safetensors

FOLDER holds ARCH_INSTRUCTION.safetensors (a, b, c, scale_a, scale_b, d: raw bits). No output depends on its neighbours, so 16 rows and 8 columns
of every tile stay, and no case is lost. Tensors are named MODEL.a and so on, MODEL as `mxgold mma --model` takes it."""
import glob, json, os, struct, sys

ARCH = {"AdaLovelace": "ada", "RTXBlackwell": "rtx_blackwell"}
ROWS = {"a": 16, "c": 16, "d": 16, "scale_a": 16, "b": 8, "scale_b": 8}


def cut(raw, shape, width, rows, columns):
    """The first rows and columns of each tile of a row-major [T, M, N] tensor."""
    t, m, n = shape
    keep_m, keep_n = min(m, rows), min(n, columns)
    lines = [raw[((i * m + j) * n) * width:((i * m + j) * n + keep_n) * width] for i in range(t) for j in range(keep_m)]
    return b"".join(lines), [t, keep_m, keep_n]


def main(folder, out):
    header, data, at = {}, [], 0
    for path in sorted(glob.glob(folder + "/*.safetensors")):
        arch, instruction = os.path.basename(path)[:-12].split("_", 1)
        model = ARCH.get(arch, arch.lower()) + "/" + instruction
        raw = open(path, "rb").read()
        n = struct.unpack("<Q", raw[:8])[0]
        h = json.loads(raw[8:8 + n])
        meta = json.loads(h.pop("__metadata__")["meta"])
        for name, v in h.items():
            begin, end = v["data_offsets"]
            part, shape = cut(raw[8 + n + begin:8 + n + end], v["shape"], int(v["dtype"][1:]) // 8, ROWS[name], 8 if name in "cd" else 1 << 30)
            header[model + "." + name] = dict(dtype=v["dtype"], shape=shape, data_offsets=[at, at + len(part)])
            data.append(part)
            at += len(part)
    header["__metadata__"] = {"source": meta["version"], "notes": meta["notes"]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(out, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(data))


if len(sys.argv) != 3:
    sys.exit(__doc__)
main(*sys.argv[1:])
