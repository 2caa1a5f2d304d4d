#include "mixtures.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mxgold/quantize.h"

static uint32_t below(uint64_t *state, uint32_t n) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)((*state >> 33) * n >> 31);
}

int mixtures_draw(mx_spec *spec, uint64_t *state) {
  static const char *blocks[] = {"1x32", "1x16", "1x8", "1x64", "16x16", "4x8", "16x1", "row", "col", "tensor"};
  memset(spec, 0, sizeof *spec);
  const char *key;
  for (size_t k = 0; (key = mx_key_name(k)); k++) {
    if (below(state, 4)) continue;
    char value[64] = "";
    size_t n = 0;
    int number = 0;
    while (mx_key_choice(k, n, NULL, NULL)) n++;
    if (n) {
      const char *name = mx_key_choice(k, below(state, (uint32_t)n), NULL, &number);
      if (!number)
        snprintf(value, sizeof value, "%s", name);
      else
        snprintf(value, sizeof value, "%s%s%u", name, *name ? "=" : "",
                 *name ? below(state, strncmp(key, "elem", 4) ? 128 : 16) : 3 + below(state, 6));
    } else if (!strcmp(key, "block"))
      snprintf(value, sizeof value, "%s", blocks[below(state, 10)]);
    else if (!strcmp(key, "had.size"))
      snprintf(value, sizeof value, "%u", 16u << below(state, 4));
    else if (!strcmp(key, "had.signs"))
      for (int i = 0; i < 48; i++) value[i] = (char)('0' + below(state, 2));
    else if (!strcmp(key, "sr.bits") || !strcmp(key, "scale.even_bits"))
      snprintf(value, sizeof value, "%u", 1 + below(state, 20));
    else if (!strcmp(key, "elem.prescale"))
      snprintf(value, sizeof value, "0.75");
    else if (!strcmp(key, "scale.min"))
      snprintf(value, sizeof value, "%g", 0.001953125 * (1 << below(state, 8)));
    else if (!strcmp(key, "scale.min_byte"))
      snprintf(value, sizeof value, "%u", below(state, 40));
    else if (!strcmp(key, "scale.max_byte"))
      snprintf(value, sizeof value, "%u", 90 + below(state, 100));
    else if (!strcmp(key, "tensor.target"))
      snprintf(value, sizeof value, "%u", 256u << below(state, 5));
    else if (!strcmp(key, "seed"))
      snprintf(value, sizeof value, "%u", below(state, 1000));
    else if (!strcmp(key, "tensor.given"))
      snprintf(value, sizeof value, "%g", 0.01 * (double)(1 + below(state, 3000)));
    if (mx_spec_set(spec, key, value, NULL)) {
      fprintf(stderr, "mixtures: %s=%s is no key\n", key, value);
      abort();
    }
  }
  if (spec->sr_source == MX_SR_SOURCE_GIVEN) spec->sr_source = MX_SR_SOURCE_PHILOX;
  /* An odd pick rarely goes with a chain; give chains what they need half of the time. */
  if (spec->chain != MX_CHAIN_EXACT) {
    spec->scale_rule = MX_SCALE_RULE_VALUE;
    spec->scale_form = MX_SCALE_FORM_DECODE;
    spec->elem_arith = MX_ELEM_ARITH_EXACT;
    spec->scale_arith = MX_SCALE_ARITH_EXACT;
    spec->elem_prescale = 0;
    spec->input_dtype = MX_INPUT_DTYPE_FLOAT32;
    spec->tensor_store = MX_TENSOR_STORE_CHAIN;
    spec->tensor_norm = *mx_chain_row(spec->chain)->tensor ? MX_TENSOR_NORM_NV : MX_TENSOR_NORM_NONE;
  }
  if (spec->tensor_norm == MX_TENSOR_NORM_NONE) spec->tensor_given = 0, spec->tensor_given_value = 0;
  if (spec->elem == MX_ELEM_NONE) return 0; /* has a test of its own */
  return mx_spec_check(spec, NULL) == MX_OK;
}
