/* Says by how many dB one spec is worse than another, with an interval of that difference that no third spec changes. */
#include <stdlib.h>

#include "ablate.h"

/* Of fewer parts resamples are much alike: their interval is too narrow, of one part it has no width at all. */
enum { FEW_UNITS = 20 };

size_t ablate_units_of(const ablate_tensor *t) {
  const size_t n = t->rows * t->cols / 64;
  return n < ABLATE_UNITS ? (n ? n : 1) : ABLATE_UNITS;
}

double ablate_difference(const ablate_row *a, const ablate_row *b) {
  const double ea = ablate_error(a), eb = ablate_error(b);
  if (!(ea > 0) || !(eb > 0)) return ea > 0 ? -INFINITY : eb > 0 ? INFINITY : 0;
  return 10 * mx_log2(eb / ea) * 0.30102999566398119521;
}

mx_status ablate_between(mx_interval *out, const ablate_result *r, size_t tensor, const mx_column_pair *pairs, size_t n_pairs) {
  const size_t n = r->specs->n, n_units = ablate_units_of(&r->tensors->at[tensor]);
  const double **units = malloc(n * sizeof *units);
  unsigned char *spoiled = calloc(n_pairs + 1, 1);
  mx_status status = units && spoiled ? MX_OK : MX_ERR_NOMEM;
  for (size_t s = 0; s < n && !status; s++) units[s] = r->units + (tensor * n + s) * ABLATE_UNITS;
  for (size_t p = 0; p < n_pairs && !status; p++)
    spoiled[p] = ablate_row_at(r, tensor, pairs[p].a)->sums.n_spoiled || ablate_row_at(r, tensor, pairs[p].b)->sums.n_spoiled;
  if (!status) status = mx_bootstrap_db_pairs(out, units, n, pairs, n_pairs, spoiled, n_units, 0, 1);
  for (size_t p = 0; p < n_pairs && !status; p++)
    if (n_units < FEW_UNITS && pairs[p].a != pairs[p].b) out[p] = (mx_interval){out[p].at, -INFINITY, INFINITY};
  free(units);
  free(spoiled);
  return status;
}

/* Sums of a mean's parts: tensors are independent, so that the squares of their intervals' halves add. */
typedef struct mean {
  double told, at, below, above;
} mean;

static void add(mean *m, const mx_interval *i, double n) {
  if (!isfinite(i->low) || !isfinite(i->high)) return;
  const double low = n * (i->at - i->low), high = n * (i->high - i->at);
  m->at += i->at * n;
  m->below += low * low;
  m->above += high * high;
  m->told += n;
}

mx_status ablate_between_all(mx_interval *out, const ablate_result *r, const mx_column_pair *pairs, size_t n_pairs) {
  mx_interval *one = malloc(n_pairs * sizeof *one + 1);
  mean *means = calloc(n_pairs + 1, sizeof *means);
  mx_status status = one && means ? MX_OK : MX_ERR_NOMEM;
  for (size_t t = 0; t < r->tensors->n && n_pairs && !status; t++) {
    if (ablate_is_void(ablate_row_at(r, t, 0))) continue;
    status = ablate_between(one, r, t, pairs, n_pairs);
    for (size_t p = 0; p < n_pairs && !status; p++) add(&means[p], &one[p], (double)(r->tensors->at[t].rows * r->tensors->at[t].cols));
  }
  for (size_t p = 0; p < n_pairs && !status; p++) {
    const mean *m = &means[p];
    out[p] = m->told > 0 ? (mx_interval){m->at / m->told, (m->at - sqrt(m->below)) / m->told, (m->at + sqrt(m->above)) / m->told}
                         : (mx_interval){NAN, -INFINITY, INFINITY};
  }
  free(one);
  free(means);
  return status;
}
