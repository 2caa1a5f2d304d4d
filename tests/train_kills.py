#!/usr/bin/env python3
"""A training run that is killed at random moments and resumed ends with the bits of one that was never stopped.

    train_kills.py MXGOLD [KILLS] [SEED]

KILLS (20) times a run of a tiny llama under a recipe with stochastic rounding and drawn signs gets SIGKILL or SIGTERM at a random moment between its start and
its end, and is resumed, until it finishes; then every file of its folder is compared with the undisturbed run's. The moments follow from SEED (1)."""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

mxgold, kills = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20
chance = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
TEXT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "configs", "data", "tinyshakespeare.txt")
CONFIG = {
    "model": {"kind": "llama", "width": 32, "layers": 2, "heads": 2, "ffn": 64, "context": 32},
    "data": {"text": TEXT, "split": 0.9},
    "train": {"steps": 300, "batch": 4, "seed": 7, "eval_batches": 2, "eval_every": 50, "checkpoint_every": 2},
    "optimizer": {"kind": "stablespam", "lr": 3e-3, "weight_decay": 0.1, "reset": 40},
    "schedule": {"kind": "cosine", "warmup": 10},
    "quant": {"recipe": "recipe-tseng"},
}
FILES = ["config.json", "metrics.jsonl", "digests.txt", "model.safetensors", "state.safetensors"]


def command(config, out):
    return [mxgold, "train", config, "-o", out, "--resume", "--threads", "1"]


def content(folder, name):
    with open(os.path.join(folder, name), "rb") as f:
        return f.read()


with tempfile.TemporaryDirectory() as folder:
    config, whole, broken = (os.path.join(folder, n) for n in ("config.json", "whole", "broken"))
    with open(config, "w") as f:
        json.dump(CONFIG, f)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    began = time.monotonic()
    subprocess.run(command(config, whole), check=True, **quiet)
    seconds = time.monotonic() - began
    hit = early = resumed = 0
    while hit < kills:
        # A run lasts `seconds`, a kill needs it to live: shares of it that let several kills fall into one run, and some before its first checkpoint.
        run = subprocess.Popen(command(config, broken), **quiet)
        time.sleep(chance.random() ** 2 * seconds * 0.6)
        if run.poll() is not None:  # it was finished first: begin again
            if run.returncode:
                sys.exit(f"train_kills: a resumed run ended with exit status {run.returncode}")
            early += 1
            for name in FILES:
                os.unlink(os.path.join(broken, name))
            continue
        run.send_signal(chance.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM]))
        run.wait()
        hit += 1
        resumed += os.path.exists(os.path.join(broken, "state.safetensors"))
    last = subprocess.run(command(config, broken), **quiet)
    left = sorted(set(os.listdir(broken)) - set(FILES))
    different = [n for n in FILES if content(whole, n) != content(broken, n)]
    print(f"train-kills: {hit} kills, {resumed} of them with a checkpoint to go on from, exit status {last.returncode}, "
          f"{len(FILES) - len(different)} of {len(FILES)} files the same, left behind: {' '.join(left) or 'nothing'}")
    sys.exit(1 if last.returncode or different or left or resumed < kills // 2 else 0)
