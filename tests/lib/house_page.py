#!/usr/bin/env python3
"""Holds the names of docs/HOUSE.md to the sources: house_page.py ROOT

A name that tells a room of src/ must stand in at least four of the room's lines, and at least half of the lines of src/ in which it stands must be the
room's. A name that begins or ends in "_" or ends in "->" is a part of others. Prints a line for each name that does not tell its room; --score also
prints the share of lines that have a telling name, and of those whose most telling name is another room's."""
import os
import re
import sys

LEAST = 4


TOKEN = re.compile(r"(?<![A-Za-z0-9_])(?=([A-Za-z_]\w*)((?:->|\.| \*)[A-Za-z_]\w*)?)")


def words_of(line):
    """Its names, and of each that is followed by ->, . or * what these give: o->items and o->, g.x, mx_file *f."""
    for name, more in TOKEN.findall(line):
        yield name
        if more:
            yield name + more
        if more.startswith("->"):
            yield name + "->"


def places_of(root):
    """The lines of src/ in which each word stands, without includes, comments, braces and short lines; and the room of each line."""
    places, rooms = {}, []
    for folder, _, files in os.walk(os.path.join(root, "src"), followlinks=True):
        for name in files:
            if not name.endswith((".c", ".h")):
                continue
            for line in open(os.path.join(folder, name), encoding="utf-8"):
                line = line.strip()
                if len(line) >= 18 and not line.startswith(("#include", "/*", "*", "}", "return")):
                    for word in words_of(line):
                        places.setdefault(word, set()).add(len(rooms))
                    rooms.append(os.path.relpath(folder, root) + "/")
    return places, rooms


def stands(places, name):
    """The lines in which a name stands."""
    if name.startswith("_") and not name.startswith("__"):
        return set().union(*(at for word, at in places.items() if word.endswith(name)))
    if name.endswith("_"):
        return set().union(*(at for word, at in places.items() if word.startswith(name)))
    return places.get(name, set())


def names_of(page):
    """(room, name) in the order of the page."""
    for line in open(page, encoding="utf-8"):
        row = re.match(r"\| `(src/[^`]*)` \|.*\| ([^|]*) \|$", line)
        for name in re.findall(r"`([^`]+)`", row.group(2)) if row else []:
            yield row.group(1), name


def main():
    root = sys.argv[1]
    (places, rooms), bad, best = places_of(root), 0, {}
    for room, name in names_of(os.path.join(root, "docs/HOUSE.md")):
        at = stands(places, name)
        here = sum(rooms[k] == room for k in at)
        if here < LEAST or 2 * here < len(at):
            print("%s: `%s` stands in %d of its lines and in %d of src/" % (room, name, here, len(at)))
            bad += 1
        for k in at:
            best[k] = max(best.get(k, (0, "")), (here / len(at), room))
    if "--score" in sys.argv:
        right = sum(room == rooms[k] for k, (_, room) in best.items())
        print("%d lines: %.1f %% have a name that tells their room, %.1f %% one that tells another" % (
            len(rooms), 100 * right / len(rooms), 100 * (len(best) - right) / len(rooms)))
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
