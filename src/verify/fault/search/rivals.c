/* Tells whether two kernels that give the same bytes of the data at hand would give the same bytes of others. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mxgold/random.h"
#include "verify/fault/run.h"
#include "verify/fault/search/search.h"

/* Numbers that a comparison runs at most: rows of the sample's width. More tells kernels apart that differ in one element of many thousands. */
enum { DRAWN = 1 << 16, LEAST_ROWS = 128 };

typedef enum drawn { DRAWN_ORDINARY, DRAWN_SMALL, DRAWN_LARGE, DRAWN_TIES, DRAWN_NEAR_TIES, DRAWN_KINDS } drawn;

/* Blocks of unlike size. Powers of two among the maxima and multiples of a quarter fall on limits and ties of every format. */
static void draw(float *x, size_t rows, size_t cols, drawn kind, int signed_zeros, float largest) {
  const uint64_t of = kind == DRAWN_NEAR_TIES ? DRAWN_ORDINARY : (uint64_t)kind; /* with the maxima of ordinary numbers */
  static const float factor[DRAWN_KINDS] = {1, 0x1p-11f, 0x1p13f, 1, 1};
  for (size_t i = 0; i < rows * cols; i++) {
    const uint32_t u = mx_random(7 + of, MX_STREAM_DATA, i), of_block = mx_random(77, MX_STREAM_DATA, i / 16);
    const uint32_t v = mx_random(777 + of, MX_STREAM_DATA, i);
    float w = ((float)(u >> 8) * 0x1p-23f - 1) * (float)(1 << (of_block >> 29));
    if (v >> 28 == 0) w *= 0x1p-6f;
    if (v >> 25 == 16) w *= 16;
    if (kind == DRAWN_TIES) w = rintf(w * 16) * 0.0625f;
    if (v >> 26 == 9) w = copysignf(0, w);
    if (kind == DRAWN_TIES && v >> 27 == 5) w = copysignf(ldexpf(1, (int)(v >> 23 & 7) - 3), w);
    x[i] = w != 0 || signed_zeros ? w * factor[kind] : 0;
  }
  for (size_t i = 0; kind == DRAWN_NEAR_TIES && i < rows * cols;
       i++) { /* eighths of a step under the scale that 16 numbers have before it is rounded */
    float most = 0;
    for (size_t k = i; i % 16 == 0 && k < i + 16 && k < rows * cols; k++) most = fmaxf(most, fabsf(x[k]));
    if (i % 16 == 0) x[i] = most;
    most = x[i / 16 * 16];
    if (i % 16) x[i] = rintf(fminf(fmaxf(x[i], -1), 1) * largest * 8) * 0.125f * (most / largest);
  }
}

/* 1, or 0 where the kernel refuses the data. */
static int run(mx_tensor *t, const float *x, size_t rows, size_t cols, const mx_spec *spec, const mx_fault *faults, size_t n, shortage *lack) {
  *t = (mx_tensor){0};
  if (noted_status(mx_tensor_alloc(t, rows, cols, spec), lack)) return 0;
  const mx_status status = n ? mx_quantize_faulty(t, x, rows, cols, cols, spec, faults, n, NULL)
                             : mx_quantize(t, x, rows, cols, cols, spec, &(mx_exec){.n_threads = 1}, NULL);
  return !noted_status(status, lack);
}

static int same_bytes(const mx_tensor *a, const mx_tensor *b) {
  if (a->rows != b->rows || a->code_stride != b->code_stride ||
      a->scale_rows * a->scale_cols * a->scale_bytes != b->scale_rows * b->scale_cols * b->scale_bytes)
    return 0;
  return !memcmp(a->codes, b->codes, a->rows * a->code_stride) &&
         !memcmp(a->scales, b->scales, a->scale_rows * a->scale_cols * a->scale_bytes) &&
         (a->tensor_scale == b->tensor_scale || (isnan(a->tensor_scale) && isnan(b->tensor_scale)));
}

/* Ties tell most. */
static const drawn every[] = {DRAWN_TIES, DRAWN_NEAR_TIES, DRAWN_ORDINARY, DRAWN_SMALL, DRAWN_LARGE}, within[] = {DRAWN_ORDINARY, DRAWN_TIES};

static size_t rows_of(const mx_sample *s) {
  const size_t most = DRAWN / s->cols > LEAST_ROWS ? DRAWN / s->cols : LEAST_ROWS;
  return s->rows < most ? s->rows : most;
}

float *mxi_drawn_numbers(size_t *rows, const mx_sample *s, const mx_spec *spec, size_t k, shortage *lack) {
  *rows = rows_of(s);
  float *x = k < DRAWN_KINDS ? noted(malloc((*rows * s->cols + 1) * sizeof *x), lack) : NULL;
  if (x) draw(x, *rows, s->cols, every[k], 1, (float)mx_format_max(mx_elem_format(spec->elem)));
  return x;
}

/* Is another tensor scale stored by one of the faults? */
static int stores_tensor(const mx_fault *f, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (mxi_fault_stores_tensor(f[i].op)) return 1;
  return 0;
}

/* 1 / T and F / amax, and the like, are the same number for most maxima: so many are tried, in a row of x each. */
enum { MAXIMA = 24 };

static int alike_on(const drawn *kinds, size_t n_kinds, const mx_sample *s, const mx_spec *a, const mx_fault *a_faults, size_t n_a,
                    const mx_spec *b, const mx_fault *b_faults, size_t n_b, shortage *lack) {
  const size_t rows = rows_of(s), cols = s->cols;
  float *x = noted(malloc((rows * cols + 1) * sizeof *x), lack);
  int alike = 1;
  const size_t n_maxima = stores_tensor(a_faults, n_a) || stores_tensor(b_faults, n_b) ? MAXIMA : 0;
  for (size_t k = 0; x && k < n_kinds + n_maxima && alike; k++) {
    mx_tensor one, other;
    size_t n = rows;
    if (k < n_kinds) {
      draw(x, rows, cols, kinds[k], n_kinds == DRAWN_KINDS, (float)mx_format_max(mx_elem_format(a->elem)));
    } else {
      n = 1;
      memset(x, 0, cols * sizeof *x);
      x[0] = 1 + (float)(k - n_kinds) * 0x1.23p-5f;
    }
    const int ran = run(&one, x, n, cols, a, a_faults, n_a, lack), ran_other = run(&other, x, n, cols, b, b_faults, n_b, lack);
    alike = ran == ran_other && (!ran || same_bytes(&one, &other));
    mx_tensor_free(&one);
    mx_tensor_free(&other);
  }
  free(x);
  return alike;
}

int mxi_kernels_alike(const mx_sample *s, const mx_spec *a, const mx_fault *a_faults, size_t n_a, const mx_spec *b, const mx_fault *b_faults,
                      size_t n_b, shortage *lack) {
  return alike_on(every, DRAWN_KINDS, s, a, a_faults, n_a, b, b_faults, n_b, lack);
}

int mxi_kernels_alike_within(const mx_sample *s, const mx_spec *a, const mx_spec *b, const mx_fault *b_faults, size_t n_b, shortage *lack) {
  return alike_on(within, 2, s, a, NULL, 0, b, b_faults, n_b, lack);
}
