/* Writes and reads parameters and state as .safetensors, metrics and digests as lines. */
#define _FILE_OFFSET_BITS 64
#include "train/run/files.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <unistd.h>

#include "mxgold/file.h"
#include "mxgold/nearest.h"

/* A group of tensors shaped like the parameters, under a prefix. */
typedef struct group {
  const char *prefix;
  float *values;
  int of_linears; /* 1: the weights of linears alone */
} group;

enum { MOST_GROUPS = 7 };

static int has(const group *g, const mxi_model *m, size_t param) {
  int found = !g->of_linears;
  for (size_t i = 0; i < m->n_linears && !found; i++) found = (size_t)m->linears[i].weight == param;
  return found;
}

static void name_of(char name[2 * MXI_NAME], const group *g, const mxi_param *p) { snprintf(name, 2 * MXI_NAME, "%s%s", g->prefix, p->name); }

static mx_status write_groups(const char *path, const mxi_model *m, const group *groups, size_t n, const char *const (*meta)[2],
                              const mxi_kept *kept, size_t n_kept, mx_error *err) {
  mx_writer *w;
  mx_status status = mx_writer_open(&w, path, err);
  if (status) return status;
  for (size_t k = 0; k < n && !status; k++)
    for (size_t i = 0; i < m->n_params && !status; i++) {
      if (!has(&groups[k], m, i)) continue;
      const mxi_param *p = &m->params[i];
      const uint64_t shape[2] = {p->rows, p->cols};
      char name[2 * MXI_NAME];
      name_of(name, &groups[k], p);
      status = mx_writer_add(w, name, MX_F32, p->n_dims, shape, NULL);
    }
  for (size_t k = 0; k < n_kept && !status; k++) {
    const uint64_t shape[2] = {kept[k].rows, kept[k].cols};
    status = mx_writer_add(w, kept[k].name, MX_F32, 2, shape, NULL);
  }
  for (size_t i = 0; meta && meta[i][0] && !status; i++) status = mx_writer_meta(w, meta[i][0], meta[i][1]);
  if (status) mx_fail(err, status, "%s: %s", path, mx_status_text(status));
  if (!status) status = mx_writer_begin(w, err);
  size_t index = 0;
  for (size_t k = 0; k < n && !status; k++)
    for (size_t i = 0; i < m->n_params && !status; i++) {
      if (!has(&groups[k], m, i)) continue;
      const mxi_param *p = &m->params[i];
      status = mx_writer_write(w, index++, groups[k].values + p->offset, p->rows * p->cols * sizeof(float), err);
    }
  for (size_t k = 0; k < n_kept && !status; k++)
    status = mx_writer_write(w, index++, kept[k].values, kept[k].rows * kept[k].cols * sizeof(float), err);
  if (!status) return mx_writer_commit(w, err);
  mx_writer_abort(w);
  return status;
}

mx_status mxi_write_parameters(const char *path, const mxi_model *m, int gradients, mx_error *err) {
  const group g = {"", gradients ? m->g : m->w, 0};
  return write_groups(path, m, &g, 1, NULL, NULL, 0, err);
}

static mx_status read_group(const mx_file *file, const mxi_model *m, const group *g, mx_error *err) {
  const char *path = mx_file_path(file);
  for (size_t i = 0; i < m->n_params; i++) {
    if (!has(g, m, i)) continue;
    const mxi_param *p = &m->params[i];
    const mx_array *a;
    char name[2 * MXI_NAME];
    name_of(name, g, p);
    const mx_status status = mx_file_find(&a, file, name, err);
    if (status) return status;
    if (a->n_dims != p->n_dims) return mx_fail(err, MX_ERR_SHAPE, "%s: %s has %d dimensions, expected %d", path, name, a->n_dims, p->n_dims);
    if (p->n_dims == 1 && a->shape[0] != p->rows)
      return mx_fail(err, MX_ERR_SHAPE, "%s: %s has the shape [%" PRIu64 "], expected [%zu] for this configuration's model", path, name,
                     a->shape[0], p->rows);
    if (p->n_dims == 2 && (a->shape[0] != p->rows || a->shape[1] != p->cols))
      return mx_fail(err, MX_ERR_SHAPE, "%s: %s has the shape [%" PRIu64 ", %" PRIu64 "], expected [%zu, %zu] for this configuration's model",
                     path, name, a->shape[0], a->shape[1], p->rows, p->cols);
    if (mx_array_read_f32(g->values + p->offset, a, 0, p->rows * p->cols, 0))
      return mx_fail(err, MX_ERR_UNSUPPORTED, "%s: %s is %s, expected f32, f16 or bf16", path, name, mx_dtype_name(a->dtype));
  }
  return MX_OK;
}

