/* Computes the fused sum one group at a time: align, cut, sum, join C, round once. docs/reference/SPEC.md section 4. */
#include "internal.h"
#include "mxgold/isa.h"

enum { MMA_RUN = 1 << 8 };

/* The largest exponent and the cut sum of some terms; exp is at or below MMA_NO_EXP_SUM if no term takes part. */
typedef struct partial {
  __int128 sum; /* 64 bits would be enough without P, whose sums may be far above their exponents */
  int exp;
} partial;

static int taking_part(int exp) { return exp > MMA_NO_EXP_SUM; }

static int raise_to_floor(const mma_plan *plan, int exp) { return taking_part(exp) && exp < plan->floor ? plan->floor : exp; }

static const int cut_mode[] = {[MX_ACC_CUT_RD] = MX_ACC_ALIGN_RD, [MX_ACC_CUT_RZ] = MX_ACC_ALIGN_RZ, [MX_ACC_CUT_RNE] = MX_ACC_ALIGN_RNE};

/* A group: n products of a row of each operand. */
typedef struct group {
  const mma_plan *plan;
  const int32_t *sig_a, *sig_b, *exp_a, *exp_b;
  const uint8_t *cls_a, *cls_b;
  const mma_panel *a, *b; /* for P: the scales of rows i and j from element k on */
  size_t i, j, k, n;
  int live; /* 1: some product may take part */
} group;

static int64_t product(const group *g, size_t q) { return (int64_t)g->sig_a[q] * g->sig_b[q]; }

/* Under P scales are kept separate from elements: the significand and the exponent of the product of the two scales of product q. */
static int64_t scale_product(const group *g, size_t q, int *exp) {
  size_t at = (g->k + q) / g->plan->block, ia = g->i * g->a->n_blocks + at, jb = g->j * g->b->n_blocks + at;
  *exp = g->a->scale_exp[ia] + g->b->scale_exp[jb];
  return (int64_t)g->a->scale_sig[ia] * g->b->scale_sig[jb];
}

/* Product q with its scales, uncut: its value is the result times two to the power *exp. */
static int64_t whole_product(const group *g, size_t q, int *exp) {
  const mma_plan *plan = g->plan;
  int64_t p = product(g, q);
  *exp = g->exp_a[q] + g->exp_b[q] - plan->frac;
  if (p && plan->x.P && plan->block) {
    int scale_exp;
    p *= scale_product(g, q, &scale_exp);
    *exp += scale_exp - plan->scale_frac;
  }
  return p;
}

/* --- Inf and NaN --- */

/* The class of the whole sum: MMA_NAN, or MMA_INF with its sign, or 0. */
static int special_of(const group *g, mma_num c, int *negative) {
  int inf[2] = {0, 0};
  if (c.cls & MMA_NAN) return MMA_NAN;
  if (c.cls & MMA_INF) inf[c.sig < 0] = 1;
  for (size_t q = 0; q < g->n; q++) {
    int either = g->cls_a[q] | g->cls_b[q];
    if (either & MMA_NAN || (either & MMA_INF && either & MMA_ZERO)) return MMA_NAN;
    if (either & MMA_INF) inf[(g->sig_a[q] ^ g->sig_b[q]) < 0] = 1;
  }
  *negative = inf[1];
  return inf[0] && inf[1] ? MMA_NAN : inf[0] || inf[1] ? MMA_INF : 0;
}

/* Handles finite products of 2^128 or more for models in which they count as Inf. */
static int huge_of(const group *g, int *negative) {
  int inf[2] = {0, 0};
  for (size_t q = 0; q < g->n; q++) {
    int exp;
    int64_t p = whole_product(g, q, &exp);
    if (!p) continue;
    int top = 63 - __builtin_clzll((uint64_t)(p < 0 ? -p : p)) + exp;
    if (top >= 128) inf[p < 0] = 1;
  }
  *negative = inf[1];
  return inf[0] && inf[1] ? MMA_NAN : inf[0] || inf[1] ? MMA_INF : 0;
}

