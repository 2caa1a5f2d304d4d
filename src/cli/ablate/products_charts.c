/* Draws the charts of --gemm and --six: bars of errors and points of gains, a row a spec. */
#include <stdlib.h>
#include <string.h>

#include "charts.h"
#include "origin.h"
#include "cli/base/files.h"
#include "cli/base/out.h"
#include "cli/base/page.h"
#include "mxgold/version.h"
#include "products.h"

static const char *const titles[] = {"Error of the product, and of each operand alone", "Gain of the product"};

/* Specs with the very same figures are drawn once; of more rows none could be read. */
typedef struct rows {
  size_t spec[CHART_MOST_ROWS], n, left_out;
  int bars; /* in a row */
} rows;

/* Characters of a name beside its row: a page has a list of what the numbers are. */
enum { PAGE_NAME = 26, PICTURE_NAME = 72 };

static rows rows_of(const ablate_layers *l) {
  rows r = {.bars = l->n_products};
  for (size_t s = 0; s < l->specs->n; s++) {
    if (ablate_layer_same(l, s)) continue;
    if (r.n < CHART_MOST_ROWS)
      r.spec[r.n++] = s;
    else
      r.left_out++;
  }
  return r;
}

static double height_of(const rows *r) { return 136 + (double)r->n * (r->bars > 1 ? 44 : 26); }

/* Names on the left up to so many characters, else the numbers of the rows; the first row at the top. A page has the title above, since beside long
 * names it would be cut. The key has two columns: gnuplot takes more than its room holds. */
static void begin(FILE *f, const ablate_layers *l, const rows *r, size_t longest, const char *title, const char *label) {
  if (title) fprintf(f, "set title '%s'\n", title);
  fprintf(f,
          "set xlabel '%s'\nset grid xtics lc rgb '#dddddd'\nset key outside bottom center horizontal Left reverse noenhanced maxcols 2 "
          "samplen 1\nset tmargin %d\nset bmargin 7\n",
          label, title ? 3 : 1);
  fputs("set style fill solid 0.85 noborder\nset ytics nomirror scale 0 noenhanced (", f);
  for (size_t i = 0; i < r->n; i++) {
    char text[128];
    const char *name = l->specs->at[r->spec[i]].label;
    snprintf(text, sizeof text, strlen(name) > longest ? "%zu" : "%zu  %s", i + 1, name);
    fputs(i ? ", " : "", f);
    chart_string(f, text);
    fprintf(f, " -%zu", i);
  }
  fprintf(f, ")\nset yrange [-%.9g:0.5]\n", (double)r->n - 0.5);
}

static double middle_of(const rows *r, size_t i, int bar) { return -(double)i + 0.8 * ((r->bars - 1) / 2.0 - bar) / r->bars; }

/* The name of a product is short in a key: its first word with --six. */
static void key_of(FILE *f, const ablate_layers *l, int product) {
  char name[32];
  snprintf(name, sizeof name, "%.*s", l->how->six ? 5 : 31, ablate_product_name(l, product));
  chart_string(f, name);
}

