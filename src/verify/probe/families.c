/* Makes the designed probes: each family moves one quantity past the place where one parameter shows. */
#include <stdlib.h>

#include "verify/probe/probe.h"

typedef struct maker {
  probe_list *l;
  probe_row *r;
  probe_range p;   /* exponents of products */
  int high;        /* exponent of large products: nothing overflows */
  int K, man, bot; /* fraction bits of D; exponent of its smallest number */
  int floor;       /* exponent of D's smallest normal number */
  int density;     /* 0: few, for a second opinion; 1: all */
} maker;

/* How deep below the leading term other terms go, in binades: past the last place of every known sum, with room for carries. Less would not show
 * where such a sum is cut; more makes batches longer and shows nothing. The numbers are for a D of more than LONG_D fraction bits; for the last
 * rounding, also at the places of narrower types; and for a C that nothing reaches, in steps that grow from SHORT_STEPS_TO on. */
enum {
  LONG_D = 30,
  DEEPEST = 46,
  DEEPEST_OF_LONG = 64,
  DEEPEST_DUST = 44,
  DEEPEST_DUST_NARROW = 14,
  DEEPEST_C = 420,
  SHORT_STEPS_TO = 80,
  SHORT_STEP = 3,
  LONG_STEP = 17
};
/* How far the units of masks lie below the large terms if types allow it, and the least distance at which they are used. */
enum { MASK_UNIT = 56, LEAST_MASK_UNIT = 20 };
/* Up to this K all pairs of places of a mask are tried; up to that one runs of units start everywhere and have up to 2^LONGEST_RUN units. */
enum { EVERY_MASK = 128, EVERY_START = 16, LONGEST_RUN = 6 };
/* If products span more binades than WIDE, only some exponents are used, except near the lower end of D. */
enum { WIDE = 90, NEAR_ABOVE = 40, NEAR_BELOW = 50, MOST_NEIGHBOURS = 8 };
/* How many probes a family has; a first batch adds those that a second opinion does without (MORE_...). With fewer, a parameter is missed in some
 * units; with more, the device takes longer. For C alone: the exponents at which its range is walked. */
enum {
  C_STEPS = 30,
  C_STEPS_DENSE = 90,
  UNDONE = 16,
  MORE_UNDONE = 16,
  LOW_ENDS = 250,
  MORE_LOW_ENDS = 450,
  SUBNORMAL_SETS = 5,
  MORE_SUBNORMAL_SETS = 2
};
/* Odds of the draws that make a probe. Of a C alone, one factor in ZERO_ONE_IN is a zero: another kind of that probe has only zeros, and if half
 * of them were zero, few would tell which zero counted. Where two products end at D's lower end, the first is a power of two and the second cancels
 * it, except for one in OTHERWISE_ONE_IN; what is left then has the wanted exponent. */
enum { ZERO_ONE_IN = 3, OTHERWISE_ONE_IN = 3 };
/* Under block scales one probe in SPARSE_ONE_IN has factors at only one place in SPARSE_OF: single products show a scale that is read for another
 * block, full rows show how scaled products add. */
enum { SPARSE_ONE_IN = 3, SPARSE_OF = 4 };
enum { ZEROS = 40, OVERFLOWS = 260, SCALINGS = 600, INTEGERS = 1500 };

/* --- where the terms stand --- */

typedef struct triple {
  int p, q, r;
} triple;

enum { TRIPLES = 11 };

/* Where terms stand: neighbours; even places; odd places; the last; the first two of each four; the rest of a group of 4, 8, 16; the ends;
 * anywhere. */
static triple triple_at(const maker *m, int which) {
  const int K = m->K;
  const triple t[TRIPLES] = {{0, 1, 2}, {0, 2, 4},     {1, 3, 5}, {K - 3, K - 2, K - 1},        {0, 1, 4}, {0, 1, K - 1}, {0, K / 2, K - 1},
                             {0, 2, 3}, {K - 1, 0, 1}, {2, 1, 0}, {K / 2, K / 2 + 1, K / 2 - 1}};
  triple x = t[which];
  if (which >= TRIPLES - 2 && m->K > 4) return x;
  x.p = imax(0, imin(x.p, K - 1)), x.q = imax(0, imin(x.q, K - 1)), x.r = imax(0, imin(x.r, K - 1));
  return x;
}

