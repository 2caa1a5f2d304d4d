/* Reads the common options of products. */
#include "product.h"

#include <math.h>
#include <stdlib.h>

const char *product_types(size_t index) {
  static const char *names[] = {"f32", "bf16", "f16", NULL};
  return names[index];
}

static int is_finite(const char *command, const char *name, const cli_f32 *factor) {
  if (!factor->given || isfinite(factor->v)) return CLI_FINE;
  return cli_error("%s: --%s %g: expected a finite number", command, name, (double)factor->v);
}

int product_factors(const char *command, const product_form *p) {
  if (p->beta.given && !p->c) return cli_error("%s: --beta without --c", command);
  if (is_finite(command, "alpha", &p->alpha)) return CLI_TROUBLE;
  return is_finite(command, "beta", &p->beta);
}

float *product_bias(mx_file **file, const char *path, size_t cols) {
  const mx_array *bias;
  mx_error err;
  float *values = NULL;
  if (mx_tensor_open(file, &bias, path, &err))
    cli_fail(&err);
  else if (bias->n_values != cols)
    cli_error("%s: %llu values, expected one for each of the %zu columns", path, (unsigned long long)bias->n_values, cols);
  else if (!(values = malloc(cols * sizeof *values + 1)))
    cli_error("%s: no memory", path);
  else if (mx_array_read_f32(values, bias, 0, cols, 0)) {
    cli_error("%s: dtype is %s, expected f32, f16 or bf16", path, mx_dtype_name(bias->dtype));
    free(values);
    values = NULL;
  }
  return values;
}
