/* Runs groups of rows in processes of their own, and passes messages to their parent: each message is a line whose fields are separated by
 * tabs. */
#include "hip_backend/compare/watch.h"

#include <errno.h>
#include <map>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "hip_backend/run/device_watched.h"

namespace {
typedef std::vector<std::string> fields;

void tell(int pipe, const fields &message) {
  std::string line;
  for (const std::string &f : message) {
    if (!line.empty()) line += '\t';
    for (const char c : f) line += c == '\t' || c == '\n' ? ' ' : c;
  }
  line += '\n';
  for (size_t done = 0; done < line.size();) {
    const ssize_t n = write(pipe, line.data() + done, line.size() - done);
    if (n < 0 && errno != EINTR) _exit(2); /* the parent is gone */
    done += n > 0 ? (size_t)n : 0;
  }
}
fields parts_of(const std::string &line) {
  fields out(1);
  for (const char c : line)
    if (c == '\t')
      out.push_back("");
    else
      out.back() += c;
  return out;
}
uint64_t number(const std::string &s) { return strtoull(s.c_str(), nullptr, 10); }
void tell_row(int pipe, const mxh_row &r) {
  tell(pipe, {"row", r.operation, r.group, std::to_string(r.cases), std::to_string(r.values), std::to_string(r.differences),
              std::to_string(r.not_run), r.skipped ? "1" : "0", r.open ? "1" : "0", r.first, r.note});
}

struct watched : mxh_passing_device {
  int pipe;
  double seconds = 0;  /* spent in calls that wait for the device */
  std::string at, how; /* the kernel at which a fault is simulated, and its kind */
  watched(mxh_device *d, int to, const char *fault) : mxh_passing_device(d), pipe(to) {
    const char *colon = fault ? strrchr(fault, ':') : nullptr;
    if (colon) at.assign(fault, colon), how = colon + 1;
  }
  int launch(const char *kernel, unsigned grid, unsigned block, const void *args, size_t n) override {
    tell(pipe, {"launch", kernel});
    if (at == kernel) {
      if (how == "abort") abort();
      if (how == "segv") raise(SIGSEGV);
      while (how == "hang") pause();
    }
    const clocked c(this);
    return mxh_passing_device::launch(kernel, grid, block, args, n);
  }
  int sync() override {
    const clocked c(this);
    return mxh_passing_device::sync();
  }
  int put(void *to, const void *from, size_t n) override {
    const clocked c(this);
    return mxh_passing_device::put(to, from, n);
  }
  int get(void *to, const void *from, size_t n) override {
    const clocked c(this);
    return mxh_passing_device::get(to, from, n);
  }
  static double now() {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
  }
  struct clocked {
    watched *of;
    double from;
    explicit clocked(watched *w) : of(w), from(now()) {}
    ~clocked() { of->seconds += now() - from; }
  };
};

struct idle : mxh_device {
  bool has(const char *) override { return true; }
  void *alloc(size_t n) override { return malloc(n); }
  void release(void *p) override { free(p); }
  int put(void *, const void *, size_t) override { return 0; }
  int get(void *to, const void *, size_t n) override {
    memset(to, 0, n);
    return 0;
  }
  int fill(void *, int, size_t) override { return 0; }
  int launch(const char *, unsigned, unsigned, const void *, size_t) override { return 0; }
  int sync() override { return 0; }
  int time_begin() override { return 0; }
  int time_end(double *seconds) override {
    *seconds = 1;
    return 0;
  }
};

/* What the parent knows about its child. */
struct heard {
  const mxh_watch &watch;
  int pipe; /* to the child */
  std::string group;
  std::string operation, what, kernel;
  int part = -1;
  std::map<std::string, uint64_t> before; /* cases of each row when the part began */

