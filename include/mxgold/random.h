/** Computes random bits as a pure function of (seed, stream, index): Philox4x32-10. SPEC section 6. */
#ifndef MXGOLD_RANDOM_H
#define MXGOLD_RANDOM_H

#include <stdint.h>

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

enum { MX_STREAM_ELEMENT = 0, MX_STREAM_SCALE = 1, MX_STREAM_SIGN = 2, MX_STREAM_DATA = 3, MX_STREAM_REPEAT = 4, MX_STREAM_TRAIN = 5 };

/** Word `index` of a stream: word index % 4 of Philox with key = seed, counter = (index/4 low, index/4 high, stream, 0). Threads: reentrant.
 *  Source: Salmon et al., SC'11; Random123.  Oracle: Random123's known answers, ref_random. */
uint32_t mx_random(uint64_t seed, uint32_t stream, uint64_t index);
/** One step of gfx950's v_prng_b32: (s << 1) ^ (s >> 31 ? 197 : 0). Source: CDNA4 ISA. */
uint32_t mx_random_lfsr(uint32_t state);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
