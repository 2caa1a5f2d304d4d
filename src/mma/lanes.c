/* Decides which models can compute 16 outputs at a time, and walks along K for them. */
#include "lanes.h"

#include <stdlib.h>
#include <string.h>

#include "mxgold/isa.h"

/* --- whether a model fits --- */

static int64_t largest_sig(const mx_format *f, int via) {
  if (via == MX_ACC_VIA_F16) return (1 << 11) - 1;
  return f->kind == MX_KIND_INT ? INT64_C(1) << (f->bits - f->sign_bits) : (INT64_C(2) << f->man_bits) - 1;
}

/* The shifts that turn `frac` fraction bits into F: left by *up, right by *down. */
static void shifts(int *up, int *down, int frac, int F) {
  *up = F > frac ? F - frac : 0;
  *down = F > frac ? 0 : frac - F;
}

static int64_t scale_sig(const mma_side *side) { return side->scale ? largest_sig(side->scale, 0) : 1; }

/* The largest term of a product, in units of 2^-F below the largest exponent. */
static int64_t largest_term(const mma_plan *plan, int up, int down) {
  int64_t a = largest_sig(plan->a.type, plan->x.via) * scale_sig(&plan->a), b = largest_sig(plan->b.type, plan->x.via) * scale_sig(&plan->b);
  if (a > INT32_MAX || b > INT32_MAX || a * b > INT32_MAX || a * b << up > INT32_MAX) return INT32_MAX;
  const int64_t product = a * b;
  return ((product << up) >> down) + 1;
}

static int sums_fit(const mma_lanes_plan *p, const mma_plan *plan) {
  int64_t term = largest_term(plan, p->up, p->down), half = (p->L + 1) / 2 * term, c = INT64_C(2) << p->F;
  if (p->kind == MMA_LANES_IN) return half + c < INT32_MAX && 2 * half + c < UINT32_MAX;
  return p->L * term < INT32_MAX / 2;
}

/* For sums of P products: elements fit into 7 bits and a sign in units of the smallest one (so not as binary16), and terms and their sum fit
 * into 62 bits. */
static int byte_range(const mx_format *f) {
  return f->kind == MX_KIND_FLOAT && f->inf_code == MX_NO_CODE && f->nan_first == MX_NO_CODE && f->max_code < 32 &&
         (1 << f->exp_bits) - 2 + f->man_bits + 1 <= 6;
}

static int presums_fit(mma_lanes_plan *p, const mma_plan *plan) {
  const mx_format *a = plan->a.type, *b = plan->b.type;
  if (!plan->block || plan->x.via || !byte_range(a) || !byte_range(b) || plan->x.P % 4 || plan->x.P > 64 || p->L % plan->x.P ||
      p->L / plan->x.P > MMA_PRESUMS || plan->block % (size_t)plan->x.P)
    return 0;
  int unit = a->man_bits + a->bias - 1 + b->man_bits + b->bias - 1; /* a product of two smallest elements is 2^-unit */
  shifts(&p->up, &p->down, unit + plan->scale_frac, p->F);
  double term = 64.0 * 64.0 * plan->x.P * (double)(scale_sig(&plan->a) * scale_sig(&plan->b));
  return term < 0x1p30 && term * (double)(INT64_C(1) << p->up) * (p->L / plan->x.P + 1) < 0x1p60 && p->F <= 36;
}

static int join_fits(mma_lanes_plan *p, const mma_plan *plan) {
  const mx_accum *x = &plan->x;
  shifts(&p->sum_up, &p->sum_down, p->F, x->sum_bits);
  shifts(&p->c_up, &p->c_down, p->man, x->c_bits);
  p->join_bits = x->sum_bits > x->c_bits ? x->sum_bits : x->c_bits;
  p->sum_place = p->join_bits - x->sum_bits;
  p->c_place = p->join_bits - x->c_bits;
  p->join_rz = x->join_cut == MX_ACC_CUT_RZ;
  p->c_drop = plan->c_drop;
  return x->join_cut != MX_ACC_CUT_RNE && 32 + p->sum_up + p->sum_place < 62 && p->man + 2 + p->c_up + p->c_place < 62;
}