static int distinct(triple t) { return t.p != t.q && t.q != t.r && t.p != t.r; }

static triple random_triple(maker *m) {
  triple t;
  do {
    t.p = mxi_probe_below(m->r, m->K);
    t.q = mxi_probe_below(m->r, m->K);
    t.r = mxi_probe_below(m->r, m->K);
  } while (m->K > 2 && !distinct(t));
  return t;
}

/* Styles of the term that is cut, as (negative, style). */
typedef struct shade {
  int negative, style;
} shade;
static const shade shades[] = {{0, PROBE_POW2}, {1, PROBE_POW2}, {0, PROBE_ONE_HALF}, {1, PROBE_ONE_HALF}, {0, PROBE_ONES}, {1, PROBE_CARRY}};
enum { SHADES = sizeof shades / sizeof *shades };

static int packed(int a, int b) { return a * 256 + b; }

/* --- one product, C alone --- */

static void alone(maker *m) {
  const int about = m->bot; /* every exponent near the lower end of D, each third elsewhere */
  for (int e = m->p.lowest; e <= m->p.highest; e++) {
    const int close = e < about + NEAR_ABOVE + m->man && e > about - NEAR_BELOW;
    if (m->p.highest - m->p.lowest > WIDE && !close && (e & 3) && e < m->high - 4) continue;
    for (int style = 0; style < 4; style++) {
      const int at = mxi_probe_below(m->r, m->K), negative = style & 1 ? mxi_probe_below(m->r, 2) : style == 2;
      mxi_probe_row_clear(m->r);
      mxi_probe_put(m->r, (size_t)at, negative, e, style == 3 ? PROBE_ONES : style == 1 ? PROBE_RANDOM_BITS : PROBE_POW2, 0);
      mxi_probe_row_end(m->r, m->l, PROBE_ALONE, e, style, at);
    }
    for (int count = 2; count <= MOST_NEIGHBOURS && count <= m->K; count *= 2) { /* neighbours, and two at the ends */
      if (m->p.highest - m->p.lowest > WIDE && !close && mxi_probe_below(m->r, 2)) continue;
      mxi_probe_row_clear(m->r);
      const int at = mxi_probe_below(m->r, m->K - count + 1), negative = mxi_probe_below(m->r, 2);
      for (int i = 0; i < count; i++)
        mxi_probe_put(m->r, (size_t)(count == 2 && i ? m->K - 1 - at : at + i), negative, e, i & 1 ? PROBE_ONES : 0, 0);
      mxi_probe_row_end(m->r, m->l, PROBE_FEW, e, count, at);
    }
  }
}

static void alone_c(maker *m) {
  const probe_range c = m->r->rc;
  const int span = c.highest - c.lowest, step = imax(1, span / (m->density ? C_STEPS_DENSE : C_STEPS));
  for (int e = c.lowest; e <= c.highest; e += e < c.normal ? 1 : step) {
    for (int style = 0; style < PROBE_STYLES; style++) {
      const int kind = mxi_probe_below(m->r, 4), negative = mxi_probe_below(m->r, 2);
      mxi_probe_row_clear(m->r);
      mxi_probe_put_c_style(m->r, negative, e, style);
      for (int k = 0; kind && k < m->K; k++)
        if (kind == 1 || mxi_probe_chance(m->r, 1, ZERO_ONE_IN)) {
          const int swap = mxi_probe_below(m->r, 2);
          const probe_range o = swap ? m->r->ra : m->r->rb;
          const int e_zero = kind == 1 ? 0 : mxi_probe_between(m->r, o.lowest, kind == 2 ? o.highest : 0);
          mxi_probe_put_zero(m->r, (size_t)k, mxi_probe_below(m->r, 2), e_zero, swap);
        }
      mxi_probe_row_end(m->r, m->l, PROBE_ALONE_C, e, style, kind);
    }
  }
}

/* --- order and groups --- */