/* --- finite sums --- */

/* The sum of the cut products first, first + step and so on in units of 2^(exp - F); down = exp + frac - F. Callers pass a constant for
 * mode. */
static inline __attribute__((always_inline)) __int128 cut_products(const group *g, size_t first, size_t step, int down, const int mode) {
  __int128 all = 0;
  for (size_t q = first; q < g->n;) { /* 2^8 terms below 2^54 (40 places, and integers of 8 bits) fit into 64 bits */
    int64_t sum = 0;
    for (size_t end = g->n - q > MMA_RUN ? q + MMA_RUN : g->n; q < end; q += step)
      sum += mma_cut(product(g, q), down - g->exp_a[q] - g->exp_b[q], mode);
    all += sum;
  }
  return all;
}

/* The products first, first + step and so on, and C (unless its exponent is MMA_NO_EXP), aligned to the largest exponent. */
static partial align_one_by_one(const group *g, size_t first, size_t step, mma_num c) {
  const mma_plan *plan = g->plan;
  partial p = {0, c.exp};
  for (size_t q = first; q < g->n; q += step) {
    int exp = g->exp_a[q] + g->exp_b[q];
    if (exp > p.exp) p.exp = exp;
  }
  if (!taking_part(p.exp)) return p;
  p.exp = raise_to_floor(plan, p.exp);
  const int down = p.exp + plan->frac - plan->x.F;
  if (plan->x.align == MX_ACC_ALIGN_RZ)
    p.sum = cut_products(g, first, step, down, MX_ACC_ALIGN_RZ);
  else if (plan->x.align == MX_ACC_ALIGN_RD)
    p.sum = cut_products(g, first, step, down, MX_ACC_ALIGN_RD);
  else
    p.sum = cut_products(g, first, step, down, MX_ACC_ALIGN_RNE);
  return p;
}

#if defined(__x86_64__)
int mxi_mma_vectors(uint32_t isa_off) { return (mx_isa_usable(isa_off) & MX_ISA_AVX512) != 0; }

/* The same with vectors. */
static partial align_vectors(const group *g, size_t first, size_t step, mma_num c) {
  const mma_plan *plan = g->plan;
  const int which = step == 1 ? MMA_TERMS_ALL : first ? MMA_TERMS_ODD : MMA_TERMS_EVEN;
  mma_terms t = {g->sig_a, g->sig_b, g->exp_a, g->exp_b, g->n};
  partial p = {0, mxi_mma_terms_top_avx512(&t, which)};
  if (c.exp > p.exp) p.exp = c.exp;
  if (!taking_part(p.exp)) return p;
  p.exp = raise_to_floor(plan, p.exp);
  for (size_t q = 0; q < g->n; q += MMA_RUN) {
    t = (mma_terms){g->sig_a + q, g->sig_b + q, g->exp_a + q, g->exp_b + q, g->n - q < MMA_RUN ? g->n - q : MMA_RUN};
    p.sum += mxi_mma_terms_sum_avx512(&t, which, p.exp + plan->frac - plan->x.F, plan->x.align);
  }
  return p;
}
#else
int mxi_mma_vectors(uint32_t isa_off) { return (void)isa_off, 0; }
static partial align_vectors(const group *g, size_t first, size_t step, mma_num c) { return align_one_by_one(g, first, step, c); }
#endif

enum { MMA_VECTOR_LEAST = 6 }; /* with fewer elements, one at a time is as fast */

static partial align_products(const group *g, size_t first, size_t step, mma_num c) {
  const mma_plan *plan = g->plan;
  partial p = {0, c.exp};
  if (!g->live)
    p.exp = taking_part(c.exp) ? raise_to_floor(plan, c.exp) : c.exp;
  else
    p = plan->vectors && g->n >= MMA_VECTOR_LEAST ? align_vectors(g, first, step, c) : align_one_by_one(g, first, step, c);
  if (taking_part(p.exp) && taking_part(c.exp)) p.sum += mma_cut(c.sig, p.exp + plan->man - plan->x.F - c.exp, plan->x.align);
  return p;
}

