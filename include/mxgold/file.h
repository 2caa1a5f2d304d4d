/** Reads files of tensors (.npy, .safetensors, raw bytes) and writes them (.npy, .safetensors).
 *
 *  Reading maps the file, so a tensor larger than memory costs address space only; a file that cannot be mapped (because of a limit on address
 *  space or of its file system) is read into memory. If another process truncates a mapped file, reading what is gone makes the system send
 *  SIGBUS to the thread that reads, or gives zeros up to the end of the last page. The library installs no handler unless
 *  mx_file_install_guard() is called. A program that must not be ended by what others do to its files opens them with MX_BY_READING, where a
 *  file that shrank is an error.
 *  An input without a size of its own, a pipe or a device, is first copied to an unnamed file in $TMPDIR (/tmp): its header is checked before
 *  anything is copied, no more is copied than the header states, and an input that states more than is free there is refused at once.
 *  Every reader treats its input as hostile: sizes are checked before use, arithmetic is overflow-checked, nothing recurses on input. An error
 *  names the file, the byte offset and what was expected.
 *  Writing goes to a file in the target's folder that gets its name in mx_writer_commit(): readers never see half a file, and an abandoned or
 *  failed run leaves the old file as it was. On file systems with unnamed files (O_TMPFILE: ext4, xfs, btrfs, tmpfs) not even SIGKILL leaves
 *  anything behind, except in the moment in which an old file is replaced. On others SIGKILL leaves .mxgold.HASH.K.tmp, which is locked as long
 *  as its writer lives; the next run that writes the same target in that folder removes it.
 *  MXGOLD_SYNC=1 in the environment: the file is on the disk before it gets its name, and the name before the call returns (fsync of both).
 *  Threads: one mx_file may be read from many threads; one mx_writer is written from one thread at a time.
 *  Oracle: tests/test_file.c, golden/bad/, tests/fuzz/. */
#ifndef MXGOLD_FILE_H
#define MXGOLD_FILE_H

#include <stdio.h>

#include "dtype.h"
#include "status.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

enum { MX_MAX_DIMS = 8 };

/** An open file of tensors. */
typedef struct mx_file mx_file;

/** How the bytes of tensors are reached. */
typedef enum mx_access {
  MX_BY_MAPPING, /* mx_array.data points to them, in a mapping or, if the file cannot be mapped, in memory */
  MX_BY_READING  /* mx_array.data is NULL: mx_array_read() and mx_array_read_f32() read them from the file. Only the header is in memory */
} mx_access;

/** One tensor inside an open file. Row-major, little-endian, not necessarily aligned to its dtype (safetensors promises nothing). */
typedef struct mx_array {
  const char *name; /* "" in .npy and raw files */
  mx_dtype dtype;
  int n_dims;
  uint64_t shape[MX_MAX_DIMS];
  uint64_t n_values; /* product of shape; 1 for a scalar */
  uint64_t n_bytes;
  const uint8_t *data; /* valid until mx_file_close(); NULL under MX_BY_READING */
  uint64_t at;         /* offset of its first byte in the file */
  const mx_file *file;
} mx_array;

/** Open a file by its content (magic of .npy, header of .safetensors or .mxv). path "-" is standard input. The tensors of an .mxv file are its columns,
 *  [cases][numbers], or [cases][rows][numbers] of x and codes if each case is a tensor; what lies behind the end of a row of x is left out.
 *  Such a file is wholly in memory, whichever way it is opened.
 *  Returns MX_OK; MX_ERR_IO (cannot open, read or map); MX_ERR_FORMAT (truncated, oversized, false header, overflowing shape, unknown dtype,
 *  Fortran order, big-endian); MX_ERR_NOMEM. On error *out is NULL. */
mx_status mx_file_open(mx_file **out, const char *path, mx_error *err);
/** Open headerless bytes as one tensor of the stated dtype and shape; the size must match exactly. */
mx_status mx_file_open_raw(mx_file **out, const char *path, mx_dtype dtype, const uint64_t *shape, int n_dims, mx_error *err);
/** The same with a stated access; mx_file_open() and mx_file_open_raw() use MX_BY_MAPPING. */
mx_status mx_file_open_by(mx_file **out, const char *path, mx_access access, mx_error *err);
mx_status mx_file_open_raw_by(mx_file **out, const char *path, mx_dtype dtype, const uint64_t *shape, int n_dims, mx_access access,
                              mx_error *err);