static void mask(maker *m, int i, int j, int large, int unit) {
  mxi_probe_row_clear(m->r);
  for (int k = 0; k <= m->K; k++) {
    const int e = k == i || k == j ? large : unit, negative = k == j;
    if (k == m->K)
      mxi_probe_put_c(m->r, negative, e, 0);
    else
      mxi_probe_put(m->r, (size_t)k, negative, e, PROBE_POW2, 0);
  }
  mxi_probe_row_end(m->r, m->l, PROBE_MASK, i, j, unit);
}

static void masks(maker *m) {
  const int large = m->high - (m->r->rd.highest - m->high < 8 ? 2 : 0);
  /* Units as far below as types allow, up to MASK_UNIT places; each count of them exact. */
  const int unit = imax(imax(m->p.normal, large - MASK_UNIT), imax(m->bot, m->r->rc.lowest));
  int log_k = 0;
  while (1 << log_k <= m->K) log_k++;
  if (large - unit < m->man + 2 + log_k && large - unit < LEAST_MASK_UNIT) return;
  const int all = m->density && m->K <= EVERY_MASK;
  for (int i = 0; i <= m->K; i++)
    for (int j = i + 1; j <= m->K; j++)
      if (all || i == 0 || j == m->K || j == i + 1 || mxi_probe_chance(m->r, 1, m->K)) mask(m, i, j, large, unit);
}

/* C large; a run of n = 2^h units, each 2^-h of a last place of C: only a group that has them all sees a whole one. */
static void runs(maker *m) {
  const int precisions[] = {m->man, 13, m->man - 3};
  for (int kind = 0; kind < 3; kind++) {
    const int man = precisions[kind];
    if (man > m->man || (kind && man == m->man)) continue;
    for (int h = 1; h <= LONGEST_RUN && 1 << h <= m->K; h++)
      for (int start = 0; start + (1 << h) <= m->K; start += h == 1 || m->K <= EVERY_START ? 1 : 1 << (h - 1)) {
        const int unit = (m->p.normal + m->p.highest) / 2, e = unit + man + h;
        if (e > m->r->rd.highest - 2 || e > m->r->rc.highest - 2) continue;
        for (int odd = 0; odd < (kind ? 1 : 2); odd++) {
          mxi_probe_row_clear(m->r);
          mxi_probe_put_c(m->r, 0, e, odd ? UINT64_C(1) << (m->r->spec->c->man_bits > man ? m->r->spec->c->man_bits - man : 0) : 0);
          for (int i = 0; i < 1 << h; i++) mxi_probe_put(m->r, (size_t)(start + i), 0, unit, PROBE_POW2, 0);
          mxi_probe_row_end(m->r, m->l, PROBE_RUN, start, 1 << h, packed(man, h));
        }
      }
  }
}

/* --- widths --- */

/* +-2^e cancel; what is left of 2^(e-depth) shows where terms are cut, and how. */
static void cut(maker *m, triple t, int e, int depth, shade s, int label, int subnormal) {
  static const int both[] = {PROBE_POW2, PROBE_CARRY, PROBE_ONES};
  const int style = depth & 1 ? PROBE_POW2 : both[mxi_probe_below(m->r, 3)];
  mxi_probe_row_clear(m->r);
  mxi_probe_put(m->r, (size_t)t.p, 0, e, style, subnormal & 3);
  mxi_probe_put_again(m->r, (size_t)t.q, (size_t)t.p, 1);
  mxi_probe_put(m->r, (size_t)t.r, s.negative, e - depth, s.style, subnormal >> 2);
  mxi_probe_row_end(m->r, m->l, subnormal ? PROBE_SUBNORMAL : PROBE_CUT, depth, subnormal ? subnormal : packed(s.negative, s.style), label);
}

static void cut_c(maker *m, triple t, int e, int depth, shade s, int label) {
  mxi_probe_row_clear(m->r);
  mxi_probe_put(m->r, (size_t)t.p, 0, e, depth & 1 ? PROBE_POW2 : PROBE_CARRY, 0);
  mxi_probe_put_again(m->r, (size_t)t.q, (size_t)t.p, 1);
  mxi_probe_put_c_style(m->r, s.negative, e - depth, s.style);
  mxi_probe_row_end(m->r, m->l, PROBE_CUT_C, depth, packed(s.negative, s.style), label);
}

