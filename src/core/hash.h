/* Declares one step of a hash that stays inside a process: the same on every machine, of no fixed quality. Digests that leave it are XXH3 or SHA-256. */
#ifndef MX_CORE_HASH_H
#define MX_CORE_HASH_H

#include <stdint.h>

/** Returns the hash of what was hashed before and one more value. */
static inline uint64_t mxi_hash_with(uint64_t before, uint64_t value) {
  before = (before ^ value) * UINT64_C(0x9E3779B97F4A7C15);
  return before ^ before >> 29;
}

#endif
