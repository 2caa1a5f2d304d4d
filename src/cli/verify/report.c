/* Writes reports as JUnit XML and HTML. Styles and drawings are inline: one file is all there is to keep. */
#include "report.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/base/page.h"

/* mx_text_begin() and mx_text_end() for the command line. */
static int begin(mx_text *t, const char *path) {
  mx_error err;
  return mx_text_begin(t, path, &err) ? cli_error("%s", err.text) : CLI_FINE;
}

static int end(mx_text *t) {
  mx_error err;
  return mx_text_end(t, &err) ? cli_error("%s", err.text) : CLI_FINE;
}

void report_fresh(const char *path) {
  struct stat is;
  if (!path || lstat(path, &is) || !S_ISREG(is.st_mode)) return;
  FILE *f = fopen(path, "r");
  const int first = f ? getc(f) : EOF;
  if (f) fclose(f);
  if (first == '<') unlink(path); /* a report, and not a file that was named by mistake */
}

int report_junit(const char *path, const char *suite, const junit_case *cases, size_t n) {
  mx_text t;
  if (begin(&t, path)) return CLI_TROUBLE;
  FILE *f = t.to;
  size_t failures = 0, skipped = 0;
  for (size_t i = 0; i < n; i++) {
    failures += cases[i].failure != NULL;
    skipped += cases[i].skipped;
  }
  fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"", f);
  page_text(f, suite);
  fprintf(f, "\" tests=\"%zu\" failures=\"%zu\" skipped=\"%zu\">\n", n, failures, skipped);
  for (size_t i = 0; i < n; i++) {
    fputs("  <testcase name=\"", f);
    page_text(f, cases[i].name);
    if (cases[i].failure) {
      fputs("\"><failure message=\"", f);
      page_text(f, cases[i].failure);
      fputs("\"/></testcase>\n", f);
    } else
      fputs(cases[i].skipped ? "\"><skipped/></testcase>\n" : "\"/>\n", f);
  }
  fputs("</testsuite>\n", f);
  return end(&t);
}

/* ---- HTML */

/* Colours of drawings are attributes, so that a drawing taken out of the page keeps them; in the dark the style overrides them. What would be too
 * small to read on a telephone scrolls by itself. */
static const char style[] =
    "<style>body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:60em;padding:0 "
    "1em;color:#1c2330}h1{font-size:1.4em}h2{font-size:1.1em;"
    "margin-top:2em}table{border-collapse:collapse}td,th{padding:.2em .7em;text-align:right;border-bottom:1px solid #dde2ea}th{font-weight:600}"
    ".good{color:#14713d}.bad{color:#a8201a}svg{max-width:100%;height:auto;display:block}.note{color:#667;font-size:.85em;margin:.2em 0 "
    "1em}td:first-child{text-align:left}code{background:#f1f3f6;padding:.1em .3em}.wide{overflow-x:auto}.wide svg{max-width:none}"
    ":root{color-scheme:light dark}@media (prefers-color-scheme:dark){body{color:#d5dae3;background:#15171a}td,th{border-color:#3a414b}"
    "code{background:#262b32}.note{color:#9aa3b0}.good{color:#4cc27c}.bad{color:#f0685c}svg [fill='#445'],svg "
    "[fill='#778']{fill:#b9c0cc}svg [stroke='#445']{stroke:#b9c0cc}svg [fill='#f7f8fa'],svg [fill='#eef0f4']{fill:#22262c}svg "
    "[fill='#d5dbe5']{fill:#3a414b}svg [stroke='#c7ceda']{stroke:#4a4f55}svg [fill='#a8201a']{fill:#f0685c}svg "
    "[stroke='#a8201a']{stroke:#f0685c}svg [fill='#3763a8']{fill:#6f9be0}}</style>";

static double shade(double v, double most) { return v > 0 ? 0.15 + 0.85 * log2(1 + v) / log2(1 + most) : 0; }

