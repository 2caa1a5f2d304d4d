/* Markdown: rows with what is stated, what is found, and whether they agree. */
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

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
void sampled(const char *what, double stated, double ours, double spread, double tolerance, const char *format) {
  char a[64], b[64], c[96], verdict[64];
  snprintf(a, sizeof a, format, stated);
  snprintf(b, sizeof b, format, ours);
  const double off = fabs(ours - stated);
  const int within = off <= tolerance, sampling = off <= 2 * spread, wild = spread > 20 * tolerance;
  if (spread > tolerance / 2)
    snprintf(c, sizeof c, "%s (sd %.2g)", b, spread);
  else
    snprintf(c, sizeof c, "%s", b);
  snprintf(verdict, sizeof verdict, "%s",
           wild       ? "one sample decides"
           : within   ? "agrees"
           : sampling ? "agrees within sampling"
                      : "**differs**");
  row(what, a, c, verdict);
  if (wild)
    moved++;
  else
    count(within || sampling, what, a, b);
}

void figure(const char *what, double stated, double ours, double tolerance, const char *format) {
  sampled(what, stated, ours, 0, tolerance, format);
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

int report_print(void) {
  if (fclose(out())) return 1;
  printf("# Findings: the papers' tensor tables, computed again\n\nWritten by `make reproduce-tensor`; do not edit. Every figure is the same "
         "to the bit on any machine.\n"
         "Sections and stated values are those of the collection of techniques that this project was built from (its sections are named in "
         "brackets).\n"
         "SQNR is in dB; sampled figures are means over seeds of the stated shape, with the standard deviation over seeds where it matters.\n\n"
         "%u of %u stated figures agree; %u more are of samples too wild to compare.%s\n",
         agreed, agreed + differed, moved, differed ? " These do not:\n" : "");
  if (differed) printf("\n%s", differences);
  fputs(text, stdout);
  free(text);
  return 0;
}
