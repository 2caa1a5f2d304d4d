/* The kernels of differ.h over vectors of W bytes (type v) in lanes of sixteen, which the including file defines. n is a multiple of W but for units
 * that are alone: those go to the scalar code. */
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

/* Nonzero bytes where the pair is in the set of its lane. in[0]: bits of the codes 0 to 7 of y, by the code of x; in[1]: 8 to 15. */
INLINE v found_in(v in0, v in1, v a, v b) {
  const v lower = v_each_lane(bits), upper = v_each_lane(bits + 16);
  return v_or(v_and(v_look_up(in0, a), v_look_up(lower, b)), v_and(v_look_up(in1, a), v_look_up(upper, b)));
}

/* Pairs (a, b) and (c, d) of the lower and the upper halves: nonzero where one is in its unit's set, in another order of bytes than they came in. */
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

INLINE size_t fours_of(uint8_t *pairs, uint8_t *sums, uint8_t *low, uint8_t *high, const uint8_t *x, const uint8_t *y, size_t n,
                       const uint8_t *sets, const uint16_t *set, int halves) {
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
    v_store_zipped(pairs + 2 * i, p, v_xor(p, q));
    v_store_sums(sums + (halves ? i / 8 : i / 16), differ, halves);
  }
  return n;
}

static size_t fours(uint8_t *pairs, uint8_t *sums, uint8_t *low, uint8_t *high, const uint8_t *x, const uint8_t *y, size_t n,
                    const uint8_t *sets, const uint16_t *set, unsigned unit) {
  if (unit < 8 || n % W) return mx_differ_scalar.fours(pairs, sums, low, high, x, y, n, sets, set, unit);
  return unit == 8 ? fours_of(pairs, sums, low, high, x, y, n, sets, set, 1) : fours_of(pairs, sums, low, high, x, y, n, sets, set, 0);
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
  return all + mx_differ_scalar.members(x + whole, y + whole, n - whole, sets, set + whole / unit, unit);
}

static void eights(uint8_t *pairs, uint8_t *sums, uint8_t *cols, const uint8_t *x, const uint8_t *y, size_t n, unsigned unit) {
  const v zero = v_set(0);
  if (n % W) {
    mx_differ_scalar.eights(pairs, sums, cols, x, y, n, unit);
    return;
  }
  for (size_t i = 0; i < n; i += W) {
    const v p = v_load(x + i), q = v_load(y + i);
    v_store(cols + i, v_add_unless_same(v_load(cols + i), p, q));
    v_store_zipped(pairs + 2 * i, p, v_xor(p, q));
    v_store_sums(sums + (unit == 8 ? i / 8 : i / 16), v_add_unless_same(zero, p, q), unit == 8);
  }
}

const mx_differ_kernels TABLE = {crowd, fours, members, eights};
