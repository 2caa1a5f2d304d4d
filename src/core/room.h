/* Declares memory of a call: from the caller's workspace, or from the heap where there is none. */
#ifndef MX_CORE_ROOM_H
#define MX_CORE_ROOM_H

#include "mxgold/workspace.h"

/** At least n bytes on a line of the cache, not initialised; NULL: no memory. workspace NULL: the heap. */
void *mxi_room_take(mx_workspace *workspace, size_t n);
/** Give them back to where they came from. p NULL: nothing. */
void mxi_room_give(mx_workspace *workspace, void *p);

#endif
