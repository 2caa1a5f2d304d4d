/** Declares how groups of hip-diff's rows run in processes of their own, so that a fault of the device that ends the process (a memory fault, a
 *  GPU that hangs) costs only the row in which it happens and the rest of its part. The child reports each step through a pipe, and the parent
 *  writes what was found to the disk after each row.
 *
 *  Oracle: hip_backend/tests/diff_fault.sh, with a host runtime that is made to abort, to fault, and to hang. */
#ifndef MXH_DIFF_WATCH_H
#define MXH_DIFF_WATCH_H

#include <functional>

#include "hip_backend/compare/report.h"

/** A device that tells the parent which kernel it is about to launch. fault: "KERNEL:abort", "KERNEL:segv" or "KERNEL:hang", simulated when
 *  that kernel is launched; NULL: none. The caller closes it. */
mxh_device *mxh_watched(mxh_device *dev, int pipe, const char *fault);

struct mxh_watch {
  mxh_report *report;          /* the parent's report: rows, what was found, the device; complete when a child ends */
  int patience;                /* seconds without a message after which the child counts as hanging */
  std::function<bool()> write; /* writes the report as it stands to the disk */
};
/** A device of these facts that accepts every call and does nothing, for a run that counts its cases (mxh_run's counting). The caller closes
 *  it. */
mxh_device *mxh_idle(const mxh_device_facts &facts);
/** Seconds spent in calls of that device (copies, launches, waiting); the parent is told too. */
double mxh_watched_seconds(mxh_device *watched, int pipe);
/** Runs body in a child process. body gets the run, with the parent's rows and connected to the pipe, and the pipe itself for mxh_watched().
 *  It calls mxh_watch_opened(), mxh_watch_writes() before it writes the report itself, and mxh_watch_whole() once that is written. Its
 *  result is the exit status of the child. mxh_watch_child() returns that status, or 2 after a fault: the row is then marked as died, with
 *  the signal, the kernel and the case, and another process continues with the group's next part (mxh_part()). The cases that rows of the
 *  died part still had become `lost`. A third process counts them: if run->counting is set, body must open mxh_idle() and write no report. */
int mxh_watch_child(const mxh_watch &watch, const char *group, const std::function<int(mxh_run *, int pipe)> &body);
void mxh_watch_opened(int pipe, mxh_device *dev);
/** Returns when the parent has read all messages sent before and has written its last report, so that only one process at a time writes
 *  there. */
void mxh_watch_writes(int pipe);
void mxh_watch_whole(int pipe);
void mxh_watch_doing(int pipe, const std::string &operation, const std::string &what);

#endif
