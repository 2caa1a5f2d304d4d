/* Reports. Styles and drawings are inline: one file is all there is to keep. */
#include "report.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void escaped(FILE *f, const char *s) {
  for (; *s; s++) {
    if (*s == '&')
      fputs("&amp;", f);
    else if (*s == '<')
      fputs("&lt;", f);
    else if (*s == '>')
      fputs("&gt;", f);
    else if (*s == '"')
      fputs("&quot;", f);
    else
      putc((unsigned char)*s < 0x20 ? '?' : *s, f);
  }
}

static int close_report(FILE *f, const char *path) {
  const int bad = ferror(f);
  if (fclose(f) || bad) return cli_error("%s: cannot write: %s", path, strerror(errno));
  return CLI_FINE;
}

int report_junit(const char *path, const char *suite, const junit_case *cases, size_t n) {
  FILE *f = fopen(path, "w");
  if (!f) return cli_error("%s: cannot create: %s", path, strerror(errno));
  size_t failures = 0;
  for (size_t i = 0; i < n; i++) failures += cases[i].failure != NULL;
  fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"", f);
  escaped(f, suite);
  fprintf(f, "\" tests=\"%zu\" failures=\"%zu\">\n", n, failures);
  for (size_t i = 0; i < n; i++) {
    fputs("  <testcase name=\"", f);
    escaped(f, cases[i].name);
    if (cases[i].failure) {
      fputs("\"><failure message=\"", f);
      escaped(f, cases[i].failure);
      fputs("\"/></testcase>\n", f);
    } else
      fputs("\"/>\n", f);
  }
  fputs("</testsuite>\n", f);
  return close_report(f, path);
}

/* ---- HTML */

static const char style[] =
    "<style>body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:60em;padding:0 "
    "1em;color:#1c2330}h1{font-size:1.4em}h2{font-size:1.1em;"
    "margin-top:2em}table{border-collapse:collapse}td,th{padding:.2em .7em;text-align:right;border-bottom:1px solid #dde2ea}th{font-weight:600}"
    ".good{color:#14713d}.bad{color:#a8201a}svg{max-width:100%;height:auto}code{background:#f1f3f6;padding:.1em .3em}</style>";

static double shade(double v, double most) { return v > 0 ? 0.15 + 0.85 * log2(1 + v) / log2(1 + most) : 0; }

static void heat_map(FILE *f, const mx_difference *d) {
  uint32_t most = 1;
  for (int r = 0; r < MX_DIFF_ROWS; r++)
    for (int c = 0; c < MX_DIFF_COLS; c++) most = d->map[r][c] > most ? d->map[r][c] : most;
  fputs("<h2>Where: elements that differ over the matrix</h2><svg role=\"img\" aria-label=\"heat map of mismatches\" viewBox=\"0 0 514 514\" "
        "width=\"514\">"
        "<rect x=\"0\" y=\"0\" width=\"514\" height=\"514\" fill=\"#f7f8fa\" stroke=\"#c7ceda\"/>",
        f);
  for (int r = 0; r < MX_DIFF_ROWS; r++)
    for (int c = 0; c < MX_DIFF_COLS; c++)
      if (d->map[r][c])
        fprintf(f, "<rect x=\"%d\" y=\"%d\" width=\"8\" height=\"8\" fill=\"#a8201a\" fill-opacity=\"%.2f\"><title>%u</title></rect>",
                1 + 8 * c, 1 + 8 * r, shade(d->map[r][c], most), d->map[r][c]);
  fputs("</svg>", f);
}

static void bars(FILE *f, const char *title, const uint64_t *v, int n, const char *(*label)(char *, int)) {
  uint64_t most = 1;
  for (int i = 0; i < n; i++) most = v[i] > most ? v[i] : most;
  const int wide = n > 40 ? 4 : 28;
  fprintf(f, "<h2>%s</h2><svg role=\"img\" viewBox=\"0 0 %d 150\" width=\"%d\">", title, n * wide + 10, n * wide + 10);
  for (int i = 0; i < n; i++) {
    const double h = v[i] ? 4 + 106.0 * (double)v[i] / (double)most : 0;
    char text[32];
    fprintf(f, "<rect x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%.1f\" fill=\"#3763a8\"><title>%s: %" PRIu64 "</title></rect>", 5 + i * wide,
            120 - h, wide - 1, h, label(text, i), v[i]);
    if (wide > 4)
      fprintf(f, "<text x=\"%d\" y=\"138\" font-size=\"9\" text-anchor=\"middle\" fill=\"#445\">%s</text>", 5 + i * wide + wide / 2,
              label(text, i));
  }
  fputs("</svg>", f);
}

static const char *plain(char *out, int i) {
  snprintf(out, 32, "%d", i);
  return out;
}
static const char *order(char *out, int i) {
  snprintf(out, 32, i == 15 ? "0" : "2^-%d", 2 * i + 2);
  return out;
}
static const char *steps(char *out, int i) {
  snprintf(out, 32, "%+d", i - 8);
  return out;
}

static void confusion(FILE *f, const mx_difference *d) {
  uint64_t most = 1;
  for (int a = 0; a < 16; a++)
    for (int b = 0; b < 16; b++) most = d->pairs[a][b] > most ? d->pairs[a][b] : most;
  fputs("<h2>Codes: expected (down) against actual (across)</h2><svg role=\"img\" aria-label=\"code confusion\" viewBox=\"0 0 440 440\" "
        "width=\"440\">",
        f);
  for (int a = 0; a < 16; a++) {
    fprintf(f,
            "<text x=\"12\" y=\"%d\" font-size=\"12\" text-anchor=\"middle\">%X</text><text x=\"%d\" y=\"16\" font-size=\"12\" "
            "text-anchor=\"middle\">%X</text>",
            42 + 26 * a, 38 + 26 * a, (unsigned)a, (unsigned)a);
    for (int b = 0; b < 16; b++)
      fprintf(f, "<rect x=\"%d\" y=\"%d\" width=\"25\" height=\"25\" fill=\"%s\" fill-opacity=\"%.2f\"><title>%" PRIu64 "</title></rect>",
              25 + 26 * b, 25 + 26 * a, d->pairs[a][b] ? "#a8201a" : "#e8ebf0",
              d->pairs[a][b] ? shade((double)d->pairs[a][b], (double)most) : 1, d->pairs[a][b]);
  }
  fputs("</svg>", f);
}

