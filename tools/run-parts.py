#!/usr/bin/env python3
"""Runs the parts of `make check` side by side, the longest first, and prints one line a part.

  run-parts.py [--jobs N] [--only-fast] --expected TABLE --logs FOLDER NAME=COMMAND...

Each COMMAND is a line of shell. What a part prints goes to FOLDER/NAME.log and is shown only if the part fails. A part that ends well
and has printed a line `NAME: SKIPPED, why` counts as skipped. The last line is `N passed, N failed, N skipped`; the exit status is 1 if a part failed.

TABLE has a line for each part: its name, the seconds of processor time that it is expected to take, and `fast` if --only-fast runs it.
FOLDER/seconds keeps what the last run measured, which is preferred. Both decide the order alone: a part that is in neither starts first.

Processor time is that of the part and of every child that it has waited for. Ctrl-C, or a signal to end, ends every process of every part.
"""
import argparse
import ctypes
import os
import re
import signal
import subprocess
import sys
import time

PR_SET_CHILD_SUBREAPER = 36  # <sys/prctl.h>
SAYS_SKIPPED = re.compile(r"[\w-]+: SKIPPED\b")  # of the part as a whole; half a part says it further on in its line
SHOWN = 60  # lines of a failed part's output; all of it is in its log


class Part:
    def __init__(self, name, command):
        self.name, self.command = name, command

    def start(self, logs, environment):
        self.log = os.path.join(logs, self.name.replace("/", "-") + ".log")
        self.began = time.monotonic()
        with open(self.log, "wb") as out:
            # A group of its own: Ctrl-C reaches this program alone, which then ends the parts.
            process = subprocess.Popen(["/bin/sh", "-c", self.command], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                                       env=environment, start_new_session=True)
        self.pid = process.pid
        process.returncode = 0  # reaped below with wait4, for its processor time

    def ended(self, status, usage):
        self.clock = time.monotonic() - self.began
        self.processor = usage.ru_utime + usage.ru_stime
        with open(self.log, errors="replace") as f:
            self.output = f.read().splitlines()
        if not os.WIFEXITED(status) or os.WEXITSTATUS(status):
            self.result = "FAILED"
        elif any(SAYS_SKIPPED.match(line) for line in self.output):
            self.result = "skipped"
        else:
            self.result = "passed"
        self.why = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit {os.WEXITSTATUS(status)}"


def children_of():
    """Every process below this one: groups do not help, since some parts make groups of their own."""
    below = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as f:
                parent = int(f.read().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue  # it has ended
        below.setdefault(parent, []).append(int(pid))
    found, todo = [], [os.getpid()]
    while todo:
        more = below.get(todo.pop(), [])
        found += more
        todo += more
    return found


def end_all():
    for sig in (signal.SIGTERM, signal.SIGKILL):
        until = time.monotonic() + 2
        while True:
            pids = children_of()
            for pid in pids:
                try:
                    os.kill(pid, sig)
                except ProcessLookupError:
                    pass
            try:
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            except ChildProcessError:
                return
            if time.monotonic() > until:
                break
            time.sleep(0.05)


def read_table(path):
    seconds, fast = {}, set()
    try:
        with open(path) as f:
            for line in f:
                words = line.split("#")[0].split()
                if words:
                    seconds[words[0]] = float(words[1])
                    if "fast" in words[2:]:
                        fast.add(words[0])
    except FileNotFoundError:
        pass
    return seconds, fast


def environment_of(jobs):
    e = dict(os.environ)
    # Threads that wait for work give the processor to the other parts. With more parts than processors, two threads a part are enough:
    # what depends on the number of threads asks for that number itself.
    e.setdefault("OMP_WAIT_POLICY", "passive")
    e.setdefault("OMP_NUM_THREADS", str(max(2, (os.cpu_count() or 2) // jobs)))
    # A make inside a part is not a client of the make that started this program.
    flags = re.sub(r"(^| )(-j\d*|--jobserver-\S+)", " ", e.get("MAKEFLAGS", ""))
    e["MAKEFLAGS"] = flags
    return e


def main():
    ap = argparse.ArgumentParser(add_help=False)
    ap.add_argument("--jobs", type=int, default=os.cpu_count() or 2)
    ap.add_argument("--only-fast", action="store_true")
    ap.add_argument("--expected", required=True)
    ap.add_argument("--logs", required=True)
    ap.add_argument("parts", nargs="+")
    o = ap.parse_args()
    jobs = max(1, o.jobs)
    expected, fast = read_table(o.expected)
    measured_at = os.path.join(o.logs, "seconds")
    measured = read_table(measured_at)[0]
    parts = [Part(*p.split("=", 1)) for p in o.parts]
    if len({p.name for p in parts}) != len(parts):
        sys.exit("run-parts: two parts have the same name")
    if o.only_fast:
        unknown = fast - {p.name for p in parts}
        if unknown:
            sys.exit(f"run-parts: {o.expected} names parts that there are not: {' '.join(sorted(unknown))}")
        parts = [p for p in parts if p.name in fast]
    todo = sorted(parts, key=lambda p: -measured.get(p.name, expected.get(p.name, float("inf"))))
    os.makedirs(o.logs, exist_ok=True)
    # What a part leaves running becomes a child of this program, and is ended with the rest.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    environment, began, running, done = environment_of(jobs), time.monotonic(), {}, []
    width = max(len(p.name) for p in parts)

    def interrupted(number, _):
        raise KeyboardInterrupt(number)

    for s in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(s, interrupted)
    try:
        while todo or running:
            while todo and len(running) < jobs:
                part = todo.pop(0)
                part.start(o.logs, environment)
                running[part.pid] = part
            pid, status, usage = os.wait4(-1, 0)
            if pid not in running:
                continue  # an orphan of a part
            part = running.pop(pid)
            part.ended(status, usage)
            done.append(part)
            last = next((line for line in reversed(part.output) if line.strip()), "")
            if part.result == "skipped":
                last = next(line for line in part.output if SAYS_SKIPPED.match(line))
            elif part.result == "FAILED":
                last = f"{part.why}, {part.log}"
            print(f"{part.result:7} {part.name:{width}} {part.clock:7.1f} s {part.processor:7.1f} s of processor  {last[:100]}", flush=True)
            if part.result == "FAILED":
                left_out = len(part.output) - SHOWN
                if left_out > 0:
                    print(f"  | ... {left_out} lines before these are in {part.log}")
                print("\n".join("  | " + line for line in part.output[-SHOWN:]), flush=True)
    except KeyboardInterrupt:
        end_all()
        print(f"run-parts: interrupted, {len(done)} of {len(parts)} parts had ended; every process that they started is ended", file=sys.stderr)
        sys.exit(130)
    end_all()
    measured.update({p.name: p.processor for p in done if p.result == "passed"})
    with open(measured_at + ".new", "w") as f:
        f.writelines(f"{name} {measured[name]:.1f}\n" for name in sorted(measured))
    os.replace(measured_at + ".new", measured_at)
    count = {r: sum(p.result == r for p in done) for r in ("passed", "FAILED", "skipped")}
    if count["FAILED"]:
        print("failed: " + " ".join(p.name for p in done if p.result == "FAILED"))
    print(f"{len(done)} parts in {time.monotonic() - began:.0f} s, {sum(p.processor for p in done):.0f} s of processor time, {jobs} side by side")
    print(f"{count['passed']} passed, {count['FAILED']} failed, {count['skipped']} skipped")
    sys.exit(1 if count["FAILED"] else 0)


main()
