/* Rounding, flushing and rotating rows with NEON. */
#include "kernels/input.h"
#include "kernels/vectors_neon.h"

#define KERNEL mx_input_neon
#define TURN mx_turn_neon
#define WIDEN mx_widen_neon
#include "kernels/input.inc.h"
