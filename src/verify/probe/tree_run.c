/* Evaluates a tree of additions: every node is one call of mx_mma over all probes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "verify/probe/tree.h"

const probe_tree_rule mxi_probe_tree_rules[] = {
    {MX_ACC_OUT_RNE, 0, "products rounded, every sum rounded to nearest even"},
    {MX_ACC_OUT_RNE, 1, "a product is added unrounded (fma; of two the second), every sum rounded to nearest even"},
    {MX_ACC_OUT_RZ, 0, "products rounded toward zero, every sum too"},
    {MX_ACC_OUT_RZ, 1, "a product is added unrounded (fma; of two the second), every sum rounded toward zero"},
};
const size_t mxi_probe_tree_n_rules = sizeof mxi_probe_tree_rules / sizeof *mxi_probe_tree_rules;

/* One term of a node over all probes: x times y, both f32 (f64 where d is). */
typedef struct term {
  uint8_t *x, *y; /* y NULL: 1 */
} term;

typedef struct runner {
  const probe_tree *t;
  const probe_tree_rule *rule;
  const probe_list *l;
  size_t first, n; /* probes */
  size_t width;    /* bytes of a wide number */
  const mx_format *wide;
  uint8_t **value; /* of each node and leaf, as bits of d in words of `width` as wide numbers; NULL: not yet */
  uint8_t *scratch_a, *scratch_b, *scratch_d;
  int ok;
} runner;

static void put_wide(const runner *r, uint8_t *to, size_t i, double v) {
  if (r->width == 8) {
    memcpy(to + 8 * i, &v, 8);
  } else {
    const float f = (float)v; /* exact: every type of a, b, c and d up to 32 bits is one of binary32's */
    memcpy(to + 4 * i, &f, 4);
  }
}

/* --- sums --- */

/* Both ways give d's bits; wide() makes them numbers again. */
static void widen(const runner *r, uint8_t *to, const uint8_t *d) {
  for (size_t i = 0; i < r->n; i++) put_wide(r, to, i, mx_decode(r->l->spec->d, mxi_probe_bits(d, r->l->d_bytes, i)));
}

/* An ordinary sum of two, IEEE's signs of zero included: fma(x, y, c). */
static int add_two(runner *r, uint8_t *d, const uint8_t *x, const uint8_t *y, const uint8_t *c) {
  mx_mma_model m;
  memset(&m, 0, sizeof m);
  strcpy(m.name, "probe");
  m.accum = (mx_accum){.op = MX_ACC_OP_FMA, .nan = MX_ACC_NAN_QUIET};
  m.a = m.b = m.c = m.d = r->wide;
  const mx_mma_args args = {r->n, 1, 1, 1, x, y, c, NULL, NULL};
  const mx_exec exec = {.n_threads = 1};
  return noted_status(mx_mma(d, &m, &args, &exec, NULL), r->l->lack) == MX_OK;
}

/* The exact sum of any number of terms, rounded once to d. x, y: [n][terms]. */
static int add_many(runner *r, uint8_t *d, const uint8_t *x, const uint8_t *y, size_t terms) {
  mx_mma_model m;
  memset(&m, 0, sizeof m);
  strcpy(m.name, "probe");
  m.accum = (mx_accum){.F = MX_ACC_F_EXACT, .out_round = r->rule->round, .under = MX_ACC_UNDER_KEEP, .nan = MX_ACC_NAN_QUIET};
  m.a = m.b = r->wide;
  m.c = m.d = r->l->spec->d;
  const mx_mma_args args = {r->n, 1, 1, terms, x, y, NULL, NULL, NULL};
  const mx_exec exec = {.n_threads = 1};
  return noted_status(mx_mma(d, &m, &args, &exec, NULL), r->l->lack) == MX_OK;
}

/* s + rest, where |rest| is below half a last place of s, cut to a number of d. */
static double toward_zero(const mx_format *d, double s, double rest) {
  if (!(s - s == 0) || s == 0) return s;
  if (rest != 0 && (rest < 0) != (s < 0)) s = nextafter(s, 0);
  int place = ilogb(s);
  if (place < 1 - d->bias) place = 1 - d->bias;
  place -= d->man_bits;
  const double r = ldexp(trunc(ldexp(s, -place)), place), most = mx_format_max(d);
  return fabs(r) > most ? copysign(most, s) : r;
}

static double wide_at(const runner *r, const uint8_t *from, size_t i) { return mx_decode(r->wide, mxi_probe_bits(from, r->width, i)); }

