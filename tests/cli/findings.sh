# Tests that docs/FINDINGS.md grows by one sweep at a time: without reports it stays as it is, a report adds its sweep's section and claims, and the rest stays.
: "${scratch:?run by tests/run-cli.sh}"
mkdir -p "$scratch/configs/findings" "$scratch/reports" "$scratch/none" "$scratch/docs"
cp "$root"/configs/findings/*.json "$scratch/configs/findings"
cp "$root/docs/FINDINGS.md" "$scratch/docs"
cat >"$scratch/configs/base.json" <<'J'
{"model": {"kind": "gaussian"}, "data": {"rows": 512, "features": 32, "split": 0.75},
 "train": {"steps": 40, "batch": 64, "seed": 1}, "optimizer": {"kind": "adam", "lr": 0.05}}
J
small() { # small NAME SEEDS
  cat >"$scratch/configs/findings/$1.json" <<J
{"about": "A sweep of a test.", "config": "../base.json", "seeds": $2, "arms": [{"name": "ocp", "set": {"quant.recipe": "recipe-ocp"}}],
 "claims": [{"says": "MXFP4 costs something", "source": "nobody", "less": "reference", "more": "ocp"}, {"says": "It gains something", "source": "nobody", "less": "ocp", "more": "reference"}]}
J
}
reproduced() { # reproduced NAME
  accepts "$root/tools/reproduce/training.sh" "$mxgold" "$scratch/folder" "$1"
  cp "$scratch/folder/reports/$1.json" "$scratch/folder/reports/$1.jsonl" "$scratch/reports"
}
page() { accepts python3 "$root/tools/reproduce/training.py" "$1" docs/FINDINGS.md "${@:2}"; }
# The sweeps of the page, in its order and with those that it lists as not run.
names=$(sed -n 's/^FINDINGS_SHORT := //p; s/^FINDINGS_LONG := //p; s/^  \(zero-scales .*\)/\1/p' "$root/tools/reproduce/reproduce.mk" | tr -d '\\')
cd "$scratch" || exit
for name in $names; do [ -e "configs/findings/$name.json" ] || fail "make reproduce names $name, which is not there"; done
for file in configs/findings/*.json; do
  name=$(basename "$file" .json)
  case " $(echo $names) first " in *" $name "*) ;; *) fail "make reproduce and reproduce-all have no $name" ;; esac
done
# shellcheck disable=SC2086
page "$scratch/none" $names
cmp -s "$root/docs/FINDINGS.md" docs/FINDINGS.md || fail "without a report the page changes: $(diff "$root/docs/FINDINGS.md" docs/FINDINGS.md | head -5)"
small one 3
reproduced one
# shellcheck disable=SC2086
page "$scratch/reports" $names one
python3 - "$root/docs/FINDINGS.md" docs/FINDINGS.md one <<'P' || fail "a sweep that is added"
import re, sys
old, new, name = open(sys.argv[1]).read(), open(sys.argv[2]).read(), sys.argv[3]
section = re.search(rf"^### {name}\n.*?(?=^### |^# )", new, re.M | re.S)[0]
rows = [line for line in new.split("\n") if line.endswith(f"[{name}](#{name}) |")]
assert len(rows) == 2 and "MXFP4 costs something" in section and "| ocp | 3 |" in section, (rows, section)
back = new.replace(section, "")
for row in rows:
    back = back.replace(row + "\n", "")
counts = re.compile(r"^(### What .*) \(\d+\)$", re.M)
assert counts.sub(r"\1", back) == counts.sub(r"\1", old), "something else has changed"
for head, n in re.findall(r"^### (What .*) \((\d+)\)$", new, re.M):
    table = new.partition(f"### {head} (")[2].partition("\n### ")[0].partition("\n## ")[0]
    assert sum(line.endswith(") |") for line in table.split("\n")) == int(n), head
P
[ "$(wc -l <configs/findings/results/one.csv)" = 7 ] || fail "the results of a sweep that is added: expected six runs"
# Another sweep later, without the first one's report; then the first one again with more seeds.
rm reports/one.json reports/one.jsonl
cp docs/FINDINGS.md before
small two 2
reproduced two
# shellcheck disable=SC2086
page "$scratch/reports" $names one two
[ "$(grep -c '\[one\](#one)' docs/FINDINGS.md)" = 2 ] && [ "$(grep -c '\[two\](#two)' docs/FINDINGS.md)" = 2 ] || fail "one of two sweeps is lost"
section() { awk -v head="### $1" '$0 == head { on = 1; print; next } on && /^#+ / { exit } on' "$2"; }
section one before >was
section one docs/FINDINGS.md | cmp -s - was || fail "the section of a sweep whose report is gone changes"
small one 4
reproduced one
# shellcheck disable=SC2086
page "$scratch/reports" $names one two
grep -q '^| ocp | 4 |' docs/FINDINGS.md && ! grep -q '^| ocp | 3 |' docs/FINDINGS.md || fail "a sweep that was run again keeps its old section"
cp docs/FINDINGS.md before
# shellcheck disable=SC2086
page "$scratch/none" $names one two
cmp -s before docs/FINDINGS.md || fail "the page with two more sweeps changes without their reports"
