/* Proves for given matrices that no order of summation changes a bit of their product, and makes such matrices. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gemm/internal.h"
#include "mxgold/random.h"

/* The exponent of the lowest set bit of a finite nonzero number. */
static int lowest_bit(double x) {
  int e;
  const uint64_t m = (uint64_t)ldexp(fabs(frexp(x, &e)), 53);
  return e - 53 + __builtin_ctzll(m);
}

/* The values of a row or column, all of which are multiples of 2^low. */
typedef struct line {
  double *v;
  int low;
} line;

/* Computes the values from codes and scales, without rounding to binary32; the tensor scale is applied after the sum. */
static mx_status lines_of(line *out, double *memory, const mx_tensor *t, const mx_spec *spec) {
  mxg_plan plan;
  const mx_status status = mxi_gemm_plan_of_tensors(&plan, t, spec, t, spec, NULL, t->rows, NULL);
  if (status) return status;
  const mxg_operand *o = &plan.a;
  mxi_gemm_move_to(&plan.a, t, 0, t->rows);
  for (size_t r = 0; r < t->rows; r++) {
    out[r] = (line){memory + r * t->cols, 2000};
    if (t->cols) mxi_gemm_values(out[r].v, o, r, 0, t->cols);
    for (size_t k = 0; k < t->cols; k++) {
      const double element = out[r].v[k], scale = mxi_gemm_scale(o, r, k / o->block), x = mxi_gemm_scaled(element, scale, o->divides);
      out[r].v[k] = x;
      if (!isfinite(x) || (o->divides && fma(x, scale, -element) != 0)) /* binary64 cannot hold the quotient */
        out[r].low = -2000;                                             /* makes the proof fail */
      else if (x != 0 && lowest_bit(x) < out[r].low)
        out[r].low = lowest_bit(x);
    }
  }
  return MX_OK;
}

/* Every partial sum of an output is a multiple of 2^low and at most the sum of the magnitudes, so it is exact if that is at most 2^(low +
 * bits). */
static int proved(const line *a, const line *b, size_t K, unsigned bits) {
  const int low = a->low + b->low;
  double sum = 0;
  for (size_t k = 0; k < K; k++) sum += fabs(a->v[k] * b->v[k]);
  if (sum == 0) return 1; /* every product has a zero factor */
  return low >= -126 && sum <= ldexp(1, low + (int)bits) && sum < 0x1p127;
}

mx_status mx_gemm_order_free(int *free_of_order, const mx_tensor *a, const mx_spec *a_spec, const mx_tensor *b, const mx_spec *b_spec,
                             unsigned bits) {
  if (!free_of_order || !a || !b || !a_spec || !b_spec || bits < 1 || bits > 24) return MX_ERR_ARG;
  if (a->cols != b->cols) return MX_ERR_SHAPE;
  line *la = calloc(a->rows + 1, sizeof *la), *lb = calloc(b->rows + 1, sizeof *lb);
  double *va = malloc((a->rows * a->cols + 1) * sizeof *va), *vb = malloc((b->rows * b->cols + 1) * sizeof *vb);
  mx_status status = la && lb && va && vb ? MX_OK : MX_ERR_NOMEM;
  if (!status) status = lines_of(la, va, a, a_spec);
  if (!status) status = lines_of(lb, vb, b, b_spec);
  int all = 1;
  for (size_t i = 0; i < a->rows && !status && all; i++)
    for (size_t j = 0; j < b->rows && all; j++) all = proved(&la[i], &lb[j], a->cols, bits);
  if (!status) *free_of_order = all;
  free(la);
  free(lb);
  free(va);
  free(vb);
  return status;
}

