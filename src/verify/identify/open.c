/* Lists which keys an answer with faults leaves open: two faults may hide each other, and data without a tie hide how ties are rounded. */
#include "verify/identify/open.h"

#include <stdlib.h>
#include <string.h>

#include "verify/bugs/bugs.h"
#include "verify/identify/search/values.h"
#include "verify/trial/keys.h"

uint64_t mxi_keys_open_beside(inquiry *q, const mx_bug *b, deadline until) {
  mx_spec *other = noted(malloc(MX_MAX_KEYS * MAX_VALUES * sizeof *other), q->o.lack);
  size_t *key = noted(malloc(MX_MAX_KEYS * MAX_VALUES * sizeof *key), q->o.lack), n = 0;
  key_values *v = noted(malloc(sizeof *v), q->o.lack);
  for (int pass = 0; pass < 2; pass++) /* the rounding of elements first: most inputs have no tie */
    for (size_t i = 0; other && key && v && mx_key_name(i) && i < MX_MAX_KEYS; i++) {
      if (!strcmp(mx_key_name(i), "elem.round") != !pass) continue;
      mxi_values_of(v, mx_key_name(i), &q->o);
      for (size_t k = 0; k < v->n; k++) {
        other[n] = b->spec;
        key[n] = i;
        if (!mx_spec_set(&other[n], mx_key_name(i), v->text[k], NULL) && !mxi_keys_same(&other[n], &b->spec) && !mx_spec_check(&other[n], NULL))
          n++;
      }
    }
  const uint64_t open = n ? mxi_open_keys_of_bug(b, other, key, n, q->o.samples, q->o.n_samples, until) : 0;
  free(other);
  free(key);
  free(v);
  return open;
}
