#!/usr/bin/env python3
"""Makes the picture of README.md: the first number line of a page that `mxgold diff --html` wrote becomes an SVG file of its own.

picture.py PAGE.html UPPER LOWER TITLE OUT.svg    UPPER and LOWER name the two sides; the drawing itself is the program's.
"""
import re
import sys

WIDTH, HEIGHT, TOP, BOTTOM = 860, 146, 34, 36

page, upper, lower, title, out = sys.argv[1:]
drawn = re.search(r'<svg role="img" aria-label="the block on the number line"[^>]*>(.*?)</svg>', open(page).read(), re.S)
if not drawn:
    sys.exit("picture.py: " + page + ": no number line")
body = drawn.group(1)
for old, new in (">expected<", upper), (">actual<", lower), (">|x|<", "input"):
    if body.count(old if old.startswith(">") else ">" + old + "<") != 1:
        sys.exit("picture.py: " + page + ": no label " + old)
    body = body.replace(old, ">" + new + "<")
count = {colour: body.count('fill="%s"><title>' % colour) for colour in ("#a8201a", "#c9862b", "#9aa7bb")}
legend = [("#a8201a", "another value: %d"), ("#c9862b", "another code for the same value: %d"), ("#9aa7bb", "the same code: %d")]
marks, x = "", 78
for colour, text in legend:
    text %= count[colour]
    marks += '<circle cx="%d" cy="%d" r="4" fill="%s"/><text x="%d" y="%d">%s</text>' % (x + 4, HEIGHT + 12, colour, x + 14, HEIGHT + 16, text)
    x += 40 + 7 * len(text)
with open(out, "w") as f:
    f.write(
        '<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 %d %d" width="%d" font-family="system-ui,Helvetica,Arial,sans-serif">'
        '<title>%s: %s and %s</title><rect width="100%%" height="100%%" rx="6" fill="#fff"/>'
        '<text x="78" y="22" font-size="14" font-weight="600" fill="#1c2330">%s</text>'
        '<g transform="translate(0 %d)">%s<g font-size="12" fill="#445">%s</g></g></svg>\n'
        % (WIDTH, HEIGHT + TOP + BOTTOM, WIDTH, title, upper, lower, title, TOP, body, marks)
    )
