/* Tests files of tensors: what is written is read back, and what is refused leaves nothing behind. (golden/bad/ and tests/fuzz/ have
 * malformed input.) */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/run.h"
#include "lib/scratch.h"
#include "mxgold/file.h"
#include "mxgold/nearest.h"

static scratch dir;
static mx_error err;

static void begin(void) { scratch_begin(&dir); }
static void end(void) { scratch_end(&dir); }

#define OK(call) ck_assert_msg((call) == MX_OK, "%s: %s", #call, err.text)
#define SAYS(text_) ck_assert_msg(strstr(err.text, text_), "said '%s', expected '%s' in it", err.text, text_)

/* Begins to write one tensor of bytes 0, 1, 2, ... to a file in the folder. */
static mx_writer *start(const char *name, mx_dtype dtype, int n_dims, const uint64_t *shape) {
  mx_writer *w;
  OK(mx_writer_open(&w, scratch_path(&dir, name), &err));
  ck_assert_int_eq(mx_writer_add(w, "t", dtype, n_dims, shape, NULL), MX_OK);
  OK(mx_writer_begin(w, &err));
  return w;
}

static void write_one(const char *name, mx_dtype dtype, int n_dims, const uint64_t *shape, const void *data, size_t n_bytes) {
  mx_writer *w = start(name, dtype, n_dims, shape);
  OK(mx_writer_write(w, 0, data, n_bytes, &err));
  OK(mx_writer_commit(w, &err));
}

START_TEST(error_is_one_line) {
  for (int s = 0; s < MX_STATUS_COUNT; s++) ck_assert(*mx_status_text((mx_status)s));
  ck_assert_str_eq(mx_status_text((mx_status)999), "unknown status");
  ck_assert_int_eq(mx_fail(NULL, MX_ERR_IO, "no one listens"), MX_ERR_IO);
  ck_assert_int_eq(mx_fail(&err, MX_ERR_IO, "a\nb\x1b[31m %d", 7), MX_ERR_IO);
  ck_assert_str_eq(err.text, "a?b?[31m 7");
  char longer[2000];
  memset(longer, 'x', sizeof longer - 1);
  longer[sizeof longer - 1] = 0;
  mx_fail(&err, MX_ERR_IO, "%s", longer);
  ck_assert_uint_eq(strlen(err.text), sizeof err.text - 1);
}
END_TEST

START_TEST(dtypes) {
  for (int d = 0; d < MX_DTYPE_COUNT; d++) {
    ck_assert_int_eq(mx_dtype_find(mx_dtype_name((mx_dtype)d)), d);
    ck_assert(mx_dtype_bytes((mx_dtype)d) > 0);
  }
  ck_assert_uint_eq(mx_dtype_bytes(MX_F32), 4);
  ck_assert_uint_eq(mx_dtype_bytes((mx_dtype)99), 0);
  ck_assert_int_eq(mx_dtype_find("f33"), -1);
  ck_assert_int_eq(mx_dtype_find(NULL), -1);
}
END_TEST

START_TEST(nearest_names) {
  static const char *const names[] = {"quantize", "dequantize", "encode", "decode", "te-nvfp4", "nvfp4", NULL};
  char out[64];
  ck_assert_uint_eq(mx_nearest(out, sizeof out, "quantise", mx_name_in_array, names), 1);
  ck_assert_str_eq(out, "quantize");
  mx_nearest(out, sizeof out, "nvpf4", mx_name_in_array, names); /* swapped neighbours count as one edit */
  ck_assert_str_eq(out, "nvfp4");
  mx_nearest(out, sizeof out, "TE_NVFP4", mx_name_in_array, names);
  ck_assert_str_eq(out, "te-nvfp4");
  ck_assert_uint_eq(mx_nearest(out, sizeof out, "dencode", mx_name_in_array, names), 2);
  ck_assert_str_eq(out, "encode, decode");
  ck_assert_uint_eq(mx_nearest(out, 4, "encode", mx_name_in_array, names), 0); /* no room */
  ck_assert_str_eq(out, "");
  ck_assert_uint_eq(mx_nearest(out, sizeof out, "x", mx_name_in_array, names + 6), 0);
  ck_assert_int_eq(mx_choice_find("nearest|sr|ms-eden", "sr"), 1);
  ck_assert_int_eq(mx_choice_find("nearest|sr|ms-eden", "ms-eden"), 2);
  ck_assert_int_eq(mx_choice_find("nearest|sr|ms-eden", "s"), -1);
  ck_assert_int_eq(mx_choice_find("nearest|sr|ms-eden", "ms-eden|"), -1);
  ck_assert_int_eq(mx_choice_find("nearest|sr|ms-eden", ""), -1);
}
END_TEST

