/* What else could have been computed: each variant edits the right problem, or says where an output stands. A cheap pass in binary64 ranks all of
 * them on a sample of the wrong outputs; the best few are then held to bits under every model. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mxgold/verify.h"
#include "verify/judge_internal.h"

/* Kinds of variants of the operands. `side`: 1 A, 2 B, 3 both. n: a number that the kind takes. */
typedef enum kind {
  SAME,
  SCALE_NONE,
  SCALE_TWICE,
  SCALE_ZERO_AT, /* K block n */
  SCALE_TWO_AT,
  SCALE_FIRST,
  SCALE_NEXT_BLOCK,
  SCALE_LAST_BLOCK,
  SCALE_NEXT_ROW,
  SCALE_LAST_ROW,
  SCALE_TRANSPOSED,
  SCALE_READ_AS, /* layout n */
  SCALE_LEFT_IN,
  SCALE_SWAPPED,
  TENSOR_NONE,
  TENSOR_TWICE,
  NIBBLE,
  TURNED,
  DEPTH, /* K = n */
  FIRST_LOST,
  /* of what follows the sum */
  ALPHA_NONE,
  ALPHA_TWICE,
  ALPHA_ON_C,
  BETA_NONE,
  C_NONE,
  C_MINUS,
  C_TURNED,
  BIAS_NONE,
  BIAS_TWICE,
  BIAS_ALPHA,
  BIAS_ROWS,
  MINUS,
  /* of where D stands */
  D_TURNED,
  D_ROW_UP,
  D_ROW_DOWN,
  D_COL_UP,
  D_COL_DOWN
} kind;

typedef struct variant {
  kind kind;
  int side;
  size_t n;
  double error; /* of the ranking */
} variant;

enum { BEST = 6 };

static const char *of_side(int side) { return side == 1 ? "A" : side == 2 ? "B" : "A and B"; }

/* Right side first: "the scales of A", plural for both. */
static void words(char *out, size_t size, const judge_job *j, const variant *v) {
  const char *s = of_side(v->side);
  const size_t K = j->right.K, block = j->right.block, last = (K - 1) / block;
  switch (v->kind) {
  case SAME:
    snprintf(out, size, "the product itself");
    break;
  case SCALE_NONE:
    snprintf(out, size, "the scales of %s are left out", s);
    break;
  case SCALE_TWICE:
    snprintf(out, size, "the scales of %s are applied twice", s);
    break;
  case SCALE_ZERO_AT:
    snprintf(out, size, "K block %zu of %zu is lost", v->n + 1, last + 1);
    break;
  case SCALE_TWO_AT:
    snprintf(out, size, "K block %zu of %zu is added twice", v->n + 1, last + 1);
    break;
  case SCALE_FIRST:
    snprintf(out, size, "the scale of each row's first block of %s is used for the whole row", s);
    break;
  case SCALE_NEXT_BLOCK:
    snprintf(out, size, "the scales of %s are those of the next block", s);
    break;
  case SCALE_LAST_BLOCK:
    snprintf(out, size, "the scales of %s are those of the block before", s);
    break;
  case SCALE_NEXT_ROW:
    snprintf(out, size, "the scales of %s are those of the next row", s);
    break;
  case SCALE_LAST_ROW:
    snprintf(out, size, "the scales of %s are those of the row before", s);
    break;
  case SCALE_TRANSPOSED:
    snprintf(out, size, "the scales of %s are read transposed", s);
    break;
  case SCALE_READ_AS:
    snprintf(out, size, "the scales of %s, which are row-major, are read as %s", s, mx_layout_name((mx_layout)v->n));
    break;
  case SCALE_LEFT_IN:
    snprintf(out, size, "the scales of %s are in layout %s and read as row-major", s, mx_layout_name((mx_layout)v->n));
    break;
  case SCALE_SWAPPED:
    snprintf(out, size, "the scales of A and B are swapped");
    break;
  case TENSOR_NONE:
    snprintf(out, size, "the tensor scale of %s is left out", s);
    break;
  case TENSOR_TWICE:
    snprintf(out, size, "the tensor scale of %s is applied twice", s);
    break;
  case NIBBLE:
    snprintf(out, size, "the two codes of each byte of %s are swapped", s);
    break;
  case TURNED:
    snprintf(out, size, "the codes of %s are read transposed", s);
    break;
  case DEPTH:
    if (v->n > K)
      snprintf(out, size, "the padding behind K is summed too (K = %zu for %zu)", v->n, K);
    else if (v->n == last * block)
      snprintf(out, size, "the last K block is lost (K = %zu for %zu)", v->n, K);
    else
      snprintf(out, size, "the tail of K is lost (K = %zu for %zu)", v->n, K);
    break;
  case FIRST_LOST:
    snprintf(out, size, "the first K block is lost");
    break;
  case ALPHA_NONE:
    snprintf(out, size, "alpha is forgotten");
    break;
  case ALPHA_TWICE:
    snprintf(out, size, "alpha is applied twice");
    break;
  case ALPHA_ON_C:
    snprintf(out, size, "alpha is applied to C too");
    break;
  case BETA_NONE:
    snprintf(out, size, "beta is forgotten: C is added as it is");
    break;
  case C_NONE:
    snprintf(out, size, "C is forgotten");
    break;
  case C_MINUS:
    snprintf(out, size, "C is subtracted");
    break;
  case C_TURNED:
    snprintf(out, size, "C is read transposed");
    break;
  case BIAS_NONE:
    snprintf(out, size, "the bias is forgotten");
    break;
  case BIAS_TWICE:
    snprintf(out, size, "the bias is added twice");
    break;
  case BIAS_ALPHA:
    snprintf(out, size, "the bias is multiplied by alpha");
    break;
  case BIAS_ROWS:
    snprintf(out, size, "the bias goes along %s", j->right.options.bias_of_rows ? "columns instead of rows" : "rows instead of columns");
    break;
  case MINUS:
    snprintf(out, size, "the sign of the product is wrong");
    break;
  case D_TURNED:
    snprintf(out, size, j->right.M == j->right.N ? "D is transposed, or A and B are swapped" : "D is transposed (column-major)");
    break;
  case D_ROW_UP:
    snprintf(out, size, "each row of D holds the next row");
    break;
  case D_ROW_DOWN:
    snprintf(out, size, "each row of D holds the row before");
    break;
  case D_COL_UP:
    snprintf(out, size, "each column of D holds the next column");
    break;
  case D_COL_DOWN:
    snprintf(out, size, "each column of D holds the column before");
    break;
  }
}

