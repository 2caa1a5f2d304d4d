# Tests what `mxgold ablate` says of the Pareto front, of specs that give the same values, and of bias.
: "${scratch:?run by tests/run-cli.sh}"
slices=$root/tests/data/minilm_slices.safetensors

# A tensor scale's 32 bits over the tensor are no more bits: 4.501 is 4.5, so that hif4, almost 1 dB behind, is not on the front of the activation.
# Two specs that give the same values are said to, one of another tensor that do not are not.
accepts "$mxgold" ablate "$slices" -p nvfp4,hif4,fouroversix,mxfp4-e4m3,mxfp4-ue5m3 --json
python3 - "$scratch/stdout" <<'P' || fail "the Pareto front, or specs that give the same values"
import json, sys
rows = {(r["tensor"], r["spec"]): r for r in json.load(open(sys.argv[1]))["measurements"]}
front = lambda t: {s for (u, s), r in rows.items() if u == t and r["pareto"]}
assert rows["activation", "fouroversix"]["bits"] > rows["activation", "hif4"]["bits"]
assert front("activation") == {"fouroversix", "mxfp4-e4m3", "mxfp4-ue5m3"}, front("activation")
assert front("weight") == {"hif4", "mxfp4-ue5m3"}, front("weight") # by 0.012 dB, and in almost every part of the tensor
assert front("gradient") == {"hif4", "mxfp4-ue5m3"}, front("gradient")
same = {k: r["same_values_as"] for k, r in rows.items() if r["same_values_as"]}
assert same == {("activation", "mxfp4-ue5m3"): "mxfp4-e4m3"}, same
P
# Whether one spec dominates another is between the two: what else is measured changes nothing. Pairs alone say who dominates whom; the front of all, and
# that of three beside a far better one of more bits, must be what these pairs leave.
python3 - "$mxgold" "$slices" <<'P' || fail "an unrelated spec changes which of two others is on the front"
import itertools, json, subprocess, sys
def fronts(specs):
    said = subprocess.run([sys.argv[1], "ablate", sys.argv[2], "-p", ",".join(specs), "--json"], capture_output=True, check=True).stdout
    front = {}
    for r in json.loads(said)["measurements"]:
        front.setdefault(r["tensor"], set()).update({r["spec"]} if r["pareto"] else ())
    return front
specs = ["fouroversix", "nvfp4", "hif4", "mxfp4-e4m3", "mxfp4-ue5m3", "ocp-mxint8"]
lost = {} # of each tensor: pairs (dominated, by which)
for pair in itertools.combinations(specs, 2):
    for tensor, front in fronts(pair).items():
        loser = set(pair) - front
        lost.setdefault(tensor, set()).update((s, *front) for s in loser)
assert {("nvfp4", "fouroversix"), ("hif4", "fouroversix")} <= lost["activation"], lost
for some in (specs, specs[:3], specs[:3] + specs[5:], specs[::-1]):
    for tensor, front in fronts(some).items():
        left = {s for s in some if not any((s, other) in lost[tensor] for other in some)}
        assert front == left, (tensor, some, front, left)
P
accepts "$mxgold" ablate "$slices:activation" -p mxfp4-e4m3,mxfp4-ue5m3 --state kept
grep -q '^activation  mxfp4-ue5m3 .* same values as mxfp4-e4m3$' "$scratch/stdout" || fail "the table does not name specs that give the same values"
cp "$scratch/stdout" first
accepts "$mxgold" ablate "$slices:activation" -p mxfp4-e4m3,mxfp4-ue5m3 --state kept
cmp -s first "$scratch/stdout" || fail "a state loses that two specs give the same values"
if command -v gnuplot >/dev/null; then
  accepts "$mxgold" ablate "$slices:activation" -p mxfp4-e4m3,mxfp4-ue5m3,nvfp4 --html same.html
  grep -q '1  nvfp4, ' same.html && grep -q '2  mxfp4-e4m3 = mxfp4-ue5m3, ' same.html && ! grep -q '3  mxfp4' same.html ||
    fail "specs that give the same values are drawn twice"
  grep -q '<p class=verdict>The best for their bits are mxfp4-e4m3 (4.25 bits, 19.97 dB, the same values as mxfp4-ue5m3), nvfp4 (4.50 bits, 21.82 dB)\.<' same.html ||
    fail "the verdict names one result twice: $(grep -o '<p class=verdict>[^<]*' same.html)"
