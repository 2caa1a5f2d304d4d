/* Corrects the scales of a group under select=eden (MS-EDEN): elements are rounded to nearest, and a stochastically rounded factor on the
 * scale makes up for the bias of that. SPEC 3.6. */
#include "kernels/block/eden.h"

#include <math.h>
#include <string.h>

#include "mxgold/random.h"

size_t mxi_eden_group(const mx_plan *p) {
  if (p->spec.select != MX_SELECT_EDEN) return 1;
  return p->spec.eden_group ? p->spec.eden_group : p->block_cols;
}

enum { LANES = 16 };

/* Partial sums, each over the elements whose index in the group has the same remainder. */
typedef struct sums {
  double zz[LANES], zq[LANES];
} sums;

/* The scaled values z of a block in binary32. A zero stays zero under any scale. */
static void scaled_values(float *z, const mx_plan *p, const mx_block_scale *b, const float *x, size_t n) {
  const mx_spec *s = &p->spec;
  if (b->how == MX_BY_CHAIN) { /* as mxi_scaled_value(), except for the sign of a NaN, since no NaN is used */
    memcpy(z, x, n * sizeof *z);
    for (int k = 0; k < p->chain->element.n; k++)
      for (size_t i = 0; i < n; i++) z[i] = p->chain->element.op[k] == '*' ? z[i] * b->factor[k] : z[i] / b->factor[k];
  } else if (b->how == MX_BY_NUMBER && s->elem_arith == MX_ELEM_ARITH_EXACT && p->norm == 1 && p->g == 1 && s->elem_prescale == 0 &&
             s->input_dtype == MX_INPUT_DTYPE_FLOAT32) {
    const float used = (float)b->used; /* exact, since the scale has at most eight bits */
    for (size_t i = 0; i < n; i++) z[i] = x[i] / used;
  } else {
    for (size_t i = 0; i < n; i++) z[i] = (float)mxi_scaled_value(p, b, x[i]);
  }
  for (size_t i = 0; i < n; i++)
    if (x[i] == 0) z[i] = 0;
}

/* Products of z with itself and with values of codes are exact in binary64. first: the index of z[0] in the group. */
static void add(sums *t, const float *z, const float *q, size_t n, size_t first) {
  size_t i = 0;
  if (first % LANES == 0)
    for (; i + LANES <= n; i += LANES)
      for (size_t k = 0; k < LANES; k++) {
        t->zz[k] += (double)z[i + k] * (double)z[i + k];
        t->zq[k] += (double)z[i + k] * (double)q[i + k];
      }
  for (; i < n; i++) {
    t->zz[(first + i) % LANES] += (double)z[i] * (double)z[i];
    t->zq[(first + i) % LANES] += (double)z[i] * (double)q[i];
  }
}

static double total(double *lane) {
  for (size_t distance = LANES / 2; distance; distance /= 2)
    for (size_t k = 0; k < distance; k++) lane[k] += lane[k + distance];
  return lane[0];
}

static int is_positive(double v) { return v > 0 && v < INFINITY; }

void mxi_eden_correct(uint32_t *scales, const mx_plan *p, const float *x, const uint8_t *codes, size_t n, size_t n_blocks, uint64_t index) {
  static const mx_encoding stochastic = {.round = MX_ROUND_SR, .sr_mode = MX_SR_FASTEST, .sr_bits = 24};
  const size_t block = p->block_cols;
  float z[MX_EDEN_GROUP], q[MX_EDEN_GROUP], value[MX_EDEN_GROUP];
  sums t = {0};
  for (size_t b = 0; b < n_blocks; b++) {
    const size_t first = b * block, here = n - first < block ? n - first : block;
    mx_block_scale scale;
    mxi_block_scale_given(&scale, p, scales[b]);
    value[b] = scale.sf;
    if (!is_positive((double)scale.sf)) continue;
    scaled_values(z, p, &scale, x + first, here);
    for (size_t i = 0; i < here; i++) q[i] = p->values[codes[first + i]];
    add(&t, z, q, here, first);
  }
  const double factor = total(t.zz) / total(t.zq);
  if (!is_positive(factor)) return;
  for (size_t b = 0; b < n_blocks; b++)
    if (is_positive((double)value[b]))
      scales[b] =
          (uint32_t)mx_encode(p->scale, factor * (double)value[b], &stochastic, mx_random(p->spec.seed, MX_STREAM_SCALE, index + b) >> 8);
}