static void cut_by_c(maker *m, triple t, int e, int depth, shade s, int label) {
  mxi_probe_row_clear(m->r);
  mxi_probe_put(m->r, (size_t)t.p, 1, e, PROBE_POW2, 0);
  mxi_probe_put_c(m->r, 0, e, 0);
  mxi_probe_put(m->r, (size_t)t.r, s.negative, e - depth, s.style, 0);
  mxi_probe_row_end(m->r, m->l, PROBE_CUT_BY_C, depth, packed(s.negative, s.style), label);
}

static void cuts(maker *m) {
  const int deepest = m->man > LONG_D ? DEEPEST_OF_LONG : DEEPEST, reach = m->high - m->p.lowest;
  for (int which = 0; which <= TRIPLES; which++) {
    for (int depth = 0; depth <= deepest; depth++) {
      const triple t = which < TRIPLES ? triple_at(m, which) : random_triple(m);
      if (!distinct(t) || t.r < 0) continue;
      for (int s = 0; s < SHADES; s++) {
        if (which && s != which % SHADES && s != (which + 3) % SHADES) continue;
        /* as high as types allow, or low enough that the cut falls in reach */
        const int e = which % 3 == 2 ? m->high - mxi_probe_below(m->r, imin(8, reach / 4 + 1)) : m->high;
        if (depth <= reach) cut(m, t, e, depth, shades[s], which, 0);
        cut_c(m, t, e, depth, shades[s], which);
        if (depth <= reach) cut_by_c(m, t, e, depth, shades[s], which);
      }
    }
    /* a C far below */
    for (int depth = deepest + 1; depth < DEEPEST_C && which < 6; depth += depth < SHORT_STEPS_TO ? SHORT_STEP : LONG_STEP)
      if (distinct(triple_at(m, which))) cut_c(m, triple_at(m, which), m->high, depth, shades[which % SHADES], which);
  }
  /* a C below a product that nothing undoes; more lies at the lower end of the range */
  for (int depth = 0; depth <= deepest; depth++)
    for (int s = 0; s < SHADES; s++) {
      const int e = imin(m->high, imax(m->p.normal, m->floor) + mxi_probe_below(m->r, 40));
      triple t = random_triple(m);
      if (m->K < 3) break;
      if (s & 1) cut_c(m, t, e, depth, shades[s], 100);
      if (!(s & 1)) cut(m, t, e, depth, shades[s], 100, 0);
    }
}

/* Shows the last bits of C: a product cancels its leading bit, beside +2^e - 2^e or alone. */
static void low_bits(maker *m) {
  const int reach = m->high - m->p.lowest;
  if (m->K < 4) return;
  for (int depth = 0; depth <= DEEPEST && depth <= reach; depth++)
    for (int n = 0; n < 6; n++) {
      const triple t = n < 3 ? triple_at(m, n) : random_triple(m);
      const int negative = n & 1, style = n % 3 == 0 ? PROBE_LAST_BIT : n % 3 == 1 ? PROBE_ONES : PROBE_RANDOM_BITS;
      int r = t.r;
      if (!distinct(t)) continue;
      mxi_probe_row_clear(m->r);
      if (n < 5) {
        mxi_probe_put(m->r, (size_t)t.p, 0, m->high, PROBE_POW2, 0);
        mxi_probe_put_again(m->r, (size_t)t.q, (size_t)t.p, 1);
      }
      mxi_probe_put_c_style(m->r, negative, m->high - depth, style);
      mxi_probe_put(m->r, (size_t)r, !negative, m->high - depth, PROBE_POW2, 0);
      mxi_probe_row_end(m->r, m->l, PROBE_LOW, depth, packed(negative, style), n);
    }
}

/* Neighbours of one sign add up to the negative of C, so that all that is left is what was cut of either. The sum's exponent is that of a product,
 * and C's is as many places higher as the number of products carries: nothing else shows a sum that is cut below its own last place. */
