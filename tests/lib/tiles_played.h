/* Declares the AMX kernel's own source over tiles in plain C, for hosts that have none. */
#ifndef TESTS_TILES_PLAYED_H
#define TESTS_TILES_PLAYED_H

#include "gemm/codes/codes.h"

/** As mxi_gemm_codes_amx(). Aborts on what a processor would trap or the manual leaves undefined: a tile without a shape, shapes that do not match. */
mxg_codes_column tiles_played_column;
/** Count the tile products of this process so far, and its threads whose tiles are configured now. */
size_t tiles_played_products(void);
int tiles_played_configured(void);

#endif
