/* Counts how many values differ, where codes or scales do. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/dispatch.h"
#include "verify/diff/diff.h"

int mxi_diff_same_float(float a, float b, const mx_diff_options *o) {
  if (!o->nan_bits && isnan(a) && isnan(b)) return 1;
  if (o->equal_zeros && a == 0 && b == 0) return 1;
  return !memcmp(&a, &b, sizeof a);
}

/* What a code of A or B stands for under a scale, if that is known for all of them. */
static float meaning(const diff_job *j, int side, uint32_t scale, uint32_t code) { return j->values[side][scale << j->elem->bits | code]; }

int mxi_diff_same_value(const diff_job *j, const uint32_t code[2], const uint32_t scale[2]) {
  return mxi_diff_same_float(meaning(j, 0, scale[0], code[0]), meaning(j, 1, scale[1], code[1]), &j->how);
}

/* The values of all codes under all one-byte scales, by mx_dequantize() itself; without memory, or if code and scale alone do not decide a value,
 * blocks are dequantised one at a time. */
float *mxi_diff_meanings(const diff_job *j, const mx_tensor *of) {
  if (!j->how.values || j->elem->bits > 8 || j->elem->kind == MX_KIND_NONE || of->micro || of->scale_bytes != 1) return NULL;
  const size_t n = (size_t)1 << j->elem->bits;
  mx_spec spec = *j->spec;
  mx_tensor t = {0};
  float *values = malloc(256 * n * sizeof *values);
  spec.block_rows = 1;
  spec.block_cols = (int)n;
  spec.nibble = MX_NIBBLE_LOW_FIRST;
  mx_status status = !values ? MX_ERR_NOMEM : mx_spec_check(&spec, NULL) ? MX_ERR_ARG : mx_tensor_alloc(&t, 256, n, &spec);
  for (size_t s = 0; s < 256 && !status; s++) {
    uint8_t *row = t.codes + s * t.code_stride;
    for (size_t c = 0; c < n; c++)
      if (j->elem->bits > 4)
        row[c] = (uint8_t)c;
      else if (c % 2 == 0)
        row[c / 2] = (uint8_t)(c | (c + 1) << 4);
    t.scales[s] = (uint8_t)s;
  }
  t.has_tensor_scale = of->has_tensor_scale;
  t.tensor_scale = of->tensor_scale;
  if (!status) status = mx_dequantize(values, n, &t, &spec, &(mx_exec){.n_threads = 1});
  mx_tensor_free(&t);
  if (!status) return values;
  free(values);
  return NULL;
}

/* Which pairs of 4-bit codes stand for the same value, for a pair of one-byte scales. */
typedef struct same_values {
  const mx_differ_kernels *k;
  uint16_t *set_of; /* [scale of A][scale of B], 0: not yet known */
  uint8_t *sets;
  size_t n;
  uint16_t *set; /* of the units of a row */
} same_values;

/* Blocks whose bytes differ, gathered as the rows of two small tensors and dequantised together. */
enum { GATHER = 1 << 16 }; /* elements, about: fewer call mx_dequantize() too often, more leave the cache */
struct diff_gather {
  mx_tensor t[2];
  mx_spec spec;
  size_t n, room, width;
  uint32_t *cols; /* of each: the last block of a row may be short */
  float *values;
  same_values same;
};

void mxi_diff_values_free(diff_job *j) {
  diff_gather *g = j->gather;
  if (!g) return;
  mx_tensor_free(&g->t[0]);
  mx_tensor_free(&g->t[1]);
  free(g->cols);
  free(g->values);
  free(g->same.set_of);
  free(g->same.sets);
  free(g->same.set);
  free(g);
  j->gather = NULL;
}

