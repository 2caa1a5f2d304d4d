/* Defines the measurements that the sections share. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reproduce.h"

int repeats = 16;

static void need(mx_status status, const mx_error *err) {
  if (!status) return;
  fprintf(stderr, "reproduce: %s\n", err->text);
  exit(2);
}

mx_spec spec_of(const char *text) {
  mx_spec s = {0};
  mx_error err;
  const size_t word = strcspn(text, " ");
  if (!memchr(text, '=', word) && word) {
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)word, text);
    need(mx_preset_find(&s, name, &err), &err);
    text += word;
  }
  need(mx_spec_parse(&s, text, &err), &err);
  need(mx_spec_check(&s, &err), &err);
  return s;
}

double mean_sqnr(double *spread, const char *data, size_t rows, size_t cols, const char *text, int n_seeds) {
  const mx_spec spec = spec_of(text);
  mx_data d;
  mx_error err;
  need(mx_data_parse(&d, data, &err), &err);
  float *x = malloc(rows * cols * sizeof *x);
  mx_measure *m = malloc(sizeof *m);
  if (!x || !m) abort();
  double sum = 0, squares = 0;
  for (int seed = 0; seed < n_seeds; seed++) {
    const mx_measure_options once = {.repeats = 1};
    mx_data_fill(x, rows, cols, &d, (uint64_t)seed);
    need(mx_measure_tensor(m, x, rows, cols, &spec, &once, &err), &err);
    const double sqnr = mx_sqnr(&m->sums);
    sum += sqnr;
    squares += sqnr * sqnr;
  }
  free(x);
  free(m);
  const double mean = sum / n_seeds, variance = (squares - n_seeds * mean * mean) / (n_seeds - 1);
  if (spread) *spread = variance > 0 ? sqrt(variance) : 0;
  return mean;
}

double sqnr_of(const float *x, size_t rows, size_t cols, const char *text) {
  const mx_spec spec = spec_of(text);
  mx_error err;
  float *y = malloc(rows * cols * sizeof *y);
  if (!y) abort();
  need(mx_fake_quantize(y, x, rows, cols, &spec, NULL, NULL, &err), &err);
  mx_error_sums e = {0};
  mx_error_sums_add(&e, x, y, rows * cols, 0);
  free(y);
  return mx_sqnr(&e);
}

void through(float *out, const float *x, size_t n, const char *text) {
  const mx_spec s = spec_of(text);
  mx_error err;
  need(mx_fake_quantize(out, x, 1, n, &s, NULL, NULL, &err), &err);
}

double scale_of(const float *x, size_t n, const char *text) {
  const mx_spec s = spec_of(text);
  mx_tensor t;
  mx_error err;
  if (mx_tensor_alloc(&t, 1, n, &s)) abort();
  need(mx_quantize(&t, x, 1, n, n, &s, NULL, &err), &err);
  uint64_t code = 0;
  for (size_t i = 0; i < t.scale_bytes; i++) code |= (uint64_t)t.scales[i] << 8 * i;
  const double v = mx_decode(mx_scale_format(s.scale), code);
  mx_tensor_free(&t);
  return s.scale_form == MX_SCALE_FORM_ENCODE ? 1 / v : v;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
const char *list_text(char *room, size_t size, const float *x, size_t n, const char *format) {
  size_t used = (size_t)snprintf(room, size, "[");
  for (size_t i = 0; i < n && used < size; i++) {
    if (i) used += (size_t)snprintf(room + used, size - used, " ");
    if (used < size) used += (size_t)snprintf(room + used, size - used, format, (double)x[i]);
  }
  if (used < size) snprintf(room + used, size - used, "]");
  return room;
}
#pragma GCC diagnostic pop
