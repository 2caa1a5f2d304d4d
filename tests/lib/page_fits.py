#!/usr/bin/env python3
"""Checks that every word of the drawings of a page lies within its drawing: page_fits.py PAGE.html

Widths are those of gnuplot's sans at 0.55 of the font's size a character, which is what browsers' default fonts take on average.
"""
import re
import sys

WIDE = 0.55
bad = 0
drawings = re.findall(r"<svg.*?</svg>", open(sys.argv[1]).read(), re.S)
if not drawings:
    sys.exit("page_fits.py: " + sys.argv[1] + ": no drawing")
for svg in drawings:
    width = float(re.search(r'viewBox="0 0 ([\d.]+)', svg).group(1))
    texts = re.findall(r'<g transform="translate\(([\d.-]+),[\d.-]+\)"[^>]*font-size="([\d.]+)"[^>]*text-anchor="(\w+)"[^>]*>\s*<text>(.*?)</text>', svg, re.S)
    for x, size, anchor, text in texts:
        text = re.sub(r"<[^>]*>", "", text).replace("&gt;", ">").replace("&lt;", "<").strip()
        long = WIDE * float(size) * len(text)
        left = float(x) - {"start": 0, "middle": long / 2, "end": long}[anchor]
        if left < -1 or left + long > width + 1:
            print("%s: '%s' runs from %.0f to %.0f in a drawing of %.0f" % (sys.argv[1], text, left, left + long, width))
            bad = 1
sys.exit(bad)
