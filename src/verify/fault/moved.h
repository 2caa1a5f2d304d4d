/* Declares samples as they were before a fault moved something in them. */
#ifndef MX_VERIFY_FAULT_MOVED_H
#define MX_VERIFY_FAULT_MOVED_H

#include "core/shortage.h"
#include "mxgold/fault.h"
#include "mxgold/identify.h"

/* A sample as it was before a fault moved its codes, its scales or the axis of its blocks. */
typedef struct moved_back {
  mx_sample s;
  float *x;
  uint8_t *codes, *scales;
} moved_back;

/** Undoes fault f in s, whose blocks are `width` wide. 0: the shape does not allow the fault, or memory ran out. Close it also then. */
int mxi_move_back(moved_back *out, const mx_sample *s, const mx_fault *f, size_t width, shortage *lack);
void mxi_moved_back_close(moved_back *m);

#endif
