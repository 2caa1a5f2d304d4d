/* Declares what inspect says of a quantised matrix beyond its tensors. */
#ifndef CLI_INSPECT_QUANTIZED_H
#define CLI_INSPECT_QUANTIZED_H

#include "mxgold/quantized.h"
#include "cli/base/out.h"
#include "cli/base/tensor_io.h"

/** Histogram tables "codes" and "scales": a row a code of 4 bits, else a row a binade of magnitudes. */
void inspect_histograms(out *o, const mx_quantized *q);

/** Signal-to-noise of the dequantised values against the file they were made from, as pairs. form as --dtype and --shape. Says what is wrong. */
int inspect_error(out *o, const mx_quantized *q, const char *input_path, const input_form *form);

#endif