static const uint64_t shape_6[] = {6}, shape_23[] = {2, 3}, shape_8[] = {1, 2, 1, 3, 1, 1, 1, 1}, shape_empty[] = {4, 0, 5};

static const struct {
  int n_dims;
  const uint64_t *shape;
  uint64_t n_values;
} shapes[] = {{0, NULL, 1}, {1, shape_6, 6}, {2, shape_23, 6}, {8, shape_8, 6}, {3, shape_empty, 0}};

static void check_round_trip(const char *name, mx_dtype dtype, int k) {
  uint8_t data[64];
  for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)(i * 37 + dtype);
  size_t n_bytes = shapes[k].n_values * mx_dtype_bytes(dtype);
  write_one(name, dtype, shapes[k].n_dims, shapes[k].shape, data, n_bytes);
  mx_file *f;
  OK(mx_file_open(&f, scratch_path(&dir, name), &err));
  ck_assert_str_eq(mx_file_path(f), dir.path);
  ck_assert_uint_eq(mx_file_count(f), 1);
  ck_assert_ptr_null(mx_file_at(f, 1));
  const mx_array *a;
  OK(mx_file_find(&a, f, NULL, &err));
  ck_assert_int_eq(a->dtype, dtype);
  ck_assert_int_eq(a->n_dims, shapes[k].n_dims);
  for (int i = 0; i < a->n_dims; i++) ck_assert_uint_eq(a->shape[i], shapes[k].shape[i]);
  ck_assert_uint_eq(a->n_values, shapes[k].n_values);
  ck_assert_uint_eq(a->n_bytes, n_bytes);
  ck_assert_uint_eq((uintptr_t)a->data % 64, 0); /* headers are padded */
  ck_assert(n_bytes == 0 || !memcmp(a->data, data, n_bytes));
  mx_file_close(f);
}

START_TEST(npy_round_trip) {
  for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++)
    if (*mx_dtype_npy((mx_dtype)_i)) check_round_trip("x.npy", (mx_dtype)_i, (int)k);
}
END_TEST

START_TEST(safetensors_round_trip) {
  for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) check_round_trip("x.safetensors", (mx_dtype)_i, (int)k);
}
END_TEST

/* What numpy.save() writes for float32 [2, 3], [6] and [], typed from its output. */
START_TEST(npy_is_numpys) {
  static const char *const want[] = {"{'descr': '<f4', 'fortran_order': False, 'shape': (), }",
                                     "{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }",
                                     "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"};
  static const float data[6] = {1, 2, 3, 4, 5, 6};
  for (int k = 0; k < 3; k++) {
    size_t n, n_data = 4 * shapes[k].n_values;
    write_one("x.npy", MX_F32, shapes[k].n_dims, shapes[k].shape, data, n_data);
    uint8_t *b = scratch_read(&dir, "x.npy", &n);
    ck_assert_uint_eq(n, 128 + n_data);
    ck_assert(!memcmp(b, "\x93NUMPY\x01\x00\x76\x00", 10));
    ck_assert(!memcmp(b + 10, want[k], strlen(want[k])));
    for (size_t i = 10 + strlen(want[k]); i < 127; i++) ck_assert_int_eq(b[i], ' ');
    ck_assert_int_eq(b[127], '\n');
    ck_assert(!memcmp(b + 128, data, n_data));
    free(b);
  }
}
END_TEST

/* Forms that numpy and others write, but our writer does not. */
START_TEST(npy_other_forms) {
  static const struct {
    const char *dict;
    int n_dims;
  } forms[] = {{"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}", 2},
               {"{\"shape\":(6,),\"fortran_order\":False,\"descr\":\"<f4\"}", 1},
               {"{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 3L,), }", 2},
               {"  { 'descr' : '<f4' ,'fortran_order':False, 'shape':( 2 ,3 ) }\t", 2}};
  for (size_t k = 0; k < sizeof forms / sizeof *forms; k++)
    for (int version = 1; version <= 3; version++) {
      uint8_t b[256] = {0};
      size_t start_at = version == 1 ? 10 : 12, n = strlen(forms[k].dict);
      memcpy(b, "\x93NUMPY", 6);
      b[6] = (uint8_t)version;
      b[8] = (uint8_t)n;
      memcpy(b + start_at, forms[k].dict, n);
      scratch_write(&dir, "x.npy", b, start_at + n + 24);
      mx_file *f;
      OK(mx_file_open(&f, scratch_path(&dir, "x.npy"), &err));
      ck_assert_int_eq(mx_file_at(f, 0)->n_dims, forms[k].n_dims);
      ck_assert_uint_eq(mx_file_at(f, 0)->n_values, 6);
      mx_file_close(f);
    }
}
END_TEST

