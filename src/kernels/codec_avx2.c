/* Compiles the encoder of single values for AVX2. */
#include "kernels/codec_kernels.h"
#include "kernels/vectors_avx2.h"

#define KERNEL mxi_encode_avx2
#include "kernels/codec.inc.h"
