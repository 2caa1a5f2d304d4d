/* mxgold-gfx950: what a gfx950 does where no document says it, and whether each of its instructions does what the emulator says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hip_backend/gfx950_profile.h"

#ifndef MXH_COMMIT
#define MXH_COMMIT "unknown"
#define MXH_COMPILERS "unknown"
#endif

static const char usage[] =
    "usage: mxgold-gfx950 [--device hip|host] [--seed N] [-o DIR]    profile of the device: DIR/gfx950@DATE.json, DIR/gfx950@DATE.spec.json\n"
    "       mxgold-gfx950 --rehearse N [--seed N] [-v]               N devices played by the CPU host runtime under hidden rules\n"
    "Exit 0: every rule is named and no bit of any instruction differs; 1: something is left; 2: trouble.\n";

static uint64_t state;
static unsigned below(unsigned n) {
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return (unsigned)(state * 2685821657736338717u >> 33) % n;
}

/* A device of its own: every rule by chance; its sums those of a candidate, or of parameters that are in no table. */
static gfx950_rules drawn(std::string *sums) {
  static const char *const rows[] = {"cdna4_like_cdna3",      "cdna4_like_cdna3_rz", "cdna4_block32",
                                     "cdna4_block32_evenodd", "cdna4_whole",         "cdna4_exact32"};
  gfx950_rules r = gfx950_rules_default();
  for (int i = 0; gfx950_rule_name(i, nullptr); i++) {
    int n = 0;
    while (gfx950_choice_name(i, n, nullptr)) n++;
    *gfx950_rule_of(&r, i) = (int)below((unsigned)n);
  }
  mx_mma_model m;
  for (;;) {
    char text[200];
    if (below(2))
      snprintf(text, sizeof text, "%s", rows[below(6)]);
    else if (below(2))
      snprintf(text, sizeof text,
               "fused:L=%d,F=%d,join=after,sum_bits=%d,c_bits=%d,c_drop=%d,join_cut=%s,split=%s,out_round=rne,under=keep,nan=quiet",
               8 << below(4), 22 + (int)below(8), 26 + (int)below(8), 24 + (int)below(4), below(2) ? 0 : 25 + (int)below(6),
               below(2) ? "rd" : "rz", below(2) ? "none" : "evenodd");
    else
      snprintf(text, sizeof text, "fused:L=%d,F=%d,align=%s,out_round=rne,under=keep,nan=quiet", 8 << below(5), 22 + (int)below(10),
               below(2) ? "rz" : "rd");
    if (mx_mma_model_find(&m, text, nullptr)) continue;
    r.accum = m.accum;
    *sums = text;
    return r;
  }
}

static int rehearse(int n, uint64_t seed, bool verbose) {
  char why[256];
  mxh_device *dev = mxh_open("host", why, sizeof why);
  if (!dev) return fprintf(stderr, "mxgold-gfx950: %s\n", why), 2;
  int recovered = 0;
  state = seed * 2 + 88172645463325251u;
  for (int i = 0; i < n; i++) {
    std::string sums, trouble;
    const gfx950_rules hidden = drawn(&sums);
    gfx950_profile p;
    if (!gfx950_profile_run(&p, dev, &hidden, seed + (uint64_t)i, &trouble)) return fprintf(stderr, "mxgold-gfx950: %s\n", trouble.c_str()), 2;
    /* Each hidden answer is among those found; where there are several, they give the same bits on this device, which `held` confirms. */
    int wrong = 0, shared = 0;
    gfx950_rules mine = hidden;
    for (int rule = 0; gfx950_rule_name(rule, nullptr); rule++) {
      const gfx950_answer &a = p.answers[(size_t)rule];
      bool among = false;
      for (int c : a.choices) among |= c == *gfx950_rule_of(&mine, rule);
      shared += a.choices.size() > 1;
      wrong += !among;
      if (!among)
        printf("  %s: hidden %s, found %s\n", a.rule.c_str(), gfx950_choice_name(rule, *gfx950_rule_of(&mine, rule), nullptr),
               a.choices.empty() ? "none" : gfx950_choice_name(rule, a.choices[0], nullptr));
    }
    const bool fine = !wrong && p.complete();
    recovered += fine;
    printf("device %2d: %s; %zu rules, %d wrong, %d with answers of the same bits; sums %s; held to the rest: %llu words, %llu differ\n", i + 1,
           fine ? "recovered" : "NOT RECOVERED", p.answers.size(), wrong, shared, p.sums[0].fits ? "found" : "NOT FOUND",
           (unsigned long long)p.words(), (unsigned long long)p.differ());
    if (verbose || !fine) {
      printf("  hidden sums %s\n  found       %s\n", sums.c_str(), p.sums[0].model.c_str());
      for (const gfx950_held &h : p.held)
        if (h.differ)
          printf("  %s: %llu of %llu differ, %s\n", h.instruction.c_str(), (unsigned long long)h.differ, (unsigned long long)h.words,
                 h.first.c_str());
    }
    fflush(stdout);
  }
  printf("hip-rehearse: %d of %d hidden rule sets recovered\n", recovered, n);
  mxh_close(dev);
  return recovered != n;
}

