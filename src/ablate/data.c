/* Generates tensors for ablations from named distributions and a seed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ablate/sums/real.h"
#include "mxgold/ablate.h"
#include "mxgold/isa.h"
#include "mxgold/nearest.h"
#include "mxgold/random.h"

static const struct {
  const char *name, *doc;
  int n_params;
  double param[2];
} kinds[] = {
#define X(id, name, n, a, b, doc) {name, doc, n, {a, b}},
    MX_DATA_KINDS(X)
#undef X
};

/* A tensor draws its own values, its rows and its columns from three separate streams of random numbers. */
static const uint64_t rows_from = (uint64_t)1 << 62, cols_from = (uint64_t)1 << 63;

const char *mx_data_name(int kind) { return kind >= 0 && kind < MX_DATA_COUNT ? kinds[kind].name : NULL; }
const char *mx_data_doc(int kind) { return kind >= 0 && kind < MX_DATA_COUNT ? kinds[kind].doc : NULL; }
static const char *name_at(const void *set, size_t index) {
  (void)set;
  return index < MX_DATA_COUNT ? kinds[index].name : NULL;
}

static int parameters_fit(const mx_data *d) {
  switch (d->kind) {
  case MX_DATA_STUDENT:
    return d->param[0] >= 1 && d->param[0] <= 64 && d->param[0] == floor(d->param[0]);
  case MX_DATA_ROWS:
    return d->param[0] >= 0 && d->param[0] <= 10;
  case MX_DATA_OUTLIERS:
    return d->param[0] >= 0 && d->param[0] <= 1 && d->param[1] > 0 && d->param[1] <= 1e6;
  default:
    return 1;
  }
}

mx_status mx_data_parse(mx_data *out, const char *text, mx_error *err) {
  const size_t n = strcspn(text, ":");
  char name[32];
  snprintf(name, sizeof name, "%.*s", (int)(n < 31 ? n : 31), text);
  mx_data d = {.kind = MX_DATA_COUNT};
  for (int k = 0; k < MX_DATA_COUNT; k++)
    if (!strcmp(kinds[k].name, name)) d.kind = k;
  if (d.kind == MX_DATA_COUNT) {
    char near[128];
    mx_nearest(near, sizeof near, name, name_at, NULL);
    return mx_fail(err, MX_ERR_KEY, "generator '%s' is unknown, nearest: %s", name, near);
  }
  memcpy(d.param, kinds[d.kind].param, sizeof d.param);
  const char *at = text + n;
  int i = 0;
  for (; *at == ':' && i < kinds[d.kind].n_params; i++) {
    char *end;
    d.param[i] = strtod(at + 1, &end);
    if (end == at + 1) break;
    at = end;
  }
  if (*at || !parameters_fit(&d)) return mx_fail(err, MX_ERR_ARG, "generator '%.60s': expected %s: %s", text, name, kinds[d.kind].doc);
  *out = d;
  return MX_OK;
}

/* (0, 1), symmetric about 1/2: 2^32 midpoints. */
static double uniform(uint64_t seed, uint64_t index) { return ((double)mx_random(seed, MX_STREAM_DATA, index) + 0.5) * 0x1p-32; }
static double normal(uint64_t seed, uint64_t index) { return mxi_real_normal(uniform(seed, index)); }

static double laplace(uint64_t seed, uint64_t index) {
  const double u = uniform(seed, index);
  return u < 0.5 ? mxi_real_ln(2 * u) : -mxi_real_ln(2 - 2 * u);
}

static double student(uint64_t seed, uint64_t index, int nu) {
  const uint64_t first = index * (uint64_t)(nu + 1);
  double sum = 0;
  for (int i = 1; i <= nu; i++) {
    const double z = normal(seed, first + (uint64_t)i);
    sum += z * z;
  }
  return normal(seed, first) / sqrt(sum / nu);
}

static double value(const mx_data *d, uint64_t seed, uint64_t i) {
  switch (d->kind) {
  case MX_DATA_UNIFORM:
    return 2 * uniform(seed, i) - 1;
  case MX_DATA_LAPLACE:
    return laplace(seed, i);
  case MX_DATA_STUDENT:
    return student(seed, i, (int)d->param[0]);
  default:
    return normal(seed, i);
  }
}

enum { VALUES_A_THREAD = 1 << 14 };

void mx_data_fill_on(float *out, size_t rows, size_t cols, const mx_data *d, uint64_t seed, const mx_exec *exec) {
  const int most = mx_thread_count(exec ? exec->n_threads : 0);
  const size_t worth = rows * cols / VALUES_A_THREAD + 1;
#pragma omp parallel for schedule(static) num_threads(worth < (size_t)most ? (int)worth : most)
  for (size_t r = 0; r < rows; r++) {
    const double row = d->kind == MX_DATA_ROWS ? mxi_real_exp(d->param[0] * normal(seed, rows_from + r)) : 1;
    for (size_t c = 0; c < cols; c++) {
      double x = value(d, seed, (uint64_t)r * cols + c) * row;
      if (d->kind == MX_DATA_OUTLIERS && uniform(seed, cols_from + c) < d->param[0]) x *= d->param[1];
      out[r * cols + c] = (float)x;
    }
  }
}

void mx_data_fill(float *out, size_t rows, size_t cols, const mx_data *d, uint64_t seed) { mx_data_fill_on(out, rows, cols, d, seed, NULL); }
