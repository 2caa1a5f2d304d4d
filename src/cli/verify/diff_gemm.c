/* Runs mxgold diff --gemm A B D, which says whether D is the product, and if not, what it is. */
#include "diff_gemm.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mxgold/mxgold.h"
#include "cli/base/out.h"
#include "report.h"

typedef struct work {
  const diff_gemm_args *args;
  mx_quantized a, b;
  mx_file *files[3];
  float alpha, beta, *bias;
  mx_gemm_options gemm;
  const void *d;
} work;

static int type_of(mx_dtype *to, const mx_array *x, const char *path, const char *type) {
  *to = x->dtype;
  if (x->dtype == MX_U16 && type && !strcmp(type, "bf16")) *to = MX_BF16;
  if (*to != MX_F32 && *to != MX_F16 && *to != MX_BF16)
    return cli_error("%s: dtype is %s, expected f32, f16 or bf16 (uint16 with --out bf16)", path, mx_dtype_name(x->dtype));
  return CLI_FINE;
}

static int matrix(const void **data, mx_dtype *type, mx_file **file, const work *w, const char *path, const char *words) {
  mx_error err;
  const mx_array *x;
  const size_t rows = w->a.tensor.rows, cols = w->b.tensor.rows;
  if (mx_tensor_open(file, &x, path, &err)) return cli_fail(&err);
  if (type_of(type, x, path, w->args->product.type)) return CLI_TROUBLE;
  size_t n;
  if (__builtin_mul_overflow(rows, cols, &n) || x->n_values != n || x->n_dims < 1 || (n && x->shape[x->n_dims - 1] != cols))
    return cli_error("%s: %" PRIu64 " values, expected %s of %zu x %zu", path, x->n_values, words, rows, cols);
  *data = x->data;
  return CLI_FINE;
}

static int open_all(work *w) {
  const diff_gemm_args *a = w->args;
  mx_error err;
  if (mx_quantized_open(&w->a, a->a, &err) || mx_quantized_open(&w->b, a->b, &err)) return cli_fail(&err);
  if (matrix(&w->d, &w->gemm.out, &w->files[0], w, a->d, "D")) return CLI_TROUBLE;
  if (a->product.type && mx_dtype_find(a->product.type) != (int)w->gemm.out)
    return cli_error("%s: dtype is %s, not the %s of --out", a->d, mx_dtype_name(w->gemm.out), a->product.type);
  if (a->product.c && matrix(&w->gemm.c, &w->gemm.c_type, &w->files[1], w, a->product.c, "C")) return CLI_TROUBLE;
  if (a->product.bias && !(w->gemm.bias = w->bias = product_bias(&w->files[2], a->product.bias, w->b.tensor.rows))) return CLI_TROUBLE;
  return CLI_FINE;
}

/* Right, but only under accumulators that are narrower than binary32 and not these operands' own: their bits, so that nobody takes it for a plain
 * pass. 0: not so, or the model was asked for. */
static int narrow(const diff_gemm_args *a, const mx_judgement *j) {
  int bits = 0;
  for (int i = 0; i < j->n_models && j->equal && !a->product.accum && !a->bound; i++) {
    if (j->models[i].differ || j->models[i].compared != j->outputs) continue;
    if (!j->models[i].bits) return 0;
    if (j->models[i].bits > bits) bits = j->models[i].bits;
  }
  return bits;
}

/* More right models than these are not told apart, so that a few of their names stand for all. */
enum { TOLD_APART = 12, FEW_NAMED = 3 };

/* A finding that is no error where no model was asked for: some order gives these sums. */
static int is_some_order(const mx_finding *f) { return !strncmp(f->what, "every output looked at lies where", 33); }

/* The same of what is done to a sum that is known: not its order, but a factor is another one. */
static int is_some_factor(const mx_finding *f) { return !strncmp(f->what, "every output that differs is within", 35); }

/* Is it a number that all outputs are multiplied by, or a function of each, whose own rounding is all that differs? Then nothing is said of the order. */
static int is_after_the_sum(const mx_finding *f) {
  static const char *const begins[] = {"every output is", "the tensor scale of", "alpha ", "the product is", "a SiLU",
                                       "a GELU",          "a sigmoid",           "a tanh"};
  for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++)
    if (!strncmp(f->what, begins[i], strlen(begins[i]))) return 1;
  return 0;
}