/* x times y plus c toward zero: a product of two numbers of 24 bits is a double, and so is what is lost of a sum. */
static void add_toward_zero(const runner *r, uint8_t *out, const uint8_t *x, const uint8_t *y, const uint8_t *c) {
  for (size_t i = 0; i < r->n; i++) {
    const double p = wide_at(r, x, i) * wide_at(r, y, i), a = wide_at(r, c, i), s = p + a, b = s - p, rest = (p - (s - b)) + (a - b);
    put_wide(r, out, i, toward_zero(r->l->spec->d, s, rest));
  }
}

static int is_toward_zero(const runner *r) { return r->rule->round == MX_ACC_OUT_RZ; }

static int ordinary(const runner *r) { return r->rule->round == MX_ACC_OUT_RNE && r->l->spec->d == r->wide; }

/* --- leaves --- */

static void factors(const runner *r, int k, uint8_t *x, uint8_t *y) {
  const mx_probe_spec *s = r->l->spec;
  for (size_t i = 0; i < r->n; i++) {
    put_wide(r, x, i, mx_decode(s->a, mxi_probe_code(s->a, r->l->a + (r->first + i) * r->l->a_bytes, (size_t)k)));
    put_wide(r, y, i, mx_decode(s->b, mxi_probe_code(s->b, r->l->b + (r->first + i) * r->l->b_bytes, (size_t)k)));
  }
}

static void fill(const runner *r, uint8_t *to, double v) {
  for (size_t i = 0; i < r->n; i++) put_wide(r, to, i, v);
}

/* A leaf, rounded to d. */
static void leaf(runner *r, int k, uint8_t *out) {
  const mx_probe_spec *s = r->l->spec;
  if (k == r->t->n_leaves - 1) {
    for (size_t i = 0; i < r->n; i++) put_wide(r, out, i, mx_decode(s->c, mxi_probe_code(s->c, r->l->c + (r->first + i) * r->l->c_bytes, 0)));
    return;
  }
  factors(r, k, r->scratch_a, r->scratch_b);
  if (is_toward_zero(r)) {
    fill(r, out, -0.0);
    add_toward_zero(r, out, r->scratch_a, r->scratch_b, out);
  } else if (ordinary(r)) {
    fill(r, out, -0.0);
    uint8_t *d = r->scratch_d;
    r->ok &= add_two(r, d, r->scratch_a, r->scratch_b, out);
    memcpy(out, d, r->n * r->width);
  } else {
    r->ok &= add_many(r, r->scratch_d, r->scratch_a, r->scratch_b, 1);
    widen(r, out, r->scratch_d);
  }
}

static int is_product(const runner *r, int node) { return node < r->t->n_leaves - 1; }

/* --- nodes --- */

static uint8_t *value_of(runner *r, int node) {
  if (!r->value[node] && (r->value[node] = noted(malloc(r->n * r->width + 1), r->l->lack)))
    if (node < r->t->n_leaves) leaf(r, node, r->value[node]);
  if (!r->value[node]) r->ok = 0;
  return r->value[node];
}

static void done_with(runner *r, int node) {
  free(r->value[node]);
  r->value[node] = NULL;
}

static void binary(runner *r, int node, int x, int y, uint8_t *out) {
  (void)node;
  if (is_product(r, x) && !is_product(r, y)) { /* the product second */
    const int swap = x;
    x = y, y = swap;
  }
  const uint8_t *vx = value_of(r, x);
  if (!r->ok) return;
  if (r->rule->fused && is_product(r, y)) {
    factors(r, y, r->scratch_a, r->scratch_b);
  } else {
    const uint8_t *vy = value_of(r, y);
    if (!r->ok) return;
    memcpy(r->scratch_a, vy, r->n * r->width);
    fill(r, r->scratch_b, 1);
  }
  if (is_toward_zero(r))
    add_toward_zero(r, out, r->scratch_a, r->scratch_b, vx);
  else
    r->ok &= add_two(r, out, r->scratch_a, r->scratch_b, vx);
}

