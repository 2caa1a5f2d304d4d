#!/bin/sh
# Disassembles every object of the library and holds each instruction to the name of its file. What decides is the encoding, not the operands: EVEX
# (AVX-512) begins with byte 62, VEX (AVX, AVX2, FMA, BMI) with c4 or c5, and what came after SSE2 stands in the maps 0f 38 and 0f 3a but for a few.
#   *_avx512.o    AVX-512 F BW DQ VL CD VBMI VBMI2 VNNI VPOPCNTDQ and what AVX2 has
#   *_amx.o       those and tiles
#   *_avx2.o      AVX2 FMA F16C BMI BMI2 and what SSE4.2 has
#   all others    SSE2 alone
# A compiler that used an ISA elsewhere would make a library that dies on older machines. On AArch64: ARMv8.0 alone (NEON is part of it).
#   check-isa.sh DIR|FILE [OBJDUMP]       each .o below DIR, or one file
#   check-isa.sh --plant CC [OBJDUMP]     compiles objects under false names and shows that each is found (x86-64)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
plant() {
  tmp=$(mktemp -d)
  trap 'rm -rf "$tmp"' EXIT
  missed=0 planted=0
  while IFS='|' read -r name flags code; do
    planted=$((planted + 1))
    printf '#include <immintrin.h>\n%s\n' "$code" >"$tmp/planted.c"
    # shellcheck disable=SC2086
    $1 -O2 $flags -c "$tmp/planted.c" -o "$tmp/$name.o" || exit 2
    if "$here/check-isa.sh" "$tmp/$name.o" $2 >"$tmp/said"; then
      [ "${flags#-DFINE}" != "$flags" ] || { echo "check-isa: planted $name.o with $flags was not found"; missed=1; }
    elif [ "${flags#-DFINE}" != "$flags" ]; then
      echo "check-isa: $name.o with $flags was refused:"; cat "$tmp/said"; missed=1
    fi
    rm "$tmp/$name.o"
  done <<'OBJECTS'
x_avx2|-mavx512f -mavx512vl|__m256i f(__m256i a, __m256i b, __m256i c) { return _mm256_ternarylogic_epi32(a, b, c, 0x96); }
x_avx2|-mavx512f -mavx512bw|unsigned f(unsigned a) { return _cvtmask32_u32(_kadd_mask32(_cvtu32_mask32(a), 5)); }
x_avx2|-mavx512f|__m512i f(__m512i a) { return _mm512_add_epi32(a, a); }
x_avx2|-mlzcnt|unsigned f(unsigned a) { return _lzcnt_u32(a); }
x_avx2|-maes|__m128i f(__m128i a) { return _mm_aesenc_si128(a, a); }
x_avx512|-mavx512f -mavx512ifma|__m512i f(__m512i a) { return _mm512_madd52lo_epu64(a, a, a); }
x_avx512|-mavx512f -mavx512bitalg|__m512i f(__m512i a) { return _mm512_popcnt_epi8(a); }
x_avx512|-mamx-tile|void f(void) { _tile_release(); }
x_avx512|-mavx512f -mavx512fp16|__m512h f(__m512i a) { return _mm512_cvtepi16_ph(a); }
x_amx|-mamx-tile -mamx-bf16|void f(void) { _tile_dpbf16ps(0, 1, 2); }
x_avx2|-mavx2 -mfma4|__m128 f(__m128 a, __m128 b, __m128 c) { return __builtin_ia32_vfmaddps(a, b, c); }
x_avx2|-mxop|__m128i f(__m128i a, __m128i b) { return (__m128i)__builtin_ia32_vprotd((__v4si)a, (__v4si)b); }
plain|-msse4a|void f(double *p, __m128d a) { __builtin_ia32_movntsd(p, a); }
plain|-mssse3|__m128i f(__m128i a, __m128i b) { return _mm_shuffle_epi8(a, b); }
plain|-msse3|__m128 f(__m128 a) { return _mm_hadd_ps(a, a); }
plain|-msse4.1|__m128i f(__m128i a, __m128i b) { return _mm_min_epi32(a, b); }
plain|-msse4.2|unsigned f(unsigned a, unsigned b) { return _mm_crc32_u32(a, b); }
plain|-mpopcnt|int f(unsigned a) { return __builtin_popcount(a); }
plain|-mbmi|unsigned f(unsigned a, unsigned b) { return ~a & b; }
plain|-mbmi2|unsigned f(unsigned a, unsigned b) { return _pext_u32(a, b); }
plain|-mavx|__m128 f(__m128 a) { return _mm_add_ps(a, a); }
plain|-mavx512f|__m512i f(__m512i a) { return _mm512_add_epi32(a, a); }
plain|-DFINE -msse2|__m128i f(__m128i a, unsigned b) { return _mm_add_epi32(a, _mm_set1_epi32(__builtin_ctz(b))); }
x_avx2|-DFINE -mavx2 -mfma -mf16c -mbmi -mbmi2|__m256 f(__m256 a, unsigned b) { return _mm256_fmadd_ps(a, a, _mm256_set1_ps((float)_pext_u32(b, 5))); }
x_avx512|-DFINE -mavx512f -mavx512vbmi|__m512i f(__m512i a) { return _mm512_permutexvar_epi8(a, a); }
x_avx512|-DFINE -mavx512f -mavx512vpopcntdq|__m512i f(__m512i a) { return _mm512_popcnt_epi64(a); }
x_amx|-DFINE -mamx-tile -mamx-int8 -mavx512f|__m512i f(__m512i a) { _tile_dpbssd(0, 1, 2); return _mm512_add_epi32(a, a); }
OBJECTS
  [ $missed = 0 ] && echo "check-isa: $planted objects under true and false names: each told"
  exit $missed
}
[ "$1" != --plant ] || plant "$2" "${3:-objdump}"

