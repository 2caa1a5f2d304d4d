/* Feeds any bytes to the .npy reader, which refuses with a line of text, or gives an array that lies within them. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) { return fuzz_reader(data, n_bytes, mxi_io_parse_npy); }
