/* Opens files: finds out where their bytes come from, and what kind of file they are. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "io/base/fd.h"
#include "io.h"
#include "io/base/watch.h"

enum { PREFIX = 12, PIECE = 1 << 20 };
/* No header may be longer than that of .safetensors, so no more than this is read of one. */
enum { MOST_HEADER = 100000000 + 8 };
/* Text does not state its length, so no more than this is copied from an input that is not a file. */
#define MOST_TEXT (UINT64_C(1) << 32)

/* What the caller says about a file, apart from its name. */
typedef struct form {
  mx_access access;
  const mx_array *raw; /* bytes without a header, of this dtype and shape; NULL: the file says what it is */
} form;

static mx_status io_failed(const mx_file *f, mx_error *err, const char *what) {
  return mx_fail(err, MX_ERR_IO, "%s: %s: %s", f->path, what, strerror(errno));
}

static mx_status no_memory(const mx_file *f, mx_error *err) { return mx_fail(err, MX_ERR_NOMEM, "%s: out of memory", f->path); }

mx_status mxi_io_parse(mx_file *f, mx_error *err) {
  if (f->n_bytes >= 6 && !memcmp(f->base, "\x93NUMPY", 6)) return mxi_io_parse_npy(f, err);
  if (f->n_bytes > 8 && f->base[8] == '{') return mxi_io_parse_safetensors(f, err);
  if (f->n_bytes && mxi_io_is_mxv(f->base, f->n_bytes)) return mxi_io_parse_mxv(f, err);
  /* No kind was recognised, so the end of the name decides which parser reports the error. */
  if (mxi_io_ends_with(f->path, ".npy")) return mxi_io_parse_npy(f, err);
  if (mxi_io_ends_with(f->path, ".safetensors")) return mxi_io_parse_safetensors(f, err);
  if (mxi_io_ends_with(f->path, ".mxv")) return mxi_io_parse_mxv(f, err);
  return mxi_io_malformed(f, err, 0, "unknown kind of file, expected the magic of .npy or the header of .safetensors or .mxv");
}

/* The number of bytes up to the end of the header, according to its first bytes; PREFIX if they do not say it, which the parser will find
 * out. */
static uint64_t header_bytes(const uint8_t *p) {
  uint64_t n = 0;
  if (!memcmp(p, "\x93NUMPY", 6))
    n = p[6] == 1 ? 10 + (p[8] | (uint64_t)p[9] << 8) : 12 + (io_read_u64(p + 4) >> 32);
  else if (p[8] == '{')
    n = io_read_u64(p) < MOST_HEADER ? 8 + io_read_u64(p) : MOST_HEADER;
  return n < PREFIX ? PREFIX : n < MOST_HEADER ? n : MOST_HEADER;
}

typedef struct bytes {
  uint8_t *at;
  size_t n;
} bytes;

/* Reads up to n more bytes: from the current position of an input, or of a file from those that follow the ones already read. */
static mx_status more(bytes *b, const mx_file *f, int fd, int stands, size_t n, mx_error *err) {
  uint8_t *at = realloc(b->at, b->n + n + 1);
  if (!at) return no_memory(f, err);
  b->at = at;
  for (size_t end = b->n + n; b->n < end;) {
    const ssize_t got = stands ? read(fd, at + b->n, end - b->n) : pread(fd, at + b->n, end - b->n, (off_t)b->n);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return io_failed(f, err, "cannot read");
    if (!got) break;
    b->n += (size_t)got;
  }
  return MX_OK;
}

/* A header that claims to be long is read in growing steps, so that memory is only allocated for bytes that exist. */
static mx_status read_header(bytes *b, const mx_file *f, int fd, int stands, mx_error *err) {
  mx_status s = more(b, f, fd, stands, PREFIX, err);
  const size_t end = !s && b->n == PREFIX ? (size_t)header_bytes(b->at) : 0;
  for (size_t before = 0; !s && b->n < end && b->n > before;) {
    before = b->n;
    s = more(b, f, fd, stands, end - b->n < PIECE ? end - b->n : PIECE, err);
  }
  return s;
}

