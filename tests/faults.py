#!/usr/bin/env python3
"""A campaign of faults over every command that writes a file.   tests/faults.py MXGOLD [--faults N] [--seed N]

Each fault is one run of a command that something happens to: SIGKILL or SIGTERM at a random moment, a disk that is full after random bytes (RLIMIT_FSIZE),
an input that is cut to random bytes at a random moment, a standard output whose reader goes away, a limit on address space (RLIMIT_AS). Behind it
must stand: under the final name the whole new file, or what was there before; no other file in the folder or in TMPDIR; and where the process lived, exit
status 0, or 2 with one line on standard error. A name that SIGKILL left in the moment of replacement must go by the next run. Prints a table;
exit 1 if anything else was found."""
import argparse
import os
import random
import re
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time

ROWS, COLS = 512, 1024
KINDS = ["kill -9", "SIGTERM", "full disk", "shrunk input", "closed pipe", "memory limit"]

# Name, arguments ({o}: the output), ending of the output, its inputs; "stdout": -o - is another way.
COMMANDS = [
    ("quantize", "quantize x.npy --preset nvfp4 -o {o}", ".safetensors", ["x.npy"], True),
    ("quantize te", "quantize x.npy --preset te-nvfp4 --dequantized -o {o}", ".safetensors", ["x.npy"], True),
    ("quantize f16", "quantize h.npy --preset ocp-mxfp8-e4m3 -o {o}", ".safetensors", ["h.npy"], True),
    ("quantize -T", "quantize x.npy --transpose -o {o}", ".safetensors", ["x.npy"], True),
    ("quantize --all", "quantize c.safetensors --all --fake --preset nvfp4 -o {o}", ".safetensors", ["c.safetensors"], True),
    ("dequantize", "dequantize q.safetensors -o {o}", ".npy", ["q.safetensors"], True),
    ("encode", "encode x.npy --format e4m3 -o {o}", ".npy", ["x.npy"], True),
    ("decode", "decode e.npy --format e4m3 -o {o}", ".npy", ["e.npy"], True),
    ("hadamard", "hadamard x.npy --size 32 -o {o}", ".npy", ["x.npy"], True),
    ("gemm", "gemm q.safetensors q.safetensors -o {o}", ".npy", ["q.safetensors"], True),
    ("linear", "linear x.npy x.npy -o {o}", ".safetensors", ["x.npy"], True),
    ("convert", "convert q.safetensors --layout nv128x4 -o {o}", ".safetensors", ["q.safetensors"], True),
    ("gen", "gen random --shape 256x1024 -o {o}", ".mxv", [], False),
    ("gen tensors", "gen random --shape 256x1024 -o {o}", ".safetensors", [], True),
    ("ablate --html", "ablate x.npy -p ocp-mxfp4,nvfp4 --html {o}", ".html", ["x.npy"], False),
    ("diff --html", "diff q.safetensors q.safetensors --html {o}", ".html", ["q.safetensors"], False),
    ("verify --junit", "verify v.mxv v.mxv --junit {o}", ".xml", ["v.mxv"], False),
]


def read(path):
    with open(path, "rb") as f:
        return f.read()


def npy(path, descr, data):
    head = "{'descr': '%s', 'fortran_order': False, 'shape': (%d, %d), }" % (descr, ROWS, COLS)
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data)


