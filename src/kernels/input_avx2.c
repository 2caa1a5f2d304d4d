/* Rounding, flushing and rotating rows with AVX2. */
#include "kernels/input.h"
#include "kernels/vectors_avx2.h"

#define KERNEL mx_input_avx2
#define TURN mx_turn_avx2
#define WIDEN mx_widen_avx2
#include "kernels/input.inc.h"
