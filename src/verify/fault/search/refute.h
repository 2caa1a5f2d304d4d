/* Declares how a fault of an early stage is refuted in a few rows of a sample, before more is run with it. */
#ifndef MX_VERIFY_FAULT_SEARCH_REFUTE_H
#define MX_VERIFY_FAULT_SEARCH_REFUTE_H

#include "verify/fault/search/view.h"

typedef struct few_rows {
  size_t row, col, rows, cols; /* of the sample */
  uint32_t *seen, *scales;     /* [down][across] */
  uint8_t *wrong;              /* blocks, without a fault */
  uint8_t *codes, *by_plain;   /* [rows][cols] */
  int refutes;                 /* 0: the sample has hardly more, or its maximum is not known */
} few_rows;

typedef struct refuter {
  const view *plain;
  const mx_spec *spec;
  int other_tensor;
  int has_maximum;      /* as mxi_fit_maximum(), which finds: */
  float maximum;        /* of the tensor, by the tensor scale that is stored */
  few_rows rows, tiles; /* whole rows; and a tile of them that faults rotate down the columns */
  fault_run all;        /* the tensor's numbers of all rows, once they are asked for */
  int has_all;
} refuter;

/** Takes rows around the largest magnitude of the sample that is viewed without faults. other_tensor: the stored tensor scale is not that of the spec.
 *  Memory that runs out is noted; the caller closes it in any case. */
void mxi_refuter_open(refuter *by, const view *plain, const mx_spec *spec, int other_tensor);
void mxi_refuter_close(refuter *by);
/** Is the fault, of a stage up to the tensor scale, none that gives the stored tensor scale and leaves all scales right, or all elements under their scales,
 *  or no block wrong that is wrong without it? A few blocks are let pass, since the last bits of the tensor's maximum are not known. */
int mxi_refuted(refuter *by, const mx_fault *f);

#endif
