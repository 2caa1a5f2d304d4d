/* Declares whether there are tiles of AMX, and whether this process may use them. */
#ifndef MX_KERNELS_TILE_STATE_H
#define MX_KERNELS_TILE_STATE_H

/** The processor has tiles and int8 products of them, and the operating system keeps their state. Asks each time: mx_isa_host() keeps the answer. */
int mxi_tiles_host(void);
/** Linux lets a process use tiles once it has asked, which makes its signal frames larger: asked at the first product that would. 0: refused. Only
 *  where mx_isa_host() says AMX. */
int mxi_tiles_permitted(void);

#endif