START_TEST(digest_is_xxh128sum) {
  char text[33];
  mx_digest(text, NULL, 0);
  ck_assert_str_eq(text, "99aa06d3014798d86001c324468d497f"); /* XXH3-128 of nothing, from the xxHash test vectors */
  mx_digest(text, "abc", 3);
  ck_assert_str_eq(text, "06b05ab6733a618578af5f94892f3950"); /* printf abc | xxh128sum */
}
END_TEST

/* Tensors written interleaved in pieces of all sizes, metadata that needs escapes, and stated digests that match the data. */
START_TEST(safetensors_many) {
  enum { N = 700000 };
  const char *odd = "a:b \"quoted\" \xc3\xa9", *spec = "{\"elem\": \"e2m1\"}\n\t\\";
  uint8_t *big = malloc(N);
  for (size_t i = 0; i < N; i++) big[i] = (uint8_t)(i * i >> 3);
  const uint64_t all[] = {N}, three[] = {3}, none[] = {0};
  mx_writer *w;
  OK(mx_writer_open(&w, scratch_path(&dir, "x.safetensors"), &err));
  ck_assert(!mx_writer_is_npy(w));
  size_t codes, three_at;
  ck_assert_int_eq(mx_writer_add(w, "codes", MX_U8, 1, all, &codes), MX_OK);
  ck_assert_int_eq(mx_writer_add(w, odd, MX_U8, 1, three, &three_at), MX_OK);
  ck_assert_int_eq(mx_writer_add(w, "empty", MX_F32, 1, none, NULL), MX_OK);
  ck_assert_int_eq(mx_writer_meta(w, "spec", spec), MX_OK);
  OK(mx_writer_begin(w, &err));
  size_t at = 0, n_pieces = 0;
  for (size_t piece = 1; at < N; piece = piece * 3 + 1, n_pieces++) {
    size_t n = piece < N - at ? piece : N - at;
    OK(mx_writer_write(w, codes, big + at, n, &err));
    if (n_pieces < 3) OK(mx_writer_write(w, three_at, &"xyz"[n_pieces], 1, &err));
    at += n;
  }
  OK(mx_writer_commit(w, &err));
  ck_assert_int_eq(scratch_count(&dir), 1);

  mx_file *f;
  const mx_array *a;
  OK(mx_file_open(&f, scratch_path(&dir, "x.safetensors"), &err));
  ck_assert_uint_eq(mx_file_count(f), 3);
  OK(mx_file_find(&a, f, "codes", &err));
  ck_assert(a->n_bytes == N && !memcmp(a->data, big, N));
  OK(mx_file_find(&a, f, odd, &err));
  ck_assert(a->n_bytes == 3 && !memcmp(a->data, "xyz", 3));
  ck_assert_str_eq(mx_file_meta(f, "spec"), spec);
  ck_assert_ptr_null(mx_file_meta(f, "no such key"));
  ck_assert_uint_eq(mx_file_meta_count(f), 4);
  for (size_t i = 0; i < mx_file_count(f); i++) {
    char key[64], digest[33];
    a = mx_file_at(f, i);
    snprintf(key, sizeof key, "xxh3.%s", a->name);
    mx_digest(digest, a->data, a->n_bytes);
    ck_assert_str_eq(mx_file_meta(f, key), digest);
  }
  ck_assert_int_eq(mx_file_find(&a, f, NULL, &err), MX_ERR_KEY);
  SAYS("x.safetensors: 3 tensors, expected the name of one");
  ck_assert_int_eq(mx_file_find(&a, f, "cods", &err), MX_ERR_KEY);
  SAYS("no tensor 'cods', nearest: codes");
  ck_assert_ptr_null(a);
  mx_file_close(f);

  char where[600];
  snprintf(where, sizeof where, "%s:%s", dir.path, odd); /* a name with a colon in it */
  OK(mx_tensor_open(&f, &a, where, &err));
  ck_assert_uint_eq(a->n_bytes, 3);
  mx_file_close(f);
  snprintf(where, sizeof where, "%s:nothing", dir.path);
  ck_assert_int_eq(mx_tensor_open(&f, &a, where, &err), MX_ERR_KEY);
  ck_assert_ptr_null(f);
  free(big);
}
END_TEST

