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

/* Both operands of a product, each along its reduction axis. What is not that way in memory is transposed into turned[], which the caller frees. */
static int operands_of(operand q[2], float *turned[2], int product, const float *x, const float *w, const float *dy, size_t t, size_t i,
                       size_t o) {
  switch (product) {
  case MX_SIX_FPROP:
    q[0] = (operand){x, t, i};
    q[1] = (operand){w, o, i};
    return 1;
  case MX_SIX_DGRAD:
    turned[1] = transpose(w, o, i);
    q[0] = (operand){dy, t, o};
    q[1] = (operand){turned[1], i, o};
    return turned[1] != NULL;
  default:
    turned[0] = transpose(dy, t, o);
    turned[1] = transpose(x, t, i);
    q[0] = (operand){turned[0], o, t};
    q[1] = (operand){turned[1], i, t};
    return turned[0] && turned[1];
  }
}

mx_status mx_six_product_measure(mx_measure q[2], mx_product_split *out, int product, const float *x, const float *w, const float *dy, size_t t,
                                 size_t i, size_t o, const mx_spec spec[2], int model, const mx_measure_options *options, mx_error *err) {
  if (!q || !out || !x || !w || !dy || !spec) return mx_fail(err, MX_ERR_ARG, "NULL argument");
  if (product < 0 || product >= MX_SIX_PRODUCTS) return mx_fail(err, MX_ERR_ARG, "there is no product %d of a linear layer", product);
  operand side[2];
  float *turned[2] = {NULL, NULL};
  mx_status status =
      operands_of(side, turned, product, x, w, dy, t, i, o) ? MX_OK : mx_fail(err, MX_ERR_NOMEM, "no memory for transposed operands");
  mx_measure_options own = options ? *options : (mx_measure_options){0};
  own.unit_error = NULL;
  mx_error why;
  for (int k = 0; k < 2 && !status; k++)
    if ((status = mx_measure_tensor(&q[k], side[k].at, side[k].rows, side[k].cols, &spec[k], &own, &why)))
      mx_fail(err, status, "Q%d: %s", 2 * product + k + 1, why.text);
  if (!status && (status = mx_product_split_measure(out, side[0].at, side[1].at, side[0].rows, side[1].rows, side[0].cols, &spec[0], &spec[1],
                                                    model, &own, &why)))
    mx_fail(err, status, "Q%d, Q%d: %s", 2 * product + 1, 2 * product + 2, why.text);
  free(turned[0]);
  free(turned[1]);
  return status;
}

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
  mx_measure_options own = options ? *options : (mx_measure_options){0};
  thirds done = {options, 0};
  if (own.progress) own.progress = third_done, own.progress_self = &done;
  mx_status status = MX_OK;
  for (; done.product < MX_SIX_PRODUCTS && !status; done.product++)
    status = mx_six_product_measure(&out->q[2 * done.product], &out->product[done.product], done.product, x, w, dy, t, i, o,
                                    &spec[2 * done.product], model, &own, err);
  return status;
}
