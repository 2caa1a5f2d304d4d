/* Draws random probes: exponents within a window, few terms or many, some that cancel, C among them or far off. */
#include <math.h>

#include "verify/probe/probe.h"

/* Odds of what is drawn. Kinds of probes, and of terms in them, have odds of one in two to one in eight, so that each occurs often among a few
 * thousand. These are rarer or more frequent for a reason. CODES_ONE_IN: codes without any plan, which meet unforeseen cases but seldom a place where
 * a sum is cut. CANCEL_ONE_IN: a term cancels its neighbour; if more did, nothing would be left of most sums; in PLAIN_ONE_IN probes none does.
 * SUBNORMAL_ONE_IN: factors are subnormal; with more, too few probes have products of full width. FEW_TERMS: of all probes but one in MANY_ONE_IN,
 * since in a sum of many terms a cut of one is seldom seen. */
enum { CODES_ONE_IN = 8, CANCEL_ONE_IN = 4, PLAIN_ONE_IN = 3, SUBNORMAL_ONE_IN = 8, FEW_TERMS = 6, MANY_ONE_IN = 3 };
/* Where the top of the window is, with equal odds: high twice, since most sums are cut there as their type says; anywhere; near D's lower end. */
enum { TOP_HIGH, TOP_HIGH_TOO, TOP_ANYWHERE, TOP_LOW, TOPS };
/* What C is, with equal odds: among the products twice, since it then takes part in every step of the sum. */
enum { C_AMONG, C_AMONG_TOO, C_TOWERS, C_FAR_BELOW, C_ZERO, C_UNDOES, C_KINDS };
/* How far terms lie below the top or above it, in binades: a C that towers above the products, one far below them, the top of sums near D's lower
 * end, dust beside a product. This is as far as known sums reach, and about as much again; farther, most probes would show nothing. */
enum { C_ABOVE = 30, C_BELOW = 60, UNDER_D = 30, OVER_LOW = 60, LEAST_DUST = 8, MOST_DUST = 60, MOST_DUST_OF_MANY = 30, C_DEEP = 42 };

/* Finite codes without any plan. */
static void any_codes(probe_row *r) {
  const mx_probe_spec *s = r->spec;
  const uint64_t ma = s->a->bits < 64 ? (UINT64_C(1) << s->a->bits) - 1 : UINT64_MAX,
                 mb = s->b->bits < 64 ? (UINT64_C(1) << s->b->bits) - 1 : UINT64_MAX;
  for (size_t k = 0; k < s->K; k++) {
    const uint64_t a = mxi_probe_draw64(r) & ma, b = mxi_probe_draw64(r) & mb;
    const uint64_t na = s->a->sign_bits ? a & ma >> 1 : a, nb = s->b->sign_bits ? b & mb >> 1 : b;
    if (!mx_format_is_nan(s->a, a) && !mx_format_is_nan(s->b, b) && na != s->a->inf_code && nb != s->b->inf_code)
      mxi_probe_put_codes(r, k, a, b);
  }
}

static uint64_t low_mask(const mx_format *f) { return f->bits < 64 ? (UINT64_C(1) << f->bits) - 1 : UINT64_MAX; }

void mxi_probe_undo(probe_row *r) {
  const mx_probe_spec *s = r->spec;
  const mx_encoding plain = {0};
  double sum = 0;
  for (size_t k = 0; k < s->K; k++) {
    double p = mx_decode(s->a, r->a[k] & low_mask(s->a)) * mx_decode(s->b, r->b[k] & low_mask(s->b));
    if (s->scale) {
      const size_t block = k / (size_t)s->block;
      if (r->fixed[block]) p *= mx_decode(s->scale, r->sa[block]) * mx_decode(s->scale, r->sb[block]);
    }
    sum += p;
  }
  if (!(sum - sum == 0)) return;
  const uint64_t code = mx_encode(s->c, -sum, &plain, 0), inf = s->c->inf_code | (s->c->sign_bits ? UINT64_C(1) << (s->c->bits - 1) : 0);
  if (code != s->c->inf_code && code != inf) r->c = code ^ (uint64_t)mxi_probe_below(r, 2);
}

/* Binades that the products of a probe lie in: one of these by chance. Narrow ones show carries, cancellation and ties; wide ones show where terms are cut,
 * and the widest what is lost altogether. */
static const int windows[] = {0, 1, 2, 4, 8, 12, 16, 20, 24, 28, 32, 40, 50, 70, 150};

