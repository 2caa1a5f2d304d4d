"""Wrong kernels written by strangers: what does identify answer, and does its answer predict?

usage: strangers.py MXGOLD [NAME...]
environment: SET=kernels (the default), fresh, a to v (modules of this folder; several by commas, or all), KIND=A,B (of inputs.py, for all kernels; else each kernel's own), SEED=N,M, JOBS=N beside each other

For each kernel: identify on one input; what it gives to reproduce is run on two others, one of the same kind and one of another kind, and compared
byte by byte.
  named     exit 0 or a named fault, and every byte of both
  FALSE     exit 0 or a named fault, and not every byte of them: an answer that costs trust
  honest    no such answer: nothing, a spec that only fits ("right:" where it gives every byte of both others), or a cause in words that no fault says (grade none)
  unseen    the kernel gives the bytes of a right one on the first input, and its preset is the answer
  open      the first input does not decide between the answer and the kernel, and says so: the answer lists a key as undecided, and with another
            value of that key it gives every byte of both others, or with faults that it lists as not ruled out; or exit 0 with a preset, whose bytes the kernel gives on the first input and on
            another of its kind, but not on one of another kind
Exit status 1 if any answer is false.
"""
import concurrent.futures
import json
import os
import struct
import subprocess
import sys
import tempfile

import numpy as np

from inputs import KINDS, OTHER
import formats
import fresh
import kernels
import set_a
import set_b
import set_c
import set_d
import set_e
import set_f
import set_g
import set_h
import set_i
import set_j
import set_k
import set_l
import set_m
import set_n
import set_o
import set_p
import set_q
import set_r
import set_s
import set_t
import set_u
import set_v

SETS = {"kernels": kernels, "fresh": fresh, "a": set_a, "b": set_b, "c": set_c, "d": set_d, "e": set_e, "f": set_f, "g": set_g, "h": set_h, "i": set_i, "j": set_j,
        "k": set_k, "l": set_l, "m": set_m, "n": set_n, "o": set_o, "p": set_p, "q": set_q, "r": set_r, "s": set_s, "t": set_t, "u": set_u, "v": set_v}
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


def give(mxgold, folder, name, x, answer):
    """What the answer gives on x, or None; of a kernel that takes each row for a tensor, row by row."""
    if answer.get("row_tensor_scales") and len(x) > 1:
        answer = {**answer, "reproduce": ["--preset", answer["preset"]]}
        rows = [give(mxgold, folder, name, x[i : i + 1], answer) for i in range(len(x))]
        return None if None in rows else {k: np.concatenate([r[k] for r in rows]) for k in rows[0]}
    path = [os.path.join(folder, f"{name}{k}.safetensors") for k in range(3)]
    write(path[0], {"input": x})
    q = subprocess.run([mxgold, "quantize", path[0] + ":input", "-o", path[1], *answer["reproduce"]], capture_output=True, text=True)
    if q.returncode or not answer.get("scale_layout"):
        return None if q.returncode else read(path[1])
    laid_out = subprocess.run([mxgold, "convert", path[1], "--layout", answer["scale_layout"], "-o", path[2]])
    return None if laid_out.returncode else read(path[2])


def choices(mxgold):
    """Key to its values, without those that take a number."""
    out = {}
    for row in json.loads(subprocess.run([mxgold, "formats", "choices", "--json"], capture_output=True, check=True).stdout)["choices"]:
        if "=" not in row["choice"]:
            out.setdefault(row["key"], []).append(row["choice"])
    return out


def is_left_open(mxgold, folder, draw, want, answer):
    """Does the answer give every byte with another value of a key that it lists as undecided, or with faults that it lists as not ruled out?"""
    said, values = answer["reproduce"], choices(mxgold)
    plain = [w for i, w in enumerate(said) if "--fault" not in said[max(i - 1, 0) : i + 1]]
    others = [[*said, "--set", f"{key}={value}"] for key in answer["undecided"] for value in values.get(key, ())]
    others += [plain + [w for f in faults.split("; ") for w in ("--fault", f)] for faults in answer.get("also", ())]
    for other in others:
        got = (give(mxgold, folder, "open", x, {**answer, "reproduce": other}) for x in draw)
        if all(g is not None and same(w, g) for w, g in zip(want, got)):
            return True
    return False


def rounded_up(largest):
    """The byte of the least power of two under which the largest magnitude does not saturate, as torchao's RCEIL."""

    def byte(a):
        m, e = np.frexp(a.astype(np.float64) / largest)
        return np.where(a > 0, np.clip(e - (m == 0.5) + 127, 0, 254), 0).astype(np.uint8)

    return byte


