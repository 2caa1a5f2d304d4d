# Tests that the pages which the program writes are those that its tables give now.
: "${scratch:?run by tests/run-cli.sh}"
accepts "$mxgold" formats --markdown
cmp -s "$scratch/stdout" "$root/docs/reference/FORMATS.md" || fail "docs/reference/FORMATS.md is out of date: make docs"
accepts "$mxgold" presets --markdown
cat "$scratch/stdout" "$root/tests/peers/peers.md" 2>/dev/null | cmp -s - "$root/docs/reference/PRESETS.md" || fail "docs/reference/PRESETS.md is out of date: make docs"
accepts "$mxgold" models --markdown
cat "$scratch/stdout" "$root/formats/datapaths.md" | cmp -s - "$root/docs/reference/MODELS.md" || fail "docs/reference/MODELS.md is out of date: make docs"
accepts "$mxgold" help --markdown
cmp -s "$scratch/stdout" "$root/docs/reference/CLI.md" || fail "docs/reference/CLI.md is out of date: make docs"
accepts python3 "$root/tools/api.py" "$root/include/mxgold"
cmp -s "$scratch/stdout" "$root/docs/reference/API.md" || fail "docs/reference/API.md is out of date: make docs"
# The page of techniques: every row's keys, files and tests exist; and the check sees what does not.
python3 "$root/tests/lib/techniques_page.py" "$root" "$mxgold" || fail "docs/reference/TECHNIQUES.md names what is not there"
mkdir -p "$scratch/tree/docs/reference" && ln -s "$root/src" "$root/ref" "$root/tests" "$root/formats" "$scratch/tree/"
sed -e '/^| T24 /d' -e 's/`ramp.k2`/`ramp.k3`/' -e 's/ramp_by_hand/ramp_by_foot/' -e 's/had.draw=backward/had.draw=forward/' \
  -e 's:src/train/linear/ema.c:src/train/linear/emma.c:' -e 's/^| T1 | [^|]*|/| T1 | |/' "$root/docs/reference/TECHNIQUES.md" >"$scratch/tree/docs/reference/TECHNIQUES.md"
said=$(python3 "$root/tests/lib/techniques_page.py" "$scratch/tree" "$mxgold" | sed 's/^[^ ]* //' | sort | tr '\n' ';')
want="T1: an empty column;T24: has no row;had.draw=forward: had.draw has no choice forward;ramp.k3: no such key, preset or recipe;"
want+="src/train/linear/emma.c: no such file;tests/test_techniques.c: no test ramp_by_foot that runs;"
[ "$said" = "$want" ] || fail "a page with six mistakes: $said"
# The names by which HOUSE tells a room stand there more than anywhere else; and the check sees one that does not.
python3 "$root/tests/lib/house_page.py" "$root" || fail "docs/HOUSE.md has names that do not tell their room"
mkdir -p "$scratch/house/src/train" "$scratch/house/docs" && ln -s "$root/src/core" "$scratch/house/src/" && ln -s "$root/src/train/optim" "$scratch/house/src/train/"
grep '^| `src/train/optim/`' "$root/docs/HOUSE.md" | sed 's/ |$/, `mxi_wrong_`, `mx_status` |/' >"$scratch/house/docs/HOUSE.md"
said=$(python3 "$root/tests/lib/house_page.py" "$scratch/house" | sed 's/ stands.*//' | tr '\n' ';')
[ "$said" = 'src/train/optim/: `mxi_wrong_`;src/train/optim/: `mx_status`;' ] || fail "two names that tell nothing: $said"
# Tables of their own, JSON, and what is unknown.
accepts "$mxgold" formats elements
head -1 "$scratch/stdout" | grep -q '^element  *kind  *bits' || fail "formats elements: no header"
grep -q '^e2m1 ' "$scratch/stdout" || fail "formats elements: no e2m1"
accepts "$mxgold" formats --json
python3 - "$scratch/stdout" <<'P' || fail "formats --json"
import json, sys
d = json.load(open(sys.argv[1]))
assert list(d) == ["elements", "scales", "operands", "keys", "choices", "chains", "layouts", "encoders"], list(d)
assert next(e for e in d["elements"] if e["element"] == "e4m3")["largest"] == 448
P
accepts "$mxgold" presets --json
python3 - "$scratch/stdout" <<'P' || fail "presets --json"
import json, sys
rows = json.load(open(sys.argv[1]))["presets"]
assert len(rows) > 118 and len({r["preset"] for r in rows}) == len(rows)
assert all(r["source"] for r in rows), [r["preset"] for r in rows if not r["source"]]
P
accepts "$mxgold" presets te-nvfp4 --json
python3 - "$scratch/stdout" <<'P' || fail "presets te-nvfp4 --json"
import json, sys
d = json.load(open(sys.argv[1]))
assert d["preset"] == "te-nvfp4" and {"key": "scale", "value": "e4m3", "default": "e8m0"}.items() <= d["spec"][1].items(), d
P
refuses "mxgold: presets: NAME 'te-nvpf4' is unknown, nearest: te-nvfp4" "$mxgold" presets te-nvpf4
refuses "mxgold: formats: TABLE 'elemnts' is unknown, nearest: elements" "$mxgold" formats elemnts
