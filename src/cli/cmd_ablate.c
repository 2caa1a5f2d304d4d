/* mxgold ablate IN[:TENSOR]... --presets a,b,c: what a format, a rounding or a rotation does to tensors. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ablate.h"
#include "progress.h"
#include "shape.h"
#include "spec_opts.h"

struct args {
  cli_list in, set, operands;
  const char *presets, *shape, *html, *chart, *state, *model;
  cli_u64 seed, repeats, threads;
  int json, gemm, six, refuse_nan;
};

/* The models that need no parameters, and none: dequantised operands in binary64. */
static const char *model_names(size_t index) {
  const char *name = mx_gemm_model_name((int)index);
  return index == MX_GEMM_FUSED ? "dequantized" : index < MX_GEMM_FUSED ? name : NULL;
}

static const cli_option options[] = {
    {"IN[:TENSOR]", 0, CLI_POS_LIST, offsetof(struct args, in), NULL,
     "a .npy file, tensors of a .safetensors file or index (* and ? match), or gen:gaussian, uniform, laplace, student:NU, rows:S, "
     "outliers:SHARE:FACTOR",
     NULL},
    {"presets", 'p', CLI_STRING, offsetof(struct args, presets), "NAME[,NAME]...", "presets to compare; ocp-mxfp4 by default", NULL},
    {"set", 0, CLI_LIST, offsetof(struct args, set), "KEY=V[,V]...", "values of a key; every combination is measured; may be repeated", NULL},
    {"shape", 0, CLI_STRING, offsetof(struct args, shape), "RxC", "shape of generated tensors; 256x1024 by default", NULL},
    {"seed", 0, CLI_U64, offsetof(struct args, seed), "N", "seed of generators, stochastic rounding and fresh signs", NULL},
    {"repeats", 0, CLI_U64, offsetof(struct args, repeats), "N", "repeats where the spec is random; 8 by default", NULL},
    {"gemm", 0, CLI_FLAG, offsetof(struct args, gemm), NULL, "the inputs are X and W: the product X W^T, and where its error comes from", NULL},
    {"six", 0, CLI_FLAG, offsetof(struct args, six), NULL, "the inputs are X, W and DY: the six quantisations of a linear layer", NULL},
    {"operand", 0, CLI_LIST, offsetof(struct args, operands), "Qn:KEY=VALUE[,...]",
     "keys of one operand (Q1, Q2; with --six Q1 to Q6); may be repeated", NULL},
    {"accumulate", 0, CLI_STRING, offsetof(struct args, model), "MODEL",
     "how products are summed; f32_block by default; dequantized: values in binary64", model_names},
    {"json", 0, CLI_FLAG, offsetof(struct args, json), NULL, "print JSON", NULL},
    {"png", 0, CLI_STRING, offsetof(struct args, chart), "CHART.png|.svg", "draw SQNR against bits a value, with its Pareto front", NULL},
    {"html", 0, CLI_STRING, offsetof(struct args, html), "REPORT.html", "one page with tables and charts, no network needed", NULL},
    {"state", 0, CLI_STRING, offsetof(struct args, state), "FILE", "keep what is measured in FILE, and do not measure again what is there",
     NULL},
    {"refuse-nan", 0, CLI_FLAG, offsetof(struct args, refuse_nan), NULL,
     "refuse tensors with NaN or Inf; by default they are counted and left out", NULL},
    {"threads", 0, CLI_U64, offsetof(struct args, threads), "N", "threads to use; all processors by default", NULL},
    {0},
};

enum { UNITS = 512, MAX_EXTENT = 1 << 20 };

int ablate_model(const char *name) {
  if (!name) return MX_GEMM_F32_BLOCK;
  return strcmp(name, "dequantized") ? mx_gemm_model_find(name) : MX_PRODUCT_DEQUANTIZED;
}

static int parse_shape(size_t *rows, size_t *cols, const char *text) {
  uint64_t shape[2] = {256, 1024};
  if (text && (shape_parse(shape, 2, text) != 2 || shape[0] > MAX_EXTENT || shape[1] > MAX_EXTENT))
    return cli_error("--shape: '%.40s', expected RxC, each 1 to %d", text, MAX_EXTENT);
  *rows = shape[0];
  *cols = shape[1];
  return CLI_FINE;
}

/* log2 of the scale that a share of the scales lies at or below. */
static double quantile(const mx_code_counts *n, double share) {
  uint64_t all = 0, at = 0;
  for (int b = 0; b < MX_BINADES; b++) all += n->scale_binade[b];
  for (int b = 0; b < MX_BINADES; b++) {
    at += n->scale_binade[b];
    if (all && (double)at >= share * (double)all) return b - MX_BINADE_0;
  }
  return 0;
}

