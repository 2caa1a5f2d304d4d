#!/bin/sh
# Asks mxgold probe which model the device follows, one line for each instruction: probe.sh DIR_OF_PROGRAMS OUT_DIR [NAME...]. It needs no compiler and no
# network. Each batch is emitted, run on the device and fitted until none is wanted; then tiles of another seed are compared with the model that was named.
# OUT_DIR/probe.txt: instruction, batches, outputs fitted, wrong, predicted, wrong, fresh, wrong, "row" if hopper/NAME is among the rows that give the
# same, model. OUT_DIR/probe.digests: instruction, seed, SHA-256 of the device's bits. OUT_DIR/fits.txt: what the fits say in full.
# DEVICE=model: the table's rows play the device.
set -u
programs=$(cd "$1" && pwd) out=$2 self=$(cd "$(dirname "$0")" && pwd)/probe.sh
mkdir -p "$out"
out=$(cd "$out" && pwd)
if [ "${3:-}" = -one ]; then
  name=$4 row=hopper/$4 n=1 files= tool="$programs/mxgold"
  work=$(mktemp -d) && cd "$work" || exit 2
  play() { # tiles, results
    if [ "${DEVICE:-}" = model ]; then "$tool" mma "$1" --model "$row" -o "$2" > /dev/null; else "$programs/device" "$1" "$name" "$2"; fi
  }
  width=$(case $name in *_f64_*) echo 8 ;; *_f16_f16_f16* | *_f16_e?m?_*) echo 2 ;; *) echo 4 ;; esac)
  count() { "$tool" probe --emit "$1" --like "$row" --seed "$2" | awk '/^tiles  /{ t = $2 } /^M /{ m = $2 } /^N /{ n = $2 } END { print t * m * n }'; }
  bits() { tail -c "$(($2 * width))" "$1"; }
  outputs=$(count p1.safetensors 1)
  while :; do
    play p$n.safetensors d$n.safetensors || exit 2
    files="$files p$n.safetensors d$n.safetensors"
    rm -f next.safetensors
    "$tool" probe --fit $files --emit-next next.safetensors --threads 2 > fit.txt
    rc=$?
    [ -e next.safetensors ] && [ $n -lt 5 ] && [ $rc = 0 ] || break
    n=$((n + 1))
    mv next.safetensors p$n.safetensors
  done
  model=$(sed -n 's/^\(nearest \)*model  *//p' fit.txt | head -1)
  fresh=$(count p9.safetensors 99)
  play p9.safetensors d9.safetensors
  "$tool" mma p9.safetensors --model "$model" -o m9.safetensors > /dev/null || : > m9.safetensors
  bits d9.safetensors "$fresh" > d9.raw
  bits m9.safetensors "$fresh" > m9.raw
  wrong=$(cmp -l d9.raw m9.raw 2>&1 | awk -v w="$width" '/EOF/{ print "all" } $1 + 0 { print int(($1 - 1) / w) }' | uniq | wc -l)
  field() { sed -n "s/^$1  *//p" fit.txt | head -1; }
  is_row=$(grep -q "^$row\$" fit.txt && echo row || echo -)
  echo "$name $n $(field 'outputs fitted') $(field 'of these wrong') $(field 'outputs predicted') $(field 'predicted wrong') $fresh $wrong $is_row $model" > "$out/$name.line"
  { echo "$name 1 $(bits d1.safetensors "$outputs" | sha256sum | cut -d' ' -f1)"; echo "$name 99 $(sha256sum < d9.raw | cut -d' ' -f1)"; } > "$out/$name.digest"
  { echo "== $row"; cut -c1-240 fit.txt; echo; } > "$out/$name.fit"
  rm -rf "$work"
  exit 0
fi
shift 2
[ $# -gt 0 ] || set -- $("$programs/mxgold" models | sed -n 's,^hopper/\([^ ]*\).*,\1,p')
printf '%s\n' "$@" | xargs -P "${JOBS:-8}" -n 1 sh "$self" "$programs" "$out" -one
for kind in line:probe.txt digest:probe.digests fit:fits.txt; do
  for name in "$@"; do cat "$out/$name.${kind%%:*}"; done > "$out/${kind##*:}"
done
for name in "$@"; do rm -f "$out/$name.line" "$out/$name.digest" "$out/$name.fit"; done
awk '{ named += $9 == "row"; wrong += $4 + $6 + $8 + ($9 != "row"); n += $3 + $5 + $7 } END { print named " of " NR " instructions named as their rows are; " n " outputs; " wrong " wrong" }' "$out/probe.txt"
