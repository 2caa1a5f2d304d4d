#!/usr/bin/env python3
"""A campaign of faults over every command that writes a file.   tests/faults.py MXGOLD [--faults N] [--seed N]

Each fault is one run of a command that something happens to: SIGKILL or SIGTERM at a random moment, a disk that is full after random bytes (RLIMIT_FSIZE),
an input that is cut to random bytes at a random moment, a standard output whose reader goes away, a limit on address space (RLIMIT_AS), and a memory cgroup
of random size, which ends the process as SIGKILL does (where the machine lets us make one; the last line says if not). Behind it
must stand: under the final name the whole new file, or what was there before; no other file in the folder or in TMPDIR; and where the process lived, exit
status 0, or 2 with one line on standard error. A name that SIGKILL left in the moment of replacement must go by the next run. Of train, which writes a
folder: whole files in it, status 3 with one line where it stopped with a checkpoint, and --resume makes the run that nothing happened to, to the bit.
Of gen --readmemh, which writes several files: each whole or absent. Of sweep: the same call again ends with the results of one that nothing happened to. Of
ablate --state: no line that is not one of the undisturbed run's, and the same call again ends with all of them.
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
KINDS = ["kill -9", "SIGTERM", "full disk", "shrunk input", "closed pipe", "memory limit", "memory cgroup"]
KILLS = ["kill -9", "memory cgroup"]

class Command:
    """A command that writes. line: its arguments, {o} the output, whose name ends in `ending`. inputs: what may be cut while it is read; others: files and
    folders that it needs besides. stdout: does -o - go to standard output? kind: what the output is: one file; a run of train; files of one prefix; the folder of
    a sweep; a state, which lines are added to. beside: what else it leaves. again: what the same call needs besides to go on. stops: may SIGTERM end it with
    a checkpoint and status 3?"""

    def __init__(self, name, line, ending, inputs=(), others=(), stdout=True, kind="file", beside=(), again="", stops=False):
        self.name, self.line, self.ending, self.inputs, self.others, self.stdout = name, line, ending, list(inputs), list(others), stdout
        self.kind, self.beside, self.again, self.stops = kind, list(beside), again, stops


SMALL_UNIT = "volta/mma_m8n8k4_f32_f16_f16_f32"
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
    Command("probe --emit-next", "probe --fit zero.safetensors d.safetensors --emit-next {o}", ".safetensors", ["zero.safetensors", "d.safetensors"], stdout=False),
    Command("train", "train mlp.json --init w.safetensors -o {o}", "", ["w.safetensors"], ["mlp.json", "text"], stdout=False, kind="run", again=" --resume",
            stops=True),
    Command("train --gradients", "train mlp.json --init w.safetensors -o run --gradients {o}", ".safetensors", ["w.safetensors"], ["mlp.json", "text"],
            stdout=False, beside=["run"], stops=True),
    Command("sweep", "sweep sweep.json --jobs 2 -o {o}", "", [], ["sweep.json", "base.json"], stdout=False, kind="sweep", stops=True),
    Command("report --html", "report swept --html {o}", ".html", [], ["swept"], stdout=False),
    Command("convert", "convert q.safetensors --layout nv128x4 -o {o}", ".safetensors", ["q.safetensors"]),
    Command("gen", "gen random --shape 256x1024 -o {o}", ".mxv", stdout=False),
    Command("gen tensors", "gen random --shape 256x1024 -o {o}", ".safetensors"),
    Command("gen --readmemh", "gen random --shape 256x1024 --preset te-nvfp4 --dequantized --readmemh out/v", "", stdout=False, kind="files"),
    Command("ablate --state", "ablate x.npy h.npy -p ocp-mxfp4,nvfp4,ocp-mxfp8-e4m3 --state {o}", ".state", ["x.npy", "h.npy"], stdout=False, kind="state"),
    Command("ablate --six", "ablate --six s.safetensors:input s.safetensors:input sq.npy -p ocp-mxfp4,nvfp4 --state {o}", ".state", ["sq.npy"],
            ["s.safetensors"], stdout=False, kind="state"),
    Command("ablate --html", "ablate x.npy -p ocp-mxfp4,nvfp4 --html {o}", ".html", ["x.npy"], stdout=False),
    Command("ablate --png", "ablate --gemm x.npy x.npy -p ocp-mxfp8-e4m3 --accum dequantized --png {o}", ".svg", ["x.npy"], stdout=False),
    Command("diff --html", "diff q.safetensors q.safetensors --html {o}", ".html", ["q.safetensors"], stdout=False),
    Command("verify --junit", "verify v.mxv v.mxv --junit {o}", ".xml", ["v.mxv"], stdout=False),
    Command("test --junit", "test --plugin ./kernel.so --suite ties --junit {o}", ".xml", [], ["kernel.so"], stdout=False),
]
MLP = {"model": {"kind": "byte_mlp", "width": 64, "context": 8}, "data": {"text": "text", "split": 0.9},
       "train": {"steps": 12, "batch": 32, "seed": 1, "eval_batches": 1, "checkpoint_every": 2}, "optimizer": {"kind": "adam", "lr": 0.002},
       "schedule": {"kind": "linear", "warmup": 2, "min_lr": 1e-6}, "quant": {"recipe": "recipe-ocp"}}

BASE = {"model": {"kind": "gaussian"}, "data": {"rows": 512, "features": 64, "split": 0.75}, "optimizer": {"kind": "adam", "lr": 0.01},
        "train": {"steps": 40, "batch": 128, "seed": 1, "checkpoint_every": 10}}
SWEEP = {"config": "base.json", "set": {"quant.recipe": "recipe-ocp"}, "grid": {"optimizer.lr": [0.003, 0.01]}, "seeds": 2}


def read(path):
    with open(path, "rb") as f:
        return f.read()


def read_folder(path):
    """Every file below a folder, by its path; None if there is no folder."""
    files = [os.path.join(at, name) for at, _, names in os.walk(path) for name in names]
    return {os.path.relpath(each, path): read(each) for each in files} if os.path.isdir(path) else None


def copy(path, to):
    (shutil.copytree if os.path.isdir(path) else shutil.copy)(path, os.path.join(to, os.path.basename(path)))


def lines_of(raw):
    """Whole lines of a state; a last one that was cut is measured again."""
    return raw.split(b"\n")[:-1]


class Cgroup:
    """A memory cgroup below this process's own, of version 1 or 2; `at` is None where none can be made."""

    def __init__(self):
        self.at = self.limit = None
        for line in open("/proc/self/cgroup"):
            _, names, path = line.rstrip("\n").split(":", 2)
            if names not in ("", "memory"):
                continue
            at = "/sys/fs/cgroup" + ("/memory" if names else "") + path.rstrip("/") + "/mxgold-faults-%d" % os.getpid()
            limit = os.path.join(at, "memory.limit_in_bytes" if names else "memory.max")
            try:
                os.mkdir(at)
                with open(limit, "w") as f:
                    f.write(str(1 << 30))
                self.at, self.limit = at, limit
                return
            except OSError:
                if os.path.isdir(at):
                    os.rmdir(at)

    def set(self, n):
        """Room for n bytes; what was charged to earlier processes goes first."""
        for _ in range(100):
            try:
                with open(self.limit, "w") as f:
                    f.write(str(n))
                return
            except OSError: # what the last process took is not given back yet
                time.sleep(0.02)
        raise SystemExit("faults: the cgroup keeps its memory")

    def enter(self):
        with open(os.path.join(self.at, "cgroup.procs"), "w") as f:
            f.write(str(os.getpid()))

    def remove(self):
        for _ in range(100):
            try:
                return os.rmdir(self.at) if self.at else None
            except OSError:
                time.sleep(0.02)
        return None


