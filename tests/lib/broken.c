/* Quantises to four formats by code that was written quickly and by hand, with the bugs that such code has. Of the library it uses mx_encode() and
 * mx_decode() alone. */
#include "broken.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 128, COLS = 256, RAGGED = COLS - 8 };

const struct broken_row broken_rows[] = {
#define X(id, bug, names, bases, few) {bug, names, bases, few},
    BROKEN(X)
#undef X
};

const char *broken_preset(char base) {
  return base == '4' ? "ocp-mxfp4" : base == '8' ? "ocp-mxfp8-e4m3" : base == 'n' ? "torchao-nvfp4-2level" : "te-nvfp4";
}

typedef struct kernel {
  int bug, is_nv, is_te;
  size_t width, across, cols;
  const mx_format *elem, *scale;
  float max, tensor_max;  /* largest element; max|X| */
  const float *of_scales; /* the numbers that the scales are made from */
} kernel;

static float cut(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  bits &= 0xFFFF0000u;
  memcpy(&x, &bits, sizeof bits);
  return x;
}

static float by(const char *format, float x) {
  const mx_format *f = mx_format_find(format);
  return (float)mx_round_to(f, (double)x, &(mx_encoding){0}, 0);
}

/* ---- numbers */

static float normal(uint64_t i) {
  const double u = (mx_random(99, 50, 2 * i) + 0.5) * 0x1p-32, v = mx_random(99, 50, 2 * i + 1) * 0x1p-32;
  return (float)(sqrt(-2 * log(u)) * cos(6.283185307179586 * v));
}

static void numbers(float *x, const kernel *k) {
  for (size_t i = 0; i < ROWS * k->cols; i++) {
    x[i] = normal(i) * (1 + (float)(i / k->cols % 5)) * (i % 61 ? 1 : 4);
    if (k->bug == BROKEN_BYTE_SHIFT && i / k->cols % 16 == 3) x[i] = ldexpf(x[i], -126);
    if (broken_rows[k->bug].few_bits) x[i] = rintf(x[i] * 16) / 16;
  }
}

static void butterflies(float *x, size_t step) {
  for (size_t h = 1; h < 16; h *= 2)
    for (size_t i = 0; i < 16; i++)
      if (!(i & h)) {
        const float a = x[i * step], b = x[(i + h) * step];
        x[i * step] = a + b;
        x[(i + h) * step] = a - b;
      }
}

static void change_input(float *x, const kernel *k) {
  for (size_t i = 0; i < ROWS * k->cols; i++) {
    if (k->bug == BROKEN_INPUT_CUT) x[i] = cut(x[i]);
    if (k->bug == BROKEN_INPUT_F16) x[i] = by("f16", x[i]);
  }
  for (size_t r = 0; r < ROWS && k->bug == BROKEN_SHIFTED; r++) {
    for (size_t c = k->cols; --c;) x[r * k->cols + c] = x[r * k->cols + c - 1];
    x[r * k->cols] = 0;
  }
  for (size_t i = 0; i < ROWS * k->cols && k->bug == BROKEN_ROTATED; i += 16) butterflies(x + i, 1);
  for (size_t r = 0; r < ROWS && k->bug == BROKEN_ROTATED_DOWN; r += 16)
    for (size_t c = 0; c < k->cols; c++) {
      butterflies(x + r * k->cols + c, k->cols);
      for (size_t i = 0; i < 16; i++) x[(r + i) * k->cols + c] /= 4;
    }
}

/* ---- a block */

static float amax_of(const float *x, size_t n, int bug) {
  float m = 0, second = 0, sum = 0;
  for (size_t i = 0; i < n; i++) {
    const float a = bug == BROKEN_NOABS ? x[i] : fabsf(x[i]);
    if ((bug == BROKEN_FIRST_HALF && i >= n / 2) || (bug == BROKEN_LAST_HALF && i < n / 2)) continue;
    if ((bug == BROKEN_LEFT_OUT && i == 7) || (bug == BROKEN_LANES_ALONE && i % 2)) continue;
    if ((bug == BROKEN_NOT_FIRST && !i) || (bug == BROKEN_NOT_LAST && i == n - 1)) continue;
    if (a > m)
      second = m, m = a;
    else if (a > second)
      second = a;
    sum += a;
  }
  if (bug == BROKEN_SECOND) return second;
  if (bug == BROKEN_MEAN) return sum / (float)n * 3;
  return m;
}

