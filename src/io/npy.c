/* Reads .npy, versions 1.0 to 3.0: magic, version, header length, a Python dict literal, the data.
 * Source: numpy/lib/format.py. The literal is parsed for exactly the three keys that the format knows; nothing is evaluated. */
#include <stdlib.h>
#include <string.h>

#include "io.h"

/* numpy.load() refuses headers above 10 000 bytes unless told otherwise; three keys need less. */
enum { MAX_HEADER = 65535 };

typedef struct cursor {
  const mx_file *f;
  mx_error *err;
  size_t at, end; /* positions in the file */
} cursor;

static mx_status expected(const cursor *c, const char *what) {
  if (c->at >= c->end) return mxi_io_malformed(c->f, c->err, c->at, "the .npy header ends here, expected %s", what);
  return mxi_io_malformed(c->f, c->err, c->at, "byte 0x%02x in the .npy header, expected %s", c->f->base[c->at], what);
}

static int peek(const cursor *c) { return c->at < c->end ? c->f->base[c->at] : -1; }

static void skip_space(cursor *c) {
  while (peek(c) == ' ' || peek(c) == '\n' || peek(c) == '\t' || peek(c) == '\r') c->at++;
}

static int take(cursor *c, const char *word) {
  size_t n = strlen(word);
  if (c->end - c->at < n || memcmp(c->f->base + c->at, word, n)) return 0;
  c->at += n;
  return 1;
}

/* Reads a string in either kind of quotes, without escapes, since nothing in the format needs one. */
static mx_status take_string(cursor *c, char *out, size_t n_out, const char *what) {
  int quote = peek(c);
  if (quote != '\'' && quote != '"') return expected(c, what);
  size_t start = c->at++, n = 0;
  for (; peek(c) != quote; c->at++) {
    if (peek(c) < 0x20 || peek(c) == '\\' || n + 1 >= n_out) {
      c->at = start;
      return expected(c, what);
    }
    out[n++] = (char)peek(c);
  }
  out[n] = 0;
  c->at++;
  return MX_OK;
}

static mx_status take_descr(cursor *c, mx_array *a) {
  size_t start = c->at;
  char descr[32];
  if (peek(c) == '[' || peek(c) == '(')
    return mxi_io_malformed(c->f, c->err, start, "structured dtype, expected one of the plain dtypes such as '<f4', '<f2' or '|u1'");
  mx_status s = take_string(c, descr, sizeof descr, "a dtype such as '<f4'");
  if (s) return s;
  for (int d = 0; d < MX_DTYPE_COUNT; d++) {
    const char *row = mx_dtype_npy((mx_dtype)d);
    if (!*row || strcmp(row + 1, descr[0] ? descr + 1 : "")) continue;
    int one_byte = row[0] == '|';
    if (descr[0] == row[0] || (one_byte && (descr[0] == '<' || descr[0] == '>'))) {
      a->dtype = (mx_dtype)d;
      return MX_OK;
    }
    if (descr[0] == '>') return mxi_io_malformed(c->f, c->err, start, "big-endian dtype '%s', expected little-endian '%s'", descr, row);
  }
  if (descr[0] && descr[1] == 'V')
    return mxi_io_malformed(c->f, c->err, start,
                            "dtype '%s' has no type, expected '<f4', '<f2' or an integer (save bfloat16 as uint16 and say --dtype bf16)",
                            descr);
  return mxi_io_malformed(c->f, c->err, start, "dtype '%s', expected one of <f4 <f2 <f8 |u1 <u2 <u4 <u8 |i1 <i2 <i4 <i8 |b1", descr);
}

static mx_status take_shape(cursor *c, mx_array *a) {
  size_t start = c->at;
  if (!take(c, "(")) return expected(c, "a shape such as (2, 3)");
  int comma = 1;
  for (a->n_dims = 0;; a->n_dims++) {
    skip_space(c);
    if (peek(c) == ')') break;
    if (!comma || peek(c) < '0' || peek(c) > '9') return expected(c, "a dimension or )");
    size_t digits = c->at;
    uint64_t v = 0;
    for (; peek(c) >= '0' && peek(c) <= '9'; c->at++)
      if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, (uint64_t)(peek(c) - '0'), &v) || v > INT64_MAX)
        return mxi_io_malformed(c->f, c->err, digits, "a dimension overflows, expected less than 2^63");
    if (peek(c) == 'L') c->at++; /* Python 2 wrote long integers this way */
    if (a->n_dims == MX_MAX_DIMS) return mxi_io_malformed(c->f, c->err, start, "too many dimensions, expected at most %d", MX_MAX_DIMS);
    a->shape[a->n_dims] = v;
    skip_space(c);
    comma = take(c, ",");
  }
  if (a->n_dims == 1 && !comma) return expected(c, "a comma: (3,) is a shape, (3) a number");
  c->at++;
  if (!mxi_io_size_array(a))
    return mxi_io_malformed(c->f, c->err, start, "the shape overflows, expected a product of dimensions below 2^63 bytes");
  return MX_OK;
}

