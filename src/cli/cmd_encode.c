/* Runs mxgold encode: codes of single values. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/spec/key_choices.h"
#include "mxgold/encoder.h"
#include "cli/base/tensor_io.h"

struct args {
  const char *in, *out, *format, *preset, *round, *sr_mode, *overflow, *nan, *scale_exp, *bits;
  input_form form;
  cli_list set;
  cli_u64 nbits, seed;
};

static const char *rounds(size_t index) { return key_choice("elem.round", index); }
static const char *sr_modes(size_t index) { return key_choice("sr.mode", index); }
static const char *overflows(size_t index) { return key_choice("elem.overflow", index); }

static const cli_option options[] = {
    {"X.npy", 0, CLI_POS, offsetof(struct args, in), NULL, "a .npy file, or a tensor of a .safetensors file; - for standard input", NULL},
    {"output", 'o', CLI_STRING, offsetof(struct args, out), "CODES.npy", "uint8 codes, one per value, in the shape of the input", NULL},
    {"format", 'f', CLI_STRING, offsetof(struct args, format), "FMT", "an element format or a one-byte scale format", mx_encoder_format_name},
    {"preset", 0, CLI_STRING, offsetof(struct args, preset), "NAME", "the cast of a library", mx_encoder_preset},
    {"round", 0, CLI_STRING, offsetof(struct args, round), "RULE", "rounding, key elem.round", rounds},
    {"sr-mode", 0, CLI_STRING, offsetof(struct args, sr_mode), "RULE", "rule of stochastic rounding, key sr.mode", sr_modes},
    {"overflow", 0, CLI_STRING, offsetof(struct args, overflow), "RULE", "what happens beyond the largest value, key elem.overflow", overflows},
    {"nan", 0, CLI_STRING, offsetof(struct args, nan), "RULE", "what NaN becomes, key elem.nan", NULL},
    {"set", 0, CLI_LIST, offsetof(struct args, set), "KEY=VALUE",
     "any other key that applies to a single value: elem.zero_sign, scale.negative, ...; may be repeated", NULL},
    {"scale-exp", 0, CLI_STRING, offsetof(struct args, scale_exp), "E|nan", "encode x * 2^-E; nan: encode x under a NaN scale", NULL},
    {"bits", 0, CLI_STRING, offsetof(struct args, bits), "B.npy", "random integers for stochastic rounding, one per value, instead of Philox",
     NULL},
    {"nbits", 0, CLI_U64, offsetof(struct args, nbits), "N", "how many bits these integers have, 1 to 32", NULL},
    {"seed", 0, CLI_U64, offsetof(struct args, seed), "N", "seed of Philox", NULL},
    INPUT_OPTIONS(args, form),
    {0},
};

typedef struct work {
  input in;
  mx_encoder encoder;
  const char *bits_path;
  mx_file *bits_file;
  const mx_array *bits;
  unsigned n_bits; /* of the integers in bits */
} work;

/* --set first, then the options that have names of their own. */
static int keys_from_options(mx_spec *spec, const struct args *a) {
  mx_error err;
  const char *named[][3] = {{"round", "elem.round", a->round},
                            {"sr-mode", "sr.mode", a->sr_mode},
                            {"overflow", "elem.overflow", a->overflow},
                            {"nan", "elem.nan", a->nan}};
  if (mx_encoder_keys(spec, a->preset, a->format, &err)) return cli_error("encode: %s", err.text);
  for (size_t i = 0; i < a->set.n; i++)
    if (mx_spec_parse(spec, a->set.items[i], &err)) return cli_error("encode: --set: %s", err.text);
  for (size_t i = 0; i < sizeof named / sizeof named[0]; i++)
    if (named[i][2] && mx_spec_set(spec, named[i][1], named[i][2], &err)) return cli_error("encode: --%s: %s", named[i][0], err.text);
  if (a->seed.given) spec->seed = a->seed.v;
  return CLI_FINE;
}

static int set_scale_exp(mx_encoder *e, const char *text) {
  if (!text) return CLI_FINE;
  if (!strcmp(text, "nan")) {
    e->scale_is_nan = 1;
    return CLI_FINE;
  }
  char *end;
  const char *digits = text + (*text == '-' || *text == '+');
  const long v = strtol(text, &end, 10);
  if (*digits < '0' || *digits > '9' || *end || v < -MX_ENCODER_EXP || v > MX_ENCODER_EXP)
    return cli_error("encode: --scale-exp %s: expected nan or an integer from %d to %d", text, -MX_ENCODER_EXP, MX_ENCODER_EXP);
  e->scale_exp = (int)v;
  return CLI_FINE;
}