static uint32_t scale_code(const kernel *k, float amax) {
  if (!k->is_nv) {
    int e;
    frexpf(amax, &e);
    e = e - 1 - (k->elem->bits == 4 ? 2 : 8) + 127;
    return amax == 0 || e < 0 ? 0 : (uint32_t)e;
  }
  const float largest = 2688, a = k->tensor_max;
  float v;
  if (k->is_te) {
    const float s = largest / a, r = s * (1 / 6.0f);
    v = k->bug == BROKEN_CONSTANT ? amax * 0.1667f * s : amax * r;
  } else {
    const float t = a / largest;
    v = k->bug == BROKEN_CONSTANT ? amax * 0.1667f / t : amax / 6 / t;
    v = fmaxf(v, 0x1p-6f);
  }
  return (uint32_t)mx_encode(k->scale, (double)v, &(mx_encoding){0}, 0);
}

static double scaled(const kernel *k, float x, uint32_t code, float amax) {
  const float sf = (float)mx_decode(k->scale, code), s = 2688 / k->tensor_max;
  if (k->bug == BROKEN_UNROUNDED) return (double)(x * (k->max / amax));
  if (k->bug == BROKEN_NO_TENSOR) return (double)(x / sf);
  if (k->bug == BROKEN_BYTE_SHIFT && !code) return x == 0 ? 0 : copysign(INFINITY, (double)x);
  if (!k->is_nv) return (double)x / mx_decode(k->scale, code);
  if (k->bug == BROKEN_RCP_BF16) return (double)(x * by("bf16", s / sf));
  if (k->bug == BROKEN_DIVISOR_BF16) return (double)(x / by("bf16", sf / s));
  if (k->is_te) return (double)(x * fminf(1 / (sf * (1 / s)), FLT_MAX));
  return (double)(x * (1 / (k->tensor_max / 2688) / sf));
}

/* Returns the code of a magnitude, with the ties and thresholds of the bug. */
static uint32_t magnitude(const kernel *k, double a, int negative) {
  const mx_encoding down = {.round = MX_ROUND_RTZ};
  const uint32_t low = (uint32_t)mx_encode(k->elem, a, &down, 0), right = (uint32_t)mx_encode(k->elem, a, &(mx_encoding){0}, 0);
  if (a >= mx_format_max(k->elem)) return right;
  const double middle = (mx_decode(k->elem, low) + mx_decode(k->elem, low + 1)) / 2;
  if (k->bug == BROKEN_CUT_NEGATIVE && negative) return low;
  if (k->bug == BROKEN_THRESHOLD && a >= 3.25 && a < 3.5) return 6;
  if (a != middle) return right;
  if (k->bug == BROKEN_TIES_UP) return low + !negative;
  if (k->bug == BROKEN_TIES_DOWN) return low + (negative != 0);
  if (k->bug == BROKEN_TIES_ODD) return low | 1;
  if (k->bug == BROKEN_ONE_TIE && a == (k->elem->bits == 4 ? 2.5 : 17.0)) return low + 1;
  return right;
}

