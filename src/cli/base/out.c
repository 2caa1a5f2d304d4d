/* Keeps a document as a flat list of items, and prints it as aligned text or as JSON. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "out_items.h"

out *out_new(void) { return calloc(1, sizeof(out)); }

void out_free(out *o) {
  if (!o) return;
  for (size_t i = 0; i < o->n; i++) {
    free(o->items[i].key);
    free(o->items[i].text);
    free(o->items[i].json);
  }
  free(o->items);
  free(o);
}

/* Takes text and json over. */
static void add(out *o, item_kind kind, const char *key, char *text, char *json, int number) {
  if (o && o->n == o->room) {
    size_t room = o->room ? 2 * o->room : 64;
    item *items = realloc(o->items, room * sizeof *items);
    if (items) {
      o->items = items;
      o->room = room;
    } else {
      o->failed = 1;
    }
  }
  char *own_key = key ? strdup(key) : NULL;
  if (!o || o->n == o->room || (key && !own_key) || (kind == PAIR && (!text || !json))) {
    if (o) o->failed = 1;
    free(own_key);
    free(text);
    free(json);
    return;
  }
  o->items[o->n++] = (item){kind, own_key, text, json, number, NULL};
}

/* NULL if memory ran out. jansson has no other word for that than for bytes that are not UTF-8, but malloc() sets errno. */
static char *quote(const char *s) {
  errno = 0;
  json_t *v = json_string(s);
  if (!v && errno == ENOMEM) return NULL;
  if (!v) v = json_string("(not UTF-8)");
  char *q = json_dumps(v, JSON_ENCODE_ANY);
  json_decref(v);
  return q;
}

static char *print(const char *format, ...) __attribute__((format(printf, 1, 2)));
static char *print(const char *format, ...) {
  va_list args;
  va_start(args, format);
  char *s;
  if (vasprintf(&s, format, args) < 0) s = NULL;
  va_end(args);
  return s;
}

void out_table(out *o, const char *key) { add(o, TABLE, key, NULL, NULL, 0); }
void out_row(out *o) { add(o, ROW, NULL, NULL, NULL, 0); }
void out_object(out *o, const char *key) { add(o, OBJECT, key, NULL, NULL, 0); }
void out_end(out *o) { add(o, END, NULL, NULL, NULL, 0); }

void out_json(out *o, const char *key, const char *json) { add(o, PAIR, key, strdup(""), strdup(json), 0); }

void out_text(out *o, const char *key, const char *value) {
  char *text = strdup(value);
  for (char *p = text; p && *p; p++)
    if ((unsigned char)*p < 0x20 || *p == 0x7f) *p = '?'; /* files' strings must not drive a terminal */
  add(o, PAIR, key, text, quote(value), 0);
}

void out_texts(out *o, const char *key, size_t n, const char *text, size_t stride, int json) {
  char numbered[64], *list = strdup("["), *all = strdup("");
  for (size_t i = 0; i < n && !json; i++) {
    snprintf(numbered, sizeof numbered, "%s %zu", key, i + 1);
    out_text(o, numbered, text + i * stride);
  }
  for (size_t i = 0; i < n && json; i++) {
    char *one = quote(text + i * stride), *more = list && one ? print("%s%s%s", list, i ? ", " : "", one) : NULL;
    free(one);
    free(list);
    list = more;
  }
  char *closed = list && json ? print("%s]", list) : NULL;
  free(list);
  if (json)
    add(o, PAIR, key, all, closed, 0);
  else
    free(all);
}

void out_identifiers(out *o, const out_name *names) {
  if (!o) return;
  o->identifiers = 1;
  o->names = names;
}

void out_u64(out *o, const char *key, uint64_t v) { add(o, PAIR, key, print("%" PRIu64, v), print("%" PRIu64, v), 1); }
void out_hex(out *o, const char *key, uint64_t v, int digits) {
  char text[32];
  snprintf(text, sizeof text, "0x%0*" PRIX64, digits, v);
  add(o, PAIR, key, strdup(text), print("%" PRIu64, v), 1);
}
void out_i64(out *o, const char *key, int64_t v) { add(o, PAIR, key, print("%" PRId64, v), print("%" PRId64, v), 1); }
void out_answer(out *o, const char *key, int yes) {
  out_bool(o, key, yes);
  if (o && o->n) o->items[o->n - 1].colour = yes ? "\033[32m" : "\033[31m";
}
void out_bool(out *o, const char *key, int v) { add(o, PAIR, key, strdup(v ? "yes" : "no"), strdup(v ? "true" : "false"), 0); }

