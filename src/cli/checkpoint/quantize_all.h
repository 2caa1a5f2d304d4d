/* Declares mxgold quantize MODEL --all --fake: a whole checkpoint, quantised and dequantised again. */
#ifndef CLI_CHECKPOINT_QUANTIZE_ALL_H
#define CLI_CHECKPOINT_QUANTIZE_ALL_H

#include "cli/base/cli.h"
#include "mxgold/spec.h"

typedef struct quantize_all_options {
  const char *in, *out, *include, *exclude, *preset;
  const mx_spec *spec;
  int n_threads, json, refuse_nan;
} quantize_all_options;

/** in: a .safetensors file, or MODEL.safetensors.index.json, whose shards then go to the folder out under their own names, with the index.
 *  Prints SQNR and saturation a tensor. Says what is wrong and returns CLI_TROUBLE; nothing is left behind then. */
int quantize_all(const cli_context *ctx, const quantize_all_options *o);

#endif