/* ---- edits */

/* What a variant needs beside the right problem. */
typedef struct edit {
  mx_gemm_problem p;
  void *own[4];
  int n_own;
  float number[4];
} edit;

static void edit_free(edit *e) {
  for (int i = 0; i < e->n_own; i++) free(e->own[i]);
}

static void *keep(edit *e, size_t n_bytes) { return e->own[e->n_own++] = malloc(n_bytes + 1); }

static size_t rows_of(const judge_job *j, int is_b) { return is_b ? j->right.N : j->right.M; }
static size_t kb_of(const judge_job *j) { return (j->right.K + j->right.block - 1) / j->right.block; }

static double scale_at(const mx_gemm_operand *x, size_t row, size_t b, size_t kb) {
  const size_t at = row * (x->scale_ld ? x->scale_ld : kb) + b, bytes = x->scale->bits <= 8 ? 1 : x->scale->bits <= 16 ? 2 : 4;
  uint32_t code = 0;
  memcpy(&code, (const uint8_t *)x->scales + at * bytes, bytes);
  const double v = mx_decode(x->scale, code);
  return x->scale_sign == MX_SCALE_SIGN_SIGNED ? v : fabs(v);
}

/* Scales of one operand as numbers of our own. 0: it has none, or they would not fit. */
static int rescale(edit *e, const judge_job *j, int is_b, kind k, size_t n) {
  mx_gemm_operand *x = is_b ? &e->p.b : &e->p.a;
  const mx_gemm_operand *from = is_b ? &j->right.b : &j->right.a;
  const size_t rows = rows_of(j, is_b), kb = kb_of(j);
  if (!from->scale) return 0;
  float *s = keep(e, rows * kb * sizeof *s);
  if (!s) return 0;
  const int encode = from->scale_form == MX_SCALE_FORM_ENCODE;
  for (size_t r = 0; r < rows; r++)
    for (size_t b = 0; b < kb; b++) {
      size_t row = r, block = b;
      if (k == SCALE_FIRST) block = 0;
      if (k == SCALE_NEXT_BLOCK && b + 1 < kb) block++;
      if (k == SCALE_LAST_BLOCK && b) block--;
      if (k == SCALE_NEXT_ROW && r + 1 < rows) row++;
      if (k == SCALE_LAST_ROW && r) row--;
      const double v = scale_at(from, row, block, kb);
      double w = k == SCALE_TWICE ? v * v : v;
      if (k == SCALE_ZERO_AT && b == n) w = encode ? (double)INFINITY : 0;
      if (k == SCALE_TWO_AT && b == n) w = encode ? v / 2 : 2 * v;
      s[r * kb + b] = (float)w;
    }
  x->scale = mx_operand_format(MX_OPERAND_F32);
  x->scales = s;
  x->scale_ld = 0;
  x->scale_sign = MX_SCALE_SIGN_SIGNED;
  return 1;
}

