/* Declares the search for faults over one preset, in a view of a sample. */
#ifndef MX_VERIFY_FAULT_SEARCH_EXPLAIN_H
#define MX_VERIFY_FAULT_SEARCH_EXPLAIN_H

#include "verify/fault/search/answers.h"
#include "verify/fault/search/bases.h"

/* How far a search goes for two faults of one side: not at all; behind the one that mends most; behind two of them, where faults that move things count
 * as well. */
typedef enum depth { DEPTH_ONE, DEPTH_LIKELY, DEPTH_ALL } depth;

/** Offers to h what explains the view beside its faults: a second fault, or the first one. Scales and elements are searched separately. cost: the bits of
 *  the view's faults; held: those that speak for them, 0 where none were counted. */
void mxi_explain(hunt *h, view *v, const base *b, double cost, uint64_t held, depth deeper);
/** The same of one fault, in a sample in which something was put back. */
void mxi_explain_one(hunt *h, view *v, const base *b);
/** What is moved alone: of codes and scales that are both wrong it may be the plainer answer. */
void mxi_explain_moved(hunt *h, const base *b, view *v);
/** Scales that stand in a layout or at another pitch, all of them or those of some tiles, beside elements that are right. */
void mxi_explain_scales_places(hunt *h, const base *b);
/** Of an answer that is not sure: the numbers between which the one of its fault lies, into least and most. */
void mxi_explain_number(blame *out, const hunt *h);
/** Faults of stages [first, last], of the input up to the tensor scale, each of which gives the rest of the search another start. */
void mxi_explain_early(hunt *h, const base *b, view *plain, int first, int last);

#endif