static int make_encoder(work *w, const struct args *a) {
  mx_error err;
  mx_spec spec = {0};
  const mx_format *format;
  if (!a->format) return cli_error("encode: no format, expected --format FMT");
  if (mx_encoder_format(&format, a->format, &err)) return cli_error("encode: --format: %s", err.text);
  if (keys_from_options(&spec, a)) return CLI_TROUBLE;
  if (mx_encoder_init(&w->encoder, format, &spec, &err)) return cli_error("encode: %s", err.text);
  if (a->bits && spec.elem_round != MX_ROUND_SR)
    return cli_error("encode: --bits excludes --round %s: only sr uses random integers", rounds((size_t)spec.elem_round));
  if (a->nbits.given && spec.elem_round != MX_ROUND_SR)
    return cli_error("encode: --nbits excludes --round %s: only sr uses random integers", rounds((size_t)spec.elem_round));
  if (a->bits && !a->nbits.given) return cli_error("encode: --bits without --nbits, expected how many bits its integers have");
  if (a->nbits.given && (a->nbits.v < 1 || a->nbits.v > 32))
    return cli_error("encode: --nbits %llu: expected 1 to 32", (unsigned long long)a->nbits.v);
  if (a->nbits.given) {
    w->n_bits = (unsigned)a->nbits.v;
    if (!w->encoder.how.sr_bits) w->encoder.how.sr_bits = (int)w->n_bits;
    if (a->bits && w->encoder.how.sr_bits > (int)w->n_bits)
      return cli_error("encode: --nbits %u: expected %d or more, the random bits that the rounding uses", w->n_bits, w->encoder.how.sr_bits);
  }
  return set_scale_exp(&w->encoder, a->scale_exp);
}

/* Integer `index` of an array as an unsigned one of its own width. */
static uint64_t integer_at(const mx_array *a, uint64_t index) {
  uint64_t v = 0;
  memcpy(&v, a->data + index * mx_dtype_bytes(a->dtype), mx_dtype_bytes(a->dtype));
  return v;
}

static int open_bits(work *w, const char *path) {
  mx_error err;
  w->bits_path = path;
  if (mx_tensor_open(&w->bits_file, &w->bits, path, &err)) return cli_fail(&err);
  const mx_dtype t = w->bits->dtype;
  if (t < MX_U8 || t > MX_I64) return cli_error("%s: dtype is %s, expected integers", path, mx_dtype_name(t));
  if (w->bits->n_values != w->in.array->n_values)
    return cli_error("%s: %llu integers, expected one for each of the %llu values", path, (unsigned long long)w->bits->n_values,
                     (unsigned long long)w->in.array->n_values);
  return CLI_FINE;
}

static mx_status read_bits(uint32_t *random, const work *w, uint64_t first, size_t n, mx_error *err) {
  const unsigned used = (unsigned)w->encoder.how.sr_bits;
  for (size_t i = 0; i < n; i++) {
    const uint64_t v = integer_at(w->bits, first + i);
    if (v >> w->n_bits)
      return mx_fail(err, MX_ERR_DATA, "%s: integer %llu is 0x%llx, expected %u bits", w->bits_path, (unsigned long long)(first + i),
                     (unsigned long long)v, w->n_bits);
    random[i] = (uint32_t)(v >> (w->n_bits - used));
  }
  return MX_OK;
}

static mx_status piece(void *self, void *room, uint64_t first, size_t n, mx_error *err) {
  const work *w = self;
  uint64_t refused;
  float *values = malloc(n * sizeof *values + 1);
  uint32_t *random = malloc((w->bits ? n : 0) * sizeof *random + 1);
  mx_status status = values && random ? MX_OK : mx_fail(err, MX_ERR_NOMEM, "encode: out of memory");
  if (!status && w->bits) status = read_bits(random, w, first, n, err);
  const float *x = values;
  if (!status) status = input_at(&x, &w->in, values, first, n, err);
  if (!status && mx_encoder_run(room, x, first, n, &w->encoder, w->bits ? random : NULL, &refused))
    status = mx_fail(err, MX_ERR_DATA, "%s: value %llu is NaN, refused by elem.nan=error", w->in.path, (unsigned long long)refused);
  free(values);
  free(random);
  return status;
}

static int run(const cli_context *ctx, void *args) {
  const struct args *a = args;
  work w = {0};
  if (!a->out) return cli_error("encode: no output, expected -o CODES.npy");
  if (make_encoder(&w, a) || input_open(&w.in, a->in, &a->form, MX_BY_READING)) return CLI_TROUBLE;
  int rc = a->bits ? open_bits(&w, a->bits) : CLI_FINE;
  const mx_array *x = w.in.array;
  const output o = {.command = "encode",
                    .path = a->out,
                    .name = "codes",
                    .dtype = MX_U8,
                    .n_dims = x->n_dims,
                    .shape = x->shape,
                    .n_values = x->n_values,
                    .piece = piece,
                    .self = &w};
  if (!rc) rc = output_write(ctx, &o);
  mx_file_close(w.bits_file);
  input_close(&w.in);
  return rc;
}

const cli_command cmd_encode = {
    options, sizeof(struct args), run,
    "A preset is a set of keys for each format (formats/encoders.def); options override it. Integers of --bits have N bits: rounding uses "
    "their "
    "top r,\n"
    "where r is the preset's sr.bits, or N if it has none. Without --bits they are the top bits of Philox4x32-10 of (seed, stream 0, index)."};
