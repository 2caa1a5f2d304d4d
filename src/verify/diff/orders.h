/* Declares two matrices that hold the same in another order: of rows, columns, or tiles. Found by hashes of rows, columns and tiles; what is said
 * holds for every cell. */
#ifndef MX_VERIFY_DIFF_ORDERS_H
#define MX_VERIFY_DIFF_ORDERS_H

#include <stddef.h>
#include <stdint.h>

#include "core/shortage.h"

typedef struct order_source {
  size_t rows, cols, cell; /* bytes of a cell: 1 or 4 */
  /* The `cols` cells of a row of A (seen 0) or of B (1). `room` has as many bytes as they, and is used if they do not lie side by side. */
  const uint8_t *(*row)(void *self, int seen, size_t row, uint8_t *room);
  void *self;
  shortage *lack; /* of the call: where memory runs out, it is noted there */
} order_source;

/** Is B A in another order? Then says what is in which order, in words that follow "with": "the rows in reverse order". Returns 0 if it is not,
 *  if the cells are too much alike to tell, or if memory ran out. */
int mxi_order_find(char *words, size_t size, const order_source *s);

#endif
