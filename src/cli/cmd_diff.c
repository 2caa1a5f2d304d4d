/* Runs mxgold diff A B: what differs between two quantised tensors, and why. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/cli.h"
#include "cli/verify/beside.h"
#include "cli/verify/diff_gemm.h"
#include "cli/verify/diff_print.h"
#include "cli/verify/foreign_scales.h"
#include "mxgold/mxgold.h"
#include "cli/verify/report.h"
#include "cli/verify/verdict.h"

struct args {
  const char *a, *b, *d, *input, *html, *junit;
  product_form product;
  cli_u64 max;
  int json, nan_bits, equal_zeros, explain, gemm, bound, kernel;
};

static const cli_option options[] = {
    {"A", 0, CLI_POS, offsetof(struct args, a), NULL, "what is expected: a file that mxgold quantize or gen wrote", NULL},
    {"B", 0, CLI_POS, offsetof(struct args, b), NULL, "what a kernel gave: a .safetensors file with tensors codes and scales", NULL},
    {"D", 0, CLI_POS_OPT, offsetof(struct args, d), NULL, "with --gemm: the product that a kernel gave, [M][N] of f32, f16 or bf16", NULL},
    {"input", 0, CLI_STRING, offsetof(struct args, input), "X", "what both were made from; by default the tensor `input` of A", NULL},
    {"explain", 0, CLI_FLAG, offsetof(struct args, explain), NULL, "say which rule B follows instead (needs the input)", NULL},
    {"kernel", 0, CLI_FLAG, offsetof(struct args, kernel), NULL, "say 'your kernel' for B, and for A the name of its preset", NULL},
    {"max", 0, CLI_U64, offsetof(struct args, max), "N", "list the first N elements that differ; none by default", NULL},
    {"nan-bits", 0, CLI_FLAG, offsetof(struct args, nan_bits), NULL, "compare NaN codes, and codes under a NaN scale, like any others", NULL},
    {"equal-zeros", 0, CLI_FLAG, offsetof(struct args, equal_zeros), NULL, "treat -0 and +0 as the same", NULL},
    {"gemm", 0, CLI_FLAG, offsetof(struct args, gemm), NULL,
     "A and B are operands, and D is judged: is it alpha * A x B^T + beta * C + bias, and if not, what is it?", NULL},
    {"accum", 0, CLI_STRING, offsetof(struct args, product.accum), "MODEL",
     "with --gemm: D must equal this accumulation model; by default D is right if it equals any", NULL},
    {"bound", 0, CLI_FLAG, offsetof(struct args, bound), NULL, "with --gemm: D is right if each output lies where a sum in some order may lie",
     NULL},
    PRODUCT_FAMILY_OPTIONS(args, product),
    PRODUCT_OPTIONS(args, product, "with --gemm: ", "type of D, if the file does not state it (uint16 as bf16)"),
    {"html", 0, CLI_STRING, offsetof(struct args, html), "FILE", "write a report for a browser: one file that needs no network", NULL},
    {"junit", 0, CLI_STRING, offsetof(struct args, junit), "FILE", "JUnit XML for CI", NULL},
    {"json", 0, CLI_FLAG, offsetof(struct args, json), NULL, "print JSON", NULL},
    {0},
};

/* B may come from any program: it must have codes of the size that A has, and scales in any form that holds as many. */
typedef struct side {
  mx_quantized q;
  mx_file *file;
  mx_tensor tensor;
  uint8_t *packed; /* codes two a byte, where the file has them otherwise */
  foreign_scales scales;
  float *row_scales; /* a tensor scale for each row, where the file has that; NULL: it does not */
} side;

/* 4-bit codes that are stored one a byte, two a byte as A has them. */
static uint8_t *pack_codes(const mx_quantized *a, const mx_array *codes) {
  const mx_tensor *t = &a->tensor;
  const int nibble = a->spec.nibble;
  if (mx_elem_format(a->spec.elem)->bits != 4 || nibble == MX_NIBBLE_HALF_BLOCK || codes->n_bytes != (uint64_t)t->rows * t->cols) return NULL;
  uint8_t *bytes = malloc(t->rows * t->code_stride + 1);
  if (!bytes) return NULL;
  memcpy(bytes, t->codes, t->rows * t->code_stride); /* padding counts as A's */
  for (size_t r = 0; r < t->rows; r++)
    for (size_t c = 0; c < t->cols; c++) {
      const int up = (c % 2 == 1) == (nibble == MX_NIBBLE_LOW_FIRST);
      uint8_t *p = &bytes[r * t->code_stride + c / 2];
      *p = (uint8_t)((*p & (up ? 0x0F : 0xF0)) | (codes->data[r * t->cols + c] & 15) << (up ? 4 : 0));
    }
  return bytes;
}

