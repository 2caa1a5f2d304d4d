/* Computes Smooth-SwiGLU (arXiv 2409.12517): a linear whose input's channels are scaled by powers of two, and its weight's columns by their
 * inverses. */
#include <math.h>

#include "train/layers/parallel.h"
#include "train/models/model.h"

enum { LEAST = -126, MOST = 126 }; /* exponents of a scale: it and its inverse are normal numbers */

/* 2^-floor(log2 of the largest magnitude) of each of x's I channels; 1 where that is 0 or not finite. */
static void scales_of(float *s, const float *x, size_t T, size_t I, const mx_exec *exec) {
#pragma omp parallel for schedule(static) num_threads(train_threads(exec, T *I))
  for (size_t i = 0; i < I; i++) {
    float most = 0;
    for (size_t t = 0; t < T; t++) {
      const float a = fabsf(x[t * I + i]);
      if (!(a <= most)) most = a;
    }
    int e = 0;
    if (isfinite(most) && most > 0) e = ilogbf(most);
    s[i] = ldexpf(1, -(e < LEAST ? LEAST : e > MOST ? MOST : e));
  }
}

/* out [rows][I] = x times s, or over s. */
static void scaled(float *out, const float *x, const float *s, size_t rows, size_t I, int over, const mx_exec *exec) {
#pragma omp parallel for schedule(static) num_threads(train_threads(exec, rows *I))
  for (size_t r = 0; r < rows; r++)
    for (size_t i = 0; i < I; i++) out[r * I + i] = over ? x[r * I + i] / s[i] : x[r * I + i] * s[i];
}

size_t mxi_smooth_floats(const mxi_model_linear *l) { return l->I + l->T * l->I + 2 * l->O * l->I; }

void mxi_smooth_forward(const mxi_model *m, size_t index, const float **x, const float **w) {
  const mxi_model_linear *l = &m->linears[index];
  float *s = l->smooth, *xs = s + l->I, *ws = xs + l->T * l->I;
  scales_of(s, *x, l->T, l->I, &m->exec);
  scaled(xs, *x, s, l->T, l->I, 0, &m->exec);
  scaled(ws, *w, s, l->O, l->I, 1, &m->exec);
  *x = xs;
  *w = ws;
}

float *mxi_smooth_gradient(const mxi_model *m, size_t index) {
  const mxi_model_linear *l = &m->linears[index];
  return l->smooth + l->I + l->T * l->I + l->O * l->I;
}

void mxi_smooth_backward(const mxi_model *m, size_t index, float *dx, float *dw) {
  const mxi_model_linear *l = &m->linears[index];
  const float *s = l->smooth, *ds = mxi_smooth_gradient(m, index);
  scaled(dx, dx, s, l->T, l->I, 0, &m->exec);
  for (size_t o = 0; o < l->O; o++)
    for (size_t i = 0; i < l->I; i++) dw[o * l->I + i] += ds[o * l->I + i] / s[i];
}
