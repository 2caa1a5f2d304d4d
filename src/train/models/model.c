/* Holds what every model is made of: its parameters by name, its linears, its memory. */
#include "train/models/model.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mxgold/ablate.h"
#include "mxgold/dense.h"

enum { LINE = 64, INIT_SLOT = 15 };

void *mxi_model_take(mxi_model *m, size_t n, size_t size) {
  size_t bytes;
  void **more = realloc(m->rooms, (m->n_rooms + 1) * sizeof *more);
  if (more) m->rooms = more;
  if (!more || __builtin_mul_overflow(n, size, &bytes) || bytes > SIZE_MAX - 2 * LINE || (m->most && bytes > m->most - m->taken)) {
    m->no_memory = 1;
    return NULL;
  }
  m->taken += bytes;
  /* Zeros that nobody has written take no memory yet: a model that is too large is refused before it has filled what there is. */
  char *room = calloc(bytes + 2 * LINE, 1);
  m->rooms[m->n_rooms++] = room;
  if (!room) m->no_memory = 1;
  return room ? room + (LINE - (uintptr_t)room % LINE) % LINE : NULL;
}

float *mxi_model_floats(mxi_model *m, size_t n) { return mxi_model_take(m, n, sizeof(float)); }

void mxi_model_work(mxi_model *m, size_t bytes) { m->work_bytes = bytes > m->work_bytes ? bytes : m->work_bytes; }

size_t mxi_model_param(mxi_model *m, double init, int ones, size_t rows, size_t cols, const char *format, ...) {
  mxi_param *more = realloc(m->params, (m->n_params + 1) * sizeof *more);
  if (!more) {
    m->no_memory = 1;
    return 0;
  }
  m->params = more;
  mxi_param *p = &more[m->n_params];
  *p = (mxi_param){.rows = rows, .cols = cols ? cols : 1, .offset = m->n_values, .n_dims = cols ? 2 : 1, .init = init, .ones = ones};
  va_list args;
  va_start(args, format);
  vsnprintf(p->name, sizeof p->name, format, args);
  va_end(args);
  m->n_values += (p->rows * p->cols + 15) / 16 * 16; /* each begins on a line of the cache */
  return m->n_params++;
}

size_t mxi_model_linear_add(mxi_model *m, size_t T, size_t I, size_t O, int weight, int bias) {
  mxi_model_linear *more = m->no_memory ? NULL : realloc(m->linears, (m->n_linears + 1) * sizeof *more);
  if (!more) {
    m->no_memory = 1;
    return 0;
  }
  m->linears = more;
  mxi_model_linear *l = &more[m->n_linears];
  *l = (mxi_model_linear){.weight = weight, .bias = bias, .T = T, .I = I, .O = O, .block = m->n_blocks};
  snprintf(l->name, sizeof l->name, "%s", m->params[weight].name);
  char *end = strstr(l->name, ".weight");
  if (end) *end = 0;
  return m->n_linears++;
}

void mxi_model_block_end(mxi_model *m) { m->n_blocks++; }

void mxi_model_show(const mxi_model *m, mxi_shown what, const float *x, size_t n, const char *format, ...) {
  char name[MXI_NAME];
  if (!m->show) return;
  va_list args;
  va_start(args, format);
  vsnprintf(name, sizeof name, format, args);
  va_end(args);
  m->show(m->show_self, what, name, x, n);
}

static const mx_linear_recipe plain = {.off = {1, 1, 1}};

const mx_linear_recipe *mxi_model_plain(void) { return &plain; }

mx_linear mxi_model_call(const mxi_model *m, size_t index, const mx_linear_recipe *recipe) {
  const mxi_model_linear *l = &m->linears[index];
  mx_linear call = {.recipe = recipe,
                    .T = l->T,
                    .I = l->I,
                    .O = l->O,
                    .seed = m->seed,
                    .step = m->step,
                    .layer = (uint32_t)index,
                    .sgemm = m->sgemm,
                    .hold = m->holds ? &m->holds[index] : NULL};
  if (m->ema) call.ema = (mx_linear_in){m->ema + m->params[l->weight].offset, l->I, MX_F32};
  return call;
}

