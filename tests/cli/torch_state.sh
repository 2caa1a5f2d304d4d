# Tests losses and gradients of `mxgold train` against PyTorch's in float64 from the same weights (tests/data/torch, written by `make torch-states`).
: "${scratch:?run by tests/run-cli.sh}"
accepts python3 "$root/tests/lib/torch_state.py" "$mxgold" "$root"/tests/data/torch/*.safetensors
# A weight that differs is noticed: the state with one byte of a weight changed.
cp "$root/tests/data/torch/byte_mlp.safetensors" "$scratch/wrong.safetensors"
python3 - "$scratch/wrong.safetensors" <<'P'
import json, struct, sys
with open(sys.argv[1], "r+b") as f:
    size = struct.unpack("<Q", f.read(8))[0]
    header = json.loads(f.read(size))
    f.seek(8 + size + header["init.linear.1.weight"]["data_offsets"][0] + 2)
    byte = f.read(1)[0]
    f.seek(-1, 1)
    f.write(bytes([byte ^ 0x40]))
P
python3 "$root/tests/lib/torch_state.py" "$mxgold" "$scratch/wrong.safetensors" >/dev/null 2>&1 && fail "a changed weight is not noticed"