  mxh_row *row(const std::string &name) {
    for (mxh_row &r : watch.report->rows)
      if (r.operation == name) return &r;
    return nullptr;
  }
  void take(const fields &m) {
    mxh_report &report = *watch.report;
    if (m[0] == "device" && m.size() == 5) {
      report.device = {m[1], m[2], m[3], m[4]};
    } else if (m[0] == "begin" && m.size() == 4) {
      if (!m[3].empty()) group = m[3];
      operation = m[1], what = m[2], kernel = "";
    } else if (m[0] == "part" && m.size() == 2) {
      part = atoi(m[1].c_str());
      for (const mxh_row &r : report.rows) before[r.operation] = r.cases;
    } else if (m[0] == "launch" && m.size() == 2) {
      kernel = m[1];
    } else if (m[0] == "found" && m.size() == 2) {
      report.found.push_back(m[1]);
    } else if (m[0] == "seconds" && m.size() == 2) {
      report.device_seconds += atof(m[1].c_str());
    } else if (m[0] == "writes") {
      send(pipe, "", 1, MSG_NOSIGNAL); /* MSG_NOSIGNAL, since the child may be gone */
    } else if (m[0] == "whole") {
      report.whole = true;
    } else if (m[0] == "row" && m.size() == 11) {
      mxh_row *r = row(m[1]);
      const bool is_new = !r;
      if (is_new) report.rows.push_back({}), r = &report.rows.back();
      r->operation = m[1], r->group = m[2], r->cases = number(m[3]), r->values = number(m[4]), r->differences = number(m[5]);
      r->not_run = number(m[6]), r->skipped = m[7] == "1", r->open = m[8] == "1", r->first = m[9], r->note = m[10];
      if (is_new && !report.whole) watch.write(); /* a new row means that those before it are complete */
    }
  }
  void died(const std::string &how) {
    if (operation.empty()) operation = group, what = "before its first row";
    if (watch.report->whole) { /* the report that is on the disk has a profile, which the parent does not have */
      fprintf(stderr, "mxgold-hip-diff: the report is complete; after it was written, %s (%s) %s\n", operation.c_str(), what.c_str(),
              how.c_str());
      return;
    }
    mxh_row *r = row(operation);
    if (!r) {
      watch.report->rows.push_back({});
      r = &watch.report->rows.back();
      r->operation = operation;
      r->group = group;
    }
    r->died = true;
    r->first = how + (kernel.empty() ? ", before any of its kernels was launched" : ", the last kernel launched was " + kernel) + "; case " +
               what + (r->first.empty() ? "" : "; " + r->first);
    fprintf(stderr, "mxgold-hip-diff: %s: %s\n", operation.c_str(), r->first.c_str());
  }
};

/* Waits for a process, but not for ever: one that is stuck in a driver may not end even when it is killed. */
bool ended(pid_t pid, int *status, int seconds) {
  for (int i = 0; i < 10 * seconds; i++) {
    const pid_t p = waitpid(pid, status, WNOHANG);
    if (p == pid) return true;
    const struct timespec tenth = {0, 100000000};
    nanosleep(&tenth, nullptr);
  }
  return false;
}
} // namespace

mxh_device *mxh_idle(const mxh_device_facts &facts) {
  mxh_device *d = new idle;
  d->kind = facts.kind, d->name = facts.name, d->arch = facts.arch, d->driver = facts.driver;
  return d;
}
mxh_device *mxh_watched(mxh_device *dev, int pipe, const char *fault) { return new watched(dev, pipe, fault); }
void mxh_watch_opened(int pipe, mxh_device *dev) { tell(pipe, {"device", mxh_name(dev), mxh_kind(dev), mxh_arch(dev), mxh_driver(dev)}); }
double mxh_watched_seconds(mxh_device *dev, int pipe) {
  const double seconds = static_cast<watched *>(dev)->seconds;
  tell(pipe, {"seconds", std::to_string(seconds)});
  return seconds;
}
void mxh_watch_writes(int pipe) {
  tell(pipe, {"writes"});
  char heard;
  while (read(pipe, &heard, 1) < 0 && errno == EINTR) continue;
}
void mxh_watch_whole(int pipe) { tell(pipe, {"whole"}); }
void mxh_watch_doing(int pipe, const std::string &operation, const std::string &what) { tell(pipe, {"begin", operation, what, ""}); }

typedef std::function<int(mxh_run *, int pipe)> body_fn;
/* Runs in the child; `to` is its end of the connection to the parent. */
static void child(const mxh_watch &watch, const char *group, const body_fn &body, int to, mxh_run run, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  /* without its parent, nobody reads what it finds */
  if (getppid() != parent) _exit(2); /* the parent was gone before that call */
  run.group = group;
  run.row_changed = [to](const mxh_row &r) { tell_row(to, r); };
  if (!run.counting) {
    run.rows = watch.report->rows;
    run.begun = [to, &run](const std::string &operation, const std::string &what) { tell(to, {"begin", operation, what, run.group}); };
    run.part_begun = [to](int part) { tell(to, {"part", std::to_string(part)}); };
    run.found = [to](const std::string &line) { tell(to, {"found", line}); };
  }
  const int result = body(&run, to);
  fflush(stdout);
  _exit(result);
}

