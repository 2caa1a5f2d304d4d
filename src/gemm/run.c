/* Divides D into tiles and the tiles among threads, and chooses the kernel of each tile. */
#include <math.h>

#include "core/room.h"
#include "gemm/codes/codes.h"
#include "gemm/internal.h"
#include "gemm/output.h"
#include "kernels/threads.h"

enum {
  L = MXG_LANES,
  PANELS = 16,
  PANEL_MEMORY = 8 << 20, /* of a thread's row panels */
  MEMORY = 40 << 20,      /* of all threads */
  CACHED = 1 << 20,       /* what the second-level cache keeps of decoded row panels, which every column panel reads again */
  LEAST = 4               /* but fewer do not pay for decoding the column panel */
};

const mxg_kernels *mxi_gemm_kernels_best(const mx_exec *exec) {
#if defined(__x86_64__)
  const uint32_t isa = mx_isa_usable(exec->isa_mask);
  if (isa & MX_ISA_AVX512) return &mxi_gemm_lanes_avx512;
  if (isa & MX_ISA_AVX2) return &mxi_gemm_lanes_avx2;
#else
  (void)exec;
#endif
  return &mxi_gemm_lanes_scalar;
}

/* The kernel of a model that has one for all numbers. */
static mxg_kernel *kernel_of(const mxg_plan *plan, const mxg_kernels *k) {
  switch (plan->model) {
  case MX_GEMM_F32_SEQ:
    return k->f32_seq;
  case MX_GEMM_F32_PAIRWISE:
    return k->f32_pairwise;
  case MX_GEMM_F64:
    return k->f64;
  case MX_GEMM_GROUP64:
    return k->group64;
  default:
    return NULL;
  }
}

static mxg_line line_of(const mxg_panel *p, size_t r) { return (mxg_line){p->v + r, p->s + r, L}; }

static int tile_fits(const mxg_plan *plan, const mxg_panel *a, const mxg_panel *b) {
  for (size_t i = 0; i < plan->kb; i++)
    if (!mxi_gemm_block_fits(plan, a, b, i)) return 0;
  return 1;
}

static void store_tile(const mxg_plan *plan, const float *acc, size_t rows, size_t cols, size_t i0, size_t j0, void *d, const void *c) {
  for (size_t i = 0; i < rows; i++) {
    if (mxi_gemm_combine_row(plan, (float *)d + mxg_d_at(plan, i0 + i, j0), acc + i * L, j0, cols)) continue;
    for (size_t j = 0; j < cols; j++) mxg_put(plan, d, c, i0 + i, j0 + j, acc[i * L + j]);
  }
}

/* Rows of D are pages apart, so their cache lines are prefetched while the sums are computed. */
static void ask_for_tile(const mxg_plan *plan, size_t rows, size_t i0, size_t j0, const void *d) {
  const size_t bytes = mx_dtype_bytes(plan->o.out);
  for (size_t i = 0; i < rows && !plan->col_major; i++) __builtin_prefetch((const uint8_t *)d + mxg_d_at(plan, i0 + i, j0) * bytes, 1);
}

/* Computes a tile of model `exact` by lanes, if its numbers lie close enough together and C and bias have no Inf or NaN. */
static int tile_exact(const mxg_plan *plan, const mxg_kernels *kernels, const mxg_panel *a, const mxg_panel *b, size_t i0, size_t j0, void *d,
                      const void *c) {
  double place[MXG_SUMS], sums[MXG_SUMS * L * L];
  if (!isfinite(plan->a.multiplier) || !isfinite(plan->b.multiplier) || !isfinite(plan->alpha) || !isfinite(plan->beta)) return 0;
  const int n = mxi_gemm_exact_split(place, plan, a, b);
  if (!n) return 0;
  kernels->exact(sums, a, b, place, n);
  for (size_t i = 0; i < a->rows; i++)
    for (size_t j = 0; j < b->rows; j++) {
      const float cx = mxg_c_at(plan, c, i0 + i, j0 + j), bias = mxg_bias_at(plan, i0 + i, j0 + j);
      const float v = isfinite(cx) && isfinite(bias) ? mxi_gemm_exact_finish(plan, sums + i * L + j, L * L, n, cx, bias)
                                                     : mxi_gemm_one_exact(plan, line_of(a, i), line_of(b, j), cx, bias);
      mxi_gemm_store(d, mxg_d_at(plan, i0 + i, j0 + j), plan->o.out, v);
    }
  return 1;
}

