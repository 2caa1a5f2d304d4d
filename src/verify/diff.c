/* Counting what differs. */
#include "verify/diff.h"

#include <math.h>
#include <string.h>

uint32_t diff_scale(const diff_job *j, const mx_tensor *t, size_t row, size_t col) {
  const size_t r = t->scale_rows == t->rows ? row : row / j->block_rows;
  return mx_scale_code_at(t, r * t->scale_cols + col / j->block_cols);
}

static int is_nan_scale(const diff_job *j, uint32_t code) {
  const uint32_t sign = j->scale->sign_bits ? 1u << (j->scale->bits - 1) : 0;
  return mx_format_is_nan(j->scale, code & ~sign);
}

static int is_nan_code(const diff_job *j, uint32_t code) {
  const uint32_t sign = j->elem->sign_bits && j->elem->kind == MX_KIND_FLOAT ? 1u << (j->elem->bits - 1) : 0;
  return mx_format_is_nan(j->elem, code & ~sign);
}

int diff_same(const diff_job *j, uint32_t a, uint32_t b) {
  const uint32_t sign = j->elem->bits < 32 ? 1u << (j->elem->bits - 1) : 0x80000000u;
  if (a == b) return 1;
  if (!j->how.nan_bits && is_nan_code(j, a) && is_nan_code(j, b)) return 1;
  if (j->how.equal_zeros && j->elem->kind == MX_KIND_FLOAT && !(a & ~sign) && !(b & ~sign)) return 1;
  return 0;
}

static double decode_scale(const diff_job *j, uint32_t code) {
  const double v = mx_decode(j->scale, code);
  return j->spec->scale_sign == MX_SCALE_SIGN_MASKED ? fabs(v) : v;
}

/* Distance of |q| to the nearest midpoint between two neighbouring magnitudes. */
static double to_tie(const mx_format *f, double q) {
  double least = INFINITY, below = 0;
  const uint32_t magnitudes = f->bits <= 8 ? 1u << (f->bits - f->sign_bits) : 0;
  for (uint32_t c = 1; c < magnitudes; c++) {
    const double v = mx_decode(f, c);
    if (!isfinite(v)) break;
    least = fmin(least, fabs(fabs(q) - (below + v) / 2));
    below = v;
  }
  return least;
}

static float block_amax(const diff_job *j, size_t row, size_t col) {
  const size_t r0 = row / j->block_rows * j->block_rows, c0 = col / j->block_cols * j->block_cols;
  float amax = 0;
  for (size_t r = r0; r < r0 + j->block_rows && r < j->a->rows; r++)
    for (size_t c = c0; c < c0 + j->block_cols && c < j->a->cols; c++)
      if (fabsf(j->x[r * j->ld + c]) > amax) amax = fabsf(j->x[r * j->ld + c]);
  return amax;
}

static void look(const diff_job *j, mx_diff_example *e, size_t row, size_t col, uint32_t code_a, uint32_t code_b) {
  *e = (mx_diff_example){.row = row, .col = col, .code_a = code_a, .code_b = code_b};
  e->scale_a = diff_scale(j, j->a, row, col);
  e->scale_b = diff_scale(j, j->b, row, col);
  const double sa = decode_scale(j, e->scale_a), sb = decode_scale(j, e->scale_b);
  const int encode = j->spec->scale_form == MX_SCALE_FORM_ENCODE;
  e->value_a = encode ? mx_decode(j->elem, code_a) / sa : mx_decode(j->elem, code_a) * sa;
  e->value_b = encode ? mx_decode(j->elem, code_b) / sb : mx_decode(j->elem, code_b) * sb;
  e->quotient = e->tie = NAN;
  if (!j->x) return;
  e->x = j->x[row * j->ld + col];
  e->amax = block_amax(j, row, col);
  double times = 1;
  if (j->a->has_tensor_scale && j->a->tensor_scale != 0) {
    const char *store = mx_tensor_store_name(j->spec);
    const double t = (double)j->a->tensor_scale,
                 target = j->spec->tensor_target != 0 ? (double)j->spec->tensor_target : mx_format_max(j->elem) * mx_format_max(j->scale);
    times = !strcmp(store, "divisor") ? 1 / t : !strcmp(store, "amax") ? t / target : t;
  }
  e->quotient = encode ? (double)e->x * sa / times : (double)e->x / (sa * times);
  e->tie = to_tie(j->elem, e->quotient);
}

static void tally(diff_job *j, size_t row, size_t col, uint32_t ca, uint32_t cb) {
  mx_difference *d = j->out;
  const size_t position = row % j->block_rows * j->block_cols + col % j->block_cols;
  const uint32_t scale = diff_scale(j, j->a, row, col);
  const unsigned shift = j->elem->bits > 4 ? j->elem->bits - 4u : 0;
  d->codes++;
  d->by_position[position < 255 ? position : 255]++;
  d->by_scale[scale < 255 ? scale : 255]++;
  d->pairs[ca >> shift & 15][cb >> shift & 15]++;
  d->map[row * MX_DIFF_ROWS / (d->rows ? d->rows : 1)][col * MX_DIFF_COLS / (j->a->cols ? j->a->cols : 1)]++;
  mx_diff_example e;
  look(j, &e, row, col, ca, cb);
  const double distance = fabs(e.value_a - e.value_b);
  if (j->x && isfinite(e.tie)) {
    int i = 0;
    while (i < 15 && e.tie < ldexp(1, -2 * i - 2)) i++;
    d->ties[i]++;
  }
  if (!d->n_examples++) d->first = d->worst = d->smallest = e;
  const double most = fabs(d->worst.value_a - d->worst.value_b), least = fabs(d->smallest.value_a - d->smallest.value_b);
  if (distance > most || (isnan(distance) && !isnan(most))) d->worst = e;
  if (distance < least) d->smallest = e;
}

