/* Compiles the three stages of quantising for NEON. */
#include "kernels/stages.h"
#include "kernels/vectors_neon.h"

#define NAME "neon"
#define TABLE mxi_stages_neon

#include "kernels/stages.inc.h"
