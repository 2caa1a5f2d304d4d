/* Reads parameters directly from the results of one family, before any model is tried. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/probe/fit.h"

static mx_probe_reading *add(mx_probe_fit *out, const char *what) {
  static mx_probe_reading lost;
  if (out->n_readings == MX_PROBE_READINGS) return &lost;
  mx_probe_reading *r = &out->readings[out->n_readings++];
  r->what = what;
  return r;
}

static double value(const probe_list *l, size_t i) { return mx_decode(l->spec->d, mxi_probe_bits(l->d, l->d_bytes, i)); }

enum { PLACES = 16, DEPTHS = 512, POW2_PLUS = PROBE_POW2, POW2_MINUS = 256 + PROBE_POW2, HALF_PLUS = PROBE_ONE_HALF };

/* Finds where a term below +2^e - 2^e is lost: for each set of positions, the deepest that is seen and the first that is not. */
static int depth_of(const probe_list *l, int family, int shade, int *places, int *deepest_seen, int *all_seen) {
  int votes[DEPTHS] = {0}, best = -2, seen_max = -1, gone_any = 0;
  *places = 0;
  for (int which = 0; which < PLACES; which++) {
    int last = -1, gone = DEPTHS;
    for (size_t i = 0; i < l->n; i++) {
      const int32_t *q = l->labels[i];
      if (q[0] != family || q[2] != shade || q[3] != which || q[1] < 0 || q[1] >= DEPTHS) continue;
      const double d = value(l, i);
      if (d != 0 && q[1] > last) last = q[1];
      if (d == 0 && q[1] < gone) gone = q[1];
    }
    if (last > seen_max) seen_max = last;
    if (gone == DEPTHS || gone != last + 1) continue;
    gone_any = 1;
    votes[last + 1]++;
    (*places)++;
  }
  for (int v = 0; v < DEPTHS; v++)
    if (votes[v] && (best < 0 || votes[v] > votes[best])) best = v;
  *deepest_seen = seen_max;
  *all_seen = !gone_any;
  return best < 0 ? -2 : best - 1;
}

static int read_depth(mx_probe_fit *out, const probe_list *l, int family, const char *what, const char *term) {
  int places, deepest, all;
  const int F = depth_of(l, family, POW2_PLUS, &places, &deepest, &all);
  mx_probe_reading *r = add(out, what);
  if (F >= 0) {
    snprintf(r->value, sizeof r->value, "%d", F);
    snprintf(r->evidence, sizeof r->evidence, "beside +2^e - 2^e %s is seen down to 2^(e-%d) and gone from 2^(e-%d), at %d sets of positions",
             term, F, F + 1, places);
  } else if (deepest >= 0) {
    snprintf(r->value, sizeof r->value, "over %d", deepest);
    snprintf(r->evidence, sizeof r->evidence, "beside +2^e - 2^e %s is seen down to 2^(e-%d), the deepest that the types allow here", term,
             deepest);
  } else
    out->n_readings--;
  return F;
}

static void read_align(mx_probe_fit *out, const probe_list *l, int F) {
  size_t minus = 0, minus_seen = 0, half = 0, half_seen = 0;
  if (F < 0) return;
  for (size_t i = 0; i < l->n; i++) {
    const int32_t *q = l->labels[i];
    if (q[0] != PROBE_CUT || q[3] != 0) continue;
    if (q[1] > F && q[2] == POW2_MINUS) minus++, minus_seen += value(l, i) < 0;
    if (q[1] == F + 1 && q[2] == HALF_PLUS) half++, half_seen += value(l, i) > 0;
  }
  if (!minus || !half) return;
  mx_probe_reading *r = add(out, "cut of terms");
  strcpy(r->value, minus_seen ? "down" : half_seen ? "to nearest" : "toward zero");
  snprintf(r->evidence, sizeof r->evidence, "below that place %zu of %zu negative terms leave something, %zu of %zu of 3/4 of a place do",
           minus_seen, minus, half_seen, half);
}

/* The largest number of fraction bits that results of a family have (PROBE_FAMILIES: of any family); *n: how many have some, *powers: how many
 * have none. */
static int most_bits(const probe_list *l, int family, size_t *n, size_t *powers) {
  const mx_format *f = l->spec->d;
  const uint64_t mask = (UINT64_C(1) << f->man_bits) - 1;
  int bits = 0;
  *n = *powers = 0;
  for (size_t i = 0; i < l->n; i++) {
    const uint64_t d = mxi_probe_bits(l->d, l->d_bytes, i);
    const double x = mx_decode(f, d);
    if (family != PROBE_FAMILIES && l->labels[i][0] != family) continue;
    if (!(fabs(x) >= ldexp(1, 1 - f->bias)) || isinf(x)) continue;
    ++*(d & mask ? n : powers);
    if (!(d & mask)) continue;
    const int used = f->man_bits - __builtin_ctzll(d & mask);
    if (used > bits) bits = used;
  }
  return bits;
}

static int read_bits(mx_probe_fit *out, const probe_list *l) {
  size_t n, powers;
  const int bits = most_bits(l, PROBE_FAMILIES, &n, &powers);
  mx_probe_reading *r = add(out, "fraction bits of results");
  snprintf(r->value, sizeof r->value, "%d", bits);
  snprintf(r->evidence, sizeof r->evidence, "the most of %zu results with a fraction", n);
  if (!n) snprintf(r->evidence, sizeof r->evidence, "%zu results, each a power of two", powers);
  return bits == l->spec->d->man_bits || !(n + powers) ? 0 : mxi_probe_value(bits);
}