START_TEST(raw_bytes) {
  mx_file *f;
  scratch_write(&dir, "x.raw", "abcdef", 6);
  const uint64_t shape[] = {3, 1}, overflow[] = {1ull << 32, 1ull << 32};
  OK(mx_file_open_raw(&f, scratch_path(&dir, "x.raw"), MX_U16, shape, 2, &err));
  ck_assert(!memcmp(mx_file_at(f, 0)->data, "abcdef", 6));
  mx_file_close(f);
  ck_assert_int_eq(mx_file_open_raw(&f, dir.path, MX_F32, shape, 2, &err), MX_ERR_FORMAT);
  SAYS("x.raw: byte 6: the file holds 6 bytes, expected 12 of the stated shape of f32");
  ck_assert_int_eq(mx_file_open_raw(&f, dir.path, MX_U8, shape, 2, &err), MX_ERR_FORMAT);
  ck_assert_int_eq(mx_file_open_raw(&f, dir.path, MX_U8, overflow, 2, &err), MX_ERR_SHAPE);
  ck_assert_int_eq(mx_file_open_raw(&f, dir.path, MX_U8, shape, 9, &err), MX_ERR_SHAPE);
  ck_assert_ptr_null(f);
}
END_TEST

START_TEST(cannot_open) {
  mx_file *f;
  ck_assert_int_eq(mx_file_open(&f, scratch_path(&dir, "none.npy"), &err), MX_ERR_IO);
  SAYS("none.npy: cannot open: No such file or directory");
  ck_assert_int_eq(mx_file_open(&f, dir.dir, &err), MX_ERR_IO);
  SAYS("cannot read: Is a directory");
  ck_assert_ptr_null(f);
}
END_TEST

/* Every binary16 and bfloat16 value against ldexp(), with all lengths of the tail and at an odd address. */
static double binary16(unsigned h) {
  int e = (int)(h >> 10 & 31), m = (int)(h & 1023);
  double v = e == 0 ? ldexp(m, -24) : e == 31 ? (m ? NAN : INFINITY) : ldexp(1024 + m, e - 25);
  return h & 0x8000 ? -v : v;
}

START_TEST(read_f32) {
  static uint8_t bytes[2 * 65536 + 1];
  static float out[65536];
  for (unsigned i = 0; i < 65536; i++) {
    bytes[2 * i + 1] = (uint8_t)i;
    bytes[2 * i + 2] = (uint8_t)(i >> 8);
  }
  mx_array a = {.name = "", .dtype = MX_F16, .n_dims = 1, .shape = {65536}, .n_values = 65536, .n_bytes = 131072, .data = bytes + 1};
  ck_assert_int_eq(mx_array_read_f32(out, &a, 0, 65536, 0), MX_OK);
  for (unsigned i = 0; i < 65536; i++) {
    double want = binary16(i);
    ck_assert_msg((isnan(want) && isnan(out[i])) || out[i] == want, "binary16 %04x: %a, expected %a", i, (double)out[i], want);
    ck_assert_int_eq(!!signbit(out[i]), (int)(i >> 15));
  }
  for (uint64_t n = 0; n < 200; n++) {
    out[n] = 12345;
    ck_assert_int_eq(mx_array_read_f32(out, &a, 1000, n, 0), MX_OK);
    for (uint64_t i = 0; i < n; i++) ck_assert(out[i] == binary16((unsigned)(1000 + i)));
    ck_assert(out[n] == 12345);
  }
  for (int u16 = 0; u16 < 2; u16++) {
    a.dtype = u16 ? MX_U16 : MX_BF16;
    ck_assert_int_eq(mx_array_read_f32(out, &a, 0, 65536, u16), MX_OK);
    for (uint32_t i = 0; i < 65536; i++) {
      uint32_t bits;
      memcpy(&bits, out + i, 4);
      ck_assert_uint_eq(bits, i << 16);
    }
  }
  ck_assert_int_eq(mx_array_read_f32(out, &a, 0, 1, 0), MX_ERR_UNSUPPORTED);
  a.dtype = MX_I32;
  ck_assert_int_eq(mx_array_read_f32(out, &a, 0, 0, 1), MX_ERR_UNSUPPORTED);
  a.dtype = MX_F16;
  ck_assert_int_eq(mx_array_read_f32(out, &a, 65535, 2, 0), MX_ERR_SHAPE);
  ck_assert_int_eq(mx_array_read_f32(out, &a, UINT64_MAX, 2, 0), MX_ERR_SHAPE);
}
END_TEST