/* Finds the length of an input of unknown size from its header, and refuses an unusable header. */
static mx_status stated_bytes(uint64_t *stated, const mx_file *f, const bytes *head, mx_error *err) {
  mx_file g = {.path = f->path, .base = head->at, .n_bytes = head->n, .way = IO_HEAD, .open_ended = 1};
  const mx_status s = mxi_io_parse(&g, err);
  mxi_io_free_parsed(&g);
  *stated = g.n_bytes;
  return s;
}

/* Checks that there is room for it; if the file system does not say, the write will fail. */
static mx_status check_room(const mx_file *f, int fd, uint64_t stated, mx_error *err) {
  struct statvfs fs;
  if (fstatvfs(fd, &fs) || (uint64_t)fs.f_bavail >= stated / fs.f_frsize + 1) return MX_OK;
  const char *dir = getenv("TMPDIR");
  return mx_fail(err, MX_ERR_IO,
                 "%s: states %llu bytes, expected at most the %llu that are free in %s, where an input that is not a file is copied to",
                 f->path, (unsigned long long)stated, (unsigned long long)fs.f_bavail * fs.f_frsize, dir && *dir ? dir : "/tmp");
}

static mx_status copy_rest(const mx_file *f, int from, int to, uint64_t left, mx_error *err) {
  char *piece = malloc(PIECE);
  mx_status s = piece ? MX_OK : no_memory(f, err);
  while (!s && left) {
    const ssize_t got = read(from, piece, left < PIECE ? (size_t)left : PIECE);
    uint64_t done;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) s = io_failed(f, err, "cannot read");
    if (got <= 0) break;
    if (mxi_io_write_all(to, piece, (size_t)got, &done)) s = io_failed(f, err, "cannot copy the input to a temporary file");
    left -= (uint64_t)got;
  }
  free(piece);
  return s;
}

/* Checks that nothing follows the stated bytes. */
static mx_status check_end(const mx_file *f, const form *how, int from, uint64_t stated, mx_error *err) {
  char one;
  ssize_t got;
  do got = read(from, &one, 1);
  while (got < 0 && errno == EINTR);
  if (got < 0) return io_failed(f, err, "cannot read");
  if (!got) return MX_OK;
  if (how->raw)
    return mxi_io_malformed(f, err, stated, "there is more, expected the %llu bytes of the stated shape of %s", (unsigned long long)stated,
                            mx_dtype_name(how->raw->dtype));
  return mxi_io_malformed(f, err, stated, "there is more after the data, expected the end of the input");
}

/* Copies an input that cannot be read twice to a file without a name: as many bytes as its header states. */
static mx_status spool(const mx_file *f, const form *how, int from, int *to, mx_error *err) {
  bytes head = {0};
  uint64_t stated = how->raw ? how->raw->n_bytes : 0, done;
  mx_status s = how->raw ? MX_OK : read_header(&head, f, from, 1, err);
  const int short_of_header = !s && !how->raw && head.n < PREFIX; /* nothing more comes, so the parser reports what is missing */
  const int is_text = !s && !how->raw && mxi_io_is_mxv(head.at, head.n);
  if (!s && !how->raw && !short_of_header && !is_text) s = stated_bytes(&stated, f, &head, err);
  if (is_text) stated = MOST_TEXT;
  if (!s && (*to = mxi_io_unnamed_file()) < 0) s = io_failed(f, err, "cannot make a temporary file for the input");
  if (!s && !is_text) s = check_room(f, *to, stated, err);
  if (!s && mxi_io_write_all(*to, head.at, head.n, &done)) s = io_failed(f, err, "cannot copy the input to a temporary file");
  if (!s && !short_of_header && stated > head.n) s = copy_rest(f, from, *to, stated - head.n, err);
  if (!s && !short_of_header) s = check_end(f, how, from, stated, err);
  free(head.at);
  return s;
}

/* Reads all of the file into allocated memory. */
static mx_status hold(mx_file *f, int fd, int why, mx_error *err) {
  uint8_t *all = malloc(f->n_bytes);
  if (!all) {
    errno = why;
    return io_failed(f, err, "cannot be mapped, and does not fit into memory");
  }
  f->base = all;
  f->way = IO_HELD;
  if (mxi_io_pread_all(fd, all, f->n_bytes, 0) == f->n_bytes) return MX_OK;
  return errno ? io_failed(f, err, "cannot read") : mxi_io_shrank(f, err);
}

