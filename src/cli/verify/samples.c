/* Opens the outputs of a kernel. */
#include "samples.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "high_bits.h"

static void *own(samples *s, size_t n_bytes) {
  void **more = realloc(s->owned, (s->n_owned + 1) * sizeof *more);
  if (more) s->owned = more;
  void *p = more ? malloc(n_bytes + 1) : NULL;
  if (p) s->owned[s->n_owned++] = p;
  s->no_memory |= !p;
  return p;
}

static mx_sample *add_sample(samples *s, const char *name) {
  mx_sample *at = realloc(s->at, (s->n + 1) * sizeof *at);
  if (at) s->at = at;
  char **names = at ? realloc(s->names, (s->n + 1) * sizeof *names) : NULL;
  if (names) s->names = names;
  if (!names || !(names[s->n] = strdup(name))) return NULL;
  s->at[s->n] = (mx_sample){0};
  return &s->at[s->n++];
}

/* x turned: the kernel saw its transpose. */
static int turn(samples *s, mx_sample *m) {
  float *t = own(s, m->rows * m->cols * sizeof *t);
  if (!t) return cli_error("out of memory");
  for (size_t r = 0; r < m->rows; r++)
    for (size_t c = 0; c < m->cols; c++) t[c * m->rows + r] = m->x[r * m->cols + c];
  const size_t rows = m->rows;
  m->rows = m->cols;
  m->cols = rows;
  m->x = t;
  m->ld = m->cols;
  return CLI_FINE;
}

int samples_turn(samples *s) {
  for (size_t i = 0; i < s->n; i++)
    if (s->at[i].rows != s->at[i].cols) return 0;
  for (size_t i = 0; i < s->n; i++)
    if (turn(s, &s->at[i])) return 0;
  return s->n != 0;
}

static int set_input(samples *s, mx_sample *m, const mx_array *a, int transpose) {
  if (!mx_matrix_of(&m->rows, &m->cols, a->shape, a->n_dims)) return cli_error("input: the shape overflows");
  float *x = own(s, a->n_values * sizeof *x);
  if (!x) return cli_error("out of memory");
  if (mx_array_read_f32(x, a, 0, a->n_values, a->dtype == MX_U16))
    return cli_error("input: dtype %s, expected f32, f16 or bf16", mx_dtype_name(a->dtype));
  m->x = x;
  m->ld = m->cols;
  return transpose ? turn(s, m) : CLI_FINE;
}

/* Codes of as many rows as the input has columns, and the other way: the kernel quantised the transpose. */
static int is_turned(const mx_sample *m, const mx_array *a) {
  return a->n_dims == 2 && m->rows != m->cols && a->shape[0] == m->cols && a->shape[1] >= (m->rows + 1) / 2;
}

/* The low byte of each value; files are little-endian. NULL: no memory. */
static const uint8_t *low_bytes(samples *s, const mx_array *a) {
  const size_t wide = mx_dtype_bytes(a->dtype);
  uint8_t *narrow = own(s, a->n_values);
  for (uint64_t i = 0; narrow && i < a->n_values; i++) narrow[i] = a->data[i * wide];
  return narrow;
}

/* Bytes of codes: wide integers that hold one code each are narrowed, packed words (eight 4-bit codes in 32 bits) taken as the bytes they are. */
static const uint8_t *code_bytes(samples *s, const mx_sample *m, const mx_array *a, uint64_t *n) {
  *n = a->n_bytes;
  if (mx_dtype_bytes(a->dtype) == 1 || a->n_values != m->rows * m->cols) return a->data;
  *n = a->n_values;
  return low_bytes(s, a);
}

static int all_below_16(const uint8_t *codes, uint64_t n) {
  uint8_t all = 0;
  for (uint64_t i = 0; i < n; i++) all |= codes[i];
  return all < 16;
}

/* Rows of at least as many bytes as the input has columns: are they two codes a byte all the same, of rows padded to a block? Then bytes that would be
 * codes of numbers are padding. */
