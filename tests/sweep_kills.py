#!/usr/bin/env python3
"""A sweep whose processes are killed at random moments, and whose journals are cut at random bytes, ends with the results of one that was left alone.

    sweep_kills.py MXGOLD [KILLS] [SEED]

KILLS (20) times a sweep of small regressions by two processes gets SIGKILL at a random moment: all of it, the parent alone, or one of its processes. After every other
kill one journal loses its end, at a random byte. Then results.jsonl is compared with the undisturbed sweep's, and the journals are searched for a run that was
done again although its end was known. The same with successive halving. The moments follow from SEED (1)."""

import glob
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

mxgold, kills = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 20
chance = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
CONFIG = {
    "model": {"kind": "gaussian"},
    "data": {"rows": 2048, "features": 64, "split": 0.75},
    "train": {"steps": 160, "batch": 128, "seed": 1, "checkpoint_every": 20},
    "optimizer": {"kind": "adam", "lr": 0.01},
}
SWEEP = {
    "config": "base.json",
    "set": {"quant.recipe": "recipe-ocp"},
    "grid": {"optimizer.lr": [0.001, 0.003, 0.01, 0.03, 0.1], "rounding": [{"name": "rne", "set": {}}, {"name": "sr", "set": {"quant.set": ["elem.round=sr"]}}]},
    "seeds": 2,
}
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def results(folder):
    with open(os.path.join(folder, "results.jsonl"), "rb") as f:
        return f.read()


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as f:
            return [int(child) for child in f.read().split()]
    except OSError:
        return []


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def kill(sweep):
    """One kill; what it hit."""
    what = chance.choice(["all", "parent", "process"])
    if what == "process":
        of = children(sweep.pid)
        if of:
            try:
                os.kill(chance.choice(of), signal.SIGKILL)
                return what
            except ProcessLookupError:
                pass
        what = "all"
    left = children(sweep.pid)
    if what == "all":
        os.killpg(sweep.pid, signal.SIGKILL)
    else:
        sweep.send_signal(signal.SIGKILL)
    sweep.wait()
    late = time.monotonic() + 20
    while any(is_running(pid) for pid in left):  # the processes of a parent that died must die with it: they would go on beside the next call
        if time.monotonic() > late:
            sys.exit("sweep_kills: a process outlives the sweep's by 20 seconds")
        time.sleep(0.002)
    return what


def cut(folder):
    """A journal's end is lost, at any byte."""
    path = chance.choice(sorted(glob.glob(os.path.join(folder, "journal", "*"))))
    os.truncate(path, chance.randrange(os.path.getsize(path) + 1))


def done_twice(folder):
    ends = {}
    for path in glob.glob(os.path.join(folder, "journal", "*")):
        with open(path, "rb") as f:
            for line in f:
                if line.endswith(b"\n"):
                    event = json.loads(line)
                    if event["event"] not in ("begun",):
                        key = event["id"], event["event"], event.get("share")
                        ends[key] = ends.get(key, 0) + 1
    return sum(n > 1 for n in ends.values())


def ordeal(scratch, name, options):
    sweep = os.path.join(scratch, "sweep.json")
    whole, broken = os.path.join(scratch, name + "-whole"), os.path.join(scratch, name + "-broken")
    began = time.monotonic()
    subprocess.run([mxgold, "sweep", sweep, "-o", whole, "--jobs", "2", *options], check=True, **QUIET)
    seconds = time.monotonic() - began
    hit, cuts, calls, kinds = 0, 0, 0, {}
    while hit < kills:
        call = subprocess.Popen([mxgold, "sweep", sweep, "-o", broken, "--jobs", "2", *options], start_new_session=True, **QUIET)
        calls += 1
        time.sleep(chance.random() * seconds * 0.4)
        if call.poll() is None:
            what = kill(call)
            kinds[what] = kinds.get(what, 0) + 1
            hit += 1
        if call.poll() is None:
            call.wait()
        if hit < kills and (hit % 2 or call.returncode == 0) and glob.glob(os.path.join(broken, "journal", "*")):
            cut(broken)
            cuts += 1
    last = subprocess.run([mxgold, "sweep", sweep, "-o", broken, "--jobs", "2", *options], **QUIET)
    same, twice = results(whole) == results(broken), done_twice(broken)
    said = ", ".join(f"{n} of {what}" for what, n in sorted(kinds.items()))
    print(f"sweep-kills: {name}: {hit} kills ({said}) and {cuts} cut journals in {calls} calls, exit status {last.returncode}, results.jsonl "
          f"{'the same' if same else 'DIFFERS'}, {twice} runs done again although they had ended")
    return last.returncode or not same or twice


with tempfile.TemporaryDirectory() as scratch:
    for name, content in (("base.json", CONFIG), ("sweep.json", SWEEP)):
        with open(os.path.join(scratch, name), "w") as f:
            json.dump(content, f)
    bad = [ordeal(scratch, name, options) for name, options in (("sweep", []), ("halving", ["--halving", "1"]))]
    sys.exit(1 if any(bad) else 0)
