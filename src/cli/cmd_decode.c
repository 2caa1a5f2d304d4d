/* Runs mxgold decode: values of codes. */
#include <stdlib.h>
#include <string.h>

#include "mxgold/codec.h"
#include "cli/base/tensor_io.h"

struct args {
  const char *in, *out, *format;
};

/* Every format whose values are binary32 numbers, each name once. */
static const mx_format *format_at(size_t index) {
  const mx_format *(*tables[])(int) = {mx_elem_format, mx_scale_format, mx_operand_format};
  for (size_t t = 0; t < sizeof tables / sizeof tables[0]; t++) {
    const mx_format *f;
    for (int i = 0; (f = tables[t](i)); i++)
      if (f->bits <= 32 && f->kind != MX_KIND_NONE && mx_format_find(f->name) == f && index-- == 0) return f;
  }
  return NULL;
}
static const char *format_name(size_t index) {
  const mx_format *f = format_at(index);
  return f ? f->name : NULL;
}

static const cli_option options[] = {
    {"CODES.npy", 0, CLI_POS, offsetof(struct args, in), NULL, "codes, one per unsigned integer (uint8; uint16 or uint32 for wider formats)",
     NULL},
    {"output", 'o', CLI_STRING, offsetof(struct args, out), "Y.npy", "float32 values in the shape of the input", NULL},
    {"format", 'f', CLI_STRING, offsetof(struct args, format), "FMT", "a format (mxgold formats lists them)", format_name},
    {0},
};

typedef struct work {
  const char *path;
  const mx_array *codes;
  const mx_format *format;
} work;

/* One byte a code, two for wider formats: what mx_decode_array takes. */
static int is_packed(const work *w, size_t bytes) { return w->format->bits <= 16 && bytes == (w->format->bits <= 8 ? 1 : 2); }

/* Is there a code that the format lacks? */
static int has_more_bits(const uint8_t *codes, size_t n, const mx_format *f) {
  uint64_t all = 0;
  if (f->bits % 8 == 0) return 0;
  if (f->bits > 8)
    for (size_t i = 0; i < n; i++) all |= (uint64_t)(codes[2 * i] | codes[2 * i + 1] << 8);
  else
    for (size_t i = 0; i < n; i++) all |= codes[i];
  return all >> f->bits != 0;
}

static mx_status decode(float *out, const uint8_t *codes, const work *w, uint64_t first, size_t n, mx_error *err) {
  const size_t bytes = mx_dtype_bytes(w->codes->dtype);
  if (is_packed(w, bytes) && !has_more_bits(codes, n, w->format))
    return mx_decode_array(out, codes, n, w->format, NULL) ? mx_fail(err, MX_ERR_NOMEM, "decode: out of memory") : MX_OK;
  for (size_t i = 0; i < n; i++) {
    uint32_t code = 0;
    memcpy(&code, codes + i * bytes, bytes);
    if ((uint64_t)code >> w->format->bits)
      return mx_fail(err, MX_ERR_DATA, "%s: code %llu is 0x%x, expected %u bits for %s", w->path, (unsigned long long)(first + i), code,
                     w->format->bits, w->format->name);
    out[i] = (float)mx_decode(w->format, code);
  }
  return MX_OK;
}

static mx_status piece(void *self, void *room, uint64_t first, size_t n, mx_error *err) {
  const work *w = self;
  const size_t bytes = mx_dtype_bytes(w->codes->dtype);
  uint8_t *codes = malloc(n * bytes + 1);
  mx_status status =
      codes ? mx_array_read(codes, w->codes, first * bytes, n * bytes, err) : mx_fail(err, MX_ERR_NOMEM, "decode: out of memory");
  if (!status) status = decode(room, codes, w, first, n, err);
  free(codes);
  return status;
}

static int is_codes(mx_dtype t) { return t == MX_U8 || t == MX_U16 || t == MX_U32 || t == MX_I8 || (t >= MX_F8_E4M3 && t <= MX_F8_E8M0); }

static int run(const cli_context *ctx, void *args) {
  const struct args *a = args;
  mx_error err;
  mx_file *file;
  if (!a->out) return cli_error("decode: no output, expected -o Y.npy");
  if (!a->format) return cli_error("decode: no format, expected --format FMT");
  work w = {.path = a->in, .format = mx_format_find(a->format)};
  if (mx_tensor_open_by(&file, &w.codes, a->in, MX_BY_READING, &err)) return cli_fail(&err);
  const mx_array *x = w.codes;
  const output o = {.command = "decode",
                    .path = a->out,
                    .name = "values",
                    .dtype = MX_F32,
                    .n_dims = x->n_dims,
                    .shape = x->shape,
                    .n_values = x->n_values,
                    .piece = piece,
                    .self = &w};
  const int rc =
      is_codes(x->dtype) ? output_write(ctx, &o) : cli_error("%s: dtype is %s, expected codes: u8, u16 or u32", a->in, mx_dtype_name(x->dtype));
  mx_file_close(file);
  return rc;
}

const cli_command cmd_decode = {
    options, sizeof(struct args), run,
    "Values are exact; a NaN code gives a quiet NaN with the code's sign. A code with bits beyond its format is refused."};