static int is_padding(const mx_sample *m, const uint8_t *data, size_t width) {
  const size_t half = (m->cols + 1) / 2;
  int numbers = 0, wide = 0;
  for (size_t r = 0; r < m->rows; r++)
    for (size_t c = 0; c < m->cols; c++) {
      wide |= data[r * width + c] > 15;
      if (c < half) continue;
      numbers |= m->x[r * m->ld + c] != 0;
      if (data[r * width + c]) return 0;
    }
  return numbers && wide;
}

/* Room for the packed codes of each sample. */
static struct packed_codes *more_packed(samples *s) {
  struct packed_codes *more = own(s, s->n * sizeof *more);
  if (more && s->packed) memcpy(more, s->packed, (s->n - 1) * sizeof *more);
  return more;
}

/* Rows of packed codes are padded to a multiple of so many columns at most. */
enum { PADDED = 128 };

/* Codes are stored one or two a byte: rows are as wide as the input, or half as wide (and up to a padded block more), in any shape with as many rows. */
static int set_codes(samples *s, mx_sample *m, const mx_array *a, int packed) {
  uint64_t n;
  if (is_turned(m, a)) {
    s->turned = 1;
    if (turn(s, m)) return CLI_TROUBLE;
  }
  if (a->dtype == MX_F32 || a->dtype == MX_F16 || a->dtype == MX_BF16)
    return cli_error("codes: dtype %s, expected codes as integers; values go to --dequantized", mx_dtype_name(a->dtype));
  const uint8_t *data = code_bytes(s, m, a, &n);
  if (!data) return cli_error("out of memory");
  const size_t rows = m->rows, cols = rows ? n / rows : 0;
  if (!rows || n % rows)
    return cli_error("codes: %llu bytes for %zu rows of the input, expected as many bytes for each row", (unsigned long long)n, rows);
  if (packed && cols >= m->cols && (2 * cols > (m->cols + PADDED - 1) / PADDED * PADDED || all_below_16(data, n)))
    return cli_error("codes: --packed, but %zu bytes a row for %zu columns of the input are one code a byte", cols, m->cols);
  if (!packed && (cols < m->cols || (m->cols <= 64 && is_padding(m, data, cols)))) packed = 1;
  const size_t half = (m->cols + 1) / 2, most = (m->cols + PADDED - 1) / PADDED * PADDED / 2;
  if (packed && cols < m->cols && (cols < half || cols > most))
    return cli_error("codes: %zu x %zu bytes for an input of %zu x %zu, expected %zu a row, or %zu%s with two codes a byte", rows, cols,
                     m->rows, m->cols, m->cols, half, most > half ? " and some padding" : "");
  uint8_t *codes = own(s, m->rows * m->cols);
  if (!codes) return cli_error("out of memory");
  for (size_t r = 0; r < rows; r++)
    for (size_t c = 0; c < m->cols; c++) codes[r * m->cols + c] = packed ? data[r * cols + c / 2] >> (c % 2 * 4) & 15 : data[r * cols + c];
  m->codes = codes;
  if (!packed && high_bits_check(m)) return CLI_TROUBLE;
  s->packed = packed ? more_packed(s) : s->packed;
  if (packed && !s->packed) return cli_error("out of memory");
  if (packed) s->packed[s->n - 1] = (struct packed_codes){data, cols};
  s->code_shape[0] = rows;
  s->code_shape[1] = cols;
  s->nibble = packed ? MX_NIBBLE_LOW_FIRST : -1;
  return CLI_FINE;
}

/* The code at column c of a row of n packed bytes; beyond them 0. */
static uint8_t code_in(const uint8_t *row, size_t n, size_t c, int nibble, size_t block) {
  const size_t half = block / 2, byte = nibble == MX_NIBBLE_HALF_BLOCK ? c / block * half + c % block % half : c / 2;
  const int high = nibble == MX_NIBBLE_HALF_BLOCK ? c % block >= half : (int)(c % 2) ^ (nibble == MX_NIBBLE_HIGH_FIRST);
  return byte < n ? row[byte] >> (high ? 4 : 0) & 15 : 0;
}

