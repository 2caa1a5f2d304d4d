# Tests that what --json prints fits docs/reference/schemas, that --junit is XML with right counts, and that the checker finds what does not fit.
: "${scratch:?run by tests/run-cli.sh}"
fits() { # fits NAME EXIT COMMAND...
  local name=$1 want=$2 rc said
  shift 2
  "$@" >"$scratch/stdout" 2>"$scratch/stderr"
  rc=$?
  [ $rc = "$want" ] || fail "exit $rc, expected $want: $*: $(cat "$scratch/stderr")"
  said=$(python3 "$root/tests/lib/check_schema.py" "$root/docs/reference/schemas/$name.schema.json" "$scratch/stdout") || fail "$*: $said"
}
junit() { # junit FILE TESTS FAILURES
  python3 - "$@" <<'P' || fail "junit $*"
import sys, xml.etree.ElementTree as E
suite = E.parse(sys.argv[1]).getroot()
cases = suite.findall("testcase")
failed = [c for c in cases if c.find("failure") is not None]
assert int(suite.get("skipped")) == sum(c.find("skipped") is not None for c in cases)
assert suite.tag == "testsuite" and suite.get("name") and all(c.get("name") for c in cases)
assert int(suite.get("tests")) == len(cases) == int(sys.argv[2]) and int(suite.get("failures")) == len(failed) == int(sys.argv[3])
assert all(c.find("failure").get("message") for c in failed)
P
}
slices=$root/tests/data/minilm_slices.safetensors
fits ablate 0 "$mxgold" ablate "$slices" -p ocp-mxfp4,nvfp4 --set elem.round=rne,sr --set scale.round=rne,up --repeats 1 --json
fits ablate 0 "$mxgold" ablate gen:gaussian --shape 1x64 --json
fits ablate-gemm 0 "$mxgold" ablate --gemm "$slices:activation" "$slices:gradient" --json
fits ablate-gemm 0 "$mxgold" ablate --gemm gen:gaussian gen:laplace --shape 32x64 -p hif4 --set elem.round=rne,sr --json
fits ablate-six 0 "$mxgold" ablate --six gen:gaussian gen:laplace gen:rows:1.5 --shape 64x64 -p recipe-nvfp4,recipe-tseng --json
fits quantize-all 0 "$mxgold" quantize "$slices" --all --fake --exclude weight --json -o fake.safetensors
accepts "$mxgold" gen ties --preset ocp-mxfp4 -o a.safetensors
accepts "$mxgold" quantize a.safetensors:input --preset ocp-mxfp4 --set elem.round=rna -o b.safetensors
fits diff 0 "$mxgold" diff a.safetensors a.safetensors --json --junit same.xml
junit same.xml 4 0
fits diff 1 "$mxgold" diff a.safetensors b.safetensors --json --max 5 --explain --junit 'a<b&"c".xml'
junit 'a<b&"c".xml' 4 2
accepts "$mxgold" quantize a.safetensors:input --preset ocp-mxfp4 --set scale.rule=ceil -o c.safetensors
fits diff 1 "$mxgold" diff a.safetensors c.safetensors --json --input a.safetensors:input
accepts "$mxgold" gen special --preset te-nvfp4 -o s.safetensors
accepts "$mxgold" gen special --preset te-nvfp4 -o s.mxv
fits verify 0 "$mxgold" verify s.mxv --json --junit v.xml
junit v.xml "$(python3 -c 'import json,sys; print(len(json.load(open(sys.argv[1]))["columns"]))' "$scratch/stdout")" 0
awk '!/^#/ && !done { $0 = substr($0, 1, length($0) - 1) (/0$/ ? "1" : "0"); done = 1 } 1' s.mxv >t.mxv # the last digit of the first case
fits verify 1 "$mxgold" verify s.mxv t.mxv --json --junit v.xml
junit v.xml "$(python3 -c 'import json,sys; print(len(json.load(open(sys.argv[1]))["columns"]))' "$scratch/stdout")" 1
fits identify 0 "$mxgold" identify --input a.safetensors:input --output a.safetensors --json
fits identify 1 "$mxgold" identify --input a.safetensors:input --output b.safetensors --expect ocp-mxfp4 --json
accepts "$mxgold" quantize a.safetensors:input --preset ocp-mxfp8-e4m3 -o g.safetensors
accepts "$mxgold" gemm g.safetensors g.safetensors -o d.npy
fits diff-gemm 0 "$mxgold" diff --gemm g.safetensors g.safetensors d.npy --json --junit g.xml
junit g.xml 1 0
accepts "$mxgold" gemm g.safetensors g.safetensors -o d.npy --alpha 3
fits diff-gemm 1 "$mxgold" diff --gemm g.safetensors g.safetensors d.npy --json --junit g.xml
junit g.xml 1 1
fits diff-gemm 1 "$mxgold" diff --gemm g.safetensors g.safetensors d.npy --json --bound
for bug in TIES BOUNDS NONE; do
  ${CC:-cc} -O2 -shared -fPIC -DBUG_$bug -I"$root/include" "$root/examples/kernel_plugin.c" -lm -o $bug.so || fail "cannot build a plugin"
done
fits test 0 "$mxgold" test --plugin ./NONE.so --suite ties --json --junit t.xml
junit t.xml 1 0
fits test 1 "$mxgold" test --plugin ./TIES.so --suite ties --json --junit t.xml
junit t.xml 1 1
fits test 1 "$mxgold" test --plugin ./BOUNDS.so --suite ties --json
fits identify 0 "$mxgold" identify --plugin ./NONE.so --quick --json
fits identify 1 "$mxgold" identify --plugin ./TIES.so --expect ocp-mxfp4 --quick --json
fits models 0 "$mxgold" models --json
fits models 0 "$mxgold" models cdna4/ --json
for bad in '{}' '{"equal": 1, "cases": 0, "columns": []}' '{"equal": true, "cases": -1, "columns": []}' \
  '{"equal": true, "cases": 0, "columns": [{"column": "x", "compared": 1, "differ": 0, "more": 1}]}' \
  '{"equal": true, "cases": 0, "columns": [{"column": "x", "compared": 1, "differ": 1, "expected": "G"}]}'; do
  echo "$bad" | python3 "$root/tests/lib/check_schema.py" "$root/docs/reference/schemas/verify.schema.json" >/dev/null && fail "the checker takes $bad"
done
true
