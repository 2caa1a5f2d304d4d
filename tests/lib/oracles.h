/* Gives the library and the reference model the same signatures. */
#ifndef TESTS_ORACLES_H
#define TESTS_ORACLES_H

#include "../../ref/ref.h"
#include "mxgold/mxgold.h"
#include "suites.h"

static const suite_oracle oracle_ref = {ref_quantize, ref_dequantize};
static const suite_oracle oracle_lib = {mx_quantize, mx_dequantize};

#endif
