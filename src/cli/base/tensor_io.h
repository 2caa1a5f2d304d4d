/* Declares one tensor in and one tensor out, which commands on plain arrays share. */
#ifndef CLI_BASE_TENSOR_IO_H
#define CLI_BASE_TENSOR_IO_H

#include "cli.h"
#include "mxgold/file.h"

/** What a user says of an input that the file itself does not: --dtype and --shape, NULL where not given. */
typedef struct input_form {
  const char *dtype, *shape;
} input_form;
/* Their rows of an option table. */
#define INPUT_OPTIONS(type, member)                                                                                                            \
  {"dtype",     0,                                                                                                                             \
   CLI_STRING,  offsetof(struct type, member.dtype),                                                                                           \
   "TYPE",      "the input's type, any other is refused; bf16 also accepts uint16; with --shape: the type of the raw bytes",                   \
   input_dtypes},                                                                                                                              \
  {                                                                                                                                            \
    "shape", 0, CLI_STRING, offsetof(struct type, member.shape), "RxC", "the input is raw, little-endian and row-major: float32, or --dtype",  \
        NULL                                                                                                                                   \
  }
const char *input_dtypes(size_t index);

/** Values that mx_array_read_f32() widens, in a file. */
typedef struct input {
  const char *path;
  mx_file *file;
  const mx_array *array;
  int bf16;
} input;

/** Open FILE or FILE:TENSOR, or with a shape the raw bytes of FILE, and check that it holds floats. Says what is wrong; input_close() is for success. */
int input_open(input *in, const char *path, const input_form *form, mx_access access);
/** Says that binary64, numpy's default, is not rounded behind a user's back, and how he does it. Returns CLI_TROUBLE. */
int input_refuse_f64(const char *name);
/** Why a tensor of a checkpoint is not an input, "f64: round it to float32 first" or "not floats"; NULL if it is one. */
const char *input_why_not(const mx_array *a);
/** "no input": the file is an .mxv and the tensor one of its results, such as dequantized; NULL if it is x, or of another file. */
const char *input_no_input(const mx_file *file, const mx_array *a);
/** Can values be used where they are in the mapping? */
int input_in_place(const input *in);
/** Values [first, first + n) in *out: in place if they can be, else read to room, which then must have place for them. */
mx_status input_at(const float **out, const input *in, float *room, uint64_t first, uint64_t n, mx_error *err);
/** What mx_array_read_f32() does, and why it did not. */
mx_status input_read(float *room, const mx_array *a, uint64_t first, uint64_t n, int bf16, mx_error *err);
void input_close(input *in);

/** Write one tensor of the stated dtype and shape to path in pieces: piece() fills room with n values that begin at value `first`, or says in *err what
 *  is wrong; several threads call it at a time. unit: pieces are multiples of so many values (1: any), about OUTPUT_PIECE,
 *  which stays in a processor's own cache. */
enum { OUTPUT_PIECE = 1 << 17 };
typedef struct output {
  const char *command, *path, *name, *expected; /* expected: "Y.npy", for the message that -o is missing */
  mx_dtype dtype;
  int n_dims;
  const uint64_t *shape;
  uint64_t n_values, unit;
  int n_threads; /* 0: all processors */
  mx_status (*piece)(void *self, void *room, uint64_t first, size_t n, mx_error *err);
  void (*passed)(void *self, uint64_t first, size_t n); /* these values are written: what they were made of is behind us; may be NULL */
  void *self;
} output;
/** How many pieces that will be: with more than one, a piece is best made by one thread. */
size_t output_pieces(const output *o);
int output_write(const cli_context *ctx, const output *o);

#endif
