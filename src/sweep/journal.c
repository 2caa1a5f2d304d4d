/* Writes and reads journals of the events of runs. Each process appends lines to a journal of its own with one write() a line, so no line is mixed
 * with another's, and a kill can cut off the last line only, which then has no newline and is not read. Nothing is ever rewritten: readers merge all
 * journals. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "sweep/internal.h"

static const char *const ends[] = {"begun", "finished", "diverged", "failed", NULL};

int mxi_journal_open(const char *dir) {
  char host[64] = "host", path[4096];
  gethostname(host, sizeof host - 1);
  for (unsigned again = 0; again < 1000; again++) { /* a process of an earlier time may have had this number */
    snprintf(path, sizeof path, "%s/journal/%s.%ld.%u.jsonl", dir, host, (long)getpid(), again);
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

const char *const mxi_figure_names[MXI_FIGURES] = {"loss", "val_loss", "val_loss_fp32", "val_accuracy", "val_accuracy_fp32"};

int mxi_put_number(json_t *line, const char *key, double x) { return json_object_set_new(line, key, isfinite(x) ? json_real(x) : json_null()); }

int mxi_put_outcome(json_t *line, const mxi_outcome *o) {
  int failed = json_object_set_new(line, "steps", json_integer((json_int_t)o->steps));
  for (int i = 0; i < MXI_FIGURES; i++)
    if (isfinite(o->figure[i]) || i <= MXI_VAL_LOSS_FP32) /* only some tasks have accuracies */
      failed |= mxi_put_number(line, mxi_figure_names[i], o->figure[i]);
  return failed;
}

int mxi_put_text(json_t *line, const char *text) {
  if (!*text) return 0;
  json_t *value = json_string(text);
  return json_object_set_new(line, "text", value ? value : json_string("(not UTF-8)"));
}

/* One line in one write; line is freed. failed: it is not whole, since an allocation failed. */
static mx_status write_line(int journal, json_t *line, int failed, mx_error *err) {
  char *text = failed ? NULL : json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(9)), *whole = NULL;
  json_decref(line);
  const int n = text ? asprintf(&whole, "%s\n", text) : -1;
  free(text);
  if (n < 0) return mx_fail(err, MX_ERR_NOMEM, "out of memory");
  const ssize_t written = write(journal, whole, (size_t)n);
  free(whole);
  return written == n ? MX_OK : mx_fail(err, MX_ERR_IO, "journal: %s", written < 0 ? strerror(errno) : "no space is left");
}

mx_status mxi_journal_write(int journal, const mxi_outcome *o, mx_error *err) {
  json_t *line = json_object();
  int failed = json_object_set_new(line, "id", json_string(o->id));
  failed |= json_object_set_new(line, "event", json_string(ends[o->end]));
  if (o->end == MXI_END_FINISHED || o->end == MXI_END_DIVERGED) failed |= mxi_put_outcome(line, o);
  failed |= mxi_put_text(line, o->text);
  return write_line(journal, line, failed, err);
}

mx_status mxi_journal_write_rung(int journal, const mxi_rung *g, mx_error *err) {
  json_t *line = json_object();
  int failed = json_object_set_new(line, "id", json_string(g->id));
  failed |= json_object_set_new(line, "event", json_string("rung"));
  failed |= json_object_set_new(line, "share", json_real(g->share)); /* a power of two: the nine digits hold it exactly down to 2^-12 */
  failed |= json_object_set_new(line, "steps", json_integer((json_int_t)g->steps));
  failed |= mxi_put_number(line, "loss", g->loss);
  return write_line(journal, line, failed, err);
}

static double real_of(const json_t *line, const char *key) {
  const json_t *v = json_object_get(line, key);
  return json_is_number(v) ? json_number_value(v) : NAN;
}

static mx_status take_rung(mxi_outcomes *all, json_t *line, const char *id, mx_error *err) {
  mxi_rung *more = realloc(all->rungs, (all->n_rungs + 1) * sizeof *more);
  if (more) {
    all->rungs = more;
    mxi_rung *g = &more[all->n_rungs++];
    *g = (mxi_rung){
        .share = real_of(line, "share"), .loss = real_of(line, "loss"), .steps = (uint64_t)json_integer_value(json_object_get(line, "steps"))};
    memcpy(g->id, id, sizeof g->id);
  }
  json_decref(line);
  return more ? MX_OK : mx_fail(err, MX_ERR_NOMEM, "out of memory");
}

