/* One page that holds everything: tables, and charts as SVG within it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ablate_charts.h"
#include "ablate_files.h"
#include "mxgold/version.h"

static void text(FILE *f, const char *s) {
  for (; *s; s++) switch (*s) {
    case '<':
      fputs("&lt;", f);
      break;
    case '>':
      fputs("&gt;", f);
      break;
    case '&':
      fputs("&amp;", f);
      break;
    case '"':
      fputs("&quot;", f);
      break;
    default:
      putc((unsigned char)*s < 0x20 ? '?' : *s, f);
    }
}

static const char style[] =
    "body{font:15px/1.45 system-ui,sans-serif;margin:2em auto;max-width:1180px;padding:0 1em;color:#222}"
    "table{border-collapse:collapse;margin:1em 0;font-variant-numeric:tabular-nums;font-size:12px}"
    "th,td{padding:.15em .45em;border-bottom:1px solid #e2e2e2;text-align:right;white-space:nowrap}"
    "th:first-child,td:first-child,.t{text-align:left}th{border-bottom:2px solid #888}"
    "tr.best td{background:#eef6ea}tr.new td{border-top:2px solid #bbb}.wide{overflow-x:auto}"
    "svg{max-width:100%;height:auto}.two{display:grid;grid-template-columns:repeat(auto-fit,minmax(480px,1fr));gap:1em}";

static void cell(FILE *f, const char *format, double v) __attribute__((format(printf, 2, 0)));
static void cell(FILE *f, const char *format, double v) {
  fputs("<td>", f);
  fprintf(f, format, v);
  fputs("</td>", f);
}

static void row(FILE *f, const ablate_result *res, const ablate_row *r, int best, int first) {
  fprintf(f, "<tr class=\"%s%s\"><td class=t>", best ? "best " : "", first ? "new" : "");
  text(f, res->tensors->at[r->tensor].name);
  fputs("</td><td class=t>", f);
  text(f, res->specs->at[r->spec].label);
  fputs("</td>", f);
  const double n = r->n_codes ? (double)r->n_codes : 1;
  cell(f, "%.3f", r->bits);
  cell(f, "%.3f", mx_sqnr(&r->sums));
  if (best)
    fputs("<td>best</td>", f);
  else
    fprintf(f, "<td>%.2f (%.2f to %.2f)%s</td>", r->behind.at, r->behind.low, r->behind.high, ablate_matters(&r->behind) ? "" : " ~");
  cell(f, "%.3e", mx_mse(&r->sums));
  cell(f, "%.4f", mx_relative_error(&r->sums));
  cell(f, "%.4f", mx_gain(&r->sums));
  cell(f, "%.4f", r->bias);
  cell(f, "%.3f", 100 * (double)r->saturated / n);
  cell(f, "%.3f", r->sums.n ? 100 * (double)r->sums.n_underflow / (double)r->sums.n : 0);
  cell(f, "%.2f", 100 * (double)r->zero / n);
  cell(f, "%.3f", r->entropy);
  fputs("</tr>\n", f);
}

static void table(FILE *f, const ablate_result *res) {
  fputs("<div class=wide><table><tr><th>tensor</th><th class=t>preset</th><th>bits</th><th>SQNR, dB</th><th>dB behind the best (95 "
        "%)</th><th>MSE</th>"
        "<th>relative error</th><th>gain</th><th>bias</th><th>saturated, %</th><th>underflow, %</th><th>zero codes, %</th><th>entropy, "
        "bits</th></tr>\n",
        f);
  for (size_t i = 0; i < res->tensors->n; i++) {
    const size_t t = res->order[i], best = ablate_best(res, t);
    for (size_t s = 0; s < res->specs->n; s++) row(f, res, ablate_row_at(res, t, s), s == best, s == 0);
  }
  fputs("</table></div>\n<p>Tensors are sorted by damage, worst first. ~ marks differences whose bootstrap interval over blocks holds 0.</p>\n",
        f);
}

static void specs_table(FILE *f, const ablate_result *res) {
  fputs("<table><tr><th>preset</th><th>bits</th><th>mean SQNR, dB</th><th>best for</th><th>on the Pareto front for</th><th>mean dB behind the "
        "best</th><th>worst</th></tr>\n",
        f);
  for (size_t s = 0; s < res->specs->n; s++) {
    const ablate_summary a = ablate_summarize(res, s);
    fputs("<tr><td class=t>", f);
    text(f, res->specs->at[s].label);
    fprintf(f, "</td><td>%.3f</td><td>%.3f</td><td>%zu</td><td>%zu</td><td>%.3f</td><td>%.3f</td></tr>\n", a.bits, a.mean_sqnr, a.best_for,
            a.front_for, a.mean_behind, a.worst_behind);
  }
  fputs("</table>\n", f);
}

/* A chart into the page; its script is written by draw(). */
typedef struct chart {
  const ablate_result *r;
  const chart_detail *d;
} chart;
enum { SQNR, SCALES, OCTAVES, MAP_FIRST, MAP_LAST, HADAMARD, CHARTS };

