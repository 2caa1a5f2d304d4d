/* Declares the search for a fault that lies behind another one which moves codes or scales: these are put back first. */
#ifndef MX_VERIFY_FAULT_SEARCH_BEHIND_H
#define MX_VERIFY_FAULT_SEARCH_BEHIND_H

#include "verify/fault/search/answers.h"
#include "verify/fault/search/bases.h"
#include "verify/fault/moved.h"

/* Searches for one more fault over the base in a view of a sample. */
typedef void explain_view(hunt *h, view *v, const base *b);
/** Offers to h what moves codes or scales, alone and with one fault before it. over: only this preset, or NULL. written: one fault in the rows before
 *  the last ones, where nothing was written in those, and no more: it is soon seen whether there are such rows. */
void mxi_search_behind(hunt *h, const char *over, explain_view *explain, int written);

#endif
