/* Reads scales that a kernel stored in a form of its own. */
#include "foreign_scales.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What is read: like's codes of `bytes` each, from an array. */
typedef struct reading {
  const char *path;
  const mx_array *from;
  const mx_tensor *like;
  const mx_format *format;
  size_t bytes, block_rows; /* rows that share a scale in a file that has one for each block */
} reading;

static int is_float(mx_dtype dtype) { return dtype <= MX_F64; }

static int is_bytes(mx_dtype dtype) { return mx_dtype_bytes(dtype) == 1; }

/* One value that is not a code, with its place in the file's own shape. */
static int refuse(const reading *r, uint64_t at, const char *value) {
  size_t rows = 1, cols = 1;
  char codes[40] = "";
  if (!mx_matrix_of(&rows, &cols, r->from->shape, r->from->n_dims) || !cols) cols = 1;
  if (!is_float(r->from->dtype)) snprintf(codes, sizeof codes, ", 0 to %" PRIu64, ((uint64_t)1 << 8 * r->bytes) - 1);
  return cli_error("%s: tensor scales (%s): %s in row %" PRIu64 ", column %" PRIu64 ", expected a %s of %s%s", r->path,
                   mx_dtype_name(r->from->dtype), value, at / cols, at % cols, *codes ? "code" : "value", r->format->name, codes);
}

static double float_at(const mx_array *a, uint64_t i) {
  double wide;
  float x;
  if (a->dtype == MX_F64) {
    memcpy(&wide, a->data + i * sizeof wide, sizeof wide);
    return wide;
  }
  mx_array_read_f32(&x, a, i, 1, 0);
  return (double)x;
}

/* A little-endian integer; a negative one is more than any code. */
static uint64_t integer_at(const mx_array *a, uint64_t i) {
  const size_t wide = mx_dtype_bytes(a->dtype);
  const int is_signed = a->dtype >= MX_I8 && a->dtype <= MX_I64;
  uint64_t v = 0;
  for (size_t k = 0; k < wide; k++) v |= (uint64_t)a->data[i * wide + k] << 8 * k;
  if (is_signed && wide < 8 && v >> (8 * wide - 1)) v |= UINT64_MAX << 8 * wide;
  return v;
}

/* Values to codes, one for each. */
static int convert(uint8_t *out, const reading *r) {
  char text[40];
  for (uint64_t i = 0; i < r->from->n_values; i++) {
    uint64_t code;
    if (is_float(r->from->dtype)) {
      const double v = float_at(r->from, i);
      code = mx_encode(r->format, v, &(mx_encoding){0}, 0);
      const double back = mx_decode(r->format, (uint32_t)code);
      if (back != v && !(isnan(back) && isnan(v))) {
        snprintf(text, sizeof text, "%.9g", v);
        return refuse(r, i, text);
      }
    } else {
      code = integer_at(r->from, i);
      if (code >> 8 * r->bytes) {
        snprintf(text, sizeof text, r->from->dtype >= MX_I8 ? "%" PRId64 : "%" PRIu64, code);
        return refuse(r, i, text);
      }
    }
    memcpy(out + i * r->bytes, &code, r->bytes);
  }
  return CLI_FINE;
}

/* Rows of words that hold four codes each; the last word of a row may hold fewer. */
static void open_words(uint8_t *out, const reading *r, size_t rows) {
  const size_t cols = r->like->scale_cols, words = (cols + 3) / 4;
  for (size_t row = 0; row < rows; row++) memcpy(out + row * cols, r->from->data + row * words * 4, cols);
}

/* Of the layouts that need this many codes, the one whose codes differ least from like's. NULL if none does. */
static uint8_t *unpack(const char **layout, const reading *r, const uint8_t *codes, uint64_t n_codes) {
  const mx_tensor *like = r->like;
  const size_t n = like->scale_rows * like->scale_cols;
  uint8_t *best = NULL, *next = NULL;
  size_t least = SIZE_MAX;
  for (int l = 1; l < MX_LAYOUT_COUNT && r->bytes == 1; l++) {
    if (mx_layout_size((mx_layout)l, like->scale_rows, like->scale_cols) != n_codes) continue;
    if (!next && !(next = malloc(n + 1))) break;
    mx_layout_unpack(next, (mx_layout)l, codes, like->scale_rows, like->scale_cols);
    size_t wrong = 0;
    for (size_t i = 0; i < n; i++) wrong += next[i] != like->scales[i];
    if (wrong >= least) continue;
    least = wrong;
    *layout = mx_layout_name((mx_layout)l);
    uint8_t *keep = best;
    best = next;
    next = keep;
  }
  free(next);
  return best;
}

