/* Compiles the three stages of quantising for AVX2. */
#include "kernels/stages.h"
#include "kernels/vectors_avx2.h"

#define NAME "avx2"
#define TABLE mxi_stages_avx2

#include "kernels/stages.inc.h"