static void chart_errors(FILE *f, const ablate_layers *l, const rows *r, size_t longest, const char *title) {
  int any = 0;
  for (int p = 0; p < l->n_products; p++) {
    fprintf(f, "$e%d << EOD\n", p);
    for (size_t i = 0; i < r->n; i++) {
      const mx_product_split *s = &l->at[r->spec[i]].product[p];
      const double y = middle_of(r, i, p), half = 0.36 / r->bars, e = 100 * s->total.relative;
      if (!isfinite(e)) continue;
      any = 1;
      fprintf(f, "0 %.9g 0 %.9g %.9g %.9g %.9g %.9g %.9g\n", y, e, y - half, y + half, 100 * s->x.relative, 100 * s->w.relative,
              ablate_product_drawn(&l->at[r->spec[i]], p) && s->total.bias_low > 0 ? 100 * s->total.bias : (double)NAN);
    }
    fputs(any ? "EOD\n" : "0 NaN 0 0 0 0 0 0 0\nEOD\n", f);
  }
  begin(f, l, r, longest, title, "% of the norm of the exact product");
  fputs(any ? "set xrange [0:*]\nplot " : "set xrange [0:1]\nplot ", f);
  for (int p = 0; p < l->n_products; p++) {
    fprintf(f, "%s$e%d using 1:2:3:4:5:6 with boxxyerror lc rgb '%s' title ", p ? ", " : "", p, chart_colour((size_t)p));
    key_of(f, l, p);
  }
  for (int p = 0, named = 0; p < l->n_products; p++) {
    fprintf(f, ", $e%d using 7:2 with points pt 6 ps 0.7 lw 1.5 lc rgb 'black' %s", p, p ? "notitle" : "title 'first operand'");
    fprintf(f, ", $e%d using 8:2 with points pt 4 ps 0.7 lw 1.5 lc rgb 'black' %s", p, p ? "notitle" : "title 'second operand'");
    int drawn = 0;
    for (size_t i = 0; i < r->n; i++) drawn |= ablate_product_drawn(&l->at[r->spec[i]], p);
    if (drawn) fprintf(f, ", $e%d using 9:2 with points pt 2 ps 0.7 lw 1.5 lc rgb 'black' %s", p, named++ ? "notitle" : "title 'bias'");
  }
  putc('\n', f);
}

static void chart_gains(FILE *f, const ablate_layers *l, const rows *r, size_t longest, const char *title) {
  double far = 0.001;
  for (int p = 0; p < l->n_products; p++) {
    int any = 0;
    fprintf(f, "$g%d << EOD\n", p);
    for (size_t i = 0; i < r->n; i++) {
      const double g = l->at[r->spec[i]].product[p].total.gain;
      if (!isfinite(g)) continue;
      any = 1;
      far = fmax(far, fabs(g - 1));
      fprintf(f, "%.9g %.9g\n", g, middle_of(r, i, p));
    }
    fputs(any ? "EOD\n" : "1 NaN\nEOD\n", f);
  }
  begin(f, l, r, longest, title, "below 1 it is too small, above too large");
  fprintf(f, "set xrange [%.9g:%.9g]\nset arrow 1 from 1, graph 0 to 1, graph 1 nohead lc rgb 'black'\nset xtics %.9g\nplot ", 1 - 1.15 * far,
          1 + 1.15 * far, chart_step(2.3 * far, 5));
  for (int p = 0; p < l->n_products; p++) {
    fprintf(f, "%s$g%d using 1:2 with points pt 7 ps 0.9 lc rgb '%s' title ", p ? ", " : "", p, chart_colour((size_t)p));
    key_of(f, l, p);
  }
  putc('\n', f);
}

static void place(FILE *f, double height, double x, double y, double w, double h) {
  fprintf(f, "reset\nset size %.9g,%.9g\nset origin %.9g,%.9g\n", w, h / height, x, 1 - (y + h) / height);
}

int ablate_layers_image(const ablate_layers *l, const char *path) {
  enum { SENTENCE = 70 };
  char *script = NULL, verdict[1200];
  size_t n;
  const rows r = rows_of(l);
  FILE *f = open_memstream(&script, &n);
  if (!f) return cli_error("out of memory");
  const double high = fmax(360, height_of(&r)), all = SENTENCE + high;
  ablate_layers_verdict(verdict, sizeof verdict, l);
  image_begin(f, image_is_svg(path), all, verdict);
  place(f, all, 0, SENTENCE, 0.64, high);
  chart_errors(f, l, &r, PICTURE_NAME, titles[0]);
  place(f, all, 0.64, SENTENCE, 0.36, high);
  chart_gains(f, l, &r, 0, titles[1]); /* the numbers of the rows beside it */
  fputs("unset multiplot\n", f);
  const int rc = fclose(f) ? cli_error("out of memory") : image_write(path, script, n);
  free(script);
  return rc;
}

