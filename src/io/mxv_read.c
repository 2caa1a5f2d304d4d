/* Reads .mxv. Its input may be hostile, so nothing is allocated before the text has shown that it holds that much. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mxv.h"

typedef struct reader {
  const char *name, *text;
  size_t n, at;                 /* bytes, current byte */
  size_t line;                  /* counted from 1 */
  size_t first_line, first_end; /* the first line of cases; the byte behind its last */
  mx_error *err;
} reader;

static mx_status malformed(const reader *r, const char *expected) {
  return mx_fail(r->err, MX_ERR_FORMAT, "%s: line %zu, byte %zu: expected %s", r->name, r->line, r->at, expected);
}

static int starts(const reader *r, const char *with) {
  const size_t n = strlen(with);
  return r->n - r->at >= n && !memcmp(r->text + r->at, with, n);
}

/* The number of bytes up to the end of the line; SIZE_MAX if the text ends first. */
static size_t line_length(const reader *r) {
  const char *end = memchr(r->text + r->at, '\n', r->n - r->at);
  return end ? (size_t)(end - r->text) - r->at : SIZE_MAX;
}

/* Reports a line that ends as on Windows; r is at its start. */
static mx_status crlf(reader *r, size_t length) {
  r->at += length - 1;
  return malformed(r, "a line feed alone at the end of each line, not CRLF: dos2unix converts the file");
}

static int ends_in_cr(const reader *r, size_t length) { return length != SIZE_MAX && length && r->text[r->at + length - 1] == '\r'; }

static void next_line(reader *r, size_t length) {
  r->at += length + 1;
  r->line++;
}

static int number(const char **at, const char *end, uint64_t max, uint64_t *out) {
  uint64_t v = 0;
  const char *p = *at;
  if (p == end || *p < '0' || *p > '9' || (*p == '0' && p + 1 < end && p[1] >= '0' && p[1] <= '9')) return 0;
  for (; p < end && *p >= '0' && *p <= '9'; p++) {
    v = v * 10 + (uint64_t)(*p - '0');
    if (v > max) return 0;
  }
  *at = p;
  *out = v;
  return 1;
}

/* Reads "NAME:BITS:COUNT NAME:BITS:COUNT". */
static mx_status columns(reader *r, mx_vectors *v, size_t length) {
  const char *line = r->text + r->at, *end = line + length, *p = line + strlen("# columns");
  while (p < end) {
    r->at = (size_t)(p - r->text);
    char name[MX_VECTOR_NAME];
    uint64_t bits, count;
    if (*p++ != ' ') return malformed(r, "one blank before each NAME:BITS:COUNT");
    const char *colon = memchr(p, ':', (size_t)(end - p));
    if (!colon || colon == p || (size_t)(colon - p) >= sizeof name) return malformed(r, "a column NAME:BITS:COUNT");
    memcpy(name, p, (size_t)(colon - p));
    name[colon - p] = 0;
    if (strlen(name) != (size_t)(colon - p)) return malformed(r, "a column name without NUL bytes");
    p = colon + 1;
    if (!number(&p, end, 64, &bits) || p == end || *p++ != ':' || !number(&p, end, UINT32_MAX, &count))
      return malformed(r, "NAME:BITS:COUNT with bits 1 to 64, count 1 or more");
    if (mx_vectors_add_column(v, name, (unsigned)bits, (size_t)count))
      return malformed(r, "a new column name of letters, digits, _ . -, bits 1 to 64, at most 16 columns");
  }
  r->at = (size_t)(line - r->text);
  return v->n_columns ? MX_OK : malformed(r, "at least one column");
}

static mx_status header_line(reader *r, mx_vectors *v, size_t length, char **last_key) {
  const char *line = r->text + r->at + 2;
  const char *equals = memchr(line, '=', length - 2);
  if (!equals) return malformed(r, "\"# key=value\" or \"# columns ...\"");
  char *key = strndup(line, (size_t)(equals - line)), *value = strndup(equals + 1, length - 2 - (size_t)(equals + 1 - line));
  mx_status s = key && value ? MX_OK : mx_fail(r->err, MX_ERR_NOMEM, "%s: out of memory", r->name);
  if (!s && (strlen(key) != (size_t)(equals - line) || !mxi_mxv_key_allowed(key))) s = malformed(r, "a key of printable ASCII");
  if (!s && *last_key && strcmp(*last_key, key) >= 0) s = malformed(r, "keys in ascending order, each once");
  if (!s && strlen(value) != length - 2 - (size_t)(equals + 1 - line)) s = malformed(r, "a value of printable ASCII");
  if (!s && mx_vectors_set_meta(v, key, value)) s = malformed(r, "a value of printable ASCII");
  free(value);
  if (s) {
    free(key);
    return s;
  }
  free(*last_key);
  *last_key = key;
  return MX_OK;
}