static int relayout(edit *e, const judge_job *j, int is_b, const variant *v) {
  mx_gemm_operand *x = is_b ? &e->p.b : &e->p.a;
  const size_t rows = rows_of(j, is_b), kb = kb_of(j);
  if (!x->scale || x->scale->bits > 8 || (x->scale_ld && x->scale_ld != kb)) return 0;
  if (v->kind == SCALE_TRANSPOSED) {
    x->scale_transposed = 1;
    x->scale_ld = 0;
    return kb > 1 && rows > 1;
  }
  if (v->kind == SCALE_READ_AS) { /* the bytes beyond the scales are not known: only where there are none */
    x->scale_layout = (int)v->n;
    return mx_layout_size((mx_layout)v->n, rows, kb) == rows * kb;
  }
  uint8_t *packed = keep(e, mx_layout_size((mx_layout)v->n, rows, kb));
  if (!packed) return 0;
  mx_layout_pack(packed, (mx_layout)v->n, x->scales, rows, kb, 0);
  x->scales = packed;
  return 1;
}

static int edit_operand(edit *e, const judge_job *j, int is_b, const variant *v) {
  mx_gemm_operand *x = is_b ? &e->p.b : &e->p.a;
  switch (v->kind) {
  case SCALE_NONE:
    if (!x->scale) return 0;
    x->scale = NULL;
    return 1;
  case TENSOR_NONE:
    if (!x->multiplier || *x->multiplier == 1) return 0;
    x->multiplier = NULL;
    return 1;
  case TENSOR_TWICE:
    if (!x->multiplier || *x->multiplier == 1) return 0;
    e->number[is_b] = *x->multiplier * *x->multiplier;
    x->multiplier = &e->number[is_b];
    return 1;
  case NIBBLE:
    if (x->elem->bits != 4 || x->packing != MX_PACK_DENSE) return 0;
    x->nibble = x->nibble == MX_NIBBLE_HIGH_FIRST ? MX_NIBBLE_LOW_FIRST : MX_NIBBLE_HIGH_FIRST;
    return 1;
  case TURNED:
    if (rows_of(j, is_b) != j->right.K || (x->ld && x->ld != j->right.K)) return 0;
    x->transposed = !x->transposed;
    return 1;
  case SCALE_TRANSPOSED:
  case SCALE_READ_AS:
  case SCALE_LEFT_IN:
    return relayout(e, j, is_b, v);
  default:
    return rescale(e, j, is_b, v->kind, v->n);
  }
}

static int edit_epilogue(edit *e, const judge_job *j, const variant *v) {
  mx_gemm_options *o = &e->p.options;
  const float alpha = o->alpha ? *o->alpha : 1, beta = o->c ? o->beta ? *o->beta : 1 : 0;
  const size_t N = j->right.N, n_bias = o->bias_of_rows ? j->right.M : N;
  float *bias;
  switch (v->kind) {
  case ALPHA_NONE:
    o->alpha = NULL;
    return alpha != 1;
  case ALPHA_TWICE:
    e->number[2] = alpha * alpha;
    o->alpha = &e->number[2];
    return alpha != 1 && alpha != 0;
  case MINUS:
    e->number[2] = -alpha;
    o->alpha = &e->number[2];
    return alpha != 0;
  case ALPHA_ON_C:
    e->number[3] = alpha * beta;
    o->beta = &e->number[3];
    return beta != 0 && alpha != 1;
  case BETA_NONE:
    o->beta = NULL;
    return beta != 0 && beta != 1;
  case C_NONE:
    o->c = NULL;
    return beta != 0;
  case C_MINUS:
    e->number[3] = -beta;
    o->beta = &e->number[3];
    return beta != 0;
  case C_TURNED:
    if (beta == 0 || j->right.M != N || !(bias = keep(e, N * N * sizeof *bias))) return 0;
    for (size_t i = 0; i < N; i++)
      for (size_t k = 0; k < N; k++) bias[i * N + k] = judge_load(o->c, k * (o->ldc ? o->ldc : N) + i, o->c_type);
    o->c = bias;
    o->c_type = MX_F32;
    o->ldc = N;
    return 1;
  case BIAS_NONE:
    if (!o->bias) return 0;
    o->bias = NULL;
    return 1;
  case BIAS_ROWS:
    o->bias_of_rows = !o->bias_of_rows;
    return o->bias && j->right.M == N;
  case BIAS_TWICE:
  case BIAS_ALPHA:
    if (!o->bias || (v->kind == BIAS_ALPHA && alpha == 1) || !(bias = keep(e, n_bias * sizeof *bias))) return 0;
    for (size_t i = 0; i < n_bias; i++) bias[i] = o->bias[i] * (v->kind == BIAS_TWICE ? 2 : alpha);
    o->bias = bias;
    return 1;
  default:
    return 0;
  }
}

