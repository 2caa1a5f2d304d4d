/* Declares where a call takes its working memory from: the caller's workspace, or the heap if there is none. */
#ifndef MX_CORE_ROOM_H
#define MX_CORE_ROOM_H

#include "mxgold/workspace.h"

/** At least n uninitialised bytes, aligned to a cache line; NULL if there is no memory. Without a workspace (NULL) they come from the heap. */
void *mxi_room_take(mx_workspace *workspace, size_t n);
/** Gives p back to where it came from; does nothing if p is NULL. */
void mxi_room_give(mx_workspace *workspace, void *p);

#endif