static mx_status take_line(mxi_outcomes *all, size_t *room, const char *text, size_t n, const char *path, size_t at, mx_error *err) {
  json_t *line = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
  const char *id = json_string_value(json_object_get(line, "id")), *event = json_string_value(json_object_get(line, "event"));
  if (id && strlen(id) == 32 && event && !strcmp(event, "rung")) return take_rung(all, line, id, err);
  int end = 0;
  while (event && ends[end] && strcmp(ends[end], event)) end++;
  if (!id || strlen(id) != 32 || !event || !ends[end]) {
    json_decref(line);
    return mx_fail(err, MX_ERR_FORMAT, "%s: line %zu: expected an event of a run", path, at);
  }
  if (end != MXI_END_NONE) {
    if (all->n == *room) {
      mxi_outcome *more = realloc(all->at, (*room = *room ? 2 * *room : 256) * sizeof *more);
      if (!more) {
        json_decref(line);
        return mx_fail(err, MX_ERR_NOMEM, "out of memory");
      }
      all->at = more;
    }
    mxi_outcome *o = &all->at[all->n++];
    *o = (mxi_outcome){.end = (mxi_end)end, .steps = (uint64_t)json_integer_value(json_object_get(line, "steps"))};
    for (int i = 0; i < MXI_FIGURES; i++) o->figure[i] = real_of(line, mxi_figure_names[i]);
    memcpy(o->id, id, sizeof o->id);
    const char *words = json_string_value(json_object_get(line, "text"));
    snprintf(o->text, sizeof o->text, "%s", words ? words : "");
  }
  json_decref(line);
  return MX_OK;
}

static mx_status read_one(mxi_outcomes *all, size_t *room, const char *path, mx_error *err) {
  FILE *f = fopen(path, "r");
  char *line = NULL;
  size_t size = 0, at = 0;
  ssize_t n;
  mx_status status = f ? MX_OK : mx_fail(err, MX_ERR_IO, "%s: %s", path, strerror(errno));
  while (!status && (n = getline(&line, &size, f)) > 0 && line[n - 1] == '\n') status = take_line(all, room, line, (size_t)n, path, ++at, err);
  if (f && !status && ferror(f)) status = mx_fail(err, MX_ERR_IO, "%s: %s", path, strerror(errno));
  if (f) fclose(f);
  free(line);
  return status;
}

static int compare_ids(const void *a, const void *b) { return strcmp(((const mxi_outcome *)a)->id, ((const mxi_outcome *)b)->id); }

static int compare_rungs(const void *a, const void *b) {
  const mxi_rung *x = a, *y = b;
  const int by_id = strcmp(x->id, y->id);
  return by_id ? by_id : (x->share > y->share) - (x->share < y->share);
}

mx_status mxi_journals_read(mxi_outcomes *out, const char *dir, mx_error *err) {
  char path[4096];
  size_t room = 0;
  *out = (mxi_outcomes){0};
  snprintf(path, sizeof path, "%s/journal", dir);
  DIR *folder = opendir(path);
  if (!folder) return errno == ENOENT ? MX_OK : mx_fail(err, MX_ERR_IO, "%s: %s", path, strerror(errno));
  mx_status status = MX_OK;
  for (const struct dirent *e; !status && (e = readdir(folder));) {
    const size_t n = strlen(e->d_name);
    if (n < 7 || strcmp(e->d_name + n - 6, ".jsonl")) continue;
    snprintf(path, sizeof path, "%s/journal/%s", dir, e->d_name);
    status = read_one(out, &room, path, err);
  }
  closedir(folder);
  if (status) {
    mxi_outcomes_free(out);
    return status;
  }
  if (out->n) qsort(out->at, out->n, sizeof *out->at, compare_ids);
  size_t kept = 0;
  for (size_t i = 0; i < out->n; i++) /* a run that two processes did has the same outcome twice */
    if (!kept || compare_ids(&out->at[kept - 1], &out->at[i])) out->at[kept++] = out->at[i];
  out->n = kept;
  if (out->n_rungs) qsort(out->rungs, out->n_rungs, sizeof *out->rungs, compare_rungs);
  return MX_OK;
}

const mxi_rung *mxi_rung_of(const mxi_outcomes *all, const char *id, double share) {
  mxi_rung key = {.share = share};
  snprintf(key.id, sizeof key.id, "%s", id);
  return all->n_rungs ? bsearch(&key, all->rungs, all->n_rungs, sizeof *all->rungs, compare_rungs) : NULL;
}

const mxi_outcome *mxi_outcome_of(const mxi_outcomes *all, const char *id) {
  mxi_outcome key = {.end = MXI_END_NONE};
  snprintf(key.id, sizeof key.id, "%s", id);
  return all->n ? bsearch(&key, all->at, all->n, sizeof *all->at, compare_ids) : NULL;
}

void mxi_outcomes_free(mxi_outcomes *all) {
  free(all->at);
  free(all->rungs);
  *all = (mxi_outcomes){0};
}
