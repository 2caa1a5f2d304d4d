/* What a document is made of: for the printers alone. */
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
  int failed;
};

enum { MAX_COLUMNS = 32 };

#endif
