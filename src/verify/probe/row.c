/* Builds one probe: products of known exponents at known places. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mxgold/random.h"
#include "verify/probe/probe.h"

static int is_int(const mx_format *f) { return f->kind == MX_KIND_INT; }

probe_range mxi_probe_range_of(const mx_format *f) {
  probe_range r = {ilogb(mx_format_min(f)), is_int(f) ? -f->man_bits : f->kind == MX_KIND_EXP ? -f->bias : 1 - f->bias, mx_format_emax(f)};
  return r;
}

int mxi_probe_row_alloc(probe_row *r, const mx_probe_spec *s, uint32_t stream) {
  memset(r, 0, sizeof *r);
  r->spec = s;
  r->stream = stream;
  r->n_blocks = s->scale ? (s->K + (size_t)s->block - 1) / (size_t)s->block : 1;
  r->ra = mxi_probe_range_of(s->a);
  r->rb = mxi_probe_range_of(s->b);
  r->rc = mxi_probe_range_of(s->c);
  r->rd = mxi_probe_range_of(s->d);
  if (s->scale) r->rs = mxi_probe_range_of(s->scale);
  r->a = calloc(s->K, sizeof *r->a);
  r->b = calloc(s->K, sizeof *r->b);
  r->sa = calloc(r->n_blocks, 1);
  r->sb = calloc(r->n_blocks, 1);
  r->fixed = calloc(r->n_blocks, 1);
  return r->a && r->b && r->sa && r->sb && r->fixed;
}

void mxi_probe_row_free(probe_row *r) {
  free(r->a);
  free(r->b);
  free(r->sa);
  free(r->sb);
  free(r->fixed);
}

void mxi_probe_row_clear(probe_row *r) {
  memset(r->a, 0, r->spec->K * sizeof *r->a);
  memset(r->b, 0, r->spec->K * sizeof *r->b);
  memset(r->fixed, 0, r->n_blocks);
  r->c = 0;
  r->ok = 1;
}

uint32_t mxi_probe_draw(probe_row *r) { return mx_random(r->spec->seed, r->stream, r->at++); }
int mxi_probe_below(probe_row *r, int n) { return n <= 1 ? 0 : (int)((uint64_t)mxi_probe_draw(r) * (uint64_t)n >> 32); }
uint64_t mxi_probe_draw64(probe_row *r) {
  const uint64_t high = mxi_probe_draw(r);
  return high << 32 | mxi_probe_draw(r);
}
int mxi_probe_between(probe_row *r, int lo, int hi) { return hi <= lo ? lo : lo + mxi_probe_below(r, hi - lo + 1); }
int mxi_probe_chance(probe_row *r, int in, int of) { return mxi_probe_below(r, of) < in; }

int mxi_probe_code_of(uint64_t *code, const mx_format *f, double x) {
  const mx_encoding plain = {0};
  if (x < 0 && !f->sign_bits) return 0;
  *code = mx_encode(f, x, &plain, 0);
  return mx_decode(f, *code) == x;
}

/* 2^e with the fraction that style asks for, as far as the type has one. */
static int styled(probe_row *r, uint64_t *code, const mx_format *f, int e, int style, int second) {
  if (!mxi_probe_code_of(code, f, ldexp(1, e))) return 0;
  if (f->kind != MX_KIND_FLOAT && f->kind != MX_KIND_FNUZ) return 1;
  const int below = e - (1 - f->bias), bits = below >= 0 ? f->man_bits : f->man_bits + below; /* places below the leading one */
  const uint64_t mask = bits > 0 ? (UINT64_C(1) << bits) - 1 : 0, half = bits > 0 ? UINT64_C(1) << (bits - 1) : 0;
  uint64_t fraction = 0;
  if (style == PROBE_ONE_HALF) fraction = second ? 0 : half;
  if (style == PROBE_CARRY) fraction = half;
  if (style == PROBE_ONES) fraction = mask;
  if (style == PROBE_RANDOM_BITS) fraction = mxi_probe_draw64(r) & mask;
  if (style == PROBE_LAST_BIT) fraction = second ? 0 : mask & 1;
  if ((*code | fraction) <= f->max_code) *code |= fraction;
  return 1;
}

