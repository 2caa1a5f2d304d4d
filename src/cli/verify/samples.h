/* Declares how outputs of a kernel are read from files, as samples for identify and diff. */
#ifndef CLI_VERIFY_SAMPLES_H
#define CLI_VERIFY_SAMPLES_H

#include "cli/base/cli.h"
#include "mxgold/mxgold.h"

typedef struct sample_options {
  const char *input, *codes, *scales, *output, *dequantized;
  cli_f32 tensor_scale; /* nan and inf are numbers here */
  int packed, transpose;
  int values; /* 1: of the output, tensor dequantized, not codes and scales */
  int second; /* 1: the output is of another launch, whose input lies beside it */
} sample_options;

/* Rows of packed codes as they are stored, so many bytes each. */
struct packed_codes {
  const uint8_t *bytes;
  size_t width;
};

typedef struct samples {
  mx_sample *at;
  char **names; /* suite of each, "" if the file has one */
  size_t n;
  size_t code_shape[2];        /* as stored, of the first */
  int nibble;                  /* how the first one's codes were packed; -1: one a byte */
  struct packed_codes *packed; /* of each, if the first one's are */
  const char *layout;          /* that the file says its scales lie in, which are straightened; NULL: none */
  int turned;                  /* the input was transposed, since the shapes of the codes say so */
  int row_scales;              /* a tensor scale for each row: the samples are rows */
  float **scale_values;        /* of each, scales that are stored as numbers of 2 or 4 bytes; NULL if they are not */
  void **owned;                /* memory */
  size_t n_owned;
  int no_memory; /* an allocation failed: what was tried without it is no answer */
  mx_file *files[5];
  size_t n_files;
} samples;

/** Open everything that the options name. Says what is wrong and returns CLI_TROUBLE. Free in either case. */
int samples_open(samples *out, const sample_options *o);
void samples_close(samples *s);
/** Read packed codes in another order (MX_NIBBLE_*); 0 if they are not packed. block: of half_block. */
int samples_repack(samples *s, int nibble, size_t block);
/** The order of packed codes under which larger numbers have larger codes (MX_NIBBLE_*), -1 if they are not packed. block: of half_block, 0 in for any. */
int samples_likely_nibble(const samples *s, size_t *block);
/** Do larger numbers have larger codes in an order of nibbles, but for few, and not in another one? Then that one need not be tried. */
int samples_order_is_sure(const samples *s, int nibble, int other, size_t block);

/** Scales that are stored as numbers become codes of a format (MX_SCALE_*), if it has all of them; 0 if not. */
int samples_encode_scales(samples *s, int scale);
/** Scales that are stored in a kernel's layout but were read as rows: a copy of each sample with its scales in row order into to [n], which may be s->at.
 *  block: columns of a block. 0 if the sizes do not fit. */
int samples_straighten(mx_sample *to, samples *s, int layout, size_t block);
/** One more sample, of what a kernel made of x [rows][cols], row stride ld, as a tensor of spec; everything is copied. Elements of at most 8 bits; those
 *  of 4 stay packed, so that their order can be found. CLI_TROUBLE, said, if memory ran out. */
int samples_add(samples *s, const char *name, const float *x, size_t ld, const mx_tensor *t, const mx_spec *spec);
/** Square inputs become their transposes; 0 if some are not square. */
int samples_turn(samples *s);

#endif
