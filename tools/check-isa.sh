#!/bin/sh
# Disassembles every object of the library: registers and masks of AVX-512 may occur in *_avx512.o and *_amx.o alone, ymm registers in those and in
# *_avx2.o. A compiler that used an ISA elsewhere would make a library that dies on older machines.
#   check-isa.sh BUILD_DIR
set -eu
objects=$(find "$1/obj/src" -name '*.o' | sort)
[ -n "$objects" ] || { echo "check-isa: no objects under $1/obj/src" >&2; exit 2; }
case $(file -b $(echo "$objects" | head -1) 2>/dev/null || objdump -f $(echo "$objects" | head -1)) in
  *x86-64*) ;;
  *) echo "check-isa: not run: the objects are not of x86-64"; exit 0 ;;
esac
bad=0 n=0 wide=0
for o in $objects; do
  n=$((n + 1))
  case $o in
    *_avx512.o | *_amx.o) wide=$((wide + 1)); continue ;;
    *_avx2.o) pattern='%zmm|%k[0-7]|%[xy]mm(1[6-9]|2[0-9]|3[01])' ;;
    *) pattern='%zmm|%ymm|%k[0-7]|%xmm(1[6-9]|2[0-9]|3[01])|[[:space:]]v[a-z0-9]+[[:space:]].*%xmm' ;;
  esac
  if objdump -d --no-show-raw-insn "$o" | grep -qE "$pattern"; then
    echo "check-isa: $o has instructions of an ISA that its name does not say:"
    objdump -d --no-show-raw-insn "$o" | grep -E "$pattern" | head -3
    bad=1
  fi
done
[ $bad = 0 ] && echo "check-isa: $n objects, $wide of AVX-512: no instruction where it does not belong"
exit $bad
