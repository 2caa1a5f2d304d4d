/* Declares Q-EMA, which rounds Q2's elements by the weight's moving average. */
#ifndef REF_EMA_H
#define REF_EMA_H

#include "mxgold/quantize.h"

/* Make the codes of t, which holds w [t->rows][t->cols] quantised under s, those that the moving average ema asks for; *moved is added the number
 * of codes that are others now. */
mx_status ref_ema(mx_tensor *t, uint64_t *moved, const mx_spec *s, const float *w, const float *ema);

#endif