# Kernels without a mistake: the definitions; and as libraries have them: scales that are rounded up, NVFP4 with a reciprocal, and with amax / (6 * T).
PLAIN = (formats.mx, formats.mxfp8, formats.mxfp8_e5m2, formats.mxint8, formats.nv)
OF_LIBRARIES = (
    lambda x: formats.mx(x, byte=rounded_up(6)),
    lambda x: formats.mxfp8(x, byte=rounded_up(448)),
    lambda x: formats.mxfp8_e5m2(x, byte=rounded_up(57344)),
    lambda x: formats.nv(x, divide=lambda b, f, t: b * (np.float32(1) / (f * t))[..., None]),
    lambda x: formats.nv(x, ratio=lambda a, t: a / (np.float32(6) * t)),
)


def is_right(x, got, right=PLAIN):
    """Are these the bytes of a kernel without a mistake?"""
    for f in right:
        want = tensors_of(f(x))
        swapped = {**want, "codes": want["codes"] << 4 | want["codes"] >> 4}
        if any(w.keys() == got.keys() and all(np.array_equal(w[k], got[k]) for k in w) for w in (want, swapped)):
            return True
    return False


def run(mxgold, row, kind, seed):
    """(what it is, the answer, seconds)"""
    name, f, own, rows, cols = row
    kind = kind or own
    with tempfile.TemporaryDirectory() as folder, np.errstate(all="ignore"):
        draw = [KINDS[k](np.random.default_rng(seed + i), rows, cols) for i, k in enumerate((kind, kind, OTHER[kind]))]
        want = [tensors_of(f(x)) for x in draw]
        path = [os.path.join(folder, p) for p in ("in.safetensors", "out.safetensors")]
        write(path[0], {"input": draw[0]})
        write(path[1], want[0])
        p = subprocess.Popen([mxgold, "identify", "--input", path[0] + ":input", "--output", path[1], "--json", "--threads", "1"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        text, error = p.stdout.read(), p.stderr.read()
        _, status, usage = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
        took = usage.ru_utime
        if p.returncode not in (0, 1):
            return "trouble", {"verdict": error.decode().strip()}, took
        answer = json.loads(text)
        bug = answer.get("bug") or {}
        claims = p.returncode == 0 or (bug.get("name") and not any(bug.get("left", {}).values()) and answer["grade"] == "confirmed")
        if not claims:
            if answer["grade"] == "fits":
                got = [give(mxgold, folder, f"x{k}", draw[k], answer) for k in (1, 2)]
                answer["foretells"] = all(g is not None and same(w, g) for w, g in zip(want[1:], got))
            return "honest", answer, took
        if p.returncode == 0 and answer.get("preset") and is_right(draw[0], want[0]):
            return ("named" if is_right(draw[1], want[1]) and is_right(draw[2], want[2]) else "unseen"), answer, took
        got = [give(mxgold, folder, f"x{k}", draw[k], answer) for k in (1, 2)]
        predicts = [g is not None and same(w, g) for w, g in zip(want[1:], got)]
        what = "named" if all(predicts) else "open" if predicts[0] and p.returncode == 0 and answer.get("preset") else "FALSE"
        if what == "FALSE" and is_left_open(mxgold, folder, draw[:0:-1], want[:0:-1], answer):
            what = "open"
        if what == "FALSE" and p.returncode == 0 and answer.get("preset") and is_right(draw[0], want[0], OF_LIBRARIES):
            what = "unseen"
        return what, answer, took


def main():
    mxgold, only = sys.argv[1], sys.argv[2:]
    which = os.environ.get("SET", "kernels")
    rows = [r for s in (SETS if which == "all" else which.split(",")) for r in SETS[s].ROWS]
    kinds = os.environ.get("KIND", "").split(",")
    seeds = [int(s) for s in os.environ.get("SEED", "1").split(",")]
    todo = [(r, k, s) for s in seeds for k in kinds for r in rows if not only or any(o in r[0] for o in only)]
    count = {"named": 0, "FALSE": 0, "honest": 0, "unseen": 0, "open": 0, "trouble": 0}
    slowest, foretell = 0.0, 0
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS", "1"))) as beside:
        for (row, kind, seed), (what, answer, took) in zip(todo, beside.map(lambda t: run(mxgold, *t), todo)):
            count[what] += 1
            slowest = max(slowest, took)
            foretell += answer.get("foretells", False)
            bug = answer.get("bug") or {}
            said = bug.get("fault") or bug.get("name") or (answer.get("preset") if answer.get("exact") else None) or ""
            print(f"{what:8} {answer.get('grade', ''):9} {took:5.1f}s  {kind or row[2]:10} {seed:3}  {row[0]:50} {'right: ' if answer.get('foretells') else ''}{said}")
            if only or what in ("FALSE", "trouble"):
                print("         ", answer["verdict"][:1200])
            sys.stdout.flush()
    n = sum(count.values())
    print(f"\n{n} kernels: {count['named']} named, {count['FALSE']} false answers, {count['honest']} honest (of them {foretell} answers that only fit and give every byte of both others), {count['unseen']} unseen, "
          f"{count['open']} open, {count['trouble']} refused; slowest {slowest:.1f} s")
    return count["FALSE"] > 0


if __name__ == "__main__":
    sys.exit(main())
