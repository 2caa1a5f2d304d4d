/* Measures the error of one tensor under one spec. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mxgold/ablate.h"
#include "mxgold/isa.h"
#include "mxgold/random.h"

enum { UNIT = 64 };

size_t mx_unit_first(size_t u, size_t n_units, size_t n) {
  const size_t whole = n / UNIT >= n_units ? UNIT : 1;
  if (u >= n_units) return n;
  return (size_t)((unsigned __int128)(n / whole) * u / n_units) * whole;
}

/* The sums of each unit are kept apart, so that it does not matter in which order threads finish. */
static void add_units(double *unit, size_t n_units, const float *x, const float *y, size_t n, double weight, int n_threads) {
#pragma omp parallel for schedule(static) num_threads(mx_thread_count(n_threads))
  for (size_t u = 0; u < n_units; u++) {
    double sum = 0;
    for (size_t i = mx_unit_first(u, n_units, n), end = mx_unit_first(u + 1, n_units, n); i < end; i++) {
      const double e = (double)x[i] - (double)y[i];
      if (isfinite(e))
        sum += e * e;
      else if (isfinite(x[i])) /* spoiled: lost */
        sum += (double)x[i] * (double)x[i];
    }
    unit[u] += sum * weight;
  }
}

/* ||mean - x||^2 holds 1 / R of the random part's energy; with total = ||y_r - x||^2 averaged, fixed = (R mean - total) / (R - 1). */
static double bias_of(const mx_error_sums *all, double mean_ee, int repeats) {
  if (!(all->xx > 0)) return 0;
  const double total = all->ee / repeats, xx = all->xx / repeats;
  const double fixed = repeats > 1 ? ((double)repeats * mean_ee - total) / (repeats - 1) : total;
  return fixed > 0 ? sqrt(fixed / xx) : 0;
}

/* The estimate of the square of the fixed part, sum f_i^2 = sum (R mean_i^2 - average of e_i^2) / (R - 1), has the variance sum 2 v_i^2 / (R (R - 1)) +
 * sum 4 f_i^2 v_i / R, v_i that of value i. In place of v_i^2 the fourth power of a draw's distance from the mean is taken, with (R / (R - 1))^2 to make up
 * for a mean that the draw itself is part of: v_i^2 or more on average, so that the interval is not too narrow. mean_i^2 stands for f_i^2, which it exceeds
 * by v_i / R on average. */
static double deviation_of(const float *x, const float *y, const float *mean, size_t n, int repeats) {
  const double r = repeats, longer = r / (r - 1);
  double fourth = 0, cross = 0;
  for (size_t first = 0; first < n; first += MX_PIECE) {
    double sum = 0, with_fixed = 0;
    for (size_t i = first; i < n && i < first + MX_PIECE; i++) {
      const double d = (double)y[i] - (double)mean[i], f = (double)mean[i] - (double)x[i], dd = d * d, ff = f * f;
      if (!isfinite(dd) || !isfinite(ff)) continue;
      sum += dd * dd;
      with_fixed += ff * dd;
    }
    fourth += sum;
    cross += with_fixed;
  }
  return sqrt(2 * fourth * longer * longer / (r * (r - 1)) + 4 * cross * longer / r);
}

/* Sets the interval of the bias, the part of the error that is the same in every repeat. */
static void end_bias(mx_measure *m, const float *x, const float *y, const float *mean, size_t n) {
  m->bias_low = m->bias_high = m->bias;
  if (!mean || !(m->sums.xx > 0)) return;
  const double at = m->bias * m->bias, half = 2 * deviation_of(x, y, mean, n, m->repeats) / (m->sums.xx / m->repeats);
  m->bias_low = at > half ? sqrt(at - half) : 0;
  m->bias_high = sqrt(at + half);
}

uint64_t mx_repeat_seed(uint64_t seed, int r) {
  if (!r) return seed;
  const uint64_t low = mx_random(seed, MX_STREAM_REPEAT, 2 * (uint64_t)r), high = mx_random(seed, MX_STREAM_REPEAT, 2 * (uint64_t)r + 1);
  return high << 32 | low;
}

static void accumulate(float *mean, const float *y, size_t n, float weight) {
  for (size_t i = 0; i < n; i++) mean[i] += y[i] * weight;
}

typedef struct work {
  const float *x;
  size_t rows, cols, n;
  const mx_measure_options *o;
  float *y, *mean;
} work;

static mx_status repeat(mx_measure *out, const work *w, const mx_spec *spec, int r, mx_error *err) {
  mx_spec own = *spec;
  own.seed = mx_repeat_seed(spec->seed, r);
  const mx_exec exec = {.n_threads = w->o->n_threads};
  const mx_status status = mx_fake_quantize(w->y, w->x, w->rows, w->cols, &own, &exec, r ? NULL : &out->counts, err);
  if (status) return status;
  mx_error_sums_add(&out->sums, w->x, w->y, w->n, w->o->n_threads);
  if (w->o->unit_error) add_units(w->o->unit_error, w->o->n_units, w->x, w->y, w->n, 1.0 / out->repeats, w->o->n_threads);
  if (w->mean) accumulate(w->mean, w->y, w->n, 1.0f / (float)out->repeats);
  return MX_OK;
}

mx_status mx_measure_tensor(mx_measure *out, const float *x, size_t rows, size_t cols, const mx_spec *spec, const mx_measure_options *options,
                            mx_error *err) {
  static const mx_measure_options plain = {0};
  if (!out || !spec || (!x && rows && cols)) return mx_fail(err, MX_ERR_ARG, "NULL argument");
  work w = {x, rows, cols, rows * cols, options ? options : &plain, NULL, NULL};
  memset(out, 0, sizeof *out);
  out->repeats = !mx_spec_is_random(spec) ? 1 : w.o->repeats > 0 ? w.o->repeats : 8;
  out->bits = mx_bits_per_value(spec, rows, cols);
  if (w.o->unit_error) memset(w.o->unit_error, 0, w.o->n_units * sizeof *w.o->unit_error);
  w.y = malloc(w.n * sizeof *w.y + 1);
  w.mean = out->repeats > 1 ? calloc(w.n + 1, sizeof *w.mean) : NULL;
  mx_status status = !w.y || (out->repeats > 1 && !w.mean) ? mx_fail(err, MX_ERR_NOMEM, "no memory for %zu x %zu values", rows, cols) : MX_OK;
  for (int r = 0; r < out->repeats && !status; r++) status = repeat(out, &w, spec, r, err);
  if (!status) {
    mx_error_sums mean = out->sums;
    if (w.mean) {
      memset(&mean, 0, sizeof mean);
      mx_error_sums_add(&mean, x, w.mean, w.n, w.o->n_threads);
    }
    out->bias = bias_of(&out->sums, mean.ee, out->repeats);
    end_bias(out, x, w.y, w.mean, w.n);
    if (!w.mean && mx_spec_is_random(spec)) out->bias_low = 0, out->bias_high = INFINITY;
  }
  free(w.y);
  free(w.mean);
  return status;
}
