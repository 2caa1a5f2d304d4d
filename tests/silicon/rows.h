/** Declares rows.def for host programs. */
#ifndef SIL_ROWS_H
#define SIL_ROWS_H

#include "silicon.h"

static const sil_row sil_rows[] = {
#define SIL_MMA(NAME, M, N, K, A, B, C, NA, NB, NC, PTX) {#NAME, M, N, K, #A, #B, #C},
#define SIL_F64(NAME, M, N, K, NA, NB, NC, PTX) {#NAME, M, N, K, "f64", "f64", "f64"},
#define SIL_WGMMA(NAME, K, A, B, C, NC, PTX, SIGNS, TRANS) {#NAME, 64, 8, K, #A, #B, #C},
#include "rows.def"
#undef SIL_MMA
#undef SIL_F64
#undef SIL_WGMMA
};
enum { sil_row_count = sizeof sil_rows / sizeof *sil_rows };

#endif
