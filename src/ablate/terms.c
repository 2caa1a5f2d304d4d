/* Splits the error of block quantisation into five terms: scale, dead zone, grid, and the two where these meet. TECHNIQUES 2.4. */
#include <math.h>

#include "mxgold/ablate.h"

enum { MOST_VALUES = 128 };

/* The finite values of an element format that are not negative, ascending. */
typedef struct grid {
  double value[MOST_VALUES];
  int n;
} grid;

static int grid_of(grid *g, const mx_format *f) {
  g->n = 0;
  if (f->kind == MX_KIND_NONE || f->bits > 8) return 0;
  const uint64_t codes = (uint64_t)1 << (f->bits - f->sign_bits);
  for (uint64_t code = 0; code < codes && g->n < MOST_VALUES; code++) {
    const double v = mx_decode(f, code);
    if (!isfinite(v) || (g->n && !(v > g->value[g->n - 1]))) break;
    g->value[g->n++] = v;
  }
  return g->n > 1 && g->value[0] == 0;
}

/* The value nearest to a >= 0, of two the one with the even code. */
static double nearest(const grid *g, double a) {
  int low = 0, high = g->n - 1;
  if (a >= g->value[high]) return g->value[high];
  while (high - low > 1) {
    const int mid = (low + high) / 2;
    *(a >= g->value[mid] ? &low : &high) = mid;
  }
  const double below = a - g->value[low], above = g->value[high] - a;
  return below < above || (below == above && low % 2 == 0) ? g->value[low] : g->value[high];
}

typedef struct block {
  const float *x, *y; /* its first values */
  size_t rows, cols, ld;
} block;

/* The largest |x|, -1 if the block holds a value that is not finite. */
static double largest(const block *b) {
  double most = 0;
  for (size_t r = 0; r < b->rows; r++)
    for (size_t c = 0; c < b->cols; c++) {
      const double x = fabs((double)b->x[r * b->ld + c]);
      if (!isfinite(x) || !isfinite(b->y[r * b->ld + c])) return -1;
      most = x > most ? x : most;
    }
  return most;
}

static void add_block(mx_error_terms *t, const block *b, const grid *g) {
  const double most = largest(b), top = g->value[g->n - 1];
  if (most < 0) {
    t->n_left_out += b->rows * b->cols;
    return;
  }
  for (size_t r = 0; r < b->rows; r++)
    for (size_t c = 0; c < b->cols; c++) {
      const double x = (double)b->x[r * b->ld + c], y = (double)b->y[r * b->ld + c];
      const double q = most > 0 ? nearest(g, fabs(x) * top / most) : 0, ideal = copysign(q * most / top, x);
      const double scale = y - ideal, rest = ideal - x;
      t->n++;
      t->xx += x * x;
      t->total += (y - x) * (y - x);
      t->scale += scale * scale;
      *(q == 0 ? &t->dead : &t->grid) += rest * rest;
      *(q == 0 ? &t->scale_dead : &t->scale_grid) += 2 * scale * rest;
      t->n_dead += q == 0;
    }
}

mx_status mx_error_terms_add(mx_error_terms *terms, const float *x, const float *y, size_t rows, size_t cols, const mx_spec *spec) {
  grid g;
  if (!terms || !spec || ((!x || !y) && rows && cols)) return MX_ERR_ARG;
  if (spec->scale_rule == MX_SCALE_RULE_HIF4 || !grid_of(&g, mx_elem_format(spec->elem))) return MX_ERR_UNSUPPORTED;
  size_t tall, wide;
  mx_spec_block(spec, rows, cols, &tall, &wide);
  for (size_t r = 0; r < rows; r += tall)
    for (size_t c = 0; c < cols; c += wide) {
      const block b = {x + r * cols + c, y + r * cols + c, rows - r < tall ? rows - r : tall, cols - c < wide ? cols - c : wide, cols};
      add_block(terms, &b, &g);
    }
  return MX_OK;
}