static uint32_t element(const kernel *k, float x, uint32_t code, float amax, float largest) {
  const uint32_t sign = 1u << (k->elem->bits - 1), top = k->elem->bits == 4 ? 6 : 0x77, tiny = k->elem->bits == 4 ? 1 : 7;
  double y = scaled(k, x, code, amax);
  if (k->bug == BROKEN_TWICE_BF16) y = (double)by("bf16", (float)y);
  if (k->bug == BROKEN_SIGN_OF_MAX) y = copysign(y, (double)largest);
  const int negative = signbit(y) != 0;
  uint32_t m = isnan(y) ? 0 : magnitude(k, fabs(y), negative);
  if (k->bug == BROKEN_SATURATE && m > top) m = top;
  if (k->bug == BROKEN_WRAPS && fabs(y) >= (k->elem->bits == 4 ? 7 : 464)) m = 0;
  if (k->bug == BROKEN_ELEMENT_BIAS) m = m + 8 < sign ? m + 8 : sign - 1;
  if (k->bug == BROKEN_FLUSH && m <= tiny) m = 0;
  if (k->bug == BROKEN_ALL_ZERO) return 0;
  if (k->bug == BROKEN_COMPLEMENT && negative) return (0 - m) & (2 * sign - 1);
  return m | (k->bug == BROKEN_UNSIGNED ? 0 : (negative != (k->bug == BROKEN_NEGATED)) ? sign : 0);
}

/* ---- a tensor */

static float tensor_maximum(const kernel *k, const float *x, size_t row) {
  size_t first = 0, end = k->bug == BROKEN_HALF_TENSOR ? ROWS / 2 : ROWS;
  if (k->bug == BROKEN_TILE_TENSOR) first = row / 16 * 16, end = first + 16;
  return amax_of(x + first * k->cols, (end - first) * k->cols, BROKEN_NONE);
}

/* Returns the maximum from which the scale of block b of a row is made. */
static float scale_from(const kernel *k, const float *x, size_t r, size_t b) {
  const float *row = (k->of_scales ? k->of_scales : x) + r * k->cols;
  const size_t w = k->width;
  if (k->bug == BROKEN_WIDE) return amax_of(row + b / 2 * 2 * w, 2 * w, BROKEN_NONE);
  if (k->bug == BROKEN_NARROW) return amax_of(row + b * w, w / 2, BROKEN_NONE);
  const size_t n = k->cols - b * w < w ? k->cols - b * w : w;
  if (n < w && k->bug == BROKEN_TAIL_NEXT) return amax_of(row + b * w, r + 1 < ROWS ? w : n, BROKEN_NONE);
  if (n < w && k->bug == BROKEN_TAIL_STALE)
    return fmaxf(amax_of(row + b * w, n, BROKEN_NONE), amax_of(row + b * w - w + n, w - n, BROKEN_NONE));
  if (n < w && k->bug == BROKEN_TAIL_BOTH) return amax_of(row + b * w - w, w + n, BROKEN_NONE);
  if (n < w && k->bug == BROKEN_TAIL_HALF) return amax_of(row + b * w, n / 2, BROKEN_NONE);
  return fmaxf(amax_of(row + b * w, n, k->bug), 0);
}

static void row_codes(const kernel *k, uint8_t *codes, uint8_t *scales, const float *x, size_t r) {
  const size_t w = k->width;
  for (size_t b = 0; b < k->across; b++) scales[b] = (uint8_t)scale_code(k, scale_from(k, x, r, b));
  for (size_t c = 0; c < k->cols; c++) {
    const size_t b = c / w, i = c % w;
    const float *block = x + r * k->cols + b * w;
    const size_t n = k->cols - b * w < w ? k->cols - b * w : w;
    const float amax = amax_of(block, n, BROKEN_NONE);
    uint32_t used = scales[b];
    float largest = 0;
    if (k->bug == BROKEN_BEFORE && b) used = scales[b - 1];
    if (k->bug == BROKEN_AFTER && b + 1 < k->across) used = scales[b + 1];
    if (k->bug == BROKEN_NARROW && i >= w / 2) used = scale_code(k, amax_of(block + w / 2, w / 2, BROKEN_NONE));
    if (k->bug == BROKEN_LANES_ALONE && i % 2) used = scale_code(k, amax_of(block + 1, w - 1, k->bug));
    for (size_t j = 0; j < n; j++)
      if (fabsf(block[j]) > fabsf(largest)) largest = block[j];
    codes[c] = (uint8_t)element(k, block[i], used, amax, largest);
  }
}

