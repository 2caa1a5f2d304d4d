/* Does runs in this process, one after the other, each on one thread: several small runs beside each other finish sooner than threads inside one. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "mxgold/train.h"
#include "sweep/internal.h"

static void remove_state(const char *run) {
  static const char *const files[] = {"model.safetensors", "state.safetensors"};
  char path[4224];
  for (int i = 0; i < 2; i++) {
    snprintf(path, sizeof path, "%s/%s", run, files[i]);
    unlink(path);
  }
}

/* A run is stopped where the call is, or at its rung. */
typedef struct limit {
  volatile sig_atomic_t stop, *call; /* call: may be NULL */
  double share;
  uint64_t steps; /* of the whole run; 0 before its first step */
} limit;

static void look(void *self, const mx_train_step *s) {
  limit *l = self;
  l->steps = s->steps;
  if ((l->share < 1 && s->step + 1 >= mxi_rung_steps(l->share, s->steps)) || (l->call && *l->call)) l->stop = 1;
}

/* mx_train_run() of a run that may have been begun. */
static mx_status go_on(mx_train_result *result, const mx_sweep_run *r, const char *folder, limit *l, mx_train_data **data, mx_error *err) {
  mx_train_options run = {.config = r->config,
                          .dir = folder,
                          .set = r->set,
                          .n_set = r->n_set,
                          .resume = 1,
                          .n_threads = 1,
                          .data = data,
                          .stop = &l->stop,
                          .report = look,
                          .self = l};
  const mx_status status = mx_train_run(result, &run, err);
  if (status != MX_ERR_CONFLICT && status != MX_ERR_FORMAT) return status;
  /* The folder may hold a run that was begun when the data lay elsewhere. Its bits are this run's, since the identity has the data's digest and not its path, but
   * a run is only resumed with its own configuration: begin again. So too where its files were damaged. */
  run.resume = 0;
  l->stop = 0;
  return mx_train_run(result, &run, err);
}

static mx_status end_rung(const limit *l, const char *id, const char *folder, int journal, mx_error *err) {
  mxi_rung g = {.share = l->share, .steps = mxi_rung_steps(l->share, l->steps)};
  memcpy(g.id, id, sizeof g.id);
  const mx_status status = mxi_rung_read(&g, folder, err);
  return status ? status : mxi_journal_write_rung(journal, &g, err);
}

/* One run. What is the machine's fault, memory or disk, is no outcome of the run: it ends the process. *end stays NONE if it was stopped. */
static mx_status do_run(mxi_end *end, const mx_sweep_options *how, double share, const mx_sweep_run *r, int journal, mx_train_data **data,
                        mx_error *err) {
  mxi_outcome o = {.end = MXI_END_NONE};
  memcpy(o.id, r->id, sizeof o.id);
  *end = MXI_END_NONE;
  mx_status status = mxi_journal_write(journal, &o, err);
  if (status) return status;
  char folder[4096];
  snprintf(folder, sizeof folder, "%s/runs/%s", how->dir, r->id);
  limit l = {.call = how->stop, .share = share};
  mx_train_result result;
  mx_error why;
  status = go_on(&result, r, folder, &l, data, &why);
  if (status == MX_ERR_IO || status == MX_ERR_NOMEM) return mx_fail(err, status, "%s", why.text);
  if (!status && result.end == MX_TRAIN_INTERRUPTED) {
    if (!(share < 1 && l.steps && result.steps >= mxi_rung_steps(share, l.steps))) return MX_OK;
    *end = MXI_END_FINISHED; /* so far */
    return end_rung(&l, r->id, folder, journal, err);
  }
  o.end = status ? MXI_END_FAILED : result.end == MX_TRAIN_DIVERGED ? MXI_END_DIVERGED : MXI_END_FINISHED;
  o.steps = result.steps;
  const double figures[MXI_FIGURES] = {result.loss, result.val_loss, result.val_loss_fp32, result.val_accuracy, result.val_accuracy_fp32};
  memcpy(o.figure, figures, sizeof figures);
  if (o.end != MXI_END_FINISHED) snprintf(o.text, sizeof o.text, "%.255s", status ? why.text : result.where);
  if (!how->keep) remove_state(folder);
  status = mxi_journal_write(journal, &o, err);
  *end = o.end;
  return status;
}

mx_status mxi_work(const mx_sweep *sweep, const mx_sweep_options *how, double share, long (*take)(void *self), void *self, atomic_size_t *ended,
                   mx_error *err) {
  const int journal = mxi_journal_open(how->dir);
  if (journal < 0) return mx_fail(err, MX_ERR_IO, "%s/journal: %s", how->dir, strerror(errno));
  mx_train_data *data = NULL; /* of the run before, which often has the same */
  mx_status status = MX_OK;
  while (!status && !(how->stop && *how->stop)) {
    const long index = take(self);
    mxi_end end;
    if (index < 0 || (size_t)index >= sweep->n_runs) break;
    status = do_run(&end, how, share, &sweep->runs[index], journal, &data, err);
    if (ended && end != MXI_END_NONE) atomic_fetch_add(&ended[end], 1);
  }
  mx_train_data_free(data);
  close(journal);
  return status;
}

mx_status mx_sweep_work(const mx_sweep *sweep, const mx_sweep_options *options, long (*take)(void *self), void *self, mx_error *err) {
  if (!sweep || !options || !options->dir || !take) return mx_fail(err, MX_ERR_ARG, "NULL argument");
  return mxi_work(sweep, options, 1, take, self, NULL, err);
}