static int edit_depth(edit *e, const judge_job *j, const variant *v) {
  mx_gemm_problem *p = &e->p;
  const size_t K = j->right.K, block = j->right.block;
  for (int is_b = 0; is_b < 2; is_b++) { /* strides stay those of the whole */
    mx_gemm_operand *x = is_b ? &p->b : &p->a;
    if (!x->ld) x->ld = K;
    if (x->scale && !x->scale_ld) x->scale_ld = kb_of(j);
    if (v->kind == DEPTH) continue;
    const size_t bits = x->packing == MX_PACK_BYTES && x->elem->bits < 8 ? 8 : x->elem->bits,
                 bytes = x->scale && x->scale->bits > 8 ? x->scale->bits / 8 : 1;
    if (block * bits % 8) return 0;
    x->data = (const uint8_t *)x->data + block * bits / 8;
    if (x->scale) x->scales = (const uint8_t *)x->scales + bytes;
  }
  if (v->kind == DEPTH && v->n > K && (v->n > p->a.ld || v->n > p->b.ld)) return 0;
  p->K = v->kind == DEPTH ? v->n : K - block;
  return p->K > 0 && (v->kind == DEPTH || K > block);
}

/* e is the right problem, changed as v says. 0: v makes no sense here. */
static int make(edit *e, const judge_job *j, const variant *v) {
  if (v->kind == SAME || v->kind >= D_TURNED) return 1;
  if (v->kind >= ALPHA_NONE) return edit_epilogue(e, j, v);
  if (v->kind == DEPTH || v->kind == FIRST_LOST) return edit_depth(e, j, v);
  if (v->kind == SCALE_SWAPPED) {
    mx_gemm_operand *a = &e->p.a, *b = &e->p.b;
    if (!a->scale || a->scale != b->scale || j->right.M != j->right.N) return 0;
    const void *s = a->scales;
    a->scales = b->scales;
    b->scales = s;
    return 1;
  }
  if (v->kind == SCALE_ZERO_AT || v->kind == SCALE_TWO_AT) return j->right.a.scale ? edit_operand(e, j, 0, v) : edit_operand(e, j, 1, v);
  int made = 0;
  for (int is_b = 0; is_b < 2; is_b++)
    if (v->side >> is_b & 1) made += edit_operand(e, j, is_b, v) ? 1 : -2;
  return made > 0;
}

/* Where the output that D has at (row, col) is in the product. 0: nowhere. */
static int source(const judge_job *j, kind k, size_t row, size_t col, size_t at[2]) {
  const size_t M = j->right.M, N = j->right.N, flat = row * N + col;
  at[0] = row, at[1] = col;
  if (k == D_TURNED) at[0] = flat % M, at[1] = flat / M;
  if (k == D_ROW_UP) at[0]++;
  if (k == D_ROW_DOWN) at[0]--; /* wraps beyond M */
  if (k == D_COL_UP) at[1]++;
  if (k == D_COL_DOWN) at[1]--;
  return at[0] < M && at[1] < N;
}

/* ---- ranking */

typedef struct list {
  variant v[1024];
  size_t n;
} list;

static void put(list *l, kind k, int side, size_t n) {
  if (l->n < sizeof l->v / sizeof l->v[0]) l->v[l->n++] = (variant){k, side, n, INFINITY};
}

