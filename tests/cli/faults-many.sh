# Tests that the time for many tensors grows with their number and no faster.
: "${scratch:?run by tests/run-cli.sh}"
many() { # many N: empty tensors
  python3 - "$1" >"many$1.safetensors" <<'P'
import json, struct, sys
h = json.dumps({"t%d" % i: {"dtype": "F32", "shape": [0, 4], "data_offsets": [0, 0]} for i in range(int(sys.argv[1]))}).encode()
sys.stdout.buffer.write(struct.pack("<Q", len(h)) + h)
P
}
seconds() { python3 - "$@" <<'P'
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
u = resource.getrusage(resource.RUSAGE_CHILDREN)
print(u.ru_utime)
P
}
many 5000
many 80000
for command in "quantize many%.safetensors --all --fake -o out%.safetensors" "inspect out%.safetensors" "dequantize out%.safetensors -o o.npy"; do
  few=$(seconds "$mxgold" ${command//%/5000} 2>"$scratch/stderr") || few=
  [ -n "$few" ] || continue # what these files are not for
  all=$(seconds "$mxgold" ${command//%/80000})
  # 16 times as many: a quadratic step would take 256 times as long.
  awk -v few="$few" -v all="$all" 'BEGIN { exit !(all < 64 * (few + 0.02)) }' || fail "$command: $few s for 5000 tensors, $all s for 80000"
done
rm -f many*.safetensors out*.safetensors
