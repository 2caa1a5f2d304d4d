/* Does a kernel do what is expected of it? Each sample is quantised again and its bytes are counted. */
#include "cli/verify/expect.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What a sample is compared with. */
typedef struct work {
  const mx_sample *s;
  const mx_tensor *t;
  const mx_spec *spec;
  size_t block_rows, block_cols, index;
  const uint8_t *nan; /* an entry a block: its scale is NaN, here and there */
  int any_nan;
} work;

static void note(unexpected *out, int first, const work *w, size_t row, size_t col) {
  if (first) out->sample = w->index, out->row = row, out->col = col;
}

/* Scales that differ; those that are NaN on both sides go into nan. */
static void count_scales(unexpected *out, work *w, uint8_t *nan) {
  const mx_tensor *t = w->t;
  const mx_format *format = mx_scale_format(w->spec->scale);
  const uint8_t *scales = w->s->scales;
  for (size_t k = 0; k < t->scale_rows * t->scale_cols; k++) {
    const uint8_t *seen = scales + k * t->scale_bytes, *made = t->scales + k * t->scale_bytes;
    int differ = memcmp(seen, made, t->scale_bytes) != 0;
    nan[k] = t->scale_bytes == 1 && isnan(mx_decode(format, *made)) && isnan(mx_decode(format, *seen));
    w->any_nan |= nan[k];
    differ &= !nan[k];
    if (differ) note(out, !out->scales && !out->codes, w, k / t->scale_cols * w->block_rows, k % t->scale_cols * w->block_cols);
    out->scales += (uint64_t)differ;
  }
  w->nan = nan;
}

static int is_excused(const work *w, size_t r, size_t c, uint8_t want, uint8_t got) {
  const mx_format *f = mx_elem_format(w->spec->elem);
  return (w->any_nan && w->nan[r / w->block_rows * w->t->scale_cols + c / w->block_cols]) ||
         (isnan(mx_decode(f, want)) && isnan(mx_decode(f, got)));
}

static void count_codes(unexpected *out, const work *w, uint8_t *row) {
  const mx_sample *s = w->s;
  const mx_tensor *t = w->t;
  const int four = mx_elem_format(w->spec->elem)->bits == 4;
  uint64_t codes = 0;
  for (size_t r = 0; r < s->rows; r++) {
    const uint8_t *want = t->codes + r * t->code_stride, *got = s->codes + r * s->cols;
    if (four) mx_unpack4(row, want, t->cols_padded, w->spec->nibble, w->block_cols), want = row;
    if (!memcmp(want, got, s->cols)) continue;
    for (size_t c = 0; c < s->cols; c++) {
      if (want[c] == got[c]) continue;
      if (is_excused(w, r, c, want[c], got[c])) {
        out->nan_codes++;
        continue;
      }
      note(out, !codes && !out->codes, w, r, c);
      codes++;
    }
  }
  out->codes += codes;
}

static void count_values(unexpected *out, const work *w, const float *made) {
  const mx_sample *s = w->s;
  uint64_t wrong = 0;
  for (size_t i = 0; i < s->rows * s->cols; i++) {
    if (!memcmp(&made[i], &s->values[i], sizeof *made) || (isnan(made[i]) && isnan(s->values[i]))) continue;
    note(out, !wrong && !out->codes, w, i / s->cols, i % s->cols);
    wrong++;
  }
  out->codes += wrong;
  out->n_codes += (uint64_t)s->rows * s->cols;
}

static int count(unexpected *out, work *w, int threads) {
  const mx_sample *s = w->s;
  const mx_tensor *t = w->t;
  mx_spec_block(w->spec, s->rows, s->cols, &w->block_rows, &w->block_cols);
  if (!s->codes) {
    float *made = malloc((s->rows * s->cols + 1) * sizeof *made);
    const int made_it = made && !mx_dequantize(made, s->cols, t, w->spec, &(mx_exec){.n_threads = threads});
    if (made_it) count_values(out, w, made);
    free(made);
    return made_it;
  }
  uint8_t *row = malloc(t->cols_padded + 1), *nan = malloc(t->scale_rows * t->scale_cols + 1);
  if (row && nan) {
    count_scales(out, w, nan);
    count_codes(out, w, row);
    const float made = t->has_tensor_scale ? t->tensor_scale : 1;
    out->tensor_scales += s->has_tensor_scale && made != s->tensor_scale && !(isnan(made) && isnan(s->tensor_scale));
    out->n_codes += (uint64_t)s->rows * s->cols;
    out->n_scales += (uint64_t)t->scale_rows * t->scale_cols;
  }
  const int counted = row && nan;
  free(row);
  free(nan);
  return counted;
}

int expect_count(unexpected *out, const samples *s, const mx_spec *spec, const mx_fault *faults, size_t n, int threads) {
  *out = (unexpected){0};
  for (size_t i = 0; i < s->n; i++) {
    const mx_sample *m = &s->at[i];
    mx_tensor t = {0};
    mx_error err = {0};
    if (mx_elem_format(spec->elem)->bits > 8 || (!m->codes && !m->values)) return CLI_DIFFERS;
    mx_status status = mx_tensor_alloc(&t, m->rows, m->cols, spec);
    if (!status && m->codes && (t.scale_rows != m->scale_rows || t.scale_cols != m->scale_cols || t.scale_bytes != m->scale_bytes)) {
      mx_tensor_free(&t);
      return CLI_DIFFERS;
    }
    if (!status && n) status = mx_quantize_faulty(&t, m->x, m->rows, m->cols, m->ld, spec, faults, n, &err);
    if (!status && !n) status = mx_quantize(&t, m->x, m->rows, m->cols, m->ld, spec, &(mx_exec){.n_threads = threads}, &err);
    const int counted = !status && count(out, &(work){.s = m, .t = &t, .spec = spec, .index = i}, threads);
    mx_tensor_free(&t);
    if (status) return *err.text ? cli_fail(&err) : cli_error("identify: %s", mx_status_text(status));
    if (!counted) return cli_error("identify: out of memory");
  }
  return CLI_FINE;
}
