/* Computes the block-scaled products of gfx950 for a whole wave: it turns registers into matrices, calls mx_mma(), and turns D back into
 * registers. */
#include "host.h"

#include <string.h>

enum { M_MAX = 32, K_MAX = 128, BLOCKS_MAX = 4 };

typedef struct matrices {
  int m, depth, blocks, type[2];
  uint8_t code[2][M_MAX][K_MAX]; /* of A and of B, row by row */
  uint8_t packed[2][M_MAX * K_MAX];
  uint8_t scale[2][M_MAX][BLOCKS_MAX];
  uint32_t c[M_MAX][M_MAX], d[M_MAX][M_MAX];
} matrices;

static const int elem_of[] = {MX_ELEM_E4M3, MX_ELEM_E5M2, MX_ELEM_E2M3, MX_ELEM_E3M2, MX_ELEM_E2M1};

static void gather(matrices *q, const gfx950_mfma_in *in) {
  q->m = (int)in[0].m;
  q->depth = gfx950_depth(q->m);
  q->blocks = q->depth / 32;
  q->type[0] = (int)in[0].cbsz;
  q->type[1] = (int)in[0].blgp;
  for (int lane = 0; lane < 64; lane++) {
    for (int side = 0; side < 2; side++) {
      const uint32_t *words = side ? in[lane].b : in[lane].a;
      for (int i = 0; i < 32; i++) {
        int row, k;
        gfx950_operand_of(q->m, q->type[side], lane, i, &row, &k);
        const int bits = gfx950_bits(q->type[side]); /* the elements of a lane follow each other */
        q->code[side][row][k] = (uint8_t)gfx950_field(words, bits * i, bits);
      }
      const uint32_t byte = side ? in[0].select / 4 : in[0].select % 4;
      q->scale[side][lane % q->m][lane / q->m] = (uint8_t)((side ? in[lane].scale_b : in[lane].scale_a) >> 8 * byte);
    }
    for (int reg = 0; reg < gfx950_result_regs(q->m); reg++) {
      int row, col;
      gfx950_result_of(q->m, lane, reg, &row, &col);
      q->c[row][col] = in[lane].c[reg];
    }
  }
  for (int side = 0; side < 2; side++)
    for (int row = 0; row < q->m; row++)
      for (int k = 0; k < q->depth; k++) {
        const uint8_t code = q->code[side][row][k];
        uint8_t *p = q->packed[side];
        if (gfx950_bits(q->type[side]) > 4)
          p[row * q->depth + k] = code;
        else if (k % 2 == 0)
          p[(row * q->depth + k) / 2] = code;
        else
          p[(row * q->depth + k) / 2] |= (uint8_t)(code << 4);
      }
}

static size_t row_bytes(const matrices *q, int side, int row) { return (size_t)(row * q->depth) / (gfx950_bits(q->type[side]) > 4 ? 1 : 2); }

/* D of the rows from row0 and the columns from col0 on, with scales given as [rows][blocks]. */
static void product(uint32_t *d, const matrices *q, const gfx950_rules *rules, int row0, int rows, int col0, int cols, const uint8_t *scale_a,
                    const uint8_t *scale_b, const uint32_t *c) {
  mx_mma_model model;
  memset(&model, 0, sizeof model);
  model.accum = rules->accum[gfx950_pair(q->m, q->type[0], q->type[1])];
  if (model.accum.L >= q->depth)
    model.accum.L = 0; /* a group is at most as long as the instruction: 128 products of 16x16x128 become the 64 of 32x32x64 */
  model.a = mx_elem_format(elem_of[q->type[0]]);
  model.b = mx_elem_format(elem_of[q->type[1]]);
  model.c = model.d = mx_operand_format(MX_OPERAND_F32);
  model.scale = mx_scale_format(MX_SCALE_E8M0);
  model.block = 32;
  model.k = q->depth;
  const mx_mma_args args = {
      1, (size_t)rows, (size_t)cols, (size_t)q->depth, q->packed[0] + row_bytes(q, 0, row0), q->packed[1] + row_bytes(q, 1, col0),
      c, scale_a,      scale_b};
  const mx_exec one = {.n_threads = 1};
  if (mx_mma(d, &model, &args, &one, NULL) != MX_OK) memset(d, 0xFF, sizeof *d * (size_t)(rows * cols)); /* these rules do not make a model */
}

