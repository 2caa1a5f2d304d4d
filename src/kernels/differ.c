/* Compares rows of codes by scalar code. */
#include "kernels/differ.h"

static size_t crowd(const uint8_t *x, const uint8_t *y, size_t n, unsigned least) {
  size_t i = 0;
  for (; i < n; i += 64) {
    unsigned differ = 0;
    for (size_t k = i; k < i + 64; k++) differ += x[k] != y[k];
    if (differ < least) break;
  }
  return i;
}

static size_t fours(uint8_t *sums, uint8_t *low, uint8_t *high, const uint8_t *x, const uint8_t *y, size_t n, const uint8_t *sets,
                    const uint16_t *set, unsigned unit) {
  for (size_t i = 0; i < n; i += unit) {
    const uint8_t *in = sets + (size_t)MX_DIFFER_SET * set[i / unit];
    unsigned any = 0, sum = 0;
    for (size_t k = i; k < i + unit; k++) {
      const unsigned a = x[k] & 15u, b = y[k] & 15u, c = x[k] >> 4, d = y[k] >> 4;
      any |= (unsigned)in[16 * (b >> 3) + a] >> (b & 7) | (unsigned)in[16 * (d >> 3) + c] >> (d & 7);
    }
    if (any & 1) return i;
    for (size_t k = i; k < i + unit; k++) {
      const unsigned differ = x[k] ^ y[k], l = (differ & 15) != 0, h = differ > 15;
      low[k] = (uint8_t)(low[k] + l);
      high[k] = (uint8_t)(high[k] + h);
      sum += l + h;
    }
    sums[i / unit] = (uint8_t)sum;
  }
  return n;
}

static uint64_t members(const uint8_t *x, const uint8_t *y, size_t n, const uint8_t *sets, const uint16_t *set, unsigned unit) {
  uint64_t all = 0;
  for (size_t i = 0; i < n; i++) {
    const uint8_t *in = sets + (size_t)MX_DIFFER_SET * set[i / unit];
    const unsigned a = x[i] & 15u, b = y[i] & 15u, c = x[i] >> 4, d = y[i] >> 4;
    all += (in[16 * (b >> 3) + a] >> (b & 7) & 1u) + (in[16 * (d >> 3) + c] >> (d & 7) & 1u);
  }
  return all;
}

static void eights(uint8_t *sums, uint8_t *cols, const uint8_t *x, const uint8_t *y, size_t n, unsigned unit) {
  for (size_t i = 0; i < n; i += unit) {
    unsigned sum = 0;
    for (size_t k = i; k < i + unit; k++) {
      cols[k] = (uint8_t)(cols[k] + (x[k] != y[k]));
      sum += x[k] != y[k];
    }
    sums[i / unit] = (uint8_t)sum;
  }
}

static void zip(uint8_t *pairs, const uint8_t *x, const uint8_t *y, size_t n) {
  for (size_t i = 0; i < n; i++) {
    pairs[2 * i] = x[i];
    pairs[2 * i + 1] = x[i] ^ y[i];
  }
}

static void tally(uint64_t (*sums)[8], const uint8_t *x, const uint8_t *y, size_t n, const uint16_t asked[16]) {
  for (size_t i = 0; i < n; i++) {
    const unsigned a = x[i] & 15u, b = y[i] & 15u, c = x[i] >> 4, d = y[i] >> 4;
    sums[16 * a + b][0] += asked[a] >> b & 1;
    sums[16 * c + d][1] += asked[c] >> d & 1;
  }
}

const mx_differ_kernels mxi_differ_scalar = {crowd, fours, members, eights, zip, tally, 0};
