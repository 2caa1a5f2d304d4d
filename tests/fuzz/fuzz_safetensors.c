/* Feeds any bytes to the .safetensors reader, which refuses with a line of text, or gives arrays that tile what follows the header. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) { return fuzz_reader(data, n_bytes, mxi_io_parse_safetensors); }
