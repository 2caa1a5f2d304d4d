/* Writes the HTML page of an ablation: what the terminal shows, in the same order, with charts as SVG between. */
#include <stdlib.h>

#include "charts.h"
#include "origin.h"
#include "cli/base/files.h"
#include "cli/base/out.h"
#include "cli/base/page.h"
#include "mxgold/version.h"

/* States what the figures were computed from, so that they can be computed again: all keys, and digests of the values. */
static void origin(FILE *f, const ablate_result *res) {
  fputs("<details><summary>What these figures are of: all keys of each spec, and the digest of each tensor's values</summary>\n<dl>\n", f);
  for (size_t s = 0; s < res->specs->n; s++) origin_spec(f, res->specs->at[s].label, "", &res->specs->at[s].spec);
  origin_tensors(f, res->tensors, res->digest);
}

/* ---- Charts ---- */

/* All charts by one run of gnuplot, one document each: SQNR, scales, octaves, Hadamard, then a map a spec. They are drawn small, so that their words can be
 * read where the page is as wide as a telephone. */
static void script_of(FILE *f, const ablate_result *r, const ablate_detail *d) {
  const int rows = 90 + 22 * (int)chart_rows(d);
  page_terminal(f, "sqnr", 500, 400);
  chart_sqnr(f, r, &d->order, 0);
  page_terminal(f, "octaves", 460, 360);
  chart_octaves(f, d, d->order.n);
  page_terminal(f, "hadamard", 460, 360);
  chart_hadamard(f, d);
  page_terminal(f, "scales", 460, rows > 200 ? rows : 200);
  chart_scales(f, d);
  for (size_t i = 0; i < d->order.n; i++) {
    if (!chart_is_drawn(d, i)) continue;
    page_terminal(f, "map", 360, 310);
    chart_map(f, d, i);
  }
}

/* The key of all charts, with boxes: who reads chooses which specs are drawn; without a script all are. It says what is not in a chart under its own
 * number. */
static int chooser(FILE *f, const ablate_detail *d) {
  unsigned char *far = malloc(d->order.n + 1);
  if (!far || !chart_far(far, d->result, &d->order)) {
    free(far);
    return 0;
  }
  fputs("<fieldset><legend>Specs, the best first; drawn are those with a tick: <button type=button data-all=1>all</button> <button type=button "
        "data-all=0>none</button></legend>\n",
        f);
  static const char *const dashes[] = {"solid", "dashed", "dotted"};
  for (size_t i = 0; i < d->order.n; i++) {
    char name[600];
    chart_name(name, sizeof name, d->result, d->order.spec[i]);
    fprintf(f, "<label><input type=checkbox data-spec=%zu%s><i style=\"border-top:3px %s %s\"></i>%zu&ensp;", i,
            chart_is_ticked(d->result, &d->order, i) ? " checked" : "", dashes[chart_dash(i)], chart_colour(i), i + 1);
    page_text(f, name);
    const double sqnr = d->result->summary[d->order.spec[i]].mean_sqnr;
    if (isfinite(sqnr)) fprintf(f, ", %.2f dB", sqnr);
    if (far[i]) fprintf(f, " at %.2f bits, outside the picture", d->result->summary[d->order.spec[i]].bits);
    if (!chart_is_drawn(d, i)) fprintf(f, "; in detail the same values as %zu", chart_drawn_as(d, i) + 1);
    fputs("</label>\n", f);
  }
  fputs("</fieldset>\n", f);
  free(far);
  return 1;
}

/* Line i of the octaves is the element octaves_plot_<its place among the lines>; it and its map are there as long as any of the specs that they are of is
 * ticked. The steps of the front lead through the circles that are left. */