/* The exact sum of n products of elements; the lowest exponent of such a product fixes its unit. */
static __int128 presum(const group *g, size_t first, size_t n, int lowest) {
  __int128 sum = 0;
  for (size_t q = first; q < first + n; q++) {
    int64_t p = product(g, q);
    if (p) sum += (__int128)p * ((__int128)1 << (g->exp_a[q] + g->exp_b[q] - lowest));
  }
  return sum;
}

/* The smallest exponent of an operand's numbers. */
static int lowest_of(const mx_format *f, int via) { return via == MX_ACC_VIA_F16 ? -14 : f->kind == MX_KIND_INT ? 0 : 1 - f->bias; }

static partial align_presums(const group *g, mma_num c) {
  const mma_plan *plan = g->plan;
  size_t P = (size_t)plan->x.P;
  int lowest = lowest_of(plan->a.type, plan->x.via) + lowest_of(plan->b.type, plan->x.via);
  partial p = {0, c.exp};
  for (int pass = 0; pass < 2; pass++) { /* first exponents, then terms */
    for (size_t first = 0; first < g->n; first += P) {
      size_t n = g->n - first < P ? g->n - first : P;
      int exp = 0;
      int64_t scale = 1;
      if (plan->block) scale = scale_product(g, first, &exp);
      __int128 sum = presum(g, first, n, lowest) * scale;
      if (!sum && plan->x.zero == MX_ACC_ZERO_SKIP) exp = MMA_NO_EXP;
      if (pass == 0) {
        if (exp > p.exp) p.exp = exp;
      } else if (sum)
        p.sum += mxi_mma_cut_wide(sum, p.exp + plan->frac + plan->scale_frac - lowest - plan->x.F - exp, plan->x.align);
    }
    if (pass == 0) {
      if (!taking_part(p.exp)) return p;
      p.exp = raise_to_floor(plan, p.exp);
    }
  }
  if (taking_part(c.exp)) p.sum += mma_cut(c.sig, p.exp + plan->man - plan->x.F - c.exp, plan->x.align);
  return p;
}

static const mma_num nothing = {0, MMA_NO_EXP, MMA_ZERO};

static partial align_group(const group *g, mma_num c) { return g->plan->x.P ? align_presums(g, c) : align_products(g, 0, 1, c); }

/* Even and odd products, each aligned to their own largest exponent, and then to each other. */
static partial align_split(const group *g) {
  const mma_plan *plan = g->plan;
  if (plan->x.split == MX_ACC_SPLIT_NONE) return align_group(g, nothing);
  partial even = align_products(g, 0, 2, nothing), odd = align_products(g, 1, 2, nothing);
  if (!taking_part(even.exp)) return odd;
  if (!taking_part(odd.exp)) return even;
  int exp = even.exp > odd.exp ? even.exp : odd.exp, mode = cut_mode[plan->x.join_cut];
  return (partial){mxi_mma_cut_wide(even.sum, exp - even.exp, mode) + mxi_mma_cut_wide(odd.sum, exp - odd.exp, mode), exp};
}

/* join=after: the group's sum and C, each cut to its own width below the larger exponent. */
static uint64_t join_after(const group *g, mma_num c) {
  const mma_plan *plan = g->plan;
  const mx_accum *x = &plan->x;
  partial s = align_split(g);
  int exp = c.exp > s.exp ? c.exp : s.exp, mode = cut_mode[x->join_cut];
  __int128 sum = 0, cc = 0;
  if (!taking_part(exp)) return 0;
  if (taking_part(s.exp)) sum = mxi_mma_cut_wide(s.sum, x->F - x->sum_bits + exp - s.exp, mode);
  if (taking_part(c.exp) && exp - c.exp <= plan->c_drop) cc = mma_cut(c.sig, plan->man - x->c_bits + exp - c.exp, mode);
  int bits = x->sum_bits > x->c_bits ? x->sum_bits : x->c_bits;
  __int128 both = mxi_mma_cut_wide(sum, x->sum_bits - bits, mode) + mxi_mma_cut_wide(cc, x->c_bits - bits, mode);
  return mxi_mma_round_wide(plan, both, exp - bits, x->out_round);
}

