/* Compiles the encoder of single values for NEON. */
#include "kernels/codec_kernels.h"
#include "kernels/vectors_neon.h"

#define KERNEL mxi_encode_neon
#include "kernels/codec.inc.h"