class Campaign:
    def __init__(self, mxgold, seed, folder):
        self.mxgold, self.random, self.folder = mxgold, random.Random(seed), folder
        self.source, self.work, self.tmp = (os.path.join(folder, name) for name in ("source", "work", "tmp"))
        for each in (self.source, self.work, self.tmp):
            os.mkdir(each)
        self.env = dict(os.environ, TMPDIR=self.tmp, LC_ALL="C")
        self.inputs()
        self.want, self.seconds = {}, {}
        self.least = self.least_memory()

    def call(self, line, cwd):
        subprocess.run([self.mxgold, *line.split()], cwd=cwd, env=self.env, check=True, stdout=subprocess.DEVNULL)

    def inputs(self):
        noise = random.Random(1)
        npy(os.path.join(self.source, "x.npy"), "<f4", b"".join(struct.pack("<f", noise.gauss(0, 1)) for _ in range(ROWS * COLS)))
        npy(os.path.join(self.source, "h.npy"), "<f2", b"".join(struct.pack("<e", noise.gauss(0, 1)) for _ in range(ROWS * COLS)))
        for line in ("quantize x.npy --preset nvfp4 -o q.safetensors", "encode x.npy --format e4m3 -o e.npy", "gen random --shape 128x1024 -o v.mxv",
                     "quantize x.npy --preset ocp-mxfp8-e4m3 --dequantized -o c.safetensors"):
            self.call(line, self.source)

    def least_memory(self):
        """Below this the dynamic loader cannot even start the program: that is no fault of ours."""
        for mib in range(8, 4096, 4):
            limit = mib << 20
            done = subprocess.run([self.mxgold, "--version"], capture_output=True, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
            if done.returncode == 0:
                return limit
        raise SystemExit("faults: no limit on address space lets the program start")

    def fresh(self, command):
        """The folder as a user has it; the reference output once per command."""
        name, line, ending, inputs, _ = command
        out = "out" + ending
        for old in os.listdir(self.work):
            os.remove(os.path.join(self.work, old))
        for each in inputs:
            with open(os.path.join(self.work, each), "wb") as f:
                f.write(read(os.path.join(self.source, each)))
        if name not in self.want:
            start = time.monotonic()
            self.call(line.format(o=out), self.work)
            self.seconds[name] = time.monotonic() - start
            self.want[name] = read(os.path.join(self.work, out))
            os.remove(os.path.join(self.work, out))
        return out

    def start(self, argv, limit=None):
        def child():
            if limit:
                resource.setrlimit(limit[0], (limit[1], limit[1]))
        return subprocess.Popen([self.mxgold, *argv], cwd=self.work, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, preexec_fn=child)

    def wait_for_handler(self, child):
        """A signal that comes while the program is being loaded ends it as the system does."""
        while child.poll() is None:
            with open("/proc/%d/status" % child.pid) as status:
                caught = re.search(r"SigCgt:\s*([0-9a-f]+)", status.read())
            if caught and int(caught.group(1), 16) >> (signal.SIGTERM - 1) & 1:
                return

    def fault(self, number):
        r = self.random
        kind = KINDS[number % len(KINDS)]
        fit = [c for c in COMMANDS if (kind != "closed pipe" or c[4]) and (kind != "shrunk input" or c[3])]
        command = fit[r.randrange(len(fit))]
        name, line, _, inputs, _ = command
        out = self.fresh(command)
        path, old = os.path.join(self.work, out), None
        if r.random() < 0.5:
            old = b"what was there before\n"
            with open(path, "wb") as f:
                f.write(old)
        want, moment = self.want[name], r.random() * 1.1 * self.seconds[name]
        argv, limit = line.format(o=out).split(), None
        if kind == "full disk":
            limit = (resource.RLIMIT_FSIZE, r.randrange(len(want)))
        if kind == "memory limit":
            limit = (resource.RLIMIT_AS, self.least + r.randrange(12 << 20))
        if kind == "closed pipe":
            argv = line.format(o="-").split()
        child = self.start(argv, limit)
        if kind == "closed pipe":
            child.stdout.read(r.randrange(1, len(want)) if r.random() < 0.7 else 0)
            child.stdout.close()
            said = child.stderr.read()
            child.wait()
        else:
            if kind == "SIGTERM":
                self.wait_for_handler(child)
            if kind in ("kill -9", "SIGTERM", "shrunk input"):
                time.sleep(moment)
            if kind in ("kill -9", "SIGTERM"):
                child.send_signal(signal.SIGKILL if kind == "kill -9" else signal.SIGTERM)
            if kind == "shrunk input":
                cut = os.path.join(self.work, inputs[0])
                os.truncate(cut, r.randrange(os.path.getsize(cut)))
            _, said = child.communicate(timeout=120)
        return kind, name, self.judge(kind, name, out, old, inputs, child.returncode, said.decode(errors="replace"))

    def judge(self, kind, name, out, old, inputs, rc, said):
        """What became of it, and what is wrong with that."""
        path, wrong = os.path.join(self.work, out), []
        have = read(path) if os.path.exists(path) else None
        whole = have == self.want[name]
        if not whole and have != old:
            wrong.append("%s is neither whole nor what it was: %s bytes" % (out, len(have) if have is not None else "no"))
        if rc == 0 and not whole and kind != "closed pipe":
            wrong.append("exit 0 and no whole %s" % out)
        left = sorted(set(os.listdir(self.work)) - set(inputs) - {out}) + os.listdir(self.tmp)
        if left and kind == "kill -9" and all(re.fullmatch(r"\.mxgold\.[0-9a-f]{16}\.\d+\.tmp", each) for each in left):
            self.call(next(c[1] for c in COMMANDS if c[0] == name).format(o=out), self.work)
            left = sorted(set(os.listdir(self.work)) - set(inputs) - {out})
        if left:
            wrong.append("left behind: " + " ".join(left))
        if rc == -9 and kind == "kill -9":
            return "killed", wrong
        if rc not in (0, 2):
            wrong.append("exit %d: %s" % (rc, said.strip()[:200]))
        if rc == 2 and not re.fullmatch(r"mxgold: [^\n]+\n", said):
            wrong.append("exit 2 and said %r" % said[:200])
        if rc == 0 and said:
            wrong.append("exit 0 and said %r" % said[:200])
        return ("done" if rc == 0 else "refused"), wrong


def main():
    options = argparse.ArgumentParser()
    options.add_argument("mxgold")
    options.add_argument("--faults", type=int, default=200)
    options.add_argument("--seed", type=int, default=1)
    o = options.parse_args()
    table, found = {}, []
    with tempfile.TemporaryDirectory() as folder:
        campaign = Campaign(os.path.abspath(o.mxgold), o.seed, folder)
        for number in range(o.faults):
            kind, name, (end, wrong) = campaign.fault(number)
            row = table.setdefault(kind, {"faults": 0, "killed": 0, "refused": 0, "done": 0, "violations": 0})
            row["faults"] += 1
            row[end] += 1
            row["violations"] += bool(wrong)
            found += ["fault %d of seed %d, %s, %s: %s" % (number, o.seed, kind, name, each) for each in wrong]
    heads = ["faults", "killed", "refused", "done", "violations"]
    print("%-14s" % "fault" + "".join("%12s" % h for h in heads))
    for kind in KINDS:
        if kind in table:
            print("%-14s" % kind + "".join("%12d" % table[kind][h] for h in heads))
    print("%-14s" % "all" + "".join("%12d" % sum(row[h] for row in table.values()) for h in heads))
    for each in found:
        print(each, file=sys.stderr)
    return bool(found)


sys.exit(main())
