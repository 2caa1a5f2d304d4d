# Tests `mxgold ablate --gemm` and --six: the progress they show, and the parts of a recipe that they name as not measured.
: "${scratch:?run by tests/run-cli.sh}"
six="$mxgold ablate --six gen:gaussian gen:laplace gen:rows:1.5 --shape 64x64"

# A recipe's training keys are named, those of every recipe that has some and of no other.
# shellcheck disable=SC2086
accepts $six -p recipe-tetrajet,recipe-ocp,recipe-wang
grep -q '^recipe-tetrajet  requant.source=fwd_dequant$' "$scratch/stdout" && grep -q '^recipe-wang  *requant.source=reuse,' "$scratch/stdout" ||
  fail "--six does not name the training keys that it leaves out"
! grep -q '^recipe-ocp  [a-z_.]*=' "$scratch/stdout" || fail "--six names training keys of a recipe that has none"
# shellcheck disable=SC2086
accepts $six -p recipe-ocp,nvfp4
! grep -q 'training keys' "$scratch/stdout" || fail "a heading of training keys above nothing"
# shellcheck disable=SC2086
accepts $six -p recipe-tetrajet,nvfp4 --json
python3 - "$scratch/stdout" <<'P' || fail "--six --json: training keys"
import json, sys
assert json.load(open(sys.argv[1]))["training_keys_ignored"] == [{"preset": "recipe-tetrajet", "keys": "requant.source=fwd_dequant"}]
P

# -v says the time, and no rate of bytes; a terminal sees the share move within one spec, with the time left.
# shellcheck disable=SC2086
$six -p nvfp4 -v 2>err >/dev/null || fail "--six -v"
grep -Eq '^ablate --six: [0-9.]+ s$' err && ! grep -q 'MiB' err || fail "--six -v says a rate of bytes: $(cat err)"
python3 - "$mxgold" <<'P' || fail "--gemm on a terminal: progress does not move within a spec, or no time left is said"
import os, pty, re, sys
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], [sys.argv[1], "ablate", "--gemm", "gen:gaussian", "gen:laplace", "--shape", "512x1024", "--set", "elem.round=sr", "--repeats", "12", "-v"])
said = b""
while True:
    try:
        more = os.read(fd, 65536)
    except OSError:
        break
    if not more:
        break
    said += more
assert os.waitpid(pid, 0)[1] == 0, said
shares = [int(v) for v in re.findall(rb"ablate --gemm: +(\d+)%, \d+ (?:s|min) left", said)]
assert len(set(shares)) >= 2 and shares == sorted(shares) and shares[-1] <= 100, said
P

# Bias only where there is chance: no column without it; with it on the rows that have it, as a number or as what it is told to be below.
# shellcheck disable=SC2086
accepts $six -p nvfp4
! grep -q bias "$scratch/stdout" || fail "--six without chance prints a bias"
accepts "$mxgold" ablate --gemm gen:gaussian gen:laplace --shape 64x64 -p nvfp4
! grep -q bias "$scratch/stdout" || fail "--gemm without chance prints a bias"
# shellcheck disable=SC2086
accepts $six -p nvfp4 --operand Q3:elem.round=sr --json
python3 - "$scratch/stdout" <<'P' || fail "--six --json: bias without chance, or none with it"
import json, sys
rows = {r["operand"][:2]: r for r in json.load(open(sys.argv[1]))["operands"]}
assert [q for q in rows if (rows[q]["bias"], rows[q]["bias_below"]) != (None, None)] == ["Q3"], rows
assert rows["Q3"]["bias_low"] == 0 and rows["Q3"]["bias_below"] == rows["Q3"]["bias_high"] > 0, rows
assert all(rows[q]["both_bias"] is rows[q]["both_bias_high"] is None for q in rows), rows # Q4 draws nothing: its error is in the product of every repeat
P
accepts "$mxgold" ablate --gemm gen:gaussian gen:laplace --shape 64x64 -p nvfp4 --operand Q2:elem.round=sr --json
python3 - "$scratch/stdout" <<'P' || fail "--gemm --json: bias without chance, or none with it"
import json, sys
rows = {r["quantised"]: r for r in json.load(open(sys.argv[1]))["error"]}
assert [q for q in rows if rows[q]["bias_high"] is not None] == ["second operand alone"], rows # with it alone nothing is fixed but its own bias
one = rows["second operand alone"]
assert one["bias_low"] == 0 and one["bias"] is None and 0 < one["bias_below"] == one["bias_high"] < .06, one
P

