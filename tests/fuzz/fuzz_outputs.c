/* Takes any bytes for the codes and scales that a kernel under test wrote, and compares them with others under specs of
 * every width; diff must accept all. */
#include <stdlib.h>
#include <string.h>

#include "mxgold/verify.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

#define MUST(what)                                                                                                                             \
  do {                                                                                                                                         \
    if (!(what)) abort();                                                                                                                      \
  } while (0)

static size_t take(uint8_t *to, size_t n, const uint8_t **data, size_t *n_bytes) {
  const size_t m = n < *n_bytes ? n : *n_bytes;
  memcpy(to, *data, m);
  *data += m;
  *n_bytes -= m;
  return m;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
  static const char *const keys[] = {"elem=e2m1",
                                     "elem=e2m1 nibble=high_first",
                                     "elem=e2m1 nibble=half_block block=1x16",
                                     "elem=e4m3",
                                     "elem=e5m2 scale=e4m3 block=1x16",
                                     "elem=e3m2 block=32x1",
                                     "elem=int8 scale=ue5m3",
                                     "elem=e4m3 scale=fp32 block=4x8",
                                     "elem=none",
                                     "elem=e2m1 scale.form=encode"};
  uint8_t head[4] = {0};
  take(head, sizeof head, &data, &n_bytes);
  mx_spec spec = {0};
  mx_tensor a, b;
  if (mx_spec_parse(&spec, keys[head[0] % (sizeof keys / sizeof keys[0])], NULL) || mx_spec_check(&spec, NULL)) return 0;
  const size_t rows = head[1] % 9, cols = head[2] % 70;
  MUST(!mx_tensor_alloc(&a, rows, cols, &spec) && !mx_tensor_alloc(&b, rows, cols, &spec));
  float *x = calloc(rows * cols + 1, sizeof *x);
  mx_difference *d = malloc(sizeof *d);
  MUST(x && d);
  const size_t n_codes = rows * a.code_stride, n_scales = a.scale_rows * a.scale_cols * a.scale_bytes;
  take(b.codes, n_codes, &data, &n_bytes);
  take(b.scales, n_scales, &data, &n_bytes);
  take(a.codes, n_codes, &data, &n_bytes);
  take(a.scales, n_scales, &data, &n_bytes);
  take((uint8_t *)x, rows * cols * sizeof *x, &data, &n_bytes);
  const mx_diff_options how = {.nan_bits = head[3] & 1, .equal_zeros = head[3] >> 1 & 1, .values = 1};
  MUST(!mx_diff(d, &a, &b, &spec, head[3] & 4 ? x : NULL, cols, NULL, NULL, &how, NULL));
  MUST(d->codes <= d->n_codes && d->scales <= d->n_scales && d->values <= d->n_values && d->n_patterns <= MX_DIFF_PATTERNS);
  MUST(d->equal == (!d->codes && !d->scales && !d->tensor_scales && !d->values));
  const int equal = d->equal;
  MUST(!mx_diff(d, &b, &a, &spec, NULL, 0, NULL, NULL, &how, NULL) && d->equal == equal);
  MUST(!mx_diff(d, &b, &b, &spec, NULL, 0, NULL, NULL, &how, NULL) && d->equal && !d->n_patterns);
  free(d);
  free(x);
  mx_tensor_free(&a);
  mx_tensor_free(&b);
  return 0;
}