static int charts(char **svg, const ablate_layers *l, const rows *r) {
  char *script = NULL;
  size_t n, n_svg;
  FILE *f = open_memstream(&script, &n);
  if (!f) return cli_error("out of memory");
  page_terminal(f, "errors", 500, (int)fmax(300, height_of(r)));
  chart_errors(f, l, r, PAGE_NAME, NULL);
  page_terminal(f, "gains", 500, (int)fmax(300, height_of(r)));
  chart_gains(f, l, r, PAGE_NAME, NULL);
  const int rc = fclose(f) ? cli_error("out of memory") : gnuplot_run(script, n, svg, &n_svg);
  free(script);
  return rc;
}

/* What the numbers in the charts stand for. */
static void numbers(FILE *f, const ablate_layers *l, const rows *r) {
  fputs("<ol>\n", f);
  for (size_t i = 0; i < r->n; i++) {
    fputs("<li>", f);
    page_text(f, l->specs->at[r->spec[i]].label);
    for (size_t s = r->spec[i] + 1; s < l->specs->n; s++) {
      if (ablate_layer_same(l, s) != r->spec[i] + 1) continue;
      fputs(" = ", f);
      page_text(f, l->specs->at[s].label);
    }
    fputs("</li>\n", f);
  }
  fputs("</ol>\n", f);
  if (r->left_out) fprintf(f, "<p>Not drawn, in the table alone: %zu more.</p>\n", r->left_out);
}

static void origin(FILE *f, const ablate_layers *l) {
  fputs("<details><summary>What these figures are of: all keys of each operand, and the digest of each tensor's values</summary>\n<dl>\n", f);
  for (size_t s = 0; s < l->specs->n; s++) {
    mx_spec q[ABLATE_OPERANDS];
    if (ablate_operand_specs(q, l->n_operands, l->how, &l->specs->at[s])) return;
    for (int i = 0; i < l->n_operands; i++) {
      char which[16];
      snprintf(which, sizeof which, ", Q%d", i + 1);
      origin_spec(f, l->specs->at[s].label, which, &q[i]);
    }
  }
  origin_tensors(f, l->tensors, l->digest);
}

static int body(FILE *f, const ablate_layers *l, const rows *r, char *svg) {
  char verdict[1200];
  ablate_layers_verdict(verdict, sizeof verdict, l);
  page_begin(f, l->how->six ? "What quantising does to the three products of a linear layer" : "What quantising does to a product", verdict);
  fprintf(f, "<p>mxgold %s, %zu spec%s, --seed %llu, --repeats %d where random.</p>\n<div class=two>\n", MX_VERSION, l->specs->n,
          l->specs->n == 1 ? "" : "s", (unsigned long long)l->specs->seed, l->how->repeats > 0 ? l->how->repeats : 8);
  for (int i = 0; i < 2; i++) {
    const char *one = page_svg(&svg);
    if (!one) return 0;
    fprintf(f, "<div><h3>%s</h3>%s</div>\n", titles[i], one);
  }
  fputs("</div>\n", f);
  numbers(f, l, r);
  out *o = ablate_layers_document(l, 0);
  out_html(o, f);
  out_free(o);
  fputs("<p>A click on the head of a column sorts by it.</p>\n", f);
  origin(f, l);
  page_end(f);
  return o != NULL;
}

int ablate_layers_html(const ablate_layers *l, const char *path) {
  char *page = NULL, *svg = NULL;
  size_t n;
  const rows r = rows_of(l);
  if (charts(&svg, l, &r)) return CLI_TROUBLE;
  FILE *f = open_memstream(&page, &n);
  int rc = !f ? cli_error("out of memory") : body(f, l, &r, svg) ? CLI_FINE : cli_error("gnuplot did not draw every chart");
  if (f && fclose(f) && !rc) rc = cli_error("out of memory");
  if (!rc) rc = file_write_whole(path, page, n);
  free(page);
  free(svg);
  return rc;
}