/** Close a file and free it; pointers into it are then invalid. NULL is allowed. */
void mx_file_close(mx_file *file);

/** How many tensors a file holds. */
size_t mx_file_count(const mx_file *file);
/** The index-th tensor in the order of the file; NULL past the end. */
const mx_array *mx_file_at(const mx_file *file, size_t index);
/** A tensor by name; NULL or "" means the only one. MX_ERR_KEY names the nearest tensors if there is none of that name. */
mx_status mx_file_find(const mx_array **out, const mx_file *file, const char *name, mx_error *err);
/** A metadata string (safetensors __metadata__), NULL when absent. Keys are enumerated with mx_file_meta_at(). */
const char *mx_file_meta(const mx_file *file, const char *key);
size_t mx_file_meta_count(const mx_file *file);
const char *mx_file_meta_at(const mx_file *file, size_t index, const char **value);
/** XXH3-128 of a tensor's bytes, as mx_digest() gives it, by reading the file. MX_ERR_NOMEM, and the errors of mx_array_read(). */
mx_status mx_array_digest(char out[33], const mx_array *array, mx_error *err);
/** The digest that the file states for a tensor (metadata xxh3.NAME), NULL if it states none. */
const char *mx_file_stated_digest(const mx_file *file, const mx_array *array);
/** Read every tensor that has a stated digest and compare. MX_ERR_FORMAT names the file and the first tensor whose bytes do not match; also the
 *  errors of mx_array_digest(). */
mx_status mx_file_check_digests(const mx_file *file, mx_error *err);
/** The path as it was given, for messages. */
const char *mx_file_path(const mx_file *file);

/** Open "FILE", or "FILE.safetensors:TENSOR", and find the tensor. The caller closes *file. */
mx_status mx_tensor_open(mx_file **file, const mx_array **array, const char *spec, mx_error *err);
mx_status mx_tensor_open_by(mx_file **file, const mx_array **array, const char *spec, mx_access access, mx_error *err);

/** Copy n_bytes of a tensor, from byte `first` on, into room by reading the file, whichever way it was opened. MX_ERR_ARG (NULL), MX_ERR_SHAPE
 *  (past the tensor's end), MX_ERR_IO ("FILE shrank while being read", or the system's error).  Threads: reentrant.  Oracle:
 *  tests/test_file.c */
mx_status mx_array_read(void *room, const mx_array *array, uint64_t first, uint64_t n_bytes, mx_error *err);

/** Copy values [first, first + n) of an F32, F16 or BF16 array to binary32, exactly. U16 counts as BF16 if bf16 is true. Other dtypes give
 *  MX_ERR_UNSUPPORTED. Under MX_BY_READING also MX_ERR_IO, as from mx_array_read(). */
mx_status mx_array_read_f32(float *out, const mx_array *array, uint64_t first, uint64_t n, int bf16);

/** Tell the system that n_bytes from `data` on, in the file's mapping, will not be read soon, so that their memory may be reused. They stay
 *  readable. This is for passes over files larger than memory. Bytes that are not in the mapping are left alone. */
void mx_file_release(const mx_file *file, const void *data, uint64_t n_bytes);

/** Copy n_bytes from `data` on, in the file's mapping, into room by reading the file: for bytes that are needed once this is cheaper than
 *  mapping each page. Returns 0, or -1 if it is impossible (not in the mapping, no descriptor, a file truncated meanwhile).  Threads:
 *  reentrant. */
int mx_file_read(const mx_file *file, void *room, const void *data, uint64_t n_bytes);

/** A file that is being written. */
typedef struct mx_writer mx_writer;

/** Start a file. The ending chooses the kind: .npy (one tensor, no metadata) or .safetensors; path "-" writes safetensors to standard output,
 *  and a path that is a pipe or a device gets safetensors unless it ends in .npy. Any other ending is MX_ERR_ARG.
 *  Nothing is created on disk until mx_writer_begin(). */
