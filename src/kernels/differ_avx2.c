/* Compiles the comparison of two rows of codes for AVX2. */
#include <immintrin.h>
#include <string.h>

#include "kernels/differ.h"

#define TABLE mxi_differ_avx2
#define v __m256i
enum { W = 32, TALLY_MOST = 32 };

static inline v v_load(const void *p) { return _mm256_loadu_si256(p); }
static inline void v_store(void *p, v a) { _mm256_storeu_si256(p, a); }
static inline v v_set(int x) { return _mm256_set1_epi8((char)x); }
static inline v v_each_lane(const void *p) { return _mm256_broadcastsi128_si256(_mm_loadu_si128(p)); }
static inline v v_and(v a, v b) { return _mm256_and_si256(a, b); }
static inline v v_or(v a, v b) { return _mm256_or_si256(a, b); }
static inline v v_xor(v a, v b) { return _mm256_xor_si256(a, b); }
static inline v v_low(v a) { return _mm256_and_si256(a, v_set(15)); }
static inline v v_high(v a) { return _mm256_and_si256(_mm256_srli_epi16(a, 4), v_set(15)); }
static inline v v_look_up(v table, v index) { return _mm256_shuffle_epi8(table, index); }
static inline v v_first_halves(v a, v b) { return _mm256_unpacklo_epi64(a, b); }
static inline v v_second_halves(v a, v b) { return _mm256_unpackhi_epi64(a, b); }
static inline int v_any(v a) { return !_mm256_testz_si256(a, a); }
static inline unsigned v_count_same(v a, v b) { return (unsigned)__builtin_popcount((unsigned)_mm256_movemask_epi8(_mm256_cmpeq_epi8(a, b))); }
/* a, with 1 added in the bytes in which b and c differ. */
static inline v v_add_unless_same(v a, v b, v c) { return _mm256_add_epi8(a, _mm256_add_epi8(v_set(1), _mm256_cmpeq_epi8(b, c))); }
/* Loads sixteen bytes for each lane, from sets + 32 * set[0], sets + 32 * set[apart] and so on. */
static inline v v_sets(const uint8_t *sets, const uint16_t *set, int apart) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const void *)(sets + 32 * (size_t)set[0]))),
                                 _mm_loadu_si128((const void *)(sets + 32 * (size_t)set[apart])), 1);
}
static inline void v_store_zipped(uint8_t *p, v a, v b) {
  v_store(p, _mm256_unpacklo_epi8(a, b));
  v_store(p + 32, _mm256_unpackhi_epi8(a, b));
}
static inline v v_up(v a, int bits) { return _mm256_slli_epi16(a, bits); }
static inline v v_down(v a, int bits) { return _mm256_srli_epi16(a, bits); }
static inline v v_select(v mask, v a, v b) { return v_xor(b, v_and(v_xor(a, b), mask)); }
static inline v v_without(v a, v b) { return _mm256_andnot_si256(b, a); }
static inline v v_neither(v a, v b) { return _mm256_andnot_si256(v_or(a, b), v_set(-1)); }
/* Counts set bits in parts of a register; adds up to 31 such counts; and adds them to eight numbers. */
static inline v v_ones(v a) {
  const v ones = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
  return _mm256_add_epi8(v_look_up(ones, v_low(a)), v_look_up(ones, v_high(a)));
}
static inline v v_plus(v a, v b) { return _mm256_add_epi8(a, b); }
static inline void v_add_to(uint64_t *sums, v a) { v_store(sums, _mm256_add_epi64(v_load(sums), _mm256_sad_epu8(a, _mm256_setzero_si256()))); }
/* Stores the sum of each eight bytes, or of each sixteen, as a byte. */
static inline void v_store_sums(uint8_t *p, v a, int eights) {
  const v s = _mm256_sad_epu8(a, _mm256_setzero_si256());
  const __m128i two = _mm_packs_epi32(_mm256_castsi256_si128(s), _mm256_extracti128_si256(s, 1)); /* words 0, 2, 4, 6 */
  const __m128i all = _mm_packus_epi16(two, two);                                                 /* bytes 0, 2, 4, 6 */
  const uint64_t x = (uint64_t)_mm_cvtsi128_si64(all);
  if (eights) {
    const uint32_t four = (uint32_t)_pext_u64(x, 0x00FF00FF00FF00FF);
    memcpy(p, &four, sizeof four);
  } else {
    p[0] = (uint8_t)(x + (x >> 16));
    p[1] = (uint8_t)((x >> 32) + (x >> 48));
  }
}

#include "kernels/differ.inc.h"
