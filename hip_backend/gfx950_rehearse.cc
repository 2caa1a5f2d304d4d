/* Devices with hidden rules, a process each: the host runtime has one set of lanes. */
#include "hip_backend/gfx950_rehearse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "hip_backend/gfx950_profile.h"

namespace {
struct chance {
  uint64_t state;
  unsigned below(unsigned n) {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (unsigned)(state * 2685821657736338717u >> 33) % n;
  }
};

/* A device of its own: every rule by chance; its sums those of a candidate, or of parameters that are in no table. */
gfx950_rules drawn(uint64_t seed, std::string *sums) {
  static const char *const rows[] = {"cdna4_like_cdna3",      "cdna4_like_cdna3_rz", "cdna4_block32",
                                     "cdna4_block32_evenodd", "cdna4_whole",         "cdna4_exact32"};
  static const char always[] = ",out_round=rne,under=keep,nan=quiet";
  chance c = {seed * 2 + 88172645463325252u};
  gfx950_rules r = gfx950_rules_default();
  for (int i = 0; gfx950_rule_name(i, nullptr); i++) {
    int n = 0;
    while (gfx950_choice_name(i, n, nullptr)) n++;
    *gfx950_rule_of(&r, i) = (int)c.below((unsigned)n);
  }
  mx_mma_model m;
  for (;;) {
    char text[200];
    if (c.below(2))
      snprintf(text, sizeof text, "%s", rows[c.below(6)]);
    else if (c.below(2)) {
      const int L = 8 << c.below(4), F = 22 + (int)c.below(8), sum_bits = 26 + (int)c.below(8), c_bits = 24 + (int)c.below(4),
                c_drop = c.below(2) ? 0 : 25 + (int)c.below(6);
      const char *cut = c.below(2) ? "rd" : "rz", *split = c.below(2) ? "none" : "evenodd";
      snprintf(text, sizeof text, "fused:L=%d,F=%d,join=after,sum_bits=%d,c_bits=%d,c_drop=%d,join_cut=%s,split=%s%s", L, F, sum_bits, c_bits,
               c_drop, cut, split, always);
    } else {
      const int L = 8 << c.below(5), F = 22 + (int)c.below(10);
      snprintf(text, sizeof text, "fused:L=%d,F=%d,align=%s%s", L, F, c.below(2) ? "rz" : "rd", always);
    }
    if (mx_mma_model_find(&m, text, nullptr)) continue;
    r.accum = m.accum;
    *sums = text;
    return r;
  }
}

/* Columns of the table: rules that specs, books and comments disagree on most. */
const char *const SHOWN[] = {"nan_fp4", "scale_ff", "f32_subnormal", "sr_seed", "sr_next", "sr_subnormal", "mfma_scale_ff"};

/* Runs in a process of its own; its line of the table goes to f. */
int one(int index, uint64_t seed, bool verbose, FILE *f) {
  char why[256];
  mxh_device *dev = mxh_open("host", why, sizeof why);
  if (!dev) return fprintf(f, "mxgold-gfx950: %s\n", why), 2;
  std::string sums, trouble;
  gfx950_rules hidden = drawn(seed, &sums);
  gfx950_profile p;
  if (!gfx950_profile_run(&p, dev, {&hidden, seed, false, 1}, &trouble)) return fprintf(f, "mxgold-gfx950: %s\n", trouble.c_str()), 2;
  /* Each hidden answer is among those found; where there are several, they give the same bits on this device, which `held` confirms. */
  int wrong = 0;
  std::string notes;
  fprintf(f, "%6d", index + 1);
  for (int rule = 0; gfx950_rule_name(rule, nullptr); rule++) {
    const gfx950_answer &a = p.answers[(size_t)rule];
    const char *said = gfx950_choice_name(rule, *gfx950_rule_of(&hidden, rule), nullptr);
    bool among = false;
    for (int c : a.choices) among |= c == *gfx950_rule_of(&hidden, rule);
    wrong += !among;
    if (!among)
      notes += "       " + a.rule + ": hidden " + said + ", found " +
               (a.choices.empty() ? "none" : gfx950_choice_name(rule, a.choices[0], nullptr)) + "\n";
    for (const char *shown : SHOWN)
      if (a.rule == shown) fprintf(f, " %-13s", said);
  }
  const bool fine = !wrong && p.complete();
  const std::string own = sums.compare(0, 6, "fused:") ? sums : sums.substr(6);
  fprintf(f, " %5zu %5d %8llu %6llu  %-13s %s\n", p.answers.size() - (size_t)wrong, wrong, (unsigned long long)p.words(),
          (unsigned long long)p.differ(), fine ? "recovered" : "NOT RECOVERED", own.substr(0, own.find(",out_round")).c_str());
  fputs(notes.c_str(), f);
  if (!p.sums[0].fits || verbose) fprintf(f, "       sums hidden %s\n       sums found  %s\n", sums.c_str(), p.sums[0].model.c_str());
  for (const gfx950_held &h : p.held)
    if (h.differ)
      fprintf(f, "       %s: %llu of %llu differ, %s\n", h.instruction.c_str(), (unsigned long long)h.differ, (unsigned long long)h.words,
              h.first.c_str());
  mxh_close(dev);
  return !fine;
}
} // namespace

int gfx950_rehearse(int n, uint64_t seed, int jobs, bool verbose) {
  if (jobs < 1) jobs = (int)sysconf(_SC_NPROCESSORS_ONLN);
  struct timespec t0, t1;
  clock_gettime(CLOCK_MONOTONIC, &t0);
  printf("device");
  for (const char *shown : SHOWN) printf(" %-13s", shown);
  printf(" %5s %5s %8s %6s  %-13s %s\n", "named", "wrong", "words", "differ", "verdict", "hidden sums");
  fflush(stdout);
  struct child {
    pid_t pid;
    FILE *said;
    int status;
    bool ended;
  };
  std::vector<child> children;
  int running = 0, recovered = 0, printed = 0, trouble = 0;
  while (printed < n) {
    if ((int)children.size() < n && running < jobs) {
      child c = {0, tmpfile(), 0, false};
      if (!c.said || (c.pid = fork()) < 0) return perror("mxgold-gfx950"), 2;
      if (!c.pid) {
        const int index = (int)children.size(), result = one(index, seed + (uint64_t)index, verbose, c.said);
        _exit(fflush(c.said) ? 2 : result);
      }
      children.push_back(c);
      running++;
      continue;
    }
    int status;
    const pid_t pid = wait(&status);
    for (child &c : children)
      if (c.pid == pid) c.ended = true, c.status = status, running--;
    for (; printed < (int)children.size() && children[(size_t)printed].ended; printed++) { /* in order */
      const child &c = children[(size_t)printed];
      char line[1024];
      rewind(c.said);
      while (fgets(line, sizeof line, c.said)) fputs(line, stdout);
      fclose(c.said);
      fflush(stdout);
      recovered += c.status == 0;
      if (!WIFEXITED(c.status) || WEXITSTATUS(c.status) > 1) trouble = 2, printf("%6d ended with status %d\n", printed + 1, c.status);
    }
  }
  clock_gettime(CLOCK_MONOTONIC, &t1);
  printf("hip-rehearse: %d of %d hidden rule sets recovered, %.0f s\n", recovered, n,
         (double)(t1.tv_sec - t0.tv_sec) + (double)(t1.tv_nsec - t0.tv_nsec) * 1e-9);
  return trouble ? trouble : recovered != n;
}
