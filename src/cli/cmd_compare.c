/* Runs mxgold compare: a tensor under several presets, side by side, held to the reference model. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ref/ref.h"
#include "cli/base/cli.h"
#include "mxgold/mxgold.h"
#include "cli/base/list.h"
#include "cli/base/out.h"
#include "cli/base/tensor_io.h"

enum { MAX_PRESETS = 16 };

struct args {
  const char *in, *presets;
  int json, no_ref;
};

static const cli_option options[] = {
    {"IN[:TENSOR]", 0, CLI_POS, offsetof(struct args, in), NULL, "a .npy file, or a tensor of a .safetensors file", NULL},
    {"presets", 0, CLI_STRING, offsetof(struct args, presets), "A,B,C", "presets to put side by side (at most 16)", NULL},
    {"json", 0, CLI_FLAG, offsetof(struct args, json), NULL, "print JSON", NULL},
    {"no-ref", 0, CLI_FLAG, offsetof(struct args, no_ref), NULL, "skip the comparison with the reference model, which is slow", NULL},
    {0},
};

typedef struct side {
  char name[64];
  mx_spec spec;
  mx_tensor tensor;
  float *values;
  size_t differing; /* bytes that the reference model has otherwise */
} side;

typedef struct work {
  size_t rows, cols, n_sides;
  float *x;
  side sides[MAX_PRESETS];
} work;

static size_t code_bytes(const mx_tensor *t) { return t->rows * t->code_stride; }
static size_t scale_bytes(const mx_tensor *t) { return t->scale_rows * t->scale_cols * t->scale_bytes; }

static double sqnr(const work *w, const side *s) {
  mx_error_sums sums = {0};
  mx_error_sums_add(&sums, w->x, s->values, w->rows * w->cols, 0);
  return mx_sqnr(&sums);
}

static size_t bytes_apart(const uint8_t *a, const uint8_t *b, size_t n) {
  size_t differ = 0;
  for (size_t i = 0; i < n; i++) differ += a[i] != b[i];
  return differ;
}

/* Does the same by the reference model, and counts the bytes that differ. */
static int hold_to_reference(const work *w, side *s, mx_error *err) {
  mx_tensor t;
  mx_status status = mx_tensor_alloc(&t, w->rows, w->cols, &s->spec);
  if (!status) status = ref_quantize(&t, w->x, w->rows, w->cols, w->cols, &s->spec, NULL, NULL);
  if (status)
    mx_fail(err, status, "%s: reference model: %s", s->name, mx_status_text(status));
  else
    s->differing = bytes_apart(t.codes, s->tensor.codes, code_bytes(&t)) + bytes_apart(t.scales, s->tensor.scales, scale_bytes(&t)) +
                   bytes_apart((const uint8_t *)&t.tensor_scale, (const uint8_t *)&s->tensor.tensor_scale, 4);
  mx_tensor_free(&t);
  return status ? cli_fail(err) : CLI_FINE;
}

static int quantize_side(const work *w, side *s, mx_error *err) {
  mx_status status = mx_tensor_alloc(&s->tensor, w->rows, w->cols, &s->spec);
  s->values = malloc(w->rows * w->cols * sizeof *s->values + 1);
  if (status || !s->values) return cli_error("no memory for a matrix of %zu x %zu", w->rows, w->cols);
  if (mx_quantize(&s->tensor, w->x, w->rows, w->cols, w->cols, &s->spec, NULL, err) ||
      mx_dequantize(s->values, w->cols, &s->tensor, &s->spec, NULL))
    return cli_fail(err);
  return CLI_FINE;
}

static uint32_t code_of(const side *s, size_t r, size_t c) {
  const uint8_t *row = s->tensor.codes + r * s->tensor.code_stride;
  return mx_elem_format(s->spec.elem)->bits == 4 ? row[c / 2] >> (c % 2 * 4) & 15u : row[c];
}

static void print_summary(out *o, const work *w, const struct args *a) {
  out_table(o, "presets");
  for (size_t i = 0; i < w->n_sides; i++) {
    const side *s = &w->sides[i];
    const mx_format *f = mx_elem_format(s->spec.elem);
    size_t zeros = 0, largest = 0;
    const size_t n = w->rows * w->cols;
    for (size_t k = 0; k < n; k++) {
      const uint32_t magnitude = code_of(s, k / w->cols, k % w->cols) & ((1u << (f->bits - 1)) - 1);
      zeros += magnitude == 0;
      largest += magnitude == f->max_code;
    }
    out_row(o);
    out_text(o, "preset", s->name);
    out_u64(o, "code bytes", code_bytes(&s->tensor));
    out_u64(o, "scale bytes", scale_bytes(&s->tensor));
    out_f64(o, "bits/value", n ? 8.0 * (double)(code_bytes(&s->tensor) + scale_bytes(&s->tensor)) / (double)n : 0, "%.3f");
    out_f64(o, "SQNR dB", sqnr(w, s), "%.2f");
    out_f64(o, "zero %", n ? 100.0 * (double)zeros / (double)n : 0, "%.2f");
    out_f64(o, "largest %", n ? 100.0 * (double)largest / (double)n : 0, "%.2f");
    if (!a->no_ref) out_u64(o, "bytes unlike ref", s->differing);
  }
  out_end(o);
}

