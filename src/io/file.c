/* Reads from open files, looks up their tensors and metadata, and closes them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/base/digest.h"
#include "io/base/fd.h"
#include "io.h"
#include "mxgold/nearest.h"
#include "io/base/watch.h"

/* Whether these bytes are in memory. */
static int holds(const mx_file *f, const uint8_t *at, uint64_t n_bytes) {
  return f && f->base && f->way != IO_HEAD && at >= f->base && at <= f->base + f->n_bytes && n_bytes <= f->n_bytes - (uint64_t)(at - f->base);
}

int mx_file_read(const mx_file *file, void *room, const void *data, uint64_t n_bytes) {
  if (!holds(file, data, n_bytes) || !file->opened) return -1;
  return mxi_io_pread_all(file->opened - 1, room, n_bytes, (uint64_t)((const uint8_t *)data - file->base)) == n_bytes ? 0 : -1;
}

mx_status mxi_io_shrank(const mx_file *f, mx_error *err) { return mx_fail(err, MX_ERR_IO, "%s shrank while being read", f->path); }

mx_status mx_array_read(void *room, const mx_array *a, uint64_t first, uint64_t n_bytes, mx_error *err) {
  if (!a || !a->file || (!room && n_bytes)) return mx_fail(err, MX_ERR_ARG, "mx_array_read: NULL argument");
  if (first > a->n_bytes || n_bytes > a->n_bytes - first)
    return mx_fail(err, MX_ERR_SHAPE, "%s: bytes %llu to %llu of tensor '%s', which has %llu", a->file->path, (unsigned long long)first,
                   (unsigned long long)(first + n_bytes), a->name, (unsigned long long)a->n_bytes);
  if (!n_bytes) return MX_OK;
  if (!a->file->opened) {
    memcpy(room, a->data + first, n_bytes);
    return MX_OK;
  }
  const uint64_t got = mxi_io_pread_all(a->file->opened - 1, room, n_bytes, a->at + first);
  if (got == n_bytes) return MX_OK;
  return errno ? mx_fail(err, MX_ERR_IO, "%s: cannot read: %s", a->file->path, strerror(errno)) : mxi_io_shrank(a->file, err);
}

void mx_file_release(const mx_file *file, const void *data, uint64_t n_bytes) {
  const uint8_t *at = data;
  if (!holds(file, at, n_bytes) || file->way != IO_MAPPED) return;
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = ((uintptr_t)at + page - 1) / page * page,
                  end = ((uintptr_t)at + n_bytes) / page * page;
  if (first < end)
    madvise((void *)first, end - first, MADV_DONTNEED); /* the mapping is private and never written, so it reads the same again */
}

static const char *array_name(const void *set, size_t index) { return ((const mx_file *)set)->arrays[index].name; }
static const char *meta_key(const void *set, size_t index) { return ((const mx_file *)set)->meta[index].key; }

int mxi_io_index_names(mx_file *f) {
  int good = 1;
  for (size_t i = 0; i < f->n_arrays && good; i++) good = mxi_io_names_add(&f->array_names, i, array_name, f);
  for (size_t i = 0; i < f->n_meta && good; i++) good = mxi_io_names_add(&f->meta_keys, i, meta_key, f);
  return good;
}

void mxi_io_free_parsed(mx_file *f) {
  for (size_t i = 0; i < f->n_arrays; i++) free((char *)(uintptr_t)f->arrays[i].name);
  for (size_t i = 0; i < f->n_meta; i++) {
    free(f->meta[i].key);
    free(f->meta[i].value);
  }
  mxi_io_free_vectors(f);
  free(f->arrays);
  free(f->meta);
  mxi_io_names_free(&f->array_names);
  mxi_io_names_free(&f->meta_keys);
}

void mxi_io_let_go(const mx_file *f) {
  if (f->base && f->way == IO_MAPPED) {
    mxi_io_unwatch(f->base);
    munmap((void *)(uintptr_t)f->base, f->n_bytes);
  }
  if (f->way != IO_MAPPED) free((void *)(uintptr_t)f->base);
  if (f->opened) close(f->opened - 1);
}

void mx_file_close(mx_file *f) {
  if (!f) return;
  mxi_io_free_parsed(f);
  mxi_io_let_go(f);
  free(f->path);
  free(f);
}

