/* One page that holds everything: tables, and charts as SVG within it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "charts.h"
#include "cli/base/files.h"
#include "cli/base/shape.h"
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
    "svg{max-width:100%;height:auto}svg "
    "image{image-rendering:pixelated}.two{display:grid;grid-template-columns:repeat(auto-fit,minmax(480px,1fr));gap:1em}"
    ".maps{display:grid;grid-template-columns:repeat(auto-fill,minmax(270px,1fr));gap:.5em}"
    "fieldset{border:1px solid #ccc;margin:1em 0}label{display:inline-block;margin-right:1.2em;font-size:13px}"
    "label i{display:inline-block;width:22px;margin:0 .4em .25em .1em}";

static void cell(FILE *f, const char *format, double v) __attribute__((format(printf, 2, 0)));
static void cell(FILE *f, const char *format, double v) {
  fputs("<td>", f);
  fprintf(f, format, v);
  fputs("</td>", f);
}

/* What the table on a terminal says of NaN and of rows shorter than a block. */
static void notes(FILE *f, const ablate_result *res, const ablate_row *r) {
  const ablate_tensor *t = &res->tensors->at[r->tensor];
  char room[64];
  const char *note = shape_note(room, sizeof room, t->rows, t->cols, &res->specs->at[r->spec].spec);
  fputs("<td class=t>", f);
  if (r->sums.n_nan + r->sums.n_inf + r->sums.n_spoiled)
    fprintf(f, "NaN and Inf: %llu, spoiling %llu%s", (unsigned long long)(r->sums.n_nan + r->sums.n_inf) / (unsigned)r->repeats,
            (unsigned long long)r->sums.n_spoiled / (unsigned)r->repeats, *note ? "; " : "");
  text(f, note);
  char same[600];
  if (*ablate_same_text(same, sizeof same, res, r)) {
    fputs(*note ? "; " : "", f);
    text(f, same);
  }
  fputs("</td>", f);
}

/* Tensors of a checkpoint or a pattern that are in no row, and combinations whose keys exclude each other. */
static void left_out(FILE *f, const ablate_result *res) {
  const ablate_tensors *t = res->tensors;
  if (t->n_left_out) fprintf(f, "<p>Tensors measured: %zu; left out: %zu:</p>\n<ul>\n", t->n, t->n_left_out);
  for (size_t i = 0; i < t->n_left_out; i++) {
    fputs("<li>", f);
    text(f, t->left_out[i].array->name);
    fprintf(f, ": %s</li>\n", t->left_out[i].why);
  }
  if (t->n_left_out) fputs("</ul>\n", f);
  if (!res->specs->left_out) return;
  fputs("<p>Combinations left out:</p>\n<pre>", f);
  for (const char *at = res->specs->left_out; *at; at++) {
    if (*at == '\n')
      putc('\n', f);
    else
      text(f, (char[2]){*at, 0});
  }
  fputs("</pre>\n", f);
}

static void row(FILE *f, const ablate_result *res, const ablate_row *r, int best, int first) {
  fprintf(f, "<tr class=\"%s%s\"><td class=t>", best ? "best " : "", first ? "new" : "");
  text(f, res->tensors->at[r->tensor].name);
  fputs("</td><td class=t>", f);
  text(f, res->specs->at[r->spec].label);
  fputs("</td>", f);
  const double n = r->n_codes ? (double)r->n_codes : 1;
  cell(f, "%.3f", r->bits);
  if (r->sums.n)
    cell(f, "%.3f", mx_sqnr(&r->sums));
  else
    fputs("<td>none left</td>", f);
  if (best && !ablate_is_lost(r))
    fputs("<td>best</td>", f);
  else {
    char behind[80];
    ablate_behind_text(behind, sizeof behind, r);
    fprintf(f, "<td>%s</td>", behind);
  }
  if (ablate_is_lost(r))
    fputs("<td>-</td><td>-</td><td>-</td><td>-</td>", f);
  else {
    cell(f, "%.3e", mx_mse(&r->sums));
    cell(f, "%.4f", mx_relative_error(&r->sums));
    cell(f, "%.4f", mx_gain(&r->sums));
    if (mx_spec_is_random(&res->specs->at[r->spec].spec))
      cell(f, r->bias < 0 ? "&lt; %.4f" : "%.4f", fabs(r->bias));
    else
      fputs("<td></td>", f); /* all of the error */
  }
  cell(f, "%.3f", 100 * (double)r->saturated / n);
  if (ablate_is_lost(r))
    fputs("<td>-</td>", f);
  else
    cell(f, "%.3f", 100 * (double)r->sums.n_underflow / (double)r->sums.n);
  cell(f, "%.2f", 100 * (double)r->zero / n);
  cell(f, "%.3f", r->entropy);
  notes(f, res, r);
  fputs("</tr>\n", f);
}