static void sentence(char *to, size_t size, const diff_gemm_args *a, const mx_judgement *j) {
  size_t n = 0;
  if (j->equal && a->bound) {
    snprintf(to, size, "D is right: every output lies in its interval.");
    return;
  }
  if (j->equal) {
    const int bits = narrow(a, j);
    int right = 0;
    for (int i = 0; i < j->n_models; i++) right += !j->models[i].differ && j->models[i].compared == j->outputs;
    const int named = right > TOLD_APART ? FEW_NAMED : right;
    n = (size_t)snprintf(to, size, "D is right, bit for bit, %sunder ", bits ? "but only " : "");
    for (int i = 0, k = 0; i < j->n_models && n < size && k < named; i++)
      if (!j->models[i].differ && j->models[i].compared == j->outputs)
        n += (size_t)snprintf(to + n, size - n, "%s%s", k++ ? ", " : "", j->models[i].name);
    if (n < size && right > named)
      n += (size_t)snprintf(to + n, size - n, " and %d other models: these data cannot tell their orders of summation apart", right - named);
    if (n < size && bits)
      snprintf(to + n, size - n, ": an accumulator of %d bits, not the 24 of binary32. If you expect another, say it with --accum.", bits);
    else if (n < size)
      snprintf(to + n, size - n, ".");
    return;
  }
  if (!j->n_findings) {
    snprintf(to, size, "D is wrong in %" PRIu64 " of %" PRIu64 " outputs; nothing that is known explains them.", j->differ, j->outputs);
    return;
  }
  const mx_finding *f = &j->findings[0];
  /* Where, if it is a part of D that the finding does not name itself. */
  char part[sizeof j->regions[0]] = "", where[sizeof part + 8] = "";
  if (j->n_regions && !strncmp(j->regions[0], "all in ", 7))
    snprintf(part, sizeof part, "%.*s", (int)strcspn(j->regions[0] + 7, ";("), j->regions[0] + 7);
  for (int i = 0; i < j->n_regions; i++) /* "only rows with index % 2 = 1" says more */
    if (!strncmp(j->regions[i], "only rows with", 14) || !strncmp(j->regions[i], "only columns with", 17))
      snprintf(part, sizeof part, "%s", j->regions[i] + 5);
  for (size_t end = strlen(part); end && part[end - 1] == ' ';) part[--end] = 0;
  if (*part && !strstr(f->what, part) && !strstr(f->what, " alone: ") && !strstr(f->what, " of D are "))
    snprintf(where, sizeof where, " in %s", part);
  if (is_some_order(f) && !a->product.accum)
    snprintf(to, size, "D follows some legal order of summation, not one that is known%s: %s.", where, f->what);
  else if (is_some_factor(f) && !a->product.accum)
    snprintf(to, size, "D has the sums of %s, and a factor behind them that is another one%s: %s.", j->base, where, f->what);
  else if (!*f->model && !f->explained)
    snprintf(to, size, "D is wrong%s: %s.", where, f->what);
  else if (!*f->model)
    snprintf(to, size, "D is wrong%s: %s (to rounding%s).", where, f->what,
             is_after_the_sum(f) ? "" : "; the order of summation is not one that is known");
  else if (!strcmp(f->model, "its own"))
    snprintf(to, size, "D follows another order than %s: %s. That gives %" PRIu64 " of the %" PRIu64 " outputs that differ.", j->base, f->what,
             f->explained, j->differ);
  else
    n = (size_t)snprintf(to, size, "D is wrong%s: %s. That gives %" PRIu64 " of the %" PRIu64 " wrong outputs bit for bit, under %s.", where,
                         f->what, f->explained, j->differ, f->model);
  for (int i = 1; i < j->n_findings && n && n < size; i++) { /* what these data cannot tell from it */
    const mx_finding *g = &j->findings[i];
    if (*g->model && g->explained == f->explained && g->breaks == f->breaks) n += (size_t)snprintf(to + n, size - n, " The same: %s.", g->what);
  }
  if (f->breaks && n && n < size)
    snprintf(to + n, size - n, " It acts there alone: %" PRIu64 " right outputs in the same rows and columns would have changed too.",
             f->breaks);
}

static void example(out *o, const char *which, const mx_judge_example *e, int bound) {
  out_row(o);
  out_text(o, "example", which);
  out_u64(o, "row", e->row);
  out_u64(o, "column", e->col);
  out_f64(o, "expected", e->want, "%.9g");
  out_f64(o, "actual", e->got, "%.9g");
  out_f64(o, "ulps", e->ulps, "%.3g");
  if (!bound) return;
  out_f64(o, "from", e->lo, "%.9g");
  out_f64(o, "to", e->hi, "%.9g");
}

/* The dozen that D is nearest to; models that were compared in full come before those that a sample spoke against. */
static double distance(const mx_judge_model *m, uint64_t outputs) {
  return m->compared ? (double)m->differ / (double)m->compared + (m->compared < outputs) : 2;
}
static void nearest_models(out *o, const mx_judgement *j) {
  enum { SHOWN = 12 };
  char taken[MX_JUDGE_MODELS] = {0};
  out_u64(o, "models tried", (uint64_t)j->n_models);
  out_table(o, "models");
  for (int shown = 0; shown < SHOWN && shown < j->n_models; shown++) {
    int best = -1;
    for (int i = 0; i < j->n_models; i++)
      if (!taken[i] && (best < 0 || distance(&j->models[i], j->outputs) < distance(&j->models[best], j->outputs))) best = i;
    taken[best] = 1;
    out_row(o);
    out_text(o, "model", j->models[best].name);
    out_u64(o, "compared", j->models[best].compared);
    out_u64(o, "differ", j->models[best].differ);
  }
  out_end(o);
}