static void draw(FILE *f, const chart *c, int which) {
  switch (which) {
  case SQNR:
    chart_sqnr(f, c->r);
    break;
  case SCALES:
    chart_scales(f, c->r, c->d);
    break;
  case OCTAVES:
    chart_octaves(f, c->r, c->d);
    break;
  case MAP_FIRST:
    chart_map(f, c->r, c->d, 0);
    break;
  case MAP_LAST:
    chart_map(f, c->r, c->d, c->d->n - 1);
    break;
  default:
    chart_hadamard(f, c->d);
  }
}

static int chart_into(FILE *f, const chart *c, int which) {
  char *script = NULL, *svg = NULL;
  size_t n, n_svg;
  FILE *s = open_memstream(&script, &n);
  if (!s) return cli_error("out of memory");
  fprintf(s, "set terminal svg size %s font 'sans,12' background rgb 'white' name 'chart%d'\n", which == SQNR ? "1100,620" : "640,440", which);
  draw(s, c, which);
  if (fclose(s)) return cli_error("out of memory");
  const int rc = gnuplot_run(script, n, &svg, &n_svg);
  if (!rc) {
    const char *from = strstr(svg, "<svg"); /* without the XML declaration */
    fprintf(f, "<div>%s</div>\n", from ? from : svg);
  }
  free(script);
  free(svg);
  return rc;
}

static int body(FILE *f, const ablate_result *r, const float *x, size_t tensor) {
  chart_detail *d = malloc(sizeof *d);
  int rc = d ? chart_detail_make(d, r, x, tensor) : cli_error("out of memory");
  const chart c = {r, d};
  fprintf(f,
          "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\"><title>mxgold "
          "ablation</title><style>%s</style>\n",
          style);
  fprintf(f, "<h1>What quantising does to %zu tensor%s</h1>\n<p>mxgold %s, %zu specs.</p>\n", r->tensors->n, r->tensors->n == 1 ? "" : "s",
          MX_VERSION, r->specs->n);
  if (!rc) rc = chart_into(f, &c, SQNR);
  specs_table(f, r);
  if (!rc) {
    fputs("<h2>In detail: ", f);
    text(f, r->tensors->at[tensor].name);
    fprintf(f, "</h2>\n<p>%zu x %zu, the tensor that the first preset damages most%s.</p>\n<div class=two>\n", r->tensors->at[tensor].rows,
            r->tensors->at[tensor].cols, r->specs->n > CHART_SPECS ? "; charts show the first eight specs" : "");
  }
  for (int k = SCALES; k < CHARTS && !rc; k++)
    if (k != MAP_LAST || d->n > 1) rc = chart_into(f, &c, k);
  fputs("</div>\n<h2>Every tensor</h2>\n", f);
  table(f, r);
  fputs("</html>\n", f);
  free(d);
  return rc;
}

int ablate_html(const ablate_result *r, const char *path, const float *x, size_t tensor) {
  char *page = NULL;
  size_t n;
  FILE *f = open_memstream(&page, &n);
  if (!f) return cli_error("out of memory");
  int rc = body(f, r, x, tensor);
  if (fclose(f) && !rc) rc = cli_error("out of memory");
  if (!rc) rc = file_write_whole(path, page, n);
  free(page);
  return rc;
}