/* x[i][c], y[i][c] of children c. */
static void many(runner *r, const int *child, size_t terms, uint8_t *out) {
  uint8_t *x = noted(malloc(r->n * terms * r->width + 1), r->l->lack), *y = noted(malloc(r->n * terms * r->width + 1), r->l->lack),
          *d = noted(malloc(r->n * 8 + 1), r->l->lack);
  uint8_t *fx = noted(malloc(r->n * r->width + 1), r->l->lack), *fy = noted(malloc(r->n * r->width + 1), r->l->lack);
  if (!x || !y || !d || !fx || !fy) r->ok = 0;
  for (size_t c = 0; c < terms && r->ok; c++) {
    if (r->rule->fused && is_product(r, child[c])) {
      factors(r, child[c], fx, fy);
    } else {
      const uint8_t *v = value_of(r, child[c]);
      if (!r->ok) break;
      memcpy(fx, v, r->n * r->width);
      fill(r, fy, 1);
    }
    for (size_t i = 0; i < r->n; i++) {
      memcpy(x + (i * terms + c) * r->width, fx + i * r->width, r->width);
      memcpy(y + (i * terms + c) * r->width, fy + i * r->width, r->width);
    }
  }
  if (r->ok) r->ok &= add_many(r, d, x, y, terms);
  if (r->ok) widen(r, out, d);
  /* IEEE's sum of negative zeros is a negative zero */
  for (size_t i = 0; i < r->n && r->ok; i++) {
    int negative = 1;
    for (size_t c = 0; c < terms && negative; c++) {
      float a, b;
      memcpy(&a, x + (i * terms + c) * 4, 4);
      memcpy(&b, y + (i * terms + c) * 4, 4);
      negative = (a == 0 || b == 0) && __builtin_signbit(a) != __builtin_signbit(b) && a - a == 0 && b - b == 0;
    }
    if (negative) put_wide(r, out, i, -0.0);
  }
  free(x), free(y), free(d), free(fx), free(fy);
}

static void run_chunk(runner *r) {
  const probe_tree *t = r->t;
  for (int node = 0; node < t->n_nodes && r->ok; node++) {
    const int *child = t->child + t->first[node], n = t->first[node + 1] - t->first[node], id = t->n_leaves + node;
    if (!(r->value[id] = noted(malloc(r->n * r->width + 1), r->l->lack))) r->ok = 0;
    if (!r->ok) break;
    if (n == 2 && (ordinary(r) || is_toward_zero(r)))
      binary(r, node, child[0], child[1], r->value[id]);
    else
      many(r, child, (size_t)n, r->value[id]);
    for (int c = 0; c < n; c++) done_with(r, child[c]);
  }
}

/* The number as d's bits. */
static uint64_t bits_of(const runner *r, size_t i) {
  const mx_format *d = r->l->spec->d;
  const uint8_t *v = r->value[r->t->n_leaves + r->t->n_nodes - 1];
  const uint64_t wide = mxi_probe_bits(v, r->width, i);
  if (d == r->wide) return wide;
  const double x = mx_decode(r->wide, wide);
  uint64_t code = 0;
  if (x != x) return d->nan_code;
  mxi_probe_code_of(&code, d, x);
  if (x - x != 0) code = d->inf_code | (x < 0 ? UINT64_C(1) << (d->bits - 1) : 0);
  return code;
}

size_t mxi_probe_tree_wrong(const probe_tree *t, const probe_tree_rule *rule, const probe_list *l, size_t bound, size_t *first_wrong,
                            uint64_t *expected) {
  enum { CHUNK = 2048 };
  const mx_probe_spec *s = l->spec;
  const int wide = s->d->bits == 64;
  runner r = {.t = t, .rule = rule, .l = l, .width = wide ? 8 : 4, .wide = mx_operand_format(wide ? MX_OPERAND_F64 : MX_OPERAND_F32), .ok = 1};
  size_t wrong = 0;
  if (s->scale || (wide && (rule->round != MX_ACC_OUT_RNE || !mxi_probe_tree_is_binary(t)))) return SIZE_MAX;
  if (rule->round == MX_ACC_OUT_RZ && !mxi_probe_tree_is_binary(t)) return SIZE_MAX;
  r.value = noted(calloc((size_t)(t->n_leaves + t->n_nodes), sizeof *r.value), l->lack);
  r.scratch_a = noted(malloc(CHUNK * 8), l->lack);
  r.scratch_b = noted(malloc(CHUNK * 8), l->lack);
  r.scratch_d = noted(malloc(CHUNK * 8), l->lack);
  r.ok = r.value && r.scratch_a && r.scratch_b && r.scratch_d;
  for (size_t first = 0; first < l->n && r.ok && wrong <= bound; first += CHUNK) {
    r.first = first;
    r.n = l->n - first < CHUNK ? l->n - first : CHUNK;
    run_chunk(&r);
    for (size_t i = 0; i < r.n && r.ok; i++) {
      const uint64_t want = bits_of(&r, i);
      if (!mxi_probe_differs(s->d, want, mxi_probe_bits(l->d, l->d_bytes, first + i), 0)) continue;
      if (!wrong && first_wrong) *first_wrong = first + i, *expected = want;
      wrong++;
    }
    for (int node = 0; r.value && node < t->n_leaves + t->n_nodes; node++) done_with(&r, node);
  }
  const int ok = r.ok;
  free(r.value);
  free(r.scratch_a);
  free(r.scratch_b);
  free(r.scratch_d);
  return ok ? wrong : SIZE_MAX;
}
