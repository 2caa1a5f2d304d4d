/* Defines the vocabulary of bytes.inc.h in SSE registers, for AVX2 and AVX-512, which use their wider registers only for four codes in three
 * bytes. */
#ifndef MX_KERNELS_BYTES_X86_H
#define MX_KERNELS_BYTES_X86_H

#include <immintrin.h>

#define q __m128i

static inline q q_load(const void *p) { return _mm_loadu_si128(p); }
static inline void q_store(void *p, q a) { _mm_storeu_si128(p, a); }
static inline q q_set(int x) { return _mm_set1_epi8((char)x); }
static inline q q_and(q a, q b) { return _mm_and_si128(a, b); }
static inline q q_or(q a, q b) { return _mm_or_si128(a, b); }
static inline q q_shift_left_4(q a) { return _mm_andnot_si128(_mm_set1_epi8(15), _mm_slli_epi16(a, 4)); }
static inline q q_shift_right_4(q a) { return _mm_and_si128(_mm_srli_epi16(a, 4), _mm_set1_epi8(15)); }
/* Packs thirty-two codes into sixteen bytes. */
static inline q q_pairs(const uint8_t *codes, int high_first) {
  const q w = _mm_set1_epi16(high_first ? 0x0110 : 0x1001), low = _mm_set1_epi8(15);
  const q a = _mm_maddubs_epi16(_mm_and_si128(q_load(codes), low), w), b = _mm_maddubs_epi16(_mm_and_si128(q_load(codes + 16), low), w);
  return _mm_packus_epi16(a, b);
}
/* Stores a[0], b[0], a[1], b[1] and so on. */
static inline void q_store_zipped(uint8_t *p, q a, q b) {
  q_store(p, _mm_unpacklo_epi8(a, b));
  q_store(p + 16, _mm_unpackhi_epi8(a, b));
}
static inline q q_look_up(q table, q index) { return _mm_shuffle_epi8(table, index); }
/* Load or store eight bytes at each of two places. */
static inline q q_load_two(const void *a, const void *b) { return _mm_unpacklo_epi64(_mm_loadl_epi64(a), _mm_loadl_epi64(b)); }
static inline void q_store_two(void *a, void *b, q v) {
  _mm_storel_epi64(a, v);
  _mm_storel_epi64(b, _mm_unpackhi_epi64(v, v));
}
/* Transposes a square of 4 x 4 dwords. */
static inline void q_transpose(q s[4]) {
  const q a = _mm_unpacklo_epi32(s[0], s[1]), b = _mm_unpackhi_epi32(s[0], s[1]), c = _mm_unpacklo_epi32(s[2], s[3]),
          d = _mm_unpackhi_epi32(s[2], s[3]);
  s[0] = _mm_unpacklo_epi64(a, c);
  s[1] = _mm_unpackhi_epi64(a, c);
  s[2] = _mm_unpacklo_epi64(b, d);
  s[3] = _mm_unpackhi_epi64(b, d);
}

#endif
