#!/usr/bin/env python3
"""Holds docs/reference/TECHNIQUES.md to the tree: each row's files exist, and so do the keys and the tests that it names.

techniques_page.py ROOT MXGOLD    a line for each thing that is not there; exit 1 if there is one

A row has five columns: number, technique, keys, code, test. Between backquotes of "keys": keys of a quantiser, training keys, keys of a configuration,
KEY=VALUE of one of its choices, presets, recipes and commands; `data.*` stands for a key at least. Of "code": files, and folders.
"test" is `FILE`: NAME, NAME; `FILE` ... where a file that has tests of check (START_TEST) has a test of each name, and names one at least; what stands
behind another file is prose. Every technique from T1 to T32 has a row.
"""
import json
import os
import re
import subprocess
import sys

TECHNIQUES = range(1, 33)


def table(mxgold, *command):
    return json.loads(subprocess.run([mxgold, *command, "--json"], check=True, stdout=subprocess.PIPE).stdout)


def names_of(mxgold):
    """Every key with its choices (an empty list: numbers), and the names of presets and recipes."""
    formats, train = table(mxgold, "formats"), table(mxgold, "train", "--list")
    keys = {row["key"]: [] for row in formats["keys"]}
    for row in formats["choices"]:
        keys.setdefault(row["key"], []).append(row["choice"])
    for row in train["keys"] + train["training_keys"]:
        keys[row["key"]] = row["values"].split("|") if "|" in row["values"] else []
    named = {row["preset"] for row in table(mxgold, "presets")["presets"]} | {row["recipe"] for row in train["recipes"]}
    for kind in ("elements", "scales"):
        keys["elem" if kind == "elements" else "scale"] = [row[kind[:-1]] for row in formats[kind]]
    keys["chain"] = [row["chain"] for row in formats["chains"]]
    said = subprocess.run([mxgold, "help"], check=True, stdout=subprocess.PIPE).stdout.decode()
    return keys, named, re.findall(r"^  mxgold (\w+) ", said, re.M)


def wrong_key(text, keys, named, known_commands, last):
    """None, or what is the matter with one name of the column "keys"; last is the key before, whose section `gamma1` alone is in."""
    if text in named or text in keys:
        return None
    if text.startswith("mxgold "):
        return None if text.split()[1] in known_commands else "no such command"
    if text.startswith("--"):
        return None
    if text.endswith(".*"):
        return None if any(key.startswith(text[:-1]) for key in keys) else "no key begins like this"
    key, equals, value = text.partition("=")
    if equals and key in keys:
        fits = not keys[key] or value in keys[key] or not value.islower() or re.fullmatch(r"[\d.]+|row|RxC", value)
        return None if fits else "%s has no choice %s" % (key, value)
    if last and last.partition(".")[0] + "." + text in keys:
        return None
    return "no such key, preset or recipe"


def wrong_tests(root, text):
    for part in text.split(";"):
        match = re.match(r"\s*`([^`]+)`(?::\s*(.*))?\s*$", part)
        if not match:
            yield part.strip(), "expected `FILE`: TEST, TEST"
            continue
        path, names = match.groups()
        whole = os.path.join(root, path)
        if not os.path.isfile(whole):
            yield path, "no such file"
            continue
        source = open(whole).read()
        has = set(re.findall(r"START_TEST\((\w+)\)", source))
        for name in re.split(r",\s*", names) if names and has else []:
            if name not in has or len(re.findall(r"\b%s\b" % name, source)) < 2:
                yield path, "no test %s that runs" % name
        if has and not names:
            yield path, "names no test"


def main(root, mxgold):
    keys, named, known_commands = names_of(mxgold)
    page, wrong, seen = "docs/reference/TECHNIQUES.md", [], set()
    for number, line in enumerate(open(os.path.join(root, page)), 1):
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]
        if len(cells) != 5 or cells[0] == "#" or set(line) <= set("|- \n"):
            if line.startswith("|") and len(cells) != 5:
                wrong.append((number, line.strip(), "expected five columns"))
            continue
        if not all(cells):
            wrong.append((number, cells[0], "an empty column"))
        seen.add(cells[0])
        last = None
        for text in re.findall(r"`([^`]+)`", cells[2]):
            what = wrong_key(text, keys, named, known_commands, last)
            if what:
                wrong.append((number, text, what))
            last = text.partition("=")[0] if "." in text else last
        files = re.findall(r"`([^`]+)`", cells[3])
        if not files:
            wrong.append((number, cells[0], "names no code"))
        last = ""
        for path in files:
            path = path if "/" in path else os.path.join(os.path.dirname(last), path)
            last = path
            if not os.path.exists(os.path.join(root, path)):
                wrong.append((number, path, "no such file"))
        wrong += [(number, text, what) for text, what in wrong_tests(root, cells[4])]
    wrong += [(0, "T%d" % t, "has no row") for t in TECHNIQUES if "T%d" % t not in seen]
    for number, text, what in wrong:
        print("%s:%d: %s: %s" % (page, number, text, what))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