/* Is there a byte with high bits that no code of the format has? Says where. */
static int check_codes(const mx_quantized *a, const mx_array *codes, const char *path) {
  const mx_tensor *t = &a->tensor;
  const unsigned bits = mx_elem_format(a->spec.elem)->bits;
  for (size_t i = 0; bits < 8 && i < t->rows * t->cols; i++)
    if (codes->data[i] >> bits)
      return cli_error("%s: tensor codes: 0x%02X in row %zu, column %zu, expected a code of %u bits, 0 to %u", path, codes->data[i],
                       i / t->cols, i % t->cols, bits, (1u << bits) - 1);
  return CLI_FINE;
}

static int foreign(side *s, const mx_quantized *a, const char *path) {
  const mx_tensor *like = &a->tensor;
  mx_error err;
  const mx_array *codes, *scales, *ts;
  if (mx_file_open(&s->file, path, &err) || mx_file_find(&codes, s->file, "codes", &err) || mx_file_find(&scales, s->file, "scales", &err))
    return cli_fail(&err);
  const int as_a = codes->n_bytes == like->rows * like->code_stride, one_a_byte = codes->n_bytes == (uint64_t)like->rows * like->cols;
  if (one_a_byte && (!as_a || mx_elem_format(a->spec.elem)->bits > 4) && check_codes(a, codes, path)) return CLI_TROUBLE;
  if (!as_a) s->packed = pack_codes(a, codes);
  if (!as_a && !s->packed)
    return cli_error("%s: tensor codes: %" PRIu64 " bytes, expected %zu as in A", path, codes->n_bytes, like->rows * like->code_stride);
  const int rc = foreign_scales_read(&s->scales, path, scales, a);
  if (rc) return rc;
  s->tensor = *like;
  s->tensor.codes = s->packed ? s->packed : (uint8_t *)(uintptr_t)codes->data; /* read only */
  s->tensor.scales = s->scales.codes;
  s->tensor.micro = NULL;
  if (!like->has_tensor_scale || mx_file_find(&ts, s->file, "tensor_scale", NULL)) return CLI_FINE;
  const int each_row = ts->n_values == like->rows && like->rows > 1;
  if ((ts->n_values != 1 && !each_row) || mx_array_read_f32(&s->tensor.tensor_scale, ts, 0, 1, 0))
    return cli_error("%s: tensor tensor_scale: %" PRIu64 " values of %s, expected one of f32, f16 or bf16, or one for each row", path,
                     ts->n_values, mx_dtype_name(ts->dtype));
  if (!each_row) return CLI_FINE;
  s->row_scales = malloc(like->rows * sizeof *s->row_scales);
  if (!s->row_scales || mx_array_read_f32(s->row_scales, ts, 0, like->rows, 0)) return cli_error("out of memory");
  s->tensor.tensor_scale = like->tensor_scale; /* rows are looked at one by one, later */
  return CLI_FINE;
}

static int open_b(side *s, const mx_quantized *a, const char *path) {
  mx_error err;
  if (mx_quantized_open(&s->q, path, &err)) return foreign(s, a, path);
  s->tensor = s->q.tensor;
  if (s->q.spec.elem == a->spec.elem && s->q.spec.scale == a->spec.scale) return CLI_FINE;
  return cli_error("%s: %s with %s scales, expected %s with %s as in A", path, mx_elem_format(s->q.spec.elem)->name,
                   mx_scale_format(s->q.spec.scale)->name, mx_elem_format(a->spec.elem)->name, mx_scale_format(a->spec.scale)->name);
}

/* Gives the input in place if the file has aligned binary32, otherwise widened a piece at a time; and releases parts of mappings that have been
 * read. */
typedef struct flow {
  const mx_quantized *a;
  const side *b;
  mx_file *file; /* of --input */
  const mx_array *x;
  float *room;
  size_t n_room;
} flow;

