#!/usr/bin/env python3
"""Runs the commands that a page shows, as they stand there, and holds what they print to what the page shows.

page_commands.py ROOT MXGOLD PAGE...    in the current folder, which is a scratch one; a line for each command that fails or is skipped; exit 1 if one fails

In a block fenced as ```console each line that begins with "$ " is a command (a "\\" at its end continues it), and the lines below it are what it
prints. Nothing below it: only the exit status is looked at. A line "..." stands for any lines, " ..." at the end of a line for the rest of it, and a
last line "(exit status N)" for a status other than 0.

Only a command that needs a GPU is left out, and says so in a comment: "# needs a GPU" (or "# needs gnuplot", if there is none). Two other comments name the
part of make check that runs the command as it stands: "# takes minutes" stands behind `make check` or one of its parts, and the commands of a block marked
"# installs packages" are run in a fresh environment by python/tests/test_install.py. Programs of the reader's own have stand-ins (STAND_INS).

Between backquotes `mxgold COMMAND ...` is run too, on the files that set_up() makes; `mxgold COMMAND` alone must be a command, `make TARGET` a
target, and a path of this tree must be there. A command that is only indented is refused: nothing would run it.
"""
import fnmatch
import glob
import os
import json
import re
import shlex
import shutil
import struct
import subprocess
import sys

# The programs that pages call and readers bring: a scheduler, GNU parallel, MPI, and a kernel in a pipe, which here prints what mxgold itself gives.
STAND_INS = {
    "sbatch": "for i in 0 1 2 3 4 5 6 7; do SLURM_ARRAY_TASK_ID=$i sh -c \"$3\" || exit; done",
    "parallel": 'exec xargs -I{} "$@"',
    "mpirun": 'shift 2; exec "$@"',
    "your_program": "cat >asked.mxv; mxgold gen ties --preset te-nvfp4 -o right.mxv; cat right.mxv",
}
TREES = "bench|configs|docs|examples|formats|golden|hip_backend|include|python|ref|src|tests|tools"