/* Opened by reading, a file has no bytes in memory but gives the same values and any part of them, and if it is cut short there is an error,
 * not a signal. */
START_TEST(by_reading) {
  uint16_t halves[300 * 217];
  float mapped[300 * 217], read[300 * 217];
  for (size_t i = 0; i < 300 * 217; i++) halves[i] = (uint16_t)(i * 40503 >> 3);
  for (int kind = 0; kind < 3; kind++) {
    static const mx_dtype kinds[] = {MX_F16, MX_BF16, MX_F32};
    const char *name = "r.safetensors", *path = scratch_path(&dir, name);
    const size_t width = kind == 2 ? 4 : 2, n = 300 * 217 * 2 / width;
    const uint64_t here[2] = {kind == 2 ? 150 : 300, 217};
    write_one(name, kinds[kind], 2, here, halves, sizeof halves);
    mx_file *a, *b;
    const mx_array *x, *y;
    char digest[2][33];
    OK(mx_tensor_open(&a, &x, path, &err));
    OK(mx_tensor_open_by(&b, &y, path, MX_BY_READING, &err));
    ck_assert(x->data && !y->data && x->at == y->at && y->file == b);
    OK(mx_array_read_f32(mapped, x, 0, n, 0));
    OK(mx_array_read_f32(read, y, 0, n, 0));
    ck_assert_mem_eq(mapped, read, n * sizeof *read);
    OK(mx_array_read_f32(read, y, 1001, 20011, 0));
    ck_assert_mem_eq(mapped + 1001, read, 20011 * sizeof *read);
    OK(mx_array_digest(digest[0], x, &err));
    OK(mx_array_digest(digest[1], y, &err));
    ck_assert_str_eq(digest[0], digest[1]);
    OK(mx_file_check_digests(b, &err));
    ck_assert_int_eq(mx_array_read(read, y, y->n_bytes - 4, 5, &err), MX_ERR_SHAPE);
    ck_assert_int_eq(mx_array_read(read, y, UINT64_MAX, 5, &err), MX_ERR_SHAPE);
    ck_assert_int_eq(truncate(path, (off_t)(y->at + y->n_bytes - 1)), 0);
    ck_assert_int_eq(mx_array_read(read, y, y->n_bytes - 8, 8, &err), MX_ERR_IO);
    SAYS("r.safetensors shrank while being read");
    ck_assert_int_eq(mx_array_read_f32(read, y, 0, n, 0), MX_ERR_IO);
    ck_assert_ptr_null(mx_file_shrunk()); /* the guard was not installed */
    mx_file_close(a);
    mx_file_close(b);
  }
}
END_TEST

/* Standard input can be a pipe longer than its buffer, or a file whose start has been read. */
START_TEST(standard_input) {
  enum { N = 300000 };
  uint8_t *data = calloc(1, N);
  data[N - 1] = 7;
  const uint64_t shape[] = {N};
  write_one("x.npy", MX_U8, 1, shape, data, N);
  size_t n;
  uint8_t *whole = scratch_read(&dir, "x.npy", &n);
  int ends[2];
  ck_assert_int_eq(pipe(ends), 0);
  pid_t child = fork();
  if (!child) {
    for (size_t at = 0; at < n;) {
      ssize_t got = write(ends[1], whole + at, n - at);
      if (got < 0) _exit(1);
      at += (size_t)got;
    }
    _exit(0);
  }
  close(ends[1]);
  dup2(ends[0], 0);
  mx_file *f;
  OK(mx_file_open(&f, "-", &err));
  ck_assert_str_eq(mx_file_path(f), "standard input");
  ck_assert(mx_file_at(f, 0)->n_bytes == N && mx_file_at(f, 0)->data[N - 1] == 7);
  mx_file_close(f);
  waitpid(child, NULL, 0);

  scratch_write(&dir, "y", "12345", 5);
  FILE *after = fopen(scratch_path(&dir, "y"), "ab");
  fwrite(whole, 1, n, after);
  fclose(after);
  int fd = open(dir.path, O_RDONLY);
  ck_assert_int_eq(lseek(fd, 5, SEEK_SET), 5);
  dup2(fd, 0);
  OK(mx_file_open(&f, "-", &err));
  ck_assert_uint_eq(mx_file_at(f, 0)->n_bytes, N);
  mx_file_close(f);
  free(whole);
  free(data);
}
END_TEST