int samples_repack(samples *s, int nibble, size_t block) {
  if (s->nibble < 0 || block % 2) return 0;
  for (size_t i = 0; i < s->n; i++) {
    mx_sample *m = &s->at[i];
    const size_t width = s->packed[i].width;
    uint8_t *codes = own(s, m->rows * m->cols);
    if (!codes) return 0;
    for (size_t r = 0; r < m->rows; r++)
      for (size_t c = 0; c < m->cols; c++) codes[r * m->cols + c] = code_in(s->packed[i].bytes + r * width, width, c, nibble, block);
    m->codes = codes;
  }
  s->nibble = nibble;
  return 1;
}

/* A code with sign and magnitude as a number of the same order. */
static int rank_of(uint8_t code) { return code & 8 ? -(code & 7) : code & 7; }

/* Share of pairs of neighbours in a block whose codes are the other way round than their numbers, under an order of nibbles. 1: too few pairs. */
static double disorder(const samples *s, int nibble, size_t block) {
  enum { ENOUGH = 16, MOST = 1 << 16 };
  size_t pairs = 0, against = 0;
  for (size_t i = 0; i < s->n; i++) {
    const mx_sample *m = &s->at[i];
    const size_t width = s->packed[i].width, step = m->rows * m->cols / MOST + 1;
    for (size_t r = 0; r < m->rows; r += step)
      for (size_t c = 0; c + 1 < m->cols; c += 2) {
        const float *x = m->x + r * m->ld + c;
        const uint8_t *row = s->packed[i].bytes + r * width;
        const int a = rank_of(code_in(row, width, c, nibble, block)), b = rank_of(code_in(row, width, c + 1, nibble, block));
        if (a == b || !(x[0] < x[1] || x[0] > x[1])) continue;
        pairs++;
        against += (x[0] < x[1]) != (a < b);
      }
  }
  return pairs < ENOUGH ? 1 : (double)against / (double)pairs;
}

/* Do the scales allow blocks of so many columns? In a kernel's own layout they tell nothing. */
static int may_be_block(const samples *s, size_t block) {
  int fits = 1;
  for (size_t i = 0; i < s->n; i++) fits &= s->at[i].scale_rows == s->at[i].rows && s->at[i].scale_cols == (s->at[i].cols + block - 1) / block;
  return fits || block == 32 || block == 16;
}

int samples_likely_nibble(const samples *s, size_t *block) {
  static const size_t blocks[] = {32, 16, 64, 128, 8, 256};
  const size_t given = *block;
  int best = MX_NIBBLE_LOW_FIRST;
  if (s->nibble < 0) return -1;
  double least = disorder(s, best, 32) / 4; /* another order must be far better */
  const double high = disorder(s, MX_NIBBLE_HIGH_FIRST, 32);
  if (high < least) best = MX_NIBBLE_HIGH_FIRST, least = high;
  for (size_t k = 0; k < sizeof blocks / sizeof blocks[0]; k++) {
    if (given ? k || given % 2 : !may_be_block(s, blocks[k])) continue;
    const double mine = disorder(s, MX_NIBBLE_HALF_BLOCK, given ? given : blocks[k]);
    if (mine < least) best = MX_NIBBLE_HALF_BLOCK, least = mine, *block = given ? given : blocks[k];
  }
  return best;
}

int samples_order_is_sure(const samples *s, int nibble, int other, size_t block) {
  static const double IN_ORDER = 0.1, OUT_OF_ORDER = 0.25; /* codes that have nothing to do with their numbers: one half */
  return disorder(s, nibble, block) < IN_ORDER && disorder(s, other, block) > OUT_OF_ORDER;
}

int samples_encode_scales(samples *s, int scale) {
  const mx_format *f = mx_scale_format(scale);
  for (size_t i = 0; i < s->n; i++) {
    mx_sample *m = &s->at[i];
    const size_t n = m->scale_rows * m->scale_cols;
    uint8_t *codes = s->scale_values && s->scale_values[i] ? own(s, n) : NULL;
    if (!codes) return 0;
    for (size_t k = 0; k < n; k++) {
      const double v = (double)s->scale_values[i][k];
      codes[k] = (uint8_t)mx_encode(f, v, &(mx_encoding){0}, 0);
      const int both_nan = isnan(v) && isnan(mx_decode(f, codes[k]));
      if (!both_nan && mx_decode(f, codes[k]) != v) return 0;
    }
    m->scales = codes;
    m->scale_bytes = 1;
  }
  return s->n != 0;
}

