/* Rounding, flushing and rotating rows with AVX-512. */
#include "kernels/input.h"
#include "kernels/vectors_avx512.h"

#define KERNEL mx_input_avx512
#define TURN mx_turn_avx512
#define WIDEN mx_widen_avx512
#include "kernels/input.inc.h"