START_TEST(writer_refuses) {
  mx_writer *w;
  const uint64_t overflow[] = {1ull << 32, 1ull << 32};
  ck_assert_int_eq(mx_writer_open(&w, scratch_path(&dir, "x.txt"), &err), MX_ERR_ARG);
  SAYS("x.txt: unknown kind of output, expected a name that ends in .npy or .safetensors");
  OK(mx_writer_open(&w, scratch_path(&dir, "x.npy"), &err));
  ck_assert_int_eq(mx_writer_begin(w, &err), MX_ERR_ARG);
  ck_assert_int_eq(mx_writer_add(w, "t", MX_BF16, 2, shape_23, NULL), MX_ERR_UNSUPPORTED);
  ck_assert_int_eq(mx_writer_add(w, "t", MX_F32, 2, shape_23, NULL), MX_OK);
  ck_assert_int_eq(mx_writer_add(w, "u", MX_F32, 2, shape_23, NULL), MX_ERR_UNSUPPORTED);
  ck_assert_int_eq(mx_writer_meta(w, "k", "v"), MX_ERR_UNSUPPORTED);
  mx_writer_abort(w);
  OK(mx_writer_open(&w, scratch_path(&dir, "x.safetensors"), &err));
  ck_assert_int_eq(mx_writer_add(w, "t", MX_F32, 2, overflow, NULL), MX_ERR_SHAPE);
  ck_assert_int_eq(mx_writer_add(w, "t", MX_F32, 9, shape_8, NULL), MX_ERR_SHAPE);
  ck_assert_int_eq(mx_writer_add(w, "t", MX_F32, 2, shape_23, NULL), MX_OK);
  ck_assert_int_eq(mx_writer_add(w, "t", MX_F32, 2, shape_23, NULL), MX_ERR_ARG);
  ck_assert_int_eq(mx_writer_add(w, "__metadata__", MX_F32, 2, shape_23, NULL), MX_ERR_ARG);
  ck_assert_int_eq(mx_writer_add(w, "\xff", MX_F32, 2, shape_23, NULL), MX_ERR_ARG);
  ck_assert_int_eq(mx_writer_meta(w, "xxh3.t", "0"), MX_ERR_ARG);
  ck_assert_int_eq(mx_writer_meta(w, "k", "\xed\xa0\x80"), MX_ERR_ARG); /* half a surrogate pair */
  ck_assert_int_eq(mx_writer_meta(w, "k", "v"), MX_OK);
  ck_assert_int_eq(mx_writer_meta(w, "k", "w"), MX_ERR_ARG);
  ck_assert_int_eq(mx_writer_write(w, 0, "x", 1, &err), MX_ERR_ARG); /* writing has not begun */
  ck_assert_int_eq(scratch_count(&dir), 0);
  OK(mx_writer_begin(w, &err));
  ck_assert_int_eq(mx_writer_begin(w, &err), MX_ERR_ARG);
  ck_assert_int_eq(mx_writer_write(w, 0, err.text, 25, &err), MX_ERR_SHAPE);
  ck_assert_int_eq(mx_writer_write(w, 1, "x", 1, &err), MX_ERR_ARG);
  mx_writer_abort(w);
  mx_writer_abort(NULL);
  ck_assert_int_eq(scratch_count(&dir), 0);
}
END_TEST