fi

# Bias: none without chance. With chance by hand: a scale rounded up saturates nothing, so that SR has none, and the limit says so; floor saturates.
accepts "$mxgold" ablate "$slices:gradient" -p torchao-rceil,ocp-mxfp4 --set elem.round=rne,sr --json
python3 - "$scratch/stdout" <<'P' || fail "bias without chance, or below what can be told from none"
import json, sys
rows = {r["spec"]: (r["bias"], r["bias_below"]) for r in json.load(open(sys.argv[1]))["measurements"]}
for r in json.load(open(sys.argv[1]))["measurements"]:
    drawn = r["spec"].endswith("sr")
    assert drawn == (r["bias_high"] is not None) and (not drawn or 0 <= r["bias_low"] < r["bias_high"]), r
assert rows["torchao-rceil elem.round=rne"] == rows["ocp-mxfp4 elem.round=rne"] == (None, None), rows
none, some = rows["torchao-rceil elem.round=sr"], rows["ocp-mxfp4 elem.round=sr"]
assert none[0] is None and 0 < none[1] < .03, none
assert some[1] is None and .03 < some[0] < .06, some
P
accepts "$mxgold" ablate "$slices:gradient" -p torchao-rceil --set elem.round=sr
grep -Eq ' < 0\.0[0-9]{3}$' "$scratch/stdout" || fail "the table gives a bias that cannot be told from none"
accepts "$mxgold" ablate "$slices" -p ocp-mxfp4,nvfp4
grep -q '^nvfp4  *4\.[0-9]*  3 of 3 ' "$scratch/stdout" && grep -q 'saturated %  underflow %' "$scratch/stdout" || fail "names of the columns"

# The picture of several tensors goes by the intervals of means: over the three fouroversix is better than hif4 by more. Eight bits are named and not drawn, since they
# would leave it empty; a few specs are all drawn.
if command -v gnuplot >/dev/null; then
  accepts "$mxgold" ablate "$slices" -p ocp-mxfp4,nvfp4,hif4,fouroversix,ocp-mxfp8-e4m3 --png far.svg --html far.html
  grep -q '1  ocp-mxfp8-e4m3, 30.31 dB, outside the picture<' far.svg && grep -q 'scales counted; far points are left out' far.svg ||
    fail "one point of eight bits empties the picture"
  grep -q 'The best for their bits are ocp-mxfp4 (4.25 bits, 17.96 dB), fouroversix (4.50 bits, [0-9.]* dB), ocp-mxfp8-e4m3 (8.25 bits, 30.31 dB), by their means over 3 tensors.' far.html ||
    fail "the front of several tensors, or the verdict: $(grep -o '<p class=verdict>[^<]*' far.html)"
  # The page names it where it lists the specs.
  grep -q '>1&ensp;ocp-mxfp8-e4m3, 30.31 dB at 8.25 bits, outside the picture</label>' far.html && [ "$(grep -c 'outside the picture' far.html)" = 1 ] ||
    fail "the page does not name the point that it leaves out"
  # Of specs that give the tensor in detail the same values, and other tensors others, the one that is ticked has line and map; the other one says so.
  accepts "$mxgold" ablate "$slices" -p ocp-mxfp4,nvfp4,hif4,fouroversix,mxfp4-e4m3,mxfp4-ue5m3,ocp-mxfp8-e4m3 --html ticked.html --png ticked.svg
  python3 - ticked.html ticked.svg <<'P' || fail "a spec that is ticked has no line or no map, or one that shares them does not say so"