static void chooser_script(FILE *f, const ablate_detail *d) {
  fputs("<script>\nconst line=[", f);
  for (size_t i = 0, k = 0; i < d->order.n; i++) fprintf(f, "%s%zu", i ? "," : "", chart_is_drawn(d, i) ? ++k : 0);
  fputs("],as=[", f);
  for (size_t i = 0; i < d->order.n; i++) fprintf(f, "%s%zu", i ? "," : "", chart_drawn_as(d, i));
  fputs("],point=[", f);
  chart_sqnr_plots(f, d->result, &d->order);
  fputs(
      "],boxes=[...document.querySelectorAll('input[data-spec]')];\n"
      "function show(){const on=new Set(boxes.filter(b=>b.checked).map(b=>as[+b.dataset.spec]));for(const b of boxes){const "
      "i=+b.dataset.spec;\n"
      " for(const e of "
      "[document.getElementById('octaves_plot_'+line[i]),document.getElementById('map'+i)])if(e)e.style.display=on.has(i)?'':'none'}\n"
      " const at=[];for(const [i,from,n] of point)for(let k=0;k<n;k++){const e=document.getElementById('sqnr_plot_'+(from+k));if(!e)continue;\n"
      "  e.style.display=boxes[i].checked?'':'none';const u=k==3&&boxes[i].checked&&e.querySelector('use');\n"
      "  if(u)at.push(u.getAttribute('transform').match(/translate\\(([\\d.]+), ?([\\d.]+)/).slice(1).map(Number))}\n"
      " at.sort((a,b)=>a[0]-b[0]||b[1]-a[1]);\n"
      " document.querySelector('#sqnr_plot_1 path')?.setAttribute('d',at.map((p,k)=>k?'H'+p[0]+'V'+p[1]:'M'+p).join(''))}\n"
      "for(const b of boxes)b.onchange=show;\n"
      "for(const b of document.querySelectorAll('button[data-all]'))b.onclick=()=>{for(const x of boxes)x.checked=b.dataset.all=='1';show()};\n"
      "show();\n</script>\n",
      f);
}

/* The charts of one tensor. */
static int details(FILE *f, const ablate_detail *d, char *svg) {
  const ablate_tensor *t = &d->result->tensors->at[d->tensor];
  fputs("<h2>In detail: ", f);
  page_text(f, t->name);
  fprintf(f, "</h2>\n<p>%zu x %zu, the tensor that the first preset damages most.</p>\n<div class=two>\n", t->rows, t->cols);
  for (int k = 0; k < 3; k++) {
    const char *one = page_svg(&svg);
    if (!one) return 0;
    fprintf(f, "<div>%s</div>\n", one);
  }
  fputs("</div>\n<h3>Error over the tensor</h3>\n<div class=maps>\n", f);
  for (size_t i = 0; i < d->order.n; i++) {
    const char *one = chart_is_drawn(d, i) ? page_svg(&svg) : "";
    if (!one) return 0;
    if (*one) fprintf(f, "<div id=map%zu>%s</div>\n", i, one);
  }
  fputs("</div>\n", f);
  chooser_script(f, d);
  return 1;
}

static int body(FILE *f, const ablate_result *r, const ablate_detail *d, char *svg) {
  char title[80], verdict[1200];
  snprintf(title, sizeof title, "What quantising does to %zu tensor%s", r->tensors->n, r->tensors->n == 1 ? "" : "s");
  ablate_verdict(verdict, sizeof verdict, r);
  page_begin(f, title, verdict);
  fprintf(f, "<p>mxgold %s, %zu spec%s, --seed %llu, --repeats %d where random.</p>\n", MX_VERSION, r->specs->n, r->specs->n == 1 ? "" : "s",
          (unsigned long long)r->specs->seed, r->repeats > 0 ? r->repeats : 8);
  const char *sqnr = page_svg(&svg);
  if (!sqnr) return 0;
  fprintf(f, "<div class=one>%s</div>\n", sqnr);
  if (!chooser(f, d) || !details(f, d, svg)) return 0;
  fputs("<h2>Every tensor</h2>\n", f);
  out *o = ablate_document(r, 0);
  out_html(o, f);
  out_free(o);
  fputs("<p>Tensors are sorted by damage, worst first; a click on the head of a column sorts by it. ~ marks differences whose bootstrap "
        "interval over "
        "blocks holds 0, or that have too few blocks for one; * stands on the Pareto front.</p>\n",
        f);
  origin(f, r);
  page_end(f);
  return o != NULL;
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