/* "LOG2:COUNT,..."; what does not fit is left out at a comma, which no format of 8 bits comes near. */
static void print_scales(char *out, size_t size, const mx_code_counts *n) {
  size_t used = 0;
  for (int b = 0; b < MX_BINADES; b++) {
    char one[40];
    const size_t m = (size_t)snprintf(one, sizeof one, "%s%d:%llu", used ? "," : "", b - MX_BINADE_0, (unsigned long long)n->scale_binade[b]);
    if (!n->scale_binade[b] || used + m >= size) continue;
    memcpy(out + used, one, m + 1);
    used += m;
  }
  if (!used) snprintf(out, size, "-");
}

static void fill_row(ablate_row *r, const mx_measure *m) {
  r->sums = m->sums;
  r->repeats = m->repeats;
  r->bits = m->bits;
  r->bias = m->bias;
  r->n_codes = m->counts.n;
  r->zero = m->counts.zero;
  r->saturated = m->counts.saturated;
  r->entropy = mx_code_entropy(&m->counts);
  print_scales(r->scales, sizeof r->scales, &m->counts);
  r->scale_p05 = quantile(&m->counts, 0.05);
  r->scale_p50 = quantile(&m->counts, 0.5);
  r->scale_p95 = quantile(&m->counts, 0.95);
}

typedef struct work {
  const struct args *args;
  const ablate_tensors *tensors;
  const ablate_specs *specs;
  ablate_result *result;
  double *units; /* [specs][UNITS] */
  mx_measure *measure;
} work;

/* How far each spec is behind the best. */
static int compare(work *w, size_t tensor, size_t n_units) {
  const size_t best = ablate_best(w->result, tensor), n = w->specs->n;
  const double **units = malloc(n * sizeof *units);
  mx_interval *behind = malloc(n * sizeof *behind);
  int rc = units && behind ? CLI_FINE : cli_error("out of memory");
  for (size_t s = 0; s < n && !rc; s++) units[s] = w->units + s * UNITS;
  if (!rc && mx_bootstrap_db_all(behind, units[best], units, n, n_units, 0, 1)) rc = cli_error("out of memory");
  for (size_t s = 0; s < n && !rc; s++) w->result->rows[tensor * n + s].behind = behind[s];
  free(units);
  free(behind);
  return rc;
}

static int measure(work *w, size_t tensor, const float *x, size_t n_units) {
  const ablate_tensor *t = &w->tensors->at[tensor];
  mx_error err;
  for (size_t s = 0; s < w->specs->n; s++) {
    const mx_measure_options o = {
        .repeats = (int)w->args->repeats.v, .n_threads = (int)w->args->threads.v, .n_units = n_units, .unit_error = w->units + s * UNITS};
    if (mx_measure_tensor(w->measure, x, t->rows, t->cols, &w->specs->at[s].spec, &o, &err))
      return cli_error("%s, %s: %s", t->name, w->specs->at[s].label, err.text);
    ablate_row *r = &w->result->rows[tensor * w->specs->n + s];
    *r = (ablate_row){.tensor = tensor, .spec = s};
    fill_row(r, w->measure);
  }
  return compare(w, tensor, n_units);
}

static int one_tensor(work *w, size_t tensor) {
  const ablate_tensor *t = &w->tensors->at[tensor];
  ablate_row *rows = &w->result->rows[tensor * w->specs->n];
  const size_t n = t->rows * t->cols, n_units = n / 64 < UNITS ? (n / 64 ? n / 64 : 1) : UNITS;
  float *x = ablate_load(t);
  if (!x) return cli_error("%s: no memory for %zu x %zu values", t->name, t->rows, t->cols);
  for (size_t i = 0; w->args->refuse_nan && i < n; i++)
    if (!isfinite(x[i])) {
      const int nan = isnan(x[i]);
      free(x);
      return cli_error("%s: row %zu, column %zu is %s, which --refuse-nan refuses", t->name, i / t->cols, i % t->cols, nan ? "NaN" : "Inf");
    }
  ablate_state state = {.path = w->args->state};
  for (size_t s = 0; s < w->specs->n; s++) rows[s].tensor = tensor;
  int rc = CLI_FINE;
  if (!ablate_state_find(&state, rows, t, x, w->specs, (int)w->args->repeats.v)) {
    rc = measure(w, tensor, x, n_units);
    if (!rc) rc = ablate_state_add(&state, rows, w->specs->n);
  }
  free(x);
  return rc;
}

size_t ablate_best(const ablate_result *r, size_t tensor) {
  size_t best = 0;
  for (size_t s = 1; s < r->specs->n; s++)
    if (ablate_row_at(r, tensor, s)->sums.ee / ablate_row_at(r, tensor, s)->repeats <
        ablate_row_at(r, tensor, best)->sums.ee / ablate_row_at(r, tensor, best)->repeats)
      best = s;
  return best;
}

