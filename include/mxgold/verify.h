/** Includes the four headers of verification: suites of inputs, faults, which spec a kernel follows, and what differs. */
#ifndef MXGOLD_VERIFY_H
#define MXGOLD_VERIFY_H

#include "suites.h"
#include "fault.h"
#include "identify.h"
#include "diff.h"

#endif
