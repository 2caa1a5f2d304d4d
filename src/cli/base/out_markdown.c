/* Prints a document as Markdown: a heading and a table for each table, a list for pairs. */
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "out_items.h"

/* Bars and angles are Markdown's and HTML's own. */
static void put(const char *s) {
  for (; *s; s++) {
    if (*s == '<') {
      fputs("&lt;", stdout);
      continue;
    }
    if (strchr("|*_\\", *s)) putchar('\\');
    putchar(*s);
  }
}

static void put_row(const char **cells, size_t n) {
  putchar('|');
  for (size_t c = 0; c < n; c++) {
    putchar(' ');
    put(cells[c] ? cells[c] : "");
    fputs(" |", stdout);
  }
  putchar('\n');
}

/* From the item after TABLE; returns where its END is. */
static size_t put_table(const out *o, size_t begin) {
  column columns[MAX_COLUMNS];
  size_t n = 0, end = begin;
  for (; end < o->n && o->items[end].kind != END; end++)
    if (o->items[end].kind == PAIR) out_column(columns, &n, MAX_COLUMNS, o->items[end].key);
  const char *heads[MAX_COLUMNS];
  for (size_t c = 0; c < n; c++) heads[c] = columns[c].key;
  put_row(heads, n);
  putchar('|');
  for (size_t c = 0; c < n; c++) fputs("---|", stdout);
  putchar('\n');
  for (size_t i = begin; i < end;) {
    const char *cells[MAX_COLUMNS] = {0};
    for (i++; i < end && o->items[i].kind == PAIR; i++) {
      const size_t c = out_column(columns, &n, MAX_COLUMNS, o->items[i].key);
      if (c < MAX_COLUMNS) cells[c] = o->items[i].text;
    }
    put_row(cells, n);
  }
  return end;
}

int out_print_markdown(out *o, const char *title, const char *text) {
  if (!o || o->failed) return out_print(o, 0);
  printf("# %s\n\n%s\n", title, text);
  for (size_t i = 0; i < o->n; i++) {
    const item *it = &o->items[i];
    if (it->kind == TABLE) {
      printf("\n## %c%s\n\n", it->key[0] >= 'a' && it->key[0] <= 'z' ? it->key[0] - 'a' + 'A' : it->key[0], it->key + 1);
      i = put_table(o, i + 1);
    } else if (it->kind == PAIR) {
      if (i == 0 || o->items[i - 1].kind != PAIR) putchar('\n');
      fputs("- ", stdout);
      put(it->key);
      fputs(": ", stdout);
      put(it->text);
      putchar('\n');
    }
  }
  out_free(o);
  return CLI_FINE;
}
