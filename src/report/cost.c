/* Computes what an arm's configuration costs beyond plain rounding: its techniques, bits of operands, time of products, operations a value. */
#include <math.h>
#include <string.h>

#include <jansson.h>

#include "mxgold/ablate.h"
#include "mxgold/spec.h"
#include "report/internal.h"

/* Bits a value are counted for a matrix so large that what a tensor has only once does not count. */
enum { OPERANDS = 6, LARGE = 1 << 14 };

static const char *text_of(const json_t *o, const char *key) {
  const char *value = json_string_value(json_object_get(o, key));
  return value ? value : "";
}

static int differs(const json_t *keys, const char *key, const char *plain) {
  const char *value = json_string_value(json_object_get(keys, key));
  return value && strcmp(value, plain) != 0;
}

/* Operands Q1 to Q6 of products that are quantised; the others are binary32, for which on[] is 0. */
static void read_operands(mx_spec specs[OPERANDS], int on[OPERANDS], const json_t *resolved) {
  static const char *const products[] = {"fprop", "dgrad", "wgrad"};
  const json_t *gemms = json_object_get(resolved, "gemms"), *texts = json_object_get(resolved, "specs");
  for (int q = 0; q < OPERANDS; q++) {
    const char name[3] = {'Q', (char)('1' + q), 0};
    specs[q] = (mx_spec){0};
    on[q] = 0;
    size_t i;
    const json_t *product;
    json_array_foreach(gemms, i, product) on[q] |= json_is_string(product) && !strcmp(json_string_value(product), products[q / 2]);
    on[q] = on[q] && json_is_string(json_object_get(texts, name)) && !mx_spec_parse(&specs[q], text_of(texts, name), NULL);
  }
}

/* Time of a product of two operands in units of one in BF16: 4-bit elements 1/4, 8 bits or fewer 1/2. The wider operand decides. */
static double product_time(const mx_spec *a, const mx_spec *b, const int on[2]) {
  double time = 0;
  const mx_spec *const both[] = {a, b};
  for (int i = 0; i < 2; i++) {
    const int width = on[i] && !mx_spec_is_plain(both[i]) ? mx_elem_format((int)both[i]->elem)->bits : 16;
    time = fmax(time, width <= 4 ? .25 : width <= 8 ? .5 : 1);
  }
  return time;
}

/* Operations a value by TECHNIQUES 1.11, where quantising itself is the one that is not counted. */
static double operand_overhead(const mx_spec *s) {
  const double cols = s->block_cols ? (double)s->block_cols : 32;
  return (s->elem_round == MX_ROUND_SR) + (s->tensor_norm != 0) + (s->had_size ? log2((double)s->had_size) : 0) +
         (s->scale_round == MX_SCALE_ROUND_SR ? 1 / cols : 0) + (s->select == MX_SELECT_FOURSIX ? 1 : 0);
}

/* Those of the gradient rules, for one operand of the forward pass. */
static double gradient_overhead(const json_t *train) {
  const char *slope = text_of(train, "grad.qprime");
  const double codes = 8; /* magnitudes of E2M1 */
  return (differs(train, "grad.config", "ste") ? 4 : 0) + (differs(train, "grad.tensor", "ignore") ? 3 : 0) +
         (differs(train, "grad.scale_qprime", "ste") ? 1 : 0) +
         (!strcmp(slope, "spline")               ? log2(40)
          : differs(train, "grad.qprime", "ste") ? 5 * log2(codes)
                                                 : 0);
}

void mxi_cost_count(mx_report_arm *told, const json_t *config) {
  const json_t *resolved = json_object_get(config, "resolved"), *train = json_object_get(resolved, "train");
  mx_spec specs[OPERANDS];
  int on[OPERANDS], rotated = 0, random = 0, scaled = 0;
  read_operands(specs, on, resolved);
  mx_cost c = {0};
  for (int q = 0; q < OPERANDS; q++) {
    const int quantised = on[q] && !mx_spec_is_plain(&specs[q]);
    c.bits += on[q] ? mx_bits_per_value(&specs[q], LARGE, LARGE) / OPERANDS : 32. / OPERANDS;
    if (!quantised) continue;
    rotated |= specs[q].had_size != 0;
    random |= specs[q].elem_round == MX_ROUND_SR;
    scaled |= specs[q].tensor_norm != 0;
    c.overhead += operand_overhead(&specs[q]) / OPERANDS;
    if (q < 2 && (!strcmp(text_of(train, "grad.operands"), "both") || (q == 1) == !strcmp(text_of(train, "grad.operands"), "w")))
      c.overhead += gradient_overhead(train) / OPERANDS;
  }
  for (int g = 0; g < 3; g++) c.product_time += product_time(&specs[2 * g], &specs[2 * g + 1], &on[2 * g]) / 3;
  const int spam = !strcmp(text_of(json_object_get(config, "optimizer"), "kind"), "stablespam"),
            scaling = differs(json_object_get(config, "loss"), "scaling", "off");
  c.overhead += (double)(spam + scaling) / OPERANDS;
  told->cost = c;
  const int uses[MX_TECHNIQUES] = {[MX_TECHNIQUE_GRAD_CONFIG] = differs(train, "grad.config", "ste"),
                                   [MX_TECHNIQUE_GRAD_QPRIME] = differs(train, "grad.qprime", "ste"),
                                   [MX_TECHNIQUE_HADAMARD] = rotated,
                                   [MX_TECHNIQUE_GRAD_SCALE_QPRIME] = differs(train, "grad.scale_qprime", "ste"),
                                   [MX_TECHNIQUE_SR] = random,
                                   [MX_TECHNIQUE_TENSOR_SCALE] = scaled,
                                   [MX_TECHNIQUE_GRAD_TENSOR] = differs(train, "grad.tensor", "ignore"),
                                   [MX_TECHNIQUE_STABLESPAM] = spam,
                                   [MX_TECHNIQUE_LOSS_SCALING] = scaling};
  told->techniques = 0;
  for (int k = 0; k < MX_TECHNIQUES; k++) told->techniques |= (unsigned)uses[k] << k;
}
