/* Compiles rounding, flushing and rotating rows for AVX-512. */
#include "kernels/input.h"
#include "kernels/vectors_avx512.h"

#define KERNEL mxi_input_avx512
#define TURN mxi_turn_avx512
#define TURNED_AMAX mxi_turned_amax_avx512
#define WIDEN mxi_widen_avx512
#include "kernels/input.inc.h"