void mxi_model_free(mxi_model *m) {
  if (!m) return;
  for (size_t i = 0; i < m->n_rooms; i++) free(m->rooms[i]);
  mx_workspace_free(m->exec.workspace);
  free(m->rooms);
  free(m->params);
  free(m->linears);
  free(m->own);
  free(m);
}

void mxi_model_init(mxi_model *m, uint64_t seed) {
  const mx_data normal = {.kind = MX_DATA_GAUSSIAN}, even = {.kind = MX_DATA_UNIFORM};
  for (size_t i = 0; i < m->n_params; i++) {
    const mxi_param *p = &m->params[i];
    const size_t n = p->rows * p->cols;
    float *w = m->w + p->offset;
    if (p->init > 0) mx_data_fill_on(w, p->rows, p->cols, p->even ? &even : &normal, mx_linear_seed(seed, 0, (uint32_t)i, INIT_SLOT), &m->exec);
    for (size_t k = 0; k < n; k++) w[k] = p->ones ? 1 : p->init > 0 ? (float)(p->init * (double)w[k]) : 0;
  }
}

size_t mxi_model_counted(const mxi_model *m, size_t N) { return m->evaluate ? N / m->B * m->batch.rows : N; }

mx_status mxi_model_forward(mxi_model *m, const mxi_batch *batch, uint64_t seed, uint64_t step, int evaluate, double *loss, mx_error *err) {
  m->batch = *batch;
  m->seed = seed;
  m->step = step;
  m->evaluate = evaluate;
  m->err = err;
  const mx_status status = m->forward(m);
  *loss = m->loss;
  return status;
}

mx_status mxi_model_backward(mxi_model *m, mx_error *err) {
  m->err = err;
  for (size_t i = 0; m->loss_scale != 1 && i < m->n_dloss; i++) m->dloss[i] *= m->loss_scale;
  return m->backward(m);
}

static const mx_linear_recipe *late_recipe(const mxi_model *m, const mxi_model_linear *l) { return l->high ? l->recipe : m->late_recipe; }

mx_status mxi_model_linear_forward(mxi_model *m, size_t index, float *y, const float *x) {
  const mxi_model_linear *l = &m->linears[index];
  mx_linear call = mxi_model_call(m, index, m->evaluate == 2 ? &plain : m->late == MXI_LATE_ALL ? late_recipe(m, l) : l->recipe);
  if (m->late == MXI_LATE_BACKWARD && !m->evaluate && l->kept_x) call.operand = mxi_model_keep_operand, call.self = m;
  m->under_way = index;
  m->kept_status = MX_OK;
  const float *weight = m->w + m->params[l->weight].offset;
  if (!m->evaluate) call.counts = &m->counts;
  if (l->smooth && m->evaluate != 2) mxi_smooth_forward(m, index, &x, &weight);
  const mx_linear_in in = {x, l->I, MX_F32}, w = {weight, l->I, MX_F32};
  mx_error why;
  mx_status status =
      mx_linear_forward(&call, (mx_linear_out){y, l->O, MX_F32, 0}, in, w, l->bias >= 0 ? m->w + m->params[l->bias].offset : NULL,
                        m->evaluate ? NULL : l->saved, m->work, &m->exec, &why);
  if (!status && (status = m->kept_status)) mx_fail(&why, status, "%s", mx_status_text(status));
  if (!status) mxi_model_show(m, MXI_OUTPUT, y, l->T * l->O, "%s", l->name);
  return status ? mx_fail(m->err, status, "%s: %s", l->name, why.text) : MX_OK;
}

