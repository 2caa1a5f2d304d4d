#!/usr/bin/env python3
"""Shows where the processor time of a training step goes: the share of each room of the sources, by perf's samples of `mxgold train`.

    bench/train_profile.py MXGOLD CONFIG.json [--set KEY=VALUE]... [--steps 8] [--threads 1]

Each sample's address is looked up in the program's debug information (addr2line), and counts for the file of the function that was compiled, inlined code with
its caller. Starting up, reading the text and writing count too; steps are as many as make that little. Needs perf and binutils."""

import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tempfile

# The first prefix that fits; the rest is "other".
ROOMS = [
    ("src/kernels/math", "functions of float32 arrays"),
    ("src/kernels", "quantising and dequantising"),
    ("src/gemm/dense", "products of float32"),
    ("src/gemm", "products of quantised operands"),
    ("src/train/layers", "layers: norms, attention, loss"),
    ("src/train/linear", "linears but their kernels"),
    ("src/train/optim", "optimiser"),
    ("src/train", "the run: data, steps, metrics"),
    ("src", "other rooms"),
]


def out_of(*command, **more):
    return subprocess.run(command, check=True, capture_output=True, text=True, **more).stdout


def segments(program):
    """File offset, virtual address and size of each executable segment."""
    found = []
    for line in out_of("readelf", "-lW", program).splitlines():
        m = re.match(r"\s*LOAD\s+0x(\w+) 0x(\w+) 0x\w+ 0x(\w+) 0x\w+ R E", line)
        if m:
            found.append(tuple(int(v, 16) for v in m.groups()))
    return found


def addresses(data, program):
    """How many samples each address of the program has, and how many lie elsewhere, by library."""
    maps, count, elsewhere = [], collections.Counter(), collections.Counter()
    parts = segments(program)
    for line in out_of("perf", "script", "-i", data, "--show-mmap-events", "-F", "ip,dso,event").splitlines():
        m = re.search(r"PERF_RECORD_MMAP2? .*\[0x(\w+)\(0x(\w+)\) @ (0x)?(\w+) .*r-xp (\S+)", line)
        if m:
            if os.path.realpath(m[5]) == program:
                maps.append((int(m[1], 16), int(m[2], 16), int(m[4], 16 if m[3] else 10)))
            continue
        m = re.match(r"\s*(?:\S+:\s+)?([0-9a-f]+) \((.*)\)\s*$", line)
        if not m:
            continue
        ip = int(m[1], 16)
        for start, size, offset in maps:
            if start <= ip < start + size:
                at = ip - start + offset
                count.update(at - o + v for o, v, n in parts if o <= at < o + n)
                break
        else:
            elsewhere["in the kernel" if "kernel" in m[2] else "in " + os.path.basename(m[2])] += 1
    return count, elsewhere


def rooms(program, count):
    """Samples of each room: of the outermost function that an address was inlined into."""
    asked = sorted(count)
    said = out_of("addr2line", "-a", "-i", "-e", program, input="".join("0x%x\n" % a for a in asked))
    shares = collections.Counter()
    for block in re.split(r"^0x", said, flags=re.M)[1:]:
        address, *files = block.splitlines()
        path = re.sub(r"^.*?(?=\bsrc/)", "", files[-1])
        name = next((text for prefix, text in ROOMS if path.startswith(prefix + "/")), "other")
        shares[name] += count[int(address, 16)]
    return shares


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("mxgold")
    p.add_argument("config")
    p.add_argument("--set", action="append", default=[])
    p.add_argument("--steps", type=int, default=8)
    p.add_argument("--threads", type=int, default=1)
    a = p.parse_args()
    program = os.path.realpath(a.mxgold)
    with tempfile.TemporaryDirectory() as folder:
        data = os.path.join(folder, "perf.data")
        command = [program, "train", a.config, "-o", os.path.join(folder, "run"), "--threads", str(a.threads), "--set", "train.steps=%d" % a.steps]
        for one in a.set:
            command += ["--set", one]
        r = subprocess.run(["perf", "record", "-q", "-e", "cpu-clock", "-F", "997", "-o", data, *command], capture_output=True, text=True)
        if r.returncode:
            sys.exit("train_profile.py: " + (r.stderr.strip() or "perf record: exit %d" % r.returncode))
        count, elsewhere = addresses(data, program)
    if not count:
        sys.exit("train_profile.py: no sample lies in " + program)
    shares = rooms(program, count)
    shares.update(elsewhere)
    total = sum(shares.values())
    what = json.load(open(a.config)).get("model", {}).get("kind", "?")
    print("%s, %d steps, %s, %d samples of processor time" % (what, a.steps, " ".join(a.set) or "as the configuration says", total))
    for name, n in shares.most_common():
        print("  %5.1f %%  %s" % (100 * n / total, name))


main()
