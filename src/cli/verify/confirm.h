/* Declares the test of an answer on a launch of the kernel that it was not found from. */
#ifndef CLI_VERIFY_CONFIRM_H
#define CLI_VERIFY_CONFIRM_H

#include "cli/verify/expect.h"
#include "cli/verify/find.h"

/* What became of an answer on another launch. The zero struct: it was not run on one. */
typedef struct held {
  const char *on; /* its file, or what else it is called; NULL: nothing was run, as there was no answer */
  int holds;
  int ordinary;      /* the answer was found from ordinary numbers alone, since with special ones there is none */
  char suite[64];    /* of the first byte that differs, "" if the file has one */
  char answer[2048]; /* which did not hold: the options of `mxgold quantize` that give it */
  unexpected got;
} held;

/** Can `other` confirm anything? Not with the input of the first launch, nor if its codes are all alike. Says so and returns CLI_TROUBLE. */
int confirm_allows(const samples *first, const samples *other, const char *on);
/** Run what id says on other, which is read as the first launch was. A spec or a fault with no wrong byte becomes confirmed; one with a wrong byte is no
 *  answer any more. Where there was no answer, nothing is run. Says what is wrong and returns CLI_TROUBLE. */
int confirm_answer(mx_identity *id, held *h, samples *other, const reading *how, const char *on, int threads);
/** An answer is none any more. */
void confirm_withdraw(mx_identity *id);

#endif