static const float *widen(void *self, size_t row, size_t n) {
  flow *f = self;
  const size_t cols = f->a->tensor.cols;
  if (n * cols > f->n_room) {
    free(f->room);
    f->room = malloc(n * cols * sizeof *f->room);
    f->n_room = f->room ? n * cols : 0;
  }
  if (!f->room || mx_array_read_f32(f->room, f->x, row * cols, n * cols, 0)) return NULL;
  return f->room;
}

static void passed(void *self, size_t row, size_t n) {
  const flow *f = self;
  const mx_tensor *a = &f->a->tensor, *b = &f->b->tensor;
  const mx_file *other = f->b->q.file ? f->b->q.file : f->b->file, *own = f->file ? f->file : f->a->file;
  const size_t scales = a->scale_rows == a->rows ? a->scale_cols * a->scale_bytes : 0;
  mx_file_release(f->a->file, a->codes + row * a->code_stride, n * a->code_stride);
  mx_file_release(other, b->codes + row * a->code_stride, n * a->code_stride);
  mx_file_release(f->a->file, a->scales + row * scales, n * scales);
  mx_file_release(other, b->scales + row * scales, n * scales);
  if (!f->x) return;
  const size_t bytes = a->cols * mx_dtype_bytes(f->x->dtype);
  mx_file_release(own, f->x->data + row * bytes, n * bytes);
}

static int copy(void *self, void *room, const void *from, size_t n_bytes) {
  const flow *f = self;
  return mx_file_read(f->a->file, room, from, n_bytes) && mx_file_read(f->b->q.file ? f->b->q.file : f->b->file, room, from, n_bytes);
}

/* Under a tensor scale for each row of B: rows whose scale is not A's, and the values that B then stands for, counted anew. 0: no memory. */
static int count_row_scales(mx_difference *d, const mx_tensor *a, const mx_tensor *b, const float *of_rows, const mx_spec *spec,
                            const mx_diff_options *how) {
  const size_t cols = a->cols;
  size_t block_rows, block_cols;
  float *x = malloc((cols + 1) * sizeof *x), *y = malloc((cols + 1) * sizeof *y);
  mx_spec_block(spec, a->rows, cols, &block_rows, &block_cols);
  int fine = x && y && block_rows == 1;
  d->values = d->tensor_scales = 0;
  for (size_t r = 0; fine && r < a->rows; r++) {
    const mx_tensor one = mx_tensor_rows(a, r, 1, block_rows);
    mx_tensor other = mx_tensor_rows(b, r, 1, block_rows);
    other.tensor_scale = of_rows[r];
    d->tensor_scales += other.tensor_scale != one.tensor_scale;
    fine = !mx_dequantize(x, cols, &one, spec, NULL) && !mx_dequantize(y, cols, &other, spec, NULL);
    for (size_t c = 0; fine && c < cols; c++) {
      const int same = !memcmp(&x[c], &y[c], sizeof *x) || (isnan(x[c]) && isnan(y[c])) || (how->equal_zeros && x[c] == 0 && y[c] == 0);
      d->values += !same;
    }
  }
  free(x);
  free(y);
  if (!fine) return 0;
  d->equal = !(d->codes || d->scales || d->tensor_scales || d->values);
  if (d->tensor_scales && d->n_patterns < MX_DIFF_PATTERNS)
    snprintf(d->patterns[d->n_patterns++], sizeof d->patterns[0], "%s has a tensor scale for each row: %" PRIu64 " of %zu are not %s's",
             how->name_b ? how->name_b : "B", d->tensor_scales, a->rows, how->name_a ? how->name_a : "A");
  return 1;
}

/* Says what B does instead of A's spec, in words and as identify says it. It is known already that B does not do what was expected, so what is found is
 * described relative to that. */
static void explain(char *words, size_t size, char **answer, const mx_tensor *b, const mx_spec *spec, const float *x, int threads) {
  uint32_t *wide = malloc((b->rows * b->cols + 1) * sizeof *wide);
  uint8_t *codes = malloc(b->rows * b->cols + 1);
  *words = 0;
  if (wide && codes && mx_elem_format(spec->elem)->bits <= 8) {
    mx_unpack_codes(wide, b, spec);
    for (size_t i = 0; i < b->rows * b->cols; i++) codes[i] = (uint8_t)wide[i];
    mx_sample s = {.rows = b->rows,
                   .cols = b->cols,
                   .ld = b->cols,
                   .x = x,
                   .codes = codes,
                   .scales = b->scales,
                   .scale_rows = b->scale_rows,
                   .scale_cols = b->scale_cols,
                   .scale_bytes = b->scale_bytes,
                   .has_tensor_scale = b->has_tensor_scale,
                   .tensor_scale = b->tensor_scale};
    mx_identity id;
    const samples all = {.at = &s, .n = 1, .nibble = -1};
    const char *expected = preset_of_spec(spec);
    if (!mx_identify(&id, &s, 1, &(mx_identify_options){.no_undecided = 1, .n_threads = threads}, NULL) &&
        (!expected || !answer_beside(&id, &all, spec, expected, threads)))
      if (verdict_sentence(words, size, &id) || !(*answer = verdict_json(&id, &(verdict_more){0}))) *words = 0;
  }
  free(wide);
  free(codes);
}