size_t mx_file_count(const mx_file *f) { return f->n_arrays; }
const mx_array *mx_file_at(const mx_file *f, size_t index) { return index < f->n_arrays ? &f->arrays[index] : NULL; }
const char *mx_file_path(const mx_file *f) { return f->path; }
size_t mx_file_meta_count(const mx_file *f) { return f->n_meta; }

const char *mx_file_meta_at(const mx_file *f, size_t index, const char **value) {
  if (value) *value = index < f->n_meta ? f->meta[index].value : NULL;
  return index < f->n_meta ? f->meta[index].key : NULL;
}

const char *mx_file_meta(const mx_file *f, const char *key) {
  if (f->meta_keys.n) {
    const size_t at = mxi_io_names_find(&f->meta_keys, key, meta_key, f);
    return at == SIZE_MAX ? NULL : f->meta[at].value;
  }
  for (size_t i = 0; i < f->n_meta; i++)
    if (!strcmp(f->meta[i].key, key)) return f->meta[i].value;
  return NULL;
}

static const char *name_at(const void *file, size_t index) {
  const mx_array *a = mx_file_at(file, index);
  return a ? a->name : NULL;
}

mx_status mx_file_find(const mx_array **out, const mx_file *f, const char *name, mx_error *err) {
  *out = NULL;
  if (!name || !*name) {
    if (f->n_arrays == 1) *out = f->arrays;
    if (f->n_arrays == 1) return MX_OK;
    if (!f->n_arrays) return mx_fail(err, MX_ERR_KEY, "%s: no tensor, expected one", f->path);
    return mx_fail(err, MX_ERR_KEY, "%s: %zu tensors, expected the name of one after a colon, such as :%s", f->path, f->n_arrays,
                   f->arrays[0].name);
  }
  size_t at = mxi_io_names_find(&f->array_names, name, array_name, f);
  for (size_t i = 0; i < f->n_arrays && !f->array_names.n; i++)
    if (!strcmp(f->arrays[i].name, name)) at = i;
  if (at != SIZE_MAX) {
    *out = &f->arrays[at];
    return MX_OK;
  }
  char near[160];
  if (!mx_nearest(near, sizeof near, name, name_at, f) || !*near) return mx_fail(err, MX_ERR_KEY, "%s: no tensor '%s'", f->path, name);
  return mx_fail(err, MX_ERR_KEY, "%s: no tensor '%s', nearest: %s", f->path, name, near);
}

/* Reads one piece at a time instead of mapping: for bytes that are needed once this is cheaper, and they do not stay in the process. */
mx_status mx_array_digest(char out[33], const mx_array *a, mx_error *err) {
  enum { PIECE = 1 << 18 };
  XXH3_state_t *state = XXH3_createState();
  uint8_t *piece = malloc(PIECE);
  mx_status s = state && piece ? MX_OK : mx_fail(err, MX_ERR_NOMEM, "%s: out of memory", a->file->path);
  if (!s) XXH3_128bits_reset(state);
  for (uint64_t at = 0; at < a->n_bytes && !s; at += PIECE) {
    const uint64_t left = a->n_bytes - at, n = left < PIECE ? left : PIECE;
    s = mx_array_read(piece, a, at, n, err);
    if (!s) XXH3_128bits_update(state, piece, n);
  }
  if (!s) mxi_io_digest_text(out, XXH3_128bits_digest(state));
  free(piece);
  XXH3_freeState(state);
  return s;
}

const char *mx_file_stated_digest(const mx_file *f, const mx_array *a) {
  char key[512];
  if (snprintf(key, sizeof key, "xxh3.%s", a->name) >= (int)sizeof key) return NULL;
  return mx_file_meta(f, key);
}

mx_status mx_file_check_digests(const mx_file *f, mx_error *err) {
  for (size_t i = 0; i < f->n_arrays; i++) {
    const mx_array *a = &f->arrays[i];
    const char *stated = mx_file_stated_digest(f, a);
    char digest[33];
    if (!stated) continue;
    const mx_status s = mx_array_digest(digest, a, err);
    if (s) return s;
    if (strcmp(stated, digest))
      return mx_fail(err, MX_ERR_FORMAT, "%s: tensor '%s' has digest %s, expected the %.40s that the file states: its bytes were changed",
                     f->path, a->name, digest, stated);
  }
  return MX_OK;
}