static int is_zero(int type, uint8_t code) { return (code & ((1u << (gfx950_bits(type) - 1)) - 1)) == 0; }
static int is_nan(uint32_t f) { return (f & 0x7FFFFFFF) > 0x7F800000; }
static int is_inf(uint32_t f) { return (f & 0x7FFFFFFF) == 0x7F800000; }
static int inf_in_row(const matrices *q, int side, int row) {
  for (int k = 0; k < q->depth; k++)
    if (q->type[side] == GFX950_E5M2 && (q->code[side][row][k] & 0x7F) == 0x7C) return 1;
  return 0;
}

/* One output that a NaN scale affects, under rules that do not simply make it NaN. */
static uint32_t with_nan_scale(const matrices *q, const gfx950_rules *rules, int row, int col) {
  uint8_t scale[2][BLOCKS_MAX];
  uint32_t d;
  for (int block = 0; block < q->blocks; block++) {
    uint8_t *a = &scale[0][block], *b = &scale[1][block];
    *a = q->scale[0][row][block];
    *b = q->scale[1][col][block];
    if (*a != 0xFF && *b != 0xFF) continue;
    if (rules->mfma_scale_ff == GFX950_mfma_scale_ff_SKIP_ZERO) {
      int all_zero = 1;
      for (int k = 32 * block; k < 32 * block + 32; k++)
        if (!is_zero(q->type[0], q->code[0][row][k]) && !is_zero(q->type[1], q->code[1][col][k])) all_zero = 0;
      if (all_zero) *a = *b = 127;
    } else { /* 2^128 is taken as 2^127 and twice the other scale */
      if (*a == 0xFF) *a = 0xFE, *b = (uint8_t)(*b < 0xFE ? *b + 1 : *b);
      if (*b == 0xFF) *b = 0xFE, *a = (uint8_t)(*a < 0xFE ? *a + 1 : *a);
    }
  }
  product(&d, q, rules, row, 1, col, 1, scale[0], scale[1], &q->c[row][col]);
  return d;
}

void gfx950_mfma(const gfx950_mfma_in *in, gfx950_mfma_out *out) {
  const gfx950_rules *rules = in[0].env.rules;
  matrices q;
  uint8_t scale[2][M_MAX * BLOCKS_MAX];
  uint32_t c[M_MAX * M_MAX], d[M_MAX * M_MAX];
  int nan_scale[2][M_MAX] = {{0}};
  gather(&q, in);
  for (int row = 0; row < q.m; row++)
    for (int col = 0; col < q.m; col++) c[row * q.m + col] = q.c[row][col];
  for (int side = 0; side < 2; side++)
    for (int row = 0; row < q.m; row++)
      for (int block = 0; block < q.blocks; block++) {
        scale[side][row * q.blocks + block] = q.scale[side][row][block];
        nan_scale[side][row] |= q.scale[side][row][block] == 0xFF;
      }
  product(d, &q, rules, 0, q.m, 0, q.m, scale[0], scale[1], c);
  for (int row = 0; row < q.m; row++)
    for (int col = 0; col < q.m; col++) {
      uint32_t *at = &d[row * q.m + col];
      if (rules->mfma_scale_ff != GFX950_mfma_scale_ff_NAN && (nan_scale[0][row] || nan_scale[1][col]))
        *at = with_nan_scale(&q, rules, row, col);
      if (is_nan(*at)) {
        const uint32_t from = q.c[row][col];
        *at = rules->mfma_nan == GFX950_mfma_nan_ONES                ? 0x7FFFFFFF
              : rules->mfma_nan == GFX950_mfma_nan_C && is_nan(from) ? from | 0x400000
                                                                     : 0x7FC00000;
      } else if (is_inf(*at) && rules->mfma_overflow == GFX950_mfma_overflow_MODE && in[0].env.mode & GFX950_MODE_OVFL &&
                 !is_inf(q.c[row][col]) && !inf_in_row(&q, 0, row) && !inf_in_row(&q, 1, col))
        *at = (*at & 0x80000000) | 0x7F7FFFFF;
      q.d[row][col] = *at;
    }
  for (int lane = 0; lane < 64; lane++)
    for (int reg = 0; reg < 16; reg++) {
      int row, col;
      gfx950_result_of(q.m, lane, reg % gfx950_result_regs(q.m), &row, &col);
      out[lane].d[reg] = q.d[row][col];
    }
}