static mx_status header(reader *r, mx_vectors *v) {
  if (starts(r, "# mxv 1\r\n")) return crlf(r, strlen("# mxv 1\r"));
  if (!starts(r, "# mxv 1\n")) return malformed(r, "\"# mxv 1\"");
  next_line(r, strlen("# mxv 1"));
  char *last_key = NULL;
  mx_status s = MX_OK;
  while (!s && !v->n_columns) {
    const size_t length = line_length(r);
    if (length == SIZE_MAX)
      s = malformed(r, "a header line that ends in a line feed");
    else if (ends_in_cr(r, length))
      s = crlf(r, length);
    else if (!starts(r, "# ") || length < 2)
      s = malformed(r, "a header line \"# ...\", the last one \"# columns ...\"");
    else if (starts(r, "# columns "))
      s = columns(r, v, length);
    else
      s = header_line(r, v, length, &last_key);
    if (!s) next_line(r, length);
  }
  free(last_key);
  return s;
}

/* Reports where the line at which r is does not match the header: a column has another count of numbers, a number has another length, or the
 * line has other columns than the header or the first line. */
static mx_status other_line(reader *r, const mx_vectors *v, size_t length) {
  const char *p = r->text + r->at, *const end = p + length;
  const size_t asked = r->line == r->first_line ? v->n_columns : v->n_filled;
  size_t k = 0;
  if (ends_in_cr(r, length)) return crlf(r, length);
  for (; k < asked && p <= end; k++) {
    const mx_column *c = &v->columns[k];
    const char *bar = memchr(p, '|', (size_t)(end - p)), *const column_end = bar ? bar : end;
    size_t n = 0;
    r->at = (size_t)(p - r->text);
    while (p < column_end) {
      size_t digits = 0;
      while (p + digits < column_end && p[digits] != ' ') digits++;
      if (digits && digits != mxv_digits(c)) {
        r->at = (size_t)(p - r->text);
        return mx_fail(r->err, MX_ERR_FORMAT, "%s: line %zu, byte %zu: number %zu of column %s has %zu hexadecimal digits, expected %u",
                       r->name, r->line, r->at, n, c->name, digits, mxv_digits(c));
      }
      n += digits != 0;
      p += digits + (p + digits < column_end);
    }
    if (n != c->count)
      return mx_fail(r->err, MX_ERR_FORMAT, "%s: line %zu, byte %zu: column %s has %zu numbers, expected %zu", r->name, r->line, r->at, c->name,
                     n, c->count);
    if (!bar) p = end + 1;
    if (bar) p = bar + 1;
  }
  size_t columns = k;
  if (p <= end) /* there is more after the last expected column */
    for (columns++; (p = memchr(p, '|', (size_t)(end - p))); p++) columns++;
  if (columns == asked || r->line == r->first_line)
    return columns > asked ? mx_fail(r->err, MX_ERR_FORMAT, "%s: line %zu, byte %zu: %zu columns, expected at most the %zu of the header",
                                     r->name, r->line, r->at, columns, asked)
                           : malformed(r, "one blank between numbers, and \" | \" between columns");
  if (columns == v->n_columns) /* this line has all: it is the first one that does not, which a file of inputs alone may begin with */
    return mx_fail(r->err, MX_ERR_FORMAT,
                   "%s: line %zu, byte %zu: %zu columns, expected the %zu of the header: no column %s, which line %zu has", r->name,
                   r->first_line, r->first_end, asked, columns, v->columns[asked].name, r->line);
  return mx_fail(r->err, MX_ERR_FORMAT, "%s: line %zu, byte %zu: %zu columns, expected %zu as on the first line", r->name, r->line, r->at,
                 columns, asked);
}

/* The number of bytes in a line of the first k columns; 0 on overflow. */
static size_t line_bytes(const mx_vectors *v, size_t k) {
  size_t total = 0;
  for (size_t i = 0; i < k; i++) {
    size_t n;
    if (__builtin_mul_overflow(v->columns[i].count, mxv_digits(&v->columns[i]) + 1, &n)) return 0;
    if (__builtin_add_overflow(total, n - 1 + (i ? 3 : 0), &total)) return 0;
  }
  return total;
}