static int has_isa(const mx_exec *exec) {
  if (!(mx_isa_usable(exec ? exec->isa_mask : 0) & MX_ISA_AVX512)) return 0;
#if defined(__x86_64__)
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512vnni");
#else
  return 0;
#endif
}

int mxi_mma_lanes_make(mma_lanes_plan *p, const mma_plan *plan, const mx_exec *exec) {
  const mx_accum *x = &plan->x;
  const mx_format *d = plan->model->d;
  memset(p, 0, sizeof *p);
  if (!has_isa(exec) || x->op != MX_ACC_OP_FUSED || x->F == MX_ACC_F_EXACT || x->align != MX_ACC_ALIGN_RZ || x->out_round == MX_ACC_OUT_RD ||
      plan->may_be_huge)
    return 0;
  if (plan->k > 1 << 12) return 0; /* a group that spans all of a long K */
  p->k = (int)plan->k;
  p->L = x->L ? x->L : p->k;
  p->P = x->P;
  p->F = x->F;
  p->man = plan->man;
  p->bias = plan->bias;
  p->exp_min = plan->exp_min;
  p->exp_max = plan->exp_max;
  p->keep = plan->keep;
  p->bits = d->bits;
  p->round = x->out_round;
  p->under = x->under;
  p->nan = (uint32_t)mxi_mma_nan(plan);
  p->inf = (uint32_t)mxi_mma_inf(plan, 0);
  p->zero_exp = plan->zero_exp;
  p->skip = x->zero == MX_ACC_ZERO_SKIP;
  p->floor = plan->floor;
  p->split = x->split;
  p->add = x->join == MX_ACC_JOIN_ADD;
  shifts(&p->up_c, &p->down_c, p->man, p->F);
  shifts(&p->up, &p->down, plan->frac, p->F);
  if (p->add && d->man_bits == 7) return 0; /* bf16 has no vector addition here */
  p->kind = x->P ? MMA_LANES_PRESUM : x->join == MX_ACC_JOIN_AFTER ? MMA_LANES_AFTER : MMA_LANES_IN;
  if (p->kind == MMA_LANES_PRESUM) return x->join == MX_ACC_JOIN_IN && presums_fit(p, plan);
  if (p->kind == MMA_LANES_AFTER && !join_fits(p, plan)) return 0;
  return sums_fit(p, plan);
}

/* --- memory --- */

static void *lines(size_t n) { return aligned_alloc(64, (n + 63) / 64 * 64 + 64); }

mx_status mxi_mma_lanes_alloc(mma_lanes_work *w, const mma_lanes_plan *p, const mma_plan *plan, size_t rows, size_t K) {
  size_t k = (size_t)p->k, n;
  memset(w, 0, sizeof *w);
  w->stretch = k >= 256 ? k : 256 / k * k; /* so that 16 columns stay in the first-level cache */
  if (plan->block && p->P) {               /* stretches must start at a block */
    size_t block = plan->block;
    if (block > 256 || 256 % block || 256 % k) w->stretch = (K + block - 1) / block * block;
  }
  n = w->stretch;
  int ok = (w->acc = lines(rows * MMA_LANES * 4)) != NULL;
  if (!p->P) {
    ok &= (w->columns.sig = lines(n * MMA_LANES * 4)) != NULL;
    ok &= (w->columns.exp = lines(n * MMA_LANES * 4)) != NULL;
  } else {
    size_t blocks = n / plan->block + 1;
    ok &= (w->columns.bytes = lines((n + 4) * MMA_LANES)) != NULL;
    ok &= (w->columns.bias = lines((n / (size_t)p->P + 1) * MMA_LANES * 4)) != NULL;
    ok &= (w->columns.scale_sig = lines(blocks * MMA_LANES * 4)) != NULL;
    ok &= (w->columns.scale_exp = lines(blocks * MMA_LANES * 4)) != NULL;
  }
  if (ok) return MX_OK;
  mxi_mma_lanes_free(w);
  return MX_ERR_NOMEM;
}

