/** The slow twin of mxgold/mma.h: one output at a time, in exact arithmetic, laid out in the order of docs/SPEC.md section 4. */
#ifndef REF_MMA_H
#define REF_MMA_H

#include "mxgold/mma.h"

/** As mx_mma(), on one thread. The model is taken as checked: mx_mma_model_check() has said MX_OK. */
mx_status ref_mma(void *d, const mx_mma_model *model, const mx_mma_args *args);

#endif