/* The quotient between the values around it. */
static void number_line(FILE *f, const mx_diff_example *e, const mx_spec *spec) {
  const mx_format *format = mx_elem_format(spec->elem);
  const double q = fabs(e->quotient), most = mx_format_max(format), shown = q < most ? q : most;
  if (!isfinite(q) || format->bits > 8) return;
  const double left = shown * 0.6, right = fmax(shown * 1.5, mx_format_min(format) * 2), width = right - left;
  fputs("<svg role=\"img\" aria-label=\"the quotient on the number line\" viewBox=\"0 0 640 70\" width=\"640\"><line x1=\"10\" y1=\"40\" "
        "x2=\"630\" y2=\"40\" stroke=\"#445\"/>",
        f);
  for (unsigned c = 0; c < 1u << (format->bits - format->sign_bits); c++) {
    const double v = mx_decode(format, c);
    if (!(v >= left && v <= right)) continue;
    const double x = 10 + 620 * (v - left) / width;
    fprintf(f,
            "<line x1=\"%.1f\" y1=\"32\" x2=\"%.1f\" y2=\"48\" stroke=\"#445\"/><text x=\"%.1f\" y=\"64\" font-size=\"11\" "
            "text-anchor=\"middle\">%g</text>",
            x, x, x, v);
  }
  const double x = 10 + 620 * (shown - left) / width;
  fprintf(f,
          "<circle cx=\"%.1f\" cy=\"40\" r=\"5\" fill=\"#a8201a\"/><text x=\"%.1f\" y=\"22\" font-size=\"11\" text-anchor=\"middle\">|x| / "
          "scale = %.9g</text></svg>",
          x,
          x < 90    ? 90.0
          : x > 550 ? 550.0
                    : x,
          q);
}

static void example(FILE *f, const char *name, const mx_diff_example *e, const mx_spec *spec) {
  uint32_t bits;
  memcpy(&bits, &e->x, sizeof bits);
  fprintf(f,
          "<h3>%s: row %zu, column %zu</h3><p>x = %.9g (<code>0x%08" PRIX32
          "</code>), block amax %.9g. Expected code <code>%X</code> under scale <code>%02X</code>, value %.9g; actual <code>%X</code> under "
          "<code>%02X</code>, value %.9g.</p>",
          name, e->row, e->col, (double)e->x, bits, (double)e->amax, e->code_a, e->scale_a, e->value_a, e->code_b, e->scale_b, e->value_b);
  number_line(f, e, spec);
}

int report_html(const char *path, const char *a, const char *b, const mx_difference *d, const mx_spec *spec, const char *verdict) {
  FILE *f = fopen(path, "w");
  if (!f) return cli_error("%s: cannot create: %s", path, strerror(errno));
  char keys[4096];
  mx_spec_print(keys, sizeof keys, spec, 0);
  fprintf(f,
          "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>mxgold "
          "diff</title>%s</head><body><h1>",
          style);
  escaped(f, a);
  fputs(" against ", f);
  escaped(f, b);
  fprintf(f, ": <span class=\"%s\">%s</span></h1>", d->equal ? "good" : "bad", d->equal ? "equal" : "not equal");
  if (*verdict) {
    fputs("<p>", f);
    escaped(f, verdict);
    fputs("</p>", f);
  }
  fputs("<p>Expected under <code>", f);
  escaped(f, *keys ? keys : "the default keys");
  fputs("</code></p><table><tr><th></th><th>compared</th><th>differ</th></tr>", f);
  fprintf(f,
          "<tr><td>codes</td><td>%" PRIu64 "</td><td>%" PRIu64 "</td></tr><tr><td>scales</td><td>%" PRIu64 "</td><td>%" PRIu64
          "</td></tr><tr><td>values</td><td>%" PRIu64 "</td><td>%" PRIu64 "</td></tr><tr><td>tensor scale</td><td></td><td>%" PRIu64
          "</td></tr></table>",
          d->n_codes, d->codes, d->n_scales, d->scales, d->n_values, d->values, d->tensor_scales);
  if (d->n_patterns) fputs("<h2>What the differences have in common</h2><ul>", f);
  for (int i = 0; i < d->n_patterns; i++) {
    fputs("<li>", f);
    escaped(f, d->patterns[i]);
    fputs("</li>", f);
  }
  if (d->n_patterns) fputs("</ul>", f);
  if (d->codes) {
    fputs("<h2>Examples</h2>", f);
    example(f, "First", &d->first, spec);
    example(f, "Worst", &d->worst, spec);
    example(f, "Smallest", &d->smallest, spec);
    heat_map(f, d);
    bars(f, "Distance of the quotient to the nearest tie", d->ties, 16, order);
    confusion(f, d);
    size_t br, bc;
    mx_spec_block(spec, 1, 32, &br, &bc);
    bars(f, "Position in the block", d->by_position, br * bc < 128 ? (int)(br * bc) : 128, plain);
  }
  if (d->scales) bars(f, "Scale codes: actual less expected (ends gather the rest)", d->scale_steps, 17, steps);
  fputs("</body></html>\n", f);
  return close_report(f, path);
}
