/* Writes files of tensors: the tensors are declared, their space is claimed and filled, and then the file gets its name. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "io/base/cleanup.h"
#include "io/base/fd.h"
#include "io/base/watch.h"
#include "writer.h"

enum { GATHER = 1 << 18 }; /* pieces below this are collected into one write */

static mx_status failed(const mx_writer *w, mx_error *err, const char *what) {
  return mx_fail(err, MX_ERR_IO, "%s: %s: %s", w->path, what, strerror(errno));
}

static mx_status no_memory(const mx_writer *w, mx_error *err) { return mx_fail(err, MX_ERR_NOMEM, "%s: out of memory", w->path); }

static void free_writer(mx_writer *w) {
  if (w->fd >= 0) close(w->fd);
  mxi_io_drop_temporary(w->temporary, w->slot);
  for (size_t i = 0; i < w->n_tensors; i++) {
    free((char *)(uintptr_t)w->tensors[i].a.name);
    free(w->tensors[i].gather);
    XXH3_freeState(w->tensors[i].digest);
  }
  for (size_t i = 0; i < w->n_meta; i++) {
    free(w->meta[i].key);
    free(w->meta[i].value);
  }
  mxi_io_names_free(&w->tensor_names);
  mxi_io_names_free(&w->meta_keys);
  free(w->tensors);
  free(w->meta);
  free(w->temporary);
  free(w->target);
  free(w->path);
  free(w);
}

mx_status mx_writer_open(mx_writer **out, const char *path, mx_error *err) {
  if (!out || !path) return mx_fail(err, MX_ERR_ARG, "mx_writer_open: NULL argument");
  *out = NULL;
  int is_stdout = !strcmp(path, "-");
  struct stat st;
  int exists = !is_stdout && !stat(path, &st);
  int stream = is_stdout || (exists && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode));
  int npy = mxi_io_ends_with(path, ".npy");
  if (!stream && !npy && !mxi_io_ends_with(path, ".safetensors"))
    return mx_fail(err, MX_ERR_ARG, "%s: unknown kind of output, expected a name that ends in .npy or .safetensors, or -", path);
  mx_writer *w = calloc(1, sizeof *w);
  if (!w) return mx_fail(err, MX_ERR_NOMEM, "%s: out of memory", path);
  w->fd = w->slot = -1;
  w->npy = npy;
  w->stream = stream;
  w->path = strdup(is_stdout ? "standard output" : path);
  /* A link stays a link, and what it points to is replaced. */
  if (exists && !stream) w->target = realpath(path, NULL);
  if (!w->target) w->target = strdup(path);
  if (!w->path || !w->target) {
    free_writer(w);
    return mx_fail(err, MX_ERR_NOMEM, "%s: out of memory", path);
  }
  *out = w;
  return MX_OK;
}

int mx_writer_is_npy(const mx_writer *w) { return w->npy; }

/* Makes room for one more in an array that doubles when its count is a power of two. */
static void *grow(void *p, size_t n, size_t size) { return n & (n - 1) ? p : realloc(p, (n ? 2 * n : 1) * size); }

static int is_utf8(const char *s) {
  for (const unsigned char *p = (const unsigned char *)s; *p;) {
    int n = *p < 0x80 ? 0 : *p >= 0xc2 && *p < 0xe0 ? 1 : (*p & 0xf0) == 0xe0 ? 2 : *p >= 0xf0 && *p < 0xf5 ? 3 : -1;
    if (n < 0) return 0;
    if ((*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] > 0x9f) || (*p == 0xf0 && p[1] < 0x90) || (*p == 0xf4 && p[1] > 0x8f)) return 0;
    for (p++; n > 0; n--, p++)
      if ((*p & 0xc0) != 0x80) return 0;
  }
  return 1;
}

static const char *tensor_name(const void *set, size_t index) { return ((const mx_writer *)set)->tensors[index].a.name; }
static const char *meta_key(const void *set, size_t index) { return ((const mx_writer *)set)->meta[index].key; }

