/* Compiles rounding, flushing and rotating rows for AVX2. */
#include "kernels/input.h"
#include "kernels/vectors_avx2.h"

#define KERNEL mxi_input_avx2
#define TURN mxi_turn_avx2
#define TURNED_AMAX mxi_turned_amax_avx2
#define WIDEN mxi_widen_avx2
#include "kernels/input.inc.h"
