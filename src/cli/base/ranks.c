/* Starts and ends MPI, and lets ranks wait for each other. */
#include "ranks.h"

#include <time.h>

#ifdef MXGOLD_MPI
#include <mpi.h>

int ranks_begin(int *rank) {
  int ranks;
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  return ranks;
}

void ranks_end(void) { MPI_Finalize(); }

/* MPI_Barrier() would keep a processor busy that another rank could have. */
void ranks_meet(void) {
  MPI_Request all;
  MPI_Ibarrier(MPI_COMM_WORLD, &all);
  for (int there = 0; !there;) {
    MPI_Test(&all, &there, MPI_STATUS_IGNORE);
    if (!there) nanosleep(&(struct timespec){0, 2000000}, NULL);
  }
}

void ranks_give_up(int status) {
  int ranks;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks > 1) MPI_Abort(MPI_COMM_WORLD, status);
}

#else

int ranks_begin(int *rank) {
  *rank = 0;
  return 1;
}

void ranks_end(void) {}

void ranks_meet(void) {}

void ranks_give_up(int status) { (void)status; }

#endif