# With chance in both operands a product has a bias of its own, and an interval: that of the floor rule's saturation is told from none.
accepts "$mxgold" ablate --gemm gen:gaussian gen:laplace --shape 64x64 -p ocp-mxfp4 --set elem.round=sr
[ "$(grep -Ec ' 0\.[0-9]{4} \(0\.[0-9]{4}\.\.0\.[0-9]{4}\)$' "$scratch/stdout")" = 4 ] || fail "--gemm: a bias without its interval: $(cat "$scratch/stdout")"
# shellcheck disable=SC2086
accepts $six -p recipe-tseng --json
python3 - "$scratch/stdout" <<'P' || fail "--six --json: the bias of products of which both operands draw"
import json, sys
rows = {r["operand"][:2]: r for r in json.load(open(sys.argv[1]))["operands"]}
assert all((rows[q]["both_bias_high"] is not None) == (q > "Q2") for q in rows), rows
P

# Combinations whose keys exclude each other are named, not dropped.
# shellcheck disable=SC2086
accepts $six -p hif4,nvfp4 --set elem.round=rne,sr
grep -q '^hif4 elem.round=sr: ' "$scratch/stdout" || fail "--six drops a combination without a word"

# --csv is the JSON's rows, number for number, whatever the mode; text with a comma is quoted.
csv() { # csv TABLE ARGUMENT...
  local table=$1
  shift
  accepts "$mxgold" ablate "$@" --json
  cp "$scratch/stdout" rows.json
  accepts "$mxgold" ablate "$@" --csv
  python3 - "$table" "$scratch/stdout" <<'P' || fail "--csv is not the table of --json: $*"
import csv, json, sys
want = json.load(open("rows.json"))[sys.argv[1]]
have = list(csv.DictReader(open(sys.argv[2], newline="")))
text = lambda v: "" if v is None else ("true" if v else "false") if isinstance(v, bool) else v if isinstance(v, str) else None
assert len(have) == len(want) > 1 and list(have[0]) == list(want[0]), (len(have), len(want))
for h, w in zip(have, want):
    for k in w:
        assert h[k] == text(w[k]) if text(w[k]) is not None else float(h[k]) == w[k], (k, h[k], w[k])
P
}
csv measurements gen:gaussian gen:laplace --shape 8x64 -p nvfp4,ocp-mxfp4 --set elem.round=rne,sr
grep -q ',"-[0-9]*:[0-9]*,' "$scratch/stdout" || fail "--csv: a list with commas is not quoted"
csv error --gemm gen:gaussian gen:laplace --shape 8x64 -p nvfp4,ocp-mxfp4
csv operands --six gen:gaussian gen:laplace gen:rows:1.5 --shape 64x64 -p nvfp4,recipe-ocp
refuses "mxgold: ablate: --json and --csv exclude each other" "$mxgold" ablate gen:gaussian --json --csv

# --state: the figures of a product come back to the last bit, those of a spec that is added are measured, those of other operands or another sum are not
# taken for its own; a line that was cut is measured again. A product's lines and a tensor's share a file.
two="$mxgold ablate --gemm gen:gaussian gen:laplace --shape 64x64 --json"
products=0
for mode in "$two --set elem.round=rne,sr --repeats 2" "$six --json --set elem.round=rne,sr --repeats 2"; do
  # of a spec
  [ $products = 0 ] && products=1 || products=3
  rm -f state
  # shellcheck disable=SC2086
  accepts $mode -p nvfp4,ocp-mxfp4
  cp "$scratch/stdout" want
  # shellcheck disable=SC2086
  accepts $mode -p nvfp4 --state state
  # shellcheck disable=SC2086
  accepts $mode -p nvfp4,ocp-mxfp4 --state state
  cmp -s want "$scratch/stdout" || fail "figures from a state differ: $mode"
  [ "$(wc -l <state)" = $((1 + 4 * products)) ] || fail "the state holds $(wc -l <state) lines, expected its name and $products products of 4 specs: $mode"
  cp state whole
  # shellcheck disable=SC2086
  accepts $mode -p nvfp4,ocp-mxfp4 --state state
  cmp -s want "$scratch/stdout" && cmp -s state whole || fail "what the state has is measured again: $mode"
  head -c -20 whole >state
  # shellcheck disable=SC2086
  accepts $mode -p nvfp4,ocp-mxfp4 --state state
  cmp -s want "$scratch/stdout" && [ "$(wc -l <state)" = $((2 + 4 * products)) ] || fail "a line that was cut: $mode"
  for other in "--seed 1" "--operand Q2:elem.round=rna" "--accum dequantized" "--repeats 3"; do
    cp whole state
    # shellcheck disable=SC2086
    accepts $mode -p nvfp4,ocp-mxfp4 $other --state state
    case $other in --operand*) changed=1 ;; *) changed=$products ;; esac # Q2 is in Fprop alone: the other two products are taken from the state
    [ "$(wc -l <state)" = $((1 + 4 * products + 4 * changed)) ] || fail "another product's figures are taken for its own: $mode $other: $(wc -l <state)"
  done
