/* Changes the right problem into a variant: with operands and scales of its own, another epilogue, or another place in D. */
#include "verify/judge/edits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void *keep(judge_edit *e, size_t n_bytes) {
  return (size_t)e->n_own < sizeof e->own / sizeof e->own[0] ? e->own[e->n_own++] = noted(calloc(n_bytes + 1, 1), e->lack) : NULL;
}

void mxi_judge_unmake(judge_edit *e) {
  for (int i = 0; i < e->n_own; i++) free(e->own[i]);
}

static size_t rows_of(const judge_job *j, int is_b) { return is_b ? j->right.N : j->right.M; }
static size_t kb_of(const judge_job *j) { return (j->right.K + j->right.block - 1) / j->right.block; }

size_t mxi_judge_order_at(judge_order order, size_t i, size_t n) {
  const size_t half = n / 2;
  switch (order) {
  case ORDER_REVERSED:
    return n - 1 - i;
  case ORDER_HALVES:
    return (i + half) % n;
  case ORDER_INTERLEAVED:
    return i / 2 + i % 2 * half;
  default:
    return i < half ? 2 * i : 2 * (i - half) + 1;
  }
}

/* Does the same to groups in all `all` places; an incomplete group at the end stays where it is. */
static size_t in_groups(size_t i, size_t all, size_t n) {
  const size_t group = n & 0xFFFFFFFF, first = i - i % group;
  return first + group <= all ? first + mxi_judge_order_at((judge_order)(n >> 32), i % group, group) : i;
}

size_t mxi_judge_move_at(size_t n, size_t b, size_t kb) {
  const size_t x = n & 0xFFFFF, y = n >> 20 & 0xFFFFF, by = x % kb, size = n >> 52 ? n >> 52 : 1;
  size_t to = b;
  switch ((judge_move)(n >> 40 & 0xFF)) {
  case MOVE_SWAP:
  case MOVE_COPY:
    if ((n >> 40 & 0xFF) == MOVE_SWAP && b >= y && b < y + size) to = x + b - y;
    if (b >= x && b < x + size) to = y + b - x;
    return to < kb ? to : b;
  case MOVE_XOR:
    return (b ^ x) < kb ? b ^ x : b;
  case MOVE_ROUND:
    return (b + (y ? kb - by : by)) % kb;
  case MOVE_STAY:
    return y ? (b < x ? b : b - x) : (b + x < kb ? b + x : b);
  case MOVE_REVERSED:
    return kb - 1 - b;
  default:
    return b % x;
  }
}

/* ---- scales */

static double scale_at(const mx_gemm_operand *x, size_t row, size_t b, size_t kb) {
  const size_t at = row * (x->scale_ld ? x->scale_ld : kb) + b, bytes = x->scale->bits <= 8 ? 1 : x->scale->bits <= 16 ? 2 : 4;
  uint32_t code = 0;
  memcpy(&code, (const uint8_t *)x->scales + at * bytes, bytes);
  const double v = mx_decode(x->scale, code);
  return x->scale_sign == MX_SCALE_SIGN_SIGNED ? v : fabs(v);
}

/* From which block does block b of row r take its scale? */
static void scale_from(size_t *r, size_t *b, const judge_variant *v, size_t rows, size_t kb) {
  const size_t flat = *r * kb + *b, row = *r, block = *b;
  switch (v->kind) {
  case SCALE_FIRST:
    *b = 0;
    break;
  case SCALE_NEXT_BLOCK:
  case SCALE_LAST_BLOCK: {
    const int next = v->kind == SCALE_NEXT_BLOCK, fits = v->n == 2 && (next ? flat + 1 < rows * kb : flat > 0);
    const size_t at = next ? flat + 1 : flat - 1;
    if (fits)
      *r = at / kb, *b = at % kb;
    else if (v->n == 0 && (next ? block + 1 < kb : block > 0))
      *b = next ? block + 1 : block - 1;
    break;
  }
  case SCALE_NEXT_ROW:
    if (row + 1 < rows || v->n) *r = (row + 1) % rows;
    break;
  case SCALE_LAST_ROW:
    if (row || v->n) *r = (row + rows - 1) % rows;
    break;
  case SCALE_ROWS_ORDER:
    *r = in_groups(row, rows, v->n);
    break;
  case SCALE_ROW_OF:
    *r = row - row % v->n;
    break;
  case SCALE_PAIRS:
    *b = v->n ? block - block % 2 : block / 2;
    break;
  case K_BLOCKS:
    *b = mxi_judge_move_at(v->n, block, kb);
    break;
  default:
    break;
  }
}

