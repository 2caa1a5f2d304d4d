/* Writes where the figures of a page come from. */
#include "origin.h"

#include "cli/base/page.h"

void origin_spec(FILE *f, const char *label, const char *behind, const mx_spec *spec) {
  char keys[4096];
  fputs("<dt>", f);
  page_text(f, label);
  fprintf(f, "%s</dt><dd><code>", behind);
  mx_spec_print(keys, sizeof keys, spec, 1);
  page_text(f, keys);
  fputs("</code></dd>\n", f);
}

void origin_tensors(FILE *f, const ablate_tensors *tensors, const char (*digest)[33]) {
  fputs("</dl>\n<div class=wide><table><tr><th class=t>tensor</th><th>shape</th><th class=t>XXH3 of the values as binary32</th></tr>\n", f);
  for (size_t i = 0; i < tensors->n; i++) {
    const ablate_tensor *t = &tensors->at[i];
    fputs("<tr><td class=t>", f);
    page_text(f, t->name);
    fprintf(f, "</td><td>%zu x %zu</td><td class=t><code>%s</code></td></tr>\n", t->rows, t->cols, digest[i]);
  }
  fputs("</table></div></details>\n", f);
}
