/** Verification: suites of inputs, which spec a kernel follows, what differs. The three headers of it, under one name. */
#ifndef MXGOLD_VERIFY_H
#define MXGOLD_VERIFY_H

#include "suites.h"
#include "identify.h"
#include "diff.h"

#endif
