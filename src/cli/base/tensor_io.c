/* Reads one plain tensor and writes one. */
#include "tensor_io.h"

#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "pipeline.h"
#include "progress.h"
#include "shape.h"

const char *input_dtypes(size_t index) {
  static const char *names[] = {"f32", "f16", "bf16", NULL};
  return names[index];
}

static int open_raw(input *in, const char *path, const input_form *form, mx_access access) {
  mx_error err;
  uint64_t shape[MX_MAX_DIMS];
  const int n = shape_parse(shape, MX_MAX_DIMS, form->shape);
  if (!n) return cli_error("--shape %.60s: expected RxC, such as 64x256, at most %d extents", form->shape, MX_MAX_DIMS);
  const int dtype = form->dtype ? mx_dtype_find(form->dtype) : MX_F32;
  if (mx_file_open_raw_by(&in->file, path, (mx_dtype)dtype, shape, n, access, &err)) return cli_fail(&err);
  in->array = mx_file_at(in->file, 0);
  return CLI_FINE;
}

int input_refuse_f64(const char *name) {
  return cli_error("%s: dtype is f64, expected f32, f16 or bf16: round it to float32 first, in numpy x.astype('float32')", name);
}

const char *input_why_not(const mx_array *a) {
  if (a->dtype == MX_F64) return "f64: round it to float32 first";
  return mx_array_read_f32(NULL, a, 0, 0, 0) ? "not floats" : NULL;
}

const char *input_no_input(const mx_file *file, const mx_array *a) {
  return file_ends_with(mx_file_path(file), ".mxv") && strcmp(a->name, "x") && strcmp(a->name, "input") ? "no input" : NULL;
}

int input_open(input *in, const char *path, const input_form *form, mx_access access) {
  mx_error err;
  const char *dtype = form->dtype;
  *in = (input){.path = path};
  if (form->shape) return open_raw(in, path, form, access);
  if (mx_tensor_open_by(&in->file, &in->array, path, access, &err)) return cli_fail(&err);
  const mx_array *a = in->array;
  in->bf16 = dtype && !strcmp(dtype, "bf16") && a->dtype == MX_U16;
  int rc = CLI_FINE;
  if (a->dtype == MX_F64)
    rc = input_refuse_f64(path);
  else if (mx_array_read_f32(NULL, a, 0, 0, in->bf16))
    rc = cli_error("%s: dtype is %s, expected f32, f16 or bf16 (uint16 with --dtype bf16)", path, mx_dtype_name(a->dtype));
  else if (dtype && !in->bf16 && strcmp(dtype, mx_dtype_name(a->dtype)))
    rc = cli_error("%s: dtype is %s, not the %s of --dtype", path, mx_dtype_name(a->dtype), dtype);
  if (rc) input_close(in);
  return rc;
}

int input_in_place(const input *in) {
  const mx_array *a = in->array;
  return a->dtype == MX_F32 && a->data && (uintptr_t)a->data % sizeof(float) == 0;
}

mx_status input_read(float *room, const mx_array *a, uint64_t first, uint64_t n, int bf16, mx_error *err) {
  const mx_status s = mx_array_read_f32(room, a, first, n, bf16);
  if (s == MX_ERR_IO) return mx_fail(err, s, "%s shrank while being read", mx_file_path(a->file));
  return s ? mx_fail(err, s, "%s: %s", mx_file_path(a->file), mx_status_text(s)) : MX_OK;
}

mx_status input_at(const float **out, const input *in, float *room, uint64_t first, uint64_t n, mx_error *err) {
  *out = input_in_place(in) ? (const float *)(const void *)in->array->data + first : room;
  return *out == room ? input_read(room, in->array, first, n, in->bf16, err) : MX_OK;
}

void input_close(input *in) {
  mx_file_close(in->file);
  in->file = NULL;
}

typedef struct job {
  const output *o;
  mx_writer *writer;
  progress p;
  uint64_t most; /* values of a piece */
} job;

static void *desk(void *self) {
  const job *j = self;
  const uint64_t held = j->most < j->o->n_values ? j->most : j->o->n_values;
  return malloc((size_t)held * mx_dtype_bytes(j->o->dtype) + 1);
}

static void leave(void *self, void *room) {
  (void)self;
  free(room);
}

static size_t values_of(const job *j, size_t piece) {
  const uint64_t left = j->o->n_values - piece * j->most;
  return (size_t)(left < j->most ? left : j->most);
}

static mx_status make(void *self, void *room, size_t piece, mx_error *err) {
  const job *j = self;
  return j->o->piece(j->o->self, room, piece * j->most, values_of(j, piece), err);
}

static mx_status keep(void *self, void *room, size_t piece, mx_error *err) {
  job *j = self;
  const size_t n = values_of(j, piece), bytes = mx_dtype_bytes(j->o->dtype);
  const mx_status status = mx_writer_write(j->writer, 0, room, n * bytes, err);
  if (j->o->passed) j->o->passed(j->o->self, piece * j->most, n);
  progress_at(&j->p, (piece * j->most + n) * bytes);
  return status;
}

static uint64_t piece_values(const output *o) {
  const uint64_t unit = o->unit ? o->unit : 1;
  return (OUTPUT_PIECE + unit - 1) / unit * unit;
}

size_t output_pieces(const output *o) {
  const uint64_t most = piece_values(o);
  return (size_t)(o->n_values / most + (o->n_values % most != 0));
}

static int write_pieces(const output *o, const cli_context *ctx, mx_writer *w) {
  mx_error err;
  job j = {.o = o, .writer = w, .most = piece_values(o)};
  const pipeline p = {
      .n_pieces = output_pieces(o), .n_threads = o->n_threads, .self = &j, .desk = desk, .leave = leave, .make = make, .keep = keep};
  progress_start(&j.p, ctx, o->command, o->n_values * mx_dtype_bytes(o->dtype));
  const mx_status status = pipeline_run(&p, &err);
  progress_end(&j.p);
  return status ? cli_fail(&err) : CLI_FINE;
}

int output_write(const cli_context *ctx, const output *o) {
  mx_error err;
  mx_writer *w;
  if (!o->path) return cli_error("%s: no output, expected -o %s", o->command, o->expected);
  if (mx_writer_open(&w, o->path, &err)) return cli_fail(&err);
  int rc = CLI_FINE;
  const mx_status status = mx_writer_add(w, o->name, o->dtype, o->n_dims, o->shape, NULL);
  if (status)
    rc = cli_error("%s: cannot hold %s of dtype %s: %s", o->path, o->name, mx_dtype_name(o->dtype), mx_status_text(status));
  else if (mx_writer_begin(w, &err))
    rc = cli_fail(&err);
  if (!rc) rc = write_pieces(o, ctx, w);
  if (!rc) return mx_writer_commit(w, &err) ? cli_fail(&err) : CLI_FINE;
  mx_writer_abort(w);
  return rc;
}
