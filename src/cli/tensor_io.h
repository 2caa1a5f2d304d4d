/* One tensor in, one tensor out: what commands on plain arrays share. */
#ifndef CLI_TENSOR_IO_H
#define CLI_TENSOR_IO_H

#include "cli.h"
#include "mxgold/file.h"

/* The row of an option table that says what a uint16 input holds. */
#define DTYPE_OPTION(type, member)                                                                                                             \
  { "dtype", 0, CLI_STRING, offsetof(struct type, member), "TYPE", "bf16: uint16 input holds bfloat16", input_dtypes }
const char *input_dtypes(size_t index);

/** Values that mx_array_read_f32() widens, in a file. */
typedef struct input {
  const char *path;
  mx_file *file;
  const mx_array *array;
  int bf16;
} input;

/** Open FILE or FILE:TENSOR and check that it holds floats; dtype as --dtype, NULL if not given. Says what is wrong; input_close() is for success. */
int input_open(input *in, const char *path, const char *dtype);
/** Values [first, first + n): in place if the file has aligned binary32, else copied to room. */
const float *input_at(const input *in, float *room, uint64_t first, uint64_t n);
void input_close(input *in);

/** Write one tensor of the stated dtype and shape to path in pieces: piece() fills room with n values that begin at value `first`, and says what is
 *  wrong and returns CLI_TROUBLE, or CLI_FINE. unit: pieces are multiples of so many values (1: any). */
typedef struct output {
  const char *command, *path, *name, *expected; /* expected: "Y.npy", for the message that -o is missing */
  mx_dtype dtype;
  int n_dims;
  const uint64_t *shape;
  uint64_t n_values, unit;
  int (*piece)(void *self, void *room, uint64_t first, size_t n);
  void *self;
} output;
int output_write(const cli_context *ctx, const output *o);

#endif
