/* Says how much memory there is, so that what cannot fit is refused where it would otherwise be ended by the system, without a word. */
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "train/models/model.h"

/* The limit of a control group; SIZE_MAX without one. */
static size_t group_limit(const char *path) {
  unsigned long long bytes;
  FILE *f = fopen(path, "r");
  const int found = f && fscanf(f, "%llu", &bytes) == 1;
  if (f) fclose(f);
  return found && bytes < SIZE_MAX ? (size_t)bytes : SIZE_MAX;
}

size_t mxi_memory_of_machine(void) {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  size_t most = pages > 0 && page > 0 ? (size_t)pages * (size_t)page : SIZE_MAX;
  static const char *const limits[] = {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"};
  for (int i = 0; i < 2; i++) {
    const size_t limit = group_limit(limits[i]);
    most = limit < most ? limit : most;
  }
  return most;
}