static void undone(maker *m) {
  for (int h = 1; 1 << h <= m->K; h++)
    for (int n = 0; n < UNDONE + MORE_UNDONE * m->density; n++) {
      const int count = 1 << h, start = n & 1 ? 0 : count * mxi_probe_below(m->r, m->K / count), negative = mxi_probe_below(m->r, 2);
      const int window = n % 3, high = imin(m->high - h, m->p.highest - 1),
                e = n % 4 ? high : high - mxi_probe_below(m->r, imax(1, (high - m->p.normal) / 2));
      mxi_probe_row_clear(m->r);
      for (int i = 0; i < count; i++)
        mxi_probe_put(m->r, (size_t)(start + i), negative, e - mxi_probe_below(m->r, window + 1), i ? PROBE_RANDOM_BITS : PROBE_ONES, 0);
      if (n % 8 == 7) mxi_probe_put(m->r, (size_t)start, !negative, e - mxi_probe_below(m->r, 24), PROBE_ONES, 0);
      mxi_probe_undo(m->r);
      mxi_probe_row_end(m->r, m->l, PROBE_UNDONE, e, count, start);
    }
}

/* Two products at the lower end of D and nothing else: is an exponent below some floor taken as the floor? */
static void low_end(maker *m) {
  for (int n = 0; n < LOW_ENDS + MORE_LOW_ENDS * m->density; n++) {
    const triple t = n & 1 ? random_triple(m) : triple_at(m, 0);
    const int e = m->bot + mxi_probe_between(m->r, -3, 24), depth = mxi_probe_below(m->r, 36), negative = mxi_probe_below(m->r, 2);
    if (!distinct(t)) continue;
    mxi_probe_row_clear(m->r);
    mxi_probe_put(m->r, (size_t)t.p, negative, e, mxi_probe_below(m->r, OTHERWISE_ONE_IN) ? PROBE_POW2 : PROBE_RANDOM_BITS, 0);
    const int style = mxi_probe_below(m->r, 2) ? PROBE_POW2 : PROBE_ONES;
    mxi_probe_put(m->r, (size_t)t.q, mxi_probe_below(m->r, OTHERWISE_ONE_IN) ? !negative : negative, e - depth, style, 0);
    if (n % 4 == 3) {
      const int below = mxi_probe_below(m->r, 36);
      mxi_probe_put(m->r, (size_t)t.r, mxi_probe_below(m->r, 2), e - below, PROBE_POW2, 0);
    }
    mxi_probe_row_end(m->r, m->l, PROBE_LOW_END, e, depth, n & 3);
  }
}

/* Subnormal factors: does alignment use the exponent of the encoding or that of the number? */
static void subnormals(maker *m) {
  const int a_has = m->r->ra.lowest < m->r->ra.normal, b_has = m->r->rb.lowest < m->r->rb.normal;
  if (!a_has && !b_has) return;
  for (int which = 0; which < SUBNORMAL_SETS + MORE_SUBNORMAL_SETS * m->density; which++)
    for (int depth = -8; depth <= DEEPEST; depth++) {
      static const int kinds[] = {1, 2, 3, 1 << 2, 2 << 2, 3 << 2, 1 | 2 << 2, 3 | 3 << 2};
      const int subnormal = kinds[mxi_probe_below(m->r, 8)];
      int hi = m->high;
      if (subnormal & 1) hi = m->r->ra.normal - 1 + (subnormal & 2 ? m->r->rb.normal - 1 : m->r->rb.highest);
      if ((subnormal & 3) == 2) hi = m->r->rb.normal - 1 + m->r->ra.highest;
      if (hi > m->high) hi = m->high;
      const triple t = which < SUBNORMAL_SETS ? triple_at(m, which) : random_triple(m);
      if (!distinct(t)) continue;
      const shade s = shades[mxi_probe_below(m->r, SHADES)];
      cut(m, t, hi - mxi_probe_below(m->r, 3), depth, s, which, subnormal);
    }
}

/* --- the result --- */

