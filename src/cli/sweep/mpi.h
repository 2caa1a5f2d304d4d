/* Declares a sweep by the ranks of an MPI job (cli/base/ranks.h), in builds with MPI=1. */
#ifndef CLI_SWEEP_MPI_H
#define CLI_SWEEP_MPI_H

#include "mxgold/sweep.h"

/** Rank 0 hands the runs out, one at a time, the others do them, each on one thread; then rank 0 collects. *result is set on rank 0. A rank that
 *  fails ends the job, as a rank that dies does; the same command goes on then. */
mx_status mpi_sweep(mx_sweep_result *result, const mx_sweep *sweep, const mx_sweep_options *options, int rank, int ranks, mx_error *err);

#endif