/* Puts the codes of a row where the bug stores them. */
static void move_codes(const kernel *k, uint8_t *codes) {
  uint8_t old[COLS];
  const size_t group = k->elem->bits == 4 ? 8 : 4;
  memcpy(old, codes, k->cols);
  for (size_t c = 0; c < k->cols; c++) {
    const size_t i = c % 16, b = c - i;
    if (k->bug == BROKEN_WORDS) codes[c] = old[c ^ (group - 1)];
    if (k->bug == BROKEN_BYTES) codes[c] = old[c ^ 6];
    if (k->bug == BROKEN_PAIRS) codes[c] = old[c ^ 1];
    if (k->bug == BROKEN_DEAL) codes[c] = old[b + (i < 8 ? 2 * i : 2 * (i - 8) + 1)];
    if (k->bug == BROKEN_LANE && c % 32 == 31) codes[c] = old[c - 1];
    if (k->bug == BROKEN_LANE_ZERO && i == 5) codes[c] = 0;
  }
}

static void move_blocks(const kernel *k, uint8_t *codes, uint8_t *scales) {
  const size_t w = k->width, n = k->across;
  for (size_t at = ROWS * n; at-- > 0;) {
    const size_t r = at / n, b = at % n;
    uint8_t *to = codes + r * k->cols + b * w;
    if (k->bug == BROKEN_ODD_ROWS && r % 2) memset(to, 0, w), scales[at] = 0;
    if (k->bug == BROKEN_STALE && b == 5) memcpy(to, to - w, w), scales[at] = scales[at - 1];
    if (k->bug == BROKEN_ROW_ABOVE && r && at % 37 == 0) memcpy(to, to - k->cols, w), scales[at] = scales[at - n];
    if (k->bug == BROKEN_SCALES_OF_TILE && (b == 6 || b == 7)) scales[at] = scales[at - 2];
    if (k->bug == BROKEN_NO_BIAS) scales[at] = (uint8_t)(scales[at] - 127);
    if (k->bug == BROKEN_SCALE_PLUS_1) scales[at]++;
    if (k->bug == BROKEN_FNUZ)
      scales[at] = (uint8_t)mx_encode(mx_format_find("e4m3fnuz"), mx_decode(k->scale, scales[at]), &(mx_encoding){0}, 0);
  }
}

/* Moves rows and tiles of a matrix of bytes to where the bug stores them. */
static void move_rows(uint8_t *x, size_t cols, int bug, int of_scales) {
  uint8_t *old = malloc(ROWS * cols);
  if (!old) abort();
  memcpy(old, x, ROWS * cols);
  for (size_t r = 0; r < ROWS; r++)
    for (size_t c = 0; c < cols; c++) {
      size_t i = r, k = c;
      if (bug == BROKEN_ROW_PAIRS) i = r ^ 1;
      if (bug == BROKEN_ROWS_TURNED && of_scales) i = ROWS - 1 - r;
      if (bug == BROKEN_TILES_TURNED && !of_scales) i = r / 16 * 16 + c % 16, k = c / 16 * 16 + r % 16;
      if (bug == BROKEN_GRID_TURNED) { /* the tiles of scales are as wide as those of the codes */
        const size_t wide = cols / 8, tile = r / 64 * 8 + c / wide;
        i = tile % 2 * 64 + r % 64, k = tile / 2 * wide + c % wide;
      }
      if (bug == BROKEN_TWO_TILES && !of_scales && r / 32 == 1 && c / 32 == 2) i = r + 32, k = c + 96;
      if (bug == BROKEN_TWO_TILES && !of_scales && r / 32 == 2 && c / 32 == 5) i = r - 32, k = c - 96;
      if (bug == BROKEN_ODD_PAIRS && !of_scales && r % 2) k = c ^ 1;
      x[r * cols + c] = old[i * cols + k];
    }
  free(old);
}