static void heat_map(FILE *f, const mx_difference *d, const mx_tensor *shape) {
  uint32_t most = 1;
  for (int r = 0; r < MX_DIFF_ROWS; r++)
    for (int c = 0; c < MX_DIFF_COLS; c++) most = d->map[r][c] > most ? d->map[r][c] : most;
  fprintf(f,
          "<h2>Where: elements that differ over the matrix</h2><svg role=\"img\" aria-label=\"heat map of mismatches\" viewBox=\"0 0 580 545\" "
          "width=\"580\"><g font-size=\"11\" fill=\"#445\"><text x=\"50\" y=\"14\">column 0</text><text x=\"562\" y=\"14\" "
          "text-anchor=\"end\">%zu</text><text x=\"44\" y=\"30\" text-anchor=\"end\">row 0</text><text x=\"44\" y=\"534\" "
          "text-anchor=\"end\">%zu</text></g><g transform=\"translate(49 20)\"><rect x=\"0\" y=\"0\" width=\"514\" height=\"514\" "
          "fill=\"#f7f8fa\" stroke=\"#c7ceda\"/>",
          shape->cols ? shape->cols - 1 : 0, shape->rows ? shape->rows - 1 : 0);
  for (int r = 0; r < MX_DIFF_ROWS; r++)
    for (int c = 0; c < MX_DIFF_COLS; c++)
      if (d->map[r][c])
        fprintf(f, "<rect x=\"%d\" y=\"%d\" width=\"8\" height=\"8\" fill=\"#a8201a\" fill-opacity=\"%.2f\"><title>%u</title></rect>",
                1 + 8 * c, 1 + 8 * r, shade(d->map[r][c], most), d->map[r][c]);
  fprintf(f, "</g></svg><p class=\"note\">The fullest cell has %" PRIu32 " of them.</p>", most);
}

static void bars(FILE *f, const char *title, const char *note, const uint64_t *v, int n, const char *(*label)(char *, int)) {
  uint64_t most = 1;
  for (int i = 0; i < n; i++) most = v[i] > most ? v[i] : most;
  const int wide = n > 40 ? 5 : n > 20 ? 24 : 40;
  fprintf(f,
          "<h2>%s</h2><div class=\"wide\"><svg role=\"img\" aria-label=\"%s\" viewBox=\"0 0 %d 150\" width=\"%d\"><line x1=\"0\" y1=\"120.5\" "
          "x2=\"%d\" y2=\"120.5\" "
          "stroke=\"#c7ceda\"/>",
          title, title, n * wide + 10, n * wide + 10, n * wide + 10);
  for (int i = 0; i < n; i++) {
    const double h = v[i] ? 3 + 100.0 * (double)v[i] / (double)most : 0;
    char text[32];
    fprintf(f, "<rect x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%.1f\" fill=\"#3763a8\"><title>%s: %" PRIu64 "</title></rect>", 5 + i * wide,
            120 - h, wide - 1, h, label(text, i), v[i]);
    if (wide > 5 || i % 8 == 0)
      fprintf(f, "<text x=\"%d\" y=\"138\" font-size=\"10\" text-anchor=\"middle\" fill=\"#445\">%s</text>", 5 + i * wide + wide / 2,
              label(text, i));
    if (v[i] && wide == 40)
      fprintf(f, "<text x=\"%d\" y=\"%.1f\" font-size=\"9\" text-anchor=\"middle\" fill=\"#778\">%" PRIu64 "</text>", 5 + i * wide + wide / 2,
              116 - h, v[i]);
  }
  fprintf(f, "</svg></div><p class=\"note\">%s</p>", note);
}

static const char *plain(char *out, int i) {
  snprintf(out, 32, "%d", i);
  return out;
}
static const char *order(char *out, int i) {
  snprintf(out, 32, i == 15 ? "tie" : "2^-%d", 2 * i + 2);
  return out;
}
static const char *steps(char *out, int i) {
  snprintf(out, 32, "%+d", i - 8);
  return out;
}

/* Counts of (expected, actual), n x n, labels from `first` on in hex. */
static void matrix(FILE *f, const char *title, const char *note, const uint64_t *v, int n, unsigned first, int step) {
  uint64_t most = 1;
  const int cell = n > 24 ? 14 : 26, side = n * cell + 40;
  for (int i = 0; i < n * n; i++) most = v[i] > most ? v[i] : most;
  fprintf(f,
          "<h2>%s</h2><div class=\"wide\"><svg role=\"img\" aria-label=\"%s\" viewBox=\"0 0 %d %d\" width=\"%d\"><g font-size=\"%d\" "
          "text-anchor=\"middle\" "
          "fill=\"#445\">",
          title, title, side, side, side, n > 24 ? 9 : 12);
  for (int i = 0; i < n; i++)
    fprintf(f, "<text x=\"16\" y=\"%d\">%X</text><text x=\"%d\" y=\"18\">%X</text>", 25 + cell * i + cell / 2 + 4, first + (unsigned)(i * step),
            30 + cell * i + cell / 2, first + (unsigned)(i * step));
  fputs("</g>", f);
  for (int a = 0; a < n; a++)
    for (int b = 0; b < n; b++) {
      const uint64_t c = v[a * n + b];
      fprintf(f,
              "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"%s\" fill-opacity=\"%.2f\"><title>0x%X to 0x%X: %" PRIu64
              "</title></rect>",
              30 + cell * b, 25 + cell * a, cell - 1, cell - 1,
              c        ? "#a8201a"
              : a == b ? "#d5dbe5"
                       : "#eef0f4",
              c ? shade((double)c, (double)most) : 1, first + (unsigned)(a * step), first + (unsigned)(b * step), c);
    }
  fprintf(f, "</svg></div><p class=\"note\">%s</p>", note);
}