static int hex_digit(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

static mx_status hex(reader *r, unsigned digits, unsigned bits, uint64_t *out) {
  uint64_t value = 0;
  for (unsigned i = 0; i < digits; i++, r->at++) {
    const int d = hex_digit(r->text[r->at]);
    if (d < 0) return malformed(r, "a lower-case hexadecimal digit");
    value = value << 4 | (uint64_t)d;
  }
  if (bits < 64 && value >> bits) return malformed(r, "a number that fits its column's bits");
  *out = value;
  return MX_OK;
}

static mx_status one_case(reader *r, mx_vectors *v, size_t at_case) {
  for (size_t i = 0; i < v->n_filled; i++) {
    if (i) {
      if (memcmp(r->text + r->at, " | ", 3)) return malformed(r, "\" | \" between columns");
      r->at += 3;
    }
    for (size_t j = 0; j < v->columns[i].count; j++) {
      if (j && r->text[r->at++] != ' ') return malformed(r, "one blank between numbers");
      uint64_t value = 0;
      const mx_status s = hex(r, mxv_digits(&v->columns[i]), v->columns[i].bits, &value);
      if (s) return s;
      mx_vectors_set(v, i, at_case, j, value);
    }
  }
  return MX_OK;
}

/* Reads cases up to "# end N". The lines are counted first, so that memory is only allocated for text that exists. */
static mx_status cases(reader *r, mx_vectors *v) {
  size_t first = line_length(r), n = 0;
  if (first == SIZE_MAX) return malformed(r, "a case or \"# end N\"");
  if (!starts(r, "#")) {
    v->n_filled = 0;
    for (size_t k = 1; k <= v->n_columns && !v->n_filled; k++)
      if (line_bytes(v, k) == first) v->n_filled = k;
    r->first_line = r->line;
    r->first_end = r->at + first;
    if (!v->n_filled) return other_line(r, v, first);
    while (r->at + n * (first + 1) < r->n && r->text[r->at + n * (first + 1)] != '#') n++;
  }
  if (mx_vectors_alloc(v, n)) return mx_fail(r->err, MX_ERR_NOMEM, "%s: out of memory", r->name);
  for (size_t k = 0; k < n; k++) {
    const size_t length = line_length(r);
    if (length == SIZE_MAX) return malformed(r, "\"# end N\" as the last line");
    if (length != first) return other_line(r, v, length);
    const mx_status s = one_case(r, v, k);
    if (s) return s;
    if (r->text[r->at] != '\n') return malformed(r, "the end of the line");
    next_line(r, 0);
  }
  uint64_t stated;
  const size_t length = line_length(r);
  const char *p = r->text + r->at + strlen("# end ");
  if (ends_in_cr(r, length)) return crlf(r, length);
  if (length == SIZE_MAX || !starts(r, "# end ") || !number(&p, r->text + r->at + length, UINT64_MAX / 10 - 1, &stated) ||
      p != r->text + r->at + length)
    return malformed(r, "\"# end N\"");
  if (stated != n)
    return mx_fail(r->err, MX_ERR_FORMAT, "%s: line %zu, byte %zu: \"# end %llu\" after %zu cases", r->name, r->line, r->at,
                   (unsigned long long)stated, n);
  next_line(r, length);
  return r->at == r->n ? MX_OK : malformed(r, "nothing after \"# end N\"");
}

mx_status mx_vectors_parse(mx_vectors *out, const char *name, const void *text, size_t n_bytes, mx_error *err) {
  if (!out || (!text && n_bytes)) return mx_fail(err, MX_ERR_ARG, "mx_vectors_parse: NULL argument");
  *out = (mx_vectors){0};
  reader r = {name, n_bytes ? text : "", n_bytes, 0, 1, 0, 0, err};
  mx_status s = header(&r, out);
  if (!s) s = cases(&r, out);
  if (s) mx_vectors_free(out);
  return s;
}

mx_status mx_vectors_open(mx_vectors *out, const char *path, mx_error *err) {
  static const char magic[] = "# mxv 1\n";
  if (!out || !path) return mx_fail(err, MX_ERR_ARG, "mx_vectors_open: NULL argument");
  *out = (mx_vectors){0};
  const int is_stdin = !strcmp(path, "-");
  const char *name = is_stdin ? "standard input" : path;
  FILE *f = is_stdin ? stdin : fopen(path, "rb");
  if (!f) return mx_fail(err, MX_ERR_IO, "%s: cannot open: %s", name, strerror(errno));
  char *text = NULL;
  size_t n = 0, room = 0;
  mx_status s = MX_OK;
  for (size_t got = 1; got && !s;) {
    if (room - n < 65536) {
      char *more = realloc(text, room = room ? 2 * room : 262144);
      if (!more)
        s = mx_fail(err, MX_ERR_NOMEM, "%s: out of memory", name);
      else
        text = more;
    }
    if (s) break;
    n += got = fread(text + n, 1, room - n, f);
    if (n >= strlen(magic) && memcmp(text, magic, strlen(magic))) break; /* the parser reports that */
    if (n > MX_VECTORS_MOST_BYTES)
      s = mx_fail(err, MX_ERR_FORMAT, "%s: more than %d bytes, expected at most that many in a file of vectors", name, MX_VECTORS_MOST_BYTES);
  }
  if (!s && ferror(f)) s = mx_fail(err, MX_ERR_IO, "%s: cannot read: %s", name, strerror(errno));
  if (!s) s = mx_vectors_parse(out, name, text, n, err);
  if (!is_stdin) fclose(f);
  free(text);
  return s;
}