/* F=exact: every product and C in one wide number. */
static uint64_t sum_exact(const group *g, mma_num c) {
  const mma_plan *plan = g->plan;
  mma_wide w = {{0}};
  for (size_t q = 0; q < g->n; q++) {
    int exp;
    int64_t p = whole_product(g, q, &exp);
    if (p) mxi_mma_wide_add(&w, p, exp);
  }
  if (c.sig) mxi_mma_wide_add(&w, c.sig, c.exp - plan->man);
  int exp;
  int64_t top = mxi_mma_wide_top(&w, &exp);
  return mxi_mma_round(plan, top, exp, plan->x.out_round);
}

static uint64_t one_group(const group *g, int check, mma_acc acc) {
  const mma_plan *plan = g->plan;
  mma_num c = nothing;
  int negative = 0, cls = 0;
  if (acc.some) {
    c = mxi_mma_split(plan->model->d, acc.bits);
    if (c.cls & MMA_ZERO) c.exp = plan->zero_exp;
  }
  if (check || (c.cls & (MMA_INF | MMA_NAN))) cls = special_of(g, c, &negative);
  if (!cls && plan->may_be_huge) cls = huge_of(g, &negative);
  if (cls) return cls & MMA_NAN ? mxi_mma_nan(plan) : mxi_mma_inf(plan, negative);
  if (plan->x.F == MX_ACC_F_EXACT) return sum_exact(g, c);
  if (plan->x.join == MX_ACC_JOIN_AFTER) return join_after(g, c);
  partial p = align_group(g, c);
  return taking_part(p.exp) ? mxi_mma_round_wide(plan, p.sum, p.exp - plan->x.F, plan->x.out_round) : 0;
}

/* Whether any of the elements k .. k+n-1 may be nonzero in both rows. If zeros have no exponent of their own, a zero takes no part in the
 * alignment. */
static int is_live(uint64_t both, int shift, size_t k, size_t n) {
  const size_t first = k >> shift, last = (k + n - 1) >> shift;
  return (both >> first & (last - first > 62 ? UINT64_MAX : (UINT64_C(2) << (last - first)) - 1)) != 0;
}

mma_acc mxi_mma_fused(const mma_plan *plan, const mma_panel *a, size_t i, const mma_panel *b, size_t j, mma_acc acc) {
  size_t K = a->K, L = plan->x.L ? (size_t)plan->x.L : plan->k;
  int check = a->special[i] | b->special[j];
  const uint64_t live = a->live && b->live ? a->live[i] & b->live[j] : UINT64_MAX;
  for (size_t start = 0; start < K; start += plan->k) { /* for each instruction */
    size_t end = K - start < plan->k ? K : start + plan->k;
    mma_acc sum = plan->x.join == MX_ACC_JOIN_ADD ? (mma_acc){0, 0} : acc;
    for (size_t k = start; k < end; k += L) { /* for each group */
      size_t n = end - k < L ? end - k : L, ak = i * K + k, bk = j * K + k;
      group g = {
          plan, a->sig + ak, b->sig + bk, a->exp + ak, b->exp + bk, a->cls + ak, b->cls + bk,
          a,    b,           i,           j,           k,           n,           live == UINT64_MAX || is_live(live, a->live_shift, k, n)};
      sum = (mma_acc){one_group(&g, check, sum), 1};
    }
    acc = plan->x.join == MX_ACC_JOIN_ADD && acc.some ? (mma_acc){mxi_mma_add(plan, sum.bits, acc.bits), 1} : sum;
  }
  return acc;
}