objdump=${2:-objdump}
if [ -d "$1" ]; then objects=$(find "$1/obj/src" -name '*.o' | sort); else objects=$1; fi
[ -n "$objects" ] || { echo "check-isa: no objects under $1/obj/src" >&2; exit 2; }
first=${objects%%
*}
case $("$objdump" -f "$first") in
  *x86-64*) machine=x86 ;;
  *aarch64*) machine=aarch64 ;;
  *) echo "check-isa: SKIPPED, the objects are neither of x86-64 nor of AArch64"; exit 0 ;;
esac
x86='
BEGIN { FS = "\t"; n = split("66 67 f0 f2 f3 2e 36 3e 26 64 65", list, " "); for (i = 1; i <= n; i++) prefix[list[i]] = 1 }
NF < 3 { next }
{
  count = split($2, b, " "); p = ""; i = 1
  while (i <= count && b[i] in prefix) { p = p " " b[i]; i++ }
  if (b[i] ~ /^4[0-9a-f]$/) i++ # REX
  name = $3; bad = ""
  if (b[i] == "62") level = 3
  else if (b[i] == "c4" || b[i] == "c5") level = name ~ /^k(mov|and|or|xor|xnor|not|shift|test|add|unpck)/ ? 3 : name ~ /^(tile|tdp|ldtile|sttile)/ ? 4 : 2
  else if (b[i] == "0f" && (b[i + 1] == "38" || b[i + 1] == "3a")) level = 1
  else if (b[i] == "0f" && b[i + 1] ~ /^(b8|bd)$/ && p ~ /f3/) level = b[i + 1] == "b8" ? 1 : 9 # popcnt; lzcnt
  else if (b[i] == "0f" && (b[i + 1] ~ /^(7c|7d|d0)$/ && p ~ /66|f2/ || b[i + 1] == "f0" && p ~ /f2/ || b[i + 1] ~ /^(12|16)$/ && p ~ /f3/ || b[i + 1] == "12" && p ~ /f2/)) level = 1 # SSE3
  else level = 0
  # Extensions that the Makefile switches on nowhere: their maps (FP16 has 5 and 6 of EVEX, XOP and TBM begin with 8f), their names.
  if (b[i] == "62" && (index("0123456789abcdef", substr(b[i + 1], 2)) - 1) % 8 > 3 || b[i] == "8f" && name !~ /^pop/) level = 9
  if (name ~ /^(tdp[^b]|tdpb[^s]|tdpbs[^s]|vpdp([bw][us][us]d|bssd|bsud|buud)s? .*\{vex\}|vpdp(bss|bsu|buu|wsu|wus|wuu)|vbcst|vcvtne[eo]|vexp2|vrcp28|vrsqrt28|v4f|v(gather|scatter)pf|extrq|insertq|movnts[sd]|xbegin|xend|xabort|xtest|rdpid|clwb|clflushopt|cmpxchg16b|cmp[a-z]+xadd|vf[a-z]*[sp][sd] .*%xmm.*,.*%xmm.*,.*%xmm.*,.*%xmm)/) level = 9
  if (name ~ /^(v?aes|v?pclmul|v?gf2p8|v?sha|adcx|adox|rdrand|rdseed|movbe|lzcnt|fisttp|vp2intersect|vpopcnt[bw]|vpshufbitqmb|vpmadd52|vcvtne2?ps2?2?bf16|vcvtneps2bf16|vdpbf16|v(add|sub|mul|div|max|min|sqrt|scalef|reduce|rndscale|getexp|getmant|cmp|fpclass|fc?m(add|ul)c?|fn?m[a-z0-9]*|r(sqrt|cp))(ph|sh) |\{vex\})/) level = 9
  if (level > may) { print "    " name; if (++shown == 3) exit }
}'
# Of ARMv8.0: no SVE or SME registers, no products of 8.2, no arithmetic in half precision, no atomics of 8.1 but in the functions of libgcc that ask first.
aarch64='
BEGIN { FS = "\t" }
/^[0-9a-f]+ <.*>:$/ { outline = $0 ~ /<__aarch64_/ }
NF < 3 || outline { next }
{
  name = $3 " " $4
  if (name ~ /[ ,{[](z|p)[0-9]+[.\/]/ || name ~ /^(sdot|udot|usdot|sudot|bfdot|bfmmla|bfmlal[bt]|bfcvt[n2]*|smmla|ummla|usmmla|ldapr|cas[a-z]*|swp[a-z]*|ld(add|clr|set|eor|smax|smin)[a-z]*|fcmla|fcadd|sqrdmla[sh]h|sm4e|sha512)[ .]/ || name ~ /^f[a-z]+ v[0-9]+\.[48]h, v[0-9]+\.[48]h, / || name ~ /^f(add|sub|mul|div|madd|sqrt) h/) { print "    " name; if (++shown == 3) exit }
}'
bad=0 n=0 wide=0
for o in $objects; do
  n=$((n + 1)) may=0
  case $o in
    *_avx512.o) wide=$((wide + 1)) may=3 ;;
    *_amx.o) wide=$((wide + 1)) may=4 ;;
    *_avx2.o) may=2 ;;
  esac
  [ $machine = x86 ] && program=$x86 || program=$aarch64
  found=$("$objdump" -d -w "$o" | awk -v may=$may "$program")
  [ -z "$found" ] && continue
  echo "check-isa: $o has instructions of an ISA that its name does not say:"
  echo "$found"
  bad=1
done
if [ $bad = 0 ] && [ $machine = x86 ]; then
  echo "check-isa: $n objects, $wide of AVX-512: no instruction where it does not belong"
elif [ $bad = 0 ]; then
  echo "check-isa: $n objects of AArch64: no instruction beyond ARMv8.0"
fi
exit $bad
