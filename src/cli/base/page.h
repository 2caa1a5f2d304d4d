/* Declares HTML pages that need no other file: how they begin and end, text in them, and charts as gnuplot writes them. */
#ifndef CLI_BASE_PAGE_H
#define CLI_BASE_PAGE_H

#include <stdio.h>

/** Print s as text of HTML or XML: the characters of markup as entities, control bytes and bytes that are no UTF-8 as question marks. */
void page_text(FILE *f, const char *s);
/** Head, heading and the verdict below it. */
void page_begin(FILE *f, const char *title, const char *verdict);
/** What makes the tables sort, and the end. */
void page_end(FILE *f);
/** gnuplot's terminal for a chart of a page; its lines are the elements NAME_plot_1, NAME_plot_2, ... */
void page_terminal(FILE *f, const char *name, int width, int height);
/** The next document within what gnuplot wrote, NULL when there are no more. It is cut out of *at. */
char *page_svg(char **at);

#endif
