/* Runs mxgold convert: other layouts of scales, other orders of nibbles. */
#include <stdlib.h>

#include "cli/base/cli.h"
#include "cli/spec/key_choices.h"
#include "mxgold/layout.h"
#include "mxgold/quantized.h"

struct args {
  const char *in, *out, *layout, *nibble;
  cli_u64 pad;
};

static const char *layouts(size_t index) {
  const mx_layout_row *l = mx_layout_row_at((int)index);
  return l ? l->name : NULL;
}
static const char *nibbles(size_t index) { return key_choice("nibble", index); }

static const cli_option options[] = {
    {"FILE", 0, CLI_POS, offsetof(struct args, in), NULL, "what mxgold quantize or convert wrote", NULL},
    {"output", 'o', CLI_STRING, offsetof(struct args, out), "OUT.safetensors", "where the result goes; - for standard output", NULL},
    {"layout", 0, CLI_STRING, offsetof(struct args, layout), "NAME", "layout of the scales; as in the input if not given", layouts},
    {"pad", 0, CLI_U64, offsetof(struct args, pad), "BYTE", "the byte in the layout's padding; 0 by default", NULL},
    {"nibble", 0, CLI_STRING, offsetof(struct args, nibble), "ORDER", "order of 4-bit codes in a byte, key nibble", nibbles},
    {0},
};

typedef struct work {
  const struct args *args;
  mx_quantized q;
  mx_spec spec; /* of the output: the nibble order may differ */
  mx_layout layout;
  uint8_t pad;
  mx_writer *w;
  mx_quantized_layout at;
} work;

static mx_status copy_codes(work *w, mx_error *err) {
  const mx_tensor *t = &w->q.tensor;
  const size_t index = (size_t)w->at.index[MX_Q_CODES];
  if (w->spec.nibble == w->q.spec.nibble) return mx_writer_write(w->w, index, t->codes, t->rows * t->code_stride, err);
  size_t block_rows, block;
  mx_spec_block(&w->spec, t->rows, t->cols, &block_rows, &block);
  uint8_t *codes = malloc(t->cols_padded + 1), *packed = malloc(t->code_stride + 1);
  mx_status status = codes && packed ? MX_OK : mx_fail(err, MX_ERR_NOMEM, "%s: no memory for a row", w->args->in);
  for (size_t r = 0; r < t->rows && !status; r++) {
    mx_unpack4(codes, t->codes + r * t->code_stride, t->cols_padded, w->q.spec.nibble, block);
    mx_pack4(packed, codes, t->cols_padded, w->spec.nibble, block);
    status = mx_writer_write(w->w, index, packed, t->code_stride, err);
  }
  free(codes);
  free(packed);
  return status;
}

static mx_status copy_scales(work *w, mx_error *err) {
  const mx_tensor *t = &w->q.tensor;
  const size_t index = (size_t)w->at.index[MX_Q_SCALES];
  if (w->layout == MX_LAYOUT_ROW) return mx_writer_write(w->w, index, t->scales, t->scale_rows * t->scale_cols * t->scale_bytes, err);
  const size_t size = mx_layout_size(w->layout, t->scale_rows, t->scale_cols);
  uint8_t *moved = malloc(size + 1);
  if (!moved) return mx_fail(err, MX_ERR_NOMEM, "%s: no memory for %zu bytes of scales", w->args->in, size);
  mx_layout_pack(moved, w->layout, t->scales, t->scale_rows, t->scale_cols, w->pad);
  const mx_status status = mx_writer_write(w->w, index, moved, size, err);
  free(moved);
  return status;
}

static mx_status copy_rest(work *w, mx_error *err) {
  const mx_tensor *t = &w->q.tensor;
  const ptrdiff_t *at = w->at.index;
  mx_status status = MX_OK;
  if (at[MX_Q_MICRO] >= 0) status = mx_writer_write(w->w, (size_t)at[MX_Q_MICRO], t->micro, t->scale_rows * t->scale_cols * 3, err);
  if (!status && at[MX_Q_TENSOR_SCALE] >= 0)
    status = mx_writer_write(w->w, (size_t)at[MX_Q_TENSOR_SCALE], &t->tensor_scale, sizeof t->tensor_scale, err);
  if (!status && at[MX_Q_DEQUANTIZED] >= 0)
    status = mx_writer_write(w->w, (size_t)at[MX_Q_DEQUANTIZED], w->q.dequantized->data, w->q.dequantized->n_bytes, err);
  return status;
}

static int write_all(work *w) {
  const mx_quantized *q = &w->q;
  mx_error err;
  if (mx_writer_open(&w->w, w->args->out, &err)) return cli_fail(&err);
  if (mx_writer_is_npy(w->w)) {
    mx_writer_abort(w->w);
    return cli_error("%s: a .npy file holds one tensor, expected a name that ends in .safetensors", w->args->out);
  }
  mx_status status = mx_quantized_declare_in(&w->at, w->w, &w->spec, q->preset, q->shape, q->n_dims, q->dtype, q->dequantized != NULL,
                                             w->layout, w->pad, &err);
  if (!status) status = mx_writer_begin(w->w, &err);
  if (!status) status = copy_codes(w, &err);
  if (!status) status = copy_scales(w, &err);
  if (!status) status = copy_rest(w, &err);
  if (!status) return mx_writer_commit(w->w, &err) ? cli_fail(&err) : CLI_FINE;
  mx_writer_abort(w->w);
  return cli_fail(&err);
}

/* What the options ask for, checked against what the file holds. */
static int plan(work *w) {
  const struct args *a = w->args;
  mx_error err;
  w->spec = w->q.spec;
  w->layout = a->layout ? (mx_layout)mx_layout_find(a->layout) : w->q.layout;
  const char *was = mx_file_meta(w->q.file, "layout_pad");
  w->pad = (uint8_t)(a->pad.given ? a->pad.v : was ? strtoul(was, NULL, 10) : 0);
  if (!a->nibble) return CLI_FINE;
  if (mx_elem_format(w->spec.elem)->bits != 4)
    return cli_error("%s: --nibble %s excludes elem=%s, expected elements of 4 bits", a->in, a->nibble, mx_elem_format(w->spec.elem)->name);
  if (mx_spec_set(&w->spec, "nibble", a->nibble, &err) || mx_spec_check(&w->spec, &err)) return cli_error("%s: %s", a->in, err.text);
  return CLI_FINE;
}

static int run(const cli_context *ctx, void *args) {
  (void)ctx;
  const struct args *a = args;
  mx_error err;
  work w = {.args = a};
  if (!a->out) return cli_error("convert: no output, expected -o OUT.safetensors");
  if (!a->layout && !a->nibble) return cli_error("convert: nothing to do, expected --layout NAME or --nibble ORDER");
  if (a->pad.v > 255) return cli_error("convert: --pad %llu: expected a byte, 0 to 255", (unsigned long long)a->pad.v);
  if (mx_quantized_open(&w.q, a->in, &err)) return cli_fail(&err);
  if (mx_file_check_digests(w.q.file, &err)) { /* or the output would vouch for bytes that nobody vouched for */
    mx_quantized_close(&w.q);
    return cli_fail(&err);
  }
  int rc = plan(&w);
  if (!rc) rc = write_all(&w);
  mx_quantized_close(&w.q);
  return rc;
}

const cli_command cmd_convert = {options, sizeof(struct args), run,
                                 "In a layout other than row, scales is a flat tensor with the padding that the layout requires, and the "
                                 "metadata have the keys layout and layout_pad.\n"
                                 "Every command reads such a file; --layout row gives back what quantize wrote, byte for byte."};
