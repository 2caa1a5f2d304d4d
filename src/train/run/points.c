/* Draws points of two dimensions and their noise, two moons or a spiral, for a diffusion model. */
#include <math.h>
#include <stdlib.h>

#include "mxgold/ablate.h"
#include "mxgold/math.h"
#include "mxgold/random.h"
#include "train/run/table.h"

enum { TWO = 2, WAVES = 15 };
static const double pi = 3.14159265358979323846;

/* Shares of a point and of its noise at time t: the roots of A and 1 - A, A the product of 1 - beta over times 0 .. t, beta rising evenly. */
static void schedule(mxi_table *t, const mxi_config *c) {
  const size_t n = c->data.timesteps;
  double product = 1;
  for (size_t i = 0; i < n; i++) {
    const double along = n > 1 ? (double)i / (double)(n - 1) : 0;
    product *= 1 - (c->data.beta_first + (c->data.beta_last - c->data.beta_first) * along);
    t->keep[i] = sqrt(product);
    t->add[i] = sqrt(1 - product);
  }
}

/* Time as sines, then cosines, of t 2^(-i / 2), i < 15. */
static mx_status embed_time(mxi_table *t, const mxi_config *c, const mx_exec *exec) {
  const size_t n = c->data.timesteps;
  mx_status status = MX_OK;
  for (size_t i = 0; i < n && !status; i++) {
    float *sine = t->time + i * 2 * WAVES, *cosine = sine + WAVES, angle[WAVES];
    for (int k = 0; k < WAVES; k++) angle[k] = (float)ldexp((double)i * (k % 2 ? sqrt(.5) : 1), -(k / 2));
    status = mx_math_array(sine, angle, WAVES, MX_MATH_SIN, exec);
    if (!status) status = mx_math_array(cosine, angle, WAVES, MX_MATH_COS, exec);
  }
  return status;
}

/* v [n] of (-1, 1) is a place on the curve, z [n][2] its noise. */
static mx_status curve(mxi_table *t, const mxi_config *c, float *v, float *sine, const float *z, const mx_exec *exec) {
  const int roll = c->data.points == MXI_SWISS_ROLL;
  for (size_t r = 0; r < t->n; r++) v[r] = (float)(roll ? pi * 1.5 * (2 + (double)v[r]) : pi * .5 * (1 + (double)v[r]));
  mx_status status = mx_math_array(sine, v, t->n, MX_MATH_SIN, exec);
  float *cosine = sine + t->n;
  if (!status) status = mx_math_array(cosine, v, t->n, MX_MATH_COS, exec);
  for (size_t r = 0; r < t->n && !status; r++) {
    const double s = (double)sine[r], k = (double)cosine[r], along = (double)v[r] / 7;
    const int inner = r % 2 != 0;
    const double x = roll ? along * k : (inner ? 1 - k : k) - .5, y = roll ? along * s : (inner ? .5 - s : s) - .25;
    t->x[TWO * r] = (float)(x + c->data.noise * (double)z[TWO * r]);
    t->x[TWO * r + 1] = (float)(y + c->data.noise * (double)z[TWO * r + 1]);
  }
  return status;
}

mx_status mxi_points_make(mxi_table *t, const mxi_config *c, const mx_exec *exec, mx_error *err) {
  const size_t n = t->n = c->data.rows, steps = c->data.timesteps;
  const mx_data even = {.kind = MX_DATA_UNIFORM}, normal = {.kind = MX_DATA_GAUSSIAN};
  t->features = t->values = TWO;
  t->inputs = TWO + 2 * WAVES;
  if (n > UINT32_MAX || n > mxi_memory_of_machine() / (8 * sizeof(float))) return mx_fail(err, MX_ERR_NOMEM, "no memory for %zu points", n);
  float *room = malloc(5 * n * sizeof *room);
  t->x = malloc(TWO * n * sizeof *t->x);
  t->time = malloc(steps * 2 * WAVES * sizeof *t->time);
  t->keep = malloc(steps * sizeof *t->keep);
  t->add = malloc(steps * sizeof *t->add);
  mx_status status = room && t->x && t->time && t->keep && t->add ? MX_OK : mx_fail(err, MX_ERR_NOMEM, "no memory for %zu points", n);
  if (!status) {
    float *v = room, *sine = v + n, *z = sine + 2 * n;
    mx_data_fill_on(v, n, 1, &even, mxi_table_seed(c, 0, MXI_USE_PLACE), exec);
    mx_data_fill_on(z, n, TWO, &normal, mxi_table_seed(c, 0, MXI_USE_NOISE), exec);
    schedule(t, c);
    status = curve(t, c, v, sine, z, exec);
    if (!status) status = embed_time(t, c, exec);
    if (status) mx_fail(err, status, "points: %s", mx_status_text(status));
  }
  free(room);
  return status;
}

/* Evaluations take batches of their own: numbers that no training run reaches. */
static uint64_t batch_number(uint64_t s, int evaluation) { return evaluation ? (UINT64_C(1) << 35) + s : s; }

void mxi_points_noise(const mxi_table *t, const mxi_config *c, uint64_t s, int evaluation, float *x, float *y) {
  const size_t B = c->train.batch, wide = t->inputs - t->features;
  const uint64_t number = batch_number(s, evaluation), times = mxi_table_seed(c, number, MXI_USE_TIME);
  const mx_exec one = {.n_threads = 1};
  mx_data_fill_on(y, B, TWO, &(mx_data){.kind = MX_DATA_GAUSSIAN}, mxi_table_seed(c, number, MXI_USE_EPSILON), &one);
  for (size_t i = 0; i < B; i++) {
    const size_t time = (size_t)((uint64_t)mx_random(times, MX_STREAM_DATA, i) * c->data.timesteps >> 32);
    float *to = x + i * t->inputs;
    for (int k = 0; k < TWO; k++) {
      const double point = (double)t->x[TWO * (size_t)t->picked[i] + (size_t)k], noise = (double)y[TWO * i + (size_t)k];
      to[k] = (float)(t->keep[time] * point + t->add[time] * noise);
    }
    for (size_t k = 0; k < wide; k++) to[TWO + k] = t->time[time * wide + k];
  }
}