/* Scale codes from the least to the largest that differ, in steps if they are many. */
static void scale_matrix(FILE *f, const mx_difference *d) {
  enum { MOST = 48 };
  int lo = 255, hi = 0;
  for (int a = 0; a < 256; a++)
    for (int b = 0; b < 256; b++)
      if (d->scale_pairs[a][b]) {
        lo = a < lo ? a : lo, lo = b < lo ? b : lo;
        hi = a > hi ? a : hi, hi = b > hi ? b : hi;
      }
  if (hi < lo) return;
  int step = 1;
  while ((hi - lo) / step >= MOST) step++;
  const int n = (hi - lo) / step + 1;
  uint64_t v[MOST * MOST] = {0};
  for (int a = lo; a <= hi; a++)
    for (int b = lo; b <= hi; b++) v[(a - lo) / step * n + (b - lo) / step] += d->scale_pairs[a][b];
  matrix(f, "Scale codes: expected (down) against actual (across)",
         step > 1 ? "Scales that differ; several codes share a cell." : "Scales that differ, in hex.", v, n, (unsigned)lo, step);
}

/* A block on two number lines: above, what the expected codes stand for, below, the actual ones; each element joins its value to both. */
static void number_lines(FILE *f, const report_block *k, const mx_spec *spec) {
  enum { WIDTH = 860, LEFT = 78, UP = 34, MIDDLE = 74, DOWN = 114 };
  const mx_format *format = mx_elem_format(spec->elem);
  double most = 0;
  for (size_t i = 0; i < k->n; i++) most = isfinite(k->x[i]) ? fmax(most, fabs((double)k->x[i])) : most;
  const double edge = fmin(fmax(mx_format_max(format) * fmax(k->scale_a, k->scale_b), most), 2 * most);
  if (!k->n || !(edge > 0) || !isfinite(edge) || format->bits > 8) return;
  const double per = (WIDTH - LEFT - 12) / edge;
  fprintf(f,
          "<div class=\"wide\"><svg role=\"img\" aria-label=\"the block on the number line\" viewBox=\"0 0 %d 146\" width=\"%d\"><g "
          "font-size=\"11\" "
          "fill=\"#445\"><text x=\"4\" y=\"%d\">expected</text><text x=\"4\" y=\"%d\">|x|</text><text x=\"4\" y=\"%d\">actual</text></g>",
          WIDTH, WIDTH, UP + 4, MIDDLE + 4, DOWN + 4);
  for (int side = 0; side < 2; side++) {
    const int y = side ? DOWN : UP;
    const double s = side ? k->scale_b : k->scale_a;
    double last = -100;
    fprintf(f, "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" stroke=\"#99a\"/>", LEFT, y, WIDTH - 8, y);
    for (unsigned c = 0; c < 1u << (format->bits - format->sign_bits); c++) {
      const double v = mx_decode(format, c) * s, x = LEFT + per * v;
      if (!(v >= 0) || !(v <= edge * 1.0001)) continue;
      fprintf(f, "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" stroke=\"#445\"/>", x, y - 5, x, y + 5);
      if (x - last < 46) continue;
      last = x;
      fprintf(f, "<text x=\"%.1f\" y=\"%d\" font-size=\"10\" text-anchor=\"middle\" fill=\"#445\">%.4g</text>", x, side ? y + 20 : y - 11, v);
    }
  }
  const uint32_t sign = format->sign_bits ? 1u << (format->bits - 1) : 0;
  for (int wrong = 0; wrong < 2; wrong++) /* what differs on top */
    for (size_t i = 0; i < k->n; i++) {
      const double va = mx_decode(format, k->code_a[i] & ~sign) * k->scale_a, vb = mx_decode(format, k->code_b[i] & ~sign) * k->scale_b;
      const int bad = k->code_a[i] != k->code_b[i] || va != vb;
      if (bad != wrong || !isfinite(k->x[i]) || !isfinite(va) || !isfinite(vb)) continue;
      const double x = LEFT + per * fabs((double)k->x[i]), xa = LEFT + per * va, xb = LEFT + per * fmin(vb, edge);
      const char *colour = va != vb ? "#a8201a" : bad ? "#c9862b" : "#9aa7bb";
      fprintf(
          f,
          "<path d=\"M%.1f %d L%.1f %d L%.1f %d\" fill=\"none\" stroke=\"%s\" stroke-opacity=\".7\"/><circle cx=\"%.1f\" cy=\"%d\" r=\"3.5\" "
          "fill=\"%s\"><title>%.9g: code 0x%X, %.9g; code 0x%X, %.9g</title></circle>",
          xa, UP, x, MIDDLE, xb, DOWN, colour, x, MIDDLE, colour, (double)k->x[i], k->code_a[i], va, k->code_b[i], vb);
    }
  fputs("</svg></div>", f);
}