/* If an instruction's sum is rounded before C is added as an ordinary number, products alone have as many bits as the sum, and other results have
 * more. */
static int read_alone_bits(const probe_list *l) {
  const mx_probe_spec *s = l->spec;
  size_t n, powers;
  const int bits = most_bits(l, PROBE_ALONE, &n, &powers), own = s->a->man_bits + s->b->man_bits + 1;
  return bits < own && bits < s->d->man_bits && n + powers ? mxi_probe_value(bits) : 0;
}

/* Leaves that +2^m at 0 and -2^m at j leave: a step where a group ends. */
static int read_groups(mx_probe_fit *out, const probe_list *l) {
  const int K = (int)l->spec->K;
  int *count = noted(malloc((size_t)(K + 1) * sizeof *count), l->lack), L = -2, regular = 1, first = -1, previous = -1, steps = 0;
  if (!count) return -2;
  for (int j = 0; j <= K; j++) count[j] = -1;
  for (size_t i = 0; i < l->n; i++) {
    const int32_t *q = l->labels[i];
    if (q[0] == PROBE_MASK && q[1] == 0 && q[2] <= K) count[q[2]] = (int)lrint(ldexp(value(l, i), -q[3]));
  }
  for (int j = 2; j < K; j++) {
    if (count[j] < 0 || count[j - 1] < 0) regular = 0;
    if (count[j] == count[j - 1]) continue;
    steps++;
    if (first < 0)
      first = j;
    else if (j - previous != first)
      regular = 0;
    previous = j;
  }
  if (count[1] >= 0) {
    mx_probe_reading *r = add(out, "products in a group");
    if (!steps)
      L = K;
    else if (regular)
      L = first;
    if (L > 0)
      snprintf(r->value, sizeof r->value, "%d", L);
    else
      strcpy(r->value, steps ? "irregular" : "all, or not readable");
    size_t used = (size_t)snprintf(r->evidence, sizeof r->evidence, "units left by +2^m at 0 and -2^m at j = 1, 2, ...:");
    for (int j = 1; j < K && used + 8 < sizeof r->evidence; j++)
      used += (size_t)snprintf(r->evidence + used, sizeof r->evidence - used, " %d", count[j]);
  }
  free(count);
  return L;
}

/* The smallest power of two that comes through alone. */
static int read_small(mx_probe_fit *out, const probe_list *l) {
  int smallest = 1 << 20, largest_lost = -(1 << 20);
  for (size_t i = 0; i < l->n; i++) {
    const int32_t *q = l->labels[i];
    if (q[0] != PROBE_ALONE || (q[2] != 0 && q[2] != 2)) continue;
    if (value(l, i) != 0 && q[1] < smallest) smallest = q[1];
    if (value(l, i) == 0 && q[1] > largest_lost) largest_lost = q[1];
  }
  if (smallest == 1 << 20) return -2;
  mx_probe_reading *r = add(out, "smallest product that comes through alone");
  snprintf(r->value, sizeof r->value, "2^%d", smallest);
  if (largest_lost > -(1 << 20))
    snprintf(r->evidence, sizeof r->evidence, "2^%d is gone; the smallest number of d is 2^%d", largest_lost, ilogb(mx_format_min(l->spec->d)));
  else
    snprintf(r->evidence, sizeof r->evidence, "no smaller one can be made of these types");
  return largest_lost < smallest && largest_lost > ilogb(mx_format_min(l->spec->d)) && smallest <= 0 ? -smallest : -2;
}

static void read_nan(mx_probe_fit *out, const probe_list *l) {
  const mx_format *f = l->spec->d;
  uint64_t seen[4];
  size_t n = 0, used = 0, total = 0;
  if (f->kind == MX_KIND_INT) return;
  for (size_t i = 0; i < l->n; i++) {
    const uint64_t d = mxi_probe_bits(l->d, l->d_bytes, i);
    if (!mx_format_is_nan(f, d)) continue;
    total++;
    size_t q = 0;
    while (q < n && seen[q] != d) q++;
    if (q == n && n < 4) seen[n++] = d;
  }
  for (size_t q = 0; q < n && used < sizeof out->nan_seen; q++)
    used += (size_t)snprintf(out->nan_seen + used, sizeof out->nan_seen - used, "%s0x%llX", q ? " " : "", (unsigned long long)seen[q]);
  if (!n) return;
  mx_probe_reading *r = add(out, "bits of NaN");
  snprintf(r->value, sizeof r->value, "%.39s", out->nan_seen);
  snprintf(r->evidence, sizeof r->evidence, "%zu results that are NaN", total);
}

void mxi_probe_read(probe_readings *r, mx_probe_fit *out, const probe_list *l) {
  *r = (probe_readings){-2, -2, -2, -2, -2, 0, 0};
  if (l->spec->d->kind == MX_KIND_INT) return;
  r->L = read_groups(out, l);
  r->F = read_depth(out, l, PROBE_CUT, "width of products below the largest term", "a product");
  read_align(out, l, r->F);
  r->F_c = read_depth(out, l, PROBE_CUT_C, "width of C below the largest term", "C");
  r->F_by_c = read_depth(out, l, PROBE_CUT_BY_C, "width of products below C", "a product (one of the two is C)");
  r->out_bits = read_bits(out, l);
  r->alone_bits = read_alone_bits(l);
  r->F_alone = read_small(out, l);
  read_nan(out, l);
}