int samples_straighten(mx_sample *to, samples *s, int layout, size_t block) {
  for (size_t i = 0; i < s->n; i++) {
    mx_sample m = s->at[i];
    const size_t kb = (m.cols + block - 1) / block;
    if (m.scale_bytes != 1 || mx_layout_size((mx_layout)layout, m.rows, kb) != m.scale_rows * m.scale_cols) return 0;
    uint8_t *straight = own(s, m.rows * kb);
    if (!straight) return 0;
    mx_layout_unpack(straight, (mx_layout)layout, m.scales, m.rows, kb);
    m.scales = straight;
    m.scale_rows = m.rows;
    m.scale_cols = kb;
    to[i] = m;
  }
  return 1;
}

int samples_add(samples *s, const char *name, const float *x, size_t ld, const mx_tensor *t, const mx_spec *spec) {
  const size_t n = t->rows * t->cols, n_codes = t->rows * t->code_stride, n_scales = t->scale_rows * t->scale_cols * t->scale_bytes;
  const int bits = mx_elem_format(spec->elem)->bits;
  mx_sample *m = add_sample(s, name);
  float *mine = own(s, n * sizeof *mine);
  uint8_t *scales = own(s, n_scales), *codes = own(s, bits == 4 ? n_codes : n);
  struct packed_codes *packed = m && bits == 4 ? more_packed(s) : NULL;
  if (!m || !mine || !scales || !codes || (bits == 4 && !packed)) return cli_error("out of memory");
  for (size_t r = 0; r < t->rows; r++) memcpy(mine + r * t->cols, x + r * ld, t->cols * sizeof *mine);
  memcpy(scales, t->scales, n_scales);
  *m = (mx_sample){.rows = t->rows,
                   .cols = t->cols,
                   .ld = t->cols,
                   .x = mine,
                   .codes = codes,
                   .scales = scales,
                   .scale_rows = t->scale_rows,
                   .scale_cols = t->scale_cols,
                   .scale_bytes = t->scale_bytes,
                   .has_tensor_scale = t->has_tensor_scale,
                   .tensor_scale = t->tensor_scale};
  if (bits != 4) {
    uint32_t *wide = own(s, n * sizeof *wide);
    if (!wide) return cli_error("out of memory");
    mx_unpack_codes(wide, t, spec);
    for (size_t i = 0; i < n; i++) codes[i] = (uint8_t)wide[i];
    return CLI_FINE;
  }
  memcpy(codes, t->codes, n_codes);
  s->packed = packed;
  s->packed[s->n - 1] = (struct packed_codes){codes, t->code_stride};
  s->nibble = MX_NIBBLE_LOW_FIRST;
  return samples_repack(s, MX_NIBBLE_LOW_FIRST, 32) ? CLI_FINE : cli_error("out of memory");
}

/* Scales as numbers: what they are, beside how they are stored. */
static int keep_scale_values(samples *s, const mx_sample *m, const mx_array *a) {
  float **more = realloc(s->scale_values, s->n * sizeof *more);
  if (!more) return cli_error("out of memory");
  s->scale_values = more;
  const size_t i = (size_t)(m - s->at);
  more[i] = NULL;
  if (m->scale_bytes == 1) return CLI_FINE;
  float *values = own(s, a->n_values * sizeof *values);
  if (!values) return cli_error("out of memory");
  if (!mx_array_read_f32(values, a, 0, a->n_values, 0)) more[i] = values;
  return CLI_FINE;
}

/* Wide integers that hold a code of a byte each: those bytes, NULL if they do not. */
static const uint8_t *codes_in_words(samples *s, const mx_array *a) {
  const size_t wide = mx_dtype_bytes(a->dtype);
  if (wide < 2 || a->dtype < MX_U16 || a->dtype > MX_I64) return NULL;
  for (uint64_t i = 0; i < a->n_values; i++)
    for (size_t k = 1; k < wide; k++)
      if (a->data[i * wide + k]) return NULL;
  return low_bytes(s, a);
}

