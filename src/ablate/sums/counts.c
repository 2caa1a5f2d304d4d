/* Counts codes and scales in integers, so that threads may add in any order. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ablate/sums/counts.h"
#include "mxgold/ablate.h"
#include "mxgold/verify.h"
#include "mxgold/isa.h"

/* Which codes are the largest finite magnitude, and which are zero. In sign-magnitude formats a mask tells them, and a vector can ask it of many codes. */
typedef struct code_kind {
  uint8_t top[256], zero[256];
  int masked; /* code & mask == most: the largest */
  uint32_t mask, most;
} code_kind;

static void kinds_of(code_kind *k, const mx_format *f) {
  memset(k, 0, sizeof *k);
  if (f->bits > 8) return;
  for (unsigned c = 0; c < 1u << f->bits; c++) {
    const double v = fabs(mx_decode(f, c));
    k->top[c] = v == mx_format_max(f);
    k->zero[c] = v == 0;
  }
  k->masked = f->kind == MX_KIND_FLOAT && f->sign_bits == 1;
  k->mask = (1u << (f->bits - 1)) - 1;
  k->most = (uint32_t)f->max_code;
}

/* How the codes of a tensor are counted. */
typedef struct counter {
  const mx_spec *spec;
  code_kind kind;
  count_form form;
  int direct;  /* codes lie as form says */
  int vectors; /* and can be asked for the largest by vectors */
} counter;

static void counter_init(counter *c, const mx_spec *spec) {
  const mx_format *f = mx_elem_format(spec->elem);
  c->spec = spec;
  kinds_of(&c->kind, f);
  c->form = (count_form){f->bits == 4 ? 4 : 8, spec->nibble == MX_NIBBLE_HIGH_FIRST, (uint8_t)c->kind.mask, (uint8_t)c->kind.most};
  c->direct = f->bits == 4 ? spec->nibble == MX_NIBBLE_LOW_FIRST || spec->nibble == MX_NIBBLE_HIGH_FIRST : f->bits <= 8;
  c->vectors = c->direct && c->kind.masked && mx_isa_usable(0) & MX_ISA_AVX2;
}

/* What a thread has seen. Bytes go to four tables in turn, so that one addition does not wait for the one before. */
typedef struct seen {
  uint64_t saturated, code[256], byte[4][256]; /* byte: of the codes as they lie */
} seen;

static void count_bytes(seen *n, const uint8_t *bytes, size_t n_bytes) {
  size_t i = 0;
  for (; i + 8 <= n_bytes; i += 8) {
    uint64_t eight;
    memcpy(&eight, bytes + i, sizeof eight);
    for (int k = 0; k < 8; k++) n->byte[k & 3][eight >> 8 * k & 255]++;
  }
  for (; i < n_bytes; i++) n->byte[0][bytes[i]]++;
}

static uint64_t saturated_of(const uint32_t *codes, const float *x, const float *y, size_t cols, const code_kind *k) {
  uint32_t n = 0; /* fewer than 2^32 columns: mx_tensor_layout counts bytes */
  if (k->masked) {
#pragma omp simd reduction(+ : n)
    for (size_t c = 0; c < cols; c++)
      n += ((codes[c] & k->mask) == k->most) & (fabsf(x[c]) > fabsf(y[c])) & (y[c] != 0); /* a scale of 0 is not a limit */
  } else
    for (size_t c = 0; c < cols; c++) n += k->top[codes[c] & 255] && fabsf(x[c]) > fabsf(y[c]) && y[c] != 0;
  return n;
}

/* Codes of a row that lie as form says, from an even column on. */
static void unpack(uint32_t *out, const uint8_t *codes, size_t from, size_t cols, const count_form *f) {
  if (f->bits != 4) {
    for (size_t c = from; c < cols; c++) out[c - from] = codes[c];
    return;
  }
  const int first = f->high_first ? 4 : 0;
  for (size_t c = from; c + 1 < cols; c += 2) {
    out[c - from] = codes[c / 2] >> first & 15u;
    out[c - from + 1] = codes[c / 2] >> (4 - first) & 15u;
  }
  if (cols % 2) out[cols - 1 - from] = codes[cols / 2] >> first & 15u;
}