/* The float whose bits stand in the lower half. */
static double number_in(size_t n) {
  const uint32_t bits = (uint32_t)n;
  float x;
  memcpy(&x, &bits, sizeof x);
  return (double)x;
}

static double power_below(double w) { return w == 0 || !isfinite(w) ? w : copysign(ldexp(1, ilogb(w)), w); }

/* Copies the scales of one operand as numbers that may be changed. Returns 0 if it has none. */
static int rescale(judge_edit *e, const judge_job *j, int is_b, const judge_variant *v) {
  mx_gemm_operand *x = is_b ? &e->p.b : &e->p.a;
  const mx_gemm_operand *from = is_b ? &j->right.b : &j->right.a;
  const size_t rows = rows_of(j, is_b), kb = kb_of(j), first = v->n & 0xFFFFFFFF, end = v->n >> 32;
  if (!from->scale) return 0;
  float *s = keep(e, rows * kb * sizeof *s);
  if (!s) return 0;
  const int encode = from->scale_form == MX_SCALE_FORM_ENCODE;
  for (size_t r = 0; r < rows; r++) {
    if (e->rows[is_b] && !e->rows[is_b][r]) continue;
    for (size_t b = 0; b < kb; b++) {
      size_t row = r, block = b;
      scale_from(&row, &block, v, rows, kb);
      const double w = scale_at(from, row, block, kb);
      const int one = v->kind == SCALE_FACTOR && b == end, in = b >= first && b < end,
                lost = (v->kind == BLOCKS_LOST && in) || (v->kind == BLOCKS_ONLY && !in);
      s[r * kb + b] = (float)(lost                            ? encode ? (double)INFINITY : 0
                              : v->kind == BLOCKS_TWICE && in ? encode ? w / 2 : 2 * w
                              : v->kind == SCALE_TWICE        ? w * w
                              : v->kind == SCALE_ONE && in    ? 1
                              : one                           ? w * number_in(v->n)
                              : v->kind == SCALE_POWER        ? power_below(w)
                                                              : w);
    }
  }
  x->scale = mx_operand_format(MX_OPERAND_F32);
  x->scales = s;
  x->scale_ld = 0;
  x->scale_sign = MX_SCALE_SIGN_SIGNED;
  return 1;
}

