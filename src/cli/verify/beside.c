/* Says an answer in terms of the spec that was expected. */
#include "cli/verify/beside.h"

#include <stdio.h>
#include <string.h>

#include "cli/verify/expect.h"

enum { TEXT = 4096 };

/* The key=value of a spec that begin at *at; moves on. 0: there is none. */
static int next_pair(char *out, size_t size, const char **at) {
  *at += strspn(*at, " ");
  const size_t n = strcspn(*at, " ");
  if (!n) return 0;
  snprintf(out, size, "%.*s", (int)n, *at);
  *at += n;
  return 1;
}

const char *preset_of_spec(const mx_spec *spec) {
  for (size_t i = 0; i < mx_preset_count(); i++) {
    mx_spec p;
    if (!mx_preset_at(i)->alias_of && !mx_preset_find(&p, mx_preset_at(i)->name, NULL) && mx_spec_equal(&p, spec)) return mx_preset_at(i)->name;
  }
  return NULL;
}

static int spec_beside(mx_identity *id, const mx_spec *base, const char *name, int (*gives)(void *, const mx_spec *), void *self) {
  mx_spec best = id->spec;
  char theirs[TEXT], mine[TEXT], a[256], b[256];
  if (!id->exact || base->elem != best.elem || base->scale != best.scale || base->block_rows != best.block_rows ||
      base->block_cols != best.block_cols)
    return CLI_FINE;
  mx_spec_print(theirs, sizeof theirs, base, 1);
  int less = 1, changed = 0;
  while (less) { /* a key may be free only once another one is */
    const char *r = theirs, *s = mine;
    mx_spec_print(mine, sizeof mine, &best, 1);
    for (less = 0; next_pair(a, sizeof a, &r) && next_pair(b, sizeof b, &s);) {
      char *equals = strchr(a, '=');
      mx_spec t = best;
      if (!strcmp(a, b) || !equals) continue;
      *equals = 0;
      if (mx_spec_set(&t, a, equals + 1, NULL) || mx_spec_check(&t, NULL)) continue;
      const int same = gives(self, &t);
      if (same < 0) return CLI_TROUBLE;
      if (same) best = t, less = changed = 1;
    }
  }
  int keys = 0;
  const char *p = theirs, *q = mine;
  mx_spec_print(mine, sizeof mine, &best, 1);
  while (next_pair(a, sizeof a, &p) && next_pair(b, sizeof b, &q)) keys += strcmp(a, b) != 0;
  if (id->preset && keys > 1) return CLI_FINE; /* a name says more than several keys */
  id->spec = best;
  if (changed || !id->preset) {
    id->preset = preset_of_spec(&best);
    id->nearest = name;
  }
  return CLI_FINE;
}

typedef struct of_samples {
  const samples *s;
  int threads;
  uint64_t nan_codes; /* of the last spec that gives the bytes */
} of_samples;

static int gives_samples(void *self, const mx_spec *spec) {
  of_samples *o = self;
  unexpected u;
  const int rc = expect_count(&u, o->s, spec, NULL, 0, o->threads);
  if (rc == CLI_TROUBLE) return -1;
  if (rc || !is_expected(&u)) return 0;
  o->nan_codes = u.nan_codes;
  return 1;
}

/* A fault over another preset that gives these bytes over the expected one as well is said over that. */
static int fault_beside(mx_identity *id, const samples *s, const mx_spec *base, const char *name, int threads) {
  mx_bug *b = &id->bug;
  unexpected u, plain;
  if (!b->n_faults || !name || (b->preset && !strcmp(b->preset, name))) return CLI_FINE;
  int rc = expect_count(&u, s, base, b->fault, b->n_faults, threads);
  if (!rc && is_expected(&u)) rc = expect_count(&plain, s, base, NULL, 0, threads);
  if (rc || !is_expected(&u)) return rc == CLI_TROUBLE ? rc : CLI_FINE;
  b->preset = id->nearest = name;
  b->spec = id->spec = *base;
  id->codes_differ = b->preset_codes = plain.codes;
  id->scales_differ = b->preset_scales = plain.scales;
  id->tensor_scales_differ = b->preset_tensor = plain.tensor_scales;
  return CLI_FINE;
}

int answer_beside(mx_identity *id, const samples *s, const mx_spec *base, const char *name, int threads) {
  if (!id->exact) return fault_beside(id, s, base, name, threads);
  of_samples o = {s, threads, id->nan_codes_differ};
  const int rc = spec_beside(id, base, name, gives_samples, &o);
  id->nan_codes_differ = o.nan_codes;
  return rc;
}

int answer_with_given_scale(mx_identity *id, const samples *s, int threads) {
  if (!id->exact || id->spec.tensor_norm) return CLI_FINE;
  for (size_t i = 0; i < s->n; i++)
    if (!s->at[i].codes || !s->at[i].has_tensor_scale || s->at[i].tensor_scale != 1) return CLI_FINE;
  for (size_t i = 0; i < mx_preset_count(); i++) {
    const mx_preset *row = mx_preset_at(i);
    mx_spec t;
    unexpected u;
    if (row->alias_of || mx_preset_find(&t, row->name, NULL) || !t.tensor_norm) continue;
    if (t.elem != id->spec.elem || t.scale != id->spec.scale || t.block_rows != id->spec.block_rows || t.block_cols != id->spec.block_cols)
      continue;
    if (mx_spec_set(&t, "tensor.given", "1", NULL) || mx_spec_check(&t, NULL)) continue;
    t.nibble = id->spec.nibble;
    const int rc = expect_count(&u, s, &t, NULL, 0, threads);
    if (rc == CLI_TROUBLE) return rc;
    if (rc || !is_expected(&u)) continue;
    id->spec = t;
    id->preset = NULL;
    id->nearest = row->name;
    return CLI_FINE;
  }
  return CLI_FINE;
}
