/* Single values to codes with AVX-512. */
#include "kernels/codec_kernels.h"
#include "kernels/vectors_avx512.h"

#define KERNEL mx_encode_avx512
#include "kernels/codec.inc.h"