void mxi_mma_lanes_free(mma_lanes_work *w) {
  free(w->columns.sig);
  free(w->columns.exp);
  free(w->columns.bytes);
  free(w->columns.bias);
  free(w->columns.scale_sig);
  free(w->columns.scale_exp);
  free(w->acc);
  memset(w, 0, sizeof *w);
}

/* --- columns --- */

static void lay_products(mma_columns *c, const mma_lanes_plan *p, const mma_panel *b, size_t j0, size_t nj, size_t k0, size_t n) {
  for (size_t j = 0; j < MMA_LANES; j++) {
    size_t row = (j0 + (j < nj ? j : 0)) * b->K + k0; /* lanes without a column repeat the first */
    for (size_t k = 0; k < n; k++) {
      c->sig[k * MMA_LANES + j] = b->sig[row + k] * (1 << p->up);
      c->exp[k * MMA_LANES + j] = b->exp[row + k];
    }
  }
}

static void lay_presums(mma_columns *c, const mma_lanes_plan *p, const mma_plan *plan, const mma_panel *b, size_t j0, size_t nj, size_t k0,
                        size_t n) {
  size_t block = plan->block, P = (size_t)p->P, blocks = (n + block - 1) / block, padded = (n + 3) / 4 * 4;
  memset(c->bias, 0, (n + P - 1) / P * MMA_LANES * 4);
  for (size_t j = 0; j < MMA_LANES; j++) {
    size_t r = j0 + (j < nj ? j : 0);
    const uint8_t *from = b->bytes + r * b->bytes_stride + k0;
    for (size_t k = 0; k < padded; k++) {
      int v = from[k] - 64;
      c->bytes[(k / 4 * MMA_LANES + j) * 4 + k % 4] = (int8_t)v;
      c->bias[k / P * MMA_LANES + j] -= 64 * v; /* A's bytes are 64 too large */
    }
    for (size_t i = 0; i < blocks; i++) {
      c->scale_sig[i * MMA_LANES + j] = b->scale_sig[r * b->n_blocks + k0 / block + i];
      c->scale_exp[i * MMA_LANES + j] = b->scale_exp[r * b->n_blocks + k0 / block + i];
    }
  }
}

#if defined(__x86_64__)
static mma_lanes_kernel *const kernel = mxi_mma_lanes_avx512;
#else
static mma_lanes_kernel *const kernel = NULL; /* has_isa() prevents its use */
#endif

static mma_lanes_row row_of(const mma_lanes_plan *p, const mma_panel *a, size_t i, size_t k0, size_t block) {
  mma_lanes_row row = {a->sig + i * a->K + k0, a->exp + i * a->K + k0, NULL, NULL, NULL, (int)block};
  if (p->P) {
    row.bytes = a->bytes + i * a->bytes_stride + k0;
    row.scale_sig = a->scale_sig + i * a->n_blocks + k0 / block;
    row.scale_exp = a->scale_exp + i * a->n_blocks + k0 / block;
  }
  return row;
}

void mxi_mma_lanes_block(const mma_lanes_plan *p, const mma_plan *plan, mma_lanes_work *w, const mma_panel *a, size_t ni, const mma_panel *b,
                         size_t j0, size_t nj, int some) {
  size_t K = a->K, block = p->P ? plan->block : 1;
  for (size_t k0 = 0; k0 < K; k0 += w->stretch) {
    size_t n = K - k0 < w->stretch ? K - k0 : w->stretch;
    if (p->P)
      lay_presums(&w->columns, p, plan, b, j0, nj, k0, n);
    else
      lay_products(&w->columns, p, b, j0, nj, k0, n);
    for (size_t i = 0; i < ni; i += MMA_ROWS) {
      mma_lanes_row rows[MMA_ROWS];
      size_t n_rows = ni - i < MMA_ROWS ? ni - i : MMA_ROWS;
      for (size_t r = 0; r < n_rows; r++) rows[r] = row_of(p, a, i + r, k0, block);
      kernel(p, rows, (int)n_rows, &w->columns, n, w->acc + i * MMA_LANES, some || k0);
    }
  }
}