/* Until commit the old file stays; afterwards there is the new one, with the old one's mode, behind the same link. */
START_TEST(writer_replaces_whole_files) {
  scratch_write(&dir, "x.npy", "old", 3);
  chmod(dir.path, 0640);
  char link_path[600];
  snprintf(link_path, sizeof link_path, "%s/link.npy", dir.dir);
  ck_assert_int_eq(symlink("x.npy", link_path), 0);
  mx_writer *w = start("link.npy", MX_F32, 2, shape_23);
  OK(mx_writer_write(w, 0, "0123456789", 10, &err));
  ck_assert_int_eq(mx_writer_commit(w, &err), MX_ERR_SHAPE);
  SAYS("link.npy: tensor 't' got 10 bytes, expected 24");
  size_t n;
  uint8_t *b = scratch_read(&dir, "x.npy", &n);
  ck_assert(n == 3 && !memcmp(b, "old", 3));
  free(b);
  ck_assert_int_eq(scratch_count(&dir), 2);
  write_one("link.npy", MX_F32, 2, shape_23, "0123456789abcdefghijklmn", 24);
  ck_assert_int_eq(scratch_count(&dir), 2);
  struct stat st;
  ck_assert(!lstat(link_path, &st) && S_ISLNK(st.st_mode));
  ck_assert(!stat(scratch_path(&dir, "x.npy"), &st) && st.st_size == 128 + 24);
  ck_assert_int_eq(st.st_mode & 0777, 0640);
}
END_TEST

START_TEST(writer_unwritable) {
  mx_writer *w;
  OK(mx_writer_open(&w, scratch_path(&dir, "none/x.npy"), &err));
  ck_assert_int_eq(mx_writer_add(w, "t", MX_F32, 2, shape_23, NULL), MX_OK);
  ck_assert_int_eq(mx_writer_begin(w, &err), MX_ERR_IO);
  SAYS("none/x.npy: cannot create a file beside it: No such file or directory");
  mx_writer_abort(w);
  ck_assert_int_eq(mkdir(scratch_path(&dir, "d.npy"), 0777), 0);
  OK(mx_writer_open(&w, dir.path, &err));
  ck_assert_int_eq(mx_writer_add(w, "t", MX_F32, 2, shape_23, NULL), MX_OK);
  ck_assert_int_eq(mx_writer_begin(w, &err), MX_ERR_IO);
  SAYS("d.npy: cannot write: Is a directory");
  mx_writer_abort(w);
  rmdir(scratch_path(&dir, "d.npy"));
}
END_TEST

/* A file that is larger than any disk is refused before any work, and leaves nothing behind. */
START_TEST(disk_too_small) {
  const uint64_t huge[] = {1ull << 60};
  mx_writer *w;
  OK(mx_writer_open(&w, scratch_path(&dir, "x.safetensors"), &err));
  ck_assert_int_eq(mx_writer_add(w, "t", MX_U8, 1, huge, NULL), MX_OK);
  ck_assert_int_eq(mx_writer_begin(w, &err), MX_ERR_IO);
  SAYS("x.safetensors: cannot claim 11529215046068");
  mx_writer_abort(w);
  ck_assert_int_eq(scratch_count(&dir), 0);
}
END_TEST

/* A disk of 1 MiB, on which 600 KiB are claimed twice. Mounting it needs root; without root the test above must do. */
START_TEST(disk_full) {
  if (geteuid() || mount("none", dir.dir, "tmpfs", 0, "size=1m")) return;
  enum { N = 600 << 10 };
  const uint64_t shape[] = {N};
  uint8_t *data = calloc(1, N);
  write_one("x.safetensors", MX_U8, 1, shape, data, N);
  mx_writer *w;
  OK(mx_writer_open(&w, scratch_path(&dir, "y.safetensors"), &err));
  ck_assert_int_eq(mx_writer_add(w, "t", MX_U8, 1, shape, NULL), MX_OK);
  mx_status s = mx_writer_begin(w, &err);
  mx_writer_abort(w);
  int left = scratch_count(&dir);
  umount(dir.dir);
  free(data);
  ck_assert_int_eq(s, MX_ERR_IO);
  SAYS("No space left on device");
  ck_assert_int_eq(left, 1);
}
END_TEST