static void table(FILE *f, const ablate_result *res) {
  fputs("<div class=wide><table><tr><th>tensor</th><th class=t>preset</th><th>bits</th><th>SQNR, dB</th><th>dB behind the best (95 "
        "%)</th><th>MSE</th>"
        "<th>relative error</th><th>gain</th><th>bias</th><th>saturated, %</th><th>underflow, %</th><th>zero codes, %</th><th>entropy, "
        "bits</th><th class=t>note</th></tr>\n",
        f);
  for (size_t i = 0; i < res->tensors->n; i++) {
    const size_t t = res->order[i], best = ablate_best(res, t);
    for (size_t s = 0; s < res->specs->n; s++) row(f, res, ablate_row_at(res, t, s), s == best, s == 0);
  }
  fputs("</table></div>\n<p>Tensors are sorted by damage, worst first. ~ marks differences whose bootstrap interval over blocks holds 0, or "
        "that have too few blocks for one.</p>\n",
        f);
  left_out(f, res);
}

/* What the figures are of, so that they can be computed again: keys in full and values by their digests. */
static void origin(FILE *f, const ablate_result *res) {
  char keys[4096];
  fputs("<details><summary>What these figures are of: all keys of each spec, and the digest of each tensor's values</summary>\n<dl>\n", f);
  for (size_t s = 0; s < res->specs->n; s++) {
    fputs("<dt>", f);
    text(f, res->specs->at[s].label);
    fputs("</dt><dd><code>", f);
    mx_spec_print(keys, sizeof keys, &res->specs->at[s].spec, 1);
    text(f, keys);
    fputs("</code></dd>\n", f);
  }
  fputs("</dl>\n<table><tr><th>tensor</th><th>shape</th><th class=t>XXH3 of the values as binary32</th></tr>\n", f);
  for (size_t i = 0; i < res->tensors->n; i++) {
    const ablate_tensor *t = &res->tensors->at[i];
    fputs("<tr><td class=t>", f);
    text(f, t->name);
    fprintf(f, "</td><td>%zu x %zu</td><td class=t><code>%s</code></td></tr>\n", t->rows, t->cols, res->digest[i]);
  }
  fputs("</table></details>\n", f);
}

static void specs_table(FILE *f, const ablate_result *res) {
  fputs("<table><tr><th>preset</th><th>bits</th><th>mean SQNR, dB</th><th>best for</th><th>on the Pareto front for</th><th>mean dB behind the "
        "best</th><th>worst</th></tr>\n",
        f);
  for (size_t s = 0; s < res->specs->n; s++) {
    const ablate_summary a = ablate_summarize(res, s);
    fputs("<tr><td class=t>", f);
    text(f, res->specs->at[s].label);
    fprintf(f, "</td><td>%.3f</td><td>%.3f</td><td>%zu of %zu</td><td>%zu of %zu</td><td>%.3f</td><td>%.3f</td></tr>\n", a.bits, a.mean_sqnr,
            a.best_for, res->tensors->n, a.front_for, res->tensors->n, a.mean_behind, a.worst_behind);
  }
  fputs("</table>\n", f);
}

/* ---- Charts ---- */

/* All charts by one run of gnuplot, one document each: SQNR, scales, octaves, Hadamard, then a map a spec. Lines of spec i are the element
 * "scales_plot_<i + 1>" and "octaves_plot_<i + 1>", by the terminal's name. */
enum { SQNR, SCALES, OCTAVES, HADAMARD, MAPS };

static void terminal(FILE *f, const char *name, int width, int height) {
  fprintf(f, "reset\nset terminal svg size %d,%d font 'sans,12' background rgb 'white' name '%s'\n", width, height, name);
}

static void script_of(FILE *f, const ablate_result *r, const ablate_detail *d) {
  const int key = 19 * (int)(d->n + 3);
  terminal(f, "sqnr", 1100, key > 560 ? key : 560);
  chart_sqnr(f, r);
  terminal(f, "scales", 560, 400);
  chart_scales(f, d);
  terminal(f, "octaves", 560, 400);
  chart_octaves(f, d);
  terminal(f, "hadamard", 560, 400);
  chart_hadamard(f, d);
  for (size_t i = 0; i < d->n; i++) {
    terminal(f, "map", 360, 290);
    chart_map(f, d, i);
  }
}

/* The documents within what gnuplot wrote, in order; NULL when there are fewer. */
static char *next_svg(char **at) {
  static const char end[] = "</svg>";
  char *from = *at ? strstr(*at, "<svg") : NULL, *to = from ? strstr(from, end) : NULL;
  if (!to) return NULL;
  to += sizeof end - 1;
  *at = *to ? to + 1 : NULL; /* a line's end stands there */
  *to = 0;
  return from;
}

