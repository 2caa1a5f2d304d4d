# The program trusts itself here, and says so in both forms.
accepts "$mxgold" selftest
grep -q '^failed *0$' "$scratch/stdout" || fail "selftest: $(cat "$scratch/stdout")"
accepts "$mxgold" selftest --json
python3 - "$scratch/stdout" <<'P' || fail "selftest --json"
import json, sys
d = json.load(open(sys.argv[1]))
assert d["failed"] == 0 and len(d["checks"]) >= 8 and all(c["result"] == "ok" for c in d["checks"])
P