/* Rows that are not the same bytes. */
static void codes_of_row(diff_job *j, size_t row) {
  const mx_tensor *a = j->a, *b = j->b;
  const uint32_t sign = j->elem->bits < 32 ? 1u << (j->elem->bits - 1) : 0x80000000u;
  mx_difference *d = j->out;
  for (size_t c = 0; c < a->cols; c++) {
    const uint32_t ca = mx_code_at(a, j->spec, row, c), cb = mx_code_at(b, j->spec, row, c);
    if (ca == cb) continue;
    if (!(ca & ~sign) && !(cb & ~sign) && j->elem->kind == MX_KIND_FLOAT) d->zero_signs++;
    if (!j->how.nan_bits && is_nan_scale(j, diff_scale(j, a, row, c)) && is_nan_scale(j, diff_scale(j, b, row, c)))
      d->nan_codes++;
    else if (diff_same(j, ca, cb))
      d->nan_codes += is_nan_code(j, ca) != 0;
    else
      tally(j, row, c, ca, cb);
  }
}

static void scales(diff_job *j) {
  mx_difference *d = j->out;
  const mx_tensor *a = j->a, *b = j->b;
  d->n_scales = (uint64_t)a->scale_rows * a->scale_cols;
  if (!memcmp(a->scales, b->scales, d->n_scales * a->scale_bytes)) return;
  for (size_t i = 0; i < d->n_scales; i++) {
    const uint32_t sa = mx_scale_code_at(a, i), sb = mx_scale_code_at(b, i);
    if (sa == sb) continue;
    if (!j->how.nan_bits && is_nan_scale(j, sa) && is_nan_scale(j, sb)) {
      d->nan_codes++;
      continue;
    }
    d->scales++;
    const int64_t step = (int64_t)sb - (int64_t)sa;
    d->scale_steps[step < -8 ? 0 : step > 8 ? 16 : step + 8]++;
  }
}

static int same_float(float a, float b, const mx_diff_options *o) {
  if (!o->nan_bits && isnan(a) && isnan(b)) return 1;
  if (o->equal_zeros && a == 0 && b == 0) return 1;
  return !memcmp(&a, &b, sizeof a);
}

mx_status mx_diff(mx_difference *out, const mx_tensor *a, const mx_tensor *b, const mx_spec *spec, const float *x, size_t ld,
                  const float *values_a, const float *values_b, const mx_diff_options *options, mx_error *err) {
  if (!out || !a || !b || !spec) return mx_fail(err, MX_ERR_ARG, "mx_diff: NULL argument");
  if (a->rows != b->rows || a->cols != b->cols || a->code_stride != b->code_stride || a->scale_rows != b->scale_rows ||
      a->scale_cols != b->scale_cols || a->scale_bytes != b->scale_bytes)
    return mx_fail(err, MX_ERR_SHAPE, "shapes differ: %zu x %zu with %zu x %zu scales, and %zu x %zu with %zu x %zu", a->rows, a->cols,
                   a->scale_rows, a->scale_cols, b->rows, b->cols, b->scale_rows, b->scale_cols);
  memset(out, 0, sizeof *out);
  diff_job j = {
      .out = out, .a = a, .b = b, .spec = spec, .elem = mx_elem_format(spec->elem), .scale = mx_scale_format(spec->scale), .x = x, .ld = ld};
  if (options) j.how = *options;
  mx_spec_block(spec, a->rows, a->cols, &j.block_rows, &j.block_cols);
  out->n_codes = (uint64_t)a->rows * a->cols;
  size_t rows = 0, last_block = SIZE_MAX;
  out->rows = a->rows; /* for the map, while counting */
  for (size_t r = 0; r < a->rows; r++) {
    if (!memcmp(a->codes + r * a->code_stride, b->codes + r * b->code_stride, a->code_stride)) continue;
    const uint64_t before = out->codes;
    codes_of_row(&j, r);
    rows += out->codes > before;
    if (out->codes > before && r / j.block_rows != last_block) out->blocks++, last_block = r / j.block_rows;
  }
  out->rows = rows;
  scales(&j);
  if (a->has_tensor_scale || b->has_tensor_scale) out->tensor_scales = !same_float(a->tensor_scale, b->tensor_scale, &j.how);
  if (values_a && values_b) {
    out->n_values = out->n_codes;
    for (size_t i = 0; i < out->n_values; i++) out->values += !same_float(values_a[i], values_b[i], &j.how);
  }
  out->equal = !out->codes && !out->scales && !out->tensor_scales && !out->values;
  if (!out->equal) diff_patterns(&j);
  return MX_OK;
}
