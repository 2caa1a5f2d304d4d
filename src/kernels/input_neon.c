/* Compiles rounding, flushing and rotating rows for NEON. */
#include "kernels/input.h"
#include "kernels/vectors_neon.h"

#define KERNEL mxi_input_neon
#define TURN mxi_turn_neon
#define TURNED_AMAX mxi_turned_amax_neon
#define WIDEN mxi_widen_neon
#include "kernels/input.inc.h"