static void one(probe_row *r, probe_list *l) {
  const mx_probe_spec *s = r->spec;
  const probe_range p = mxi_probe_products(r);
  const int K = (int)s->K, window = windows[mxi_probe_below(r, sizeof windows / sizeof *windows)], kind = mxi_probe_below(r, CODES_ONE_IN);
  const int high = imin(p.highest, imin(r->rd.highest, r->rc.highest) - 3);
  /* the top of the window: anywhere, high, or where results are subnormal */
  const int where = mxi_probe_below(r, TOPS), low = imax(p.lowest, r->rd.lowest - UNDER_D);
  const int top = where <= TOP_HIGH_TOO   ? high - mxi_probe_below(r, 6)
                  : where == TOP_ANYWHERE ? mxi_probe_between(r, low, high)
                                          : imin(high, mxi_probe_between(r, low, low + OVER_LOW));
  const int few = mxi_probe_below(r, MANY_ONE_IN) == 0 ? K : 1 + mxi_probe_below(r, imin(K, FEW_TERMS)),
            cancels = mxi_probe_below(r, PLAIN_ONE_IN) ? CANCEL_ONE_IN : 0;
  const int style = mxi_probe_below(r, PROBE_STYLES), subnormal = mxi_probe_chance(r, 1, SUBNORMAL_ONE_IN);
  int n = 0;
  mxi_probe_row_clear(r);
  if (kind == 0) {
    any_codes(r);
  } else {
    for (int i = 0; i < few; i++) {
      const int k = few == K ? i : mxi_probe_below(r, K), e = top - mxi_probe_below(r, window + 1);
      if (cancels && n && mxi_probe_chance(r, 1, cancels) && (r->a[(k + K - 1) % K] || r->b[(k + K - 1) % K])) {
        const int ok = r->ok;
        mxi_probe_put_again(r, (size_t)k, (size_t)((k + K - 1) % K), 1);
        if (ok && !r->ok) r->a[k] = r->b[k] = 0;
      } else { /* draws stand one a statement: compilers differ in the order of a call's arguments */
        const int which = subnormal ? mxi_probe_below(r, 4) : 0, styled = mxi_probe_below(r, 2) ? style : PROBE_RANDOM_BITS;
        mxi_probe_put(r, (size_t)k, mxi_probe_below(r, 2), e, styled, which);
      }
      if (!r->ok) { /* out of reach: a zero */
        r->ok = 1;
        r->a[k] = r->b[k] = 0;
      }
      n++;
    }
  }
  const int c_kind = mxi_probe_below(r, C_KINDS);
  int e = c_kind <= C_AMONG_TOO   ? top - mxi_probe_below(r, window + 1)
          : c_kind == C_TOWERS    ? top + mxi_probe_below(r, C_ABOVE)
          : c_kind == C_FAR_BELOW ? top - mxi_probe_below(r, C_BELOW)
                                  : 0;
  if (c_kind == C_UNDOES) mxi_probe_undo(r);
  if (c_kind < C_ZERO) {
    e = imax(r->rc.lowest, imin(r->rc.highest, e));
    const int c_style = mxi_probe_below(r, 3) ? PROBE_RANDOM_BITS : mxi_probe_below(r, PROBE_STYLES);
    mxi_probe_put_c_style(r, mxi_probe_below(r, 2), e, c_style);
  }
  mxi_probe_row_end(r, l, PROBE_RANDOM, window, few, kind);
}

void mxi_probe_random(probe_list *l, uint32_t stream, size_t n) {
  probe_row r;
  if (!mxi_probe_row_alloc(&r, l->spec, stream))
    l->failed = 1, shortage_of_memory(l->lack);
  else if (l->spec->d->kind == MX_KIND_INT) {
    for (size_t i = 0; i < n; i++) {
      mxi_probe_row_clear(&r);
      any_codes(&r);
      r.c = mxi_probe_draw(&r);
      if (mxi_probe_below(&r, 2)) r.c = (uint32_t)((int32_t)r.c >> mxi_probe_below(&r, 31));
      mxi_probe_row_end(&r, l, PROBE_RANDOM, 0, 0, 0);
    }
  } else
    for (size_t i = 0; i < n && !l->failed; i++) one(&r, l);
  mxi_probe_row_free(&r);
}

/* --- second opinions: where parameters hid from the probes above --- */

/* Odds of the second opinions. NEIGHBOUR_IN_4: so often of four, dust stands beside its product, where units add first; otherwise anywhere.
 * DUST_C_ONE_IN: a C lies below the dust. AGAIN_ONE_IN: the product stands there twice, so that it carries or cancels. Each is a case of its own,
 * since with all of them at once no probe would tell which one showed. */
enum { NEIGHBOUR_IN_4 = 3, DUST_C_ONE_IN = 3, AGAIN_ONE_IN = 3 };

