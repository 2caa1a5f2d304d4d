#!/usr/bin/env python3
"""A campaign of faults over every command that writes a file.   tests/faults.py MXGOLD [--faults N] [--seed N]

Each fault is one run of a command that something happens to: SIGKILL or SIGTERM at a random moment, a disk that is full after random bytes (RLIMIT_FSIZE),
an input that is cut to random bytes at a random moment, a standard output whose reader goes away, a limit on address space (RLIMIT_AS). Behind it
must stand: under the final name the whole new file, or what was there before; no other file in the folder or in TMPDIR; and where the process lived, exit
status 0, or 2 with one line on standard error. A name that SIGKILL left in the moment of replacement must go by the next run. Of train, which writes a
folder: whole files in it, status 3 with one line where it stopped with a checkpoint, and --resume makes the run that nothing happened to, to the bit.
Prints a table; exit 1 if anything else was found."""
import argparse
import json
import os
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROWS, COLS = 512, 1024
HEADS = ["faults", "killed", "refused", "stopped", "done", "violations"]
TEMPORARY = re.compile(r"\.mxgold\.[0-9a-f]{16}\.\d+\.tmp")
KINDS = ["kill -9", "SIGTERM", "full disk", "shrunk input", "closed pipe", "memory limit"]

class Command:
    """A command that writes one file, or with an ending of "/" a folder. line: its arguments, {o} the output. inputs: what may be cut while it is read;
    others: what it needs besides. stdout: does -o - go to standard output?"""

    def __init__(self, name, line, ending, inputs=(), others=(), stdout=True):
        self.name, self.line, self.ending, self.inputs, self.others, self.stdout = name, line, ending, list(inputs), list(others), stdout
        self.folder = ending == "/"


UNIT = "hopper/mma_m16n8k16_f32_f16_f16_f32"
COMMANDS = [
    Command("quantize", "quantize x.npy --preset nvfp4 -o {o}", ".safetensors", ["x.npy"]),
    Command("quantize te", "quantize x.npy --preset te-nvfp4 --dequantized -o {o}", ".safetensors", ["x.npy"]),
    Command("quantize f16", "quantize h.npy --preset ocp-mxfp8-e4m3 -o {o}", ".safetensors", ["h.npy"]),
    Command("quantize -T", "quantize x.npy --transpose -o {o}", ".safetensors", ["x.npy"]),
    Command("quantize --all", "quantize c.safetensors --all --fake --preset nvfp4 -o {o}", ".safetensors", ["c.safetensors"]),
    Command("dequantize", "dequantize q.safetensors -o {o}", ".npy", ["q.safetensors"]),
    Command("encode", "encode x.npy --format e4m3 -o {o}", ".npy", ["x.npy"]),
    Command("decode", "decode e.npy --format e4m3 -o {o}", ".npy", ["e.npy"]),
    Command("hadamard", "hadamard x.npy --size 32 -o {o}", ".npy", ["x.npy"]),
    Command("gemm", "gemm q.safetensors q.safetensors -o {o}", ".npy", ["q.safetensors"]),
    Command("gemm --bound", "gemm s.safetensors s.safetensors -o d.npy --bound {o}", ".safetensors", ["s.safetensors"], stdout=False),
    Command("linear", "linear x.npy x.npy -o {o}", ".safetensors", ["x.npy"]),
    Command("mma", "mma p.safetensors --model " + UNIT + " -o {o}", ".safetensors", ["p.safetensors"]),
    Command("probe --emit", "probe --emit {o} --like " + UNIT, ".safetensors", stdout=False),
    Command("train", "train mlp.json --init w.safetensors -o {o}", "/", ["w.safetensors"], ["mlp.json", "text"], stdout=False),
    Command("convert", "convert q.safetensors --layout nv128x4 -o {o}", ".safetensors", ["q.safetensors"]),
    Command("gen", "gen random --shape 256x1024 -o {o}", ".mxv", stdout=False),
    Command("gen tensors", "gen random --shape 256x1024 -o {o}", ".safetensors"),
    Command("ablate --html", "ablate x.npy -p ocp-mxfp4,nvfp4 --html {o}", ".html", ["x.npy"], stdout=False),
    Command("ablate --png", "ablate --gemm x.npy x.npy -p ocp-mxfp8-e4m3 --accum dequantized --png {o}", ".svg", ["x.npy"], stdout=False),
    Command("diff --html", "diff q.safetensors q.safetensors --html {o}", ".html", ["q.safetensors"], stdout=False),
    Command("verify --junit", "verify v.mxv v.mxv --junit {o}", ".xml", ["v.mxv"], stdout=False),
    Command("test --junit", "test --plugin ./kernel.so --suite ties --junit {o}", ".xml", [], ["kernel.so"], stdout=False),
]
MLP = {"model": {"kind": "byte_mlp", "width": 64, "context": 8}, "data": {"text": "text", "split": 0.9},
       "train": {"steps": 12, "batch": 32, "seed": 1, "eval_batches": 1, "checkpoint_every": 2}, "optimizer": {"kind": "adam", "lr": 0.002},
       "schedule": {"kind": "linear", "warmup": 2, "min_lr": 1e-6}, "quant": {"recipe": "recipe-ocp"}}


