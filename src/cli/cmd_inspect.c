/* Runs mxgold inspect: tensors, metadata and digests of a file; histograms and error of a quantised one. */
#include <stdio.h>
#include <string.h>

#include "cli/base/cli.h"
#include "inspect_quantized.h"
#include "cli/base/out.h"
#include "cli/base/progress.h"
#include "cli/base/tensor_io.h"

struct args {
  const char *file, *input;
  input_form form;
  int json, no_digests;
};

static const cli_option options[] = {
    {"FILE", 0, CLI_POS, offsetof(struct args, file), NULL, "a .npy or .safetensors file, or - for standard input", NULL},
    {"json", 0, CLI_FLAG, offsetof(struct args, json), NULL, "print JSON", NULL},
    {"input", 0, CLI_STRING, offsetof(struct args, input), "X.npy", "for a quantised file: what it was made from, to compute the error", NULL},
    INPUT_OPTIONS(args, form),
    {"no-digests", 0, CLI_FLAG, offsetof(struct args, no_digests), NULL, "read only headers, not the data", NULL},
    {0},
};

/* One row a tensor; *n_differ: how many differ from their stated digest. */
static int list_tensors(out *o, size_t *n_differ, const mx_file *f, const cli_context *ctx, int digests) {
  uint64_t total = 0, done = 0;
  int rc = CLI_FINE;
  for (size_t i = 0; i < mx_file_count(f); i++) total += mx_file_at(f, i)->n_bytes;
  progress p;
  progress_start(&p, ctx, "digests", total);
  out_table(o, "tensors");
  for (size_t i = 0; i < mx_file_count(f) && !rc; i++) {
    const mx_array *a = mx_file_at(f, i);
    out_row(o);
    out_text(o, "name", a->name);
    out_text(o, "dtype", mx_dtype_name(a->dtype));
    out_shape(o, "shape", a->shape, a->n_dims);
    out_u64(o, "bytes", a->n_bytes);
    if (!digests) continue;
    char digest[33];
    mx_error err;
    if (mx_array_digest(digest, a, &err)) {
      rc = cli_fail(&err);
      continue;
    }
    progress_at(&p, done += a->n_bytes);
    const char *stated = mx_file_stated_digest(f, a);
    int differs = stated && strcmp(stated, digest);
    *n_differ += (size_t)differs;
    out_text(o, "xxh3-128", digest);
    out_text(o, "stated", !stated ? "none" : differs ? "differs" : "same");
  }
  out_end(o);
  if (digests) progress_end(&p);
  return rc;
}

static void list_metadata(out *o, const mx_file *f) {
  int any = 0;
  for (size_t i = 0; i < mx_file_meta_count(f); i++) {
    const char *value, *key = mx_file_meta_at(f, i, &value);
    if (!strncmp(key, "xxh3.", 5)) continue; /* said in the table of tensors */
    if (!any++) out_object(o, "metadata");
    out_text(o, key, value);
  }
  if (any) out_end(o);
}

static int run(const cli_context *ctx, void *args) {
  const struct args *a = args;
  mx_error err;
  mx_file *f;
  if ((a->form.dtype || a->form.shape) && !a->input)
    return cli_error("inspect: --%s is about the file of --input, expected --input X.npy", a->form.dtype ? "dtype" : "shape");
  if (mx_file_open(&f, a->file, &err)) return cli_fail(&err);
  mx_quantized q = {0};
  const int is_quantized = mx_file_meta(f, "spec") && mx_quantized_take(&q, f, &err) == MX_OK;
  if (a->input && !is_quantized) {
    cli_error("%s: --input: %s", a->file, mx_file_meta(f, "spec") ? err.text : "not a quantised file, expected what mxgold quantize wrote");
    mx_file_close(f);
    return CLI_TROUBLE;
  }
  out *o = out_new();
  out_text(o, "file", mx_file_path(f));
  size_t n_differ = 0;
  int rc = list_tensors(o, &n_differ, f, ctx, !a->no_digests);
  list_metadata(o, f);
  if (!rc && is_quantized && !a->no_digests) inspect_histograms(o, &q);
  if (!rc && a->input) rc = inspect_error(o, &q, a->input, &a->form);
  if (is_quantized)
    mx_quantized_close(&q);
  else
    mx_file_close(f);
  if (rc) {
    out_free(o);
    return rc;
  }
  rc = out_print(o, a->json);
  return rc ? rc : n_differ ? CLI_DIFFERS : CLI_FINE;
}

const cli_command cmd_inspect = {
    options, sizeof(struct args), run,
    "For a quantised matrix it also counts codes and scales, and with --input prints the error of the dequantised values (in the rotated "
    "basis, "
    "if the\n"
    "spec has a rotation). Digests are XXH3-128, as xxh128sum prints them; a file that mxgold wrote states them in its metadata.\n"
    "Exit status 1 if a stated digest differs from the data."};