def run(command):
    said = subprocess.run(["bash", "-c", command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return said.returncode, said.stdout.decode(errors="replace")


def npy(name, source, tensor):
    """NAME.npy from a tensor of a .safetensors file of float32."""
    raw = open(source, "rb").read()
    length = struct.unpack("<Q", raw[:8])[0]
    entry = json.loads(raw[8 : 8 + length])[tensor]
    first, last = entry["data_offsets"]
    head = ("{'descr': '<f4', 'fortran_order': False, 'shape': %s, }" % (tuple(entry["shape"]),)).encode().ljust(117) + b"\n"
    open(name, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + raw[8 + length + first : 8 + length + last])


def set_up(root):
    """The tree by links, and the files that commands between backquotes name."""
    for name in TREES.split("|"):
        if os.path.isdir(os.path.join(root, name)):
            os.symlink(os.path.join(root, name), name)
    slices = "tests/data/minilm_slices.safetensors"
    npy("W.npy", slices, "weight")
    npy("X.npy", slices, "activation")
    npy("DY.npy", slices, "gradient")
    os.makedirs("stand-ins")
    for name, text in STAND_INS.items():
        open("stand-ins/" + name, "w").write("#!/bin/sh\n" + text + "\n")
        os.chmod("stand-ins/" + name, 0o755)
    os.environ["PATH"] = os.path.abspath("stand-ins") + os.pathsep + os.environ["PATH"]
    os.makedirs("build/mpi")
    os.symlink(shutil.which("mxgold"), "build/mpi/mxgold")
    os.makedirs("shared")
    json.dump(
        {
            "config": os.path.join(root, "configs/gaussian.json"),
            "set": {"train.steps": 2},
            "arms": [{"name": "MXFP4", "set": {"quant.recipe": "recipe-ocp"}}],
            "seeds": 2,
        },
        open("SWEEP.json", "w"),
    )
    for command in (
        "mxgold quantize X.npy -o EXPECTED.safetensors",
        "mxgold quantize X.npy --set elem.round=rtz -o ACTUAL.safetensors",
        "mxgold quantize X.npy -o A.safetensors",
        "mxgold quantize DY.npy -o B.safetensors",
        "mxgold gemm A.safetensors B.safetensors -o D.npy",
        "cp %s MODEL.safetensors" % slices,
    ):
        status, said = run(command)
        if status:
            sys.exit("page_commands.py: %s: %s" % (command, said))


def blocks(text):
    """(first line's number, info string, lines) of each fenced block; and the text without them."""
    found, rest, inside = [], [], None
    for number, line in enumerate(text.split("\n"), 1):
        fence = re.match(r"```(.*)", line)
        if fence and inside is None:
            inside = (number, fence[1].strip(), [])
        elif fence:
            found.append(inside)
            inside = None
        elif inside is not None:
            inside[2].append(line)
        rest.append("" if inside is not None or fence else line)
    return found, rest


def commands(lines):
    """(command, what it shows) of a console block."""
    got = []
    more = False
    for line in lines:
        if more:
            got[-1][0] += "\n" + line
        elif line.startswith("$ "):
            got.append([line[2:], []])
        elif got:
            got[-1][1].append(line)
        more = (more or line.startswith("$ ")) and line.endswith("\\")
    return got


def fits(shown, said):
    pattern = "".join(
        "(?:.*\n)*" if l == "..." else re.escape(l[:-4]) + ".*\n" if l.endswith(" ...") else re.escape(l) + "\n" for l in shown
    )
    return re.fullmatch(pattern, said)


class Page:
    def __init__(self, root, name):
        self.root, self.name, self.bad, self.ran, self.skipped, self.elsewhere = root, os.path.relpath(os.path.abspath(name), root), 0, 0, [], 0

    def fail(self, line, text):
        self.bad += 1
        print("  %s:%d: %s" % (self.name, line, text))

    def command(self, line, command, shown):
        comment = re.search(r"\s# (.*)$", command)
        why = comment[1] if comment else ""
        if why.startswith("needs a GPU") or (why.startswith("needs gnuplot") and not shutil.which("gnuplot")):
            self.skipped.append(command.strip())
            return
        if why.startswith("installs packages"):
            self.elsewhere += 1
            return
        if why.startswith("takes minutes"):
            part = re.match(r"make ([a-z-]+)", command)
            if not part or part[1] not in ["check"] + [row.split()[0] for row in open(os.path.join(self.root, "tests/parts.txt")) if row.strip()]:
                self.fail(line, "takes minutes, and no part of make check runs it: " + command)
            self.elsewhere += 1
            return
        while shown and not shown[-1]:
            shown.pop()
        want = re.fullmatch(r"\(exit status (\d+)\)", shown[-1]) if shown else None
        if want:
            shown = shown[:-1]
        if command.startswith("make "):
            command = self.make(line, command.split("#")[0].strip())
            if not command:
                return
        status, said = run(command)
        said = said.replace(self.root + "/", "")
        self.ran += 1
        if status != (int(want[1]) if want else 0):
            self.fail(line, "exit %d: %s\n%s" % (status, command, said))
        elif shown and not fits(shown, re.sub(r"\n+\Z", "\n", said)):
            self.fail(line, "%s prints\n%s" % (command, said))

    def make(self, line, command):
        """A target is made in the tree, by the make that runs this: by hand it might compile all of it with other flags."""
        if os.environ.get("MAKELEVEL"):
            return "cd %s && %s INSTALL=no" % (shlex.quote(self.root), command)
        self.skipped.append(command + ": only under make check")
        return None

    def span(self, line, words):
        """A command between backquotes: differs may exit 1, for its files do differ."""
        if " " not in words[7:]:
            status, said = run("mxgold help " + words[7:])
        else:
            status, said = run(words)
            self.ran += 1
        if status and not (status == 1 and re.match(r"mxgold (diff|verify|test)\b", words)):
            self.fail(line, "exit %d: `%s`: %s" % (status, words, said))

    def check(self, targets):
        text = open(os.path.join(self.root, self.name)).read()
        fenced, rest = blocks(text)
        for number, info, lines in fenced:
            if info == "console":
                for command, shown in commands(lines):
                    self.command(number, command, shown)
            elif any(re.match(r"(\$ )?(mxgold|make) ", l) for l in lines):
                self.fail(number, "a command in a block that nothing runs")
        for number, line in enumerate(rest, 1):
            if re.match(r"    +(\$ )?(mxgold|make|cc) ", line):
                self.fail(number, "an indented command that nothing runs: " + line.strip())
            for span in re.findall(r"`([^`]+)`", line):
                if re.match(r"mxgold [a-z]", span):
                    self.span(number, span.replace("\\|", "|"))
                elif re.match(r"make [a-z]", span):
                    for target in re.findall(r" ([a-z][a-z0-9-]*)(?![=\w])", span):
                        if target not in targets:
                            self.fail(number, "`%s`: no such target" % span)
            for path in re.findall(r"(?<![\w./-])(?:%s)/[\w./*{},@-]*[\w*/}]" % TREES, line):
                if "{" not in path and not glob.glob(os.path.join(self.root, path)):
                    self.fail(number, path + " is not there")
            for link in re.findall(r"\]\(([^)#]+)", line):
                if "://" not in link and not os.path.exists(os.path.join(self.root, os.path.dirname(self.name), link)):
                    self.fail(number, "a link to " + link + ", which is not there")
        return self.bad


def main():
    root, mxgold, pages = sys.argv[1], sys.argv[2], sys.argv[3:]
    os.environ["PATH"] = os.path.dirname(mxgold) + os.pathsep + os.environ["PATH"]
    os.environ["LC_ALL"] = "C"
    targets = set()
    for folder, _, names in os.walk(root):
        if not fnmatch.fnmatch(folder, "*/build*") and not "/.git" in folder:
            for name in names:
                if name == "Makefile" or name.endswith(".mk"):
                    text = open(os.path.join(folder, name)).read().replace("\\\n", " ")
                    for line in re.findall(r"^([A-Za-z0-9][\w -]*):(?!=)", text, re.M) + re.findall(r"^\.PHONY:(.*)", text, re.M):
                        targets.update(line.split())
    set_up(root)
    bad = 0
    for name in pages:
        page = Page(root, name)
        bad += page.check(targets)
        for command in page.skipped:
            print("  %s: skipped: %s" % (page.name, command))
        print("  %s: %d commands run, %d run by other parts, %d skipped, %d wrong" % (page.name, page.ran, page.elsewhere, len(page.skipped), page.bad))
    return bad != 0


sys.exit(main())