static void sticky(maker *m) {
  const int precisions[] = {m->man, 13, 10, 7, m->man - 1, m->man + 1};
  for (int kind = 0; kind < 6; kind++) {
    const int man = precisions[kind];
    if (kind && man == m->man) continue;
    for (int depth = 0; depth <= DEEPEST_DUST; depth++)
      for (int style = 0; style < 8; style++) {
        if (kind > 1 && depth > DEEPEST_DUST_NARROW) continue;
        const int by_c = style & 1, negative = style >> 1 & 1, dust_negative = style >> 2 & 1;
        const triple t = style & 1 ? triple_at(m, mxi_probe_below(m->r, TRIPLES - 1)) : random_triple(m);
        if (!distinct(t)) continue;
        /* E: the large number; half its last place man + 1 below; dust `depth` further down (0: none) */
        int E = by_c ? imin(m->p.lowest + man + 1 + depth + mxi_probe_below(m->r, 3), m->r->rd.highest - 2) : m->high;
        if (by_c) E = imax(E, imin(m->p.normal + m->man + 10, m->r->rd.highest - 2));
        mxi_probe_row_clear(m->r);
        if (by_c)
          mxi_probe_put_c_style(m->r, negative, E, mxi_probe_below(m->r, 2) ? PROBE_POW2 : PROBE_LAST_BIT);
        else
          mxi_probe_put(m->r, (size_t)t.p, negative, E, PROBE_POW2, 0);
        mxi_probe_put(m->r, (size_t)t.q, negative, E - man - 1, PROBE_POW2, 0);
        if (depth) mxi_probe_put(m->r, (size_t)t.r, dust_negative, E - man - 1 - depth, PROBE_POW2, 0);
        mxi_probe_row_end(m->r, m->l, PROBE_STICKY, man, depth, style);
      }
  }
}

static void two(maker *m) {
  for (int which = 0; which < 6; which++)
    for (int depth = 0; depth <= DEEPEST_DUST; depth++)
      for (int s = 0; s < SHADES; s++) {
        if (which && s != which % SHADES && s != (which + 3) % SHADES) continue;
        const triple t = which < 4 ? triple_at(m, which) : random_triple(m);
        const int e = which & 1 ? m->high : m->high - mxi_probe_below(m->r, imax(1, m->high - m->p.normal - depth));
        if (!distinct(t)) continue;
        mxi_probe_row_clear(m->r);
        if (which == 5)
          mxi_probe_put_c_style(m->r, mxi_probe_below(m->r, 2), e, PROBE_RANDOM_BITS);
        else
          mxi_probe_put(m->r, (size_t)t.p, mxi_probe_below(m->r, 2), e, s & 1 ? PROBE_ONES : PROBE_POW2, 0);
        mxi_probe_put(m->r, (size_t)t.r, shades[s].negative, e - depth, shades[s].style, 0);
        if (depth & 1) mxi_probe_put(m->r, (size_t)t.q, mxi_probe_below(m->r, 2), e - depth, PROBE_ONES, 0);
        mxi_probe_row_end(m->r, m->l, PROBE_TWO, depth, packed(shades[s].negative, shades[s].style), which);
      }
}

/* --- zeros, the ends of the range --- */

static void zeros(maker *m) {
  for (int swap = 0; swap < 2; swap++) {
    const probe_range o = swap ? m->r->ra : m->r->rb;
    for (int i = 0; i < 5; i++) {
      const int big = i == 0 ? o.highest : i == 1 ? 0 : i == 2 ? o.lowest : mxi_probe_between(m->r, o.lowest, o.highest);
      if (big < o.lowest || big > o.highest) continue;
      for (int n = 0; n < ZEROS; n++) {
        const int by_c = n & 1, z = mxi_probe_below(m->r, m->K), at = (z + 1 + mxi_probe_below(m->r, m->K - 1)) % m->K;
        const int lo = by_c ? m->r->rc.lowest : m->p.lowest, e = n < 24 ? lo + n : lo + mxi_probe_below(m->r, imax(1, -lo + 8));
        mxi_probe_row_clear(m->r);
        mxi_probe_put_zero(m->r, (size_t)z, mxi_probe_below(m->r, 2), big, swap);
        const int style = mxi_probe_below(m->r, PROBE_STYLES), negative = mxi_probe_below(m->r, 2);
        if (by_c)
          mxi_probe_put_c_style(m->r, negative, e, style);
        else
          mxi_probe_put(m->r, (size_t)at, negative, e, style, 0);
        mxi_probe_row_end(m->r, m->l, PROBE_ZERO, big, e, by_c);
      }
    }
  }
}

