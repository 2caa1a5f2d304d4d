/* Declares the ranks of an MPI job, in builds with MPI=1; elsewhere there is one rank. */
#ifndef CLI_BASE_RANKS_H
#define CLI_BASE_RANKS_H

/** Start MPI. Returns how many ranks there are and sets *rank; 1 and 0 without MPI. */
int ranks_begin(int *rank);
void ranks_end(void);
/** Returns when every rank has called it. A rank that waits leaves its processor to the others. */
void ranks_meet(void);
/** End the whole job with this exit status: MPI has no other way to say to ranks that wait that one cannot go on. Does nothing in a job of one rank. */
void ranks_give_up(int status);

#endif
