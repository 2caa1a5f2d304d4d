/* Draws random words by Philox4x32-10 of Random123. */
#include "mxgold/random.h"

#include <Random123/philox.h>

uint32_t mx_random(uint64_t seed, uint32_t stream, uint64_t index) {
  const uint64_t block = index / 4;
  const philox4x32_ctr_t counter = {{(uint32_t)block, (uint32_t)(block >> 32), stream, 0}};
  const philox4x32_key_t key = {{(uint32_t)seed, (uint32_t)(seed >> 32)}};
  return philox4x32(counter, key).v[index % 4];
}

uint32_t mx_random_lfsr(uint32_t state) { return (state << 1) ^ (state >> 31 ? 197u : 0u); }