/* Who reads chooses which specs are drawn. Without a script all are. */
static void chooser(FILE *f, const ablate_detail *d) {
  fputs("<fieldset><legend>Specs that are drawn: <button type=button data-all=1>all</button> <button type=button "
        "data-all=0>none</button></legend>\n",
        f);
  static const char *const dashes[] = {"solid", "dashed", "dotted"};
  for (size_t i = 0; i < d->n; i++) {
    fprintf(f, "<label><input type=checkbox data-spec=%zu checked><i style=\"border-top:3px %s %s\"></i>", i, dashes[chart_dash(i)],
            chart_colour(i));
    text(f, d->result->specs->at[i].label);
    fputs("</label>\n", f);
  }
  fputs("</fieldset>\n", f);
}

static const char script[] =
    "<script>\n"
    "const boxes=[...document.querySelectorAll('input[data-spec]')];\n"
    "function show(){for(const b of boxes){const i=+b.dataset.spec;\n"
    " for(const e of [document.getElementById('scales_plot_'+(i+1)),document.getElementById('octaves_plot_'+(i+1)),"
    "document.getElementById('map'+i)])if(e)e.style.display=b.checked?'':'none'}}\n"
    "for(const b of boxes)b.onchange=show;\n"
    "for(const b of document.querySelectorAll('button[data-all]'))b.onclick=()=>{for(const x of boxes)x.checked=b.dataset.all=='1';show()};\n"
    "show();\n"
    "</script>\n";

/* The charts of one tensor, and how to choose among their specs. */
static int details(FILE *f, const ablate_detail *d, char *svg) {
  const ablate_tensor *t = &d->result->tensors->at[d->tensor];
  fputs("<h2>In detail: ", f);
  text(f, t->name);
  fprintf(f, "</h2>\n<p>%zu x %zu, the tensor that the first preset damages most.</p>\n", t->rows, t->cols);
  chooser(f, d);
  fputs("<div class=two>\n", f);
  for (int k = SCALES; k < MAPS; k++) {
    const char *one = next_svg(&svg);
    if (!one) return 0;
    fprintf(f, "<div>%s</div>\n", one);
  }
  fputs("</div>\n<h3>Error over the tensor</h3>\n<div class=maps>\n", f);
  for (size_t i = 0; i < d->n; i++) {
    const char *one = next_svg(&svg);
    if (!one) return 0;
    fprintf(f, "<div id=map%zu>%s</div>\n", i, one);
  }
  fputs("</div>\n", f);
  fputs(script, f);
  return 1;
}

static int body(FILE *f, const ablate_result *r, const ablate_detail *d, char *svg) {
  fprintf(f,
          "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\"><title>mxgold "
          "ablation</title><style>%s</style>\n",
          style);
  fprintf(f, "<h1>What quantising does to %zu tensor%s</h1>\n<p>mxgold %s, %zu spec%s, --seed %llu, --repeats %d where random.</p>\n",
          r->tensors->n, r->tensors->n == 1 ? "" : "s", MX_VERSION, r->specs->n, r->specs->n == 1 ? "" : "s",
          (unsigned long long)r->specs->seed, r->repeats > 0 ? r->repeats : 8);
  const char *sqnr = next_svg(&svg);
  if (!sqnr) return 0;
  fprintf(f, "<div>%s</div>\n", sqnr);
  specs_table(f, r);
  origin(f, r);
  if (!details(f, d, svg)) return 0;
  fputs("<h2>Every tensor</h2>\n", f);
  table(f, r);
  const ablate_tensors *t = r->tensors;
  if (t->n_left_out) fprintf(f, "<p>%zu tensor%s not measured: ", t->n_left_out, t->n_left_out == 1 ? "" : "s");
  for (size_t i = 0; i < t->n_left_out; i++) {
    fputs(i ? "; " : "", f);
    text(f, t->left_out[i].array->name);
    fprintf(f, " (%s)", t->left_out[i].why);
  }
  fputs(t->n_left_out ? ".</p>\n" : "", f);
  fputs("</html>\n", f);
  return 1;
}

static int charts(char **svg, const ablate_result *r, const ablate_detail *d) {
  char *text = NULL;
  size_t n, n_svg;
  FILE *f = open_memstream(&text, &n);
  if (!f) return cli_error("out of memory");
  script_of(f, r, d);
  const int rc = fclose(f) ? cli_error("out of memory") : gnuplot_run(text, n, svg, &n_svg);
  free(text);
  return rc;
}

int ablate_html(const ablate_result *r, const ablate_detail *d, const char *path) {
  char *page = NULL, *svg = NULL;
  size_t n;
  if (charts(&svg, r, d)) return CLI_TROUBLE;
  FILE *f = open_memstream(&page, &n);
  int rc = !f ? cli_error("out of memory") : body(f, r, d, svg) ? CLI_FINE : cli_error("gnuplot did not draw every chart");
  if (f && fclose(f) && !rc) rc = cli_error("out of memory");
  if (!rc) rc = file_write_whole(path, page, n);
  free(page);
  free(svg);
  return rc;
}