static mx_status parse_dict(cursor *c, mx_array *a, size_t *shape_at) {
  size_t start = c->at, fortran_at = 0;
  enum { DESCR = 1, ORDER = 2, SHAPE = 4, ALL = 7 };
  int seen = 0, fortran = 0;
  skip_space(c);
  if (!take(c, "{")) return expected(c, "{");
  for (;;) {
    skip_space(c);
    if (take(c, "}")) break;
    size_t key_at = c->at;
    char key[32];
    mx_status s = take_string(c, key, sizeof key, "'descr', 'fortran_order' or 'shape'");
    if (s) return s;
    int bit = !strcmp(key, "descr") ? DESCR : !strcmp(key, "fortran_order") ? ORDER : !strcmp(key, "shape") ? SHAPE : 0;
    if (!bit) return mxi_io_malformed(c->f, c->err, key_at, "key '%s' in the .npy header, expected 'descr', 'fortran_order' or 'shape'", key);
    if (seen & bit) return mxi_io_malformed(c->f, c->err, key_at, "key '%s' is there twice, expected each key once", key);
    seen |= bit;
    skip_space(c);
    if (!take(c, ":")) return expected(c, "a colon");
    skip_space(c);
    if (bit == DESCR) {
      if ((s = take_descr(c, a))) return s;
    } else if (bit == ORDER) {
      fortran_at = c->at;
      if (take(c, "True"))
        fortran = 1;
      else if (!take(c, "False"))
        return expected(c, "True or False");
    } else {
      *shape_at = c->at;
      /* The check of the size needs the dtype, which may come later, so it is made again at the end. */
      if ((s = take_shape(c, a))) return s;
    }
    skip_space(c);
    if (!take(c, ",") && peek(c) != '}') return expected(c, "a comma or }");
  }
  if (seen != ALL) return mxi_io_malformed(c->f, c->err, start, "a key is missing, expected 'descr', 'fortran_order' and 'shape'");
  if (fortran) return mxi_io_malformed(c->f, c->err, fortran_at, "Fortran order, expected C order: save numpy.ascontiguousarray(x)");
  skip_space(c);
  if (c->at != c->end) return expected(c, "only spaces up to the end of the header");
  return MX_OK;
}

mx_status mxi_io_parse_npy(mx_file *f, mx_error *err) {
  if (f->n_bytes < 10 || memcmp(f->base, "\x93NUMPY", 6))
    return mxi_io_malformed(f, err, 0, "no .npy magic, expected \\x93NUMPY and a version");
  const uint8_t *b = f->base;
  if (b[6] < 1 || b[6] > 3 || b[7] != 0) return mxi_io_malformed(f, err, 6, ".npy version %d.%d, expected 1.0, 2.0 or 3.0", b[6], b[7]);
  size_t start = b[6] == 1 ? 10 : 12;
  if (f->n_bytes < start) return mxi_io_malformed(f, err, 8, "the file ends within the header length, expected 4 bytes");
  uint64_t len = b[8] | (uint64_t)b[9] << 8;
  if (b[6] > 1) len |= (uint64_t)b[10] << 16 | (uint64_t)b[11] << 24;
  if (len > f->n_bytes - start)
    return mxi_io_malformed(f, err, 8, "the header claims to take %llu bytes, expected at most the %llu that follow", (unsigned long long)len,
                            (unsigned long long)(f->n_bytes - start));
  if (len > MAX_HEADER)
    return mxi_io_malformed(f, err, 8, "the header claims to take %llu bytes, expected at most %d", (unsigned long long)len, MAX_HEADER);

  mx_array *a = f->arrays = calloc(1, sizeof *a);
  if (!a) return mx_fail(err, MX_ERR_NOMEM, "%s: out of memory", f->path);
  cursor c = {f, err, start, start + (size_t)len};
  size_t shape_at = start;
  mx_status s = parse_dict(&c, a, &shape_at);
  if (s) return s;
  if (!mxi_io_size_array(a))
    return mxi_io_malformed(f, err, shape_at, "the shape overflows, expected a product of dimensions below 2^63 bytes");
  if (f->open_ended && (__builtin_add_overflow(c.end, a->n_bytes, &f->n_bytes) || f->n_bytes > INT64_MAX))
    return mxi_io_malformed(f, err, shape_at, "the shape overflows, expected a file below 2^63 bytes");
  uint64_t have = f->n_bytes - c.end;
  if (a->n_bytes != have)
    return mxi_io_malformed(
        f, err, have < a->n_bytes ? f->n_bytes : c.end + a->n_bytes, "%s, expected %llu bytes of data after the header, found %llu",
        have < a->n_bytes ? "the file ends early" : "there is more after the data", (unsigned long long)a->n_bytes, (unsigned long long)have);
  a->data = b + c.end;
  a->name = strdup("");
  if (!a->name) return mx_fail(err, MX_ERR_NOMEM, "%s: out of memory", f->path);
  f->n_arrays = 1;
  return MX_OK;
}