/* A product with bits of its own and dust beside it: what is rounded first, and how deep dust is still seen. */
static void product_and_dust(probe_row *r, int K, int high) {
  const int at = mxi_probe_below(r, K - 1), other = mxi_probe_chance(r, NEIGHBOUR_IN_4, 4) ? at + 1 : mxi_probe_below(r, K),
            turn = mxi_probe_below(r, 2);
  const int e = high - mxi_probe_below(r, 6), depth = mxi_probe_between(r, LEAST_DUST, MOST_DUST),
            style = mxi_probe_below(r, 3) ? PROBE_RANDOM_BITS : PROBE_ONES;
  if (other == at) return;
  const int negative = mxi_probe_below(r, 2), dust_negative = mxi_probe_below(r, 2);
  mxi_probe_put(r, (size_t)(turn ? other : at), negative, e, style, 0);
  mxi_probe_put(r, (size_t)(turn ? at : other), dust_negative, e - depth, PROBE_POW2, 0);
  if (mxi_probe_chance(r, 1, DUST_C_ONE_IN))
    mxi_probe_put_c_style(r, mxi_probe_below(r, 2), imax(r->rc.lowest, e - depth - 4), PROBE_RANDOM_BITS);
}

/* A factor whose exponent is not that of its encoding, and C where the product's exponent says what is cut of it. */
static void subnormal_and_c(probe_row *r, int K) {
  const mx_probe_spec *s = r->spec;
  const int of_b = mxi_probe_below(r, 2), at = mxi_probe_below(r, K);
  const mx_format *f = of_b ? s->b : s->a, *g = of_b ? s->a : s->b;
  const probe_range range = of_b ? r->ra : r->rb;
  uint64_t other = 0;
  if (!f->man_bits) return;
  const uint64_t most = (UINT64_C(1) << f->man_bits) - 1, small = 1 + mxi_probe_draw(r) % most;
  const double x = ldexp(1 + mxi_probe_below(r, 2) * 0.5, mxi_probe_between(r, range.lowest, range.highest - 1));
  if (!mxi_probe_code_of(&other, g, mxi_probe_below(r, 2) && g->sign_bits ? -x : x)) return;
  mxi_probe_put_codes(r, (size_t)at, of_b ? other : small, of_b ? small : other);
  const double product = fabs(mx_decode(f, small) * mx_decode(g, other));
  if (!(product > 0)) return;
  if (mxi_probe_chance(r, 1, AGAIN_ONE_IN)) mxi_probe_put_again(r, (size_t)((at + 1) % K), (size_t)at, mxi_probe_below(r, 2));
  const int e = ilogb(product) - mxi_probe_between(r, -4, C_DEEP);
  mxi_probe_put_c_style(r, mxi_probe_below(r, 2), imax(r->rc.lowest, imin(r->rc.highest, e)),
                        mxi_probe_below(r, 2) ? PROBE_RANDOM_BITS : PROBE_ONES);
}

/* Neighbours of one sign, some of them far below: the sum has more places than its largest term, and what is left below shows the last rounding. */
static void one_sign(probe_row *r, int K, int high) {
  int count = 4 << mxi_probe_below(r, 4);
  while (count > K) count /= 2;
  const int start = count * mxi_probe_below(r, K / count), negative = mxi_probe_below(r, 2), e = high - 6 - mxi_probe_below(r, 8),
            low = 1 + mxi_probe_below(r, 2);
  for (int i = 0; i < count; i++) {
    const int deep = i < low ? mxi_probe_between(r, LEAST_DUST, MOST_DUST_OF_MANY) : mxi_probe_below(r, 2),
              style = mxi_probe_below(r, 2) ? PROBE_ONES : PROBE_RANDOM_BITS;
    mxi_probe_put(r, (size_t)(start + (i * 5 + 3) % count), negative, e - deep, style, 0);
  }
  if (mxi_probe_chance(r, 1, 2)) {
    const int c = e + mxi_probe_below(r, 4) - mxi_probe_below(r, 2) * 12;
    mxi_probe_put_c_style(r, negative, imax(r->rc.lowest, imin(r->rc.highest, c)), PROBE_RANDOM_BITS);
  }
}

void mxi_probe_second(probe_list *l, uint32_t stream, size_t n) {
  probe_row r;
  const int K = (int)l->spec->K;
  if (l->spec->d->kind == MX_KIND_INT || K < 4) return;
  if (!mxi_probe_row_alloc(&r, l->spec, stream)) l->failed = 1, shortage_of_memory(l->lack);
  for (size_t i = 0; i < n && !l->failed; i++) {
    const probe_range p = mxi_probe_products(&r);
    const int high = imin(p.highest - 1, imin(r.rd.highest, r.rc.highest) - 4), kind = (int)(i % 3);
    mxi_probe_row_clear(&r);
    if (kind == 0)
      product_and_dust(&r, K, high);
    else if (kind == 1)
      subnormal_and_c(&r, K);
    else
      one_sign(&r, K, high);
    mxi_probe_row_end(&r, l, PROBE_RANDOM, -2, kind, 0);
  }
  mxi_probe_row_free(&r);
}
