/* Declares what the fuzz targets of readers share. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdlib.h>
#include <string.h>

#include "../../src/io/io.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

#define MUST(what)                                                                                                                             \
  do {                                                                                                                                         \
    if (!(what)) abort();                                                                                                                      \
  } while (0)

static int fuzz_reader(const uint8_t *data, size_t n_bytes, mx_status (*parse)(mx_file *, mx_error *)) {
  char path[] = "fuzz";
  mx_file f = {.path = path, .base = data, .n_bytes = n_bytes};
  mx_error err = {MX_OK, ""};
  mx_status s = parse(&f, &err);
  if (s) {
    MUST(err.status == s && *err.text && !strchr(err.text, '\n') && strstr(err.text, "fuzz: "));
  } else {
    uint64_t total = 0, sum = 0;
    for (size_t i = 0; i < f.n_arrays; i++) {
      const mx_array *a = &f.arrays[i];
      MUST(a->name && a->n_dims >= 0 && a->n_dims <= MX_MAX_DIMS && a->n_bytes == a->n_values * mx_dtype_bytes(a->dtype));
      MUST(a->data >= data && a->n_bytes <= n_bytes && a->data + a->n_bytes <= data + n_bytes);
      for (uint64_t k = 0; k < a->n_bytes; k++) sum += a->data[k]; /* the sanitizer looks at every byte */
      total += a->n_bytes;
      const mx_array *found;
      MUST(mx_file_find(&found, &f, a->name, &err) == MX_OK || !*a->name);
    }
    MUST(total <= n_bytes && (sum || !sum));
    for (size_t i = 0; i < f.n_meta; i++) MUST(f.meta[i].key && f.meta[i].value && mx_file_meta(&f, f.meta[i].key));
  }
  mxi_io_free_parsed(&f);
  /* Reads the header as that of an input of unknown length: a whole file states its own length. */
  mx_file g = {.path = path, .base = data, .n_bytes = n_bytes, .way = IO_HEAD, .open_ended = 1};
  const mx_status stated = parse(&g, &err);
  MUST(s || (!stated && g.n_bytes == n_bytes));
  MUST(stated || g.n_bytes <= INT64_MAX);
  mxi_io_free_parsed(&g);
  return 0;
}

#endif
