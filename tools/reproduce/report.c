/* Writes the page in Markdown: rows with what is stated, what is found, and whether they agree. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reproduce.h"

static char *text;
static size_t n_text;
static FILE *to;
static int in_table;
static unsigned agreed, differed, moved;
static char differences[16384];

static FILE *out(void) {
  if (!to) to = open_memstream(&text, &n_text);
  if (!to) abort();
  return to;
}

static char heading[200];

void section(const char *title, const char *about) {
  snprintf(heading, sizeof heading, "%s", title);
  fprintf(out(), "\n## %s\n\n%s\n", title, about);
  in_table = 0;
}

void remark(const char *about) {
  fprintf(out(), "\n%s\n", about);
  in_table = 0;
}

static void row(const char *what, const char *stated, const char *ours, const char *verdict) {
  if (!in_table) fputs("\n| | stated | here | |\n|---|---|---|---|\n", out());
  in_table = 1;
  fprintf(out(), "| %s | %s | %s | %s |\n", what, stated, ours, verdict);
}

static void count(int agrees, const char *what, const char *stated, const char *ours) {
  agreed += (unsigned)agrees;
  differed += (unsigned)!agrees;
  const size_t n = strlen(differences);
  if (!agrees) snprintf(differences + n, sizeof differences - n, "- %s: %s: %s stated, %s here\n", heading, what, stated, ours);
}

/* What is stated is one sample more: with 95 % it lies within so many standard deviations of the mean of n (Student's t, times sqrt(1 + 1 / n)). */
static double reach(int n) {
  static const double t[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131};
  const int most = sizeof t / sizeof *t;
  return n < 2 ? 0 : (n - 2 < most ? t[n - 2] : t[most - 1]) * sqrt(1 + 1.0 / n);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
void sampled(const char *what, double stated, double ours, double spread, int n, double tolerance, const char *format) {
  char a[64], b[64], c[160], verdict[160], off[64] = "";
  snprintf(a, sizeof a, format, stated);
  snprintf(b, sizeof b, format, ours);
  const double by = ours - stated, interval = reach(n) * spread;
  const int within = fabs(by) <= tolerance, sampling = fabs(by) <= interval, wild = spread > 20 * tolerance;
  if (interval > 0) snprintf(off, sizeof off, ": %+.2g, samples +-%.2g", by, interval);
  snprintf(verdict, sizeof verdict, "%s%s",
           wild       ? "one sample decides"
           : within   ? "agrees"
           : sampling ? "agrees within sampling"
                      : "**differs**",
           wild || !within ? off : "");
  row(what, a, b, verdict);
  snprintf(c, sizeof c, "%s%s%s%s", b, *off ? " (" : "", *off ? off + 2 : "", *off ? ")" : "");
  if (wild)
    moved++;
  else
    count(within || sampling, what, a, c);
}

void figure(const char *what, double stated, double ours, double tolerance, const char *format) {
  sampled(what, stated, ours, 0, 0, tolerance, format);
}

void sample_figure(const char *what, double stated, double ours, double tolerance, double least, double mean, double most, const char *format) {
  char a[64] = "", b[64], l[64], m[64], h[64], verdict[240];
  const int agrees = fabs(ours - stated) <= tolerance, within = stated >= least - tolerance && stated <= most + tolerance;
  if (stated != 0) snprintf(a, sizeof a, format, stated);
  snprintf(b, sizeof b, format, ours);
  snprintf(l, sizeof l, format, least);
  snprintf(m, sizeof m, format, mean);
  snprintf(h, sizeof h, format, most);
  snprintf(verdict, sizeof verdict, "%s%sother samples %s, %s, %s",
           stated == 0 ? ""
           : agrees    ? "agrees; "
                       : "**differs**; ",
           stated == 0 || within ? "" : "outside of ", l, m, h);
  row(what, a, b, verdict);
  if (stated != 0) count(agrees, what, a, b);
}

void ours_alone(const char *what, double ours, const char *format) {
  char b[64];
  snprintf(b, sizeof b, format, ours);
  row(what, "", b, "");
}
#pragma GCC diagnostic pop

void exactly(const char *what, const char *stated, const char *ours) {
  const int same = !strcmp(stated, ours);
  row(what, stated, ours, same ? "agrees" : "**differs**");
  count(same, what, stated, ours);
}

/* What a reader would look for in vain. */
static void print_rest(void) {
  section(
      "What is not here",
      "What the training ablations are for. The Jacobian of a whole block and the derivative with respect to g [1.3]: stated for a smooth "
      "stand-in of rounding,\n"
      "y + .1 sin(2 pi y), in which no quantiser takes part, and checked by finite differences [T15, T16]. The clips and the mask of Q' "
      "[1.5], which act inside a\n"
      "backward pass [T17]. StableSPAM's two steps and the sequence of loss scales [1.10, T21, T22], the score [1.11, T24]: an optimiser's and "
      "a search's numbers, of\n"
      "no format. The noise at which training stalls [4.1]: the root of two given numbers. Q-Ramping [4.8]: a formula without an example. "
      "The pilot [7].\n"
      "Numbers that others measured by training or on tensors that are not public: tokens to a target and throughput [2.2], the figures of "
      "[3.2], losses and\n"
      "benchmarks [4.3].\n"
      "Encoders of others that are known to be wrong [5.1]: the right codes are above.");
}

int report_print(void) {
  print_rest();
  if (fclose(out())) return 1;
  printf("# Findings: the papers' tensor tables, computed again\n\nWritten by `make reproduce-tensor`; do not edit. Every figure is the same "
         "to the bit on any machine.\n"
         "Sections and stated values are those of the collection of techniques that this project was built from (its sections are named in "
         "brackets).\n"
         "SQNR is in dB. Sampled figures are means over seeds of the stated shape; where one is not the stated figure, the difference is given "
         "beside\n"
         "the interval in which one more sample lies with 95 %%, by the spread over our seeds: what is stated is one sample.\n\n"
         "%u of %u stated figures agree%s",
         agreed, agreed + differed, moved ? "; " : ".");
  if (moved) printf("%u more are of samples too wild to compare.", moved);
  puts(differed ? " These do not:\n" : "");
  if (differed) fputs(differences, stdout);
  fputs(text, stdout);
  free(text);
  return 0;
}