static const char *parameter_name(const void *set, size_t index) {
  const mxi_model *m = set;
  return index < m->n_params ? m->params[index].name : NULL;
}

mx_status mxi_read_parameters(const char *path, mxi_model *m, mx_error *err) {
  mx_file *file;
  mx_error why;
  mx_status status = mx_file_open(&file, path, &why);
  if (status) return mx_fail(err, status, "init: %s", why.text);
  const group g = {"", m->w, 0};
  for (size_t i = 0; i < mx_file_count(file) && !status; i++) {
    const char *name = mx_file_at(file, i)->name;
    int known = 0;
    for (size_t k = 0; k < m->n_params; k++) known |= !strcmp(name, m->params[k].name);
    if (known) continue;
    char near[2 * MXI_NAME];
    mx_nearest(near, sizeof near, name, parameter_name, m);
    status = mx_fail(&why, MX_ERR_KEY, "%s: tensor '%s' is not a parameter of this configuration's model; nearest: %s", path, name, near);
  }
  if (!status) status = mx_file_check_digests(file, &why);
  if (!status) status = read_group(file, m, &g, &why);
  mx_file_close(file);
  return status ? mx_fail(err, status, "init: %s", why.text) : MX_OK;
}

/* Doubles that must come back to the bit, as hexadecimal. */
static void print_doubles(char *out, size_t size, const double *x, size_t n) {
  size_t at = 0;
  *out = 0;
  for (size_t i = 0; i < n && at < size; i++) at += (size_t)snprintf(out + at, size - at, "%s%a", i ? " " : "", x[i]);
}

static int parse_doubles(double *x, size_t n, const char *text) {
  for (size_t i = 0; i < n; i++) {
    char *end;
    x[i] = strtod(text, &end);
    if (end == text) return 0;
    text = end;
  }
  return 1;
}

/* The tensor scales that are held, six a linear. */
static void print_held(char *out, size_t size, const mxi_model *m) {
  size_t at = 0;
  *out = 0;
  for (size_t i = 0; m->holds && i < m->n_linears; i++)
    for (int q = 0; q < MX_OPERANDS && at < size; q++)
      at += (size_t)snprintf(out + at, size - at, "%s%a", at ? " " : "", (double)m->holds[i].scale[q]);
}

static int parse_held(mxi_model *m, const char *text) {
  for (size_t i = 0; m->holds && i < m->n_linears; i++)
    for (int q = 0; q < MX_OPERANDS; q++) {
      char *end;
      m->holds[i].scale[q] = strtof(text, &end);
      if (end == text) return 0;
      text = end;
    }
  return 1;
}

/* What is kept as tensors; returns how many groups. */
static size_t state_groups(group groups[MOST_GROUPS], const mxi_model *m, const mxi_optim *o) {
  const group all[MOST_GROUPS] = {{"", m->w, 0},
                                  {"optimizer.m.", o->m, 0},
                                  {"optimizer.v.", o->v, 0},
                                  {"ema.", o->ema.w, 1},
                                  {"ramp.sum.", o->ramp.sum, 1},
                                  {"ramp.count.", o->ramp.count, 1},
                                  {"ramp.period.", o->ramp.period, 1}};
  size_t n = 0;
  for (size_t i = 0; i < MOST_GROUPS; i++)
    if (all[i].values) groups[n++] = all[i];
  return n;
}