/* Columns of scales in rows of 32-bit words that hold four each: as many as blocks of some power of two have, less what is zero throughout, where several
 * do. 0 if none has. */
static size_t columns_in_words(const mx_array *a, size_t cols, size_t rows, size_t words) {
  size_t used = words > 1 ? 4 * words - 3 : 4, columns = 0;
  int low = 0;
  if (words == 1)
    for (int all = 0; used > 1 && !all; used -= !all)
      for (size_t r = 0; r < rows && !all; r++) all = a->data[4 * r + used - 1];
  for (size_t r = 0; r < rows * words && !low; r++) low = a->data[4 * r] | a->data[4 * r + 1];
  if (!low) return 0; /* the bits of floats that are powers of two */
  for (size_t block = 8; block <= 4096; block *= 2) {
    const size_t n = cols / block + (cols % block != 0);
    if ((n + 3) / 4 == words && n >= used) columns = n;
  }
  return columns;
}

/* 32-bit integers that are not codes themselves hold four bytes each, little-endian, along a row (DeepGEMM's packed UE8M0). */
static void scales_in_words(samples *s, mx_sample *m, const mx_array *a) {
  if ((a->dtype != MX_I32 && a->dtype != MX_U32) || !m->scale_rows) return;
  const size_t words = m->scale_cols, columns = columns_in_words(a, m->cols, m->scale_rows, words);
  uint8_t *bytes = columns ? own(s, m->scale_rows * columns) : NULL;
  if (!bytes) return;
  for (size_t r = 0; r < m->scale_rows; r++) memcpy(bytes + r * columns, a->data + r * words * 4, columns);
  m->scales = bytes;
  m->scale_cols = columns;
  m->scale_bytes = 1;
}

static int set_scales(samples *s, mx_sample *m, const mx_array *a) {
  if (!mx_matrix_of(&m->scale_rows, &m->scale_cols, a->shape, a->n_dims)) return cli_error("scales: the shape overflows");
  const uint8_t *narrow = codes_in_words(s, a);
  m->scale_bytes = narrow ? 1 : mx_dtype_bytes(a->dtype);
  if (m->scale_bytes != 1 && m->scale_bytes != 2 && m->scale_bytes != 4)
    return cli_error("scales: dtype %s, expected 1, 2 or 4 bytes a value", mx_dtype_name(a->dtype));
  /* Scales stand one after the other, or with axes of size 1: the same number for each row. */
  if (m->scale_rows != m->rows && (a->n_dims != 2 || m->scale_cols == 1) && m->rows && a->n_values % m->rows == 0 && a->n_values) {
    m->scale_rows = m->rows;
    m->scale_cols = a->n_values / m->rows;
  }
  m->scales = narrow ? narrow : a->data;
  if (!narrow) scales_in_words(s, m, a);
  return keep_scale_values(s, m, a);
}

static int set_values(samples *s, mx_sample *m, const mx_array *a) {
  if (a->n_values != m->rows * m->cols)
    return cli_error("dequantized: %llu values, expected %zu as in the input", (unsigned long long)a->n_values, m->rows * m->cols);
  float *y = own(s, a->n_values * sizeof *y);
  if (!y) return cli_error("out of memory");
  if (mx_array_read_f32(y, a, 0, a->n_values, 0)) return cli_error("dequantized: dtype %s, expected f32, f16 or bf16", mx_dtype_name(a->dtype));
  m->values = y;
  return CLI_FINE;
}

static int open_one(samples *s, const mx_array **a, const char *path) {
  mx_error err;
  if (mx_tensor_open(&s->files[s->n_files], a, path, &err)) return cli_fail(&err);
  s->n_files++;
  return CLI_FINE;
}

static const mx_array *named(const mx_file *f, const char *suite, const char *name) {
  char full[600];
  const mx_array *a;
  snprintf(full, sizeof full, "%s%s%s", suite, *suite ? "." : "", name);
  return mx_file_find(&a, f, full, NULL) ? NULL : a;
}