mx_status mx_gemm_order_squares(double *squares, const mx_tensor *t, const mx_spec *spec) {
  if (!squares || !t || !spec) return MX_ERR_ARG;
  line *lines = calloc(t->rows + 1, sizeof *lines);
  double *values = malloc((t->rows * t->cols + 1) * sizeof *values);
  mx_status status = lines && values ? MX_OK : MX_ERR_NOMEM;
  if (!status) status = lines_of(lines, values, t, spec);
  *squares = 0;
  for (size_t r = 0; r < t->rows && !status; r++) {
    const int low = lines[r].low;
    double sum = 0;
    for (size_t k = 0; k < t->cols; k++) sum += lines[r].v[k] * lines[r].v[k];
    if (sum == 0) continue;
    sum = low < -63 || !(sum < 0x1p126) ? INFINITY : ldexp(sum, -2 * low); /* the square of 2^low is a normal binary32 number */
    if (sum > *squares) *squares = sum;
  }
  free(lines);
  free(values);
  return status;
}

/* Lists the codes whose values are multiples of 2^low and below 2^(low + width). */
static size_t codes_within(uint16_t codes[256], const mx_format *f, int low, int width) {
  size_t n = 0;
  for (unsigned c = 0; c < 1u << f->bits; c++) {
    const double x = mx_decode(f, c);
    if (isfinite(x) && fabs(x) < ldexp(1, low + width) && (x == 0 || lowest_bit(x) >= low)) codes[n++] = (uint16_t)c;
  }
  return n;
}

/* Fills one operand: elements of `width` bits above a lowest bit that is drawn for the tensor, scales that are powers of two within `spread`
 * binades. */
static mx_status fill(mx_tensor *t, const mx_spec *spec, int width, uint64_t seed, uint32_t stream) {
  const mx_format *elem = mx_elem_format(spec->elem), *scale = mx_scale_format(spec->scale);
  if (elem->bits > 8 || width < 2) return MX_ERR_UNSUPPORTED;
  const int low = ilogb(mx_format_min(elem)), high = mx_format_emax(elem) + 1, whole = high - low;
  int taken = width < whole ? width : whole, spread = width - taken;
  const int room = whole - taken;
  uint16_t codes[256];
  const size_t n = codes_within(codes, elem, low + (int)(mx_random(seed, stream, 0) % (uint32_t)(room + 1)), taken);
  if (spread > 8) spread = 8;
  uint32_t scales[9];
  for (int s = 0; s <= spread; s++) scales[s] = (uint32_t)mx_encode(scale, ldexp(1, s - spread / 2), &(mx_encoding){0}, 0);
  const uint64_t base = 1u << 8;
  for (size_t r = 0; r < t->rows; r++)
    for (size_t k = 0; k < t->cols_padded; k++) {
      const uint16_t code = k < t->cols ? codes[mx_random(seed, stream, base + r * t->cols_padded + k) % n] : 0;
      uint8_t *at = t->codes + r * t->code_stride;
      if (elem->bits > 4)
        at[k] = (uint8_t)code;
      else
        at[k / 2] =
            (uint8_t)(k % 2 ? (at[k / 2] & 15) | code << 4 : code); /* the order of nibbles does not matter here, since codes are random */
    }
  for (size_t i = 0; i < t->scale_rows * t->scale_cols; i++) {
    const uint32_t code = scales[mx_random(seed, stream + 1, i) % (uint32_t)(spread + 1)];
    memcpy(t->scales + i * t->scale_bytes, &code, t->scale_bytes);
  }
  return MX_OK;
}

mx_status mx_gemm_make_order_free(mx_tensor *a, const mx_spec *a_spec, mx_tensor *b, const mx_spec *b_spec, unsigned bits, uint64_t seed) {
  if (!a || !b || !a_spec || !b_spec || bits < 1 || bits > 24) return MX_ERR_ARG;
  if (a->cols != b->cols) return MX_ERR_SHAPE;
  const int terms = a->cols > 1 ? 64 - __builtin_clzll(a->cols - 1) : 0; /* 2^terms >= K */
  const int room = (int)bits - terms;
  mx_status status = fill(a, a_spec, room / 2, seed, 0x40);
  if (!status) status = fill(b, b_spec, room - room / 2, seed, 0x42);
  int ok = 0;
  if (!status) status = mx_gemm_order_free(&ok, a, a_spec, b, b_spec, bits);
  return status ? status : ok ? MX_OK : MX_ERR_UNSUPPORTED;
}