void out_f64(out *o, const char *key, double v, const char *format) {
  char text[64];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  snprintf(text, sizeof text, format, v);
#pragma GCC diagnostic pop
  add(o, PAIR, key, strdup(text), isfinite(v) ? print("%.17g", v) : strdup(isnan(v) ? "\"nan\"" : v > 0 ? "\"inf\"" : "\"-inf\""), 1);
}

void out_number(out *o, const char *key, double v) {
  add(o, PAIR, key, print("%.17g", v), isfinite(v) ? print("%.17g", v) : strdup("null"), 1);
}

void out_figure(out *o, const char *key, double v, const char *format, int json) {
  if (json)
    out_number(o, key, v);
  else
    out_f64(o, key, v, format);
}

void out_shape(out *o, const char *key, const uint64_t *shape, int n_dims) {
  char text[256] = "", json[256] = "[";
  size_t nt = 0, nj = 1;
  for (int i = 0; i < n_dims; i++) { /* at most 8 dimensions of 19 digits */
    nt += (size_t)snprintf(text + nt, sizeof text - nt, "%s%" PRIu64, i ? "x" : "", shape[i]);
    nj += (size_t)snprintf(json + nj, sizeof json - nj, "%s%" PRIu64, i ? ", " : "", shape[i]);
  }
  add(o, PAIR, key, strdup(n_dims ? text : "scalar"), print("%s]", json), 0);
}

void out_bar(out *o, const char *key, double share) {
  enum { WIDTH = 40 };
  char bar[WIDTH + 1];
  int n = share > 0 ? (int)(share * WIDTH + 0.5) : 0;
  if (n > WIDTH) n = WIDTH;
  memset(bar, '#', sizeof bar);
  bar[n] = 0;
  add(o, PAIR, key, strdup(bar), print("%.17g", share), 0);
}

int out_width(const char *s) {
  int n = 0;
  for (; *s; s++) n += (*s & 0xc0) != 0x80;
  return n;
}

static void print_cell(const char *s, int wide, int right, int last) {
  int fill = wide - out_width(s);
  if (right) printf("%*s", fill, "");
  fputs(s, stdout);
  if (!last) printf("%*s", (right ? 0 : fill) + 2, "");
}

static int in_colour(void) {
  const char *term = getenv("TERM"), *none = getenv("NO_COLOR");
  return isatty(STDOUT_FILENO) && !(none && *none) && term && *term && strcmp(term, "dumb");
}

/* Prints the pairs from item i on, with keys padded to the widest, and returns the first item that is no pair. */
static size_t print_pairs(const out *o, size_t i, const char *indent) {
  int wide = 0;
  for (size_t k = i; k < o->n && o->items[k].kind == PAIR; k++)
    if (out_width(o->items[k].key) > wide) wide = out_width(o->items[k].key);
  for (; i < o->n && o->items[i].kind == PAIR; i++) {
    fputs(indent, stdout);
    print_cell(o->items[i].key, wide, 0, 0);
    if (o->items[i].colour && in_colour())
      printf("%s%s\033[0m\n", o->items[i].colour, o->items[i].text);
    else
      puts(o->items[i].text);
  }
  return i;
}

size_t out_column(column *columns, size_t *n, size_t most, const char *key) {
  size_t c = 0;
  while (c < *n && strcmp(columns[c].key, key)) c++;
  if (c == *n && c < most) columns[(*n)++] = (column){key, out_width(key), 1};
  return c;
}

/* The items of a table, from the one after TABLE; returns where its END is. */
static size_t print_table(const out *o, size_t begin) {
  column columns[MAX_COLUMNS];
  size_t n = 0, end = begin;
  for (; end < o->n && o->items[end].kind != END; end++) {
    const item *it = &o->items[end];
    if (it->kind != PAIR) continue;
    size_t c = out_column(columns, &n, MAX_COLUMNS, it->key);
    if (c == MAX_COLUMNS) continue;
    if (out_width(it->text) > columns[c].width) columns[c].width = out_width(it->text);
    columns[c].number &= it->number;
  }
  for (size_t c = 0; c < n; c++) print_cell(columns[c].key, columns[c].width, columns[c].number, c + 1 == n);
  if (n) putchar('\n');
  for (size_t i = begin; i < end;) {
    const char *cells[MAX_COLUMNS] = {0};
    for (i++; i < end && o->items[i].kind == PAIR; i++) {
      size_t c = out_column(columns, &n, MAX_COLUMNS, o->items[i].key);
      if (c < MAX_COLUMNS) cells[c] = o->items[i].text;
    }
    for (size_t c = 0; c < n; c++) print_cell(cells[c] ? cells[c] : "", columns[c].width, columns[c].number, c + 1 == n);
    putchar('\n');
  }
  return end;
}