static void all_variants(list *l, const judge_job *j) {
  const size_t K = j->right.K, block = j->right.block, kb = kb_of(j), whole = kb * block;
  static const kind sided[] = {SCALE_NONE,       SCALE_TWICE, SCALE_TRANSPOSED, TENSOR_NONE,    TENSOR_TWICE,   NIBBLE,
                               SCALE_NEXT_BLOCK, SCALE_FIRST, SCALE_LAST_BLOCK, SCALE_NEXT_ROW, SCALE_LAST_ROW, TURNED};
  static const size_t steps[] = {1024, 512, 256, 128, 64, 32, 16, 8};
  for (int k = ALPHA_NONE; k <= D_COL_DOWN; k++) put(l, (kind)k, 0, 0);
  if (kb > 1) put(l, DEPTH, 0, (kb - 1) * block);
  for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
    const size_t cut = K - K % steps[i];
    if (cut && cut < K && cut != (kb - 1) * block && (i == 0 || cut != K - K % steps[i - 1])) put(l, DEPTH, 0, cut);
  }
  if (whole > K) put(l, DEPTH, 0, whole);
  if (kb > 1) put(l, FIRST_LOST, 0, 0);
  for (size_t s = 0; s < sizeof sided / sizeof sided[0]; s++)
    for (int side = 1; side <= 3; side++) put(l, sided[s], side, 0);
  for (int side = 1; side <= 3; side++)
    for (size_t layout = 1; layout < MX_LAYOUT_COUNT; layout++) {
      put(l, SCALE_READ_AS, side, layout);
      put(l, SCALE_LEFT_IN, side, layout);
    }
  put(l, SCALE_SWAPPED, 0, 0);
  for (size_t b = 1; b + 1 < kb && kb <= 128; b++) put(l, SCALE_ZERO_AT, 0, b);
  for (size_t b = 2; b + 1 < kb && kb <= 128; b++) put(l, DEPTH, 0, b * block);
  for (size_t b = 0; b < kb && kb <= 128; b++) put(l, SCALE_TWO_AT, 0, b);
}

/* Outputs of a variant at the sampled places of D; NaN where D holds nothing of the product. */
static int evaluate(float *out, const judge_job *j, const edit *e, kind k, int model, mx_dtype type) {
  size_t pairs[JUDGE_SAMPLE][2], n = 0, at[JUDGE_SAMPLE];
  float values[JUDGE_SAMPLE];
  for (size_t i = 0; i < j->n_sample; i++) {
    out[i] = NAN;
    if (source(j, k, j->sample[i][0], j->sample[i][1], pairs[n])) at[n++] = i;
  }
  if (judge_run(j, values, &e->p, model, type, (const size_t(*)[2])pairs, n)) return 0;
  for (size_t i = 0; i < n; i++) out[at[i]] = values[i];
  return 1;
}

/* Relative error of the sample, as root of the sum of squares; what is NaN in one alone counts as all wrong. */
static double error_of(const judge_job *j, const float *h) {
  double diff = 0, size = 0;
  size_t odd = 0;
  for (size_t i = 0; i < j->n_sample; i++) {
    const double d = (double)j->got[j->sample[i][0] * j->right.N + j->sample[i][1]], x = (double)h[i];
    if (judge_same(j, (float)d, h[i])) {
      size += isfinite(x) ? x * x : 0;
      continue;
    }
    if (!isfinite(d) || !isfinite(x)) {
      odd++;
      continue;
    }
    diff += (d - x) * (d - x);
    size += x * x;
  }
  if (odd * 8 > j->n_sample) return INFINITY;
  return size > 0 ? sqrt(diff / size) : diff > 0 ? INFINITY : 0;
}

static double rank_one(const judge_job *j, const variant *v, const variant *w) {
  edit e = {.p = j->right};
  float h[JUDGE_SAMPLE];
  double error = INFINITY;
  int f64 = 0;
  while (f64 + 1 < j->n_models && j->models[f64].id != MX_GEMM_F64) f64++;
  if (make(&e, j, v) && (!w || make(&e, j, w)) && evaluate(h, j, &e, v->kind, f64, MX_F32)) error = error_of(j, h);
  edit_free(&e);
  return error;
}

/* ---- to bits */

