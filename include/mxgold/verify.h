/** Verification: suites of inputs, which spec a kernel follows, what differs. This includes all three headers. */
#ifndef MXGOLD_VERIFY_H
#define MXGOLD_VERIFY_H

#include "suites.h"
#include "identify.h"
#include "diff.h"

#endif
