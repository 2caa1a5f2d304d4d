/** Declares groups of hip-diff's rows, each run by a process of its own: a fault of the device, which ends the process (a memory fault, a GPU that
 *  hangs), costs the row that it came in and what was left of its part. The parent is told of each step through a pipe, and has what was found on
 *  the disk after each row.
 *
 *  Oracle: hip_backend/tests/diff_fault.sh, with a host runtime that is made to abort, to fault, and to hang. */
#ifndef MXH_DIFF_WATCH_H
#define MXH_DIFF_WATCH_H

#include <functional>

#include "hip_backend/compare/report.h"

/** A device that tells the parent which kernel it launches, before it does. fault: "KERNEL:abort", "KERNEL:segv" or "KERNEL:hang", played when that
 *  kernel is launched; NULL: none. The caller's to close. */
mxh_device *mxh_watched(mxh_device *dev, int pipe, const char *fault);

struct mxh_watch {
  mxh_report *report;          /* the parent's: rows, lines that were found, device; whole when a child ends */
  int patience;                /* seconds without a word after which the child is taken to hang */
  std::function<bool()> write; /* the report as it is, to the disk */
};
/** A device of these facts that takes every call and does nothing: for a run that counts its cases (mxh_run's counting). The caller's to close. */
mxh_device *mxh_idle(const mxh_device_facts &facts);
/** Seconds in calls of that device (copies, launches, waiting), told to the parent as well. */
double mxh_watched_seconds(mxh_device *watched, int pipe);
/** Runs body in a child process. body gets the run (the parent's rows in it, hooked to the pipe), and the pipe for mxh_watched(); it says
 *  mxh_watch_opened(), mxh_watch_writes() before it writes the report itself and, once that is written, mxh_watch_whole(). What it returns is the child's exit status.
 *  Returns that status, or 2 after a fault: the row is marked as died, with the signal, kernel and case, and another process goes on with the group's
 *  next part (mxh_part()). Rows of the part that died which had cases left have them as `lost`; how many these are, a third process says, for which body
 *  is to open mxh_idle() where run->counting is set, and write no report. */
int mxh_watch_child(const mxh_watch &watch, const char *group, const std::function<int(mxh_run *, int pipe)> &body);
void mxh_watch_opened(int pipe, mxh_device *dev);
/** Returns when the parent has heard all that was told before, and its last report is on the disk: one process at a time writes there. */
void mxh_watch_writes(int pipe);
void mxh_watch_whole(int pipe);
void mxh_watch_doing(int pipe, const std::string &operation, const std::string &what);

#endif
