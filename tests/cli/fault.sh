# Tests quantize --fault: a known fault changes what it says and nothing else, and a fault that cannot be read is refused in one line.
: "${scratch:?run by tests/run-cli.sh}"
accepts "$mxgold" gen codes --preset ocp-mxfp4 --shape 8x64 -o "$scratch/x.safetensors"
q() { accepts "$mxgold" quantize "$scratch/x.safetensors:input" -o "$scratch/$1.safetensors" --preset ocp-mxfp4 "${@:2}"; }
q right
q rows --fault "rows%4=3: scale store <- row -1"
q twice --fault "all: scale store <- row -1" --fault "all: code <- sign of pair"
q turned --transpose --fault "all: scale store <- row -1"
"$mxgold" diff "$scratch/right.safetensors" "$scratch/rows.safetensors" >"$scratch/said"
[ $? = 1 ] || fail "a scale of the row before changes nothing"
python3 - "$scratch/right.safetensors" "$scratch/rows.safetensors" <<'P' || fail "a fault of the store changes stored scales of these rows alone"
import json, struct, sys


def read(path):
    with open(path, "rb") as f:
        size = struct.unpack("<Q", f.read(8))[0]
        header, data = json.loads(f.read(size)), f.read()
    return {k: data[slice(*v["data_offsets"])] for k, v in header.items() if k != "__metadata__"}


a, b = read(sys.argv[1]), read(sys.argv[2])
assert a["codes"] == b["codes"] and len(a["scales"]) == 16
assert all((a["scales"][i] if i // 2 % 4 != 3 else a["scales"][i - 2]) == b["scales"][i] for i in range(16))
P
"$mxgold" quantize "$scratch/x.safetensors:input" -o "$scratch/no.safetensors" --fault "rows: scale stor <- row -1" 2>"$scratch/why"
[ $? = 2 ] && [ "$(wc -l <"$scratch/why")" = 1 ] && [ ! -e "$scratch/no.safetensors" ] || fail "a fault that cannot be read: $(cat "$scratch/why")"
