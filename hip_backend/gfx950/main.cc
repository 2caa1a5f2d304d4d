/* Runs mxgold-gfx950, which finds what a gfx950 does where no document says so, and whether each of its instructions does what the emulator
 * says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hip_backend/gfx950/profile.h"

#ifndef MXH_COMMIT
#define MXH_COMMIT "unknown"
#define MXH_COMPILERS "unknown"
#endif

static const char usage[] =
    "usage: mxgold-gfx950 [--device hip|host] [--seed N] [-o DIR] [-v]    profile of the device: DIR/gfx950@DATE.json, .spec.json, .accum\n"
    "Exit 0: every rule is named and no bit of any instruction differs; 1: a rule has no name or a bit differs; 2: the device could not be "
    "profiled.\n";

int main(int argc, char **argv) {
  const char *kind = "hip", *folder = ".";
  uint64_t seed = 1;
  bool verbose = false;
  for (int i = 1; i < argc; i++) {
    const char *value = i + 1 < argc ? argv[i + 1] : nullptr;
    if (!strcmp(argv[i], "-v"))
      verbose = true;
    else if (!strcmp(argv[i], "--help"))
      return fputs(usage, stdout), 0;
    else if (value && !strcmp(argv[i], "--device"))
      kind = value, i++;
    else if (value && !strcmp(argv[i], "--seed"))
      seed = strtoull(value, nullptr, 10), i++;
    else if (value && !strcmp(argv[i], "-o"))
      folder = value, i++;
    else
      return fprintf(stderr, "mxgold-gfx950: %s: unknown option, or its value is missing; --help\n", argv[i]), 2;
  }
  char why[512];
  mxh_device *dev = mxh_open(kind, why, sizeof why);
  if (!dev) return printf("mxgold-gfx950: %s: SKIPPED, nothing was run on silicon\n", why), 0;
  const bool host = !strcmp(mxh_kind(dev), "host");
  if (!host && strncmp(mxh_arch(dev), "gfx950", 6))
    return printf("mxgold-gfx950: %s is %s, not gfx950: SKIPPED, nothing was run\n", mxh_name(dev), mxh_arch(dev)), mxh_close(dev), 0;
  const gfx950_rules suggested = gfx950_rules_default();
  gfx950_profile p;
  std::string said;
  struct timespec t0, t1;
  clock_gettime(CLOCK_MONOTONIC, &t0);
  if (!gfx950_profile_run(&p, dev, {host ? &suggested : nullptr, seed, false, 0, {}, {}, {}}, &said))
    return fprintf(stderr, "mxgold-gfx950: %s\n", said.c_str()), 2;
  clock_gettime(CLOCK_MONOTONIC, &t1);
  printf("device %s (%s), %s%s\n", mxh_name(dev), mxh_arch(dev), mxh_driver(dev),
         host ? ": the CPU host runtime imitates the suggested rules; this is not silicon" : "");
  gfx950_profile_print(p, verbose);
  for (const gfx950_held &h : p.held)
    if (h.differ || verbose)
      printf("  %-40s %8llu words %8llu differ  %s\n", h.instruction.c_str(), (unsigned long long)h.words, (unsigned long long)h.differ,
             h.first.c_str());
  printf("%zu instructions checked against these rules: %llu words, %llu differ; %.1f s\n", p.held.size(), (unsigned long long)p.words(),
         (unsigned long long)p.differ(), (double)(t1.tv_sec - t0.tv_sec) + (double)(t1.tv_nsec - t0.tv_nsec) * 1e-9);
  if (!gfx950_profile_write(p, folder, dev, MXH_COMMIT, MXH_COMPILERS, &said))
    return fprintf(stderr, "mxgold-gfx950: %s: cannot be written\n", said.c_str()), 2;
  printf("%s\n", said.c_str());
  mxh_close(dev);
  return !p.complete();
}
