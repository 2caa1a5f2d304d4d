# Tests inspect: its text, its JSON, and digests that differ.
: "${scratch:?run by tests/run-cli.sh}"
python3 - <<'P'
import struct, json
def st(path, digest):
    h = {"__metadata__": {"xxh3.a": digest, "spec": "x\ny"}, "a": {"dtype": "U8", "shape": [3], "data_offsets": [0, 3]}}
    j = json.dumps(h).encode()
    open(path, "wb").write(struct.pack("<Q", len(j)) + j + b"abc")
st("same.safetensors", "06b05ab6733a618578af5f94892f3950")
st("differs.safetensors", "06b05ab6733a618578af5f94892f3951")
P
accepts "$mxgold" inspect same.safetensors
cat >want <<'T'
file  same.safetensors

name  dtype  shape  bytes  xxh3-128                          stated
a     u8     3          3  06b05ab6733a618578af5f94892f3950  same

metadata
  spec  x?y
T
diff "$scratch/stdout" want >/dev/null || fail "$(printf 'inspect printed\n%s' "$(cat "$scratch/stdout")")"
accepts "$mxgold" inspect --json same.safetensors
python3 - "$scratch/stdout" <<'P' || fail "inspect --json"
import json, sys
d = json.load(open(sys.argv[1]))
assert d == {"file": "same.safetensors", "tensors": [{"name": "a", "dtype": "u8", "shape": [3], "bytes": 3,
             "xxh3-128": "06b05ab6733a618578af5f94892f3950", "stated": "same"}], "metadata": {"spec": "x\ny"}}, d
P
"$mxgold" inspect differs.safetensors >out 2>err
[ $? = 1 ] || fail "a digest that differs: expected exit 1"
grep -q 'differs$' out || fail "a digest that differs is not called so"
[ ! -s err ] || fail "a digest that differs: something on standard error"
accepts "$mxgold" inspect --no-digests differs.safetensors
"$mxgold" inspect - <same.safetensors | tail -n +2 | diff - <(tail -n +2 want) >/dev/null || fail "inspect - differs from inspect FILE"
cat same.safetensors | "$mxgold" inspect - | tail -n +2 | diff - <(tail -n +2 want) >/dev/null || fail "a pipe differs from a file"
"$mxgold" inspect -v same.safetensors 2>err >/dev/null
grep -q '^digests: .*MiB/s' err || fail "-v does not say the rate"