/* f32_block for numbers whose terms binary64 does not hold: outputs that the kernel cannot decide are computed one at a time. Returns 0 where those are
 * too many for that. */
static int tile_unsure(float *acc, const mxg_plan *plan, const mxg_kernels *kernels, const mxg_panel *a, const mxg_panel *b) {
  enum { FEW = 16 };
  uint16_t unsure[L] = {0};
  int n = 0;
  kernels->f32_any(acc, unsure, plan, a, b);
  for (size_t i = 0; i < a->rows; i++) n += __builtin_popcount(unsure[i] & ((1u << b->rows) - 1));
  for (size_t i = 0; i < a->rows && n <= FEW; i++)
    for (size_t j = 0; j < b->rows && unsure[i]; j++)
      if (unsure[i] >> j & 1) acc[i * L + j] = mxi_gemm_one_block(plan, line_of(a, i), line_of(b, j));
  return n <= FEW;
}

/* f32_block for all other numbers: dots are computed by lanes, and what follows for one output at a time. */
static void tile_of_any(float *acc, const mxg_plan *plan, const mxg_kernels *kernels, const mxg_panel *a, const mxg_panel *b) {
  mxg_dots dots;
  for (int i = 0; i < L * L; i++) acc[i] = 0;
  for (size_t block = 0; block < plan->kb; block++) {
    kernels->rounded_dots(&dots, a, b, block);
    for (size_t i = 0; i < a->rows; i++)
      for (size_t j = 0; j < b->rows; j++)
        acc[i * L + j] = mxi_gemm_one_step(plan, line_of(a, i), line_of(b, j), block, acc[i * L + j], &dots, i * L + j);
  }
}

/* The sums of a tile of f32_block. */
static void tile_of_blocks(float *acc, const mxg_plan *plan, const mxg_kernels *kernels, const mxg_panel *a, const mxg_panel *b) {
  const int divides = plan->a.divides || plan->b.divides;
  if (divides && plan->bounded)
    kernels->f32_divided(acc, plan, a, b);
  else if (!divides && tile_fits(plan, a, b))
    kernels->f32_block(acc, a, b);
  else if (divides || !tile_unsure(acc, plan, kernels, a, b))
    tile_of_any(acc, plan, kernels, a, b);
}

static void tile(const mxg_plan *plan, const mxg_kernels *kernels, const mxg_panel *a, const mxg_panel *b, size_t i0, size_t j0, void *d,
                 const void *c) {
  float acc[L * L];
  if (plan->model != MX_GEMM_EXACT) {
    mxg_kernel *kernel = kernel_of(plan, kernels);
    if (kernel)
      kernel(acc, a, b);
    else
      tile_of_blocks(acc, plan, kernels, a, b);
    store_tile(plan, acc, a->rows, b->rows, i0, j0, d, c);
    return;
  }
  if (tile_exact(plan, kernels, a, b, i0, j0, d, c)) return;
  for (size_t i = 0; i < a->rows; i++)
    for (size_t j = 0; j < b->rows; j++) {
      const float cx = mxg_c_at(plan, c, i0 + i, j0 + j), bias = mxg_bias_at(plan, i0 + i, j0 + j);
      const float v = mxi_gemm_one_exact(plan, line_of(a, i), line_of(b, j), cx, bias);
      mxi_gemm_store(d, mxg_d_at(plan, i0 + i, j0 + j), plan->o.out, v);
    }
}

