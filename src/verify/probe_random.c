/* Random probes: exponents within a window, few terms or many, some that cancel, C among them or far off. */
#include "verify/probe.h"

static int imin(int a, int b) { return a < b ? a : b; }
static int imax(int a, int b) { return a > b ? a : b; }

/* Finite codes without any plan. */
static void any_codes(probe_row *r) {
  const mx_probe_spec *s = r->spec;
  const uint64_t ma = s->a->bits < 64 ? (UINT64_C(1) << s->a->bits) - 1 : UINT64_MAX,
                 mb = s->b->bits < 64 ? (UINT64_C(1) << s->b->bits) - 1 : UINT64_MAX;
  for (size_t k = 0; k < s->K; k++) {
    const uint64_t a = probe_draw64(r) & ma, b = probe_draw64(r) & mb;
    const uint64_t na = s->a->sign_bits ? a & ma >> 1 : a, nb = s->b->sign_bits ? b & mb >> 1 : b;
    if (!mx_format_is_nan(s->a, a) && !mx_format_is_nan(s->b, b) && na != s->a->inf_code && nb != s->b->inf_code) probe_put_codes(r, k, a, b);
  }
}

static uint64_t low_mask(const mx_format *f) { return f->bits < 64 ? (UINT64_C(1) << f->bits) - 1 : UINT64_MAX; }

void probe_undo(probe_row *r) {
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
  if (code != s->c->inf_code && code != inf) r->c = code ^ (uint64_t)probe_below(r, 2);
}

static const int windows[] = {0, 1, 2, 4, 8, 12, 16, 20, 24, 28, 32, 40, 50, 70, 150};

static void one(probe_row *r, probe_list *l) {
  const mx_probe_spec *s = r->spec;
  const probe_range p = probe_products(r);
  const int K = (int)s->K, window = windows[probe_below(r, sizeof windows / sizeof *windows)], kind = probe_below(r, 8);
  const int high = imin(p.highest, imin(r->rd.highest, r->rc.highest) - 3);
  /* the top of the window: anywhere, high, or where results are subnormal */
  const int where = probe_below(r, 4), low = imax(p.lowest, r->rd.lowest - 30);
  const int top = where < 2 ? high - probe_below(r, 6) : where == 2 ? probe_between(r, low, high) : imin(high, probe_between(r, low, low + 60));
  const int few = probe_below(r, 3) == 0 ? K : 1 + probe_below(r, imin(K, 6)), cancels = probe_below(r, 3) ? 4 : 0;
  const int style = probe_below(r, PROBE_STYLES), subnormal = probe_chance(r, 1, 8);
  int n = 0;
  probe_row_clear(r);
  if (kind == 0) {
    any_codes(r);
  } else {
    for (int i = 0; i < few; i++) {
      const int k = few == K ? i : probe_below(r, K), e = top - probe_below(r, window + 1);
      if (cancels && n && probe_chance(r, 1, cancels) && (r->a[(k + K - 1) % K] || r->b[(k + K - 1) % K])) {
        const int ok = r->ok;
        probe_put_again(r, (size_t)k, (size_t)((k + K - 1) % K), 1);
        if (ok && !r->ok) r->a[k] = r->b[k] = 0;
      } else { /* draws stand one a statement: compilers differ in the order of a call's arguments */
        const int which = subnormal ? probe_below(r, 4) : 0, styled = probe_below(r, 2) ? style : PROBE_RANDOM_BITS;
        probe_put(r, (size_t)k, probe_below(r, 2), e, styled, which);
      }
      if (!r->ok) { /* out of reach: a zero */
        r->ok = 1;
        r->a[k] = r->b[k] = 0;
      }
      n++;
    }
  }
  const int c_kind = probe_below(r, 6);
  int e = c_kind < 2 ? top - probe_below(r, window + 1) : c_kind == 2 ? top + probe_below(r, 30) : c_kind == 3 ? top - probe_below(r, 60) : 0;
  if (c_kind == 5) probe_undo(r);
  if (c_kind < 4) {
    e = imax(r->rc.lowest, imin(r->rc.highest, e));
    const int c_style = probe_below(r, 3) ? PROBE_RANDOM_BITS : probe_below(r, PROBE_STYLES);
    probe_put_c_style(r, probe_below(r, 2), e, c_style);
  }
  probe_row_end(r, l, PROBE_RANDOM, window, few, kind);
}

void probe_random(probe_list *l, uint32_t stream, size_t n) {
  probe_row r;
  if (!probe_row_alloc(&r, l->spec, stream))
    l->failed = 1;
  else if (l->spec->d->kind == MX_KIND_INT) {
    for (size_t i = 0; i < n; i++) {
      probe_row_clear(&r);
      any_codes(&r);
      r.c = probe_draw(&r);
      if (probe_below(&r, 2)) r.c = (uint32_t)((int32_t)r.c >> probe_below(&r, 31));
      probe_row_end(&r, l, PROBE_RANDOM, 0, 0, 0);
    }
  } else
    for (size_t i = 0; i < n && !l->failed; i++) one(&r, l);
  probe_row_free(&r);
}
