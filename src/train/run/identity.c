/* Makes one hash of everything that decides the bits of a run. */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "mxgold/file.h"
#include "mxgold/gemm.h"
#include "train/run/config.h"
#include "train/run/files.h"

/* A file counts by the digest of its bytes: where it lies decides nothing. */
static mx_status put_digest(json_t *into, const char *key, const char *path, mx_error *err) {
  uint8_t *bytes;
  size_t n;
  char digest[33];
  const mx_status status = mxi_read_bytes(&bytes, &n, path, err);
  if (status) return status;
  mx_digest(digest, bytes, n);
  free(bytes);
  return json_object_set_new(into, key, json_string(digest)) ? mx_fail(err, MX_ERR_NOMEM, "out of memory") : MX_OK;
}

mx_status mx_train_identity(char id[33], const mx_train_options *options, mx_error *err) {
  mxi_config c;
  if (!id || !options || !options->config) return mx_fail(err, MX_ERR_ARG, "NULL argument");
  mx_status status = mxi_config_read(&c, options->config, options->set, options->n_set, err);
  if (status) return status;
  json_t *all = json_deep_copy(c.json);
  json_object_del(all, "quant"); /* as it was written; "resolved" says what it came to */
  json_t *data = json_object_get(all, "data");
  const char *const files[] = {c.data.text, c.data.file}, *const keys[] = {"text", "file"};
  for (int i = 0; i < 2 && !status; i++)
    if (files[i]) status = put_digest(data, keys[i], files[i], err);
  if (!status && options->init) status = put_digest(all, "init", options->init, err);
  char *text = status ? NULL : json_dumps(all, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
  if (text) mx_digest(id, text, strlen(text));
  if (!status && !text) status = mx_fail(err, MX_ERR_NOMEM, "out of memory");
  free(text);
  json_decref(all);
  mxi_config_free(&c);
  return status;
}
