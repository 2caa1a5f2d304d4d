# The page of `mxgold ablate --html` is the same, byte for byte, whatever else a call asks for: modes, --png, a --state empty or full, text, --json, --csv.
: "${scratch:?run by tests/run-cli.sh}"
command -v gnuplot >/dev/null || { echo "cli: ablate-pages: SKIPPED, there is no gnuplot"; return 0; }
for mode in "" --gemm --six; do
  case $mode in
    --six) operands="gen:gaussian gen:laplace gen:rows:1.5" presets=nvfp4,recipe-nvfp4 ;;
    --gemm) operands="gen:gaussian gen:laplace" presets=nvfp4,ocp-mxfp4 ;;
    *) operands="gen:gaussian gen:laplace" presets=nvfp4,ocp-mxfp4 ;;
  esac
  call="$mxgold ablate $mode $operands --shape 32x64 -p $presets --repeats 2 --set elem.round=rne,sr"
  [ "$mode" = --six ] && call="$mxgold ablate $mode $operands --shape 64x64 -p $presets --repeats 2"
  for form in "" --json --csv; do # what each prints
    # shellcheck disable=SC2086
    accepts $call $form
    cp "$scratch/stdout" "said$form"
  done
  rm -f state first.html
  n=0
  for form in "" --json --csv; do
    for state in "" "--state state"; do
      for png in "" "--png chart.svg"; do
        rm -f page.html chart.svg
        # shellcheck disable=SC2086
        accepts $call $form $state $png --html page.html
        n=$((n + 1))
        what="$mode $form $state $png --html"
        cmp -s "said$form" "$scratch/stdout" || fail "$what: prints something else than without a page"
        [ -e first.html ] || cp page.html first.html
        cmp -s first.html page.html || fail "$what: another page"
        [ -z "$png" ] || grep -q '</svg>' chart.svg || fail "$what: no picture"
        [ -n "$png" ] || [ ! -e chart.svg ] || fail "$what: a picture that nobody asked for"
        [ -z "$state" ] || [ -s state ] || fail "$what: no state"
      done
    done
  done
  [ $n = 12 ] || fail "$mode: $n combinations, expected 12"
  python3 - first.html "said--json" "$mode" <<'P' || fail "$mode: the page is not whole, or lacks a preset or the verdict"
import html.parser, json, sys
page = open(sys.argv[1]).read()
class Balance(html.parser.HTMLParser):
    void = {"meta", "br", "link", "input", "hr", "img", "col"}
    def __init__(self):
        super().__init__()
        self.open = []
    def handle_starttag(self, tag, attributes):
        if tag not in self.void and tag not in {"p", "li", "td", "th", "tr"}: # these may end where the next begins
            self.open.append(tag)
    def handle_startendtag(self, tag, attributes):
        pass
    def handle_endtag(self, tag):
        if tag not in {"p", "li", "td", "th", "tr"}:
            assert self.open and self.open[-1] == tag, (tag, self.open[-3:])
            self.open.pop()
b = Balance()
b.feed(page)
tables = {"": "measurements", "--gemm": "error", "--six": "operands"}
rows = json.load(open(sys.argv[2]))[tables[sys.argv[3]]]
names = {r.get("preset") or r.get("spec") for r in rows}
assert page.count("<p class=verdict>") == 1 and "<svg" in page and "</html>" in page and not set(b.open) - {"html", "body"}, b.open
assert all(n in page for n in names) and len(names) > 1, names
P
  # What a page does not go with is said, and no file is left.
  rm -f page.html
  # shellcheck disable=SC2086
  refuses "mxgold: ablate: --json and --csv exclude each other" $call --json --csv --html page.html
  [ ! -e page.html ] || fail "$mode: a page behind a refusal"
done
rm -f said* state first.html page.html chart.svg
leaves_only