def is_whole(raw):
    """A .safetensors file with all its bytes."""
    if len(raw) < 8 or len(raw) < 8 + struct.unpack("<Q", raw[:8])[0]:
        return False
    n = struct.unpack("<Q", raw[:8])[0]
    tensors = [t for name, t in json.loads(raw[8:8 + n]).items() if name != "__metadata__"]
    return len(raw) == 8 + n + max(t["data_offsets"][1] for t in tensors)


def no_products(path):
    """Zeros for A: then many models give D, and probe --emit-next has something to write."""
    raw = bytearray(read(path))
    n = struct.unpack("<Q", raw[:8])[0]
    first, end = json.loads(raw[8:8 + n])["a"]["data_offsets"]
    raw[8 + n + first:8 + n + end] = bytes(end - first)
    with open(path, "wb") as f:
        f.write(raw)


def npy(path, descr, data):
    head = "{'descr': '%s', 'fortran_order': False, 'shape': (%d, %d), }" % (descr, ROWS, COLS)
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data)


class Campaign:
    def __init__(self, mxgold, seed, folder, commands):
        self.mxgold, self.random, self.folder, self.commands = mxgold, random.Random(seed), folder, commands
        self.source, self.work, self.tmp = (os.path.join(folder, name) for name in ("source", "work", "tmp"))
        for each in (self.source, self.work, self.tmp):
            os.mkdir(each)
        self.env = dict(os.environ, TMPDIR=self.tmp, LC_ALL="C")
        self.cgroup = Cgroup()
        self.kinds = [kind for kind in KINDS if kind != "memory cgroup" or self.cgroup.at]
        self.inputs()
        self.want, self.seconds = {}, {} # by the name of a command
        self.least = self.least_memory()

    def call(self, line, cwd):
        subprocess.run([self.mxgold, *line.split()], cwd=cwd, env=self.env, check=True, stdout=subprocess.DEVNULL)

    def inputs(self):
        noise = random.Random(1)
        npy(os.path.join(self.source, "x.npy"), "<f4", b"".join(struct.pack("<f", noise.gauss(0, 1)) for _ in range(ROWS * COLS)))
        npy(os.path.join(self.source, "h.npy"), "<f2", b"".join(struct.pack("<e", noise.gauss(0, 1)) for _ in range(ROWS * COLS)))
        for name, what in (("mlp.json", MLP), ("base.json", BASE), ("sweep.json", SWEEP)):
            with open(os.path.join(self.source, name), "w") as f:
                json.dump(what, f)
        with open(os.path.join(self.source, "text"), "w") as f:
            f.write(" ".join(noise.choice(["fault", "block", "scale", "tensor"]) for _ in range(4000)))
        for line in ("quantize x.npy --preset nvfp4 -o q.safetensors", "encode x.npy --format e4m3 -o e.npy", "gen random --shape 128x1024 -o v.mxv",
                     "quantize x.npy --preset ocp-mxfp8-e4m3 --dequantized -o c.safetensors", "gen random --shape 64x256 -o s.safetensors",
                     "probe --emit p.safetensors --like " + UNIT, "train mlp.json -o first --set train.steps=1",
                     "gen random --shape 64x64 -o sq.safetensors", "dequantize sq.safetensors -o sq.npy", "sweep sweep.json -o swept",
                     "probe --emit zero.safetensors --m 16 --n 16 --like " + SMALL_UNIT):
            self.call(line, self.source)
        no_products(os.path.join(self.source, "zero.safetensors"))
        self.call("mma zero.safetensors --model " + SMALL_UNIT + " -o d.safetensors", self.source)
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
        out = "out" + command.ending
        self.clear()
        for each in command.inputs + command.others:
            copy(os.path.join(self.source, each), self.work)
        if command.kind == "files":
            os.mkdir(os.path.join(self.work, out))
        if command.name not in self.want:
            start = time.monotonic()
            self.call(command.line.format(o=out), self.work)
            self.seconds[command.name] = time.monotonic() - start
            path = os.path.join(self.work, out)
            self.want[command.name] = read_folder(path) if os.path.isdir(path) else read(path)
            return self.fresh(command)
        return out

    def clear(self):
        for old in os.scandir(self.work):
            (shutil.rmtree if old.is_dir() else os.remove)(old.path)

    def start(self, argv, limit=None, within=None):
        def child():
            if within:
                within.enter()
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
        kind = self.kinds[number % len(self.kinds)]
        fit = [c for c in self.commands if (kind != "closed pipe" or c.stdout) and (kind != "shrunk input" or c.inputs)]
        if not fit: # of --only
            fit, kind = self.commands, "kill -9"
        command = fit[r.randrange(len(fit))]
        name, line = command.name, command.line
        out = self.fresh(command)
        path, old = os.path.join(self.work, out), None
        if r.random() < 0.5 and command.kind == "file":
            old = b"what was there before\n"
            with open(path, "wb") as f:
                f.write(old)
        want, moment = self.want[name], r.random() * 1.1 * self.seconds[name]
        argv, limit, within = line.format(o=out).split(), None, None
        if kind == "full disk":
            limit = (resource.RLIMIT_FSIZE, r.randrange(max(map(len, want.values())) if isinstance(want, dict) else len(want)))
        if kind == "memory cgroup":
            within = self.cgroup
            within.set((2 << 20) + r.randrange(24 << 20))
        if kind == "memory limit":
            limit = (resource.RLIMIT_AS, self.least + r.randrange(12 << 20))
        if kind == "closed pipe":
            argv = line.format(o="-").split()
        child = self.start(argv, limit, within)
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

    def go_on(self, command, out):
        """The same call again, with the inputs as they were. What it says, if it fails."""
        for each in command.inputs:
            copy(os.path.join(self.source, each), self.work)
        for each in command.beside:
            shutil.rmtree(os.path.join(self.work, each), ignore_errors=True)
        done = subprocess.run([self.mxgold, *(command.line.format(o=out) + command.again).split()], cwd=self.work, env=self.env, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE)
        return ["the same call again: exit %d: %s" % (done.returncode, done.stderr.decode(errors="replace")[:200])] if done.returncode else []

    def one_run(self, kind, command, out, rc):
        """What is wrong with a run's folder, which is then gone on with."""
        path, want = os.path.join(self.work, out), self.want[command.name]
        have = read_folder(path) or {}
        wrong = ["%s/%s is not whole" % (out, name) for name in have if name.endswith(".safetensors") and not is_whole(have[name])]
        if rc == 0 and have != want:
            wrong.append("exit 0 and another run")
        odd = set(have) - set(want)
        if odd and not (kind in KILLS and all(map(TEMPORARY.fullmatch, odd))):
            wrong.append("left behind in the run's folder: " + " ".join(odd))
        wrong += self.go_on(command, out)
        if read_folder(path) != want:
            wrong.append("--resume makes another run than one that nothing happened to")
        return wrong

    def files(self, kind, command, out, rc):
        """Several files: each whole or absent."""
        path, want = os.path.join(self.work, out), self.want[command.name]
        have = read_folder(path)
        wrong = ["%s/%s is neither whole nor absent" % (out, name) for name in have if name in want and have[name] != want[name]]
        odd = set(have) - set(want)
        if odd and not (kind in KILLS and all(map(TEMPORARY.fullmatch, odd))):
            wrong.append("left behind: " + " ".join(odd))
        if rc == 0 and have != want:
            wrong.append("exit 0 and not every file")
        wrong += self.go_on(command, out)
        return wrong if read_folder(path) == want else wrong + ["the same call again does not leave the same files and no other"]

    def sweep(self, kind, command, out, rc):
        """A sweep's folder: what the same call makes of it."""
        path, want = os.path.join(self.work, out), self.want[command.name]
        have = read_folder(path) or {}
        wrong = ["%s/%s is not whole" % (out, name) for name in have if name.endswith(".safetensors") and not is_whole(have[name])]
        if rc == 0 and have.get("results.jsonl") != want["results.jsonl"]:
            wrong.append("exit 0 and other results")
        if set(lines_of(have.get("results.jsonl", b""))) - set(lines_of(want["results.jsonl"])):
            wrong.append("results.jsonl has a result that no undisturbed sweep has") # what is done is there already
        wrong += self.go_on(command, out)
        have = read_folder(path)
        if have.get("results.jsonl") != want["results.jsonl"]:
            wrong.append("the same call again ends with other results")
        odd = [name for name in have if TEMPORARY.search(name)]
        return wrong + ["left behind after the same call again: " + " ".join(odd)] if odd else wrong

    def state(self, kind, command, out, rc):
        """Lines of ablate --state: those of the undisturbed run, and after the same call again all of them."""
        path, want = os.path.join(self.work, out), set(lines_of(self.want[command.name]))
        have = read(path) if os.path.exists(path) else b""
        wrong = ["a line of the state that no undisturbed run has"] if set(lines_of(have)) - want else []
        if not have.endswith(b"\n") and have and kind not in KILLS:
            wrong.append("the state ends within a line")
        if rc == 0 and set(lines_of(have)) != want:
            wrong.append("exit 0 and not every line")
        wrong += self.go_on(command, out)
        return wrong if want <= set(lines_of(read(path))) else wrong + ["the same call again does not have every line"]

    def judge(self, kind, command, out, old, rc, said):
        """What became of it, and what is wrong with that."""
        if command.kind == "file":
            wrong = self.one_file(kind, command, out, old, rc)
        else:
            wrong = {"run": self.one_run, "files": self.files, "sweep": self.sweep, "state": self.state}[command.kind](kind, command, out, rc)
        known = set(command.inputs + command.others + command.beside) | {out, "d.npy"}
        left = sorted(set(os.listdir(self.work)) - known) + os.listdir(self.tmp)
        if left and kind in KILLS and all(map(TEMPORARY.fullmatch, left)):
            wrong += self.go_on(command, out)
            left = sorted(set(os.listdir(self.work)) - known)
        if left:
            wrong.append("left behind: " + " ".join(left))
        if rc == -9 and kind in KILLS:
            return "killed", wrong
        if rc == 3 and kind == "SIGTERM" and command.stops:
            if not re.fullmatch(r"mxgold: stopped [^\n]+\n", said):
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
    options.add_argument("--only", help="a word of the names of commands, such as sweep")
    o = options.parse_args()
    table, found = {}, []
    with tempfile.TemporaryDirectory() as folder:
        campaign = Campaign(os.path.abspath(o.mxgold), o.seed, folder, [c for c in COMMANDS if o.only is None or o.only in c.name])
        try:
            for number in range(o.faults):
                kind, name, (end, wrong) = campaign.fault(number)
                row = table.setdefault(kind, dict.fromkeys(HEADS, 0))
                row["faults"] += 1
                row[end] += 1
                row["violations"] += bool(wrong)
                found += ["fault %d of seed %d, %s, %s: %s" % (number, o.seed, kind, name, each) for each in wrong]
        finally:
            campaign.cgroup.remove()
    print("%-14s" % "fault" + "".join("%12s" % h for h in HEADS))
    for kind in KINDS:
        if kind in table:
            print("%-14s" % kind + "".join("%12d" % table[kind][h] for h in HEADS))
    print("%-14s" % "all" + "".join("%12d" % sum(row[h] for row in table.values()) for h in HEADS))
    if "memory cgroup" not in campaign.kinds:
        print("no memory cgroup can be made here: the limit on address space stands in for it")
    for each in found:
        print(each, file=sys.stderr)
    return bool(found)


sys.exit(main())