/* Chooses scales of a block such that elements may have a product of about 2^(e - their sum): scales of 1 unless that is out of reach. */
static void fix_scales(probe_row *r, size_t block, int e, int lo, int hi) {
  int want = 0;
  const mx_format *s = r->spec->scale;
  if (e > hi) want = e - hi + mxi_probe_between(r, 0, (hi - lo) / 2);
  if (e < lo) want = e - lo - mxi_probe_between(r, 0, (hi - lo) / 2);
  if (want > 2 * r->rs.highest) want = 2 * r->rs.highest;
  if (want < 2 * r->rs.normal) want = 2 * r->rs.normal;
  int half = want >= 0 ? want / 2 : -((1 - want) / 2);
  uint64_t x = 0, y = 0;
  if (!mxi_probe_code_of(&x, s, ldexp(1, half)) || !mxi_probe_code_of(&y, s, ldexp(1, want - half))) r->ok = 0;
  r->sa[block] = (uint8_t)x;
  r->sb[block] = (uint8_t)y;
  r->fixed[block] = 1;
}

static int scale_exp(const probe_row *r, size_t block) {
  const mx_format *s = r->spec->scale;
  return ilogb(mx_decode(s, r->sa[block])) + ilogb(mx_decode(s, r->sb[block]));
}

/* How far from the middle of their range the factors' exponents are. At the middle only the product shows; farther out products that were meant to
 * be plain would get scaled or subnormal factors. */
enum { FROM_MIDDLE = 3 };

/* Exponents of a and b whose sum is e; 0 if there are none. */
static int share(probe_row *r, int *ea, int *eb, int e, probe_range a, probe_range b) {
  const int lo = a.lowest > e - b.highest ? a.lowest : e - b.highest, hi = a.highest < e - b.lowest ? a.highest : e - b.lowest;
  if (lo > hi) return 0;
  const int middle = (lo + hi) / 2, reach = (hi - lo) / 2 < FROM_MIDDLE ? (hi - lo) / 2 : FROM_MIDDLE;
  *ea = mxi_probe_between(r, middle - reach, middle + reach);
  *eb = e - *ea;
  return 1;
}

static void normal_only(probe_range *x) { x->lowest = x->normal; }
static void subnormal_only(probe_range *x) { x->highest = x->normal - 1; }

void mxi_probe_put(probe_row *r, size_t k, int negative, int e, int style, int subnormal) {
  const mx_probe_spec *s = r->spec;
  int ea, eb, t = e;
  if (!r->ok) return;
  probe_range a = r->ra, b = r->rb;
  normal_only(&a);
  normal_only(&b);
  if (s->scale) {
    const size_t block = k / (size_t)s->block;
    if (!r->fixed[block]) fix_scales(r, block, e, a.lowest + b.lowest, a.highest + b.highest);
    if (!r->ok) return;
    t = e - scale_exp(r, block);
  }
  if (subnormal & PROBE_A_SUBNORMAL) a = r->ra, subnormal_only(&a);
  if (subnormal & PROBE_B_SUBNORMAL) b = r->rb, subnormal_only(&b);
  if (!share(r, &ea, &eb, t, a, b) && (subnormal || !share(r, &ea, &eb, t, r->ra, r->rb))) {
    r->ok = 0;
    return;
  }
  r->ok = styled(r, &r->a[k], s->a, ea, style, 0) && styled(r, &r->b[k], s->b, eb, style, 1);
  if (!r->ok || !negative) return;
  const int on_b = !s->a->sign_bits || (s->b->sign_bits && mxi_probe_chance(r, 1, 2));
  const mx_format *f = on_b ? s->b : s->a;
  uint64_t *code = on_b ? &r->b[k] : &r->a[k];
  r->ok = mxi_probe_code_of(code, f, -mx_decode(f, *code));
}

void mxi_probe_put_again(probe_row *r, size_t to, size_t k, int negate) {
  const mx_probe_spec *s = r->spec;
  if (!r->ok) return;
  if (s->scale && to / (size_t)s->block != k / (size_t)s->block) {
    const size_t x = to / (size_t)s->block, y = k / (size_t)s->block;
    if (!r->fixed[x]) {
      r->sa[x] = r->sa[y];
      r->sb[x] = r->sb[y];
      r->fixed[x] = 1;
    } else if (r->sa[x] != r->sa[y] || r->sb[x] != r->sb[y])
      r->ok = 0;
  }
  r->a[to] = r->a[k];
  r->b[to] = r->b[k];
  if (negate && r->ok) {
    if (s->a->sign_bits)
      r->ok = mxi_probe_code_of(&r->a[to], s->a, -mx_decode(s->a, r->a[k]));
    else
      r->ok = mxi_probe_code_of(&r->b[to], s->b, -mx_decode(s->b, r->b[k]));
  }
}