static void example(FILE *f, const char *name, const mx_diff_example *e, const mx_spec *spec, const report_block *k) {
  uint32_t bits;
  memcpy(&bits, &e->x, sizeof bits);
  fprintf(f, "<h3>%s: row %zu, column %zu</h3><p>", name, e->row, e->col);
  if (!isnan(e->quotient))
    fprintf(f, "x = %.9g (<code>0x%08" PRIX32 "</code>), largest of its block %.9g, |x| over the scale %.9g, %.3g from a tie. ", (double)e->x,
            bits, (double)e->amax, fabs(e->quotient), e->tie);
  fprintf(
      f,
      "Expected code <code>0x%X</code> under scale <code>0x%02X</code>, value %.9g; actual <code>0x%X</code> under <code>0x%02X</code>, value "
      "%.9g.</p>",
      e->code_a, e->scale_a, e->value_a, e->code_b, e->scale_b, e->value_b);
  number_lines(f, k, spec);
}

int report_html(const char *path, const char *a, const char *b, const mx_difference *d, const mx_spec *spec, const char *verdict,
                const mx_tensor *shape, const report_block blocks[3]) {
  mx_text t;
  if (begin(&t, path)) return CLI_TROUBLE;
  FILE *f = t.to;
  char keys[4096];
  mx_spec_print(keys, sizeof keys, spec, 0);
  fprintf(f,
          "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>mxgold "
          "diff</title>%s</head><body><h1>",
          style);
  page_text(f, a);
  fputs(" against ", f);
  page_text(f, b);
  fprintf(f, ": <span class=\"%s\">%s</span></h1>", d->equal ? "good" : "bad", d->equal ? "equal" : "not equal");
  if (*verdict) {
    fputs("<p>", f);
    page_text(f, verdict);
    fputs("</p>", f);
  }
  fputs("<p>Expected under <code>", f);
  page_text(f, *keys ? keys : "the default keys");
  fputs("</code></p><table><tr><th></th><th>compared</th><th>differ</th></tr>", f);
  fprintf(f,
          "<tr><td>codes</td><td>%" PRIu64 "</td><td>%" PRIu64 "</td></tr><tr><td>scales</td><td>%" PRIu64 "</td><td>%" PRIu64
          "</td></tr><tr><td>dequantised values</td><td>%" PRIu64 "</td><td>%" PRIu64 "</td></tr><tr><td>tensor scale</td><td></td><td>%" PRIu64
          "</td></tr></table>",
          d->n_codes, d->codes, d->n_scales, d->scales, d->n_values, d->values, d->tensor_scales);
  if (d->n_patterns) fputs("<h2>What the differences have in common</h2><ul>", f);
  for (int i = 0; i < d->n_patterns; i++) {
    fputs("<li>", f);
    page_text(f, d->patterns[i]);
    fputs("</li>", f);
  }
  if (d->n_patterns) fputs("</ul>", f);
  if (d->codes) {
    fputs("<h2>Examples, each with its block</h2><p class=\"note\">Red: the values differ; amber: the codes alone; grey: the same.</p>", f);
    example(f, "First", &d->first, spec, &blocks[0]);
    example(f, "Worst", &d->worst, spec, &blocks[1]);
    example(f, "Smallest", &d->smallest, spec, &blocks[2]);
    heat_map(f, d, shape);
    uint64_t tied = 0;
    for (int i = 0; i < 16; i++) tied += d->ties[i];
    if (tied)
      bars(f, "Distance of the quotient to the nearest tie", "Elements that differ; a label is the least distance of its bar.", d->ties, 16,
           order);
    matrix(f, "Codes: expected (down) against actual (across)",
           mx_elem_format(spec->elem)->bits == 4 ? "Codes that differ, in hex." : "Codes that differ, by their upper four bits.",
           &d->pairs[0][0], 16, 0, 1);
    size_t br, bc;
    mx_spec_block(spec, 1, 32, &br, &bc);
    bars(f, "Position in the block", "Elements that differ.", d->by_position, br * bc < 128 ? (int)(br * bc) : 128, plain);
  }
  if (d->scales) {
    scale_matrix(f, d);
    bars(f, "Scale codes: actual less expected", "Scales that differ; the ends gather the rest.", d->scale_steps, 17, steps);
  }
  fputs("</body></html>\n", f);
  return end(&t);
}
