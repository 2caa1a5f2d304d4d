/* Runs mxgold hadamard: rotation along the last axis. */
#include <stdlib.h>
#include <string.h>

#include "cli/spec/key_choices.h"
#include "mxgold/quantize.h"
#include "mxgold/quantized.h"
#include "cli/base/tensor_io.h"

enum { MAX_SIZE = 1024 };

struct args {
  const char *in, *out, *sign, *signs;
  input_form form;
  cli_u64 size, seed;
};

static const char *sign_names(size_t index) { return key_choice("had.sign", index); }

static const cli_option options[] = {
    {"X.npy", 0, CLI_POS, offsetof(struct args, in), NULL, "a .npy file, or a tensor of a .safetensors file; - for standard input", NULL},
    {"output", 'o', CLI_STRING, offsetof(struct args, out), "Y.npy", "float32 values in the shape of the input", NULL},
    {"size", 0, CLI_U64, offsetof(struct args, size), "N", "tile along the last axis, a power of two from 2 to 1024", NULL},
    {"sign", 0, CLI_STRING, offsetof(struct args, sign), "SOURCE", "signs before the rotation, key had.sign", sign_names},
    {"signs", 0, CLI_STRING, offsetof(struct args, signs), "0101..",
     "for --sign fixed: one digit per element of the tile, 1 negates; by default one vector drawn from --seed", NULL},
    {"seed", 0, CLI_U64, offsetof(struct args, seed), "N", "seed of the signs that are drawn", NULL},
    INPUT_OPTIONS(args, form),
    {0},
};

typedef struct work {
  input in;
  size_t cols;
  unsigned size;
  int sign;
  uint8_t signs[MAX_SIZE / 8];
  uint64_t seed;
} work;

/* Whole rows; the values are widened where they will stand. */
static mx_status piece(void *self, void *room, uint64_t first, size_t n, mx_error *err) {
  const work *w = self;
  const float *x;
  mx_status status = input_at(&x, &w->in, room, first, n, err);
  if (status) return status;
  status = mx_hadamard(room, w->cols, x, n / w->cols, w->cols, w->cols, w->size, w->sign, w->signs, w->seed);
  return status ? mx_fail(err, status, "%s: %s", w->in.path, mx_status_text(status)) : MX_OK;
}

static int parse_signs(work *w, const char *text) {
  if (w->sign != MX_HAD_SIGN_FIXED)
    return text ? cli_error("hadamard: --signs excludes --sign %s, expected --sign fixed", sign_names((size_t)w->sign)) : CLI_FINE;
  if (!text) {
    w->sign = MX_HAD_SIGN_FRESH; /* drawn once a call, the same for each tile */
    return CLI_FINE;
  }
  if (strlen(text) != w->size || strspn(text, "01") != w->size)
    return cli_error("hadamard: --signs %s: expected %u digits 0 or 1", text, w->size);
  for (unsigned i = 0; i < w->size; i++)
    if (text[i] == '1') w->signs[i / 8] |= (uint8_t)(1 << i % 8);
  return CLI_FINE;
}

static int run(const cli_context *ctx, void *args) {
  const struct args *a = args;
  const uint64_t size = a->size.v;
  if (!a->out) return cli_error("hadamard: no output, expected -o Y.npy");
  if (!a->size.given) return cli_error("hadamard: no size, expected --size N");
  if (size < 2 || size > MAX_SIZE || (size & (size - 1)))
    return cli_error("hadamard: --size %llu: expected a power of two from 2 to %d", (unsigned long long)size, MAX_SIZE);
  work w = {.size = (unsigned)size, .sign = MX_HAD_SIGN_NONE, .seed = a->seed.v};
  if (a->sign) w.sign = key_choice_find("had.sign", a->sign);
  if (parse_signs(&w, a->signs) || input_open(&w.in, a->in, &a->form, MX_BY_READING)) return CLI_TROUBLE;
  const mx_array *x = w.in.array;
  size_t rows;
  int rc = mx_matrix_of(&rows, &w.cols, x->shape, x->n_dims) ? CLI_FINE : cli_error("%s: the shape overflows", a->in);
  const output o = {.command = "hadamard",
                    .path = a->out,
                    .name = "rotated",
                    .dtype = MX_F32,
                    .n_dims = x->n_dims,
                    .shape = x->shape,
                    .n_values = x->n_values,
                    .unit = w.cols,
                    .piece = piece,
                    .self = &w};
  if (!rc) rc = output_write(ctx, &o);
  input_close(&w.in);
  return rc;
}

const cli_command cmd_hadamard = {
    options, sizeof(struct args), run,
    "Butterflies of stride 1, 2, 4 .. N/2, each rounded to binary32, then one multiplication by the rounded 1/sqrt(N). A short last tile is\n"
    "filled with +0 and only its first elements are stored."};