mx_status mx_writer_open(mx_writer **out, const char *path, mx_error *err);
/** True for .npy: one tensor, no metadata, no BF16. */
int mx_writer_is_npy(const mx_writer *w);
/** Declare a tensor, only before mx_writer_begin(). *index (index may be NULL) counts from 0; tensors are laid out in the order of declaration.
 *  MX_ERR_ARG (NULL, begun, name taken or not UTF-8), MX_ERR_SHAPE (more than MX_MAX_DIMS, overflow), MX_ERR_UNSUPPORTED (what a .npy file
 *  cannot hold), MX_ERR_NOMEM. */
mx_status mx_writer_add(mx_writer *w, const char *name, mx_dtype dtype, int n_dims, const uint64_t *shape, size_t *index);
/** Add a metadata string, only before mx_writer_begin(); key and value are copied. MX_ERR_ARG (NULL, begun, key taken, not UTF-8, or a key that
 *  the writer reserves, "xxh3.NAME"), MX_ERR_UNSUPPORTED (.npy holds none), MX_ERR_NOMEM. */
mx_status mx_writer_meta(mx_writer *w, const char *key, const char *value);
/** Create the temporary file and lay it out. Disk space is claimed now, so that a full disk shows before the work is done. On error the caller
 *  still has w, for mx_writer_abort(). */
mx_status mx_writer_begin(mx_writer *w, mx_error *err);
/** Append n_bytes to tensor `index`. Tensors may be interleaved; each is written from its start to its end, and its XXH3-128 digest is computed
 *  on the way. Small pieces are buffered, so a row at a time is fine. More bytes than declared are MX_ERR_SHAPE. */
mx_status mx_writer_write(mx_writer *w, size_t index, const void *data, size_t n_bytes, mx_error *err);
/** Check that every tensor is complete (MX_ERR_SHAPE), write the digests into the metadata ("xxh3.NAME", 32 hex digits), and rename; standard
 *  output, a pipe or a device gets its bytes here. w is always freed; on error nothing is left behind. */
mx_status mx_writer_commit(mx_writer *w, mx_error *err);
/** Drop the temporary file and free w. NULL is allowed. The file is also removed when the process gets SIGINT, SIGTERM or SIGHUP, if the
 *  program called mx_writer_install_signal_cleanup(): that installs handlers which unlink the file, say so in one line on standard error and
 *  end the process with status 2. A signal that the process ignores stays ignored. */
void mx_writer_abort(mx_writer *w);
void mx_writer_install_signal_cleanup(void);
/** Tell that handler that a file was written by other means than these, so that its line does not claim that no file was changed. If path is not
 *  NULL it keeps the results so far, and the line says so; the first path counts, and is copied. */
void mx_file_note_written(const char *path);

/** For programs: install a handler for the case that a mapped input is truncated. This call and mx_writer_install_signal_cleanup() are the only
 *  ones that change the state of the process. If SIGBUS comes for an address in a file that is mapped here, the handler removes the temporary
 *  files, says "mxgold: FILE shrank while being read" on standard error and ends the process with status 2; any other SIGBUS acts as before.
 *  From then on mx_writer_commit() and mx_text_end() fail with MX_ERR_IO if a mapped file is or was shorter than when it was opened, since
 *  zeros may have been read. */
void mx_file_install_guard(void);
/** The path of a file that shrank while it was mapped, NULL if none did; known only after mx_file_install_guard(). */
const char *mx_file_shrunk(void);

/** A text file that appears whole or not at all: it is written under a temporary name until the end. A pipe, a device or "-" (standard output)
 *  is written directly. */
typedef struct mx_text {
  FILE *to; /* the caller writes here; errors are found by mx_text_end() */
  const char *path;
  char *temporary;
  int slot, beside;
} mx_text;

/** Start. path must last until the end. MX_ERR_IO: nothing was made. */
mx_status mx_text_begin(mx_text *t, const char *path, mx_error *err);
/** Close and rename. MX_ERR_IO: nothing is left behind, and an old file of the name stays. */
mx_status mx_text_end(mx_text *t, mx_error *err);
/** Give up: nothing is left behind. */
void mx_text_drop(mx_text *t);

/** XXH3-128 of bytes as 32 lower-case hex digits and a NUL: what `xxh128sum` prints. Threads: reentrant. */
void mx_digest(char out[33], const void *data, size_t n_bytes);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