static void overflow(maker *m) {
  const int top = m->r->rd.highest;
  for (int n = 0; n < OVERFLOWS; n++) {
    const int kind = n % 8, negative = mxi_probe_below(m->r, 2), count = 1 + mxi_probe_below(m->r, imin(m->K, 8)),
              step = mxi_probe_below(m->r, 3);
    const int e = kind < 3 ? top - step : kind == 3 ? m->p.highest : kind == 4 ? top + 1 : top - m->man - 3 + mxi_probe_below(m->r, 4);
    mxi_probe_row_clear(m->r);
    for (int i = 0; i < count; i++)
      mxi_probe_put(m->r, (size_t)((i * 3 + n) % m->K), kind == 2 || kind == 3 ? i & 1 : negative, e, mxi_probe_below(m->r, PROBE_STYLES), 0);
    if (kind != 1)
      mxi_probe_put_c_style(m->r, kind == 2 ? !negative : negative, imin(top, m->r->rc.highest) - (kind == 6),
                            kind > 4 ? PROBE_ONES : mxi_probe_below(m->r, 4));
    mxi_probe_row_end(m->r, m->l, PROBE_OVERFLOW, e, kind, count);
  }
}

/* Codes out of the ordinary. */
enum { PLAIN_ONE, PLUS_ZERO, MINUS_ZERO, PLUS_INF, MINUS_INF, A_NAN, ANOTHER_NAN, LARGEST, SPECIALS };

static int special_code(uint64_t *code, const mx_format *f, int which) {
  const uint64_t sign = f->sign_bits && f->bits < 65 ? UINT64_C(1) << (f->bits - 1) : 0;
  switch (which) {
  case PLUS_ZERO:
    *code = 0;
    return f->kind != MX_KIND_EXP;
  case MINUS_ZERO:
    *code = sign;
    return f->kind == MX_KIND_FLOAT && sign;
  case PLUS_INF:
  case MINUS_INF:
    *code = f->inf_code | (which == MINUS_INF ? sign : 0);
    return f->inf_code != MX_NO_CODE;
  case A_NAN:
    *code = f->nan_first;
    return f->nan_first != MX_NO_CODE;
  case ANOTHER_NAN:
    *code = f->kind == MX_KIND_FNUZ ? f->nan_first : f->nan_last | sign;
    return f->nan_first != MX_NO_CODE;
  case LARGEST:
    *code = f->max_code | sign;
    return 1;
  default:
    return mxi_probe_code_of(code, f, 1);
  }
}

static void specials(maker *m) {
  const mx_probe_spec *s = m->r->spec;
  for (int x = 0; x < SPECIALS; x++)
    for (int y = 0; y < SPECIALS; y++)
      for (int z = 0; z < SPECIALS; z++) {
        const int at = mxi_probe_below(m->r, m->K), second = mxi_probe_below(m->r, m->K);
        uint64_t a = 0, b = 0, c = 0;
        if (!special_code(&a, s->a, x) || !special_code(&b, s->b, y) || !special_code(&c, s->c, z)) continue;
        mxi_probe_row_clear(m->r);
        mxi_probe_put_codes(m->r, (size_t)at, a, b);
        m->r->c = c;
        if (second != at && (x + y + z) % 3 == 0) { /* a second product: Inf again, with some sign */
          uint64_t one, inf;
          if (special_code(&one, s->b, PLAIN_ONE) && special_code(&inf, s->a, mxi_probe_below(m->r, 2) ? PLUS_INF : MINUS_INF))
            mxi_probe_put_codes(m->r, (size_t)second, inf, one);
        }
        mxi_probe_row_end(m->r, m->l, PROBE_SPECIAL, x, y, z);
      }
}

/* --- scales, integers --- */