mx_status mxi_write_state(const char *path, const mxi_model *m, const mxi_optim *o, const mxi_divergence *d, uint64_t step, const char *late,
                          const mxi_origin *origin, const mxi_kept *kept, size_t n_kept, mx_error *err) {
  char counts[64], above[32];
  const size_t room = 64 * (m->n_params + 1);
  char *clip = malloc(room), *norm = malloc(2 * room), *held = malloc(64 * MX_OPERANDS * (m->n_linears + 1)), more[160];
  if (!clip || !norm || !held) {
    free(clip), free(norm), free(held);
    return mx_fail(err, MX_ERR_NOMEM, "out of memory");
  }
  snprintf(counts, sizeof counts, "%" PRIu64 " %" PRIu64 " %" PRIu64, step, o->t, o->total);
  snprintf(above, sizeof above, "%" PRIu64, d->above);
  print_doubles(clip, room, o->clip, m->n_params);
  print_doubles(norm, 2 * room, o->norm, 2 * m->n_params);
  snprintf(more, sizeof more, "%" PRIu64 " %a %" PRIu64, o->ema.steps, o->loss.scale, o->loss.good);
  print_held(held, 64 * MX_OPERANDS * (m->n_linears + 1), m);
  const char *const meta[][2] = {{"steps", counts},
                                 {"stablespam.clip", clip},
                                 {"stablespam.norm", norm},
                                 {"ema.steps loss.scale loss.good", more},
                                 {"tensor.hold", held},
                                 {"late", late},
                                 {"divergence.above", above},
                                 {"data", origin->data},
                                 {"begun", origin->begun},
                                 {"lines", origin->lines},
                                 {NULL, NULL}};
  group groups[MOST_GROUPS];
  const mx_status status = write_groups(path, m, groups, state_groups(groups, m, o), meta, kept, n_kept, err);
  free(clip);
  free(norm);
  free(held);
  return status;
}

static void take_digest(char out[33], const mx_file *file, const char *key) {
  const char *text = mx_file_meta(file, key);
  snprintf(out, 33, "%s", text ? text : "");
}

mx_status mxi_read_state(const char *path, mxi_model *m, mxi_optim *o, mxi_divergence *d, uint64_t *step, char **late, mxi_origin *origin,
                         mx_error *err) {
  mx_file *file;
  mx_status status = mx_file_open(&file, path, err);
  if (status) return status;
  take_digest(origin->data, file, "data");
  take_digest(origin->begun, file, "begun");
  take_digest(origin->lines, file, "lines");
  status = mx_file_check_digests(file, err);
  group groups[MOST_GROUPS];
  const size_t n_groups = state_groups(groups, m, o);
  for (size_t i = 0; i < n_groups && !status; i++) status = read_group(file, m, &groups[i], err);
  const char *counts = mx_file_meta(file, "steps"), *clip = mx_file_meta(file, "stablespam.clip"),
             *norm = mx_file_meta(file, "stablespam.norm"), *held = mx_file_meta(file, "tensor.hold"),
             *more = mx_file_meta(file, "ema.steps loss.scale loss.good");
  if (!status && (!counts || sscanf(counts, "%" SCNu64 " %" SCNu64 " %" SCNu64, step, &o->t, &o->total) != 3 || !clip || !norm ||
                  !parse_doubles(o->clip, m->n_params, clip) || !parse_doubles(o->norm, 2 * m->n_params, norm) || !more || !held ||
                  !mxi_ramp_is_sound(&o->ramp, m) ||
                  sscanf(more, "%" SCNu64 " %la %" SCNu64, &o->ema.steps, &o->loss.scale, &o->loss.good) != 3 || !parse_held(m, held)))
    status = mx_fail(err, MX_ERR_FORMAT, "%s: expected the state that a run of this configuration wrote", path);
  const char *text = mx_file_meta(file, "late"), *above = mx_file_meta(file, "divergence.above");
  d->above = above ? strtoull(above, NULL, 10) : 0;
  if (!status && text && !(*late = strdup(text))) status = mx_fail(err, MX_ERR_NOMEM, "out of memory");
  mx_file_close(file);
  return status;
}

uint64_t mxi_line_step(const char *line) {
  const char *digit = line + strcspn(line, "0123456789\n");
  return *digit && *digit != '\n' ? strtoull(digit, NULL, 10) : UINT64_MAX;
}

#define THEIR_LINES "a line of each step that the run has done"

static void chain(mxi_lines *l, const char *line) {
  char *both;
  const int n = asprintf(&both, "%s%s", l->chain, line);
  if (n < 0) return; /* a chain that is too short is refused by the resume, as one that was damaged */
  mx_digest(l->chain, both, (size_t)n);
  free(both);
}

