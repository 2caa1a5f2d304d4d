#!/bin/sh
# Measures, for make bench-ablate, the seconds of `ablate` with twelve presets on every tensor of DATA, and of `quantize --all --fake` on a checkpoint of
# SIZE MiB in a RAM disk beside those of cp, by turns.
#   ablate.sh MXGOLD DATA [SIZE [ROUNDS]]
set -eu
mxgold=$(realpath "$1") data=$(realpath "$2") size=${3:-1024} rounds=${4:-5}
dir=$(mktemp -d "${RAMDISK:-/dev/shm}/mxgold.XXXXXX")
trap 'rm -rf "$dir"' EXIT
cd "$dir"
now() { date +%s%N; }
load() { cut -d' ' -f1 /proc/loadavg; }
presets=ocp-mxfp4,torchao-rceil,nvfp4,fouroversix,hif4,mxfp4-e4m3,mxfp4-ue5m3,ocp-mxfp6-e2m3,ocp-mxfp6-e3m2,ocp-mxfp8-e4m3,ocp-mxfp8-e5m2,ocp-mxint8
rows=$("$mxgold" ablate "$data" --presets $presets --threads 2 --json | grep -o '"tensor"' | wc -l)
for i in $(seq "$rounds"); do
  a=$(now); "$mxgold" ablate "$data" --presets $presets --threads 2 --json >table; b=$(now)
  echo $(((b - a) / 1000000))
done | sort -n | awk -v n="$rows" -v load="$(load)" '{ t[NR] = $1 / 1e3 }
  END { printf "ablate, 12 presets, two threads, load %s: %d rows in %.2f s (%.2f to %.2f)\n", load, n, t[int((NR + 1) / 2)], t[1], t[NR] }'
# Weights of real size, 4096x4096, in float32 and bfloat16: real ones over and over.
python3 - "$data" "$size" <<'P'
import json, struct, sys
raw = open(sys.argv[1], "rb").read()
n = struct.unpack("<Q", raw[:8])[0]
head = json.loads(raw[8:8 + n])
a, b = next(v["data_offsets"] for k, v in head.items() if k.endswith("weight"))
one = raw[8 + n + a:8 + n + b]
half = b"".join(one[i + 2:i + 4] for i in range(0, len(one), 4))
size, at, h, body = int(sys.argv[2]) << 20, 0, {}, []
while at < size:
    for dtype, seed, bytes_ in (("F32", one, 4), ("BF16", half, 2)):
        m = 4096 * 4096 * bytes_
        if at < size:
            h["layers.%d.weight" % len(h)] = {"dtype": dtype, "shape": [4096, 4096], "data_offsets": [at, at + m]}
            body.append((seed, m))
            at += m
t = json.dumps(h).encode()
t += b" " * (-len(t) % 8)
with open("in.safetensors", "wb") as f:
    f.write(struct.pack("<Q", len(t)) + t)
    for seed, m in body:
        f.write((seed * (m // len(seed) + 1))[:m])
P
for preset in ocp-mxfp4 nvfp4; do
  for i in $(seq "$rounds"); do
    a=$(now); cp in.safetensors copy; b=$(now)
    "$mxgold" quantize in.safetensors --all --fake --preset $preset -o out.safetensors >table; c=$(now)
    rm copy out.safetensors
    echo "$(((c - b) / 1000)) $(((b - a) / 1000))"
  done | awk '{ print $1 / $2, $1 / 1e6, $2 / 1e6 }' | sort -n |
    awk -v p=$preset -v m="$(($(stat -c %s in.safetensors) >> 20))" -v load="$(load)" '{ r[NR] = $1; t[NR] = $2; c[NR] = $3 }
      END { k = int((NR + 1) / 2); printf "quantize --all --fake, %s, %d MiB, load %s: %.2f times cp (%.2f to %.2f), %.2f s against %.2f s\n", p, m, load, r[k], r[1], r[NR], t[k], c[k] }'
done