/* How many threads the number of products justifies. */
static int threads_of(const mxg_plan *plan) {
  enum { PRODUCTS = 1 << 18 };
  return mx_threads(&plan->o.exec, plan->M * plan->N * (plan->K / 64 + 1), PRODUCTS / 64);
}

/* As many threads as there is memory for their panels, but at least one. */
static int threads_in(const mxg_plan *plan, size_t bytes) {
  const size_t wanted = (size_t)threads_of(plan), room = MEMORY / (bytes + 1);
  return (int)(room < 1 ? 1 : room < wanted ? room : wanted);
}

/* How many row panels a thread holds at a time. */
static size_t group_in(int n_threads, size_t bytes) {
  const size_t share = MEMORY / 2 / (size_t)n_threads, room = (share < PANEL_MEMORY ? share : PANEL_MEMORY) / (bytes + 1);
  return room < 1 ? 1 : room > PANELS ? PANELS : room;
}

/* A thread takes a group of row panels and a group of column panels at a time, and decodes the row panels once for all its columns. */
static mx_status all_tiles(const mxg_plan *plan, void *d, const void *c) {
  const mxg_kernels *kernels = mxi_gemm_kernels_best(&plan->o.exec);
  const int n_threads = threads_in(plan, 2 * mxi_gemm_panel_bytes(plan));
  const size_t bytes = mxi_gemm_panel_bytes(plan), cached = CACHED / (bytes + 1), many = cached < LEAST ? LEAST : cached;
  size_t group = group_in(n_threads, bytes);
  if (group > many) group = many;
  const size_t panels_m = (plan->M + L - 1) / L, panels_n = (plan->N + L - 1) / L;
  while (group > 1 && (panels_m + group - 1) / group * ((panels_n + PANELS - 1) / PANELS) < 2 * (size_t)n_threads) group /= 2;
  const size_t groups_m = (panels_m + group - 1) / group, groups_n = (panels_n + PANELS - 1) / PANELS;
  mx_status status = MX_OK;
#pragma omp parallel num_threads(n_threads)
  {
    mxg_panel a[PANELS] = {0}, b = {0};
    mx_status mine = mxi_gemm_panel_alloc(&b, plan);
    for (size_t p = 0; p < group && !mine; p++) mine = mxi_gemm_panel_alloc(&a[p], plan);
    size_t held = SIZE_MAX;
#pragma omp for schedule(dynamic)
    for (size_t task = 0; task < groups_m * groups_n; task++) {
      const size_t gm = task / groups_n, gn = task % groups_n;
      if (mine) continue;
      const size_t end_m = (gm + 1) * group < panels_m ? (gm + 1) * group : panels_m,
                   end_n = (gn + 1) * PANELS < panels_n ? (gn + 1) * PANELS : panels_n;
      for (size_t p = gm * group; p < end_m && held != gm; p++) mxi_gemm_panel_fill(&a[p - gm * group], &plan->a, plan, p * L);
      held = gm;
      for (size_t q = gn * PANELS; q < end_n; q++) {
        mxi_gemm_panel_fill(&b, &plan->b, plan, q * L);
        for (size_t p = gm * group; p < end_m; p++) tile(plan, kernels, &a[p - gm * group], &b, p * L, q * L, d, c);
      }
    }
    for (size_t p = 0; p < group; p++) mxi_gemm_panel_free(&a[p]);
    mxi_gemm_panel_free(&b);
    if (mine) {
#pragma omp atomic write
      status = mine;
    }
  }
  return status;
}

/* --- packed codes --- */

/* Computes a tile whose scales are too far apart for the kernel on codes, on decoded panels. */
static mx_status far_tile(const mxg_plan *plan, const mxg_kernels *kernels, size_t i0, size_t j0, void *d, const void *c) {
  mxg_panel a = {0}, b = {0};
  mx_status status = mxi_gemm_panel_alloc(&a, plan);
  if (!status) status = mxi_gemm_panel_alloc(&b, plan);
  if (!status) {
    mxi_gemm_panel_fill(&a, &plan->a, plan, i0);
    mxi_gemm_panel_fill(&b, &plan->b, plan, j0);
    tile(plan, kernels, &a, &b, i0, j0, d, c);
  }
  mxi_gemm_panel_free(&a);
  mxi_gemm_panel_free(&b);
  return status;
}

