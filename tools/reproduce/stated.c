/* Draws the very samples that stated figures were computed from: numpy's default_rng(seed), built from its published parts: SeedSequence (O'Neill's seed_seq_fe), PCG64 XSL-RR
 * (O'Neill 2014), normals by a ziggurat of 256 layers (Marsaglia and Tsang 2000, Doornik 2005), gammas by Marsaglia and Tsang's method. */
#include <math.h>
#include <stdlib.h>

#include "ablate/sums/real.h"
#include "reproduce.h"

typedef unsigned __int128 u128;

enum { LAYERS = 256 };

struct draws {
  u128 state, step;
  /* Layer i reaches x = width[i] * 2^52; below 2^52 x = inside[i] it lies under the curve of height[i]. */
  double width[LAYERS], height[LAYERS];
  uint64_t inside[LAYERS];
};

/* ---- Bits ---- */

static uint32_t hash(uint32_t v, uint32_t *constant, uint32_t factor) {
  v ^= *constant;
  *constant *= factor;
  v *= *constant;
  return v ^ v >> 16;
}

static uint32_t mix(uint32_t x, uint32_t y) {
  const uint32_t r = 0xca01f9ddu * x - 0x4973f715u * y;
  return r ^ r >> 16;
}

static u128 next_state(const draws *d) { return d->state * ((u128)0x2360ed051fc65da4u << 64 | 0x4385df649fccf645u) + d->step; }

static void seed_draws(draws *d, uint32_t seed) {
  uint32_t pool[4], constant = 0x43b0d7e5u;
  for (int i = 0; i < 4; i++) pool[i] = hash(i ? 0 : seed, &constant, 0x931e8875u);
  for (int from = 0; from < 4; from++)
    for (int to = 0; to < 4; to++)
      if (from != to) pool[to] = mix(pool[to], hash(pool[from], &constant, 0x931e8875u));
  uint64_t word[4];
  constant = 0x8b51f9ddu;
  for (int i = 0; i < 4; i++) {
    const uint32_t low = hash(pool[2 * i % 4], &constant, 0x58f38dedu);
    word[i] = low | (uint64_t)hash(pool[(2 * i + 1) % 4], &constant, 0x58f38dedu) << 32;
  }
  d->step = ((u128)word[2] << 64 | word[3]) << 1 | 1;
  d->state = 0;
  d->state = next_state(d) + ((u128)word[0] << 64 | word[1]);
  d->state = next_state(d);
}

static uint64_t bits(draws *d) {
  d->state = next_state(d);
  const uint64_t x = (uint64_t)(d->state >> 64) ^ (uint64_t)d->state;
  const unsigned by = (unsigned)(d->state >> 122);
  return x >> by | x << (-by & 63);
}

static double uniform(draws *d) { return (double)(bits(d) >> 11) * 0x1p-53; }

/* ---- Distributions ---- */

/* Where the outermost layer begins, and the area of each. */
static const double edge = 3.6541528853610088, area = 0.00492867323397465524;

static double density(double x) { return mxi_real_exp(-0.5 * x * x); }

static void make_layers(draws *d) {
  double x = edge, outer = edge;
  const double bottom = area / density(edge);
  d->inside[0] = (uint64_t)(edge / bottom * 0x1p52);
  d->inside[1] = 0;
  d->width[0] = bottom * 0x1p-52;
  d->width[LAYERS - 1] = edge * 0x1p-52;
  d->height[0] = 1;
  d->height[LAYERS - 1] = density(edge);
  for (int i = LAYERS - 2; i > 0; i--) {
    x = sqrt(-2 * mxi_real_ln(area / x + density(x)));
    d->inside[i + 1] = (uint64_t)(x / outer * 0x1p52);
    outer = x;
    d->height[i] = density(x);
    d->width[i] = x * 0x1p-52;
  }
}

/* Beyond the edge. */
static double tail(draws *d) {
  for (;;) {
    const double x = -mxi_real_ln(1 - uniform(d)) / edge, y = -mxi_real_ln(1 - uniform(d));
    if (y + y > x * x) return edge + x;
  }
}

static double normal(draws *d) {
  for (;;) {
    const uint64_t u = bits(d), m = u >> 9 & 0xfffffffffffffu;
    const unsigned layer = u & 0xff;
    const double size = (double)m * d->width[layer], x = u >> 8 & 1 ? -size : size;
    if (m < d->inside[layer]) return x;
    if (!layer) {
      const double far = tail(d);
      return m >> 8 & 1 ? -far : far;
    }
    if ((d->height[layer - 1] - d->height[layer]) * uniform(d) + d->height[layer] < density(x)) return x;
  }
}

static double laplace(draws *d) {
  for (;;) {
    const double u = uniform(d);
    if (u >= 0.5) return -mxi_real_ln(2 - u - u);
    if (u > 0) return mxi_real_ln(u + u);
  }
}

/* Of a shape above 1. */
static double gamma_of(draws *d, double shape) {
  const double b = shape - 1.0 / 3, c = 1 / sqrt(9 * b);
  for (;;) {
    double x, v;
    do {
      x = normal(d);
      v = 1 + c * x;
    } while (v <= 0);
    v = v * v * v;
    const double u = uniform(d);
    if (u < 1 - 0.0331 * x * x * x * x || mxi_real_ln(u) < 0.5 * x * x + b * (1 - v + mxi_real_ln(v))) return b * v;
  }
}

static double student(draws *d, double nu) {
  const double z = normal(d), g = gamma_of(d, nu / 2);
  return sqrt(nu / 2) * z / sqrt(g);
}

/* ---- Tensors ---- */

draws *draws_new(uint32_t seed) {
  draws *d = malloc(sizeof *d);
  if (!d) abort();
  seed_draws(d, seed);
  make_layers(d);
  return d;
}

float *draws_tensor(draws *d, size_t rows, size_t cols, const mx_data *data) {
  float *x = malloc(rows * cols * sizeof *x);
  double *wide = malloc(rows * cols * sizeof *wide);
  if (!x || !wide) abort();
  for (size_t i = 0; i < rows * cols; i++)
    wide[i] = data->kind == MX_DATA_LAPLACE ? laplace(d) : data->kind == MX_DATA_STUDENT ? student(d, data->param[0]) : normal(d);
  for (size_t r = 0; r < rows; r++) { /* factors of rows are drawn behind the values */
    const double factor = data->kind == MX_DATA_ROWS ? mxi_real_exp(data->param[0] * normal(d)) : 1;
    for (size_t c = 0; c < cols; c++) x[r * cols + c] = (float)(wide[r * cols + c] * factor);
  }
  free(wide);
  return x;
}
