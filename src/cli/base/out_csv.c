/* Prints one table of a document as CSV (RFC 4180, lines that end in LF): a line of names, a line a row, numbers with all their digits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "out_items.h"

static void put_text(const char *s) {
  if (!strpbrk(s, ",\"\r\n")) {
    fputs(s, stdout);
    return;
  }
  putchar('"');
  for (; *s; s++) {
    if (*s == '"') putchar('"');
    putchar(*s);
  }
  putchar('"');
}

/* Numbers and words as JSON has them, text without its quotes; nothing where there is no number. */
static void put_cell(const item *it) {
  if (!it || !strcmp(it->json, "null")) return;
  put_text(it->json[0] == '"' || it->json[0] == '[' ? it->text : it->json);
}

/* Returns 0 if there is no memory. */
static int put_table(const out *o, size_t begin, size_t end) {
  const size_t most = end - begin + 1; /* no more columns than items: none is left out */
  column *columns = malloc(most * sizeof *columns);
  const item **cells = malloc(most * sizeof *cells);
  size_t n = 0;
  for (size_t i = begin; i < end && columns && cells; i++)
    if (o->items[i].kind == PAIR) out_column(columns, &n, most, o->items[i].key);
  for (size_t c = 0; c < n; c++) {
    if (c) putchar(',');
    put_text(columns[c].key);
  }
  if (columns && cells) putchar('\n');
  for (size_t i = begin; i < end && n;) {
    for (size_t c = 0; c < n; c++) cells[c] = NULL;
    for (i++; i < end && o->items[i].kind == PAIR; i++) cells[out_column(columns, &n, most, o->items[i].key)] = &o->items[i];
    for (size_t c = 0; c < n; c++) {
      if (c) putchar(',');
      put_cell(cells[c]);
    }
    putchar('\n');
  }
  const int there = columns && cells;
  free(columns);
  free(cells);
  return there;
}

int out_print_csv(out *o, const char *table) {
  if (!o || o->failed) return out_print(o, 0);
  for (size_t i = 0, end; i < o->n; i++) {
    if (o->items[i].kind != TABLE || strcmp(o->items[i].key, table)) continue;
    for (end = i + 1; end < o->n && o->items[end].kind != END; end++) {
    }
    if (!put_table(o, i + 1, end)) o->failed = 1;
    break;
  }
  if (o->failed) return out_print(o, 0);
  out_free(o);
  return CLI_FINE;
}