/* A tensor scale for each row: the rows become samples of one row, each with its own; where all are the same they are one. */
static int split_rows(samples *s, mx_sample *m, const mx_array *a) {
  const mx_sample whole = *m;
  const size_t rows = whole.rows, at = s->n - 1;
  const size_t stride = whole.scale_cols * whole.scale_bytes;
  float *values = own(s, rows * sizeof *values);
  if (!values) return cli_error("out of memory");
  if (mx_array_read_f32(values, a, 0, rows, 0)) return cli_error("tensor_scale: dtype %s, expected f32, f16 or bf16", mx_dtype_name(a->dtype));
  int all_alike = 1;
  for (size_t r = 1; r < rows; r++) all_alike &= !memcmp(&values[r], values, sizeof *values);
  if (all_alike) {
    m->tensor_scale = *values;
    m->has_tensor_scale = 1;
    return CLI_FINE;
  }
  if (whole.scale_rows != rows) return cli_error("tensor_scale: one for each row, expected scales of each row too");
  const struct packed_codes packed = s->packed ? s->packed[at] : (struct packed_codes){0};
  float *scale_values = s->scale_values ? s->scale_values[at] : NULL;
  for (size_t r = 0; r < rows; r++) {
    if (r && !add_sample(s, s->names[at])) return cli_error("out of memory");
    mx_sample *row = &s->at[at + r];
    *row = whole;
    row->rows = row->scale_rows = 1;
    row->x = whole.x + r * whole.ld;
    row->codes = whole.codes + r * whole.cols;
    row->scales = (const uint8_t *)whole.scales + r * stride;
    row->tensor_scale = values[r];
    row->has_tensor_scale = 1;
    if (s->packed) {
      if (r && !(s->packed = more_packed(s))) return cli_error("out of memory");
      s->packed[at + r] = (struct packed_codes){packed.bytes + r * packed.width, packed.width};
    }
    if (s->scale_values) {
      float **more = realloc(s->scale_values, s->n * sizeof *more);
      if (!more) return cli_error("out of memory");
      s->scale_values = more;
      more[at + r] = scale_values ? scale_values + r * whole.scale_cols : NULL;
    }
  }
  s->row_scales = 1;
  return CLI_FINE;
}

static int set_tensor_scale(samples *s, mx_sample *m, const mx_array *a) {
  enum { MOST_ROWS = 1 << 14 };
  if (!a) return CLI_FINE;
  if (a->n_values == m->rows && m->rows > 1 && m->rows <= MOST_ROWS) return split_rows(s, m, a);
  if (a->n_values != 1)
    return cli_error("tensor_scale: %llu values, expected one, or one for each of %zu rows", (unsigned long long)a->n_values, m->rows);
  if (a->dtype != MX_F32) return CLI_FINE;
  memcpy(&m->tensor_scale, a->data, sizeof m->tensor_scale);
  m->has_tensor_scale = 1;
  return CLI_FINE;
}

/* A file of mxgold's says in which layout its scales lie: they become rows. Where the sizes are no such layout's they stay. */
static void straighten_as_stated(samples *s, mx_sample *m, const mx_file *f) {
  const char *name = mx_file_meta(f, "layout"), *block = mx_file_meta(f, "block");
  const int layout = name ? mx_layout_find(name) : MX_LAYOUT_ROW;
  unsigned height, width;
  if (layout <= MX_LAYOUT_ROW || !block || sscanf(block, "%ux%u", &height, &width) != 2 || !height || !width || m->scale_bytes != 1) return;
  const size_t down = m->rows / height + (m->rows % height != 0), across = m->cols / width + (m->cols % width != 0);
  if (mx_layout_size((mx_layout)layout, down, across) != m->scale_rows * m->scale_cols) return;
  uint8_t *straight = own(s, down * across + 1);
  if (!straight) return;
  mx_layout_unpack(straight, (mx_layout)layout, m->scales, down, across);
  m->scales = straight;
  m->scale_rows = down;
  m->scale_cols = across;
  s->layout = mx_layout_name((mx_layout)layout);
}

