/* Finds the nearest codes, ties to even, in saturating formats of up to eight bits, for sixty-four values at a time. Included after
 * vectors_avx512.h. */
#ifndef MX_KERNELS_PLAIN_AVX512_H
#define MX_KERNELS_PLAIN_AVX512_H

typedef struct byte_way {
  __m512 most, step; /* the largest value; 2^(23 - man_bits) */
  __m512i least, exponent, codes;
  __m128i up, sign;
  __m512i offset, sign_bit;
} byte_way;

/* For a format with man_bits > 0 mantissa bits, whose smallest normal number has the bits min_normal, whose sign is to_byte bits below the
 * top of a byte, and whose largest value is most. */
static inline byte_way byte_way_of(int man_bits, int32_t min_normal, int to_byte, float most) {
  const int up = 23 - man_bits;
  byte_way w;
  w.most = vf_set(most);
  w.step = vi_float(vi_set((127 + up) << 23));
  w.least = vi_set(min_normal);
  w.exponent = vi_set(0x7F800000);
  w.up = _mm_cvtsi32_si128(up);
  w.sign = _mm_cvtsi32_si128(to_byte);
  w.offset = _mm512_set1_epi8((char)(min_normal >> up));
  w.sign_bit = _mm512_set1_epi8((char)(0x80 >> to_byte));
  /* Takes the low bytes of two vectors in the order in which packs leave them: lane i holds elements 4i.. of each. */
  w.codes = _mm512_castsi256_si512(_mm256_setr_epi8(0, 4, 8, 12, 64, 68, 72, 76, 16, 20, 24, 28, 80, 84, 88, 92, 32, 36, 40, 44, 96, 100, 104,
                                                    108, 48, 52, 56, 60, 112, 116, 120, 124));
  return w;
}

/* The low byte is the code plus an offset: in a sum whose last place is one step, the exponent field stands above the steps, and it is even. */
static inline __attribute__((always_inline)) __m512i low_code(__m512 y, const byte_way *w) {
  const __m512 a = _mm512_range_ps(y, w->most, 10); /* the smaller magnitude, without its sign */
  const __m512i e = _mm512_and_si512(vi_max(vf_bits(a), w->least), w->exponent);
  return vf_bits(vf_fma(vi_float(_mm512_or_si512(e, _mm512_srl_epi32(e, w->up))), w->step, a));
}

/* Joins the low bytes c with the signs of y into codes, in order. */
static inline __attribute__((always_inline)) __m512i merged(const __m512i c[4], const __m512 y[4], const byte_way *w) {
  const __m256i ab = _mm512_castsi512_si256(_mm512_permutex2var_epi8(c[0], w->codes, c[1])),
                cd = _mm512_castsi512_si256(_mm512_permutex2var_epi8(c[2], w->codes, c[3]));
  /* in the order in which packs would leave them: eight of ab and eight of cd in turn */
  const __m512i all =
      _mm512_permutex2var_epi64(_mm512_castsi256_si512(ab), _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11), _mm512_castsi256_si512(cd));
  const __m512i first = _mm512_packs_epi32(vf_bits(y[0]), vf_bits(y[1])), last = _mm512_packs_epi32(vf_bits(y[2]), vf_bits(y[3]));
  const __m512i signs = _mm512_srl_epi16(_mm512_packs_epi16(first, last), w->sign);
  const __m512i code = _mm512_ternarylogic_epi64(_mm512_sub_epi8(all, w->offset), signs, w->sign_bit, 0xF8);
  return _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), code);
}

#endif