void mxi_lines_put(mxi_lines *l, const char *line) {
  fputs(line, l->to);
  chain(l, line);
}

mx_status mxi_lines_open(mxi_lines *l, const char *path, int resume, uint64_t step, mx_error *err) {
  l->path = path;
  l->to = fopen(path, resume ? "r+" : "w");
  if (!l->to && resume && errno == ENOENT) return mx_fail(err, MX_ERR_FORMAT, "%s: not there, expected %s", path, THEIR_LINES);
  if (!l->to) return mx_fail(err, MX_ERR_IO, "%s: %s", path, strerror(errno));
  if (!resume) return MX_OK;
  char *line = NULL;
  size_t room = 0;
  off_t whole = 0;
  ssize_t n;
  uint64_t next = 0; /* the first step without a line */
  while ((n = getline(&line, &room, l->to)) > 0 && line[n - 1] == '\n' && mxi_line_step(line) < step) {
    chain(l, line);
    next = mxi_line_step(line) + 1;
    whole += n;
  }
  free(line);
  if (next != step)
    return mx_fail(err, MX_ERR_FORMAT, "%s: has no line of step %" PRIu64 ", expected %s", path, next < step ? next : step - 1, THEIR_LINES);
  if (fseeko(l->to, whole, SEEK_SET) || ftruncate(fileno(l->to), whole)) return mx_fail(err, MX_ERR_IO, "%s: %s", path, strerror(errno));
  return MX_OK;
}

mx_status mxi_last_metrics(mx_train_result *result, const char *path, mx_error *err) {
  FILE *f = fopen(path, "r");
  if (!f) return mx_fail(err, MX_ERR_IO, "%s: %s", path, strerror(errno));
  char *line = NULL;
  size_t room = 0;
  json_t *last = NULL;
  for (ssize_t n; (n = getline(&line, &room, f)) > 0 && line[n - 1] == '\n';) {
    json_decref(last);
    last = json_loadb(line, (size_t)n, 0, NULL);
  }
  free(line);
  fclose(f);
  const struct {
    const char *key;
    double *to;
  } figures[] = {{"loss", &result->loss},
                 {"val_loss", &result->val_loss},
                 {"val_loss_fp32", &result->val_loss_fp32},
                 {"val_accuracy", &result->val_accuracy},
                 {"val_accuracy_fp32", &result->val_accuracy_fp32}};
  for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
    const json_t *v = json_object_get(last, figures[i].key);
    if (json_is_number(v)) *figures[i].to = json_number_value(v);
  }
  json_decref(last);
  return MX_OK;
}

mx_status mxi_lines_close(mxi_lines *l, mx_error *err) {
  if (!l->to) return MX_OK;
  const int failed = ferror(l->to) | fclose(l->to);
  l->to = NULL;
  return failed ? mx_fail(err, MX_ERR_IO, "%s: %s", l->path, strerror(errno ? errno : EIO)) : MX_OK;
}

mx_status mxi_read_bytes(uint8_t **out, size_t *n, const char *path, mx_error *err) {
  FILE *f = fopen(path, "rb");
  *out = NULL;
  *n = 0;
  if (!f) return mx_fail(err, MX_ERR_IO, "%s: %s", path, strerror(errno));
  mx_status status = MX_OK;
  for (size_t room = 0, got = 1; got && !status;) {
    if (*n == room) {
      uint8_t *more = realloc(*out, room = room ? 2 * room : 1 << 20);
      if (!more) {
        status = mx_fail(err, MX_ERR_NOMEM, "%s: out of memory", path);
        break;
      }
      *out = more;
    }
    *n += got = fread(*out + *n, 1, room - *n, f);
  }
  if (!status && ferror(f)) status = mx_fail(err, MX_ERR_IO, "%s: %s", path, strerror(errno));
  fclose(f);
  if (!status) return MX_OK;
  free(*out);
  *out = NULL;
  return status;
}

void mxi_json_number(FILE *to, const char *before, const char *name, double value) {
  fprintf(to, "%s\"%s\": ", before, name);
  if (isfinite(value))
    fprintf(to, "%.9g", value);
  else
    fputs("null", to);
}
