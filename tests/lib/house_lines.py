#!/usr/bin/env python3
"""How well can a reader tell the room of a line of src/?

usage: house_lines.py ROOT draw SEED    ten lines drawn at random, then the file and line of each, to be covered while a reader names their rooms
       house_lines.py ROOT guess        the share of 3,000 drawn lines whose room is told by one who knows by heart how often each word of all
                                        other lines stands in each room (naive Bayes): what a reader who has seen no line before can hardly beat

Lines of fewer than 20 characters, includes and lines that begin a comment are left out."""
import collections
import math
import os
import random
import re
import sys

SHORTEST, DRAWN = 20, 3000
SHARE_OF_ALL = 1.5  # a word's lines in all rooms speak for each room as if the room had so many lines, times the word's share of all lines
NEVER = 0.02        # what is counted of a word in a room where it does not stand


def lines_of(root):
    """(room, file and line, text)"""
    out = []
    for folder, _, files in os.walk(os.path.join(root, "src"), followlinks=True):
        for name in sorted(files):
            if name.endswith((".c", ".h")):
                path = os.path.join(folder, name)
                for number, line in enumerate(open(path, encoding="utf-8"), 1):
                    line = line.strip()
                    if len(line) >= SHORTEST and not line.startswith(("#include", "/*", "*", "//")):
                        out.append((os.path.relpath(folder, root), "%s:%d" % (os.path.relpath(path, root), number), line))
    return sorted(out)


def words_of(line):
    """Names, names with the member that is taken of them, and the pieces of names between digits and underscores."""
    return set(re.findall(r"[A-Za-z_]\w*", line) + re.findall(r"[A-Za-z_]\w*(?:->|\.)\w+", line) + re.findall(r"[A-Za-z_]\w*->", line)
               + re.findall(r"[A-Za-z]+", line))


def guess(lines):
    """The share of drawn lines whose room is the likeliest; each line is left out of the counts while it is asked."""
    words = [words_of(text) for _, _, text in lines]
    size = collections.Counter(room for room, _, _ in lines)
    stands = collections.defaultdict(collections.Counter)
    for (room, _, _), of_line in zip(lines, words):
        for word in of_line:
            stands[word][room] += 1
    everywhere = {word: sum(rooms.values()) for word, rooms in stands.items()}
    drawn = random.Random(1).sample(range(len(lines)), DRAWN)
    right = 0
    for k in drawn:
        own, best = lines[k][0], None
        for room, n in size.items():
            n -= room == own
            score = math.log(n / len(lines))
            for word in words[k]:
                here, all_rooms = stands[word][room] - (room == own), everywhere[word] - 1
                if all_rooms:
                    score += math.log((here + SHARE_OF_ALL * all_rooms / len(lines) + NEVER) / (n + 1)) - math.log(all_rooms / len(lines))
            best = max(best or (score, room), (score, room))
        right += best[1] == own
    return right / len(drawn)


def main():
    if len(sys.argv) < 3 or sys.argv[2] not in ("draw", "guess") or len(sys.argv) != (4 if sys.argv[2] == "draw" else 3):
        sys.exit(__doc__)
    lines = lines_of(sys.argv[1])
    if sys.argv[2] == "guess":
        print("%d lines in %d rooms: %.1f %% of %d drawn lines are told" % (len(lines), len({r for r, _, _ in lines}), 100 * guess(lines), DRAWN))
        return
    ten = random.Random(int(sys.argv[3])).sample(lines, 10)
    for k, (_, _, text) in enumerate(ten, 1):
        print("%2d  %s" % (k, text))
    print()
    for k, (_, place, _) in enumerate(ten, 1):
        print("%2d  %s" % (k, place))


main()