def read(path):
    with open(path, "rb") as f:
        return f.read()


def read_folder(path):
    return {name: read(os.path.join(path, name)) for name in os.listdir(path)} if os.path.isdir(path) else None


def is_whole(raw):
    """A .safetensors file with all its bytes."""
    if len(raw) < 8 or len(raw) < 8 + struct.unpack("<Q", raw[:8])[0]:
        return False
    n = struct.unpack("<Q", raw[:8])[0]
    tensors = [t for name, t in json.loads(raw[8:8 + n]).items() if name != "__metadata__"]
    return len(raw) == 8 + n + max(t["data_offsets"][1] for t in tensors)


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
        self.want, self.seconds = {}, {} # by the name of a command
        self.least = self.least_memory()

    def call(self, line, cwd):
        subprocess.run([self.mxgold, *line.split()], cwd=cwd, env=self.env, check=True, stdout=subprocess.DEVNULL)

    def inputs(self):
        noise = random.Random(1)
        npy(os.path.join(self.source, "x.npy"), "<f4", b"".join(struct.pack("<f", noise.gauss(0, 1)) for _ in range(ROWS * COLS)))
        npy(os.path.join(self.source, "h.npy"), "<f2", b"".join(struct.pack("<e", noise.gauss(0, 1)) for _ in range(ROWS * COLS)))
        with open(os.path.join(self.source, "mlp.json"), "w") as f:
            json.dump(MLP, f)
        with open(os.path.join(self.source, "text"), "w") as f:
            f.write(" ".join(noise.choice(["fault", "block", "scale", "tensor"]) for _ in range(4000)))
        for line in ("quantize x.npy --preset nvfp4 -o q.safetensors", "encode x.npy --format e4m3 -o e.npy", "gen random --shape 128x1024 -o v.mxv",
                     "quantize x.npy --preset ocp-mxfp8-e4m3 --dequantized -o c.safetensors", "gen random --shape 64x256 -o s.safetensors",
                     "probe --emit p.safetensors --like " + UNIT, "train mlp.json -o first --set train.steps=1"):
            self.call(line, self.source)
        os.rename(os.path.join(self.source, "first", "model.safetensors"), os.path.join(self.source, "w.safetensors"))
        shutil.rmtree(os.path.join(self.source, "first"))
        subprocess.run([*os.environ.get("CC", "cc").split(), "-O1", "-shared", "-fPIC", "-I" + os.path.join(ROOT, "include"),
                        os.path.join(ROOT, "examples", "kernel_plugin.c"), "-lm", "-o", os.path.join(self.source, "kernel.so")], check=True)

    def least_memory(self):
        """Below this the dynamic loader cannot even start the program: that is not a fault of ours."""
        for mib in range(8, 4096, 4):
            limit = mib << 20
            done = subprocess.run([self.mxgold, "--version"], capture_output=True, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
            if done.returncode == 0:
                return limit
        raise SystemExit("faults: no limit on address space lets the program start")

    def fresh(self, command):
        """The folder as a user has it; the reference output once per command."""
        out = "out" + command.ending.rstrip("/")
        self.clear()
        for each in command.inputs + command.others:
            shutil.copy(os.path.join(self.source, each), self.work)
        if command.name not in self.want:
            start = time.monotonic()
            self.call(command.line.format(o=out), self.work)
            self.seconds[command.name] = time.monotonic() - start
            path = os.path.join(self.work, out)
            self.want[command.name] = read_folder(path) if command.folder else read(path)
            return self.fresh(command)
        return out

    def clear(self):
        for old in os.scandir(self.work):
            (shutil.rmtree if old.is_dir() else os.remove)(old.path)

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
        fit = [c for c in COMMANDS if (kind != "closed pipe" or c.stdout) and (kind != "shrunk input" or c.inputs)]
        command = fit[r.randrange(len(fit))]
        name, line = command.name, command.line
        out = self.fresh(command)
        path, old = os.path.join(self.work, out), None
        if r.random() < 0.5 and not command.folder:
            old = b"what was there before\n"
            with open(path, "wb") as f:
                f.write(old)
        want, moment = self.want[name], r.random() * 1.1 * self.seconds[name]
        argv, limit = line.format(o=out).split(), None
        if kind == "full disk":
            limit = (resource.RLIMIT_FSIZE, r.randrange(max(map(len, want.values())) if command.folder else len(want)))
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
                cut = os.path.join(self.work, command.inputs[0])
                os.truncate(cut, r.randrange(os.path.getsize(cut)))
            _, said = child.communicate(timeout=120)
        return kind, name, self.judge(kind, command, out, old, child.returncode, said.decode(errors="replace"))

    def one_file(self, kind, command, out, old, rc):
        """What is wrong with a file under the final name."""
        path, wrong = os.path.join(self.work, out), []
        have = read(path) if os.path.exists(path) else None
        whole = have == self.want[command.name]
        if not whole and have != old:
            wrong.append("%s is neither whole nor what it was: %s bytes" % (out, len(have) if have is not None else "no"))
        if rc == 0 and not whole and kind != "closed pipe":
            wrong.append("exit 0 and no whole %s" % out)
        return wrong

    def one_folder(self, kind, command, out, rc):
        """The same of a run's folder, which is then gone on with."""
        path, want = os.path.join(self.work, out), self.want[command.name]
        have = read_folder(path) or {}
        wrong = ["%s/%s is not whole" % (out, name) for name in have if name.endswith(".safetensors") and not is_whole(have[name])]
        if rc == 0 and have != want:
            wrong.append("exit 0 and another run")
        odd = set(have) - set(want)
        if odd and not (kind == "kill -9" and all(map(TEMPORARY.fullmatch, odd))):
            wrong.append("left behind in the run's folder: " + " ".join(odd))
        for each in command.inputs:
            shutil.copy(os.path.join(self.source, each), self.work)
        self.call(command.line.format(o=out) + " --resume", self.work)
        if read_folder(path) != want:
            wrong.append("--resume makes another run than one that nothing happened to")
        return wrong

    def judge(self, kind, command, out, old, rc, said):
        """What became of it, and what is wrong with that."""
        wrong = self.one_folder(kind, command, out, rc) if command.folder else self.one_file(kind, command, out, old, rc)
        known = set(command.inputs + command.others) | {out, "d.npy"}
        left = sorted(set(os.listdir(self.work)) - known) + os.listdir(self.tmp)
        if left and kind == "kill -9" and all(map(TEMPORARY.fullmatch, left)):
            self.call(command.line.format(o=out), self.work)
            left = sorted(set(os.listdir(self.work)) - known)
        if left:
            wrong.append("left behind: " + " ".join(left))
        if rc == -9 and kind == "kill -9":
            return "killed", wrong
        if rc == 3 and kind == "SIGTERM" and command.folder:
            if not re.fullmatch(r"mxgold: stopped after step \d+: [^\n]+\n", said):
                wrong.append("exit 3 and said %r" % said[:200])
            return "stopped", wrong
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
            row = table.setdefault(kind, dict.fromkeys(HEADS, 0))
            row["faults"] += 1
            row[end] += 1
            row["violations"] += bool(wrong)
            found += ["fault %d of seed %d, %s, %s: %s" % (number, o.seed, kind, name, each) for each in wrong]
    print("%-14s" % "fault" + "".join("%12s" % h for h in HEADS))
    for kind in KINDS:
        if kind in table:
            print("%-14s" % kind + "".join("%12d" % table[kind][h] for h in HEADS))
    print("%-14s" % "all" + "".join("%12d" % sum(row[h] for row in table.values()) for h in HEADS))
    for each in found:
        print(each, file=sys.stderr)
    return bool(found)


sys.exit(main())
