/* Writes the page of a report: each arm's difference with its interval, and the loss curves, as pictures that a telephone can show. */
#include "report.h"

#include <math.h>
#include <stdlib.h>

#include "cli/base/cli.h"
#include "cli/base/page.h"
#include "mxgold/file.h"

/* Pictures are as wide as a telephone, so that their letters are not made smaller there. */
enum { WIDE = 420, ROW = 34, MARGIN = 12, CURVE_HIGH = 260, POINTS = 200, MOST_CURVES = 12, MOST_ROWS = 60 };

static const char *const colours[] = {"#1f83c8", "#d1592b", "#2f8f4e", "#9a5fc0", "#b8860b", "#c2407e", "#4b9aa8", "#7a7a7a"};
static const char *const dashes[] = {"", " stroke-dasharray=\"6 3\"", " stroke-dasharray=\"2 2\""};
static const char *colour_of(size_t i) { return colours[i % (sizeof colours / sizeof *colours)]; }
static const char *dash_of(size_t i) { return dashes[i / (sizeof colours / sizeof *colours) % (sizeof dashes / sizeof *dashes)]; }

typedef struct range {
  double low, high;
} range;

static void widen(range *r, double x) {
  if (!isfinite(x)) return;
  r->low = x < r->low || isnan(r->low) ? x : r->low;
  r->high = x > r->high || isnan(r->high) ? x : r->high;
}

static double at(const range *r, double x, double from, double to) {
  return r->high > r->low ? from + (x - r->low) / (r->high - r->low) * (to - from) : from;
}

/* Steps of 1, 2 or 5 times a power of ten, some four of them. */
static double step_of(const range *r) {
  const double span = r->high - r->low, power = pow(10, floor(log10(span / 4))), rest = span / 4 / power;
  return power * (rest < 1.5 ? 1 : rest < 3.5 ? 2 : rest < 7.5 ? 5 : 10);
}

static void ticks(FILE *f, const range *r, double y) {
  if (!(r->high > r->low)) return;
  const double step = step_of(r);
  for (double x = ceil(r->low / step) * step; x <= r->high; x += step) {
    const double to = at(r, x, MARGIN, WIDE - MARGIN);
    fprintf(f,
            "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"0\" y2=\"%.0f\" class=\"gridline\" stroke-width=\"1\"/><text x=\"%.1f\" y=\"%.0f\" "
            "text-anchor=\"%s\">%.4g</text>\n",
            to, to, y, to, y + 14, to > WIDE - 2 * MARGIN ? "end" : "middle", fabs(x) < 1e-9 * step ? 0 : x);
  }
}

/* A row an arm: its name, the mean and the interval of its difference; filled where it is resolved. */
static void differences(FILE *f, const mx_report *r) {
  range all = {0, 0};
  size_t rows = 0, compared = 0;
  for (size_t i = 0; mx_report_arm_at(r, i); i++) {
    const mx_mean *m = &mx_report_arm_at(r, i)->behind[MX_EVAL_QUANTISED];
    if (isnan(m->mean)) continue;
    compared++;
    if (rows == MOST_ROWS) continue;
    widen(&all, m->mean), widen(&all, m->low), widen(&all, m->high);
    rows++;
  }
  if (!rows) return;
  const double high = (double)rows * ROW;
  fprintf(
      f, "<h2>Validation loss beside the reference</h2>\n<div class=one><svg viewBox=\"0 0 %d %.0f\" font-size=\"12\" fill=\"currentColor\">\n",
      WIDE, high + 20);
  ticks(f, &all, high);
  const double zero = at(&all, 0, MARGIN, WIDE - MARGIN);
  fprintf(f, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"0\" y2=\"%.0f\" stroke=\"currentColor\" stroke-width=\"1\"/>\n", zero, zero, high);
  size_t row = 0;
  for (size_t i = 0; mx_report_arm_at(r, i) && row < rows; i++) {
    const mx_report_arm *a = mx_report_arm_at(r, i);
    const mx_mean *m = &a->behind[MX_EVAL_QUANTISED];
    if (isnan(m->mean)) continue;
    const double y = (double)row++ * ROW, x = at(&all, m->mean, MARGIN, WIDE - MARGIN);
    fprintf(f, "<text x=\"%d\" y=\"%.0f\">", MARGIN, y + 13);
    page_text(f, a->name);
    fputs("</text>\n", f);
    if (!isnan(m->low))
      fprintf(f, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.0f\" y2=\"%.0f\" stroke=\"%s\" stroke-width=\"3\"/>\n",
              at(&all, m->low, MARGIN, WIDE - MARGIN), at(&all, m->high, MARGIN, WIDE - MARGIN), y + 23, y + 23, colours[0]);
    fprintf(f, "<circle cx=\"%.1f\" cy=\"%.0f\" r=\"5\" stroke=\"%s\" stroke-width=\"2\" fill=\"%s\"/>\n", x, y + 23, colours[0],
            a->resolved[MX_EVAL_QUANTISED] ? colours[0] : "var(--page)");
  }
  fputs("</svg></div>\n<p>Lines are intervals. A filled circle is a difference that is resolved.", f);
  if (rows < compared) fprintf(f, " The first %zu of %zu arms.", rows, compared);
  fputs("</p>\n", f);
}

