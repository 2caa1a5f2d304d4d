/* Plays `mxgold mma` on the device: tiles of raw bits in, the device's bits out. What `mxgold probe` emits can be answered with it.

   device IN.safetensors INSTRUCTION OUT.safetensors [registers]
     IN           a [T,M,K], b [T,N,K], optional c [T,M,N]: raw bits as U8, U16, U32 or U64, in the instruction's M and N; K a multiple of its k
                  (4-bit types two a byte, low nibble first: K/2 columns)
     INSTRUCTION  a name of rows.def, "wgmma_m64n8k32_f32_e4m3_e4m3"
     registers    wgmma takes a from registers instead of shared memory
   Exit status: 0 done, 2 trouble. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mxgold/file.h"
#include "silicon.h"
#include "tiles.h"

#include <cuda_runtime_api.h>

static void die(const char *what, const char *why) {
  fprintf(stderr, "device: %s: %s\n", what, why);
  exit(2);
}

static void check(int e, const char *what) {
  if (e) die(what, cudaGetErrorString((cudaError_t)e));
}

static const sil_device_row *find(const char *name) {
  for (int i = 0; i < sil_mma_count; i++)
    if (!strcmp(sil_mma_rows[i].row.name, name)) return &sil_mma_rows[i];
  for (int i = 0; i < sil_f64_count; i++)
    if (!strcmp(sil_f64_rows[i].row.name, name)) return &sil_f64_rows[i];
  for (int i = 0; i < sil_wgmma_count; i++)
    if (!strcmp(sil_wgmma_rows[i].row.name, name)) return &sil_wgmma_rows[i];
  return NULL;
}

/* Copies a [T, rows, cols] tensor of the type's width to the device; cols = 0 allows any number of columns. */
static const mx_array *load(void **out, const mx_file *in, const char *name, uint64_t tiles, int rows, uint64_t cols, const tiles_type *type) {
  const mx_array *x;
  mx_error err = {0};
  if (mx_file_find(&x, in, name, &err)) die(name, err.text);
  if (x->n_dims != 3 || (tiles && x->shape[0] != tiles) || x->shape[1] != (uint64_t)rows || (cols && x->shape[2] != cols))
    die(name, "wrong shape");
  if (mx_dtype_bytes(x->dtype) != (size_t)type->bytes) die(name, "wrong width");
  check(cudaMalloc(out, x->n_bytes ? x->n_bytes : 1), "device memory");
  check(cudaMemcpy(*out, x->data, x->n_bytes, cudaMemcpyHostToDevice), name);
  return x;
}

int main(int argc, char **argv) {
  if (argc < 4) die("arguments", "device IN.safetensors INSTRUCTION OUT.safetensors [registers]");
  const sil_device_row *row = find(argv[2]);
  if (!row) die(argv[2], "no such instruction");
  mx_file *in;
  mx_error err = {0};
  if (mx_file_open(&in, argv[1], &err)) die(argv[1], err.text);
  const tiles_type *ta = tiles_type_find(row->row.a), *tb = tiles_type_find(row->row.b), *tc = tiles_type_find(row->row.c);
  int has_c = 0;
  for (size_t i = 0; i < mx_file_count(in); i++) has_c |= !strcmp(mx_file_at(in, i)->name, "c");
  void *a, *b, *c = NULL, *d;
  const mx_array *xa = load(&a, in, "a", 0, row->row.m, 0, ta);
  const uint64_t tiles = xa->shape[0], columns = xa->shape[2], k = columns * (tiles_packed(ta) ? 2 : 1),
                 shape[3] = {tiles, (uint64_t)row->row.m, (uint64_t)row->row.n};
  const size_t bytes = (size_t)(tiles * shape[1] * shape[2]) * (size_t)tc->bytes;
  if (!k || k % (uint64_t)row->row.k || k > 4096) die("a", "K is not a multiple of the instruction's k, or past 4096");
  load(&b, in, "b", tiles, row->row.n, columns, tb);
  if (has_c) load(&c, in, "c", tiles, row->row.m, shape[2], tc);
  uint8_t *host = malloc(bytes + 1);
  if (!host) die("memory", "none left");
  check(cudaMalloc(&d, bytes + 1), "device memory");
  check(cudaMemset(d, 0x5A, bytes), "poison");
  check(row->launch(a, b, c, d, tiles, (int)k, (has_c ? SIL_C : 0) | (argc > 4 ? SIL_A_IN_REGISTERS : 0)), row->row.name);
  check(cudaMemcpy(host, d, bytes, cudaMemcpyDeviceToHost), row->row.name);

  struct cudaDeviceProp device;
  check(cudaGetDeviceProperties(&device, 0), "device");
  mx_writer *out;
  size_t index;
  const mx_dtype dtype = tc->bytes == 2 ? MX_U16 : tc->bytes == 4 ? MX_U32 : MX_U64;
  if (mx_writer_open(&out, argv[3], &err) || mx_writer_add(out, "d", dtype, 3, shape, &index) || mx_writer_meta(out, "device", device.name) ||
      mx_writer_meta(out, "instruction", row->row.name) || mx_writer_begin(out, &err) || mx_writer_write(out, index, host, bytes, &err) ||
      mx_writer_commit(out, &err))
    die(argv[3], err.text);
  mx_file_close(in);
  free(host);
  return 0;
}
