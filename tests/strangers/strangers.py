"""Wrong kernels written by strangers: what does identify answer, and does its answer predict?

usage: strangers.py MXGOLD [NAME...]     environment: KIND=activation|heavy|small|silent for all kernels, SEED=N, SET=fresh (fresh.py)

For each kernel: identify on one input; what it gives to reproduce is run on a second input of the same kind, and compared byte by byte.
  named     exit 0 or a named fault, and every byte of the second input
  FALSE     exit 0 or a named fault, and not every byte of it: an answer that costs trust
  honest    no such answer: nothing, a spec that only fits, or a cause in words that no fault says (grade none)
Exit status 1 if any answer is false.
"""
import json
import os
import resource
import struct
import subprocess
import sys
import tempfile

import numpy as np

from inputs import KINDS
import fresh
import kernels

DTYPES = {"float32": "F32", "uint8": "U8"}


def write(path, tensors):
    head, at, data = {}, 0, []
    for name, a in tensors.items():
        a = np.ascontiguousarray(a)
        head[name] = {"dtype": DTYPES[str(a.dtype)], "shape": list(a.shape), "data_offsets": [at, at + a.nbytes]}
        at += a.nbytes
        data.append(a.tobytes())
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(data))


def read(path):
    with open(path, "rb") as f:
        raw = f.read()
    n = struct.unpack("<Q", raw[:8])[0]
    out = {}
    for name, t in json.loads(raw[8 : 8 + n]).items():
        if name != "__metadata__":
            a, b = t["data_offsets"]
            dtype = {"F32": np.float32, "U8": np.uint8}.get(t["dtype"], np.uint8)
            out[name] = np.frombuffer(raw[8 + n + a : 8 + n + b], dtype).reshape(t["shape"])
    return out


def tensors_of(r):
    codes = r.codes
    if r.bits == 4 and r.packed:
        pad = np.pad(codes, ((0, 0), (0, codes.shape[1] % 2)))
        codes = pad[:, 0::2] | pad[:, 1::2] << 4
    out = {"codes": codes, "scales": r.scales}
    if r.tensor_scale is not None:
        out["tensor_scale"] = np.atleast_1d(np.asarray(r.tensor_scale, np.float32))
    return out


def same(want, got):
    """Codes and scales byte by byte (rows of codes may be padded); the tensor scale too if the reproduction stores one."""
    for name in ("codes", "scales"):
        a, b = want[name], got[name]
        if b.ndim == 2 and b.shape != a.shape and b.shape[0] == a.shape[0] and b.shape[1] > a.shape[1]:
            b = b[:, : a.shape[1]]
        if a.size != b.size or not np.array_equal(a.ravel(), b.ravel()):
            return False
    t = got.get("tensor_scale")
    return "tensor_scale" not in want or t is None or np.array_equal(want["tensor_scale"].ravel(), t.ravel())


def run(mxgold, folder, row, seed):
    name, f, kind, rows, cols = row
    kind = os.environ.get("KIND", kind)
    path = [os.path.join(folder, p) for p in ("in.safetensors", "out.safetensors", "in2.safetensors", "out2.safetensors", "out3.safetensors")]
    with np.errstate(all="ignore"):
        x, x2 = (KINDS[kind](np.random.default_rng(seed + k), rows, cols) for k in (0, 1))
        first, second = tensors_of(f(x)), tensors_of(f(x2))
    write(path[0], {"input": x})
    write(path[1], first)
    write(path[2], {"input": x2})
    t = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    p = subprocess.run([mxgold, "identify", "--input", path[0] + ":input", "--output", path[1], "--json", "--threads", "1"], capture_output=True, text=True)
    took = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - t
    if p.returncode == 2:
        return "trouble", {"verdict": p.stderr.strip()}, took, None
    answer = json.loads(p.stdout)
    bug = answer.get("bug") or {}
    left = bug.get("left", {})
    claims = p.returncode == 0 or (bug.get("name") and not any(left.values()) and answer["grade"] == "confirmed")
    predicts = None
    if answer.get("reproduce") is not None and (answer["reproduce"] or answer["exact"]):
        q = subprocess.run([mxgold, "quantize", path[2] + ":input", "-o", path[3], *answer["reproduce"]], capture_output=True, text=True)
        got = read(path[3]) if q.returncode == 0 else None
        if got and answer.get("scale_layout"):
            subprocess.run([mxgold, "convert", path[3], "--layout", answer["scale_layout"], "-o", path[4]], check=True)
            got = read(path[4])
        predicts = got is not None and same(second, got)
    return ("named" if predicts else "FALSE") if claims else "honest", answer, took, predicts


def main():
    mxgold, only = sys.argv[1], sys.argv[2:]
    seed = int(os.environ.get("SEED", "1"))
    count = {"named": 0, "FALSE": 0, "honest": 0, "trouble": 0}
    slowest = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for row in (fresh if os.environ.get("SET") == "fresh" else kernels).ROWS:
            if only and not any(o in row[0] for o in only):
                continue
            what, answer, took, predicts = run(mxgold, folder, row, seed)
            count[what] += 1
            slowest = max(slowest, took)
            bug = answer.get("bug") or {}
            said = bug.get("fault") or bug.get("name") or (answer.get("preset") if answer.get("exact") else None) or ""
            print(f"{what:8} {answer.get('grade', ''):9} {took:5.1f}s  {row[0]:50} {said}")
            if only or what == "FALSE":
                print("         ", answer["verdict"][:1200])
            sys.stdout.flush()
    n = sum(count.values())
    print(f"\n{n} kernels: {count['named']} named, {count['FALSE']} false answers, {count['honest']} honest, {count['trouble']} refused; slowest {slowest:.1f} s")
    return count["FALSE"] > 0


if __name__ == "__main__":
    sys.exit(main())
