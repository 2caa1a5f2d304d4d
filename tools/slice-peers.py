#!/usr/bin/env python3
"""Cuts a small set of rows out of full peer files, for tests/peers.   slice-peers.py FULL_DIR OUT_DIR [ROWS]

A peer file holds what a real library made of known inputs: SUITE.x, SUITE.codes, SUITE.scales, SUITE.tensor_scale and, of casts of single
values, elementwise.* or data.*. Rows are kept so that the tensor's largest magnitude, and a NaN or Inf if there is one, stay in: the tensor scale
is then that of the full file. Needs NumPy.
"""
import glob, json, os, struct, sys
import numpy as np

DT = {"U8": "u1", "U16": "<u2", "U32": "<u4", "F32": "<f4"}


def read(path):
    b = open(path, "rb").read()
    n = struct.unpack("<Q", b[:8])[0]
    h = json.loads(b[8:8 + n])
    meta = h.pop("__metadata__", {})
    return {k: np.frombuffer(b[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]], DT[v["dtype"]]).reshape(v["shape"]) for k, v in h.items()}, meta


def write(path, tensors, meta):
    h, off = {"__metadata__": meta}, 0
    for k, a in tensors.items():
        h[k] = dict(dtype=next(d for d, s in DT.items() if np.dtype(s) == a.dtype), shape=list(a.shape), data_offsets=[off, off + a.nbytes])
        off += a.nbytes
    j = json.dumps(h, sort_keys=True).encode()
    j += b" " * (-len(j) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(j)) + j + b"".join(np.ascontiguousarray(a).tobytes() for a in tensors.values()))


def rows_to_keep(x, n, tile):
    with np.errstate(invalid="ignore"):
        a = np.where(np.isnan(x), -1, np.abs(x)).max(1)
    keep = {int(a.argmax())} | set(range(0, len(x), max(1, len(x) // n)))
    for bad in (np.isnan(x), np.isinf(x)):
        if bad.any():
            keep.add(int(bad.any(1).argmax()))
    return sorted({r // tile * tile + i for r in keep for i in range(tile)} & set(range(len(x))))


def main(full, out, n=10):
    os.makedirs(out, exist_ok=True)
    for path in sorted(glob.glob(full + "/*.safetensors")):
        t, meta = read(path)
        name, kept = os.path.basename(path), {}
        tile = 16 if name.endswith("-2d.safetensors") else 1
        single = [k for k in t if k.split(".")[0] in ("elementwise", "data") and t[k].ndim == 1]
        if single and name.startswith(("amd_host", "cuda_host", "ml_dtypes", "torch.", "gfloat-sr")):
            size = len(t[single[0]])
            pick = np.unique(np.concatenate([np.arange(0, size, max(1, size // 3000)), np.arange(min(size, 400))]))
            kept = {k: t[k][pick] for k in single}
        if name.startswith("values."):  # small as they are
            kept = t
        for s in sorted({k.split(".")[0] for k in t if k.endswith(".codes")} - {"elementwise"}):
            rows = rows_to_keep(t[s + ".x"], n, tile)
            for part in ("x", "codes", "scales"):
                kept[f"{s}.{part}"] = t[f"{s}.{part}"][rows]
            if s + ".tensor_scale" in t:
                kept[s + ".tensor_scale"] = t[s + ".tensor_scale"]
        write(f"{out}/{name}", kept, meta)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