/* Whether the kernels on codes can take the scales of this panel of A and this panel of B, if necessary after blocks of zeros are left out. */
static int settle(const mxg_plan *plan, mxg_packed *a, mxg_packed *b, int skinny, size_t i0, size_t j0) {
  const int fit = mxi_gemm_codes_fit(a, b);
  if (fit && !mxi_gemm_codes_slow(a, b)) return 1;
  const int changes = skinny && !a->settled;
  mxi_gemm_codes_leave_out_zeros(a, &plan->a, plan, i0);
  if (changes) mxi_gemm_skinny_fill_a(a);
  mxi_gemm_codes_leave_out_zeros(b, &plan->b, plan, j0);
  return fit || mxi_gemm_codes_fit(a, b);
}

/* Computes a tile from the integer dots of its blocks, with scales whose products or quotients need binary64. */
static void wide_tile(const mxg_plan *plan, const mxg_packed *a, const mxg_packed *b, size_t i0, size_t j0, void *d, const void *c) {
  const mxg_kernels *kernels = mxi_gemm_kernels_best(&plan->o.exec);
  const int divides = plan->a.divides || plan->b.divides;
  _Alignas(64) double dots[L * L];
  float acc[L * L] = {0};
  ask_for_tile(plan, a->rows, i0, j0, d);
  for (size_t block = 0; block < plan->kb; block++) {
    const double *sa = a->wide + block * L, *sb = b->wide + block * L;
    mxi_gemm_codes_dots(dots, a, b, block);
    if (divides) {
      const mxg_factors f = mxg_factors_of(plan, sa, sb);
      kernels->terms_divided(acc, dots, &f);
    } else
      kernels->terms_long(acc, dots, sa, sb);
  }
  store_tile(plan, acc, a->rows, b->rows, i0, j0, d, c);
}

/* Computes the tiles of a panel of B with all panels of A that a thread holds, the first of which begins at row i0 of D. */
static mx_status column_of_tiles(const mxg_plan *plan, mxg_codes_kernels kernels, mxg_packed *a, size_t n, mxg_packed *b, int skinny, size_t i0,
                                 size_t j0, void *d, const void *c) {
  _Alignas(64) float acc[PANELS][L * L];
  const mxg_packed *fits[PANELS];
  size_t row[PANELS], n_fit = 0;
  mxi_gemm_codes_fill_b(b, &plan->b, plan, j0);
  for (size_t p = 0; p < n; p++) {
    const size_t i = i0 + p * L;
    if (b->wide)
      wide_tile(plan, &a[p], b, i, j0, d, c);
    else if (settle(plan, &a[p], b, skinny, i, j0)) {
      row[n_fit] = i;
      fits[n_fit++] = &a[p];
      if (kernels.column) ask_for_tile(plan, a[p].rows, i, j0, d);
    } else {
      const mx_status status = far_tile(plan, mxi_gemm_kernels_best(&plan->o.exec), i, j0, d, c);
      if (status) return status;
    }
  }
  if (kernels.column && n_fit) kernels.column(acc, fits, n_fit, b);
  for (size_t t = 0; t < n_fit; t++) {
    float *sums = acc[kernels.column ? t : 0];
    if (!kernels.column) ask_for_tile(plan, fits[t]->rows, row[t], j0, d);
    if (!kernels.column) kernels.tile(sums, fits[t], b);
    store_tile(plan, sums, fits[t]->rows, b->rows, row[t], j0, d, c);
  }
  return MX_OK;
}

