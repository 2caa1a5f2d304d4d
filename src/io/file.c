/* Opening files: map, recognise, look up. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"
#include "mxgold/nearest.h"

static mx_status io_failed(const mx_file *f, mx_error *err, const char *what) {
  return mx_fail(err, MX_ERR_IO, "%s: %s: %s", f->path, what, strerror(errno));
}

/* A pipe can't be mapped: copy it to a file that has no name. */
static mx_status spool(const mx_file *f, int from, int *to, mx_error *err) {
  enum { PIECE = 1 << 20 };
  if ((*to = mxi_io_unnamed_file()) < 0) return io_failed(f, err, "cannot make a temporary file for the input");
  char *piece = malloc(PIECE);
  mx_status s = piece ? MX_OK : mx_fail(err, MX_ERR_NOMEM, "%s: out of memory", f->path);
  while (!s) {
    ssize_t got = read(from, piece, PIECE);
    uint64_t done;
    if (got == 0) break;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      s = io_failed(f, err, "cannot read");
    else if (mxi_io_write_all(*to, piece, (size_t)got, &done))
      s = io_failed(f, err, "cannot copy the input to a temporary file");
  }
  free(piece);
  return s;
}

static mx_status map(mx_file *f, int fd, mx_error *err) {
  struct stat st;
  if (fstat(fd, &st)) return io_failed(f, err, "cannot read");
  if (S_ISDIR(st.st_mode)) {
    errno = EISDIR;
    return io_failed(f, err, "cannot read");
  }
  int spooled = -1;
  mx_status s = MX_OK;
  /* Standard input may be a file that someone has read the start of: that start is not ours. */
  if (!S_ISREG(st.st_mode) || lseek(fd, 0, SEEK_CUR) > 0) {
    s = spool(f, fd, &spooled, err);
    if (!s && fstat(spooled, &st)) s = io_failed(f, err, "cannot read");
  }
  if (!s && st.st_size > 0) {
    void *base = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, spooled >= 0 ? spooled : fd, 0);
    if (base == MAP_FAILED) {
      s = io_failed(f, err, "cannot map");
    } else {
      f->base = base;
      f->n_bytes = (size_t)st.st_size;
      madvise(base, f->n_bytes, MADV_SEQUENTIAL); /* advice: no matter if it is not taken */
      f->opened = fcntl(spooled >= 0 ? spooled : fd, F_DUPFD_CLOEXEC, 3) + 1;
    }
  }
  if (spooled >= 0) close(spooled);
  return s;
}

/* Is that in the mapping? */
static int holds(const mx_file *f, const uint8_t *at, uint64_t n_bytes) {
  return f && f->base && at >= f->base && at <= f->base + f->n_bytes && n_bytes <= f->n_bytes - (uint64_t)(at - f->base);
}

