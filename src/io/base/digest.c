/* Prints an XXH3-128 digest as text, in the canonical (big-endian) form, which xxh128sum prints too. */
#include <stdio.h>

#include "io/base/digest.h"
#include "mxgold/file.h"

void mxi_io_digest_text(char out[33], XXH128_hash_t hash) {
  XXH128_canonical_t bytes;
  XXH128_canonicalFromHash(&bytes, hash);
  for (size_t i = 0; i < sizeof bytes.digest; i++) snprintf(out + 2 * i, 3, "%02x", bytes.digest[i]);
}

void mx_digest(char out[33], const void *data, size_t n_bytes) { mxi_io_digest_text(out, XXH3_128bits(data, n_bytes)); }