/* A point an arm: operations a value, and the difference; filled on the front. Only if they cost different much. */
static void front(FILE *f, const mx_report *r) {
  range x = {NAN, NAN}, y = {NAN, NAN};
  const mx_report_arm *a;
  for (size_t i = 0; (a = mx_report_arm_at(r, i)); i++)
    if (!isnan(a->behind[MX_EVAL_QUANTISED].mean)) widen(&x, a->cost.overhead), widen(&y, a->behind[MX_EVAL_QUANTISED].mean);
  if (!(x.high > x.low) || !(y.high > y.low)) return;
  const double left = MARGIN + 36, margin = .05 * (y.high - y.low);
  const range up = {y.low - margin, y.high + margin};
  fprintf(f,
          "<h2>Loss beside the reference against operations a value</h2>\n<div class=one><svg viewBox=\"0 0 %d %d\" font-size=\"12\" "
          "fill=\"currentColor\">\n",
          WIDE, CURVE_HIGH + 20);
  const double right = step_of(&x), above = step_of(&up);
  for (double v = ceil(x.low / right) * right; v <= x.high; v += right)
    fprintf(
        f,
        "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"0\" y2=\"%d\" class=\"gridline\"/><text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.4g</text>\n",
        at(&x, v, left, WIDE - MARGIN), at(&x, v, left, WIDE - MARGIN), CURVE_HIGH, at(&x, v, left, WIDE - MARGIN), CURVE_HIGH + 14, v);
  for (double v = ceil(up.low / above) * above; v <= up.high; v += above)
    fprintf(f, "<line x1=\"%.0f\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" class=\"gridline\"/><text x=\"0\" y=\"%.1f\">%.4g</text>\n", left,
            WIDE - MARGIN, at(&up, v, CURVE_HIGH, 0), at(&up, v, CURVE_HIGH, 0), at(&up, v, CURVE_HIGH, 0) + 4, fabs(v) < 1e-9 * above ? 0 : v);
  for (size_t i = 0; (a = mx_report_arm_at(r, i)); i++) {
    const double loss = a->behind[MX_EVAL_QUANTISED].mean;
    if (isnan(loss)) continue;
    fprintf(f, "<g><title>");
    page_text(f, a->name);
    fprintf(f,
            ": %+.4f, %.2f operations</title><ellipse cx=\"%.1f\" cy=\"%.1f\" rx=\"5\" ry=\"5\" stroke=\"%s\" stroke-width=\"2\" "
            "fill=\"%s\"/></g>\n",
            loss, a->cost.overhead, at(&x, a->cost.overhead, left, WIDE - MARGIN), at(&up, loss, CURVE_HIGH, 0), colours[0],
            a->front ? colours[0] : "var(--page)");
  }
  fputs("</svg></div>\n<p>Filled: no arm with the same reference costs no more in bits, in time of products and in operations and has a lower "
        "loss. "
        "A point's name is shown where the pointer rests on it.</p>\n",
        f);
}

