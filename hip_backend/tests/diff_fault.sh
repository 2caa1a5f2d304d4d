#!/usr/bin/env bash
# hip-diff whose device ends the process, or does not come back: what is on the disk then, and what is said. diff_fault.sh HIP-DIFF (no code for a device)
set -eu
diff=$(realpath "$1") root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { echo "hip-diff-check: fault: $*" >&2; exit 1; }
under= # a command to run it under
# What a fault costs does not depend on how many cases there are: make check runs an eighth of them, make check-all the whole.
quick=--quick part=8
[ -z "${CHECK_ALL-}" ] || quick='' part=1
# run FAULT ARGUMENT...: exit 2, the report fits its schema
run() {
  local rc=0 fault=$1
  shift
  rm -f diff.json diff.html
  $under "$diff" --device host $quick --fault "$fault" --json diff.json --html diff.html "$@" >said 2>err || rc=$?
  [ $rc = 2 ] || fail "$fault: exit $rc, expected 2: $(cat err)"
  python3 "$root/tests/lib/check_schema.py" "$root/docs/reference/schemas/hip-diff.schema.json" diff.json || fail "$fault: the report does not fit its schema"
}
# holds EXPRESSION: of rows (by operation), report, page
holds() {
  python3 - "$1" <<'P' || fail "not so: $1: $(cat diff.json)"
import json, sys
report, page = json.load(open("diff.json")), open("diff.html").read()
rows = {r["operation"]: r for r in report["operations"]}
sys.exit(not eval(sys.argv[1]))
P
}

# Arguments that cannot be meant, and reports that cannot be written, cost no run.
refuses() { # refuses SAID ARGUMENT...
  local rc=0 want=$1
  shift
  timeout 20 "$diff" --device host "$@" >said 2>err || rc=$?
  [ $rc = 2 ] && [ ! -s said ] && [ "$(cat err)" = "mxgold-hip-diff: $want" ] || fail "$*: exit $rc: $(cat said err)"
}
for f in mxh_quantize:frob nosuch:abort mxh_quantize x:frob; do refuses "--fault $f: expected a kernel's name, then :abort, :segv or :hang" --fault $f; done
for n in abc 0 -1 3x; do refuses "--rehearse $n: expected 1 to 100000" --rehearse $n; done
refuses "--patience 0: expected 1 to 100000" --patience 0
refuses "--large 1e9: expected 0 to 18446744073709551615" --large 1e9
for o in json html; do refuses "--$o none/x.$o: cannot create: No such file or directory" --$o none/x.$o; done
refuses "--html x: this is also the file of --json" --json x --html x
refuses "--quick: works only with --device host" --device auto --quick
refuses "--json -: expected the name of a file" --json -
refuses "--profile none: No such file or directory" --profile none
[ -z "$(ls -A | grep -v '^said$\|^err$')" ] || fail "left behind: $(ls)"

# Aborted in three parts of the portable half: what was before is there, what comes after is run.
run mxh_hadamard:abort --only portable
grep -q '^mxgold-hip-diff: quantize, Hadamard: ended by signal 6 .*, the last kernel launched was mxh_hadamard; case had.size=16 ' err || fail "err: $(cat err)"
grep -q '3 DIED' said || fail "the table: $(cat said)"
holds 'report["state"] == "died" and rows["quantize"]["verdict"] == "equal" and rows["quantize"]["cases"] > 1000 // '$part
holds '[r["operation"] for r in rows.values() if r["verdict"] == "DIED"] == ["quantize, Hadamard", "quantize, random mixtures of keys", "Hadamard rotation"]'
holds 'rows["quantize, Hadamard"]["group"] == "portable" and "signal 6" in rows["quantize, Hadamard"]["first"] and "DIED" in page'
holds 'all(rows[o]["verdict"] == "equal" for o in ("encode", "layout of scales", "quantize, fast", "product, f32_seq"))'
# Rows that lost cases with the one that died are cut, and how many is what a whole run has; those that had all of theirs are equal.
"$diff" --device host $quick --only portable --json whole.json >said || fail "a whole run: $(cat said)"
as_whole='(lambda whole: {o: r["cases"] for o, r in whole.items()} == {o: r["expected"] for o, r in rows.items()} and
  all((r["cases"] < r["expected"]) == (r["verdict"] in ("cut", "DIED")) for r in rows.values()))(
  {r["operation"]: r for r in json.load(open("whole.json"))["operations"]})'
