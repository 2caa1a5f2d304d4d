/* Derives the seeds of random words and of signs. */
#include <string.h>

#include "mxgold/random.h"
#include "train/linear/internal.h"

enum { SIGN_SLOT = 8 };

uint64_t mx_linear_seed(uint64_t seed, uint64_t step, uint32_t layer, unsigned slot) {
  const uint64_t i = step << 24 | (uint64_t)(layer & 0xFFFFF) << 4 | (slot & 15);
  return mx_random(seed, MX_STREAM_TRAIN, 2 * i) | (uint64_t)mx_random(seed, MX_STREAM_TRAIN, 2 * i + 1) << 32;
}

/* The product that decides the signs of an operand. */
static int signs_of_product(const mx_linear_recipe *r, int q) {
  const int p = q / 2;
  return r->sign_draw == MX_DRAW_BACKWARD && p == MX_WGRAD ? MX_DGRAD : p;
}

/* The signs of had.sign=fresh under a seed, as a fixed vector, because the operand's own seed is for its random words. */
static void signs_of(uint8_t signs[16], uint64_t seed) {
  for (unsigned i = 0; i < 16; i++) signs[i] = (uint8_t)(mx_random(seed, MX_STREAM_SIGN, i / 4) >> (i % 4 * 8));
}

void mxi_linear_draw(mxi_layer *y) {
  const mx_linear *l = y->l;
  const uint64_t step = y->r->random == MX_RANDOM_FROZEN ? 0 : l->step;
  for (int q = 0; q < MX_OPERANDS; q++) {
    mx_spec *s = &y->q[q];
    *s = y->r->q[q];
    s->seed = y->r->random == MX_RANDOM_SHARED ? mx_linear_seed(l->seed, step, 0, 0) : mx_linear_seed(l->seed, step, l->layer, (unsigned)q);
    if (!s->had_size || s->had_sign != MX_HAD_SIGN_FRESH) continue;
    s->had_sign = MX_HAD_SIGN_FIXED;
    const unsigned slot = SIGN_SLOT + (unsigned)signs_of_product(y->r, q);
    signs_of(s->had_signs, mx_linear_seed(l->seed, y->r->sign_draw == MX_DRAW_RUN ? 0 : l->step, l->layer, slot));
  }
}
