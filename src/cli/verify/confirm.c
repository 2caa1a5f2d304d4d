/* Holds an answer to data that it was not found from: another launch of the kernel on another input. */
#include "cli/verify/confirm.h"

#include <stdio.h>
#include <string.h>

#include "cli/verify/verdict.h"

static int same_input(const mx_sample *a, const mx_sample *b) {
  if (a->rows != b->rows || a->cols != b->cols) return 0;
  for (size_t r = 0; r < a->rows; r++)
    if (memcmp(a->x + r * a->ld, b->x + r * b->ld, a->cols * sizeof *a->x)) return 0;
  return 1;
}

static int is_constant(const samples *s) {
  for (size_t i = 0; i < s->n; i++)
    for (size_t k = 0; k < s->at[i].rows * s->at[i].cols; k++)
      if (s->at[i].codes ? s->at[i].codes[k] != s->at[0].codes[0] : memcmp(&s->at[i].values[k], &s->at[0].values[0], sizeof(float))) return 0;
  return 1;
}

int confirm_allows(const samples *first, const samples *other, const char *on) {
  int same = first->n == other->n;
  for (size_t i = 0; same && i < first->n; i++) same = same_input(&first->at[i], &other->at[i]);
  if (same) return cli_error("%s: its input is that of the first launch, expected a launch on another input", on);
  if (is_constant(other)) return cli_error("%s: all of its codes are the same, so that it confirms nothing", on);
  if (!first->at[0].codes != !other->at[0].codes)
    return cli_error("%s: expected %s, as of the first launch", on, first->at[0].codes ? "codes and scales" : "values");
  return CLI_FINE;
}

void confirm_withdraw(mx_identity *id) {
  id->exact = 0;
  id->grade = MX_GRADE_NONE;
  id->preset = id->nearest = NULL;
  id->undecided = 0;
  id->n_also = 0;
  id->bug = (mx_bug){0};
}

/* The spec goes, the fault that gives the same bytes of the first launch stays. */
static void take_fault(mx_identity *id) {
  id->exact = 0;
  id->nearest = id->bug.preset;
  id->preset = NULL;
  id->spec = id->bug.spec;
  id->codes_differ = id->bug.preset_codes;
  id->scales_differ = id->bug.preset_scales;
  id->tensor_scales_differ = id->bug.preset_tensor;
  id->undecided = 0;
  id->n_also = 0;
}

int confirm_answer(mx_identity *id, held *h, samples *other, const reading *how, const char *on, int threads) {
  *h = (held){0};
  if (!id->exact && !id->bug.n_faults) return CLI_FINE;
  if (!read_alike(other, how)) return cli_error("%s: codes or scales are stored in another form than those of the first launch", on);
  h->on = on;
  int rc = CLI_FINE;
  if (id->exact) {
    rc = expect_count(&h->got, other, &id->spec, NULL, 0, threads);
    h->holds = !rc && is_expected(&h->got);
  }
  if (!rc && !h->holds && id->bug.n_faults) {
    unexpected faulty;
    rc = expect_count(&faulty, other, &id->bug.spec, id->bug.fault, id->bug.n_faults, threads);
    h->holds = !rc && is_expected(&faulty);
    if (h->holds && id->exact) take_fault(id);
    if (!id->exact) h->got = faulty;
  }
  if (rc == CLI_DIFFERS) return cli_error("%s: its scales are not as many as the answer of the first launch has", on);
  if (rc) return rc;
  snprintf(h->suite, sizeof h->suite, "%s", other->names[h->got.sample]);
  if (!h->holds) {
    verdict_options_line(h->answer, sizeof h->answer, id);
    confirm_withdraw(id);
  } else
    id->grade = MX_GRADE_CONFIRMED, id->bug.confirmed = id->bug.n_faults != 0;
  return CLI_FINE;
}