mx_status mx_writer_add(mx_writer *w, const char *name, mx_dtype dtype, int n_dims, const uint64_t *shape, size_t *index) {
  if (!w || w->fd >= 0 || !name || (n_dims && !shape) || !mx_dtype_bytes(dtype) || !is_utf8(name) || !strcmp(name, "__metadata__"))
    return MX_ERR_ARG;
  if (w->npy && (w->n_tensors || !*mx_dtype_npy(dtype))) return MX_ERR_UNSUPPORTED;
  if (n_dims < 0 || n_dims > MX_MAX_DIMS) return MX_ERR_SHAPE;
  if (mxi_io_names_find(&w->tensor_names, name, tensor_name, w) != SIZE_MAX) return MX_ERR_ARG;
  io_tensor t = {.a = {.dtype = dtype, .n_dims = n_dims}};
  if (n_dims) memcpy(t.a.shape, shape, (size_t)n_dims * sizeof *shape);
  if (!mxi_io_size_array(&t.a)) return MX_ERR_SHAPE;
  io_tensor *all = grow(w->tensors, w->n_tensors, sizeof *all);
  if (!all) return MX_ERR_NOMEM;
  w->tensors = all;
  t.a.name = strdup(name);
  t.digest = XXH3_createState();
  if (!t.a.name || !t.digest) {
    free((char *)(uintptr_t)t.a.name);
    XXH3_freeState(t.digest);
    return MX_ERR_NOMEM;
  }
  XXH3_128bits_reset(t.digest);
  all[w->n_tensors] = t;
  if (!mxi_io_names_add(&w->tensor_names, w->n_tensors, tensor_name, w)) {
    free((char *)(uintptr_t)t.a.name);
    XXH3_freeState(t.digest);
    return MX_ERR_NOMEM;
  }
  if (index) *index = w->n_tensors;
  w->n_tensors++;
  return MX_OK;
}

mx_status mx_writer_meta(mx_writer *w, const char *key, const char *value) {
  if (!w || w->fd >= 0 || !key || !value || !is_utf8(key) || !is_utf8(value) || !strncmp(key, "xxh3.", 5)) return MX_ERR_ARG;
  if (w->npy) return MX_ERR_UNSUPPORTED;
  if (mxi_io_names_find(&w->meta_keys, key, meta_key, w) != SIZE_MAX) return MX_ERR_ARG;
  io_meta *all = grow(w->meta, w->n_meta, sizeof *all);
  if (!all) return MX_ERR_NOMEM;
  w->meta = all;
  io_meta m = {strdup(key), strdup(value)};
  all[w->n_meta] = m;
  if (!m.key || !m.value || !mxi_io_names_add(&w->meta_keys, w->n_meta, meta_key, w)) {
    free(m.key);
    free(m.value);
    return MX_ERR_NOMEM;
  }
  w->n_meta++;
  return MX_OK;
}

/* Claims the space. If the file system cannot do that, it only checks how much is free, since posix_fallocate() would write every block once
 * for nothing. */
static mx_status claim(const mx_writer *w, mx_error *err) {
  int rc;
  do rc = fallocate(w->fd, 0, 0, (off_t)w->n_bytes);
  while (rc && errno == EINTR);
  if (!rc) return MX_OK;
  if (errno == EOPNOTSUPP || errno == ENOSYS) {
    struct statvfs fs;
    if (fstatvfs(w->fd, &fs) || (uint64_t)fs.f_bavail >= w->n_bytes / fs.f_frsize + 1) {
      if (!ftruncate(w->fd, (off_t)w->n_bytes)) return MX_OK;
    } else {
      errno = ENOSPC;
    }
  }
  return mx_fail(err, MX_ERR_IO, "%s: cannot claim %llu bytes: %s", w->path, (unsigned long long)w->n_bytes, strerror(errno));
}

static mx_status put(const mx_writer *w, const void *data, size_t n_bytes, uint64_t at, mx_error *err) {
  uint64_t done;
  if (!mxi_io_pwrite_all(w->fd, data, n_bytes, at, &done)) return MX_OK;
  return mx_fail(err, MX_ERR_IO, "%s: byte %llu: cannot write: %s", w->path, (unsigned long long)(at + done), strerror(errno));
}

mx_status mx_writer_begin(mx_writer *w, mx_error *err) {
  if (!w) return mx_fail(err, MX_ERR_ARG, "mx_writer_begin: NULL argument");
  if (w->fd >= 0) return mx_fail(err, MX_ERR_ARG, "%s: begun twice", w->path);
  if (w->npy && !w->n_tensors) return mx_fail(err, MX_ERR_ARG, "%s: no tensor, a .npy file holds one", w->path);
  uint8_t *header = NULL;
  size_t n_header = 0;
  mx_status s = w->npy ? mxi_io_layout_npy(w, &header, &n_header, err) : mxi_io_layout_safetensors(w, &header, &n_header, err);
  if (!s && w->stream) {
    w->fd = mxi_io_unnamed_file();
    if (w->fd < 0) s = failed(w, err, "cannot make a temporary file for the output");
  } else if (!s) {
    w->fd = mxi_io_create_beside(w->target, &w->temporary, &w->slot);
    if (w->fd < 0) s = failed(w, err, errno == EISDIR ? "cannot write" : "cannot create a file beside it");
  }
  if (!s) s = claim(w, err);
  if (!s) s = put(w, header, n_header, 0, err);
  free(header);
  return s;
}

