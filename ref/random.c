/* Draws random words by SPEC 6: Philox4x32-10 of Salmon, Moraes, Dror and Shaw (SC'11), and gfx950's shift register. */
#include "ref.h"

uint32_t ref_random(uint64_t seed, uint32_t stream, uint64_t index) {
  uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
  uint32_t c[4] = {(uint32_t)(index / 4), (uint32_t)(index / 4 >> 32), stream, 0};
  for (int round = 0; round < 10; round++) {
    uint64_t p0 = UINT64_C(0xD2511F53) * c[0], p1 = UINT64_C(0xCD9E8D57) * c[2];
    uint32_t next[4] = {(uint32_t)(p1 >> 32) ^ c[1] ^ key[0], (uint32_t)p1, (uint32_t)(p0 >> 32) ^ c[3] ^ key[1], (uint32_t)p0};
    for (int i = 0; i < 4; i++) c[i] = next[i];
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return c[index % 4];
}

uint32_t ref_random_lfsr(uint32_t state) { return state << 1 ^ (state >> 31 ? 197 : 0); }
