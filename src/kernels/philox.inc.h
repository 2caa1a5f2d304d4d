/* Computes Philox4x32-10 for many counters side by side. Part of stages.inc.h. */

enum { PHILOX_M0 = (int32_t)0xD2511F53, PHILOX_M1 = (int32_t)0xCD9E8D57, PHILOX_K0 = (int32_t)0x9E3779B9, PHILOX_K1 = (int32_t)0xBB67AE85 };

/* The keys of each round. */
typedef struct philox_keys {
  uint32_t k[10][2];
} philox_keys;

static philox_keys keys_of(uint64_t seed) {
  philox_keys keys;
  for (uint32_t i = 0; i < 10; i++) {
    keys.k[i][0] = (uint32_t)seed + i * (uint32_t)PHILOX_K0;
    keys.k[i][1] = (uint32_t)(seed >> 32) + i * (uint32_t)PHILOX_K1;
  }
  return keys;
}

#ifdef vi_mul_even
enum { GROUPS = 4, AT_ONCE = GROUPS * 2 * W }; /* groups whose chains of operations overlap */

/* The words of W / 2 counters in each group, whose upper halves are `high`: word i of a counter is in the low half of its 64 bits in c[i]. Counters are
 * low halves, too. Only these halves are multiplied, so the upper ones do not matter. In the first two rounds half of the numbers are known in advance. */
INLINE void words_of_counters(vi c[4][GROUPS], const vi counters[GROUPS], const philox_keys *keys, uint32_t high) {
  const vi m0 = vi_set(PHILOX_M0), m1 = vi_set(PHILOX_M1);
  const uint32_t(*k)[2] = keys->k;
  const uint64_t first = (uint64_t)MX_STREAM_ELEMENT * (uint32_t)PHILOX_M1;
  const uint64_t second = (uint64_t)((uint32_t)(first >> 32) ^ high ^ k[0][0]) * (uint32_t)PHILOX_M0;
  const vi x0 = vi_set((int32_t)((uint32_t)first ^ k[1][0])), x1 = vi_set((int32_t)((uint32_t)(second >> 32) ^ k[1][1]));
#pragma GCC unroll 4
  for (int g = 0; g < GROUPS; g++) {
    const vi p0 = vi_mul_even(counters[g], m0);
    c[1][g] = vi_mul_even(vi_xor(vi_high(p0), vi_set((int32_t)k[0][1])), m1);
    c[0][g] = vi_xor(vi_high(c[1][g]), x0);
    c[2][g] = vi_xor(p0, x1);
    c[3][g] = vi_set((int32_t)(uint32_t)second);
  }
#pragma GCC unroll 8
  for (int round = 2; round < 10; round++)
#pragma GCC unroll 4
    for (int g = 0; g < GROUPS; g++) {
      const vi p0 = vi_mul_even(c[0][g], m0), p1 = vi_mul_even(c[2][g], m1);
      c[0][g] = vi_xor3(vi_high(p1), c[1][g], vi_set((int32_t)k[round][0]));
      c[2][g] = vi_xor3(vi_high(p0), c[3][g], vi_set((int32_t)k[round][1]));
      c[1][g] = p1;
      c[3][g] = p0;
    }
}

INLINE void some_words(uint32_t *out, const philox_keys *keys, uint64_t block) {
  vi c[4][GROUPS], counters[GROUPS];
#pragma GCC unroll 4
  for (int g = 0; g < GROUPS; g++) counters[g] = vi_add(vi_set((int32_t)((uint32_t)block + (uint32_t)g * W / 2)), vi_counters());
  words_of_counters(c, counters, keys, (uint32_t)(block >> 32));
#pragma GCC unroll 4
  for (int g = 0; g < GROUPS; g++) vi_store_pairs(out + g * 2 * W, vi_even_odd(c[0][g], c[1][g]), vi_even_odd(c[2][g], c[3][g]));
}
#else
enum { AT_ONCE = 4 * W };

/* Each group has W counters. */
INLINE void some_words(uint32_t *out, const philox_keys *keys, uint64_t block) {
  const vi m0 = vi_set(PHILOX_M0), m1 = vi_set(PHILOX_M1);
  vi c[4] = {vi_add(vi_set((int32_t)(uint32_t)block), vi_iota()), vi_set((int32_t)(block >> 32)), vi_set(MX_STREAM_ELEMENT), vi_set(0)};
#pragma GCC unroll 10
  for (int round = 0; round < 10; round++) {
    vi h0, l0, h1, l1;
    vi_mul_wide(&h0, &l0, c[0], m0);
    vi_mul_wide(&h1, &l1, c[2], m1);
    c[0] = vi_xor(vi_xor(h1, c[1]), vi_set((int32_t)keys->k[round][0]));
    c[2] = vi_xor(vi_xor(h0, c[3]), vi_set((int32_t)keys->k[round][1]));
    c[1] = l1;
    c[3] = l0;
  }
  vi_store_four(out, c);
}
#endif

/* Draws n random words; first is a multiple of 4. */
static void random_words(uint32_t *out, uint64_t seed, uint64_t first, size_t n) {
  const philox_keys keys = keys_of(seed);
  size_t i = 0;
  for (; i < n; i += AT_ONCE) {
    const uint64_t block = (first + i) / 4;
    if ((uint32_t)block > UINT32_MAX - AT_ONCE / 4) { /* the low word of the counter would carry */
      for (size_t j = 0; j < AT_ONCE && i + j < n; j++) out[i + j] = mx_random(seed, MX_STREAM_ELEMENT, first + i + j);
    } else if (i + AT_ONCE <= n)
      some_words(out + i, &keys, block);
    else {
      uint32_t last[AT_ONCE];
      some_words(last, &keys, block);
      memcpy(out + i, last, (n - i) * sizeof *out);
    }
  }
}