static mx_status flush_gathered(const mx_writer *w, io_tensor *t, mx_error *err) {
  size_t n = (size_t)(t->taken - t->written);
  if (!n) return MX_OK;
  mx_status s = put(w, t->gather, n, t->at + t->written, err);
  if (!s) t->written = t->taken;
  return s;
}

mx_status mx_writer_write(mx_writer *w, size_t index, const void *data, size_t n_bytes, mx_error *err) {
  if (!w || w->fd < 0 || index >= w->n_tensors || (!data && n_bytes)) return mx_fail(err, MX_ERR_ARG, "mx_writer_write: invalid argument");
  io_tensor *t = &w->tensors[index];
  if (n_bytes > t->a.n_bytes - t->taken)
    return mx_fail(err, MX_ERR_SHAPE, "%s: tensor '%s' gets %llu bytes, expected %llu", w->path, t->a.name,
                   (unsigned long long)(t->taken + n_bytes), (unsigned long long)t->a.n_bytes);
  if (!n_bytes) return MX_OK;
  mx_status s = MX_OK;
  size_t gathered = (size_t)(t->taken - t->written);
  if (gathered + n_bytes > GATHER) s = flush_gathered(w, t, err);
  if (s) return s;
  if (!w->npy) XXH3_128bits_update(t->digest, data, n_bytes); /* a .npy file has no place for it */
  if (n_bytes >= GATHER) {
    s = put(w, data, n_bytes, t->at + t->written, err);
    t->taken = t->written += n_bytes;
    return s;
  }
  if (!t->gather && !(t->gather = malloc(GATHER))) return no_memory(w, err);
  memcpy(t->gather + (t->taken - t->written), data, n_bytes);
  t->taken += n_bytes;
  if (t->taken < t->a.n_bytes) return MX_OK;
  s = flush_gathered(w, t, err); /* so that many small tensors do not keep their buffers */
  free(t->gather);
  t->gather = NULL;
  return s;
}

static mx_status finish(const mx_writer *w, mx_error *err) {
  mx_status s = MX_OK;
  for (size_t i = 0; i < w->n_tensors && !s; i++) {
    io_tensor *t = &w->tensors[i];
    if (t->taken != t->a.n_bytes)
      return mx_fail(err, MX_ERR_SHAPE, "%s: tensor '%s' got %llu bytes, expected %llu", w->path, t->a.name, (unsigned long long)t->taken,
                     (unsigned long long)t->a.n_bytes);
    s = flush_gathered(w, t, err);
    if (s || w->npy) continue;
    char digits[33];
    mxi_io_digest_text(digits, XXH3_128bits_digest(t->digest));
    s = put(w, digits, 32, t->digest_at, err);
  }
  return s;
}

static mx_status copy_out(const mx_writer *w, mx_error *err) {
  int to = strcmp(w->target, "-") ? open(w->target, O_WRONLY | O_CLOEXEC) : STDOUT_FILENO;
  if (to < 0) return failed(w, err, "cannot open");
  mx_status s = MX_OK;
  uint64_t done = 0;
  void *bytes = mmap(NULL, (size_t)w->n_bytes, PROT_READ, MAP_SHARED, w->fd, 0);
  if (bytes == MAP_FAILED)
    s = failed(w, err, "cannot map the temporary file");
  else if (mxi_io_write_all(to, bytes, (size_t)w->n_bytes, &done))
    s = mx_fail(err, MX_ERR_IO, "%s: byte %llu: cannot write: %s", w->path, (unsigned long long)done, strerror(errno));
  if (bytes != MAP_FAILED) munmap(bytes, (size_t)w->n_bytes);
  if (to != STDOUT_FILENO && close(to) && !s) s = failed(w, err, "cannot write");
  return s;
}

static mx_status move(mx_writer *w, mx_error *err) {
  const int fd = w->fd;
  w->fd = -1;
  if (mxi_io_give_name(fd, w->temporary, w->target)) return failed(w, err, "cannot give the finished file its name");
  free(w->temporary);
  w->temporary = NULL;
  return MX_OK;
}

mx_status mx_writer_commit(mx_writer *w, mx_error *err) {
  if (!w) return mx_fail(err, MX_ERR_ARG, "mx_writer_commit: NULL argument");
  mx_status s = w->fd < 0 ? mx_fail(err, MX_ERR_ARG, "%s: not begun", w->path) : finish(w, err);
  if (!s) s = mxi_io_check_inputs(err);
  if (!s) s = w->stream ? copy_out(w, err) : move(w, err);
  free_writer(w);
  return s;
}

void mx_writer_abort(mx_writer *w) {
  if (w) free_writer(w);
}
