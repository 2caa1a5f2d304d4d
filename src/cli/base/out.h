/* Declares one structure for what a command prints: pairs, tables, nested objects. Printed as aligned text, or as one JSON object under --json.
 *
 *   out *o = out_new();
 *   out_text(o, "file", path);                     a pair
 *   out_table(o, "tensors");                       a table: rows of pairs, columns by key in the order they first come
 *   out_row(o); out_text(o, "name", ..); out_u64(o, "bytes", ..);
 *   out_end(o);
 *   return out_print(o, json);                     prints, frees, and says the error if memory ran out
 */
#ifndef CLI_BASE_OUT_H
#define CLI_BASE_OUT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct out out;

out *out_new(void);
void out_table(out *o, const char *key);
void out_row(out *o);
/** Pairs of their own under a key: {"key": {...}}, or an indented list. */
void out_object(out *o, const char *key);
/** Ends out_table() or out_object(). They do not nest. */
void out_end(out *o);

/** Keys of JSON become identifiers: "codes that differ" is codes_differ, "code A" is code_a. names, ended by a row of zeros, has those that the rule
 *  would make badly; NULL: none. It must outlive o. */
typedef struct out_name {
  const char *key, *identifier;
} out_name;
void out_identifiers(out *o, const out_name *names);

void out_text(out *o, const char *key, const char *value);
/** Texts under one key: an array in JSON; in text each under "key 1", "key 2". Nothing if there are none. */
void out_texts(out *o, const char *key, size_t n, const char *text, size_t stride, int json);
/** A value that is JSON already, for machines alone. */
void out_json(out *o, const char *key, const char *json);
void out_u64(out *o, const char *key, uint64_t value);
/** A code: 0x85 in text, as in reports, with at least so many digits; a number in JSON. */
void out_hex(out *o, const char *key, uint64_t value, int digits);
void out_i64(out *o, const char *key, int64_t value);
/** format is for the text; JSON gets all digits, and "nan", "inf", "-inf" as strings. */
void out_f64(out *o, const char *key, double value, const char *format);
/** For machines alone: JSON's number, null for NaN and Inf, so that a field has one type. */
void out_number(out *o, const char *key, double value);
/** out_number() under json, else out_f64(). */
void out_figure(out *o, const char *key, double value, const char *format, int json);
void out_bool(out *o, const char *key, int value);
/** The same for what a command was asked: on a terminal yes is green and no red (NO_COLOR and TERM=dumb are heeded). */
void out_answer(out *o, const char *key, int yes);
/** 2x3 in text, [2, 3] in JSON; a scalar is "scalar" and []. */
void out_shape(out *o, const char *key, const uint64_t *shape, int n_dims);
/** A share between 0 and 1: a bar in text, the number in JSON. */
void out_bar(out *o, const char *key, double share);

/** Print to standard output and free. Returns CLI_FINE or CLI_TROUBLE. NULL (out of memory) is allowed in every call. */
int out_print(out *o, int json);
/** The same as a Markdown page, tables under headings. */
int out_print_markdown(out *o, const char *title, const char *text);
/** The same as parts of an HTML page: tables, and lists of pairs. o stays. */
void out_html(const out *o, FILE *f);
/** One of its tables as CSV, of a document that was made for JSON: a line of names, then a line a row. */
int out_print_csv(out *o, const char *table);
void out_free(out *o);

#endif
