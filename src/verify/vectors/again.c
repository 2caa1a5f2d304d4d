/* Makes the inputs again that a header names: the other end of a pipe gives them back, and may have changed them. */
#include <stdlib.h>
#include <string.h>

#include "verify/suites/gen.h"
#include "verify/vectors/internal.h"

/* Can a suite of this shape hold so many numbers? This is asked first, because memory is not allocated on the word of a header. */
static int holds(int suite, const mx_spec *spec, size_t rows, size_t cols, uint64_t seed, size_t n_numbers) {
  gen g;
  return suite == MX_SUITE_MINIMAL || (!mxi_gen_plan(&g, suite, spec, rows, cols, seed, NULL) && g.n * g.rows * g.ld == n_numbers);
}

mx_status mx_vectors_inputs(mx_cases *out, const mx_vectors *v, mx_error *err) {
  *out = (mx_cases){0};
  mx_spec spec;
  uint64_t rows, cols, seed;
  mx_status s = mx_vectors_spec(&spec, v, err);
  const char *name = mx_vectors_meta(v, "suite");
  const int suite = name ? mx_suite_find(name) : -1;
  if (s) return s;
  if (suite < 0) return mx_fail(err, MX_ERR_FORMAT, "header: suite=%s: no such suite, expected one that mxgold gen makes", name ? name : "");
  if (!mxi_vectors_number(&seed, v, "gen.seed") || !mxi_vectors_number(&rows, v, "rows") || !mxi_vectors_number(&cols, v, "cols") ||
      !v->n_columns)
    return mx_fail(err, MX_ERR_FORMAT, "header: suite=%s without gen.seed, rows and cols, expected all of them, as mxgold gen writes", name);
  /* A suite's own shape may give other numbers than the same shape that is asked for: whichever is nearer was meant. */
  const size_t shapes[2][2] = {{0, 0}, {rows, cols}}, n = v->n_cases * v->columns[0].count;
  size_t least = SIZE_MAX;
  for (int i = 0; i < 2 && least; i++) {
    mx_cases made;
    if (!holds(suite, &spec, shapes[i][0], shapes[i][1], seed, n) || mx_generate(&made, suite, &spec, shapes[i][0], shapes[i][1], seed, NULL))
      continue;
    size_t differ = 0;
    const int fits = made.rows == rows && made.cols == cols && made.n * made.rows * made.ld == n;
    for (size_t k = 0; fits && k < n; k++) differ += memcmp(made.x + k, v->columns[0].data + k * sizeof *made.x, sizeof *made.x) != 0;
    if (fits && differ < least) {
      mx_cases_free(out);
      *out = made;
      least = differ;
    } else
      mx_cases_free(&made);
  }
  return out->x ? MX_OK
                : mx_fail(err, MX_ERR_FORMAT,
                          "header: suite %s under this spec has no %zu cases of these columns, expected as many lines as mxgold gen wrote",
                          name, v->n_cases);
}