/* A blank line stands between parts; a table without rows is no part. */
static void print_text(const out *o) {
  for (size_t i = 0, any = 0, was_pairs = 0; i < o->n;) {
    const item_kind kind = o->items[i].kind;
    if (kind == TABLE && i + 1 < o->n && o->items[i + 1].kind == END) {
      i += 2;
      continue;
    }
    if (any && !(was_pairs && kind == PAIR)) putchar('\n');
    any = 1;
    was_pairs = kind == PAIR;
    if (kind == PAIR) {
      i = print_pairs(o, i, "");
    } else if (kind == OBJECT) {
      puts(o->items[i].key);
      i = print_pairs(o, i + 1, "  ") + 1;
    } else {
      i = print_table(o, i + 1) + 1;
    }
  }
}

/* "NaN codes ignored" as nan_codes_ignored; "that" is left out, what is no letter or digit becomes one underline. */
static void identifier(char *to, size_t size, const char *key) {
  size_t n = 0;
  for (const char *p = key; *p && n + 1 < size;) {
    if (!strncmp(p, " that ", 6)) p += 5;
    if (isalnum((unsigned char)*p))
      to[n++] = (char)tolower((unsigned char)*p);
    else if (n && to[n - 1] != '_')
      to[n++] = '_';
    p++;
  }
  to[n] = 0;
}

static char *quoted_key(const out *o, const char *key) {
  char made[128];
  if (o->identifiers) {
    const out_name *name = o->names;
    while (name && name->key && strcmp(name->key, key)) name++;
    if (name && name->key)
      snprintf(made, sizeof made, "%s", name->identifier);
    else
      identifier(made, sizeof made, key);
    key = made;
  }
  return quote(key);
}

static void free_all(char **texts, size_t n) {
  for (size_t i = 0; texts && i < n; i++) free(texts[i]);
  free(texts);
}

/* The keys of all items, so that no allocation is left to fail while the document is printed; NULL if one failed. */
static char **quoted_keys(const out *o) {
  char **keys = calloc(o->n + 1, sizeof *keys);
  for (size_t i = 0; keys && i < o->n; i++) {
    if (!o->items[i].key || (keys[i] = quoted_key(o, o->items[i].key))) continue;
    free_all(keys, o->n);
    return NULL;
  }
  return keys;
}

/* Pairs and nested parts alternate freely, so the item before each decides whether a comma goes before it. */
static int print_json(const out *o) {
  int depth = 1, first = 1, in_table = 0, row_open = 0;
  char **keys = quoted_keys(o);
  if (!keys) return 1;
  putchar('{');
  for (size_t i = 0; i < o->n; i++) {
    const item *it = &o->items[i];
    if (it->kind == ROW) {
      printf("%s\n    {", row_open ? "}," : "");
      row_open = first = 1;
      continue;
    }
    if (it->kind == END) {
      if (in_table)
        printf("%s]", row_open ? "}\n  " : "");
      else
        printf("%s}", first ? "" : "\n  ");
      in_table = row_open = first = 0;
      depth = 1;
      continue;
    }
    if (in_table)
      printf("%s", first ? "" : ", ");
    else
      printf("%s\n%*s", first ? "" : ",", 2 * depth, "");
    printf("%s: ", keys[i]);
    first = 0;
    if (it->kind == PAIR) {
      fputs(it->json, stdout);
    } else {
      putchar(it->kind == TABLE ? '[' : '{');
      in_table = it->kind == TABLE;
      first = 1;
      depth = 2;
    }
  }
  puts("\n}");
  free_all(keys, o->n);
  return 0;
}

int out_print(out *o, int json) {
  int failed = !o || o->failed;
  if (!failed && json) failed = print_json(o);
  if (!failed && !json) print_text(o);
  out_free(o);
  return failed ? cli_error("out of memory") : CLI_FINE;
}
