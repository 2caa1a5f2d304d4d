#!/usr/bin/env bash
# hip-diff on a machine without a device: what it says, the report against its schema, and the profile in the hands of mxgold. diff.sh MXGOLD HIP-DIFF
set -eu
mxgold=$(realpath "$1") diff=$(realpath "$2") root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { echo "hip-diff-check: $*" >&2; exit 1; }

# The target is that of the device that the HIP runtime opens, as the runtime gives it.
${CC:-cc} -shared -fPIC -Wall -Wextra -Werror "$root/hip_backend/tests/fake_hip.c" -o libamdhip64.so || fail "the fake runtime does not build"
for old in "" 1; do
  why=$(FAKE_OLD=$old FAKE_ARCH=gfx777:sramecc+:xnack- FAKE_BUS=0000:75:00.0 LD_LIBRARY_PATH=$work "$diff" --device hip 2>&1 || true)
  [ "$why" = "mxgold-hip-diff: hip: Fake Instinct 0 (this program has no kernels for gfx777)" ] || fail "gfx777 is: $why"
done

"$diff" --only native --json diff.json --html diff.html --profile . >said || fail "exit $?: $(tail -5 said)"
if grep -q '^device CPU host runtime' said; then
  grep -q 'kernels for: SKIPPED on silicon' said || fail "no word of what was skipped"
  grep -q '^hip-diff: ran only on the CPU host runtime; silicon: SKIPPED' said || fail "the last line does not say SKIPPED"
fi
python3 "$root/tests/lib/check_schema.py" "$root/docs/reference/schemas/hip-diff.schema.json" diff.json || fail "the report does not fit its schema"
python3 - "$root" <<'P' || fail "rows are missing"
import json, re, sys
report = json.load(open("diff.json"))
table = open("said").read()
page = open("diff.html").read()
want = set(re.findall(r'^GFX950\(\w+, "(\w+)"', open(sys.argv[1] + "/formats/gfx950.def").read(), re.M))
kernels = set(re.findall(r"MXH_KERNEL\((native_\w+)", "".join(open(f"{sys.argv[1]}/hip_backend/gfx950/native_{n}.hip").read() for n in ("quantize", "gemm"))))
rows = {r["operation"]: r for r in report["operations"]}
assert len(want) == 62 and want <= set(rows), want - set(rows)
assert len(kernels) == 5 and all(any(o.startswith(k + ":") for o in rows) for k in kernels), kernels
for name, row in rows.items():
    assert row["cases"] and row["values"] and row["verdict"] == "equal", row
    if "mfma" in name:
        assert row["note"].startswith("400 of 400 kernels launched"), row
    assert re.search(r"^%s +%d " % (re.escape(name), row["cases"]), table, re.M) and name in page, name
assert all(report[k] for k in ("device", "driver", "compiler", "commit", "date"))
rules = re.findall(r"^GFX950_RULE\((\w+),", open(sys.argv[1] + "/formats/gfx950_rules.def").read(), re.M)
assert set(report["profile"]["rules"]) == set(rules) and len(rules) == 31 and report["profile"]["complete"]
assert [len(s["pairs"]) for s in report["profile"]["sums"]] == [50]
P
profile=$(ls ./*@*.spec.json) && profile=${profile%.spec.json}
"$mxgold" gen ties --set scale.rule=even -o x.safetensors
"$mxgold" quantize x.safetensors:input --spec "$profile.spec.json" -o a.safetensors || fail "quantize --spec"
"$mxgold" gemm a.safetensors a.safetensors --accum "$(cat "$profile.accum")" -o d.npy || fail "gemm --accum"
"$mxgold" gemm a.safetensors a.safetensors --accum cdna4_like_cdna3 -o e.npy
cmp d.npy e.npy || fail "the model found is not the one played"
"$mxgold" models "$(cat "$profile.accum")" >/dev/null || fail "models does not know the model"
# Two devices with hidden rules, the second with a wrong kernel besides: every row equal on the first, that kernel's row alone DIFFERS on the second.
# That is over a minute, so it belongs to make check-all; in make check, test_questions plays devices without their kernels.
rehearsed=
if [ -n "${CHECK_ALL-}" ]; then
  "$diff" --rehearse 1 --wrong 1 --seed 101 >rehearsed || { cat rehearsed >&2; fail "the rehearsal"; }
  rehearsed="$(tail -1 rehearsed | sed 's/^hip-rehearse: //; s/, [0-9]* s$//'); "
fi
echo "hip-diff-check: $rehearsed$(grep -c equal said) rows, report and profile as they should be"
