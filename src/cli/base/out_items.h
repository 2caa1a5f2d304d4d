/* Declares what a document is made of, for the printers alone. */
#ifndef CLI_BASE_OUT_ITEMS_H
#define CLI_BASE_OUT_ITEMS_H

#include "out.h"

typedef enum item_kind { PAIR, TABLE, ROW, OBJECT, END } item_kind;

typedef struct item {
  item_kind kind;
  char *key, *text, *json; /* text and json: PAIR only */
  int number;              /* aligned right */
  const char *colour;      /* of the text on a terminal; NULL: none */
} item;

struct out {
  item *items;
  size_t n, room;
  int failed, identifiers;
  const out_name *names; /* where identifiers, those that no rule makes of the key */
};

enum { MAX_COLUMNS = 32 };

typedef struct column {
  const char *key;
  int width, number; /* for printers that align: the widest cell, and whether every cell is a number */
} column;

/** The column of a key among *n columns, of which there may be `most`: a new one, as wide as its key, if there is none yet. `most` without room. */
size_t out_column(column *columns, size_t *n, size_t most, const char *key);
/** How many columns of a terminal a text takes: its bytes but for the continuation bytes of UTF-8. */
int out_width(const char *s);

#endif