static int relayout(judge_edit *e, const judge_job *j, int is_b, const judge_variant *v) {
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

/* A and B of different lengths: rows beyond the shorter one keep their own scales. */
static int swap_scales(judge_edit *e, const judge_job *j, const judge_variant *v) {
  const mx_gemm_operand *a = &j->right.a, *b = &j->right.b;
  const size_t M = j->right.M, N = j->right.N, kb = kb_of(j);
  if (!a->scale || a->scale != b->scale || a->scale_form != b->scale_form || a->scale_sign != b->scale_sign || (M == N && v->n)) return 0;
  for (int is_b = 0; is_b < 2; is_b++) {
    const mx_gemm_operand *own = is_b ? b : a, *other = is_b ? a : b;
    const size_t rows = is_b ? N : M, others = is_b ? M : N;
    mx_gemm_operand *x = is_b ? &e->p.b : &e->p.a;
    float *s = keep(e, rows * kb * sizeof *s);
    if (!s) return 0;
    for (size_t r = 0; r < rows; r++)
      for (size_t k = 0; k < kb; k++) s[r * kb + k] = (float)scale_at(r < others ? other : own, r, k, kb);
    x->scale = mx_operand_format(MX_OPERAND_F32);
    x->scales = s;
    x->scale_ld = 0;
    x->scale_sign = MX_SCALE_SIGN_SIGNED;
  }
  return 1;
}

/* ---- codes */

static size_t k_from(const judge_variant *v, size_t k, size_t K, size_t block) {
  const size_t low = v->n & 0xFFFFFFFF, high = v->n >> 32;
  size_t at = k;
  if (v->kind == ELEMENT_BITS || v->kind == CODE_ROWS_ORDER || v->kind == CODE_TILES) return k;
  if (v->kind == K_LOST) return (high == 2 ? k < low : (k % low >= low / 2) == (high == 1)) ? SIZE_MAX : k;
  if (v->kind == K_ORDER) {
    if (k - k % low + low > K) return k;
    return k - k % low + mxi_judge_order_at((judge_order)high, k % low, low);
  }
  at = mxi_judge_move_at(v->n, k / block, (K + block - 1) / block) * block + k % block;
  return at < K ? at : SIZE_MAX;
}

static uint8_t bits_of(uint8_t code, const mx_format *f, judge_bits what) {
  const unsigned sign = f->sign_bits ? 1u << (f->bits - 1) : 0, mantissa = (1u << f->man_bits) - 1;
  if (what == BITS_MAGNITUDE) return (uint8_t)(code & ~sign);
  if (what == BITS_SHORT) return f->man_bits ? (uint8_t)(code & ~1u) : code;
  return code & ~(sign | mantissa) ? code : (uint8_t)(code & sign);
}

/* Moves the codes of one operand along K, makes them zero, or changes their bits; one code a byte. */
static int gather(judge_edit *e, const judge_job *j, int is_b, const judge_variant *v) {
  mx_gemm_operand *x = is_b ? &e->p.b : &e->p.a;
  const size_t rows = rows_of(j, is_b), K = j->right.K, bytes = x->elem->bits <= 8 ? 1 : (size_t)x->elem->bits / 8, ld = x->ld ? x->ld : K;
  const int dense = x->packing == MX_PACK_DENSE && x->elem->bits == 4, high = x->nibble == MX_NIBBLE_HIGH_FIRST;
  if (x->elem->bits < 8 && x->packing == MX_PACK_DENSE && !dense) return 0;
  size_t *map = keep(e, K * sizeof *map), moved = 0;
  uint8_t *codes = keep(e, rows * K * bytes);
  if (!map || !codes) return 0;
  for (size_t k = 0; k < K; k++) moved += (map[k] = k_from(v, k, K, j->right.block)) != k;
  const int bits = v->kind == ELEMENT_BITS, tiles = v->kind == CODE_TILES, by_rows = tiles || v->kind == CODE_ROWS_ORDER;
  if (tiles && (rows % v->n || K % v->n)) return 0;
  if ((!moved && !bits && !by_rows) || (bits && (bytes > 1 || x->elem->kind != MX_KIND_FLOAT))) return 0;
  for (size_t r = 0; r < rows; r++) {
    if (e->rows[is_b] && !e->rows[is_b][r]) continue;
    uint8_t *to = codes + r * K * bytes;
    for (size_t k = 0; k < K; k++) {
      const size_t n = v->n, at = tiles ? k - k % n + r % n : map[k], row = tiles ? r - r % n + k % n : by_rows ? in_groups(r, rows, n) : r;
      const uint8_t *from = (const uint8_t *)x->data + (dense ? row * ((ld + 1) / 2) : row * ld * bytes);
      if (at == SIZE_MAX) continue;
      if (dense)
        to[k] = from[at / 2] >> ((at % 2 != 0) != high ? 4 : 0) & 15;
      else if (bytes == 1)
        to[k] = from[at];
      else
        memcpy(to + k * bytes, from + at * bytes, bytes);
      if (bits) to[k] = bits_of(to[k], x->elem, (judge_bits)v->n);
    }
  }
  x->data = codes;
  x->packing = MX_PACK_BYTES;
  x->ld = K;
  return 1;
}

/* Elements of one operand as numbers, with one magnitude of the table another one. Of 4 bits alone: longer tables have too many entries to be tried. */
static int retype(judge_edit *e, const judge_job *j, int is_b, size_t n) {
  mx_gemm_operand *x = is_b ? &e->p.b : &e->p.a;
  const size_t rows = rows_of(j, is_b), K = j->right.K, ld = x->ld ? x->ld : K;
  const int dense = x->packing == MX_PACK_DENSE, high = x->nibble == MX_NIBBLE_HIGH_FIRST;
  const mx_format *f = x->elem;
  if (f->bits != 4 || f->kind != MX_KIND_FLOAT || !f->sign_bits) return 0;
  float table[16], *numbers = keep(e, rows * K * sizeof *numbers);
  if (!numbers) return 0;
  for (uint32_t code = 0; code < 16; code++) {
    table[code] = (float)mx_decode(f, code);
    if ((code & 7) == (n & 7)) table[code] = (code & 8 ? -0.25F : 0.25F) * (float)(n >> 8);
    if ((code & 7) == (n & 7) && table[code] == (float)mx_decode(f, code)) return 0;
  }
  for (size_t r = 0; r < rows; r++) {
    const uint8_t *from = (const uint8_t *)x->data + (dense ? r * ((ld + 1) / 2) : r * ld);
    if (e->rows[is_b] && !e->rows[is_b][r]) continue;
    for (size_t k = 0; k < K; k++) numbers[r * K + k] = table[dense ? from[k / 2] >> ((k % 2 != 0) != high ? 4 : 0) & 15 : from[k] & 15];
  }
  x->elem = mx_operand_format(MX_OPERAND_F32);
  x->data = numbers;
  x->packing = MX_PACK_BYTES;
  x->ld = K;
  return 1;
}

/* Uses one operand in both places; rows beyond its own belong to nobody. */
static int one_for_both(judge_edit *e, const judge_job *j, int side) {
  const size_t M = j->right.M, N = j->right.N, kb = kb_of(j), own = side == 1 ? M : N, other = side == 1 ? N : M;
  mx_gemm_operand x = side == 1 ? e->p.a : e->p.b;
  const mx_gemm_operand *y = side == 1 ? &e->p.b : &e->p.a;
  const size_t ld = x.ld ? x.ld : j->right.K,
               line = x.packing == MX_PACK_DENSE && x.elem->bits == 4 ? (ld + 1) / 2 : ld * (x.elem->bits > 8 ? 4 : 1);
  if (!x.scale != !y->scale || x.elem->bits != y->elem->bits) return 0;
  if (own < other) { /* repeated, so that every row is somebody's; mxi_judge_source() leaves them out */
    uint8_t *codes = keep(e, other * line);
    float *s = x.scale ? keep(e, other * kb * sizeof *s) : NULL;
    if (!codes || (x.scale && !s)) return 0;
    for (size_t r = 0; r < other; r++) memcpy(codes + r * line, (const uint8_t *)x.data + r % own * line, line);
    for (size_t i = 0; s && i < other * kb; i++) s[i] = (float)scale_at(&x, i / kb % own, i % kb, kb);
    x.data = codes;
    if (s) {
      x.scale = mx_operand_format(MX_OPERAND_F32);
      x.scales = s;
      x.scale_ld = 0;
      x.scale_sign = MX_SCALE_SIGN_SIGNED;
    }
  }
  x.transposed = y->transposed;
  x.multiplier = y->multiplier;
  *(side == 1 ? &e->p.b : &e->p.a) = x;
  return 1;
}

static int edit_operand(judge_edit *e, const judge_job *j, int is_b, const judge_variant *v) {
  mx_gemm_operand *x = is_b ? &e->p.b : &e->p.a;
  const mx_format *format;
  switch (v->kind) {
  case SCALE_NONE:
    if (!x->scale) return 0;
    x->scale = NULL;
    return 1;
  case SCALE_AS:
    format = mx_scale_format((int)v->n);
    if (!x->scale || x->scale == format || x->scale->bits != format->bits) return 0;
    x->scale = format;
    return 1;
  case ELEMENT_AS:
    format = mx_elem_format((int)v->n);
    if (x->elem == format || x->elem->bits != format->bits || format->kind == MX_KIND_NONE || x->elem->bits > 8) return 0;
    x->elem = format;
    return 1;
  case TENSOR_NONE:
    if (!x->multiplier || *x->multiplier == 1) return 0;
    x->multiplier = NULL;
    return 1;
  case TENSOR_TWICE:
  case TENSOR_DIVIDED:
  case TENSOR_STORED:
    if (!x->multiplier || *x->multiplier == 1) return 0;
    e->number[is_b] = v->kind == TENSOR_TWICE     ? *x->multiplier * *x->multiplier
                      : v->kind == TENSOR_DIVIDED ? 1 / *x->multiplier
                                                  : (is_b ? j->b : j->a)->tensor_scale;
    if (e->number[is_b] == *x->multiplier) return 0;
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
  case SCALE_POWER:
    return x->scale && x->scale->man_bits && rescale(e, j, is_b, v);
  case ELEMENT_VALUE:
    return retype(e, j, is_b, v->n);
  case SCALE_TRANSPOSED:
  case SCALE_READ_AS:
  case SCALE_LEFT_IN:
    return relayout(e, j, is_b, v);
  case K_LOST:
  case K_ORDER:
  case ELEMENT_BITS:
  case CODE_ROWS_ORDER:
  case CODE_TILES:
    return gather(e, j, is_b, v);
  case K_BLOCKS:
    if ((v->n >> 48 & 15) != MOVE_CODES && x->scale && !rescale(e, j, is_b, v)) return 0;
    return (v->n >> 48 & 15) == MOVE_SCALES ? x->scale != NULL : gather(e, j, is_b, v);
  default:
    return rescale(e, j, is_b, v);
  }
}

/* ---- what follows the sum */

static int edit_bias(judge_edit *e, const judge_job *j, const judge_variant *v, float alpha, float beta) {
  mx_gemm_options *o = &e->p.options;
  const size_t n = o->bias_of_rows ? j->right.M : j->right.N, other = o->bias_of_rows ? j->right.N : j->right.M;
  if (!o->bias || (v->kind == BIAS_ALPHA && alpha == 1) || (v->kind == BIAS_BETA && (beta == 0 || beta == 1))) return 0;
  const size_t room = v->kind == BIAS_ROWS ? other : n;
  float *bias = keep(e, room * sizeof *bias);
  if (!bias) return 0;
  for (size_t i = 0; i < room; i++) {
    size_t at = i % n;
    if (v->kind == BIAS_NEXT && (i + 1 < n || !v->n)) at = (i + 1) % n;
    if (v->kind == BIAS_LAST && (i || !v->n)) at = (i + n - 1) % n;
    if (v->kind == BIAS_OF_TILE) at = i % v->n;
    if (v->kind == BIAS_ORDER) at = in_groups(i, n, v->n);
    if (v->kind == BIAS_TURNED) at = (i + v->n) % n;
    bias[i] = o->bias[at];
    if (v->kind == BIAS_TWICE) bias[i] *= 2;
    if (v->kind == BIAS_MINUS) bias[i] = -bias[i];
    if (v->kind == BIAS_ALPHA) bias[i] *= alpha;
    if (v->kind == BIAS_BETA) bias[i] *= beta;
  }
  o->bias = bias;
  if (v->kind == BIAS_ROWS) o->bias_of_rows = !o->bias_of_rows;
  return 1;
}

static int turn_c(judge_edit *e, const judge_job *j) {
  mx_gemm_options *o = &e->p.options;
  const size_t M = j->right.M, N = j->right.N, ldc = o->ldc ? o->ldc : N;
  float *c = keep(e, M * N * sizeof *c);
  if (!c) return 0;
  for (size_t r = 0; r < M; r++)
    for (size_t k = 0; k < N; k++) {
      const size_t flat = k * M + r; /* column-major */
      c[r * N + k] = mxi_judge_load(j->right.options.c, flat / N * ldc + flat % N, o->c_type);
    }
  o->c = c;
  o->c_type = MX_F32;
  o->ldc = N;
  return 1;
}

static int edit_epilogue(judge_edit *e, const judge_job *j, const judge_variant *v) {
  mx_gemm_options *o = &e->p.options;
  const float alpha = o->alpha ? *o->alpha : 1, beta = o->c ? o->beta ? *o->beta : 1 : 0;
  switch (v->kind) {
  case ALPHA_NONE:
    o->alpha = NULL;
    return alpha != 1;
  case PRODUCT_NONE:
    e->number[2] = 0;
    o->alpha = &e->number[2];
    return alpha != 0 && (beta != 0 || o->bias);
  case PRODUCT_TWICE:
    e->number[2] = 2 * alpha;
    o->alpha = &e->number[2];
    return alpha != 0;
  case ALPHA_TWICE:
  case ALPHA_INVERSE:
  case MINUS:
    e->number[2] = v->kind == ALPHA_TWICE ? alpha * alpha : v->kind == MINUS ? -alpha : 1 / alpha;
    o->alpha = &e->number[2];
    return alpha != 0 && (alpha != 1 || v->kind == MINUS);
  case ALPHA_ON_C:
  case ALPHA_ON_C_ALONE:
    e->number[3] = alpha * beta;
    o->beta = &e->number[3];
    if (v->kind == ALPHA_ON_C_ALONE) o->alpha = NULL;
    return beta != 0 && alpha != 1;
  case ALPHA_FOR_BETA:
    e->number[2] = beta;
    e->number[3] = alpha;
    o->alpha = &e->number[2];
    o->beta = &e->number[3];
    return beta != 0 && alpha != beta;
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
    return beta != 0 && turn_c(e, j);
  case BIAS_NONE:
    if (!o->bias) return 0;
    o->bias = NULL;
    return 1;
  default:
    return edit_bias(e, j, v, alpha, beta);
  }
}

static int edit_depth(judge_edit *e, const judge_job *j, const judge_variant *v) {
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

int mxi_judge_make(judge_edit *e, const judge_job *j, const judge_variant *v) {
  if (v->kind == SAME || v->kind >= D_TURNED) return 1;
  if (v->kind >= ALPHA_NONE) return edit_epilogue(e, j, v);
  if (v->kind == DEPTH || v->kind == FIRST_LOST) return edit_depth(e, j, v);
  if (v->kind == ONE_FOR_BOTH) return one_for_both(e, j, v->side);
  if (v->kind == SCALE_SWAPPED) return swap_scales(e, j, v);
  /* Losing or adding something twice in one operand has the same effect on the products as in both, so one operand is enough. */
  if (v->kind == BLOCKS_LOST || v->kind == BLOCKS_TWICE || v->kind == BLOCKS_ONLY) return edit_operand(e, j, !j->right.a.scale, v);
  if (v->kind == K_LOST) return edit_operand(e, j, 0, v);
  int made = 0;
  for (int is_b = 0; is_b < 2; is_b++)
    if (v->side >> is_b & 1) made += edit_operand(e, j, is_b, v) ? 1 : -2;
  return made > 0;
}

int mxi_judge_source(const judge_job *j, const judge_variant *v, size_t row, size_t col, size_t at[2]) {
  const size_t M = j->right.M, N = j->right.N, flat = row * N + col, n = v->n, low = n & 0xFFFFFFFF;
  const size_t bias = j->right.options.bias_of_rows ? M : N;
  at[0] = row, at[1] = col;
  switch (v->kind) {
  case SCALE_SWAPPED:
    return !n || (row < N && col < M);
  case ONE_FOR_BOTH:
    return v->side == 1 ? col < M : row < N;
  case BIAS_ROWS:
    return (j->right.options.bias_of_rows ? col : row) < bias;
  case D_TURNED:
    at[0] = flat % M, at[1] = flat / M;
    break;
  case D_ROW_UP:
    at[0]++;
    break;
  case D_ROW_DOWN:
    at[0]--; /* wraps beyond M */
    break;
  case D_COL_UP:
    at[1]++;
    break;
  case D_COL_DOWN:
    at[1]--;
    break;
  case D_TILES_TURNED:
    at[0] = row - row % n + col % n, at[1] = col - col % n + row % n;
    break;
  case D_GRID_TURNED: {
    const size_t tile = row / n * (N / n) + col / n;
    at[0] = tile % (M / n) * n + row % n, at[1] = tile / (M / n) * n + col % n;
    break;
  }
  case D_ROWS_ORDER:
    if (row - row % low + low <= M) at[0] = row - row % low + mxi_judge_order_at((judge_order)(n >> 32), row % low, low);
    break;
  case D_COLS_ORDER:
    if (col - col % low + low <= N) at[1] = col - col % low + mxi_judge_order_at((judge_order)(n >> 32), col % low, low);
    break;
  default:
    break;
  }
  return at[0] < M && at[1] < N;
}