static int curves(FILE *f, const mx_report *r) {
  double *steps = malloc(4 * POINTS * sizeof *steps), *losses = steps + POINTS, *low = losses + POINTS, *high = low + POINTS;
  range x = {NAN, NAN}, y = {NAN, NAN};
  size_t drawn = 0;
  if (!steps) return 0;
  for (size_t i = 0; mx_report_arm_at(r, i) && drawn < MOST_CURVES; i++) {
    const size_t n = mx_report_curve(steps, losses, NULL, NULL, POINTS, r, i);
    drawn += n > 0;
    /* The first tenth falls from where every model begins: it would leave no room for what differs. */
    for (size_t k = n / 10; k < n; k++) widen(&x, steps[k]), widen(&y, losses[k]);
  }
  if (drawn) {
    fprintf(f,
            "<h2>Training loss</h2>\n<div class=one><svg viewBox=\"0 0 %d %d\" font-size=\"12\" fill=\"currentColor\"><clipPath "
            "id=inside><rect x=\"%d\" "
            "y=\"0\" width=\"%d\" height=\"%d\"/></clipPath>\n",
            WIDE, CURVE_HIGH + 20, MARGIN, WIDE - 2 * MARGIN, CURVE_HIGH);
    ticks(f, &x, CURVE_HIGH);
    if (y.high > y.low)
      for (double v = ceil(y.low / step_of(&y)) * step_of(&y); v <= y.high; v += step_of(&y))
        fprintf(f, "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" class=\"gridline\"/><text x=\"%d\" y=\"%.1f\">%.4g</text>\n", MARGIN,
                WIDE - MARGIN, at(&y, v, CURVE_HIGH, 0), at(&y, v, CURVE_HIGH, 0), MARGIN + 2, at(&y, v, CURVE_HIGH, 0) - 2, v);
  }
  size_t line = 0;
  for (size_t i = 0; mx_report_arm_at(r, i) && line < drawn; i++) {
    const size_t n = mx_report_curve(steps, losses, low, high, POINTS, r, i);
    if (!n) continue;
    fprintf(f, "<polygon clip-path=\"url(#inside)\" fill=\"%s\" fill-opacity=\".13\" points=\"", colour_of(line));
    for (size_t k = 0; k < n; k++) fprintf(f, "%.1f,%.1f ", at(&x, steps[k], MARGIN, WIDE - MARGIN), at(&y, high[k], CURVE_HIGH, 0));
    for (size_t k = n; k-- > 0;) fprintf(f, "%.1f,%.1f ", at(&x, steps[k], MARGIN, WIDE - MARGIN), at(&y, low[k], CURVE_HIGH, 0));
    fputs("\"/>\n", f);
    fprintf(f, "<polyline clip-path=\"url(#inside)\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\"%s points=\"", colour_of(line),
            dash_of(line));
    for (size_t k = 0; k < n; k++) fprintf(f, "%.1f,%.1f ", at(&x, steps[k], MARGIN, WIDE - MARGIN), at(&y, losses[k], CURVE_HIGH, 0));
    fputs("\"/>\n", f);
    line++;
  }
  if (drawn) fputs("</svg></div>\n<p>", f);
  line = 0;
  for (size_t i = 0; mx_report_arm_at(r, i) && line < drawn; i++) {
    if (!mx_report_curve(steps, losses, NULL, NULL, POINTS, r, i)) continue;
    fprintf(f,
            "<label><svg style=\"display:inline;width:24px;height:8px\" viewBox=\"0 0 24 8\"><line x1=\"0\" x2=\"24\" y1=\"4\" y2=\"4\" "
            "stroke=\"%s\" stroke-width=\"2\"%s/></svg> ",
            colour_of(line), dash_of(line));
    page_text(f, mx_report_arm_at(r, i)->name);
    fputs("</label>\n", f);
    line++;
  }
  if (drawn)
    fputs("</p>\n<p>Means over the seeds that finished, by step, smoothed over a twentieth of the run; the first tenth is cut off. Bands reach "
          "from the lowest seed to the highest.</p>\n",
          f);
  free(steps);
  return 1;
}

int report_page(const char *path, const mx_report *r, const out *table, const char *verdict) {
  mx_text file;
  mx_error err;
  if (mx_text_begin(&file, path, &err)) return cli_fail(&err);
  page_begin(file.to, "What a sweep says", verdict);
  differences(file.to, r);
  front(file.to, r);
  if (!curves(file.to, r)) {
    mx_text_drop(&file);
    return cli_error("%s: out of memory", path);
  }
  fputs("<h2>Every arm</h2>\n", file.to);
  out_html(table, file.to);
  page_end(file.to);
  return mx_text_end(&file, &err) ? cli_fail(&err) : CLI_FINE;
}