/* One suite of a .safetensors file. */
static int from_file(samples *s, const mx_file *f, const char *suite, const sample_options *o, const mx_array *input) {
  const mx_array *codes = named(f, suite, "codes"), *scales = named(f, suite, "scales"), *values = named(f, suite, "dequantized");
  if (!input) input = named(f, suite, "input");
  if (!input) input = named(f, suite, "x");
  if (!input && o->second)
    return cli_error(
        "--confirm %s: no tensor input or x, expected a file with what the kernel gave on another launch and the input of that launch",
        mx_file_path(f));
  if (!input) return cli_error("%s: no tensor input or x, expected one, or --input X", mx_file_path(f));
  if (o->values ? !values : !codes || !scales)
    return cli_error("%s: no %s", mx_file_path(f), o->values ? "tensor dequantized" : "tensors codes and scales");
  mx_sample *m = add_sample(s, suite);
  if (!m) return cli_error("out of memory");
  if (set_input(s, m, input, o->transpose)) return CLI_TROUBLE;
  if (o->values) return set_values(s, m, values);
  if (set_codes(s, m, codes, o->packed) || set_scales(s, m, scales)) return CLI_TROUBLE;
  straighten_as_stated(s, m, f);
  return set_tensor_scale(s, m, named(f, suite, "tensor_scale"));
}

static int whole_file(samples *s, const sample_options *o, const mx_array *input) {
  mx_error err;
  mx_file *f;
  if (mx_file_open(&f, o->output, &err)) return cli_fail(&err);
  s->files[s->n_files++] = f;
  if (o->values || named(f, "", "codes")) return from_file(s, f, "", o, input);
  for (size_t i = 0; i < mx_file_count(f); i++) {
    const char *name = mx_file_at(f, i)->name, *end = strrchr(name, '.');
    char suite[512];
    if (!end || strcmp(end, ".codes") || (size_t)(end - name) >= sizeof suite) continue;
    snprintf(suite, sizeof suite, "%.*s", (int)(end - name), name);
    if (!named(f, suite, "scales")) continue; /* single values, not blocks */
    if (from_file(s, f, suite, o, NULL)) return CLI_TROUBLE;
  }
  return s->n ? CLI_FINE : cli_error("%s: no tensor codes, expected codes and scales, or SUITE.codes and SUITE.scales", o->output);
}

int samples_open(samples *s, const sample_options *o) {
  *s = (samples){.nibble = -1};
  const mx_array *input = NULL, *a;
  if (o->input && open_one(s, &input, o->input)) return CLI_TROUBLE;
  if (o->output && whole_file(s, o, input)) return CLI_TROUBLE;
  if (!o->output) {
    if (!input) return cli_error("no input, expected --input X.npy, or --output FILE.safetensors that has it");
    if (!o->dequantized && (!o->codes || !o->scales)) return cli_error("expected --codes C.npy and --scales S.npy, or --dequantized Y.npy");
    mx_sample *m = add_sample(s, "");
    if (!m) return cli_error("out of memory");
    if (set_input(s, m, input, o->transpose)) return CLI_TROUBLE;
    if (o->codes && (open_one(s, &a, o->codes) || set_codes(s, m, a, o->packed))) return CLI_TROUBLE;
    if (o->codes && (open_one(s, &a, o->scales) || set_scales(s, m, a))) return CLI_TROUBLE;
    if (!o->codes && (open_one(s, &a, o->dequantized) || set_values(s, m, a))) return CLI_TROUBLE;
  }
  if (o->tensor_scale.given) {
    for (size_t i = 0; i < s->n; i++) s->at[i].has_tensor_scale = 1, s->at[i].tensor_scale = o->tensor_scale.v;
  }
  return CLI_FINE;
}

void samples_close(samples *s) {
  for (size_t i = 0; i < s->n_owned; i++) free(s->owned[i]);
  for (size_t i = 0; i < s->n_files; i++) mx_file_close(s->files[i]);
  for (size_t i = 0; i < s->n; i++) free(s->names[i]);
  free(s->owned);
  free(s->names);
  free(s->scale_values);
  free(s->at);
  *s = (samples){0};
}
