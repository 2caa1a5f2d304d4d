/* Prints histograms and the error of a quantised matrix. */
#include "inspect_quantized.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mxgold/ablate.h"
#include "mxgold/layout.h"
#include "cli/base/tensor_io.h"

/* Magnitudes by binade: every exponent of binary32, and what has none. */
enum { LOWEST = -149, HIGHEST = 127, ZERO = HIGHEST - LOWEST + 1, INFINITE, NOT_A_NUMBER, N_BINS };
typedef struct histogram {
  uint64_t n[N_BINS], total;
} histogram;

static void count(histogram *h, double v) {
  h->total++;
  h->n[isnan(v) ? NOT_A_NUMBER : isinf(v) ? INFINITE : v == 0 ? ZERO : ilogb(v) - LOWEST]++;
}

/* Share of all in percent, and a bar by the fullest bin. */
static void shares(out *o, uint64_t n, uint64_t total, uint64_t most) {
  out_u64(o, "count", n);
  out_f64(o, "percent", total ? 100.0 * (double)n / (double)total : 0, "%.2f");
  out_bar(o, "share of the fullest", most ? (double)n / (double)most : 0);
}

static void print_binades(out *o, const char *table, const char *column, const histogram *h) {
  uint64_t most = 0;
  for (int b = 0; b < N_BINS; b++)
    if (h->n[b] > most) most = h->n[b];
  out_table(o, table);
  for (int i = 0; i < N_BINS; i++) {
    const int b = i == 0 ? ZERO : i <= ZERO ? i - 1 : i; /* zero comes first */
    if (!h->n[b]) continue;
    char name[32];
    if (b < ZERO) snprintf(name, sizeof name, "2^%d", b + LOWEST);
    out_row(o);
    out_text(o, column, b == ZERO ? "0" : b == INFINITE ? "inf" : b == NOT_A_NUMBER ? "nan" : name);
    shares(o, h->n[b], h->total, most);
  }
  out_end(o);
}

static void print_codes(out *o, const mx_format *f, const uint64_t n[16]) {
  uint64_t most = 0, total = 0;
  for (int c = 0; c < 16; c++) {
    total += n[c];
    if (n[c] > most) most = n[c];
  }
  out_table(o, "codes");
  for (uint32_t c = 0; c < 16; c++) {
    char code[8];
    snprintf(code, sizeof code, "0x%X", c);
    out_row(o);
    out_text(o, "code", code);
    out_f64(o, "value", mx_decode(f, c), "%g");
    shares(o, n[c], total, most);
  }
  out_end(o);
}

static void codes_of_4_bits(out *o, const mx_quantized *q) {
  const mx_tensor *t = &q->tensor;
  size_t block_rows, block;
  mx_spec_block(&q->spec, t->rows, t->cols, &block_rows, &block);
  uint8_t *codes = malloc(t->cols_padded + 1);
  uint64_t n[16] = {0};
  for (size_t r = 0; codes && r < t->rows; r++) {
    mx_unpack4(codes, t->codes + r * t->code_stride, t->cols_padded, q->spec.nibble, block);
    for (size_t c = 0; c < t->cols; c++) n[codes[c]]++;
  }
  free(codes);
  print_codes(o, mx_elem_format(q->spec.elem), n);
}

static uint32_t number_at(const uint8_t *p, size_t bytes, size_t index) {
  uint32_t v = 0;
  memcpy(&v, p + index * bytes, bytes);
  return v;
}

static void wide_codes(out *o, const mx_quantized *q) {
  const mx_tensor *t = &q->tensor;
  const mx_format *f = mx_elem_format(q->spec.elem);
  const size_t bytes = f->bits > 8 ? 4 : 1;
  histogram h = {0};
  for (size_t r = 0; r < t->rows; r++)
    for (size_t c = 0; c < t->cols; c++) count(&h, mx_decode(f, number_at(t->codes + r * t->code_stride, bytes, c)));
  print_binades(o, "codes", "magnitude from", &h);
}

void inspect_histograms(out *o, const mx_quantized *q) {
  const mx_tensor *t = &q->tensor;
  const mx_format *scale = mx_scale_format(q->spec.scale);
  histogram h = {0};
  if (mx_elem_format(q->spec.elem)->bits == 4)
    codes_of_4_bits(o, q);
  else
    wide_codes(o, q);
  for (size_t i = 0; i < t->scale_rows * t->scale_cols; i++) count(&h, mx_decode(scale, number_at(t->scales, t->scale_bytes, i)));
  print_binades(o, "scales", "scale from", &h);
}

/* Band by band of whole blocks; x is rotated as it was before it was quantised. */
static int sum_errors(mx_error_sums *e, const mx_quantized *q, const input *in) {
  const mx_tensor *t = &q->tensor;
  size_t block_rows, block_cols;
  mx_spec_block(&q->spec, t->rows, t->cols, &block_rows, &block_cols);
  float *x = malloc(block_rows * t->cols * sizeof *x + 1), *y = malloc(block_rows * t->cols * sizeof *y + 1);
  int rc = x && y ? CLI_FINE : cli_error("%s: no memory for %zu rows", in->path, block_rows);
  for (size_t r = 0; r < t->rows && !rc; r += block_rows) {
    const size_t n = t->rows - r < block_rows ? t->rows - r : block_rows;
    const mx_tensor part = mx_tensor_rows(t, r, n, block_rows);
    const float *from;
    mx_error err;
    mx_status status = input_at(&from, in, x, (uint64_t)r * t->cols, (uint64_t)n * t->cols, &err);
    if (status) {
      rc = cli_fail(&err);
      break;
    }
    if (q->spec.had_size)
      status = mx_hadamard(x, t->cols, from, n, t->cols, t->cols, q->spec.had_size, q->spec.had_sign, q->spec.had_signs, q->spec.seed);
    if (!status) status = mx_dequantize(y, t->cols, &part, &q->spec, NULL);
    if (status)
      rc = cli_error("%s: %s", in->path, mx_status_text(status));
    else
      mx_error_sums_add(e, q->spec.had_size ? x : from, y, n * t->cols, 0);
  }
  free(x);
  free(y);
  return rc;
}

int inspect_error(out *o, const mx_quantized *q, const char *path, const input_form *form) {
  input in;
  size_t rows, cols;
  mx_error_sums e = {0};
  if (input_open(&in, path, form, MX_BY_READING)) return CLI_TROUBLE;
  int rc = CLI_FINE;
  if (!mx_matrix_of(&rows, &cols, in.array->shape, in.array->n_dims) || rows != q->tensor.rows || cols != q->tensor.cols)
    rc = cli_error("%s: another shape than what was quantised, expected %zu x %zu", path, q->tensor.rows, q->tensor.cols);
  if (!rc) rc = sum_errors(&e, q, &in);
  input_close(&in);
  if (rc) return rc;
  out_object(o, "error");
  out_text(o, "input", path);
  out_f64(o, "sqnr dB", mx_sqnr(&e), "%.4f");
  out_f64(o, "mean square", mx_mse(&e), "%.6g");
  out_f64(o, "largest", e.max_error, "%.6g");
  out_u64(o, "values", e.n);
  out_u64(o, "not finite", e.n_nan + e.n_inf + e.n_spoiled);
  out_end(o);
  return CLI_FINE;
}
