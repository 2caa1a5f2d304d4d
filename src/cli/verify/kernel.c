/* Runs a kernel on inputs that tell specs apart. */
#include "cli/verify/kernel.h"

#include <stdlib.h>
#include <string.h>

#include "cli/verify/misdeed.h"

/* A tensor of a suite; times: its numbers are that many times as large, a power of two apart from a little. */
typedef struct wanted {
  int suite;
  uint64_t seed;
  float times;
} wanted;

static const wanted ordinary[] = {{MX_SUITE_RANDOM, 1, 1}, {MX_SUITE_TIES, 1, 1}, {MX_SUITE_BOUNDARY, 1, 1}};
static const wanted special[] = {{MX_SUITE_SPECIAL, 1, 1}};
static const wanted fresh[] = {{MX_SUITE_RANDOM, 2, 1}, {MX_SUITE_RANDOM, 3, 0.0107F}, {MX_SUITE_TIES, 2, 1}, {MX_SUITE_BOUNDARY, 2, 1}};

static int run_one(samples *s, size_t *declined, const char *path, const mx_spec *spec, const char *name, const float *x, size_t rows,
                   size_t cols, size_t ld, const plugin_limits *limits) {
  plugin_result got = plugin_run(path, x, rows, cols, ld, spec, limits);
  if (got.end == PLUGIN_DECLINED) {
    ++*declined;
    return CLI_FINE;
  }
  if (got.end == PLUGIN_LOAD || got.end == PLUGIN_TROUBLE) return misdeed_load(path, got.why);
  if (got.end != PLUGIN_OK) {
    char words[600];
    const char *line = strrchr(got.said, '\n');
    if (line && !line[1]) got.said[line - got.said] = 0, line = strrchr(got.said, '\n');
    misdeed_words(words, sizeof words, &got, line ? line + 1 : got.said, rows, cols);
    return cli_error("%s: on input %s: %s", path, name, words);
  }
  const int rc = samples_add(s, name, x, ld, &got.tensor, spec);
  mx_tensor_free(&got.tensor);
  return rc;
}

/* All cases of a suite as one tensor, where the tensor has no scale that one of them could spoil. */
static int is_stackable(const mx_cases *c, const mx_spec *spec) {
  size_t block_rows, block_cols;
  mx_spec_block(spec, c->rows, c->cols, &block_rows, &block_cols);
  return !spec->tensor_norm && c->rows % block_rows == 0;
}

int kernel_samples(samples *s, size_t *declined, const char *path, const mx_spec *spec, kernel_inputs which, const plugin_limits *limits) {
  const wanted *list = which == KERNEL_FRESH ? fresh : which == KERNEL_SPECIAL ? special : ordinary;
  const size_t n = which == KERNEL_FRESH     ? sizeof fresh / sizeof *fresh
                   : which == KERNEL_SPECIAL ? sizeof special / sizeof *special
                                             : sizeof ordinary / sizeof *ordinary;
  int rc = CLI_FINE;
  for (size_t i = 0; i < n && !rc; i++) {
    mx_cases c;
    mx_error err = {0};
    const size_t rows = list[i].suite == MX_SUITE_BOUNDARY ? 96 : 0, cols = list[i].suite == MX_SUITE_BOUNDARY ? 256 : 0;
    if (mx_generate(&c, list[i].suite, spec, rows, cols, list[i].seed, &err)) return cli_fail(&err);
    for (size_t k = 0; k < c.n * c.rows * c.ld; k++) c.x[k] *= list[i].times;
    if (c.n == 1 || is_stackable(&c, spec))
      rc = run_one(s, declined, path, spec, mx_suite_name(list[i].suite), c.x, c.n * c.rows, c.cols, c.ld, limits);
    mx_cases_free(&c);
  }
  return rc;
}