/* Computes the tiles of whole panels of B with the only panel of A, which has few rows. */
static mx_status skinny_tiles(const mxg_plan *plan, mxg_packed *a, mxg_packed b[2], size_t j0, size_t n, void *d, const void *c) {
  _Alignas(64) float acc[2][L * L];
  for (size_t q = 0; q < n;) {
    mxg_packed *fits[2] = {NULL};
    size_t at[2] = {0}, n_fit = 0;
    for (; q < n && n_fit < 2; q++) {
      const size_t j = j0 + q * L;
      mxi_gemm_skinny_fill_b(&b[n_fit], a, &plan->b, j);
      if (!mxi_gemm_codes_fit(a, &b[n_fit]) || mxi_gemm_codes_slow(a, &b[n_fit])) mxi_gemm_skinny_numbers(&b[n_fit], &plan->b, j);
      if (settle(plan, a, &b[n_fit], 1, 0, j)) {
        at[n_fit] = j;
        fits[n_fit] = &b[n_fit];
        n_fit++;
        ask_for_tile(plan, a->rows, 0, j, d);
      } else {
        const mx_status status = far_tile(plan, mxi_gemm_kernels_best(&plan->o.exec), 0, j, d, c);
        if (status) return status;
      }
    }
    if (!n_fit) continue;
    if (n_fit == 1) fits[1] = fits[0], at[1] = at[0];
    mxi_gemm_skinny(acc, a, fits, &plan->b, at);
    for (size_t p = 0; p < n_fit; p++) store_tile(plan, acc[p], a->rows, L, 0, at[p], d, c);
  }
  return MX_OK;
}

/* Divides the work as all_tiles() does. */
mx_status mxi_gemm_codes_run(const mxg_plan *plan, mxg_codes_kernels kernels, void *d, const void *c) {
  const size_t panels_m = (plan->M + L - 1) / L, panels_n = (plan->N + L - 1) / L, bytes = plan->K * L + 1;
  const int n_threads = threads_in(plan, 2 * bytes);
  size_t group = group_in(n_threads, bytes);
  if (group > panels_m) group = panels_m;
  const size_t groups_m = (panels_m + group - 1) / group;
  size_t columns = PANELS;
  const int skinny = !kernels.column && mxi_gemm_skinny_usable(plan, kernels.tile);
  const size_t fewest = skinny ? 2 : 1; /* few rows take two panels at a time */
  while (columns > fewest && groups_m * ((panels_n + columns - 1) / columns) < 4 * (size_t)n_threads) columns /= 2;
  const size_t groups_n = (panels_n + columns - 1) / columns;
  mx_status status = MX_OK;
#pragma omp parallel num_threads(n_threads)
  {
    mxg_packed a[PANELS] = {0}, b[2] = {0};
    mx_status mine = mxi_gemm_codes_alloc(&b[0], plan, kernels.column ? MXG_SIDE_B_SIGNED : MXG_SIDE_B);
    if (skinny && !mine) mine = mxi_gemm_codes_alloc(&b[1], plan, MXG_SIDE_B); /* its words are never used */
    for (size_t p = 0; p < group && !mine; p++) mine = mxi_gemm_codes_alloc(&a[p], plan, MXG_SIDE_A);
    if (skinny && !mine) mine = mxi_gemm_skinny_alloc(&a[0], b, plan->M);
    size_t held = SIZE_MAX;
#pragma omp for schedule(dynamic)
    for (size_t task = 0; task < groups_m * groups_n; task++) {
      const size_t gm = task / groups_n, gn = task % groups_n;
      const size_t end_m = (gm + 1) * group < panels_m ? (gm + 1) * group : panels_m,
                   end_n = (gn + 1) * columns < panels_n ? (gn + 1) * columns : panels_n;
      for (size_t p = gm * group; p < end_m && held != gm && !mine; p++) {
        mxi_gemm_codes_fill_a(&a[p - gm * group], &plan->a, plan, p * L);
        if (skinny) mxi_gemm_skinny_fill_a(&a[p - gm * group]);
      }
      held = gm;
      const size_t whole = !skinny ? 0 : end_n * L <= plan->N ? end_n : end_n - 1, from = gn * columns;
      if (from < whole && !mine) mine = skinny_tiles(plan, a, b, from * L, whole - from, d, c);
      for (size_t q = from < whole ? whole : from; q < end_n && !mine; q++)
        mine = column_of_tiles(plan, kernels, a, end_m - gm * group, b, skinny, gm * group * L, q * L, d, c);
    }
    for (size_t p = 0; p < group; p++) mxi_gemm_codes_free(&a[p]);
    mxi_gemm_codes_free(&b[0]);
    mxi_gemm_codes_free(&b[1]);
    if (mine) {
#pragma omp atomic write
      status = mine;
    }
  }
  return status;
}

