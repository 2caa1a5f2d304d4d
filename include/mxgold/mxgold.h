/** mxgold: everything, in the order of the data path. */
#ifndef MXGOLD_H
#define MXGOLD_H

#include "status.h"
#include "codec.h"
#include "dtype.h"
#include "format.h"
#include "spec.h"
#include "encoder.h"
#include "random.h"
#include "quantize.h"
#include "gemm.h"
#include "dense.h"
#include "linear.h"
#include "math.h"
#include "vector.h"
#include "verify.h"
#include "judge.h"
#include "ablate.h"
#include "isa.h"
#include "layout.h"
#include "mma.h"
#include "file.h"
#include "quantized.h"
#include "version.h"

#endif
