#!/usr/bin/env python3
"""Prints docs/reference/API.md: every call and type of the public headers with the first sentence of its docstring.

api.py include/mxgold    prints the page
"""
import os
import re
import sys

folder = sys.argv[1]
umbrella = re.findall(r'#include "(\w+\.h)"', open(os.path.join(folder, "mxgold.h")).read())
order = ["mxgold.h"] + umbrella
order += sorted(name for name in os.listdir(folder) if name.endswith(".h") and name not in order)

# verify.h is an umbrella too: what it includes follows it.
for name in list(order):
    inside = re.findall(r'#include "(\w+\.h)"', open(os.path.join(folder, name)).read())
    if name != "mxgold.h" and not re.search(r"\bmx_\w+\(", open(os.path.join(folder, name)).read()):
        for at, child in enumerate(c for c in inside if c in order and c not in umbrella):
            order.remove(child)
            order.insert(order.index(name) + 1 + at, child)


def plain(docstring):
    """A docstring in one line, fit for Markdown."""
    text = re.sub(r"(\s*\n[ \t]*\*?)+[ \t]*", " ", docstring).strip()
    return re.sub(r"([|<*])", r"\\\1", text)


def sentence(docstring):
    """Its first sentence."""
    text = plain(docstring)
    found = re.match(r".*?[.;](?= |$)(?<!e\.g\.)(?<!sec\.)", text)
    return (found[0] if found else text).rstrip(";.")


def declared(text):
    """Names that a piece of a header declares, in order: functions with "()", types and constants."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    constants = [name for name in re.findall(r"^#define (MX\w+)[ (]", text, re.M) if "#undef " + name not in text]
    text = re.sub(r"^#.*(\\\n.*)*$", "", text, flags=re.M)
    text = re.sub(r'extern "C" \{', "", text)
    while re.search(r"\{[^{}]*\}", text):
        text = re.sub(r"\{[^{}]*\}", " ", text)
    names = list(constants)
    for statement in text.split(";"):
        pointer = re.search(r"\(\*(mx\w+)\)\(", statement)
        function = re.search(r"\b(mx\w+)\(", statement)
        kind = re.search(r"\btypedef\b.*?(\w+)\s*$", statement, re.S)
        name = pointer[1] if pointer else kind[1] if kind else function[1] + "()" if function else None
        if name and name not in names:
            names.append(name)
    return names


print("# The C API\n")
print("Written by `make docs` from the docstrings of `include/mxgold`, in the order of the data path: each name with the first sentence of what its")
print("header says. The header says the rest: shapes, types, units, errors, threads, source, and the test that proves it. Every call that can fail")
print("returns an `mx_status`; the library never prints and never exits.")
for name in order:
    text = open(os.path.join(folder, name)).read()
    head, text = re.match(r"/\*\*(.*?)\*/(.*)", text, re.S).groups()
    print("\n## %s\n\n%s" % (name, plain(head)))
    pieces = re.split(r"/\*\*(.*?)\*/", re.sub(r"#ifndef (\w+)\n#define \1\n", "", text), flags=re.S)
    rows = [(n, "see the header") for n in declared(pieces[0])]
    for docstring, piece in zip(pieces[1::2], pieces[2::2]):
        rows += [(n, sentence(docstring) if not at else "the same") for at, n in enumerate(declared(piece))]
    if rows:
        print("\n| name | what |\n|---|---|")
        for row in rows:
            print("| `%s` | %s |" % row)