/* --- a list of outputs --- */

typedef struct line_memory {
  double *v, *s;
  size_t row;
  mx_workspace *from;
} line_memory;

static int line_alloc(line_memory *l, const mxg_plan *plan) {
  l->from = plan->o.exec.workspace;
  l->v = mxi_room_take(l->from, (plan->K + 1) * sizeof *l->v);
  l->s = mxi_room_take(l->from, (plan->kb + 1) * sizeof *l->s);
  l->row = SIZE_MAX;
  return l->v && l->s;
}

static void line_free(line_memory *l) {
  mxi_room_give(l->from, l->v);
  mxi_room_give(l->from, l->s);
}

static mxg_line line_fill(line_memory *l, const mxg_operand *o, const mxg_plan *plan, size_t row) {
  if (l->row != row) {
    for (size_t b = 0; b < plan->kb; b++) l->s[b] = mxi_gemm_scale(o, row, b);
    mxi_gemm_values(l->v, o, row, 0, plan->K);
    mxi_gemm_line_values(l->v, l->s, plan, o->divides);
    l->row = row;
  }
  return (mxg_line){l->v, l->s, 1};
}

static mx_status some(const mxg_plan *plan, void *d, const void *c, const size_t (*pairs)[2], size_t n) {
  mx_status status = MX_OK;
#pragma omp parallel num_threads(threads_of(plan))
  {
    line_memory a = {0}, b = {0};
    const int room = line_alloc(&a, plan) & line_alloc(&b, plan);
#pragma omp for schedule(static)
    for (size_t p = 0; p < n; p++) {
      if (!room) continue;
      const size_t i = pairs[p][0], j = pairs[p][1];
      const float cx = mxg_c_at(plan, c, i, j), bias = mxg_bias_at(plan, i, j);
      const mxg_line x = line_fill(&a, &plan->a, plan, i), y = line_fill(&b, &plan->b, plan, j);
      const float v = plan->model == MX_GEMM_EXACT ? mxi_gemm_one_exact(plan, x, y, cx, bias)
                                                   : mxi_gemm_combine(plan, mxi_gemm_one_sum(plan, x, y), cx, bias);
      mxi_gemm_store(d, p, plan->o.out, v);
    }
    line_free(&a);
    line_free(&b);
    if (!room) {
#pragma omp atomic write
      status = MX_ERR_NOMEM;
    }
  }
  return status;
}

mx_status mxi_gemm_run(const mxg_plan *plan, void *d, const void *c, const size_t (*pairs)[2], size_t n_pairs) {
  if (plan->model == MX_GEMM_FUSED && pairs) return mxi_gemm_fused_pairs(plan, d, c, pairs, n_pairs, threads_of(plan));
  if (plan->model == MX_GEMM_FUSED) return plan->M && plan->N ? mxi_gemm_fused_run(plan, d, c) : MX_OK;
  if (pairs) return n_pairs ? some(plan, d, c, pairs, n_pairs) : MX_OK;
  if (!plan->M || !plan->N) return MX_OK;
  const mxg_codes_kernels kernels = mxi_gemm_codes_choose(plan);
  return kernels.tile || kernels.column ? mxi_gemm_codes_run(plan, kernels, d, c) : all_tiles(plan, d, c);
}