mx_status mxi_diff_values_start(diff_job *j) {
  diff_gather *g = j->gather = calloc(1, sizeof *g);
  if (!g) return MX_ERR_NOMEM;
  g->width = j->block_cols < j->a->cols ? j->block_cols : j->a->cols;
  if (j->block_cols == 1) g->width = j->a->cols; /* blocks of one column: whole rows */
  if (!g->width) g->width = 1;
  g->room = GATHER / g->width + 1;
  g->spec = *j->spec;
  g->spec.block_rows = 1;
  g->spec.block_cols = (int)j->block_cols;
  mx_status status = mx_tensor_alloc(&g->t[0], g->room, g->width, &g->spec);
  if (!status) status = mx_tensor_alloc(&g->t[1], g->room, g->width, &g->spec);
  g->cols = malloc((g->room + 1) * sizeof *g->cols);
  g->values = malloc((2 * g->room * g->width + 1) * sizeof *g->values);
  g->t[0].tensor_scale = j->a->tensor_scale;
  g->t[1].tensor_scale = j->b->tensor_scale;
  return status ? status : g->cols && g->values ? MX_OK : MX_ERR_NOMEM;
}

mx_status mxi_diff_values_flush(diff_job *j) {
  diff_gather *g = j->gather;
  if (!g->n) return MX_OK;
  const mx_exec alone = {.n_threads = 1};
  mx_status status = MX_OK;
  for (int side = 0; side < 2 && !status; side++) {
    const mx_tensor t = mx_tensor_rows(&g->t[side], 0, g->n, 1);
    status = mx_dequantize(g->values + (size_t)side * g->room * g->width, g->width, &t, &g->spec, &alone);
  }
  for (size_t i = 0; i < g->n && !status; i++)
    for (size_t c = 0; c < g->cols[i]; c++) {
      const size_t at = i * g->width + c;
      j->out->values += !mxi_diff_same_float(g->values[at], g->values[g->room * g->width + at], &j->how);
    }
  g->n = 0;
  return status;
}

/* Block b of a row; with blocks of one column the whole row. */
static mx_status gather_block(diff_job *j, size_t row, size_t b) {
  diff_gather *g = j->gather;
  const size_t from_col = b * j->block_cols, past = from_col + j->block_cols < j->a->cols ? from_col + j->block_cols : j->a->cols;
  if (j->values[0]) {
    const uint32_t scale[2] = {diff_scale(j, j->a, row, from_col), diff_scale(j, j->b, row, from_col)};
    for (size_t c = from_col; c < past; c++) {
      const uint32_t code[2] = {diff_code(j, j->a, row, c), diff_code(j, j->b, row, c)};
      j->out->values += !mxi_diff_same_value(j, code, scale);
    }
    return MX_OK;
  }
  const size_t c = b * j->block_cols, cols = j->a->cols - c < g->width ? j->a->cols - c : g->width,
               bytes = j->elem->kind == MX_KIND_NONE ? 4 * c
                       : j->elem->bits == 4          ? c / 2
                                                     : c,
               scale = (j->a->scale_rows == j->a->rows ? row : row / j->block_rows) * j->a->scale_cols + b;
  const mx_tensor *from[2] = {j->a, j->b};
  for (int side = 0; side < 2; side++) {
    mx_tensor *t = &g->t[side];
    const size_t left = t->code_stride < j->a->code_stride - bytes ? t->code_stride : j->a->code_stride - bytes;
    memcpy(t->codes + g->n * t->code_stride, diff_row(j, from[side], row) + bytes, left);
    memcpy(t->scales + g->n * t->scale_cols * t->scale_bytes, diff_scales(j, from[side], scale), t->scale_cols * t->scale_bytes);
    if (t->micro && from[side]->micro) memcpy(t->micro + g->n * t->scale_cols * 3, from[side]->micro + scale * 3, t->scale_cols * 3);
  }
  g->cols[g->n++] = (uint32_t)cols;
  return g->n == g->room ? mxi_diff_values_flush(j) : MX_OK;
}

/* ---- 4-bit codes of many blocks at once */

/* How many pairs of scales have a set of pairs of codes that stand for the same value; blocks of further pairs of scales are dequantised. */
enum { SAME_SETS = 4096, NOTHING = 0 };

/* The set of two scales in the form that kernels/differ.h takes: pairs of codes that stand for the same value. NOTHING is the set without pairs,
 * for blocks that are left out. Returns -1 once there are too many sets. */