/* room: cols numbers */
static void count_row(seen *n, const counter *k, const mx_tensor *t, size_t r, const float *x, const float *y, uint32_t *room) {
  const size_t cols = t->cols;
  const uint8_t *codes = t->codes + r * t->code_stride;
  size_t done = 0;
  if (!k->direct) {
    mx_tensor row = *t;
    row.rows = 1;
    row.codes = t->codes + r * t->code_stride;
    mx_unpack_codes(room, &row, k->spec);
    for (size_t c = 0; c < cols; c++) n->code[room[c] & 255]++;
    n->saturated += saturated_of(room, x, y, cols, &k->kind);
    return;
  }
#if defined(__x86_64__)
  if (k->vectors) {
    done = cols - cols % 16;
    n->saturated += mxi_saturated_avx2(codes, x, y, done, &k->form);
  }
#endif
  unpack(room, codes, done, cols, &k->form);
  n->saturated += saturated_of(room, x + done, y + done, cols - done, &k->kind);
  count_bytes(n, codes, k->form.bits == 4 ? cols / 2 : cols);
  if (k->form.bits == 4 && cols % 2) n->code[room[cols - 1 - done]]++;
}

static void add_seen(mx_code_counts *counts, const seen *n, const counter *k) {
  counts->saturated += n->saturated;
  for (int b = 0; b < 256; b++) {
    const uint64_t times = n->byte[0][b] + n->byte[1][b] + n->byte[2][b] + n->byte[3][b];
    counts->code[b] += n->code[b];
    if (k->form.bits == 4) {
      counts->code[b & 15] += times;
      counts->code[b >> 4] += times;
    } else
      counts->code[b] += times;
  }
}

static int binade(double v) {
  int e;
  frexp(fabs(v), &e);
  e += MX_BINADE_0 - 1;
  return e < 0 ? 0 : e >= MX_BINADES ? MX_BINADES - 1 : e;
}

/* What the tensor scale does to values, asked of mx_dequantize(): what becomes of a code of 1 under a scale of 1. 1 if the formats have no such codes. */
static double tensor_factor(const mx_tensor *t, const mx_spec *spec) {
  const mx_format *elem = mx_elem_format(spec->elem), *scale = mx_scale_format(spec->scale);
  if (!t->has_tensor_scale) return 1;
  uint32_t code = 0, unit = 0;
  while (code < 255 && mx_decode(elem, code) != 1) code++;
  while (unit < 255 && mx_decode(scale, unit) != 1) unit++;
  mx_tensor one;
  if (code == 255 || unit == 255 || mx_tensor_alloc(&one, 1, 1, spec)) return 1;
  memset(one.codes, (int)(elem->bits == 4 ? code << 4 | code : code), one.code_stride);
  one.scales[0] = (uint8_t)unit;
  one.tensor_scale = t->tensor_scale;
  float v = 1;
  const mx_status status = mx_dequantize(&v, 1, &one, spec, NULL);
  mx_tensor_free(&one);
  return status || !(fabsf(v) > 0) || !isfinite(v) ? 1 : (double)v;
}

static void count_scale(mx_code_counts *n, const mx_spec *spec, uint32_t code, uint64_t times) {
  const double v = fabs(mx_decode(mx_scale_format(spec->scale), code));
  n->n_scales += times;
  if (isnan(v))
    n->scale_nan += times;
  else if (v == 0)
    n->scale_zero += times;
  else {
    n->scale_binade[binade(v)] += times;
    n->factor_binade[binade(spec->scale_form == MX_SCALE_FORM_ENCODE ? n->tensor_factor / v : n->tensor_factor * v)] += times;
  }
}