static void scales(maker *m) {
  const mx_format *s = m->r->spec->scale;
  if (!s) return;
  for (int n = 0; n < SCALINGS; n++) {
    mxi_probe_row_clear(m->r);
    const int kind = n % 6;
    for (size_t block = 0; block < m->r->n_blocks; block++) {
      uint64_t one = 0;
      mxi_probe_code_of(&one, s, 1);
      const int any = 1 << s->bits;
      m->r->sa[block] = (uint8_t)(kind < 2 ? (int)one + mxi_probe_between(m->r, -12, 12) : kind < 5 ? mxi_probe_below(m->r, any) : (int)one);
      m->r->sb[block] = (uint8_t)(kind < 2    ? (int)one + mxi_probe_between(m->r, -12, 12)
                                  : kind == 5 ? mxi_probe_below(m->r, any)
                                  : kind == 4 ? any - 1 - m->r->sa[block]
                                              : mxi_probe_below(m->r, any));
      m->r->fixed[block] = 1;
    }
    const int sparse = mxi_probe_below(m->r, SPARSE_ONE_IN) ? 1 : SPARSE_OF;
    for (int k = 0; k < m->K; k++) {
      if (mxi_probe_below(m->r, sparse)) continue;
      const uint64_t a = mxi_probe_draw(m->r) & ((UINT64_C(1) << m->r->spec->a->bits) - 1),
                     b = mxi_probe_draw(m->r) & ((UINT64_C(1) << m->r->spec->b->bits) - 1);
      if (!mx_format_is_nan(m->r->spec->a, a) && !mx_format_is_nan(m->r->spec->b, b) && (a & 0x7F) != m->r->spec->a->inf_code &&
          (b & 0x7F) != m->r->spec->b->inf_code)
        mxi_probe_put_codes(m->r, (size_t)k, a, b);
    }
    if (n % 3) {
      const int e = mxi_probe_between(m->r, -30, 30);
      mxi_probe_put_c_style(m->r, mxi_probe_below(m->r, 2), e, PROBE_RANDOM_BITS);
    }
    mxi_probe_row_end(m->r, m->l, PROBE_SCALE, kind, 0, 0);
  }
}

static void integers(maker *m) {
  const mx_probe_spec *s = m->r->spec;
  const uint64_t any_a = (UINT64_C(1) << s->a->bits) - 1, any_b = (UINT64_C(1) << s->b->bits) - 1;
  for (int n = 0; n < INTEGERS; n++) {
    const int kind = n % 5;
    const uint64_t far_a = s->a->sign_bits ? UINT64_C(1) << (s->a->bits - 1) : any_a,
                   far_b = s->b->sign_bits ? UINT64_C(1) << (s->b->bits - 1) : any_b;
    mxi_probe_row_clear(m->r);
    for (int k = 0; k < m->K; k++) {
      uint64_t a = mxi_probe_draw(m->r) & any_a, b = mxi_probe_draw(m->r) & any_b;
      if (kind == 1) a = far_a, b = far_b;
      if (kind == 2) a = k < m->K / 2 ? far_a : a >> 2, b = k < m->K / 2 ? far_b : b >> 1;
      if (kind == 3) a = k & 1 ? far_a : far_a - 1, b = far_b;
      mxi_probe_put_codes(m->r, (size_t)k, a, b);
    }
    const int64_t reach = (int64_t)m->K << (s->a->bits + s->b->bits - 2);
    const int64_t off = (int64_t)(mxi_probe_draw(m->r) % (uint64_t)(2 * reach)) - reach;
    m->r->c = kind == 4 ? mxi_probe_draw(m->r) : (uint32_t)((n & 8 ? INT64_C(0x7FFFFFFF) : -INT64_C(0x80000000)) + off);
    mxi_probe_row_end(m->r, m->l, PROBE_INTEGER, kind, 0, 0);
  }
}

void mxi_probe_families(probe_list *l, uint32_t stream, int density) {
  const mx_probe_spec *s = l->spec;
  probe_row r;
  if (!mxi_probe_row_alloc(&r, s, stream)) {
    l->failed = 1, shortage_of_memory(l->lack);
    mxi_probe_row_free(&r);
    return;
  }
  maker m = {.l = l, .r = &r, .p = mxi_probe_products(&r), .K = (int)s->K, .density = density};
  if (s->d->kind == MX_KIND_INT) {
    integers(&m);
  } else {
    m.man = s->d->man_bits;
    m.floor = r.rd.normal;
    m.bot = r.rd.lowest;
    m.high = imin(m.p.highest - 1, imin(r.rd.highest, r.rc.highest) - 4);
    alone(&m);
    alone_c(&m);
    masks(&m);
    runs(&m);
    cuts(&m);
    low_bits(&m);
    undone(&m);
    low_end(&m);
    subnormals(&m);
    sticky(&m);
    two(&m);
    zeros(&m);
    overflow(&m);
    specials(&m);
    scales(&m);
  }
  mxi_probe_row_free(&r);
}
