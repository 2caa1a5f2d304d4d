/* Compiles the comparison of two rows of codes for AVX-512. */
#include <immintrin.h>
#include <string.h>

#include "kernels/differ.h"

#define TABLE mxi_differ_avx512
#define v __m512i
enum { W = 64, TALLY_MOST = 256 };

static inline v v_load(const void *p) { return _mm512_loadu_si512(p); }
static inline void v_store(void *p, v a) { _mm512_storeu_si512(p, a); }
static inline v v_set(int x) { return _mm512_set1_epi8((char)x); }
static inline v v_each_lane(const void *p) { return _mm512_broadcast_i32x4(_mm_loadu_si128(p)); }
static inline v v_and(v a, v b) { return _mm512_and_si512(a, b); }
static inline v v_or(v a, v b) { return _mm512_or_si512(a, b); }
static inline v v_xor(v a, v b) { return _mm512_xor_si512(a, b); }
static inline v v_low(v a) { return _mm512_and_si512(a, v_set(15)); }
static inline v v_high(v a) { return _mm512_and_si512(_mm512_srli_epi16(a, 4), v_set(15)); }
static inline v v_look_up(v table, v index) { return _mm512_shuffle_epi8(table, index); }
static inline v v_first_halves(v a, v b) { return _mm512_unpacklo_epi64(a, b); }
static inline v v_second_halves(v a, v b) { return _mm512_unpackhi_epi64(a, b); }
static inline int v_any(v a) { return _mm512_test_epi64_mask(a, a) != 0; }
static inline unsigned v_count_same(v a, v b) { return (unsigned)__builtin_popcountll(_mm512_cmpeq_epi8_mask(a, b)); }
/* a, with 1 added in the bytes in which b and c differ. */
static inline v v_add_unless_same(v a, v b, v c) { return _mm512_mask_add_epi8(a, _mm512_cmpneq_epi8_mask(b, c), a, v_set(1)); }
/* Loads sixteen bytes for each lane, from sets + 32 * set[0], sets + 32 * set[apart] and so on. */
static inline __m128i sixteen(const uint8_t *sets, unsigned set) { return _mm_loadu_si128((const void *)(sets + 32 * (size_t)set)); }
static inline v v_sets(const uint8_t *sets, const uint16_t *set, int apart) {
  const __m256i a = _mm256_inserti128_si256(_mm256_castsi128_si256(sixteen(sets, set[0])), sixteen(sets, set[apart]), 1);
  const __m256i b = _mm256_inserti128_si256(_mm256_castsi128_si256(sixteen(sets, set[2 * apart])), sixteen(sets, set[3 * apart]), 1);
  return _mm512_inserti64x4(_mm512_castsi256_si512(a), b, 1);
}
static inline void v_store_zipped(uint8_t *p, v a, v b) {
  v_store(p, _mm512_unpacklo_epi8(a, b));
  v_store(p + 64, _mm512_unpackhi_epi8(a, b));
}
static inline v v_up(v a, int bits) { return _mm512_slli_epi16(a, (unsigned)bits); }
static inline v v_down(v a, int bits) { return _mm512_srli_epi16(a, (unsigned)bits); }
static inline v v_select(v mask, v a, v b) { return _mm512_ternarylogic_epi64(mask, a, b, 0xCA); }
static inline v v_neither(v a, v b) { return _mm512_ternarylogic_epi64(a, b, b, 0x03); }
static inline v v_without(v a, v b) { return _mm512_andnot_si512(b, a); }
/* Counts set bits in parts of a register; adds such counts; and adds them to eight numbers. */
static inline v v_ones(v a) { return _mm512_popcnt_epi64(a); }
static inline v v_plus(v a, v b) { return _mm512_add_epi64(a, b); }
static inline void v_add_to(uint64_t *sums, v a) { v_store(sums, _mm512_add_epi64(v_load(sums), a)); }
/* Stores the sum of each eight bytes, or of each sixteen, as a byte. */
static inline void v_store_sums(uint8_t *p, v a, int eights) {
  const v s = _mm512_sad_epu8(a, _mm512_setzero_si512());
  if (eights)
    _mm_storel_epi64((void *)p, _mm512_cvtepi64_epi8(s));
  else {
    const v both = _mm512_add_epi64(s, _mm512_unpackhi_epi64(s, s)); /* in the lower half of each lane */
    const __m128i four = _mm512_cvtepi64_epi8(_mm512_maskz_compress_epi64(0x55, both));
    const uint32_t bytes = (uint32_t)_mm_cvtsi128_si32(four);
    memcpy(p, &bytes, sizeof bytes);
  }
}

#include "kernels/differ.inc.h"
