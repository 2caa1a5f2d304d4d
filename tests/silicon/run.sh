#!/bin/sh
# Runs everything that needs the device: run.sh DIR_OF_PROGRAMS OUT_DIR. It needs no compiler and no network, and takes about 2 minutes on 16 cores and an H200.
set -u
programs=$1 out=$2
nvidia-smi --query-gpu=name,driver_version,vbios_version --format=csv,noheader
date -u
"$programs/hold" --outputs 40000 --digests "$out/quick.digests" > "$out/quick.txt" # a layout that is wrong shows within seconds
tail -1 "$out/quick.txt"
"$programs/hold" --digests "$out/hold.digests" --kept "$out/kept.safetensors" > "$out/hold.txt"
"$programs/all32" ${ALL32:-} --digests "$out/all32.digests" --rcp-delta "$out/rcp_delta.bin" | tee "$out/all32.txt"
# Columns: instruction, outputs, outputs that differ from mxgold, outputs that differ from the plain model.
awk '$1 ~ /mma_/ && $3 + 0 > 0 { n[$1] += $3; m[$1] += $4; p[$1] += $5 } END { for (k in n) print k, n[k], m[k], p[k] }' "$out/hold.txt" | sort
tail -1 "$out/hold.txt"