done
accepts "$mxgold" ablate gen:gaussian --shape 32x64 -p nvfp4 --state state
[ "$(tail -1 state | wc -w)" -gt 20 ] || fail "a tensor's line in a product's state"

# Pictures and pages: the verdict in one sentence at the top, a bar a product, specs with the same figures once, the terminal's table in its order.
if command -v gnuplot >/dev/null; then
  # shellcheck disable=SC2086
  accepts $six -p nvfp4,ocp-mxfp4,recipe-ocp --png six.svg --html six.html
  sentence='nvfp4 is the best of 3 specs, with errors of [0-9.]* % in Fprop, [0-9.]* % in Dgrad and [0-9.]* % in Wgrad; next is [a-z0-9-]*, whose worst product is off by [0-9.]* %\.'
  grep -q "<p class=verdict>$sentence</p>" six.html && grep -q "nvfp4 is the best of 3 specs" six.svg || fail "--six: the verdict"
  python3 "$root/tests/lib/page_fits.py" six.html || fail "--six: words of the page's charts are cut"
  grep -q 'Dgrad' six.svg && grep -q 'Gain of the product' six.svg && [ "$(grep -c '</svg>' six.html)" = 2 ] || fail "--six: charts"
  python3 - six.html "$scratch/stdout" <<'P' || fail "--six: the page has another table than the terminal"
import re, sys
page, said = (open(p).read() for p in sys.argv[1:])
rows = [re.findall(r"<td[^>]*>([^<]*)</td>", r) for r in page.split("</table>")[0].split("<tr>")[2:]]
lines = said.split("\n\n")[1].strip().split("\n")[1:]
assert len(rows) == len(lines) == 18, (len(rows), len(lines))
for row, line in zip(rows, lines):
    assert [c for c in row if c] == re.split(r"  +", line.strip()), (row, line)
P
  accepts "$mxgold" ablate --gemm gen:gaussian gen:laplace --shape 32x64 -p nvfp4 --set elem.round=rne,rna,rtz --set elem.zero_sign=keep,drop_all --png gemm.png --html gemm.html
  grep -q '<p class=verdict>nvfp4 [^<]* is the best of 6 specs, with an error of ' gemm.html || fail "--gemm: the verdict"
  grep -q 'same figures as nvfp4 elem.round=rne elem.zero_sign=keep$' "$scratch/stdout" || fail "--gemm: specs with the same figures are not named"
  python3 "$root/tests/lib/page_fits.py" gemm.html || fail "--gemm: words of the page's charts are cut"
  python3 - gemm.html <<'P' || fail "--gemm: specs with the same figures are drawn twice"
import re, sys
items = re.findall(r"<li>([^<]*)</li>", open(sys.argv[1]).read())
assert len(items) < 6 and sum(i.count(" = ") + 1 for i in items) == 6, items
P
  ! grep -Eq '(src|href)="?(https?:|//)|@import|<script src' gemm.html || fail "the page links to something outside"
  # The verdict names the operand that most of the error comes through only where it has more than a tenth more than the other.
  for operand in "" "Q1:preset=ocp-mxfp8-e4m3" "Q2:preset=ocp-mxfp8-e4m3"; do
    accepts "$mxgold" ablate --gemm gen:gaussian gen:laplace --shape 64x64 -p ocp-mxfp4 ${operand:+--operand $operand} --html through.html
    case $operand in Q1*) through="most of it through the second operand" ;; Q2*) through="most of it through the first operand" ;; *) through="about as much through either operand" ;; esac
    grep -q "<p class=verdict>ocp-mxfp4 has an error of [0-9.]* % of the product's norm, $through, and a gain of " through.html ||
      fail "--gemm $operand: $(grep -o '<p class=verdict>[^<]*' through.html), expected $through"
  done
fi