/* How often each magnitude is used. */
static void print_histogram(out *o, const work *w) {
  const side *s = &w->sides[0];
  const mx_format *f = mx_elem_format(s->spec.elem);
  if (f->bits > 4) return;
  size_t count[16] = {0}, most = 1;
  for (size_t k = 0; k < w->rows * w->cols; k++) count[code_of(s, k / w->cols, k % w->cols)]++;
  for (size_t c = 0; c < 16; c++) most = count[c] > most ? count[c] : most;
  out_text(o, "codes of", s->name);
  out_table(o, "codes");
  for (uint32_t i = 0; i < 16; i++) {
    const uint32_t c = i < 8 ? 15 - i : i - 8; /* from the most negative value up */
    out_row(o);
    out_f64(o, "value", mx_decode(f, c), "%g");
    out_u64(o, "code", c);
    out_u64(o, "count", count[c]);
    out_bar(o, "share of the fullest", (double)count[c] / (double)most);
  }
  out_end(o);
}

/* Pairs of presets with the same blocks and scale format: where their scales differ. */
static void print_differences(out *o, const work *w) {
  int any = 0;
  for (size_t i = 0; i < w->n_sides; i++)
    for (size_t k = i + 1; k < w->n_sides; k++) {
      const side *a = &w->sides[i], *b = &w->sides[k];
      const mx_tensor *s = &a->tensor, *t = &b->tensor;
      if (a->spec.scale != b->spec.scale || s->scale_rows != t->scale_rows || s->scale_cols != t->scale_cols) continue;
      const size_t n = scale_bytes(s), differ = bytes_apart(s->scales, t->scales, n);
      if (!any++) out_table(o, "scale bytes that differ");
      out_row(o);
      out_text(o, "preset", a->name);
      out_text(o, "other", b->name);
      out_u64(o, "differ", differ);
      out_u64(o, "of", n);
      size_t at = 0;
      while (at < n && s->scales[at] == t->scales[at]) at++;
      if (at == n) continue;
      at /= s->scale_bytes;
      char where[96];
      snprintf(where, sizeof where, "row %zu, block %zu: %u against %u", at / s->scale_cols, at % s->scale_cols, s->scales[at * s->scale_bytes],
               t->scales[at * s->scale_bytes]);
      out_text(o, "first", where);
    }
  if (any) out_end(o);
}

static int parse_presets(work *w, const char *list, mx_error *err) {
  if (!list || !*list) return cli_error("compare: no presets, expected --presets A,B,C");
  if (list_check("compare: --presets", list, list, "names with commas between them")) return CLI_TROUBLE;
  while (*list) {
    const size_t n = strcspn(list, ",");
    if (w->n_sides == MAX_PRESETS) return cli_error("--presets: expected at most %d", MAX_PRESETS);
    side *s = &w->sides[w->n_sides++];
    snprintf(s->name, sizeof s->name, "%.*s", (int)n, list);
    if (mx_preset_find(&s->spec, s->name, err)) return cli_fail(err);
    list += n + (list[n] == ',');
  }
  return CLI_FINE;
}

static int compare(work *w, const struct args *a, mx_error *err) {
  size_t differing = 0;
  for (size_t i = 0; i < w->n_sides; i++) {
    if (quantize_side(w, &w->sides[i], err)) return CLI_TROUBLE;
    if (!a->no_ref && hold_to_reference(w, &w->sides[i], err)) return CLI_TROUBLE;
    differing += w->sides[i].differing;
  }
  out *o = out_new();
  const uint64_t shape[2] = {w->rows, w->cols};
  out_text(o, "tensor", a->in);
  out_shape(o, "shape", shape, 2);
  print_summary(o, w, a);
  print_histogram(o, w);
  print_differences(o, w);
  const int rc = out_print(o, a->json);
  return rc ? rc : differing ? CLI_DIFFERS : CLI_FINE;
}

static int run(const cli_context *ctx, void *args) {
  (void)ctx;
  const struct args *a = args;
  work w = {0};
  mx_error err;
  mx_file *file;
  const mx_array *in;
  if (parse_presets(&w, a->presets, &err)) return CLI_TROUBLE;
  if (mx_tensor_open_by(&file, &in, a->in, MX_BY_READING, &err)) return cli_fail(&err);
  int rc = CLI_TROUBLE;
  if (mx_array_read_f32(NULL, in, 0, 0, 0))
    cli_error("%s: dtype is %s, expected f32, f16 or bf16", a->in, mx_dtype_name(in->dtype));
  else if (!mx_matrix_of(&w.rows, &w.cols, in->shape, in->n_dims) || !(w.x = malloc(in->n_values * sizeof *w.x + 1)))
    cli_error("%s: too large", a->in);
  else
    rc = input_read(w.x, in, 0, in->n_values, 0, &err) ? cli_fail(&err) : compare(&w, a, &err);
  for (size_t i = 0; i < w.n_sides; i++) {
    mx_tensor_free(&w.sides[i].tensor);
    free(w.sides[i].values);
  }
  free(w.x);
  mx_file_close(file);
  return rc;
}

const cli_command cmd_compare = {
    options, sizeof(struct args), run,
    "The reference model computes each result too, and the bytes that differ are counted; exit status 1 if there are any."};