typedef struct rounding {
  const char *words;
  int type, mode, saturate, flush; /* type JUDGE_TYPES: that of D */
} rounding;
static const rounding roundings[] = {
    {"", JUDGE_TYPES, JUDGE_RNE, 0, 0},
    {"outputs beyond the range of %s saturate instead of becoming Inf", JUDGE_TYPES, JUDGE_RNE, 1, 0},
    {"subnormal outputs of %s are flushed to zero", JUDGE_TYPES, JUDGE_RNE, 0, 1},
    {"outputs are cut to %s (towards zero), not rounded", JUDGE_TYPES, JUDGE_RZ, 0, 0},
    {"ties of the rounding to %s go away from zero", JUDGE_TYPES, JUDGE_RNA, 0, 0},
    {"outputs are rounded to %s towards -Inf", JUDGE_TYPES, JUDGE_DOWN, 0, 0},
    {"outputs are rounded to %s towards +Inf", JUDGE_TYPES, JUDGE_UP, 0, 0},
    {"outputs went through %s", JUDGE_BF16, JUDGE_RNE, 0, 0},
    {"outputs went through %s", JUDGE_F16, JUDGE_RNE, 0, 0},
    {"outputs went through %s, cut towards zero", JUDGE_BF16, JUDGE_RZ, 0, 0},
    {"outputs went through %s, cut towards zero", JUDGE_F16, JUDGE_RZ, 0, 0},
};
enum { ROUNDINGS = sizeof roundings / sizeof roundings[0] };

static int own_type(const judge_job *j) { return j->type == MX_F16 ? JUDGE_F16 : j->type == MX_BF16 ? JUDGE_BF16 : JUDGE_F32; }
static float through(const judge_job *j, const rounding *r, float x) {
  const int own = own_type(j), type = r->type == JUDGE_TYPES ? own : r->type;
  const double y = judge_round(x, &judge_types[type], r->mode, r->saturate, r->flush);
  return (float)(type == own ? y : judge_round(y, &judge_types[own], JUDGE_RNE, 0, 0));
}

/* Wrong outputs of D that a variant, a model and a rounding give. */
static int count(uint64_t *explained, judge_job *j, const edit *e, kind k, int model, const rounding *r) {
  const size_t M = j->right.M, N = j->right.N;
  float *h = malloc((M * N + 1) * sizeof *h);
  if (!h || judge_run(j, h, &e->p, model, r ? MX_F32 : j->type, NULL, 0)) {
    free(h);
    return 0;
  }
  *explained = 0;
  for (size_t i = 0; i < M * N; i++) {
    size_t at[2];
    if (!j->wrong[i] || !source(j, k, i / N, i % N, at)) continue;
    const float x = h[at[0] * N + at[1]];
    *explained += (uint64_t)judge_same(j, j->got[i], r ? through(j, r, x) : x);
  }
  free(h);
  return 1;
}

static size_t matches(const judge_job *j, const float *h, const rounding *r) {
  size_t n = 0;
  for (size_t i = 0; i < j->n_sample; i++)
    n += (size_t)judge_same(j, j->got[j->sample[i][0] * j->right.N + j->sample[i][1]], r ? through(j, r, h[i]) : h[i]);
  return n;
}

static void name_rounding(char *out, size_t size, const judge_job *j, const rounding *r) {
  const char *type = judge_types[r->type == JUDGE_TYPES ? own_type(j) : r->type].name, *at = strstr(r->words, "%s");
  snprintf(out, size, "%.*s%s%s", (int)(at - r->words), r->words, type, at + 2);
}

/* Every model, then every rounding of its outputs. Returns whether a model gave (nearly) the whole sample, or a rounding all of it. */
static int to_bits(judge_job *j, const variant *v, const variant *w) {
  edit e = {.p = j->right};
  float h[JUDGE_SAMPLE];
  char text[200], more[120];
  int found = 0;
  if (!make(&e, j, v) || (w && !make(&e, j, w))) {
    edit_free(&e);
    return 0;
  }
  words(text, sizeof text, j, v);
  if (w) {
    words(more, sizeof more, j, w);
    snprintf(text + strlen(text), sizeof text - strlen(text), ", and %s", more);
  }
  uint64_t explained;
  const size_t enough = j->n_sample - j->n_sample / 16;
  int nearest = -1;
  size_t most = enough - 1;
  for (int m = 0; m < j->n_models && v->kind != SAME; m++) {
    const size_t n = evaluate(h, j, &e, v->kind, m, j->type) ? matches(j, h, NULL) : 0;
    if (n > most) most = n, nearest = m;
  }
  if (nearest >= 0 && count(&explained, j, &e, v->kind, nearest, NULL)) {
    judge_say(j, j->models[nearest].name, explained, "%s", text);
    found = 1;
  }
  for (int m = 0; m < j->n_models && !found && j->n_sample >= 4; m++) {
    if (!evaluate(h, j, &e, v->kind, m, MX_F32)) continue;
    for (size_t r = 1; r < ROUNDINGS && !found; r++)
      if (matches(j, h, &roundings[r]) == j->n_sample && count(&explained, j, &e, v->kind, m, &roundings[r])) {
        name_rounding(more, sizeof more, j, &roundings[r]);
        if (v->kind == SAME)
          judge_say(j, j->models[m].name, explained, "%s", more);
        else
          judge_say(j, j->models[m].name, explained, "%s, and %s", text, more);
        found = 1;
      }
  }
  edit_free(&e);
  return found;
}

