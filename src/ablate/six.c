/* Quantises the six operands of a linear layer, each along the reduction axis of its product, and measures the products. */
#include <stdlib.h>
#include <string.h>

#include "mxgold/ablate.h"
#include "mxgold/isa.h"

static float *transpose(const float *x, size_t rows, size_t cols) {
  float *t = malloc(rows * cols * sizeof *t + 1);
  if (!t) return NULL;
#pragma omp parallel for schedule(static) num_threads(mx_thread_count(0))
  for (size_t c = 0; c < cols; c++)
    for (size_t r = 0; r < rows; r++) t[c * rows + r] = x[r * cols + c];
  return t;
}

typedef struct operand {
  const float *at;
  size_t rows, cols; /* cols: the reduction axis */
} operand;

/* The three products have T * I * O terms each: a third of the work. */
typedef struct thirds {
  const mx_measure_options *options;
  int product;
} thirds;

static void third_done(void *self, double share) {
  const thirds *t = self;
  t->options->progress(t->options->progress_self, (t->product + share) / MX_SIX_PRODUCTS);
}

mx_status mx_six_measure(mx_six *out, const float *x, const float *w, const float *dy, size_t t, size_t i, size_t o, const mx_spec spec[6],
                         int model, const mx_measure_options *options, mx_error *err) {
  if (!out || !x || !w || !dy || !spec) return mx_fail(err, MX_ERR_ARG, "NULL argument");
  memset(out, 0, sizeof *out);
  float *wt = transpose(w, o, i), *dyt = transpose(dy, t, o), *xt = transpose(x, t, i);
  const operand q[6] = {{x, t, i}, {w, o, i}, {dy, t, o}, {wt, i, o}, {dyt, o, t}, {xt, i, t}};
  mx_status status = wt && dyt && xt ? MX_OK : mx_fail(err, MX_ERR_NOMEM, "no memory for transposed operands");
  mx_measure_options own = options ? *options : (mx_measure_options){0};
  own.unit_error = NULL;
  thirds done = {options, 0};
  if (own.progress) own.progress = third_done, own.progress_self = &done;
  mx_error why;
  for (int k = 0; k < 6 && !status; k++)
    if ((status = mx_measure_tensor(&out->q[k], q[k].at, q[k].rows, q[k].cols, &spec[k], &own, &why)))
      mx_fail(err, status, "Q%d: %s", k + 1, why.text);
  for (int p = 0; p < MX_SIX_PRODUCTS && !status; p++) {
    const operand *a = &q[2 * p], *b = &q[2 * p + 1];
    done.product = p;
    status =
        mx_product_split_measure(&out->product[p], a->at, b->at, a->rows, b->rows, a->cols, &spec[2 * p], &spec[2 * p + 1], model, &own, &why);
    if (status) mx_fail(err, status, "Q%d, Q%d: %s", 2 * p + 1, 2 * p + 2, why.text);
  }
  free(wt);
  free(dyt);
  free(xt);
  return status;
}
