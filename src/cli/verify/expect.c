/* Did a kernel do what was expected of it? Each sample is quantised again and its bytes are counted. */
#include "cli/verify/expect.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void count(unexpected *out, const mx_sample *s, const mx_tensor *t, const mx_spec *spec, uint8_t *row) {
  const int four = mx_elem_format(spec->elem)->bits == 4;
  size_t block_rows, block_cols;
  mx_spec_block(spec, s->rows, s->cols, &block_rows, &block_cols);
  for (size_t r = 0; r < s->rows; r++) {
    const uint8_t *want = t->codes + r * t->code_stride, *got = s->codes + r * s->cols;
    if (four) mx_unpack4(row, want, t->cols_padded, spec->nibble, block_cols), want = row;
    if (!memcmp(want, got, s->cols)) continue;
    for (size_t c = 0; c < s->cols; c++) out->codes += want[c] != got[c];
  }
  const uint8_t *scales = s->scales;
  for (size_t k = 0; k < t->scale_rows * t->scale_cols; k++)
    out->scales += memcmp(scales + k * t->scale_bytes, t->scales + k * t->scale_bytes, t->scale_bytes) != 0;
  const float made = t->has_tensor_scale ? t->tensor_scale : 1;
  out->tensor_scales += s->has_tensor_scale && made != s->tensor_scale && !(isnan(made) && isnan(s->tensor_scale));
  out->n_codes += (uint64_t)s->rows * s->cols;
  out->n_scales += (uint64_t)t->scale_rows * t->scale_cols;
}

int expect_count(unexpected *out, const samples *s, const mx_spec *spec, const mx_fault *faults, size_t n, int threads) {
  *out = (unexpected){0};
  for (size_t i = 0; i < s->n; i++) {
    const mx_sample *m = &s->at[i];
    mx_tensor t = {0};
    mx_error err = {0};
    if (!m->codes || !m->scales) return CLI_DIFFERS;
    mx_status status = mx_tensor_alloc(&t, m->rows, m->cols, spec);
    if (!status && (t.scale_rows != m->scale_rows || t.scale_cols != m->scale_cols || t.scale_bytes != m->scale_bytes)) {
      mx_tensor_free(&t);
      return CLI_DIFFERS;
    }
    if (!status && n) status = mx_quantize_faulty(&t, m->x, m->rows, m->cols, m->ld, spec, faults, n, &err);
    if (!status && !n) status = mx_quantize(&t, m->x, m->rows, m->cols, m->ld, spec, &(mx_exec){.n_threads = threads}, &err);
    uint8_t *row = status ? NULL : malloc(t.cols_padded + 1);
    if (row) count(out, m, &t, spec, row);
    free(row);
    mx_tensor_free(&t);
    if (status) return *err.text ? cli_fail(&err) : cli_error("identify: --expect: %s", mx_status_text(status));
    if (!row) return cli_error("identify: out of memory");
  }
  return CLI_FINE;
}
