/* Declares the search for a fault's region: the plainest one that holds the cells that need the fault and none that it would make wrong. */
#ifndef MX_VERIFY_FAULT_SEARCH_WHERE_H
#define MX_VERIFY_FAULT_SEARCH_WHERE_H

#include "verify/fault/search/view.h"

/* What a fault does to a cell: it leaves it alone, mends it, or spoils it. */
typedef enum cell_state { CELL_SAME, CELL_NEEDS, CELL_SPOILED } cell_state;

/** Finds the region from the state of each block [down][across], or of each element [rows][cols]; where there is none, two of different kinds in both
 *  of which the fault acts (else out[1] is everywhere). It is fitted on half of the blocks and held to the other half. cost gets its bits, held the
 *  number of cells of the other half that need the fault. Returns 0 if no region of the grammar fits. */
int mxi_where(mx_region out[2], double *cost, uint64_t *held, const view *v, const uint8_t *state, int elements);

#endif
