/* Runs mxgold matrix: which presets differ on which suite. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/cli.h"
#include "mxgold/mxgold.h"
#include "cli/base/list.h"
#include "cli/base/out.h"

struct args {
  const char *presets;
  int json, minimal;
};

static const cli_option options[] = {
    {"presets", 0, CLI_STRING, offsetof(struct args, presets), "A,B,C",
     "the presets to compare; by default a dozen well-known ones of each kind", NULL},
    {"minimal", 0, CLI_FLAG, offsetof(struct args, minimal), NULL,
     "print instead the size of suite minimal, and the pairs of all presets that it does not separate", NULL},
    {"json", 0, CLI_FLAG, offsetof(struct args, json), NULL, "print JSON", NULL},
    {0},
};

enum { MOST = 64 };

typedef struct row {
  const char *name;
  mx_spec spec;
} row;

static int parse(row rows[MOST], size_t *n, char *text) {
  *n = 0;
  if (text[strspn(text, ",")] && list_check("matrix: --presets", text, text, "names with commas between them")) return CLI_TROUBLE;
  for (char *save = NULL, *name = strtok_r(text, ",", &save); name; name = strtok_r(NULL, ",", &save)) {
    mx_error err;
    if (*n == MOST) return cli_error("matrix: at most %d presets", MOST);
    if (mx_preset_find(&rows[*n].spec, name, &err)) return cli_fail(&err);
    rows[(*n)++].name = name;
  }
  if (*n < 2)
    return cli_error("matrix: --presets '%s': %s, expected at least two names with commas between them", *n ? rows[0].name : "",
                     *n ? "nothing to compare it with" : "no preset");
  return CLI_FINE;
}

typedef struct count {
  uint64_t codes, scales, of_codes, of_scales;
  int comparable;
} count;

static void add(count *k, const float *x, const mx_cases *c, const row *a, const row *b) {
  mx_tensor ta, tb;
  if (mx_tensor_alloc(&ta, c->rows, c->cols, &a->spec)) return;
  if (!mx_tensor_alloc(&tb, c->rows, c->cols, &b->spec)) {
    k->comparable = ta.code_stride == tb.code_stride && ta.scale_cols == tb.scale_cols && ta.scale_bytes == tb.scale_bytes;
    const int refused = mx_quantize(&ta, x, c->rows, c->cols, c->ld, &a->spec, NULL, NULL) ||
                        mx_quantize(&tb, x, c->rows, c->cols, c->ld, &b->spec, NULL, NULL);
    mx_difference *d = malloc(sizeof *d);
    if (k->comparable && !refused && d && !mx_diff(d, &ta, &tb, &a->spec, NULL, 0, NULL, NULL, NULL, NULL)) {
      k->codes += d->codes;
      k->scales += d->scales;
      k->of_codes += d->n_codes;
      k->of_scales += d->n_scales;
    }
    free(d);
    mx_tensor_free(&tb);
  }
  mx_tensor_free(&ta);
}

static void pair(out *o, const row *a, const row *b) {
  static const int suites[] = {MX_SUITE_RANDOM, MX_SUITE_TIES, MX_SUITE_BOUNDARY, MX_SUITE_SPECIAL};
  for (size_t i = 0; i < sizeof suites / sizeof suites[0]; i++) {
    mx_cases c;
    count k = {0};
    if (mx_generate(&c, suites[i], &a->spec, suites[i] == MX_SUITE_SPECIAL ? 0 : 64, 256, 1, NULL)) continue;
    for (size_t t = 0; t < c.n; t++) add(&k, c.x + t * c.rows * c.ld, &c, a, b);
    mx_cases_free(&c);
    if (!k.comparable) return;
    out_row(o);
    out_text(o, "a", a->name);
    out_text(o, "b", b->name);
    out_text(o, "suite", mx_suite_name(suites[i]));
    out_u64(o, "codes", k.of_codes);
    out_u64(o, "differ", k.codes);
    out_u64(o, "scales", k.of_scales);
    out_u64(o, "scales differ", k.scales);
  }
}

static int minimal(const struct args *a) {
  mx_spec spec = {0};
  mx_cases c;
  mx_error err;
  const char *pairs[256][2];
  if (mx_generate(&c, MX_SUITE_MINIMAL, &spec, 0, 0, 0, &err)) return cli_fail(&err);
  const size_t n = mx_minimal_unseparated(pairs, 256, &c);
  if (n == SIZE_MAX) {
    mx_cases_free(&c);
    return cli_error("out of memory");
  }
  out *o = out_new();
  size_t presets = 0;
  for (size_t i = 0; i < mx_preset_count(); i++) presets += mx_preset_at(i)->alias_of == NULL;
  out_u64(o, "presets", presets);
  out_u64(o, "pairs", presets * (presets - 1) / 2);
  out_u64(o, "tensors", c.n);
  out_u64(o, "bytes of input", c.n * c.rows * c.cols * sizeof(float));
  out_u64(o, "pairs left together", n);
  if (n) out_table(o, "together");
  for (size_t i = 0; i < n && i < 256; i++) {
    out_row(o);
    out_text(o, "a", pairs[i][0]);
    out_text(o, "b", pairs[i][1]);
  }
  if (n) out_end(o);
  mx_cases_free(&c);
  const int rc = out_print(o, a->json);
  return rc ? rc : n ? CLI_DIFFERS : CLI_FINE;
}

static int run(const cli_context *ctx, void *args) {
  (void)ctx;
  const struct args *a = args;
  char text[8192];
  if (a->minimal && a->presets) return cli_error("matrix: --presets and --minimal exclude each other: --minimal takes all presets");
  if (a->minimal) return minimal(a);
  if (a->presets && strlen(a->presets) >= sizeof text) return cli_error("matrix: --presets: expected less than %zu characters", sizeof text);
  snprintf(text, sizeof text, "%s",
           a->presets ? a->presets
                      : "ocp-mxfp4,torchao-even,torchao-rceil,modelopt-mxfp4,quark-even,autoround-floor,microxcaling-py,mlx-mxfp4,ggml-mxfp4,"
                        "te-nvfp4,vllm-nvfp4,ct-nvfp4,modelopt-nvfp4");
  row *rows = calloc(MOST, sizeof *rows);
  size_t n = 0;
  int rc = rows ? parse(rows, &n, text) : cli_error("out of memory");
  out *o = rc ? NULL : out_new();
  if (!rc) {
    out_table(o, "pairs");
    for (size_t i = 0; i < n; i++)
      for (size_t k = i + 1; k < n; k++) pair(o, &rows[i], &rows[k]);
    out_end(o);
    rc = out_print(o, a->json);
  }
  free(rows);
  return rc;
}

const cli_command cmd_matrix = {
    options, sizeof(struct args), run,
    "Pairs whose codes or scales have different shapes are left out. Suites are those of the first preset of a pair. A NaN equals a NaN."};
