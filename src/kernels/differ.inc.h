/* Compares rows of codes over vectors of W bytes (type v) in lanes of sixteen, which the including file defines. n is a multiple of W,
 * except for single units, which go to the scalar code. */
#define INLINE static inline __attribute__((always_inline))

static size_t crowd(const uint8_t *x, const uint8_t *y, size_t n, unsigned least) {
  size_t i = 0;
  for (; i < n; i += 64) {
    unsigned same = 0;
    for (size_t k = i; k < i + 64; k += W) same += v_count_same(v_load(x + k), v_load(y + k));
    if (64 - same < least) break;
  }
  return i;
}

static const uint8_t bits[32] = {1, 2, 4, 8, 16, 32, 64, 128, [24] = 1, 2, 4, 8, 16, 32, 64, 128};

/* Bytes that are nonzero if the pair is in the set of its lane. in0 has the bits for the codes 0 to 7 of y, by the code of x; in1 those for
 * 8 to 15. */
INLINE v found_in(v in0, v in1, v a, v b) {
  const v lower = v_each_lane(bits), upper = v_each_lane(bits + 16);
  return v_or(v_and(v_look_up(in0, a), v_look_up(lower, b)), v_and(v_look_up(in1, a), v_look_up(upper, b)));
}

/* Looks up the pairs (a, b) of the lower halves and (c, d) of the upper ones: bytes are nonzero if a pair is in the set of its unit, but not
 * in the order in which they came. */
INLINE void look(v out[2], v a, v b, v c, v d, const uint8_t *sets, const uint16_t *s, int halves) {
  if (halves) {
    const v even0 = v_sets(sets, s, 2), even1 = v_sets(sets + 16, s, 2), odd0 = v_sets(sets, s + 1, 2), odd1 = v_sets(sets + 16, s + 1, 2);
    out[0] = found_in(even0, even1, v_first_halves(a, c), v_first_halves(b, d));
    out[1] = found_in(odd0, odd1, v_second_halves(a, c), v_second_halves(b, d));
  } else {
    const v in0 = v_sets(sets, s, 1), in1 = v_sets(sets + 16, s, 1);
    out[0] = found_in(in0, in1, a, b);
    out[1] = found_in(in0, in1, c, d);
  }
}

INLINE size_t fours_of(uint8_t *sums, uint8_t *low, uint8_t *high, const uint8_t *x, const uint8_t *y, size_t n, const uint8_t *sets,
                       const uint16_t *set, int halves) {
  const v zero = v_set(0);
  for (size_t i = 0; i < n; i += W) {
    const v p = v_load(x + i), q = v_load(y + i), a = v_low(p), b = v_low(q), c = v_high(p), d = v_high(q);
    v found[2];
    look(found, a, b, c, d, sets, set + (halves ? i / 8 : i / 16), halves);
    if (v_any(v_or(found[0], found[1]))) return i;
    const v l = v_add_unless_same(v_load(low + i), a, b), h = v_add_unless_same(v_load(high + i), c, d);
    const v differ = v_add_unless_same(v_add_unless_same(zero, a, b), c, d);
    v_store(low + i, l);
    v_store(high + i, h);
    v_store_sums(sums + (halves ? i / 8 : i / 16), differ, halves);
  }
  return n;
}

static size_t fours(uint8_t *sums, uint8_t *low, uint8_t *high, const uint8_t *x, const uint8_t *y, size_t n, const uint8_t *sets,
                    const uint16_t *set, unsigned unit) {
  if (unit < 8 || n % W) return mxi_differ_scalar.fours(sums, low, high, x, y, n, sets, set, unit);
  return unit == 8 ? fours_of(sums, low, high, x, y, n, sets, set, 1) : fours_of(sums, low, high, x, y, n, sets, set, 0);
}

INLINE uint64_t members_of(const uint8_t *x, const uint8_t *y, size_t n, const uint8_t *sets, const uint16_t *set, int halves) {
  const v zero = v_set(0);
  uint64_t all = 0;
  for (size_t i = 0; i < n; i += W) {
    const v p = v_load(x + i), q = v_load(y + i);
    v found[2];
    look(found, v_low(p), v_low(q), v_high(p), v_high(q), sets, set + (halves ? i / 8 : i / 16), halves);
    all += 2 * W - v_count_same(found[0], zero) - v_count_same(found[1], zero);
  }
  return all;
}

static uint64_t members(const uint8_t *x, const uint8_t *y, size_t n, const uint8_t *sets, const uint16_t *set, unsigned unit) {
  const size_t whole = unit < 8 ? 0 : n / W * W;
  const uint64_t all = unit == 8 ? members_of(x, y, whole, sets, set, 1) : members_of(x, y, whole, sets, set, 0);
  return all + mxi_differ_scalar.members(x + whole, y + whole, n - whole, sets, set + whole / unit, unit);
}