int main(int argc, char **argv) {
  const char *kind = "hip", *folder = ".";
  uint64_t seed = 1;
  int n = 0;
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
    else if (value && !strcmp(argv[i], "--rehearse"))
      n = atoi(value), i++;
    else if (value && !strcmp(argv[i], "-o"))
      folder = value, i++;
    else
      return fprintf(stderr, "mxgold-gfx950: %s: unknown option, or its value is missing; --help\n", argv[i]), 2;
  }
  if (n) return rehearse(n, seed, verbose);

  char why[512], date[32];
  mxh_device *dev = mxh_open(kind, why, sizeof why);
  if (!dev) return printf("mxgold-gfx950: %s: SKIPPED, nothing was run on silicon\n", why), 0;
  const bool host = !strcmp(mxh_kind(dev), "host");
  if (!host && strncmp(mxh_arch(dev), "gfx950", 6))
    return printf("mxgold-gfx950: %s is %s, not gfx950: SKIPPED, nothing was run\n", mxh_name(dev), mxh_arch(dev)), mxh_close(dev), 0;
  const time_t t = time(nullptr);
  strftime(date, sizeof date, "%Y-%m-%d", gmtime(&t));
  const gfx950_rules suggested = gfx950_rules_default();
  gfx950_profile p;
  std::string trouble;
  struct timespec t0, t1;
  clock_gettime(CLOCK_MONOTONIC, &t0);
  if (!gfx950_profile_run(&p, dev, host ? &suggested : nullptr, seed, &trouble))
    return fprintf(stderr, "mxgold-gfx950: %s\n", trouble.c_str()), 2;
  clock_gettime(CLOCK_MONOTONIC, &t1);
  printf("device %s (%s), %s%s\n", mxh_name(dev), mxh_arch(dev), mxh_driver(dev),
         host ? ": the CPU host runtime plays the suggested rules; this is no silicon" : "");
  for (size_t i = 0; i < p.answers.size(); i++) {
    const char *says = "none of the answers known here";
    const char *name = p.answers[i].choices.empty() ? "OTHER" : gfx950_choice_name((int)i, p.answers[i].choices[0], &says);
    printf("  %-15s %-10s %s\n", p.answers[i].rule.c_str(), name, says);
    if (p.answers[i].choices.empty() || verbose) printf("                  %s\n", p.answers[i].evidence.c_str());
  }
  for (const gfx950_sums &s : p.sums) printf("  sums of %s: %s%s\n", s.types.c_str(), s.fits ? "" : "NO MODEL FITS; nearest ", s.model.c_str());
  for (const gfx950_held &h : p.held)
    if (h.differ || verbose)
      printf("  %-40s %8llu words %8llu differ  %s\n", h.instruction.c_str(), (unsigned long long)h.words, (unsigned long long)h.differ,
             h.first.c_str());
  printf("%zu instructions held to these rules: %llu words, %llu differ; %.1f s\n", p.held.size(), (unsigned long long)p.words(),
         (unsigned long long)p.differ(), (double)(t1.tv_sec - t0.tv_sec) + (double)(t1.tv_nsec - t0.tv_nsec) * 1e-9);
  const std::string name = std::string(host ? "host@" : "gfx950@") + date, path = std::string(folder) + "/" + name + ".json",
                    spec = std::string(folder) + "/" + name + ".spec.json";
  if (!gfx950_profile_write(p, path.c_str(), name.c_str(), dev, date, MXH_COMMIT, MXH_COMPILERS) || !gfx950_profile_write_spec(p, spec.c_str()))
    return fprintf(stderr, "mxgold-gfx950: %s: cannot be written\n", path.c_str()), 2;
  printf("profile %s, spec %s\n", path.c_str(), spec.c_str());
  mxh_close(dev);
  return !p.complete();
}