mx_status mxi_model_linear_backward(mxi_model *m, size_t index, float *dx, int add, const float *dy, const float *x) {
  const mxi_model_linear *l = &m->linears[index];
  const int late = !m->exact_backward && m->late == MXI_LATE_BACKWARD && !l->high, kept = late && l->kept_x, narrow = late && m->late_dy;
  if (m->watch) m->watch(m->watch_self, index, dy, x, dx != NULL);
  mxi_model_show(m, MXI_OUTPUT_GRADIENT, dy, l->T * l->O, "%s", l->name);
  const mx_linear call = mxi_model_call(m, index, m->exact_backward || late ? &plain : m->late == MXI_LATE_ALL ? late_recipe(m, l) : l->recipe);
  const float *weight = m->w + m->params[l->weight].offset;
  float *dw = m->g + m->params[l->weight].offset;
  if (l->smooth) x = l->smooth + l->I, weight = x + l->T * l->I;
  const mx_linear_in d = {narrow ? m->late_dy : dy, l->O, MX_F32}, in = {kept ? l->kept_x : x, kept ? l->kept_ld : l->I, MX_F32},
                     w = {kept ? l->kept_w : weight, kept ? l->kept_ld : l->I, MX_F32};
  const mx_linear_out to_x = {dx, l->I, MX_F32, add}, to_w = {l->smooth ? mxi_smooth_gradient(m, index) : dw, l->I, MX_F32, !l->smooth};
  float *db = l->bias >= 0 ? m->g + m->params[l->bias].offset : NULL;
  const mx_linear_out none = {NULL, l->I, MX_F32, 1};
  mx_error why;
  mx_status status = narrow ? mx_fake_quantize(m->late_dy, dy, l->T, l->O, &m->late_recipe->q[MX_Q3], &m->exec, NULL, &why) : MX_OK;
  if (!status && narrow && l->kept_raw) status = mx_fake_quantize(l->kept_x, x, l->T, l->I, &m->late_recipe->q[MX_Q1], &m->exec, NULL, &why);
  if (!status && narrow && l->kept_raw)
    status = mx_fake_quantize(l->kept_w, weight, l->O, l->I, &m->late_recipe->q[MX_Q2], &m->exec, NULL, &why);
  if (!status && narrow && db)
    status = mx_linear_backward(&call, none, none, db, (mx_linear_in){dy, l->O, MX_F32}, in, w, l->saved, m->work, &m->exec, &why);
  if (!status) status = mx_linear_backward(&call, to_x, to_w, narrow ? NULL : db, d, in, w, l->saved, m->work, &m->exec, &why);
  if (!status && l->smooth) mxi_smooth_backward(m, index, dx, dw);
  return status ? mx_fail(m->err, status, "%s: %s", l->name, why.text) : MX_OK;
}

static mx_status dense(mxi_model *m, const mx_dense *g) {
  mx_error why;
  mx_dense of = *g;
  of.sgemm = m->sgemm;
  const mx_status status = mx_dense_gemm(&of, m->work, &m->exec, &why);
  return status ? mx_fail(m->err, status, "head: %s", why.text) : MX_OK;
}

static mx_dense head_of(const mxi_model *m, size_t weight, size_t N) {
  const mxi_param *p = &m->params[weight];
  return (mx_dense){
      .M = N, .N = p->rows, .K = p->cols, .b = m->w + p->offset, .b_row = p->cols, .b_col = 1, .a_row = p->cols, .a_col = 1, .ldd = p->rows};
}

void mxi_model_head_work(mxi_model *m, size_t N, size_t C, size_t V) {
  const mx_dense head[] = {{.M = N, .N = V, .K = C}, {.M = N, .N = C, .K = V}, {.M = V, .N = C, .K = N}};
  for (int i = 0; i < 3; i++) mxi_model_work(m, mx_dense_workspace(&head[i], &m->exec));
}

mx_status mxi_model_head(mxi_model *m, float *logits, const float *x, size_t weight, size_t N) {
  mx_dense g = head_of(m, weight, N);
  g.a = x;
  g.d = logits;
  return dense(m, &g);
}

mx_status mxi_model_head_backward(mxi_model *m, float *dx, const float *dlogits, const float *x, size_t weight, size_t N) {
  const mxi_param *p = &m->params[weight];
  const mx_dense to_x = {.M = N,
                         .N = p->cols,
                         .K = p->rows,
                         .a = dlogits,
                         .a_row = p->rows,
                         .a_col = 1,
                         .b = m->w + p->offset,
                         .b_row = 1,
                         .b_col = p->cols,
                         .d = dx,
                         .ldd = p->cols};
  const mx_dense to_w = {.M = p->rows,
                         .N = p->cols,
                         .K = N,
                         .a = dlogits,
                         .a_row = 1,
                         .a_col = p->rows,
                         .b = x,
                         .b_row = 1,
                         .b_col = p->cols,
                         .d = m->g + p->offset,
                         .ldd = p->cols,
                         .accumulate = 1};
  const mx_status status = dense(m, &to_x);
  return status ? status : dense(m, &to_w);
}