static int set_of(diff_job *j, uint32_t scale_a, uint32_t scale_b) {
  same_values *m = &j->gather->same;
  uint16_t *known = &m->set_of[scale_a << 8 | scale_b];
  if (*known) return *known;
  if (m->n == SAME_SETS) return -1;
  *known = (uint16_t)m->n++;
  uint8_t *set = m->sets + (size_t)*known * MX_DIFFER_SET;
  const uint32_t scale[2] = {scale_a, scale_b};
  memset(set, 0, MX_DIFFER_SET);
  for (uint32_t a = 0; a < 16; a++)
    for (uint32_t b = 0; b < 16; b++) {
      const uint32_t code[2] = {a, b};
      if (mxi_diff_same_value(j, code, scale)) set[16 * (b >> 3) + a] |= (uint8_t)(1u << (b & 7));
    }
  return *known;
}

static int start_same(const diff_job *j, same_values *m, size_t n_units) {
  if (m->sets) return 1;
  m->set_of = calloc(256 * 256, sizeof *m->set_of);
  m->sets = malloc((size_t)SAME_SETS * MX_DIFFER_SET);
  m->set = malloc((n_units + 1) * sizeof *m->set);
  if (!m->set_of || !m->sets || !m->set) { /* blocks are then looked at one by one */
    free(m->set_of);
    free(m->sets);
    free(m->set);
    m->set_of = m->set = NULL;
    m->sets = NULL;
    return 0;
  }
  memset(m->sets, 0, MX_DIFFER_SET);
  m->n = 1;
  m->k = mxi_kernels_for(0)->differ;
  return j->a->cols != 0;
}

/* Counts the values of the marked whole blocks of a row, and returns how many blocks these were; 0 if they have to be counted one by one. */
static size_t many_blocks(diff_job *j, size_t row) {
  if (!j->values[0] || j->elem->bits != 4 || j->spec->nibble == MX_NIBBLE_HALF_BLOCK || j->block_shift < 4) return 0;
  same_values *m = &j->gather->same;
  const size_t block_bytes = j->block_cols / 2, n_blocks = j->a->cols / j->block_cols, bytes = n_blocks * block_bytes;
  const unsigned unit = block_bytes < 16 ? (unsigned)block_bytes : 16;
  const size_t first = (j->a->scale_rows == j->a->rows ? row : row / j->block_rows) * j->a->scale_cols;
  if (!memchr(j->block_moved, 1, n_blocks)) return n_blocks;
  if (!start_same(j, m, bytes / unit)) return 0;
  const uint8_t *scale_a = diff_scales(j, j->a, first), *scale_b = diff_scales(j, j->b, first);
  size_t asked = 0, at = 0, b = 0;
  if (unit == block_bytes && !memchr(j->block_moved, 0, n_blocks)) { /* all of them, under scales that are known */
    for (; b < n_blocks && (m->set[b] = m->set_of[(size_t)scale_a[b] << 8 | scale_b[b]]) != NOTHING; b++) continue;
    asked = at = b;
  }
  for (; b < n_blocks; b++) {
    const int set = j->block_moved[b] ? set_of(j, scale_a[b], scale_b[b]) : NOTHING;
    if (set < 0) return 0;
    asked += j->block_moved[b] != 0;
    for (size_t i = 0; i < block_bytes; i += unit) m->set[at++] = (uint16_t)set;
  }
  if (asked)
    j->out->values += asked * j->block_cols - m->k->members(diff_row(j, j->a, row), diff_row(j, j->b, row), bytes, m->sets, m->set, unit);
  return n_blocks;
}

/* Values of the blocks of a row whose bytes differ. */
mx_status mxi_diff_values_row(diff_job *j, size_t row) {
  const size_t n_blocks = j->a->scale_cols;
  mx_status status = MX_OK;
  for (size_t b = many_blocks(j, row); b < n_blocks && !status; b++) {
    uint64_t eight = 1;
    if (b + 8 <= n_blocks) memcpy(&eight, j->block_moved + b, 8);
    if (!eight) b += 7;
    if (!eight || !j->block_moved[b]) continue;
    if (j->block_cols == 1 && !j->values[0]) return gather_block(j, row, 0);
    status = gather_block(j, row, b);
  }
  return status;
}
