/* Declares whether there are AMX tiles, and whether this process may use them. */
#ifndef MX_KERNELS_TILE_STATE_H
#define MX_KERNELS_TILE_STATE_H

/** Whether the processor has tiles and int8 products of them, and the operating system saves their state. It asks each time; mx_isa_host()
 *  keeps the answer. */
int mxi_tiles_host(void);
/** Linux lets a process use tiles once it has asked, but its signal frames then become larger, so this is asked for only at the first
 *  product that would use them. 0: refused. Call it only if mx_isa_host() reports AMX. */
int mxi_tiles_permitted(void);

#endif
