/* Plain arrays in and out. */
#include "tensor_io.h"

#include <stdlib.h>
#include <string.h>

#include "progress.h"
#include "shape.h"

const char *input_dtypes(size_t index) {
  static const char *names[] = {"f32", "f16", "bf16", NULL};
  return names[index];
}

static int open_raw(input *in, const char *path, const input_form *form) {
  mx_error err;
  uint64_t shape[MX_MAX_DIMS];
  const int n = shape_parse(shape, MX_MAX_DIMS, form->shape);
  if (!n) return cli_error("--shape %.60s: expected RxC, such as 64x256, at most %d extents", form->shape, MX_MAX_DIMS);
  const int dtype = form->dtype ? mx_dtype_find(form->dtype) : MX_F32;
  if (mx_file_open_raw(&in->file, path, (mx_dtype)dtype, shape, n, &err)) return cli_fail(&err);
  in->array = mx_file_at(in->file, 0);
  return CLI_FINE;
}

int input_open(input *in, const char *path, const input_form *form) {
  mx_error err;
  const char *dtype = form->dtype;
  *in = (input){.path = path};
  if (form->shape) return open_raw(in, path, form);
  if (mx_tensor_open(&in->file, &in->array, path, &err)) return cli_fail(&err);
  const mx_array *a = in->array;
  in->bf16 = dtype && !strcmp(dtype, "bf16") && a->dtype == MX_U16;
  int rc = CLI_FINE;
  if (mx_array_read_f32(NULL, a, 0, 0, in->bf16))
    rc = cli_error("%s: dtype is %s, expected f32, f16 or bf16 (uint16 with --dtype bf16)", path, mx_dtype_name(a->dtype));
  else if (dtype && !in->bf16 && strcmp(dtype, mx_dtype_name(a->dtype)))
    rc = cli_error("%s: dtype is %s, not the %s of --dtype", path, mx_dtype_name(a->dtype), dtype);
  if (rc) input_close(in);
  return rc;
}

const float *input_at(const input *in, float *room, uint64_t first, uint64_t n) {
  const uint8_t *at = in->array->data + first * mx_dtype_bytes(in->array->dtype);
  if (in->array->dtype == MX_F32 && (uintptr_t)at % sizeof(float) == 0) return (const float *)(const void *)at;
  mx_array_read_f32(room, in->array, first, n, in->bf16);
  return room;
}

void input_close(input *in) {
  mx_file_close(in->file);
  in->file = NULL;
}

/* About this many values at a time. */
enum { PIECE = 1 << 20 };

static int write_pieces(const output *o, const cli_context *ctx, mx_writer *w, void *room, uint64_t most) {
  mx_error err;
  const size_t bytes = mx_dtype_bytes(o->dtype);
  progress p;
  progress_start(&p, ctx, o->command, o->n_values * bytes);
  int rc = CLI_FINE;
  for (uint64_t first = 0; first < o->n_values && !rc; first += most) {
    const size_t n = (size_t)(o->n_values - first < most ? o->n_values - first : most);
    rc = o->piece(o->self, room, first, n);
    if (!rc && mx_writer_write(w, 0, room, n * bytes, &err)) rc = cli_fail(&err);
    progress_at(&p, (first + n) * bytes);
  }
  if (!rc) progress_end(&p);
  return rc;
}

int output_write(const cli_context *ctx, const output *o) {
  mx_error err;
  mx_writer *w;
  if (!o->path) return cli_error("%s: no output, expected -o %s", o->command, o->expected);
  const uint64_t unit = o->unit ? o->unit : 1, most = (PIECE + unit - 1) / unit * unit, held = most < o->n_values ? most : o->n_values;
  if (mx_writer_open(&w, o->path, &err)) return cli_fail(&err);
  void *room = malloc((size_t)held * mx_dtype_bytes(o->dtype) + 1);
  int rc = CLI_FINE;
  mx_status status;
  if (!room)
    rc = cli_error("%s: no memory for %llu values", o->command, (unsigned long long)held);
  else if ((status = mx_writer_add(w, o->name, o->dtype, o->n_dims, o->shape, NULL)))
    rc = cli_error("%s: cannot hold %s of dtype %s: %s", o->path, o->name, mx_dtype_name(o->dtype), mx_status_text(status));
  else if (mx_writer_begin(w, &err))
    rc = cli_fail(&err);
  if (!rc) rc = write_pieces(o, ctx, w, room, most);
  free(room);
  if (!rc) return mx_writer_commit(w, &err) ? cli_fail(&err) : CLI_FINE;
  mx_writer_abort(w);
  return rc;
}