/* No bits agree, but one variant is near and the product itself is not. */
static void to_rounding(judge_job *j, const variant *v, double alone) {
  char text[200];
  if (!(v->error < 0x1p-6) || !(v->error * 8 < alone)) return;
  edit e = {.p = j->right};
  const size_t n = j->right.M * j->right.N;
  float *h = malloc((n + 1) * sizeof *h);
  uint64_t explained = 0;
  int f64 = 0;
  while (f64 + 1 < j->n_models && j->models[f64].id != MX_GEMM_F64) f64++;
  if (h && make(&e, j, v) && !judge_run(j, h, &e.p, f64, MX_F32, NULL, 0)) {
    double size = 0;
    for (size_t i = 0; i < j->n_sample; i++) {
      const double x = (double)j->got[j->sample[i][0] * j->right.N + j->sample[i][1]];
      size += isfinite(x) ? x * x : 0;
    }
    size = sqrt(size / (double)j->n_sample);
    for (size_t i = 0; i < n; i++) {
      size_t at[2];
      if (!j->wrong[i] || !source(j, v->kind, i / j->right.N, i % j->right.N, at)) continue;
      explained += fabs((double)j->got[i] - (double)h[at[0] * j->right.N + at[1]]) <= 8 * v->error * size;
    }
    words(text, sizeof text, j, v);
    judge_say(j, "", explained, "%s", text);
  }
  edit_free(&e);
  free(h);
}

void judge_variants(judge_job *j) {
  list *l = calloc(1, sizeof *l);
  if (!l || !j->raw) {
    free(l);
    return;
  }
  const variant same = {SAME, 0, 0, 0};
  all_variants(l, j);
  variant best[BEST + 1];
  size_t n = 0;
  for (size_t i = 0; i < l->n; i++) {
    variant v = l->v[i];
    v.error = rank_one(j, &v, NULL);
    if (!(v.error < 0.5)) continue;
    size_t at = n < BEST ? n++ : BEST; /* insertion; equal errors stay in the order of the list */
    for (best[at] = v; at && best[at].error < best[at - 1].error; at--) {
      const variant keep_it = best[at];
      best[at] = best[at - 1];
      best[at - 1] = keep_it;
    }
  }
  const double alone = rank_one(j, &same, NULL);
  int found = to_bits(j, &same, NULL);
  for (size_t i = 0; i < n && i < BEST && j->out->n_findings < 3; i++)
    if (!(found && best[i].error > 0.01)) found |= to_bits(j, &best[i], NULL);
  /* Two at once: one of the operands or of D, and one of what follows the sum. */
  for (size_t i = 0; i < l->n && !found; i++)
    for (size_t k = 0; k < l->n && !found; k++) {
      const int ends = l->v[k].kind >= ALPHA_NONE && l->v[k].kind < D_TURNED, starts = l->v[i].kind < ALPHA_NONE || l->v[i].kind >= D_TURNED;
      if (!starts || !ends || l->v[i].kind == SCALE_ZERO_AT || l->v[i].kind == SCALE_TWO_AT) continue;
      if (rank_one(j, &l->v[i], &l->v[k]) < 0.01) found = to_bits(j, &l->v[i], &l->v[k]);
    }
  if (!found && n) to_rounding(j, &best[0], alone);
  if (!found && !j->out->n_findings) judge_factors(j, 0);
  if (!found && !j->out->n_findings) judge_factors(j, 1);
  free(l);
}