enum { DIFF_GEMM_SCHEMA = 2 };
/* Keys of JSON that no rule makes of the text. */
static const out_name names[] = {{"M, N, K", "shape"}, {"signs of zero", "zero_signs"}, {0}};

static int print(const diff_gemm_args *a, const mx_judgement *j, const char *verdict) {
  static const char *const distances[] = {"1 ulp", "2 ulps", "4 ulps", "16 ulps", "256 ulps", "65536 ulps", "more", "NaN or Inf"};
  const uint64_t shape[3] = {j->M, j->N, j->K};
  out *o = out_new();
  out_identifiers(o, names);
  if (a->json) out_u64(o, "schema_version", DIFF_GEMM_SCHEMA);
  out_answer(o, "equal", j->equal);
  out_shape(o, "M, N, K", shape, 3);
  out_text(o, "judged against", a->bound ? "the interval of every order of summation" : j->base);
  out_u64(o, "outputs", j->outputs);
  out_u64(o, "outputs that differ", j->differ);
  out_u64(o, "NaN in one alone", j->nan_wrong);
  out_u64(o, "Inf in one alone", j->inf_wrong);
  out_u64(o, "signs of zero", j->zero_signs);
  out_texts(o, "where", (size_t)j->n_regions, j->regions[0], sizeof j->regions[0], a->json);
  const int bits = narrow(a, j);
  if (bits) out_u64(o, "accumulator bits", (uint64_t)bits);
  out_text(o, "verdict", verdict);
  if (j->n_findings) {
    out_table(o, "findings");
    for (int i = 0; i < j->n_findings; i++) {
      out_row(o);
      out_text(o, "what", j->findings[i].what);
      out_text(o, "under", *j->findings[i].model ? j->findings[i].model : "rounding");
      out_u64(o, "explains", j->findings[i].explained);
      out_u64(o, "leaves", j->findings[i].unexplained);
      out_u64(o, "would change", j->findings[i].breaks);
    }
    out_end(o);
  }
  nearest_models(o, j);
  if (!j->equal) {
    out_table(o, "distances");
    for (int i = 0; i < 8; i++) {
      if (!j->ulps[i]) continue;
      out_row(o);
      out_text(o, "up to", distances[i]);
      out_u64(o, "outputs", j->ulps[i]);
    }
    out_end(o);
    out_table(o, "examples");
    example(o, "first", &j->first, a->bound);
    example(o, "worst", &j->worst, a->bound);
    out_end(o);
  }
  return out_print(o, a->json);
}

int diff_gemm(const diff_gemm_args *a) {
  work w = {.args = a, .alpha = a->product.alpha.v, .beta = a->product.beta.v};
  if (product_factors("diff", &a->product)) return CLI_TROUBLE;
  mx_judge_options how = {.model = a->product.accum, .bound = a->bound, .nan_bits = a->nan_bits, .equal_zeros = a->equal_zeros};
  if (family_of(&how.family, "diff", a->bound, a->product.bits, a->product.fraction, a->product.sums)) return CLI_TROUBLE;
  if (a->bound && a->product.accum) return cli_error("diff: --accum and --bound exclude each other");
  w.gemm.alpha = a->product.alpha.given ? &w.alpha : NULL;
  w.gemm.beta = a->product.beta.given ? &w.beta : NULL;
  w.gemm.exec.n_threads = cli_threads(&a->product.threads);
  mx_judgement *j = calloc(1, sizeof *j);
  char verdict[1024];
  mx_error err;
  int rc = j ? open_all(&w) : cli_error("out of memory");
  if (!rc && mx_judge(j, w.d, &w.a.tensor, &w.a.spec, &w.b.tensor, &w.b.spec, &w.gemm, &how, &err))
    rc = cli_error("%s, %s: %s", a->a, a->b, err.text);
  if (!rc) {
    sentence(verdict, sizeof verdict, a, j);
    rc = print(a, j, verdict);
  }
  if (!rc && a->junit) rc = report_junit(a->junit, a->d, &(junit_case){"product", j->equal ? NULL : verdict}, 1);
  const int differs = !rc && !j->equal;
  for (int i = 0; i < 3; i++)
    if (w.files[i]) mx_file_close(w.files[i]);
  if (w.b.file) mx_quantized_close(&w.b);
  if (w.a.file) mx_quantized_close(&w.a);
  free(w.bias);
  free(j);
  return rc ? rc : differs ? CLI_DIFFERS : CLI_FINE;
}