holds "$as_whole"
holds 'rows["dequantize, random mixtures of keys"]["verdict"] == "cut" and rows["quantize, stochastic"]["cases"] == 0'
under='env --ignore-signal=CHLD' run mxh_quantize_both:segv --only portable # whoever started us may ignore the end of children
grep -q '[1-9] cut (cases run/expected), ' said || fail "the table: $(cat said)"
holds "$as_whole"
holds 'sorted(r["operation"] for r in rows.values() if r["verdict"] == "cut") == ["dequantize, fast", "quantize, fast"]'
holds '">%d/%d<td" % (rows["quantize, fast"]["cases"], rows["quantize, fast"]["expected"]) in page and "cut by the end of " in rows["quantize, fast"]["note"]'
echo '#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>
int rename(const char *from, const char *to) {
  usleep(200000);
  return ((int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename"))(from, to);
}' >slow.c
${CC:-cc} -shared -fPIC slow.c -ldl -o slow.so || fail "the slow disk does not build"
# A memory fault among the probes of the rules: those that were found, all before scale_sgpr, are kept.
before=$(sed -n 's/^GFX950_RULE(\([a-z0-9_]*\),.*/\1/p' "$root/formats/gfx950_rules.def" | grep -nx scale_sgpr | cut -d: -f1) || fail "there is no rule scale_sgpr"
before=$((before - 1))
# On a disk that takes its time: the child, at its end, does not write beside the parent, who is at rows it was told of long before.
LD_PRELOAD=$work/slow.so run gfx950_probe_sgpr:segv --only native
holds '[r["operation"] for r in rows.values() if r["verdict"] == "DIED"] == ["gfx950'"'"'s instructions"]'
holds '"signal 11" in rows["gfx950'"'"'s instructions"]["first"] and "gfx950_probe_sgpr; case the probes of scale_sgpr" in rows["gfx950'"'"'s instructions"]["first"]'
holds "len(report['found']) == $before and "'report["found"][0].startswith("nan_fp4: ") and report["found"][0].split(",")[0] in page'
holds 'rows["native_mxfp4: MXFP4, even rule"]["cases"] and "profile" not in report'
holds 'report["state"] == "died" and report["silicon"] == "skipped"'
# A kernel that does not come back: ended, and the device is not asked again. Two runs beside each other write the same report: each is whole.
LD_PRELOAD=$work/slow.so "$diff" --device host $quick --fault mxh_quantize:hang --json diff.json --html diff.html --only portable --patience 5 >other 2>other.err &
other=$!
LD_PRELOAD=$work/slow.so run mxh_quantize:hang --only portable --patience 5
rc=0
wait $other || rc=$?
[ $rc = 2 ] || fail "beside another run: exit $rc, expected 2: $(cat other.err)"
cmp -s err other.err && grep -q 'no message for 5 s, killed, the last kernel launched was mxh_quantize' err || fail "err: $(cat err other.err)"
[ -z "$(find . -name '.mxgold.*')" ] || fail "left behind: $(ls -A)"
holds "$as_whole"
holds 'all(r["verdict"] == "cut" and r["cases"] == 0 for o, r in rows.items() if o != "quantize")'
holds 'rows["quantize"]["verdict"] == "DIED" and report["silicon"] == "skipped"'
# Killed as a whole: the file on the disk is the report up to the last row.
rm -f diff.json
"$diff" --device host $quick --fault mxh_hadamard:hang --only portable --json diff.json --html diff.html >said 2>err &
pid=$!
until grep -qs 'quantize, Hadamard\|"dequantize"' diff.json || ! kill -0 $pid 2>/dev/null; do sleep 0.1; done
{ kill -9 $pid && wait $pid; } 2>/dev/null || true
holds 'report["state"] == "unfinished" and report["device"] and rows["quantize"]["verdict"] == "equal"'
echo "hip-diff-check: a fault, a hang and a kill cost one row each, and what was found is on the disk"
