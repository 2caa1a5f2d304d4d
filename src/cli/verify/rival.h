/* Declares what else would explain the bytes that identify was given, and which vectors tell. */
#ifndef CLI_VERIFY_RIVAL_H
#define CLI_VERIFY_RIVAL_H

#include "mxgold/mxgold.h"

enum { RIVAL_TEXT = 2 * MX_FAULT_TEXT };

typedef struct rival {
  const char *preset; /* of the other explanation, with the faults that `fault` lists; NULL: there is none */
  mx_spec spec;       /* the preset with the keys that the other explanation has set */
  char fault[RIVAL_TEXT], words[RIVAL_TEXT];
  char gen[128]; /* the mxgold gen command of inputs on which the two differ; "": none of the suites tells them apart */
} rival;

/** The explanation that is nearly as likely as the answer and gives other bytes of other data. Runs both on some suites.
 *  Returns MX_OK or MX_ERR_NOMEM. Threads: reentrant. */
mx_status rival_of(rival *out, const mx_identity *id);

#endif