static void eights(uint8_t *sums, uint8_t *cols, const uint8_t *x, const uint8_t *y, size_t n, unsigned unit) {
  const v zero = v_set(0);
  if (n % W) {
    mxi_differ_scalar.eights(sums, cols, x, y, n, unit);
    return;
  }
  for (size_t i = 0; i < n; i += W) {
    const v p = v_load(x + i), q = v_load(y + i);
    v_store(cols + i, v_add_unless_same(v_load(cols + i), p, q));
    v_store_sums(sums + (unit == 8 ? i / 8 : i / 16), v_add_unless_same(zero, p, q), unit == 8);
  }
}

static void zip(uint8_t *pairs, const uint8_t *x, const uint8_t *y, size_t n) {
  for (size_t i = 0; i < n; i += W) {
    const v p = v_load(x + i);
    v_store_zipped(pairs + 2 * i, p, v_xor(p, v_load(y + i)));
  }
}

/* ---- counting pairs by their bits: one register has the first bits of many codes, another their second bits, and so on */

enum { GROUPS = MX_DIFFER_TALLY / (4 * W), SHARE = 8 }; /* groups of 8 * W codes, of which SHARE are counted at once */

/* Moves bit b of byte i of register k to bit k of byte i of register b. Codes change their order, in the same way for x and y. */
INLINE void turn(v r[8]) {
#pragma GCC unroll 3
  for (int s = 4; s > 0; s /= 2) {
    const v mask = v_set(s == 4 ? 0x0F : s == 2 ? 0x33 : 0x55); /* positions whose number has bit s clear */
#pragma GCC unroll 8
    for (int k = 0; k < 8; k++) {
      if (k & s) continue;
      const v p = r[k], q = r[k + s];
      r[k] = v_select(mask, p, v_up(q, s));
      r[k + s] = v_select(mask, v_down(p, s), q);
    }
  }
}

/* Masks of where two bits are 0, 1, 2 and 3. */
INLINE void four(v is[4], v bit0, v bit1) {
  is[0] = v_neither(bit0, bit1);
  is[1] = v_without(bit0, bit1);
  is[2] = v_without(bit1, bit0);
  is[3] = v_and(bit0, bit1);
}

static void tally(uint64_t (*sums)[8], const uint8_t *x, const uint8_t *y, size_t n, const uint16_t asked[16]) {
  v low[4][GROUPS], high[4][GROUPS], of_y[16][GROUPS]; /* codes of x by their lower and by their upper two bits; codes of y */
  (void)n;
  for (size_t g = 0; g < GROUPS; g += 2, x += 8 * W, y += 8 * W) {
    v p[8], q[8];
#pragma GCC unroll 8
    for (int k = 0; k < 8; k++) p[k] = v_load(x + k * W), q[k] = v_load(y + k * W);
    turn(p);
    turn(q);
#pragma GCC unroll 2
    for (size_t half = 0; half < 2; half++) { /* the lower and the upper halves of bytes */
      v l[4], h[4];
      four(l, p[4 * half], p[4 * half + 1]);
      four(h, p[4 * half + 2], p[4 * half + 3]);
#pragma GCC unroll 4
      for (int k = 0; k < 4; k++) low[k][g + half] = l[k], high[k][g + half] = h[k];
      four(l, q[4 * half], q[4 * half + 1]);
      four(h, q[4 * half + 2], q[4 * half + 3]);
#pragma GCC unroll 16
      for (int b = 0; b < 16; b++) of_y[b][g + half] = v_and(l[b & 3], h[b >> 2]);
    }
  }
  for (size_t g = 0; g < GROUPS; g += SHARE)
    for (int a = 0; a < 16; a++) {
      v of_x[SHARE];
      if (!asked[a]) continue;
#pragma GCC unroll 8
      for (size_t i = 0; i < SHARE; i++) of_x[i] = v_and(low[a & 3][g + i], high[a >> 2][g + i]);
      for (unsigned left = asked[a]; left; left &= left - 1) {
        const int b = __builtin_ctz(left);
        v sum = v_ones(v_and(of_x[0], of_y[b][g]));
#pragma GCC unroll 8
        for (size_t i = 1; i < SHARE; i++) sum = v_plus(sum, v_ones(v_and(of_x[i], of_y[b][g + i])));
        v_add_to(sums[16 * a + b], sum);
      }
    }
}

const mx_differ_kernels TABLE = {crowd, fours, members, eights, zip, tally, TALLY_MOST};