static void count_scales(mx_code_counts *n, const mx_tensor *t, const mx_spec *spec) {
  size_t block_rows, block_cols;
  mx_spec_block(spec, t->rows, t->cols, &block_rows, &block_cols);
  const size_t step = t->scale_rows == t->rows && block_rows ? block_rows : 1; /* a tile's scale stands on each of its rows */
  uint64_t times[256] = {0};
  n->tensor_factor = tensor_factor(t, spec);
  for (size_t r = 0; r < t->scale_rows; r += step)
    for (size_t c = r * t->scale_cols; c < (r + 1) * t->scale_cols; c++) {
      if (t->scale_bytes == 1)
        times[t->scales[c]]++;
      else
        count_scale(n, spec, mx_scale_code_at(t, c), 1);
    }
  for (uint32_t c = 0; c < 256; c++)
    if (times[c]) count_scale(n, spec, c, times[c]);
}

/* A tensor without elements has no scales worth counting either. */
static int has_codes(const mx_spec *spec) { return mx_elem_format(spec->elem)->kind != MX_KIND_NONE; }

mx_status mx_code_counts_add(mx_code_counts *counts, const mx_tensor *t, const mx_spec *spec, const float *x, const float *y, int n_threads) {
  counts->tensor_factor = 1;
  if (!has_codes(spec)) return MX_OK;
  counter how;
  counter_init(&how, spec);
  const double prescale = spec->elem_prescale != 0 ? (double)spec->elem_prescale : 1;
  int failed = 0;
#pragma omp parallel num_threads(mx_thread_count(n_threads)) if (t->rows > 8)
  {
    seen own = {0};
    uint32_t *room = malloc(t->cols * sizeof *room + 1);
    float *scaled = malloc(t->cols * sizeof *scaled + 1);
    const int bad = !room || !scaled;
#pragma omp for schedule(static)
    for (size_t r = 0; r < t->rows; r++) {
      if (bad) continue;
      const float *from = x + r * t->cols;
      if (prescale != 1) {
        for (size_t c = 0; c < t->cols; c++) scaled[c] = (float)((double)from[c] * prescale);
        from = scaled;
      }
      count_row(&own, &how, t, r, from, y + r * t->cols, room);
    }
    free(room);
    free(scaled);
#pragma omp critical
    {
      failed |= bad;
      add_seen(counts, &own, &how);
    }
  }
  if (failed) return MX_ERR_NOMEM;
  counts->n += (uint64_t)t->rows * t->cols;
  counts->zero = 0;
  for (int c = 0; c < 256; c++)
    if (how.kind.zero[c]) counts->zero += counts->code[c];
  count_scales(counts, t, spec);
  return MX_OK;
}

double mx_code_entropy(const mx_code_counts *n) {
  double sum = 0;
  for (int c = 0; c < 256; c++)
    if (n->code[c]) {
      const double p = (double)n->code[c] / (double)n->n;
      sum -= p * mx_log2(p);
    }
  return sum;
}

double mx_bits_per_value(const mx_spec *spec, size_t rows, size_t cols) {
  mx_tensor t;
  if (!rows || !cols || mx_tensor_layout(&t, rows, cols, spec)) return 0;
  if (!has_codes(spec)) return spec->elem == MX_ELEM_BFLOAT16 ? 16 : 32;
  size_t block_rows, block_cols;
  mx_spec_block(spec, rows, cols, &block_rows, &block_cols);
  const double scales = t.scale_rows == rows ? (double)((rows + block_rows - 1) / block_rows) * (double)t.scale_cols
                                             : (double)t.scale_rows * (double)t.scale_cols;
  const double micro = spec->scale_rule == MX_SCALE_RULE_HIF4 ? 24 : 0;
  const double bits = (double)rows * (double)t.cols_padded * mx_elem_format(spec->elem)->bits +
                      scales * (mx_scale_format(spec->scale)->bits + micro) + (t.has_tensor_scale ? 32 : 0);
  return bits / ((double)rows * (double)cols);
}