static int find_input(flow *f, const struct args *a) {
  mx_error err;
  if (a->input && mx_tensor_open(&f->file, &f->x, a->input, &err)) return cli_fail(&err);
  if (!a->input && mx_file_find(&f->x, f->a->file, "input", NULL)) f->x = NULL;
  if (f->x && (f->x->n_values != f->a->tensor.rows * f->a->tensor.cols || mx_array_read_f32(NULL, f->x, 0, 0, 0))) {
    if (a->input)
      return cli_error("%s: %" PRIu64 " values of %s, expected %zu x %zu of f32, f16 or bf16", a->input, f->x->n_values,
                       mx_dtype_name(f->x->dtype), f->a->tensor.rows, f->a->tensor.cols);
    f->x = NULL;
  }
  if (a->explain && !f->x) return cli_error("--explain needs the input: --input X");
  return CLI_FINE;
}

/* The number by which the value of a code in a block is multiplied, tensor scale included. */
static double factor(const mx_quantized *q, const mx_tensor *t, uint32_t scale_code) {
  float multiplier = 1;
  const double s = fabs(mx_decode(mx_scale_format(q->spec.scale), scale_code));
  mx_tensor_multiplier(&multiplier, t, &q->spec);
  return (q->spec.scale_form == MX_SCALE_FORM_ENCODE ? 1 / s : s) * (double)multiplier;
}

/* The elements of an example's block that stand in its row. */
static void fill_block(report_block *k, flow *f, const mx_diff_example *e) {
  const mx_tensor *a = &f->a->tensor, *b = &f->b->tensor;
  const mx_spec *spec = &f->a->spec;
  size_t br, bc;
  memset(k, 0, sizeof *k);
  mx_spec_block(spec, a->rows, a->cols, &br, &bc);
  if (!f->x || !bc || mx_elem_format(spec->elem)->bits > 8) return;
  const size_t first = e->col / bc * bc, left = a->cols - first, n = bc < left ? bc : left;
  k->n = n < REPORT_BLOCK ? n : REPORT_BLOCK;
  if (mx_array_read_f32(k->x, f->x, e->row * a->cols + first, k->n, 0)) k->n = 0;
  for (size_t i = 0; i < k->n; i++) {
    k->code_a[i] = mx_code_at(a, spec, e->row, first + i);
    k->code_b[i] = mx_code_at(b, spec, e->row, first + i);
  }
  k->scale_a = factor(f->a, a, e->scale_a);
  k->scale_b = factor(f->a, b, e->scale_b);
}

static int judge(const struct args *a) {
  if (!a->d) return cli_error("diff: --gemm: no D, expected mxgold diff --gemm A.safetensors B.safetensors D.npy");
  if (a->html || a->explain || a->input || a->kernel) return cli_error("diff: --gemm excludes --html, --explain, --input and --kernel");
  const diff_gemm_args g = {.a = a->a,
                            .b = a->b,
                            .d = a->d,
                            .product = a->product,
                            .junit = a->junit,
                            .bound = a->bound,
                            .json = a->json,
                            .nan_bits = a->nan_bits,
                            .equal_zeros = a->equal_zeros};
  return diff_gemm(&g);
}

