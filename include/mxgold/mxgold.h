/** Includes all of mxgold, in the order of the data path, except plugin.h, which a kernel under test includes on its own. */
#ifndef MXGOLD_H
#define MXGOLD_H

#include "version.h"
#include "status.h"

/* numbers and specs */
#include "dtype.h"
#include "format.h"
#include "nearest.h"
#include "random.h"
#include "rcp.h"
#include "spec.h"
#include "isa.h"

/* one number, a matrix */
#include "codec.h"
#include "encoder.h"
#include "layout.h"
#include "quantize.h"
#include "workspace.h"

/* products */
#include "mma.h"
#include "gemm.h"
#include "dense.h"
#include "math.h"

/* files */
#include "file.h"
#include "quantized.h"
#include "vector.h"

/* is a kernel right? */
#include "verify.h"
#include "judge.h"
#include "probe.h"

/* what a format does to a tensor, and to training */
#include "ablate.h"
#include "linear.h"
#include "train.h"
#include "sweep.h"
#include "report.h"

#endif