/* Damage of a tensor: the SQNR of its first spec. */
static const ablate_result *sorting;
static int worse_first(const void *a, const void *b) {
  const size_t i = *(const size_t *)a, j = *(const size_t *)b;
  const double x = mx_sqnr(&ablate_row_at(sorting, i, 0)->sums), y = mx_sqnr(&ablate_row_at(sorting, j, 0)->sums);
  return x != y ? (x > y) - (x < y) : (i > j) - (i < j);
}

static int report(const work *w, const cli_context *ctx) {
  (void)ctx;
  const struct args *a = w->args;
  if (a->chart && ablate_chart(w->result, a->chart)) return CLI_TROUBLE;
  if (a->html) {
    const size_t tensor = w->result->order[0];
    float *x = ablate_load(&w->tensors->at[tensor]);
    const int rc = x ? ablate_html(w->result, a->html, x, tensor) : cli_error("out of memory");
    free(x);
    if (rc) return rc;
  }
  return ablate_print(w->result, a->json);
}

static int sweep(const struct args *a, const cli_context *ctx, const ablate_tensors *tensors, const ablate_specs *specs) {
  ablate_result result = {tensors, specs, calloc(tensors->n * specs->n, sizeof(ablate_row)), malloc(tensors->n * sizeof(size_t))};
  work w = {a, tensors, specs, &result, malloc(specs->n * UNITS * sizeof(double)), malloc(sizeof(mx_measure))};
  int rc = result.rows && result.order && w.units && w.measure ? CLI_FINE : cli_error("out of memory");
  uint64_t total = 0, done = 0;
  for (size_t t = 0; t < tensors->n; t++) total += (uint64_t)tensors->at[t].rows * tensors->at[t].cols * sizeof(float);
  progress p;
  progress_start(&p, ctx, "ablate", total);
  for (size_t t = 0; t < tensors->n && !rc; t++) {
    rc = one_tensor(&w, t);
    progress_at(&p, done += (uint64_t)tensors->at[t].rows * tensors->at[t].cols * sizeof(float));
    result.order[t] = t;
  }
  if (!rc) {
    progress_end(&p);
    sorting = &result;
    qsort(result.order, tensors->n, sizeof *result.order, worse_first);
    rc = report(&w, ctx);
  }
  free(result.rows);
  free(result.order);
  free(w.units);
  free(w.measure);
  return rc;
}

static int with_tensors(const struct args *a, const cli_context *ctx, const ablate_tensors *tensors) {
  const ablate_products p = {a->presets,        &a->set,           &a->operands, a->seed.v, ablate_model(a->model),
                             (int)a->repeats.v, (int)a->threads.v, a->json};
  if (a->gemm) return ablate_gemm(tensors, &p);
  if (a->six) return ablate_six(tensors, &p);
  ablate_specs specs;
  if (ablate_specs_make(&specs, a->presets, &a->set, a->seed.v)) return CLI_TROUBLE;
  const int rc = sweep(a, ctx, tensors, &specs);
  ablate_specs_free(&specs);
  return rc;
}

static int run(const cli_context *ctx, void *args) {
  const struct args *a = args;
  size_t rows = 0, cols = 0;
  if (a->gemm && a->six) return cli_error("ablate: --gemm and --six exclude each other");
  if (!a->in.n) return cli_error("ablate: no input, expected IN[:TENSOR]... or gen:NAME");
  if (a->operands.n && !a->gemm && !a->six) return cli_error("ablate: --operand goes with --gemm or --six");
  if (a->repeats.v > 1000000) return cli_error("--repeats: %llu, expected at most 1000000", (unsigned long long)a->repeats.v);
  if (parse_shape(&rows, &cols, a->shape)) return CLI_TROUBLE;
  ablate_tensors tensors = {0};
  int rc = CLI_FINE;
  for (size_t i = 0; i < a->in.n && !rc; i++) rc = ablate_tensors_add(&tensors, a->in.items[i], rows, cols, a->seed.v);
  if (!rc) rc = with_tensors(a, ctx, &tensors);
  ablate_tensors_free(&tensors);
  return rc;
}

const cli_command cmd_ablate = {options, sizeof(struct args), run,
                                "SQNR and the other figures are of the tensor and what quantising and dequantising make of it, with rotations "
                                "undone. `behind` is how many dB a\n"
                                "row is worse than the best of its tensor, with the 95 % interval of a bootstrap over blocks; a difference "
                                "whose interval holds 0 is marked ~.\n"
                                "Tensors are sorted by damage: the lowest SQNR of the first preset comes first. All figures are the same to "
                                "the bit for any number of threads."};
