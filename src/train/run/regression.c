/* Draws a Gaussian regression: y = X w of normal X and w. */
#include <stdlib.h>

#include "mxgold/ablate.h"
#include "mxgold/dense.h"
#include "train/run/table.h"

mx_status mxi_regression_make(mxi_table *t, const mxi_config *c, const mx_exec *exec, mx_error *err) {
  const size_t n = t->n = c->data.rows, I = t->features = t->inputs = c->data.features;
  const mx_data normal = {.kind = MX_DATA_GAUSSIAN};
  size_t values;
  t->values = 1;
  if (n > UINT32_MAX || __builtin_mul_overflow(n, I, &values) || values > mxi_memory_of_machine() / sizeof(float))
    return mx_fail(err, MX_ERR_NOMEM, "no memory for %zu rows of %zu numbers", n, I);
  float *w = malloc(I * sizeof *w);
  t->x = malloc(values * sizeof *t->x);
  t->y = malloc(n * sizeof *t->y);
  /* One chain for each row, as in dense.h; rows are the outputs that a kernel takes side by side. */
  const mx_dense g = {.M = 1, .N = n, .K = I, .a = w, .a_row = I, .a_col = 1, .b = t->x, .b_row = I, .b_col = 1, .d = t->y, .ldd = n};
  void *room = malloc(mx_dense_workspace(&g, exec) + 1);
  mx_status status = MX_OK;
  if (!w || !t->x || !t->y || !room)
    status = mx_fail(err, MX_ERR_NOMEM, "no memory for %zu rows of %zu numbers", n, I);
  else {
    mx_data_fill_on(t->x, n, I, &normal, mxi_table_seed(c, 0, MXI_USE_FEATURES), exec);
    mx_data_fill_on(w, 1, I, &normal, mxi_table_seed(c, 0, MXI_USE_WEIGHTS), exec);
    status = mx_dense_gemm(&g, room, exec, err);
  }
  free(w);
  free(room);
  return status;
}
