/* Declares digests of data that is written to a file. Internal to src/io/. */
#ifndef MX_IO_BASE_DIGEST_H
#define MX_IO_BASE_DIGEST_H

#include <xxhash.h>

void mxi_io_digest_text(char out[33], XXH128_hash_t hash);

#endif
