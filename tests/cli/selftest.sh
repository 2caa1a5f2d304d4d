# Tests that selftest passes here, and says so as text and as JSON.
: "${scratch:?run by tests/run-cli.sh}"
accepts "$mxgold" selftest
grep -q '^failed *0$' "$scratch/stdout" || fail "selftest: $(cat "$scratch/stdout")"
accepts "$mxgold" selftest --json
python3 - "$scratch/stdout" <<'P' || fail "selftest --json"
import json, sys
d = json.load(open(sys.argv[1]))
assert d["failed"] == 0 and len(d["checks"]) >= 8 and all(c["result"] == "ok" for c in d["checks"])
P
# Which kernels are used: AVX2 takes AVX-512 with it, and a name that is none is refused, wherever it stands.
accepts "$mxgold" selftest --isa-off avx2
grep -Eq '(avx2|avx512)$' "$scratch/stdout" && fail "selftest --isa-off avx2: $(cat "$scratch/stdout")"
if grep -q avx512 "$scratch/stdout"; then
  grep -Eq '^instruction_sets *avx2 [(]switched off[)], avx512 [(]switched off[)](, amx [(]switched off[)])?$' "$scratch/stdout" || fail "selftest --isa-off avx2: $(cat "$scratch/stdout")"
fi
refuses "mxgold: --isa-off avx22: unknown instruction set 'avx22', expected amx, avx2, avx512, neon or all" "$mxgold" selftest --isa-off avx22
refuses "mxgold: MXGOLD_ISA_OFF=avx512,typo: unknown instruction set 'typo', expected amx, avx2, avx512, neon or all" \
  env MXGOLD_ISA_OFF=avx512,typo "$mxgold" selftest