int mx_file_read(const mx_file *file, void *room, const void *data, uint64_t n_bytes) {
  uint8_t *to = room;
  if (!holds(file, data, n_bytes) || !file->opened) return -1;
  for (uint64_t done = 0, from = (uint64_t)((const uint8_t *)data - file->base); done < n_bytes;) {
    const ssize_t got = pread(file->opened - 1, to + done, n_bytes - done, (off_t)(from + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return -1;
    done += (uint64_t)got;
  }
  return 0;
}

void mx_file_release(const mx_file *file, const void *data, uint64_t n_bytes) {
  const uint8_t *at = data;
  if (!holds(file, at, n_bytes)) return;
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = ((uintptr_t)at + page - 1) / page * page,
                  end = ((uintptr_t)at + n_bytes) / page * page;
  if (first < end) madvise((void *)first, end - first, MADV_DONTNEED); /* private, never written: it reads the same again */
}

static int ends_with(const char *s, const char *end) {
  size_t n = strlen(s), m = strlen(end);
  return n >= m && !strcmp(s + n - m, end);
}

mx_status mxi_io_parse(mx_file *f, mx_error *err) {
  if (f->n_bytes >= 6 && !memcmp(f->base, "\x93NUMPY", 6)) return mxi_io_parse_npy(f, err);
  if (f->n_bytes > 8 && f->base[8] == '{') return mxi_io_parse_safetensors(f, err);
  /* Neither: let the ending choose the message. */
  if (ends_with(f->path, ".npy")) return mxi_io_parse_npy(f, err);
  if (ends_with(f->path, ".safetensors")) return mxi_io_parse_safetensors(f, err);
  return mxi_io_malformed(f, err, 0, "unknown kind of file, expected the magic of .npy or the header of .safetensors");
}

static mx_status open_mapped(mx_file **out, const char *path, mx_error *err) {
  *out = NULL;
  mx_file *f = calloc(1, sizeof *f);
  int is_stdin = !strcmp(path, "-");
  if (f) f->path = strdup(is_stdin ? "standard input" : path);
  if (!f || !f->path) {
    free(f);
    return mx_fail(err, MX_ERR_NOMEM, "%s: out of memory", path);
  }
  int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
  mx_status s = fd < 0 ? io_failed(f, err, "cannot open") : map(f, fd, err);
  if (fd >= 0 && !is_stdin) close(fd);
  if (s)
    mx_file_close(f);
  else
    *out = f;
  return s;
}

mx_status mx_file_open(mx_file **out, const char *path, mx_error *err) {
  if (!out || !path) return mx_fail(err, MX_ERR_ARG, "mx_file_open: NULL argument");
  mx_file *f;
  mx_status s = open_mapped(&f, path, err);
  *out = NULL;
  if (!s) s = mxi_io_parse(f, err);
  if (s)
    mx_file_close(f);
  else
    *out = f;
  return s;
}

mx_status mx_file_open_raw(mx_file **out, const char *path, mx_dtype dtype, const uint64_t *shape, int n_dims, mx_error *err) {
  if (!out || !path || (!shape && n_dims) || !mx_dtype_bytes(dtype))
    return mx_fail(err, MX_ERR_ARG, "mx_file_open_raw: NULL or unknown argument");
  *out = NULL;
  mx_array a = {.dtype = dtype, .n_dims = n_dims};
  if (n_dims < 0 || n_dims > MX_MAX_DIMS)
    return mx_fail(err, MX_ERR_SHAPE, "%s: %d dimensions, expected at most %d", path, n_dims, MX_MAX_DIMS);
  if (n_dims) memcpy(a.shape, shape, (size_t)n_dims * sizeof *shape);
  if (!mxi_io_size_array(&a))
    return mx_fail(err, MX_ERR_SHAPE, "%s: the shape overflows, expected a product of dimensions below 2^63 bytes", path);
  mx_file *f;
  mx_status s = open_mapped(&f, path, err);
  if (s) return s;
  if (f->n_bytes != a.n_bytes) {
    s = mxi_io_malformed(f, err, f->n_bytes < a.n_bytes ? f->n_bytes : a.n_bytes,
                         "the file holds %llu bytes, expected %llu of the stated shape of %s", (unsigned long long)f->n_bytes,
                         (unsigned long long)a.n_bytes, mx_dtype_name(dtype));
  } else if (!(f->arrays = malloc(sizeof a)) || !(a.name = strdup(""))) {
    s = mx_fail(err, MX_ERR_NOMEM, "%s: out of memory", path);
  } else {
    a.data = f->base;
    f->arrays[0] = a;
    f->n_arrays = 1;
  }
  if (s)
    mx_file_close(f);
  else
    *out = f;
  return s;
}

void mxi_io_free_parsed(mx_file *f) {
  for (size_t i = 0; i < f->n_arrays; i++) free((char *)(uintptr_t)f->arrays[i].name);
  for (size_t i = 0; i < f->n_meta; i++) {
    free(f->meta[i].key);
    free(f->meta[i].value);
  }
  free(f->arrays);
  free(f->meta);
}

void mx_file_close(mx_file *f) {
  if (!f) return;
  mxi_io_free_parsed(f);
  if (f->base) munmap((void *)(uintptr_t)f->base, f->n_bytes);
  if (f->opened) close(f->opened - 1);
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
  for (size_t i = 0; i < f->n_arrays; i++)
    if (!strcmp(f->arrays[i].name, name)) {
      *out = &f->arrays[i];
      return MX_OK;
    }
  char near[160];
  if (!mx_nearest(near, sizeof near, name, name_at, f) || !*near) return mx_fail(err, MX_ERR_KEY, "%s: no tensor '%s'", f->path, name);
  return mx_fail(err, MX_ERR_KEY, "%s: no tensor '%s', nearest: %s", f->path, name, near);
}

/* "FILE:TENSOR" is split after ".safetensors", so that tensor names may hold colons; other names (a pipe, no ending) at the last colon. A file
 * that has just that name goes first. */
static size_t split_at(const char *spec) {
  if (!access(spec, F_OK)) return strlen(spec);
  const char *end = strstr(spec, ".safetensors:");
  if (end) return (size_t)(end - spec) + strlen(".safetensors");
  end = strrchr(spec, ':');
  return end ? (size_t)(end - spec) : strlen(spec);
}

mx_status mx_tensor_open(mx_file **file, const mx_array **array, const char *spec, mx_error *err) {
  if (!file || !array || !spec) return mx_fail(err, MX_ERR_ARG, "mx_tensor_open: NULL argument");
  *file = NULL;
  *array = NULL;
  size_t n = split_at(spec);
  char *path = strndup(spec, n);
  if (!path) return mx_fail(err, MX_ERR_NOMEM, "%s: out of memory", spec);
  mx_status s = mx_file_open(file, path, err);
  free(path);
  if (s) return s;
  s = mx_file_find(array, *file, spec[n] ? spec + n + 1 : NULL, err);
  if (!s) return MX_OK;
  mx_file_close(*file);
  *file = NULL;
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
    mx_digest(digest, a->data, a->n_bytes);
    if (strcmp(stated, digest))
      return mx_fail(err, MX_ERR_FORMAT, "%s: tensor '%s' has digest %s, expected the %.40s that the file states: its bytes were changed",
                     f->path, a->name, digest, stated);
  }
  return MX_OK;
}