/* One row of scales for each row of the tensor, from one for each block. */
static uint8_t *spread(const reading *r, const uint8_t *codes) {
  const size_t row = r->like->scale_cols * r->bytes;
  uint8_t *out = malloc(r->like->scale_rows * row + 1);
  for (size_t i = 0; out && i < r->like->scale_rows; i++) memcpy(out + i * row, codes + i / r->block_rows * row, row);
  return out;
}

static size_t block_count(const reading *r) {
  const size_t rows = r->like->scale_rows;
  return rows == r->like->rows && r->block_rows > 1 ? (rows / r->block_rows + (rows % r->block_rows != 0)) * r->like->scale_cols : 0;
}

/* How many codes the file holds, if that is what some form of like's would have; 0 if not. *words: rows of words of four codes. */
static uint64_t count(size_t *words, const reading *r) {
  const mx_tensor *like = r->like;
  const size_t n = like->scale_rows * like->scale_cols, blocks = block_count(r), each = (like->scale_cols + 3) / 4;
  const uint64_t held = is_bytes(r->from->dtype) ? r->from->n_bytes / r->bytes : r->from->n_values;
  *words = 0;
  if (is_bytes(r->from->dtype) && r->from->n_bytes % r->bytes) return 0;
  if (held == n || (blocks && held == blocks)) return held;
  for (int l = 1; l < MX_LAYOUT_COUNT && r->bytes == 1; l++)
    if (mx_layout_size((mx_layout)l, like->scale_rows, like->scale_cols) == held) return held;
  if (r->bytes != 1 || (r->from->dtype != MX_I32 && r->from->dtype != MX_U32) || !each) return 0;
  if (held == like->scale_rows * each) *words = like->scale_rows;
  if (blocks && held == blocks / like->scale_cols * each) *words = blocks / like->scale_cols;
  return (uint64_t)*words * like->scale_cols;
}

int foreign_scales_read(foreign_scales *out, const char *path, const mx_array *scales, const mx_quantized *like) {
  const mx_tensor *t = &like->tensor;
  reading r = {.path = path, .from = scales, .like = t, .format = mx_scale_format(like->spec.scale), .bytes = t->scale_bytes};
  size_t block_cols, words;
  mx_spec_block(&like->spec, t->rows, t->cols, &r.block_rows, &block_cols);
  *out = (foreign_scales){0};
  const size_t wanted = t->scale_rows * t->scale_cols;
  const uint64_t n = count(&words, &r);
  if (!n && (wanted || scales->n_values))
    return cli_error("%s: tensor scales: %" PRIu64 " values of %s, expected %zu x %zu as in A", path, scales->n_values,
                     mx_dtype_name(scales->dtype), t->scale_rows, t->scale_cols);
  const int same = like->spec.scale == MX_SCALE_FP32   ? scales->dtype == MX_F32
                   : like->spec.scale == MX_SCALE_BF16 ? scales->dtype == MX_BF16
                                                       : 0;
  const int whole = same || is_bytes(scales->dtype) || (!is_float(scales->dtype) && mx_dtype_bytes(scales->dtype) == r.bytes);
  const uint8_t *codes = scales->data;
  if (!whole) {
    codes = out->owned = malloc(n * r.bytes + 1);
    if (!out->owned) return cli_error("out of memory");
    if (words) open_words(out->owned, &r, words);
    if (!words && convert(out->owned, &r)) return CLI_TROUBLE;
  }
  if (n != wanted) {
    uint8_t *straight = n == block_count(&r) ? spread(&r, codes) : unpack(&out->layout, &r, codes, n);
    if (!straight) return cli_error("out of memory");
    free(out->owned);
    out->owned = straight;
  }
  out->codes = n != wanted || !whole ? out->owned : (uint8_t *)(uintptr_t)codes; /* read only */
  return CLI_FINE;
}
