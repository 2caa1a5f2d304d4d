/** Verification: suites of inputs, which spec a kernel follows, what differs. This includes all four headers. */
#ifndef MXGOLD_VERIFY_H
#define MXGOLD_VERIFY_H

#include "suites.h"
#include "fault.h"
#include "identify.h"
#include "diff.h"

#endif
