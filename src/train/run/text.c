/* Reads a text as tokens and cuts it into the windows of a batch. */
#include "train/run/text.h"

#include <stdlib.h>
#include <string.h>

#include "mxgold/random.h"
#include "train/run/files.h"

enum { TOP = 95 };

/* The token of each byte: itself; the bytes that occur, ascending; or by how often they do, the earlier first among equals, and one for the rest. */
static size_t vocabulary(int32_t token[256], const uint8_t *bytes, size_t n, int how) {
  uint64_t count[256] = {0};
  size_t vocab = 256;
  for (size_t i = 0; i < n; i++) count[bytes[i]]++;
  for (int b = 0; b < 256; b++) token[b] = b;
  if (how == MXI_CHARS) {
    vocab = 0;
    for (int b = 0; b < 256; b++) token[b] = count[b] ? (int32_t)vocab++ : 0;
  }
  if (how == MXI_TOP95) {
    for (int b = 0; b < 256; b++) {
      int before = 0;
      for (int other = 0; other < 256; other++) before += count[other] > count[b] || (count[other] == count[b] && other < b);
      token[b] = before < TOP ? before : TOP;
    }
    vocab = TOP + 1;
  }
  return vocab;
}

mx_status mxi_text_read(mxi_text *t, const mxi_config *c, mx_error *err) {
  uint8_t *bytes;
  *t = (mxi_text){0};
  mx_error why;
  mx_status status = mxi_read_bytes(&bytes, &t->n, c->data.text, &why);
  if (status) mx_fail(err, status, "data.text: %s", why.text);
  int32_t token[256];
  if (!status) t->vocab = vocabulary(token, bytes, t->n, c->data.tokens);
  if (!status && !(t->tokens = malloc((t->n + 1) * sizeof *t->tokens))) status = mx_fail(err, MX_ERR_NOMEM, "no memory for %s", c->data.text);
  for (size_t i = 0; i < t->n && !status; i++) t->tokens[i] = token[bytes[i]];
  free(bytes);
  t->n_train = (size_t)(c->data.split * (double)t->n);
  if (!status && t->n_train <= c->model.context + 1)
    status = mx_fail(err, MX_ERR_DATA, "data.text, data.split: %s: %zu bytes to train on, expected more than model.context, %zu", c->data.text,
                     t->n_train, c->model.context);
  if (!status && c->model.vocab && c->model.vocab < t->vocab)
    status = mx_fail(err, MX_ERR_CONFLICT, "model.vocab is %zu, expected at least the %zu of data.tokens", c->model.vocab, t->vocab);
  if (status) mxi_text_free(t);
  return status;
}

void mxi_text_free(mxi_text *t) {
  free(t->tokens);
  t->tokens = NULL;
}

static void window(const mxi_text *t, const mxi_config *c, size_t from, size_t row, int32_t *tokens, int32_t *target) {
  const size_t T = c->model.context;
  memcpy(tokens + row * T, t->tokens + from, T * sizeof *tokens);
  if (c->model.kind == MXI_BYTE_MLP)
    target[row] = t->tokens[from + T];
  else
    memcpy(target + row * T, t->tokens + from + 1, T * sizeof *target);
}

void mxi_text_batch(const mxi_text *t, const mxi_config *c, uint64_t s, int32_t *tokens, int32_t *target) {
  const size_t places = t->n_train - c->model.context;
  for (size_t i = 0; i < c->train.batch; i++) {
    const uint64_t row = s * c->train.batch + i;
    /* 64 random bits modulo the places: no place is likelier by more than places / 2^64. */
    const uint64_t draw =
        mx_random(c->train.seed_data, MX_STREAM_DATA, 2 * row) | (uint64_t)mx_random(c->train.seed_data, MX_STREAM_DATA, 2 * row + 1) << 32;
    window(t, c, (size_t)(c->data.order == MXI_SEQUENTIAL ? row * c->model.context % places : draw % places), i, tokens, target);
  }
}

/* Where the windows of the validation text may begin: with data.eval_rows they are spread over all places, otherwise they lie side by side. */
static size_t windows(size_t *stride, const mxi_text *t, const mxi_config *c) {
  const size_t T = c->model.context, rest = t->n - t->n_train, all = rest > T ? rest - T : 0;
  *stride = c->model.kind == MXI_BYTE_MLP ? 1 : T;
  if (!c->data.eval_rows) return all ? (all - 1) / *stride + 1 : 0;
  return all < c->data.eval_rows ? all : c->data.eval_rows;
}

size_t mxi_text_validation(const mxi_text *t, const mxi_config *c, uint64_t s, int32_t *tokens, int32_t *target) {
  const size_t B = c->train.batch, T = c->model.context, from = t->n_train;
  size_t stride;
  const size_t n = windows(&stride, t, c), first = s * B, rows = first >= n ? 0 : n - first < B ? n - first : B;
  if (!c->data.eval_rows && rows < B && s) return 0;
  for (size_t i = 0; i < B && rows; i++) {
    const size_t row = first + (i < rows ? i : 0);
    window(t, c, from + (c->data.eval_rows ? (size_t)((unsigned __int128)row * (t->n - from - T) / n) : row * stride), i, tokens, target);
  }
  return rows;
}