static mx_status reach(mx_file *f, const form *how, int fd, mx_error *err) {
  f->opened = fcntl(fd, F_DUPFD_CLOEXEC, 3) + 1;
  if (how->access == MX_BY_READING) {
    if (!f->opened) return io_failed(f, err, "cannot keep it open");
    bytes head = {0};
    const mx_status s = how->raw ? MX_OK : read_header(&head, f, fd, 0, err);
    f->base = head.at;
    f->way = IO_HEAD;
    if (s || how->raw) return s;
    if (mxi_io_is_mxv(head.at, head.n)) { /* it is text, all of which is needed */
      const mx_status all = more(&head, f, fd, 0, f->n_bytes - head.n, err);
      f->base = head.at;
      return all ? all : head.n < f->n_bytes ? mxi_io_shrank(f, err) : MX_OK;
    }
    const uint64_t end = head.n < PREFIX ? PREFIX : header_bytes(head.at);
    return head.n < (end < f->n_bytes ? end : f->n_bytes) ? mxi_io_shrank(f, err) : MX_OK;
  }
  void *base = mmap(NULL, f->n_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
  if (base == MAP_FAILED) return hold(f, fd, errno, err);
  f->base = base;
  madvise(base, f->n_bytes, MADV_SEQUENTIAL); /* only advice, so failure does not matter */
  mxi_io_watch(f->path, f->base, f->n_bytes, f->opened - 1);
  return MX_OK;
}

static mx_status find_bytes(mx_file *f, const form *how, int fd, mx_error *err) {
  struct stat st;
  if (fstat(fd, &st)) return io_failed(f, err, "cannot read");
  if (S_ISDIR(st.st_mode)) {
    errno = EISDIR;
    return io_failed(f, err, "cannot read");
  }
  int spooled = -1;
  mx_status s = MX_OK;
  /* Standard input may be a file whose start another program has read; that start is not part of the input. */
  if (!S_ISREG(st.st_mode) || lseek(fd, 0, SEEK_CUR) > 0) {
    s = spool(f, how, fd, &spooled, err);
    if (!s && fstat(spooled, &st)) s = io_failed(f, err, "cannot read");
  }
  if (!s) f->n_bytes = (size_t)st.st_size;
  if (!s && f->n_bytes) s = reach(f, how, spooled >= 0 ? spooled : fd, err);
  if (spooled >= 0) close(spooled);
  return s;
}

static mx_status parse_raw(mx_file *f, const mx_array *raw, mx_error *err) {
  if (raw->n_bytes != f->n_bytes)
    return mxi_io_malformed(f, err, f->n_bytes < raw->n_bytes ? f->n_bytes : raw->n_bytes,
                            "the file holds %llu bytes, expected %llu of the stated shape of %s", (unsigned long long)f->n_bytes,
                            (unsigned long long)raw->n_bytes, mx_dtype_name(raw->dtype));
  if (!(f->arrays = calloc(1, sizeof *f->arrays))) return no_memory(f, err);
  f->arrays[0] = *raw;
  f->arrays[0].data = f->base;
  f->arrays[0].name = strdup("");
  if (!f->arrays[0].name) return no_memory(f, err);
  f->n_arrays = 1;
  return MX_OK;
}

/* Drops the text, whose numbers are in memory. */
static void leave_text(mx_file *f) {
  mxi_io_let_go(f);
  f->base = NULL;
  f->n_bytes = 0;
  f->opened = 0;
  f->way = IO_HELD;
  for (size_t i = 0; i < f->n_arrays; i++) f->arrays[i].file = f;
}

/* Sets the arrays' places in the file; under MX_BY_READING they have no data in memory. */
static void place(mx_file *f) {
  for (size_t i = 0; i < f->n_arrays; i++) {
    mx_array *a = &f->arrays[i];
    a->file = f;
    a->at = a->data ? (uint64_t)((uintptr_t)a->data - (uintptr_t)f->base) : 0;
    if (f->way == IO_HEAD) a->data = NULL;
  }
}

static mx_status open_file(mx_file **out, const char *path, const form *how, mx_error *err) {
  *out = NULL;
  mx_file *f = calloc(1, sizeof *f);
  const int is_stdin = !strcmp(path, "-");
  if (f) f->path = strdup(is_stdin ? "standard input" : path);
  if (!f || !f->path) {
    free(f);
    return mx_fail(err, MX_ERR_NOMEM, "%s: out of memory", path);
  }
  const int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
  mx_status s = fd < 0 ? io_failed(f, err, "cannot open") : find_bytes(f, how, fd, err);
  if (fd >= 0 && !is_stdin) close(fd);
  if (!s) s = how->raw ? parse_raw(f, how->raw, err) : mxi_io_parse(f, err);
  if (!s && !mxi_io_index_names(f)) s = no_memory(f, err);
  if (s) {
    mx_file_close(f);
    return s;
  }
  if (f->vectors)
    leave_text(f);
  else
    place(f);
  *out = f;
  return MX_OK;
}

mx_status mx_file_open_by(mx_file **out, const char *path, mx_access access, mx_error *err) {
  if (!out || !path) return mx_fail(err, MX_ERR_ARG, "mx_file_open: NULL argument");
  return open_file(out, path, &(form){access, NULL}, err);
}

mx_status mx_file_open(mx_file **out, const char *path, mx_error *err) { return mx_file_open_by(out, path, MX_BY_MAPPING, err); }

mx_status mx_file_open_raw_by(mx_file **out, const char *path, mx_dtype dtype, const uint64_t *shape, int n_dims, mx_access access,
                              mx_error *err) {
  if (!out || !path || (!shape && n_dims) || !mx_dtype_bytes(dtype))
    return mx_fail(err, MX_ERR_ARG, "mx_file_open_raw: NULL or unknown argument");
  *out = NULL;
  mx_array a = {.dtype = dtype, .n_dims = n_dims};
  if (n_dims < 0 || n_dims > MX_MAX_DIMS)
    return mx_fail(err, MX_ERR_SHAPE, "%s: %d dimensions, expected at most %d", path, n_dims, MX_MAX_DIMS);
  if (n_dims) memcpy(a.shape, shape, (size_t)n_dims * sizeof *shape);
  if (!mxi_io_size_array(&a))
    return mx_fail(err, MX_ERR_SHAPE, "%s: the shape overflows, expected a product of dimensions below 2^63 bytes", path);
  return open_file(out, path, &(form){access, &a}, err);
}

mx_status mx_file_open_raw(mx_file **out, const char *path, mx_dtype dtype, const uint64_t *shape, int n_dims, mx_error *err) {
  return mx_file_open_raw_by(out, path, dtype, shape, n_dims, MX_BY_MAPPING, err);
}

/* "FILE:TENSOR" is split after ".safetensors", so that names of tensors may contain colons, and other names (a pipe, no ending) at the last
 * colon. A file with exactly that name takes precedence. */
static size_t split_at(const char *spec) {
  if (!access(spec, F_OK)) return strlen(spec);
  const char *end = strstr(spec, ".safetensors:");
  if (end) return (size_t)(end - spec) + strlen(".safetensors");
  end = strrchr(spec, ':');
  return end ? (size_t)(end - spec) : strlen(spec);
}

mx_status mx_tensor_open(mx_file **file, const mx_array **array, const char *spec, mx_error *err) {
  return mx_tensor_open_by(file, array, spec, MX_BY_MAPPING, err);
}

mx_status mx_tensor_open_by(mx_file **file, const mx_array **array, const char *spec, mx_access access, mx_error *err) {
  if (!file || !array || !spec) return mx_fail(err, MX_ERR_ARG, "mx_tensor_open: NULL argument");
  *file = NULL;
  *array = NULL;
  size_t n = split_at(spec);
  char *path = strndup(spec, n);
  if (!path) return mx_fail(err, MX_ERR_NOMEM, "%s: out of memory", spec);
  mx_status s = mx_file_open_by(file, path, access, err);
  free(path);
  if (s) return s;
  s = mx_file_find(array, *file, spec[n] ? spec + n + 1 : NULL, err);
  if (!s) return MX_OK;
  mx_file_close(*file);
  *file = NULL;
  return s;
}