/* Standard output gets the bytes of the file; a reader that is gone and a full device are errors. */
START_TEST(standard_output) {
  int keep = dup(1), ends[2];
  ck_assert_int_eq(pipe(ends), 0);
  dup2(ends[1], 1);
  mx_writer *w;
  OK(mx_writer_open(&w, "-", &err));
  ck_assert_int_eq(mx_writer_add(w, "t", MX_F32, 2, shape_23, NULL), MX_OK);
  OK(mx_writer_begin(w, &err));
  OK(mx_writer_write(w, 0, "0123456789abcdefghijklmn", 24, &err));
  mx_status s = mx_writer_commit(w, &err);
  dup2(keep, 1);
  close(ends[1]);
  ck_assert_msg(s == MX_OK, "%s", err.text);
  write_one("x.safetensors", MX_F32, 2, shape_23, "0123456789abcdefghijklmn", 24);
  size_t n;
  uint8_t *want = scratch_read(&dir, "x.safetensors", &n), got[4096];
  ck_assert_int_eq(read(ends[0], got, sizeof got), (ssize_t)n);
  ck_assert(!memcmp(got, want, n));
  free(want);
  close(ends[0]);

  signal(SIGPIPE, SIG_IGN);
  ck_assert_int_eq(pipe(ends), 0);
  close(ends[0]);
  dup2(ends[1], 1);
  OK(mx_writer_open(&w, "-", &err));
  ck_assert_int_eq(mx_writer_add(w, "t", MX_F32, 0, NULL, NULL), MX_OK);
  OK(mx_writer_begin(w, &err));
  OK(mx_writer_write(w, 0, "0123", 4, &err));
  s = mx_writer_commit(w, &err);
  dup2(keep, 1);
  ck_assert_int_eq(s, MX_ERR_IO);
  ck_assert_str_eq(err.text, "standard output: byte 0: cannot write: Broken pipe");

  OK(mx_writer_open(&w, "/dev/full", &err));
  ck_assert_int_eq(mx_writer_add(w, "t", MX_F32, 0, NULL, NULL), MX_OK);
  OK(mx_writer_begin(w, &err));
  OK(mx_writer_write(w, 0, "0123", 4, &err));
  ck_assert_int_eq(mx_writer_commit(w, &err), MX_ERR_IO);
  ck_assert_str_eq(err.text, "/dev/full: byte 0: cannot write: No space left on device");
}
END_TEST

/* After a signal in the middle of writing the old file is still there, the temporary one is gone, and the process ends with 2 after one
 * line. */
START_TEST(interrupted) {
  static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
  scratch_write(&dir, "x.npy", "old", 3);
  int ends[2];
  ck_assert_int_eq(pipe(ends), 0);
  pid_t child = fork();
  if (!child) {
    signal(signals[_i], SIG_DFL); /* a background job may have inherited that the signal is ignored */
    dup2(ends[1], STDERR_FILENO);
    mx_writer_install_signal_cleanup();
    mx_writer *w = start("x.npy", MX_F32, 2, shape_23);
    mx_writer_write(w, 0, "0123", 4, &err);
    if (scratch_count(&dir) > 2 || write(ends[1], "x", 1) != 1) _exit(1); /* only one if the file has no name yet */
    for (;;) pause();
  }
  char ready;
  ck_assert_int_eq(read(ends[0], &ready, 1), 1);
  kill(child, signals[_i]);
  int status;
  waitpid(child, &status, 0);
  ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 2);
  char said[80] = "";
  ck_assert_int_gt(read(ends[0], said, sizeof said - 1), 0);
  ck_assert_str_eq(strchr(said, ','), ", no file was changed\n");
  size_t n;
  free(scratch_read(&dir, "x.npy", &n));
  ck_assert_uint_eq(n, 3);
  ck_assert_int_eq(scratch_count(&dir), 1);
}
END_TEST

int main(void) {
  Suite *s = suite_create("file");
  TCase *names = tcase_create("names");
  tcase_add_test(names, error_is_one_line);
  tcase_add_test(names, dtypes);
  tcase_add_test(names, nearest_names);
  suite_add_tcase(s, names);
  TCase *files = tcase_create("files");
  tcase_add_checked_fixture(files, begin, end);
  tcase_set_timeout(files, 60);
  tcase_add_loop_test(files, npy_round_trip, 0, MX_DTYPE_COUNT);
  tcase_add_loop_test(files, safetensors_round_trip, 0, MX_DTYPE_COUNT);
  tcase_add_test(files, npy_is_numpys);
  tcase_add_test(files, npy_other_forms);
  tcase_add_test(files, digest_is_xxh128sum);
  tcase_add_test(files, safetensors_many);
  tcase_add_test(files, raw_bytes);
  tcase_add_test(files, cannot_open);
  tcase_add_test(files, read_f32);
  tcase_add_test(files, by_reading);
  tcase_add_test(files, standard_input);
  tcase_add_test(files, writer_refuses);
  tcase_add_test(files, writer_replaces_whole_files);
  tcase_add_test(files, writer_unwritable);
  tcase_add_test(files, disk_too_small);
  tcase_add_test(files, disk_full);
  tcase_add_test(files, standard_output);
  tcase_add_loop_test(files, interrupted, 0, 3);
  suite_add_tcase(s, files);
  return run_suite(s);
}