/* Counts the cases that the part that died, or all parts from it on, would have had, and marks those that did not run as lost. False: they
 * could not be counted. */
static bool mark_lost(const mxh_watch &watch, const char *group, const body_fn &body, heard *h, bool all) {
  int ends[2], status = 0;
  fflush(stdout);
  if (pipe(ends)) return false;
  const pid_t parent = getpid(), pid = fork();
  if (pid < 0) return false;
  if (!pid) {
    close(ends[0]);
    mxh_run run = *watch.report->run;
    run.counting = true;
    run.first_part = h->part;
    run.last_part = all ? 1 << 20 : h->part;
    child(watch, group, body, ends[1], run, parent);
  }
  close(ends[1]);
  FILE *f = fdopen(ends[0], "r");
  std::map<std::string, fields> counted;
  std::vector<std::string> order;
  char *line = nullptr;
  for (size_t room = 0; f && getline(&line, &room, f) > 0;) {
    const fields m = parts_of(line);
    if (m[0] != "row" || m.size() != 11 || m[7] == "1") continue;
    if (!counted.count(m[1])) order.push_back(m[1]);
    counted[m[1]] = m;
  }
  free(line);
  if (f) fclose(f);
  for (const std::string &name : order) {
    const fields &m = counted[name];
    mxh_row *r = h->row(name);
    const uint64_t had = r ? r->cases - h->before[name] : 0, expected = number(m[3]);
    if (had >= expected) continue;
    if (!r) {
      watch.report->rows.push_back({});
      r = &watch.report->rows.back();
      r->operation = name, r->group = m[2];
    }
    r->lost += expected - had;
    const std::string by = "cut by the end of " + h->operation;
    if (!r->died) r->note += (r->note.empty() ? "" : "; ") + by;
  }
  return f && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) <= 1;
}

/* Runs one process from that part on. next: the part with which to continue after a fault, or -1. */
static int one_child(const mxh_watch &watch, const char *group, const body_fn &body, int first_part, int *next) {
  int ends[2], status = 0;
  *next = -1;
  fflush(stdout);
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) return perror("mxgold-hip-diff"), 2;
  const pid_t parent = getpid(), pid = fork();
  if (pid < 0) return perror("mxgold-hip-diff"), 2;
  if (!pid) {
    close(ends[0]);
    mxh_run run = *watch.report->run;
    run.first_part = first_part;
    child(watch, group, body, ends[1], run, parent);
  }
  close(ends[1]);
  heard h = {watch, ends[0], group, "", "", "", -1, {}};
  std::string line;
  bool hangs = false;
  for (char part[1 << 16];;) {
    struct pollfd p = {ends[0], POLLIN, 0};
    const int ready = poll(&p, 1, watch.patience * 1000);
    if (ready < 0 && errno == EINTR) continue;
    hangs = ready == 0;
    if (ready <= 0) break;
    const ssize_t n = read(ends[0], part, sizeof part);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    for (ssize_t i = 0; i < n; i++)
      if (part[i] == '\n')
        h.take(parts_of(line)), line.clear();
      else
        line += part[i];
  }
  close(ends[0]);
  if (hangs) kill(pid, SIGKILL);
  const bool is_gone = hangs ? ended(pid, &status, 10) : waitpid(pid, &status, 0) == pid;
  const bool by_itself = !hangs && is_gone && WIFEXITED(status) && WEXITSTATUS(status) <= 2;
  if (by_itself) return WEXITSTATUS(status);
  h.died(hangs ? "no message for " + std::to_string(watch.patience) + " s, killed" + (is_gone ? "" : " without effect")
         : is_gone && WIFSIGNALED(status)
             ? std::string("ended by signal ") + std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) + ")"
             : "ended with status " + std::to_string(WEXITSTATUS(status)));
  if (!watch.report->whole) watch.write();
  if (!watch.report->whole && h.part >= first_part) {
    if (!mark_lost(watch, group, body, &h, hangs))
      fprintf(stderr, "mxgold-hip-diff: the cases lost with %s could not be counted: other rows of its part may be cut too\n",
              h.operation.c_str());
    watch.write();
  }
  if (!hangs && !watch.report->whole && h.part >= first_part) *next = h.part + 1; /* after a hang the device is not used again */
  return 2;
}

int mxh_watch_child(const mxh_watch &watch, const char *group, const std::function<int(mxh_run *, int pipe)> &body) {
  int worst = 0;
  for (int part = 0, next; part >= 0; part = next) {
    const int status = one_child(watch, group, body, part, &next);
    if (status > worst) worst = status;
  }
  return worst;
}