void broken_run(mx_sample *s, int bug, char base) {
  kernel k = {.bug = bug, .is_nv = base == 'n' || base == 't', .is_te = base == 't'};
  k.width = k.is_nv ? 16 : 32;
  k.cols = bug >= BROKEN_TAIL_NEXT && bug <= BROKEN_TAIL_HALF ? RAGGED : COLS;
  k.across = (k.cols + k.width - 1) / k.width;
  k.elem = mx_elem_format(base == '8' ? MX_ELEM_E4M3 : MX_ELEM_E2M1);
  k.scale = mx_scale_format(k.is_nv ? MX_SCALE_E4M3 : MX_SCALE_E8M0);
  k.max = (float)mx_format_max(k.elem);
  float *x = malloc(ROWS * k.cols * sizeof *x), *seen = malloc(ROWS * k.cols * sizeof *seen);
  uint8_t *codes = malloc(ROWS * k.cols), *scales = malloc(ROWS * k.across);
  if (!x || !seen || !codes || !scales) abort();
  numbers(x, &k);
  memcpy(seen, x, ROWS * k.cols * sizeof *x);
  change_input(seen, &k);
  float *of_scales = NULL; /* the scales or the elements come from rotated numbers, not both */
  if (bug == BROKEN_AMAX_UNROTATED || bug == BROKEN_CODES_UNROTATED) {
    k.of_scales = of_scales = malloc(ROWS * k.cols * sizeof *of_scales);
    if (!of_scales) abort();
    memcpy(of_scales, x, ROWS * k.cols * sizeof *x);
    float *rotated = bug == BROKEN_AMAX_UNROTATED ? seen : of_scales;
    for (size_t i = 0; i < ROWS * k.cols; i += 16) butterflies(rotated + i, 1);
    for (size_t i = 0; i < ROWS * k.cols; i++) rotated[i] /= 4;
  }
  const float *maximum_of = of_scales ? of_scales : seen;
  for (size_t r = 0; r < ROWS; r++) {
    k.tensor_max = tensor_maximum(&k, maximum_of, r);
    row_codes(&k, codes + r * k.cols, scales + r * k.across, seen, r);
    move_codes(&k, codes + r * k.cols);
  }
  move_blocks(&k, codes, scales);
  move_rows(codes, k.cols, bug, 0);
  move_rows(scales, k.across, bug, 1);
  k.tensor_max = tensor_maximum(&k, maximum_of, 0);
  float t = k.is_te ? k.tensor_max : k.tensor_max / 2688;
  if (bug == BROKEN_TENSOR_NAN) t = NAN;
  if (bug == BROKEN_TENSOR_INF) t = INFINITY;
  if (bug == BROKEN_TENSOR_RCP) t = 1 / t;
  if (bug == BROKEN_TENSOR_TWO) t *= 2;
  free(seen);
  free(of_scales);
  *s = (mx_sample){.rows = ROWS,
                   .cols = k.cols,
                   .ld = k.cols,
                   .x = x,
                   .codes = codes,
                   .scales = scales,
                   .scale_rows = ROWS,
                   .scale_cols = k.across,
                   .scale_bytes = 1,
                   .has_tensor_scale = k.is_nv,
                   .tensor_scale = t};
}

void broken_free(mx_sample *s) {
  free((void *)(uintptr_t)s->x);
  free((void *)(uintptr_t)s->codes);
  free((void *)(uintptr_t)s->scales);
  *s = (mx_sample){0};
}

int broken_is_named(const mx_identity *id, int bug) {
  const char *names = broken_rows[bug].names, *is = id->bug.name ? id->bug.name : "";
  const size_t n = strlen(is);
  if (id->bug.name && (id->bug.codes || id->bug.scales || id->bug.tensor_scales))
    return 0; /* a bug that leaves bytes wrong does not count as named */
  for (const char *p = names;; p += strcspn(p, "|") + 1) {
    if (strcspn(p, "|") == n && !strncmp(p, is, n)) return 1;
    if (!p[strcspn(p, "|")]) return 0;
  }
}