void mxi_probe_put_c(probe_row *r, int negative, int e, uint64_t fraction) {
  const mx_format *c = r->spec->c;
  double x = ldexp(1, e) + ldexp((double)fraction, e - c->man_bits);
  if (r->ok && !mxi_probe_code_of(&r->c, c, negative ? -x : x)) r->ok = 0;
}

void mxi_probe_put_c_style(probe_row *r, int negative, int e, int style) {
  const mx_format *c = r->spec->c;
  if (!r->ok) return;
  if (is_int(c)) {
    mxi_probe_put_c(r, negative, e, 0);
    return;
  }
  r->ok = styled(r, &r->c, c, e, style == PROBE_ONE_HALF ? PROBE_CARRY : style, 0);
  if (r->ok && negative) r->ok = mxi_probe_code_of(&r->c, c, -mx_decode(c, r->c));
}

void mxi_probe_put_codes(probe_row *r, size_t k, uint64_t a, uint64_t b) {
  r->a[k] = a;
  r->b[k] = b;
}

void mxi_probe_put_zero(probe_row *r, size_t k, int negative, int e, int swap) {
  const mx_probe_spec *s = r->spec;
  uint64_t *zero = swap ? &r->b[k] : &r->a[k], *other = swap ? &r->a[k] : &r->b[k];
  const mx_format *fz = swap ? s->b : s->a, *fo = swap ? s->a : s->b;
  if (!r->ok) return;
  *zero = negative && fz->sign_bits && fz->kind == MX_KIND_FLOAT ? UINT64_C(1) << (fz->bits - 1) : 0;
  if (!mxi_probe_code_of(other, fo, ldexp(1, e))) r->ok = 0;
}

void mxi_probe_store(uint8_t *row, const mx_format *f, size_t k, uint64_t code) {
  if (f->bits <= 4) {
    row[k / 2] = (uint8_t)(row[k / 2] | (code & 15) << (k % 2 * 4));
    return;
  }
  const size_t size = mx_mma_bytes(f, 1);
  if (f->bits == 19) code <<= 13; /* tf32, xf32: the upper bits of a word */
  for (size_t i = 0; i < size; i++) row[k * size + i] = (uint8_t)(code >> 8 * i);
}

int mxi_probe_row_end(probe_row *r, probe_list *l, int family, int x, int y, int z) {
  const mx_probe_spec *s = r->spec;
  if (!r->ok) return 0;
  const size_t i = mxi_probe_list_add(l, (int32_t[MX_PROBE_LABELS]){family, x, y, z});
  if (i == SIZE_MAX) return 0;
  for (size_t k = 0; k < s->K; k++) {
    mxi_probe_store(l->a + i * l->a_bytes, s->a, k, r->a[k]);
    mxi_probe_store(l->b + i * l->b_bytes, s->b, k, r->b[k]);
  }
  mxi_probe_store(l->c + i * l->c_bytes, s->c, 0, r->c);
  for (size_t block = 0; s->scale && block < r->n_blocks; block++) {
    uint64_t one = 0;
    if (!r->fixed[block]) mxi_probe_code_of(&one, s->scale, 1);
    l->scale_a[i * l->s_bytes + block] = r->fixed[block] ? r->sa[block] : (uint8_t)one;
    l->scale_b[i * l->s_bytes + block] = r->fixed[block] ? r->sb[block] : (uint8_t)one;
  }
  return 1;
}

probe_range mxi_probe_products(const probe_row *r) {
  probe_range p = {r->ra.lowest + r->rb.lowest, r->ra.normal + r->rb.normal, r->ra.highest + r->rb.highest};
  if (r->spec->scale) {
    p.lowest += 2 * r->rs.normal;
    p.normal += 2 * r->rs.normal;
    p.highest += 2 * r->rs.highest;
  }
  return p;
}
