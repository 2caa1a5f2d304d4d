/* Keeps measured pairs of tensor and spec in a file, so that a run that was stopped goes on. One line a pair, written when it is measured: KEY of
 * the tensor and the run, spec, the errors of the tensor's parts, which the intervals are made of when all specs are there, and the numbers. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ablate.h"
#include "mxgold/version.h"
#include "state_lines.h"

/* Everything that the numbers depend on. */
static int make_key(ablate_state *s, const ablate_tensor *t, const char *digest, const ablate_specs *specs, int repeats) {
  char *text = NULL;
  size_t n;
  FILE *f = open_memstream(&text, &n);
  if (!f) return 0;
  fprintf(f, "%s 10 %s %zu %zu %d\n", MX_VERSION, /* 10: of what the lines hold; raised when a field is added or means something else */
          digest, t->rows, t->cols, repeats);
  for (size_t i = 0; i < specs->n; i++) {
    char keys[4096];
    const mx_spec own = ablate_spec_of(&specs->at[i], t);
    mx_spec_print(keys, sizeof keys, &own, 1);
    fprintf(f, "%s\n", keys);
  }
  if (fclose(f)) return 0;
  mx_digest(s->key, text, n);
  free(text);
  return 1;
}

/* MX_FIELDS: what a line holds, in order. */
#define INTEGERS(F) F(sums.n) F(sums.n_nan) F(sums.n_inf) F(sums.n_spoiled) F(sums.n_underflow) F(n_codes) F(zero) F(saturated)
#define REALS(F)                                                                                                                               \
  F(sums.xx)                                                                                                                                   \
  F(sums.yy)                                                                                                                                   \
  F(sums.xy)                                                                                                                                   \
  F(sums.ee)                                                                                                                                   \
  F(sums.lost)                                                                                                                                 \
  F(sums.max_error)                                                                                                                            \
  F(sums.max_relative)                                                                                                                         \
  F(entropy) F(bits) F(bias) F(bias_low) F(bias_high) F(scale_p05) F(scale_p50) F(scale_p95) F(tensor_factor)

static int parse(ablate_row *r, const char *at) {
  char *end;
#define F(field)                                                                                                                               \
  r->field = strtoull(at, &end, 10);                                                                                                           \
  if (end == at) return 0;                                                                                                                     \
  at = end;
  INTEGERS(F)
#undef F
#define F(field)                                                                                                                               \
  r->field = strtod(at, &end);                                                                                                                 \
  if (end == at) return 0;                                                                                                                     \
  at = end;
  REALS(F)
#undef F
  r->repeats = (int)strtol(at, &end, 10);
  return end != at && sscanf(end, " %511s", r->scales) == 1;
}

enum { NUMBERS = 2048, DIGITS = 16, LINE = NUMBERS + ABLATE_UNITS * DIGITS };

/* Doubles as 16 hexadecimal digits each, without blanks; n at most. Returns how many there are, and where they end. */
static size_t read_units(double *units, size_t n, const char *at, const char **end) {
  size_t i = 0;
  for (; i < n; i++, at += DIGITS) {
    char digits[DIGITS + 1] = "";
    memcpy(digits, at, strnlen(at, DIGITS));
    if (strspn(digits, "0123456789abcdef") != DIGITS) break;
    const uint64_t bits = strtoull(digits, NULL, 16);
    memcpy(&units[i], &bits, sizeof bits);
  }
  *end = at;
  return i;
}

/* A line of this key: the row of *spec and the errors of its parts. */
static int read_line(ablate_row *row, size_t *spec, double *units, char *line, const ablate_state *s, size_t n_specs, size_t n_units) {
  int used;
  char key[33];
  const char *at;
  if (strncmp(line, s->key, sizeof s->key - 1) || !state_line_whole(line)) return 0; /* another tensor's; cut, or no longer what was written */
  if (sscanf(line, "%32s %zu %n", key, spec, &used) != 2 || strcmp(key, s->key) || *spec >= n_specs) return 0;
  return read_units(units, n_units, line + used, &at) == n_units && parse(row, at);
}

void ablate_state_find(ablate_state *s, ablate_row *rows, const ablate_pairs *pairs, const ablate_tensor *t, const char *digest,
                       const ablate_specs *specs, int repeats) {
  if (!s->path || !make_key(s, t, digest, specs, repeats)) return;
  state_reader all;
  double units[ABLATE_UNITS];
  state_open(&all, s->path);
  for (char *line; (line = state_next(&all));) {
    size_t spec;
    ablate_row row = {0};
    if (!read_line(&row, &spec, units, line, s, specs->n, pairs->n_units)) continue;
    row.tensor = rows[spec].tensor;
    row.spec = spec;
    rows[spec] = row;
    pairs->have[spec] = 1;
    memcpy(pairs->units + spec * ABLATE_UNITS, units, pairs->n_units * sizeof *units);
  }
  state_close(&all);
}

mx_status ablate_state_add(const ablate_state *s, const ablate_row *row, const double *units, size_t n_units, mx_error *err) {
  if (!s->path) return MX_OK;
  char *line = malloc(LINE);
  if (!line) return mx_fail(err, MX_ERR_NOMEM, "out of memory");
  size_t at = (size_t)snprintf(line, LINE, "%s %zu ", s->key, row->spec); /* all numbers together stay far below NUMBERS */
  for (size_t k = 0; k < n_units; k++) {
    uint64_t bits;
    memcpy(&bits, &units[k], sizeof bits);
    at += (size_t)snprintf(line + at, LINE - at, "%016" PRIx64, bits);
  }
#define F(field) at += (size_t)snprintf(line + at, LINE - at, " %" PRIu64, row->field);
  INTEGERS(F)
#undef F
#define F(field) at += (size_t)snprintf(line + at, LINE - at, " %a", row->field);
  REALS(F)
#undef F
  at += (size_t)snprintf(line + at, LINE - at, " %d %s", row->repeats, row->scales);
  const mx_status status = state_line_add(s->path, line, at, err);
  free(line);
  return status;
}