static int run(const cli_context *ctx, void *args) {
  (void)ctx;
  const struct args *a = args;
  report_fresh(a->junit);
  if (a->gemm) return judge(a);
  if (a->d) return cli_error("diff: '%s' is one argument too many, expected A and B, or --gemm A B D", a->d);
  if (a->product.accum || a->bound || a->product.c || a->product.bias || a->product.type || a->product.alpha.given || a->product.beta.given)
    return cli_error("diff: --accum, --bound, --c, --bias, --alpha, --beta and --out need --gemm");
  mx_quantized qa;
  mx_error err;
  if (a->max.v > 1000000) return cli_error("diff: --max %" PRIu64 ", expected at most 1000000", a->max.v);
  if (mx_quantized_open(&qa, a->a, &err)) return cli_fail(&err);
  side b = {0};
  flow f = {.a = &qa, .b = &b};
  mx_difference *d = calloc(1, sizeof *d);
  mx_diff_example *list = calloc(a->max.v + 1, sizeof *list);
  char verdict[4096] = "", *answer = NULL;
  int rc = d && list ? open_b(&b, &qa, a->b) : cli_error("out of memory");
  if (!rc) rc = find_input(&f, a);
  const int direct = !rc && f.x && f.x->dtype == MX_F32 && (uintptr_t)f.x->data % sizeof(float) == 0;
  const float *x = direct ? (const float *)(const void *)f.x->data : NULL;
  const mx_diff_options how = {.nan_bits = a->nan_bits,
                               .equal_zeros = a->equal_zeros,
                               .values = 1,
                               .list = list,
                               .n_list = a->max.v,
                               .input = f.x && !direct ? widen : NULL,
                               .passed = passed,
                               .read = copy,
                               .self = &f,
                               .name_a = !a->kernel   ? NULL
                                         : *qa.preset ? qa.preset
                                                      : "the spec",
                               .name_b = a->kernel ? "your kernel" : NULL,
                               .n_threads = cli_threads(&a->product.threads)};
  if (!rc && mx_diff(d, &qa.tensor, &b.tensor, &qa.spec, x, qa.tensor.cols, NULL, NULL, &how, &err)) rc = cli_fail(&err);
  if (!rc && b.row_scales && !count_row_scales(d, &qa.tensor, &b.tensor, b.row_scales, &qa.spec, &how))
    rc = cli_error("%s: a tensor scale for each row cannot be compared under blocks of several rows", a->b);
  if (!rc && a->explain && !d->equal) {
    const float *all = x ? x : widen(&f, 0, qa.tensor.rows);
    if (all)
      explain(verdict, sizeof verdict, &answer, &b.tensor, &qa.spec, all, cli_threads(&a->product.threads));
    else
      rc = cli_error("no memory for the input of %zu x %zu", qa.tensor.rows, qa.tensor.cols);
  }
  if (!rc) rc = diff_print(d, &qa.spec, b.scales.layout, list, f.x != NULL, a->kernel, verdict, answer, a->json);
  if (!rc && a->html) {
    report_block blocks[3];
    fill_block(&blocks[0], &f, &d->first);
    fill_block(&blocks[1], &f, &d->worst);
    fill_block(&blocks[2], &f, &d->smallest);
    rc = report_html(a->html, a->a, a->b, d, &qa.spec, verdict, &qa.tensor, blocks);
  }
  if (!rc && a->junit) {
    const junit_case cases[] = {{"codes", d->codes ? "codes differ" : NULL},
                                {"scales", d->scales ? "scales differ" : NULL},
                                {"tensor scale", d->tensor_scales ? "tensor scales differ" : NULL},
                                {"values", d->values ? "dequantised values differ" : NULL}};
    rc = report_junit(a->junit, a->b, cases, 4);
  }
  const int differs = !rc && !d->equal;
  if (b.q.file) mx_quantized_close(&b.q);
  mx_file_close(b.file);
  mx_file_close(f.file);
  mx_quantized_close(&qa);
  free(b.scales.owned);
  free(b.packed);
  free(b.row_scales);
  free(f.room);
  free(answer);
  free(list);
  free(d);
  return rc ? rc : differs ? CLI_DIFFERS : CLI_FINE;
}

const cli_command cmd_diff = {
    options, sizeof(struct args), run,
    "Codes, scales, tensor scale and values are counted separately, with the first, the worst and the smallest example in full and what all "
    "differences "
    "have in common. A NaN equals a NaN and codes under a NaN scale do not count, unless --nan-bits; -0 is not +0, unless --equal-zeros.\n"
    "--gemm judges a product: it is computed again under every accumulation model, then under every known bug (an order of summation, "
    "a cut, scales applied twice, transposed or left out, the last K block lost, alpha forgotten, D transposed, ...), and what gives the same "
    "bits as D is named.\n"
    "Exit status 0 if equal, 1 if not."};
