/* Prints a document as HTML: its tables and lists of pairs, as the terminal shows them. */
#include <string.h>

#include "cli.h"
#include "out_items.h"
#include "page.h"

static void put_cell(FILE *f, const char *tag, const column *c, const char *text) {
  fprintf(f, "<%s%s>", tag, c->number ? "" : " class=t");
  page_text(f, text);
  fprintf(f, "</%s>", tag);
}

/* From the item after TABLE; returns where its END is. A table without rows is left out. */
static size_t put_table(const out *o, size_t begin, FILE *f) {
  column columns[MAX_COLUMNS];
  size_t n = 0, end = begin;
  for (; end < o->n && o->items[end].kind != END; end++) {
    const item *it = &o->items[end];
    const size_t c = it->kind == PAIR ? out_column(columns, &n, MAX_COLUMNS, it->key) : MAX_COLUMNS;
    if (c < MAX_COLUMNS) columns[c].number &= it->number;
  }
  if (!n) return end;
  fputs("<div class=wide><table><tr>", f);
  for (size_t c = 0; c < n; c++) put_cell(f, "th", &columns[c], columns[c].key);
  fputs("</tr>\n", f);
  for (size_t i = begin; i < end;) {
    const char *cells[MAX_COLUMNS] = {0};
    for (i++; i < end && o->items[i].kind == PAIR; i++) {
      const size_t c = out_column(columns, &n, MAX_COLUMNS, o->items[i].key);
      if (c < MAX_COLUMNS) cells[c] = o->items[i].text;
    }
    fputs("<tr>", f);
    for (size_t c = 0; c < n; c++) put_cell(f, "td", &columns[c], cells[c] ? cells[c] : "");
    fputs("</tr>\n", f);
  }
  fputs("</table></div>\n", f);
  return end;
}

void out_html(const out *o, FILE *f) {
  for (size_t i = 0; o && i < o->n; i++) {
    const item *it = &o->items[i];
    if (it->kind == TABLE) i = put_table(o, i + 1, f);
    if (it->kind != PAIR) continue;
    if (i == 0 || o->items[i - 1].kind != PAIR) fputs("<dl>\n", f);
    fputs("<dt>", f);
    page_text(f, it->key);
    fputs("</dt><dd>", f);
    page_text(f, it->text);
    fputs("</dd>\n", f);
    if (i + 1 == o->n || o->items[i + 1].kind != PAIR) fputs("</dl>\n", f);
  }
}
