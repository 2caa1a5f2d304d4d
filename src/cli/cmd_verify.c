/* mxgold verify: vectors against vectors, or against what their header asks for. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "mxgold/mxgold.h"
#include "out.h"
#include "report.h"

struct args {
  const char *first, *second, *junit;
  int json, nan_bits;
};

static const cli_option options[] = {
    {"EXPECTED", 0, CLI_POS, offsetof(struct args, first), NULL,
     "an .mxv file; alone, or -, it is checked against what its own header asks for", NULL},
    {"ACTUAL", 0, CLI_POS_OPT, offsetof(struct args, second), NULL, "an .mxv file of the same cases", NULL},
    {"nan-bits", 0, CLI_FLAG, offsetof(struct args, nan_bits), NULL, "compare NaN codes, and codes under a NaN scale, like any others", NULL},
    {"junit", 0, CLI_STRING, offsetof(struct args, junit), "FILE", "JUnit XML for CI", NULL},
    {"json", 0, CLI_FLAG, offsetof(struct args, json), NULL, "print JSON", NULL},
    {0},
};

typedef struct tally {
  uint64_t compared, differ;
  size_t first_case, first_index;
  uint64_t want, got;
} tally;

static int is_nan(const mx_format *f, uint64_t code) {
  const uint64_t sign = f->sign_bits ? UINT64_C(1) << (f->bits - 1) : 0;
  return mx_format_is_nan(f, code & ~sign);
}

/* Every scale of this case NaN in both? Then its codes mean nothing. With several blocks a case, block by block. */
static int under_nan(const mx_vectors *e, const mx_spec *spec, size_t k, size_t index) {
  const int at = mx_vectors_find(e, "scales"), codes = mx_vectors_find(e, "codes");
  const size_t n = e->columns[at].count, per = e->columns[codes].count;
  size_t br, bc;
  mx_spec_block(spec, 1, per, &br, &bc);
  const size_t block = n * bc >= per && br == 1 ? index / bc : 0;
  return (br == 1 || n == 1) && block < n && is_nan(mx_scale_format(spec->scale), mx_vectors_get(e, (size_t)at, k, block));
}

static void compare_column(tally *t, const mx_vectors *e, const mx_vectors *a, const mx_spec *spec, size_t column, int nan_bits) {
  const mx_column *c = &e->columns[column];
  const int codes = !strcmp(c->name, "codes"), scales = !strcmp(c->name, "scales");
  for (size_t k = 0; k < e->n_cases; k++)
    for (size_t i = 0; i < c->count; i++) {
      const uint64_t want = mx_vectors_get(e, column, k, i), got = mx_vectors_get(a, column, k, i);
      t->compared++;
      if (want == got) continue;
      if (!nan_bits && scales && is_nan(mx_scale_format(spec->scale), want) && is_nan(mx_scale_format(spec->scale), got)) continue;
      if (!nan_bits && codes &&
          ((is_nan(mx_elem_format(spec->elem), want) && is_nan(mx_elem_format(spec->elem), got)) || under_nan(e, spec, k, i)))
        continue;
      if (!t->differ++) t->first_case = k, t->first_index = i, t->want = want, t->got = got;
    }
}

static int same_form(const mx_vectors *e, const mx_vectors *a) {
  if (e->n_cases != a->n_cases || e->n_columns != a->n_columns) return 0;
  for (size_t i = 0; i < e->n_columns; i++)
    if (strcmp(e->columns[i].name, a->columns[i].name) || e->columns[i].bits != a->columns[i].bits ||
        e->columns[i].count != a->columns[i].count)
      return 0;
  return 1;
}

static int report(const struct args *a, const mx_vectors *e, const tally *t) {
  out *o = out_new();
  junit_case cases[MX_VECTOR_COLUMNS];
  char failures[MX_VECTOR_COLUMNS][160];
  uint64_t differ = 0;
  for (size_t i = 0; i < e->n_columns; i++) differ += t[i].differ;
  out_bool(o, "equal", !differ);
  out_u64(o, "cases", e->n_cases);
  out_table(o, "columns");
  for (size_t i = 0; i < e->n_columns; i++) {
    out_row(o);
    out_text(o, "column", e->columns[i].name);
    out_u64(o, "compared", t[i].compared);
    out_u64(o, "differ", t[i].differ);
    cases[i] = (junit_case){e->columns[i].name, NULL};
    if (!t[i].differ) continue;
    char want[24], got[24];
    snprintf(want, sizeof want, "%" PRIx64, t[i].want);
    snprintf(got, sizeof got, "%" PRIx64, t[i].got);
    out_u64(o, "first case", t[i].first_case);
    out_u64(o, "at", t[i].first_index);
    out_text(o, "expected", want);
    out_text(o, "actual", got);
    snprintf(failures[i], sizeof failures[i], "%" PRIu64 " of %" PRIu64 " differ, first in case %zu at %zu: expected %s, actual %s",
             t[i].differ, t[i].compared, t[i].first_case, t[i].first_index, want, got);
    cases[i].failure = failures[i];
  }
  out_end(o);
  int rc = out_print(o, a->json);
  if (!rc && a->junit) rc = report_junit(a->junit, "mxgold verify", cases, e->n_columns);
  return rc ? rc : differ ? CLI_DIFFERS : CLI_FINE;
}

static int run(const cli_context *ctx, void *args) {
  (void)ctx;
  const struct args *a = args;
  mx_vectors e = {0}, got = {0};
  mx_spec spec;
  mx_error err;
  int rc = CLI_FINE;
  if (mx_vectors_open(&got, a->second ? a->second : a->first, &err)) rc = cli_fail(&err);
  if (!rc && (a->second ? mx_vectors_open(&e, a->first, &err) : mx_vectors_expected(&e, &got, &err))) rc = cli_fail(&err);
  if (!rc && mx_vectors_spec(&spec, &e, &err)) rc = cli_fail(&err);
  if (!rc && got.n_filled < got.n_columns)
    rc = cli_error("%s: the lines hold %zu of %zu columns, expected the kernel's columns appended to each line",
                   a->second ? a->second : a->first, got.n_filled, got.n_columns);
  if (!rc && (e.n_filled < e.n_columns || !same_form(&e, &got)))
    rc = cli_error("%s and %s: expected the same columns and as many cases", a->first, a->second ? a->second : "its header");
  tally t[MX_VECTOR_COLUMNS] = {{0}};
  for (size_t i = 0; i < e.n_columns && !rc; i++) compare_column(&t[i], &e, &got, &spec, i, a->nan_bits);
  if (!rc) rc = report(a, &e, t);
  mx_vectors_free(&e);
  mx_vectors_free(&got);
  return rc;
}

const cli_command cmd_verify = {
    options, sizeof(struct args), run,
    "mxgold gen SUITE --preset NAME | your_program | mxgold verify -: what each line should hold is computed from its input and the header.\n"
    "Exit status 0 if every number is as expected, 1 if not."};
