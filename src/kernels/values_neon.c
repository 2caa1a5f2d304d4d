/* Values from codes with NEON. */
#include "kernels/values.h"
#include "kernels/vectors_neon.h"

/* A byte a lane: loads, the table is too large for a permutation. */
static inline void look_up(vf v[4], const mx_values *t, const uint8_t *codes) {
  float x[4 * W];
  for (int i = 0; i < 4 * W; i++) x[i] = t->table[codes[i]];
  for (int k = 0; k < 4; k++) v[k] = vf_load(x + k * W);
}

#define VALUES4 NULL
#define TABLE mx_values_neon
#include "kernels/values.inc.h"