import re, sys
page, picture = (open(p).read() for p in sys.argv[1:])
labels = re.findall(r"<label><input type=checkbox data-spec=(\d+)( checked)?>.*?&ensp;(.*?)</label>", page)
ticked = {int(i) for i, c, _ in labels if c}
assert len(labels) == 7 and ticked == set(range(6)), labels
assert labels[4][2].startswith("mxfp4-ue5m3, ") and labels[6][2].startswith("mxfp4-e4m3, "), labels
assert [i for i, _, text in labels if "the same values" in text] == ["6"] and labels[6][2].endswith("; in detail the same values as 5"), labels
assert {int(i) for i in re.findall(r"<div id=map(\d+)>", page)} == ticked
lines = re.findall(r'<g id="octaves_plot_\d+" ><title>(.*?)</title>', page)
assert "mxfp4-ue5m3" in lines and "mxfp4-e4m3" not in lines and len(lines) == 6, lines
assert "line=[1,2,3,4,5,6,0],as=[0,1,2,3,4,5,4]," in page
for text in (page, picture):
    assert re.search(r"5 = 7\s+mxfp4-ue5m3", re.sub(r"<[^>]*>", "", text)), "the map's title"
P
  accepts "$mxgold" ablate "$slices" -p ocp-mxfp4,nvfp4,ocp-mxfp8-e4m3 --png all.svg
  ! grep -q 'outside the picture' all.svg || fail "of three points one is left out"
  # The page lists specs as the terminal does, each tensor's best first.
  accepts "$mxgold" ablate "$slices" -p ocp-mxfp4,nvfp4,hif4 --html order.html
  grep -E '^(weight|activation|gradient)  ' "$scratch/stdout" | awk '{print $1, $2}' >said
  grep -o '^<tr><td class=t>[a-z]*</td><td class=t>[a-z0-9-]*</td>' order.html | sed 's/<[^>]*>/ /g' | awk '{print $1, $2}' | head -9 >shown
  cmp -s said shown || fail "the page has another order of rows than the terminal"
  # What is not ticked is not in the chart of the front either: the page's script knows which plots are a spec's, and what stands on the front is ticked.
  accepts "$mxgold" ablate "$slices" -p ocp-mxfp4,nvfp4,hif4,fouroversix,mxfp4-e4m3,mxfp4-ue5m3,torchao-rceil,te-nvfp4,vllm-nvfp4,ct-nvfp4,modelopt-nvfp4,torchao-nvfp4 --html ticks.html
  python3 "$root/tests/lib/page_fits.py" ticks.html || fail "words of the page's charts are cut"
  python3 - ticks.html <<'P' || fail "the chart of the front does not heed the boxes"
import re, sys
page = open(sys.argv[1]).read()
plots = {int(a): b for a, b in re.findall(r'<g id="sqnr_plot_(\d+)" ><title>(.*?)</title>', page)}
points = [[int(v) for v in p.split(",")] for p in re.findall(r"\[([\d,]+)\],", re.search(r"point=\[(.*?)\],boxes", page).group(1))]
assert len(points) > 7 and len(plots) == 1 + sum(p[2] for p in points), (points, len(plots))
assert points[0][1] == 2 and all(a[1] + a[2] == b[1] for a, b in zip(points, points[1:])) and points[-1][1] + points[-1][2] - 1 == max(plots)
for number, plot, n in points:
    assert plots[plot].startswith("%d  " % (number + 1)), plots[plot]
ticked = {int(i) for i in re.findall(r"data-spec=(\d+) checked", page)}
assert ticked == set(range(6)) | {p[0] for p in points if p[2] == 4} and max(ticked) > 5, (ticked, points)
P
  # A page for the dark, and for a telephone: no width that is asked for is more than there is.
  grep -q 'prefers-color-scheme:dark' order.html && grep -q 'aria-sort' order.html && ! grep -Eo 'minmax\([0-9]+px' order.html || fail "the page's style"
  # Under a rotation the error of small values is many times those and little of the tensor: the axis stays below a hundred. The map's axes count the
  # tensor's own columns, and the one with most of the error is named.
  accepts "$mxgold" ablate "$slices:activation" -p ocp-mxfp4 --set had.size=0,32 --png rotated.svg
  grep -q 'column 99 has 25 % of the error' rotated.svg && grep -q '<tspan[^>]*> *300</tspan>' rotated.svg || fail "an outlier channel cannot be named"
  ! grep -Eq '<tspan[^>]*> *(1e\+0[3-9]|10000*)</tspan>' rotated.svg || fail "the axis of errors goes beyond a hundred"
fi
