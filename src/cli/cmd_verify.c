/* Runs mxgold verify: vectors against vectors, or against what their header asks for. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/base/cli.h"
#include "mxgold/mxgold.h"
#include "cli/base/out.h"
#include "cli/verify/report.h"

struct args {
  const char *first, *second, *junit;
  int json, nan_bits;
};

static const cli_option options[] = {
    {"EXPECTED", 0, CLI_POS, offsetof(struct args, first), NULL,
     "an .mxv file or -; if it is alone, it is checked against what its own header asks for", NULL},
    {"ACTUAL", 0, CLI_POS_OPT, offsetof(struct args, second), NULL, "an .mxv file of the same cases", NULL},
    {"nan-bits", 0, CLI_FLAG, offsetof(struct args, nan_bits), NULL, "compare NaN codes, and codes under a NaN scale, like any others", NULL},
    {"junit", 0, CLI_STRING, offsetof(struct args, junit), "FILE", "JUnit XML for CI", NULL},
    {"json", 0, CLI_FLAG, offsetof(struct args, json), NULL, "print JSON", NULL},
    {0},
};

/* The tensor scale of cases that are rows of one tensor, which is a line of the header; compared where both headers have it. A program in a pipe copies a
 * header without it. */
static size_t compare_header(mx_vectors_count *t, const mx_vectors *e, const mx_vectors *got) {
  const char *want = mx_vectors_meta(e, "tensor_scale"), *have = mx_vectors_meta(got, "tensor_scale");
  if (!want || !have) return 0;
  *t = (mx_vectors_count){.compared = 1, .differ = strcmp(want, have) != 0, .want = strtoull(want, NULL, 16), .got = strtoull(have, NULL, 16)};
  return 1;
}

/* t: of each column, then of the n_header numbers of the header. */
static int report(const struct args *a, const mx_vectors *e, const mx_vectors_count *t, size_t n_header) {
  out *o = out_new();
  junit_case cases[MX_VECTOR_COLUMNS + 1];
  char failures[MX_VECTOR_COLUMNS + 1][160];
  uint64_t differ = 0;
  const size_t n = e->n_columns + n_header;
  for (size_t i = 0; i < n; i++) differ += t[i].differ;
  out_answer(o, "equal", !differ);
  out_u64(o, "cases", e->n_cases);
  out_table(o, "columns");
  for (size_t i = 0; i < n; i++) {
    const char *name = i < e->n_columns ? e->columns[i].name : "tensor_scale";
    out_row(o);
    out_text(o, "column", name);
    out_u64(o, "compared", t[i].compared);
    out_u64(o, "differ", t[i].differ);
    cases[i] = (junit_case){name, NULL};
    if (!t[i].differ) continue;
    char want[24], got[24];
    snprintf(want, sizeof want, "%" PRIx64, t[i].want);
    snprintf(got, sizeof got, "%" PRIx64, t[i].got);
    out_u64(o, a->json ? "first_case" : "first case", t[i].first_case);
    out_u64(o, "at", t[i].first_index);
    out_text(o, "expected", want);
    out_text(o, "actual", got);
    snprintf(failures[i], sizeof failures[i], "%" PRIu64 " of %" PRIu64 " differ, first in case %zu at %zu: expected %s, actual %s",
             t[i].differ, t[i].compared, t[i].first_case, t[i].first_index, want, got);
    cases[i].failure = failures[i];
  }
  out_end(o);
  int rc = out_print(o, a->json);
  if (!rc && a->junit) rc = report_junit(a->junit, "mxgold verify", cases, n);
  return rc ? rc : differ ? CLI_DIFFERS : CLI_FINE;
}

/* Tensors have a command of their own, diff. Input from a pipe has been read already and cannot be read again. */
static int is_tensors(const char *path) {
  struct stat is;
  mx_file *f = NULL;
  if (stat(path, &is) || !S_ISREG(is.st_mode) || mx_file_open(&f, path, NULL)) return 0;
  mx_file_close(f);
  return 1;
}

static int cannot_read(const char *path, const mx_error *err) {
  if (err->status == MX_ERR_FORMAT && is_tensors(path))
    return cli_error("%s: tensors, expected an .mxv file: mxgold diff A.safetensors B.safetensors compares tensors", path);
  return cli_fail(err);
}

/* What is wrong with a header, and in which file. */
static int bad_header(const char *path, const mx_error *err) {
  return cli_error("%s: %s", strcmp(path, "-") ? path : "standard input", err->text);
}

/* What each line should hold. Where the header names a suite its inputs are made again, and what the lines hold as x is compared with them; else x is
 * taken on trust, and does not count as compared. */
static int expect(mx_vectors *e, int *trusted, const mx_vectors *got, const char *path) {
  mx_error err;
  mx_cases made;
  mx_spec spec;
  const char *suite = mx_vectors_meta(got, "suite"), *seed = mx_vectors_meta(got, "gen.seed");
  if (mx_vectors_expected(e, got, &err)) return bad_header(path, &err);
  *trusted = !suite;
  if (!suite) return CLI_FINE;
  if (mx_vectors_inputs(&made, got, &err) || mx_vectors_spec(&spec, got, &err)) return bad_header(path, &err);
  int rc = CLI_FINE;
  if (memcmp(made.x, e->columns[0].data, made.n * made.rows * made.ld * sizeof *made.x)) {
    mx_vectors_free(e);
    if (mx_cases_to_vectors(e, &made, &spec, suite, NULL, strtoull(seed, NULL, 10),
                            mx_vectors_find(got, "dequantized") < 0 ? 0 : MX_VECTORS_VALUES, &err))
      rc = cli_fail(&err);
  }
  mx_cases_free(&made);
  return rc;
}

static int run(const cli_context *ctx, void *args) {
  (void)ctx;
  const struct args *a = args;
  mx_vectors e = {0}, got = {0};
  mx_error err;
  int rc = CLI_FINE;
  report_fresh(a->junit);
  const char *actual = a->second ? a->second : a->first;
  if (mx_vectors_open(&got, actual, &err)) rc = cannot_read(actual, &err);
  if (!rc && a->second && mx_vectors_open(&e, a->first, &err)) rc = cannot_read(a->first, &err);
  int trusted = 0;
  mx_spec spec;
  if (!rc && a->second && mx_vectors_spec(&spec, &got, &err))
    rc = bad_header(actual, &err); /* mx_vectors_compare() reads that of the expected ones */
  if (!rc && !a->second) rc = expect(&e, &trusted, &got, actual);
  if (!rc && got.n_filled < got.n_columns)
    rc = cli_error("%s: the lines hold %zu of %zu columns, expected the kernel's columns appended to each line",
                   a->second ? a->second : a->first, got.n_filled, got.n_columns);
  mx_vectors_count t[MX_VECTOR_COLUMNS + 1];
  if (!rc && mx_vectors_compare(t, &e, &got, a->nan_bits, &err))
    rc = cli_error("%s and %s: %s", a->first, a->second ? a->second : "its header", err.text);
  if (!rc && trusted) t[0].compared = 0;
  if (!rc) rc = report(a, &e, t, compare_header(&t[e.n_columns], &e, &got));
  mx_vectors_free(&e);
  mx_vectors_free(&got);
  return rc;
}

const cli_command cmd_verify = {options, sizeof(struct args), run,
                                "mxgold gen SUITE --preset NAME | your_program | mxgold verify -: the header says suite, spec, seed and shape, "
                                "from which the inputs are made again and what each line should hold is computed. Vectors "
                                "without a suite are checked against the x that they hold; x itself then does not count as compared.\n"
                                "Exit status 0 if every number is as expected, 1 if not."};
