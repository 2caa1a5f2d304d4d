/* Imitates devices with hidden rules and runs hip-diff's table of instructions and native kernels on each, in a process of its own, since
 * the host runtime has only one set of lanes. */
#include "hip_backend/compare/rehearse.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "hip_backend/compare/diff.h"
#include "hip_backend/gfx950/native.h"
#include "hip_backend/gfx950/profile.h"
#include "hip_backend/run/device_watched.h"

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

/* Draws a way of summing: that of a candidate, or parameters that are in no table. */
mx_accum drawn_sums(chance *c, std::string *text) {
  static const char *const rows[] = {"cdna4_like_cdna3",      "cdna4_like_cdna3_rz", "cdna4_block32",
                                     "cdna4_block32_evenodd", "cdna4_whole",         "cdna4_exact32"};
  static const char always[] = ",out_round=rne,under=keep,nan=quiet";
  mx_mma_model m;
  for (;;) {
    char t[200];
    if (c->below(2))
      snprintf(t, sizeof t, "%s", rows[c->below(6)]);
    else if (c->below(2)) {
      const int L = 8 << c->below(4), F = 22 + (int)c->below(8), sum_bits = 26 + (int)c->below(8), c_bits = 24 + (int)c->below(4),
                c_drop = c->below(2) ? 0 : 25 + (int)c->below(6);
      const char *cut = c->below(2) ? "rd" : "rz", *split = c->below(2) ? "none" : "evenodd";
      snprintf(t, sizeof t, "fused:L=%d,F=%d,join=after,sum_bits=%d,c_bits=%d,c_drop=%d,join_cut=%s,split=%s%s", L, F, sum_bits, c_bits, c_drop,
               cut, split, always);
    } else {
      const int L = 8 << c->below(5), F = 22 + (int)c->below(10);
      snprintf(t, sizeof t, "fused:L=%d,F=%d,align=%s%s", L, F, c->below(2) ? "rz" : "rd", always);
    }
    if (mx_mma_model_find(&m, t, nullptr)) continue;
    const std::string own = strncmp(t, "fused:", 6) ? std::string(t).substr(6) : t;
    *text = own.substr(0, own.find(",out_round"));
    return m.accum;
  }
}

/* Draws a device: every rule at random; one way of summing for all types, or a different one for FP4 by FP4, which is a slight variation or
 * drawn separately. */
gfx950_rules drawn(uint64_t seed, std::string *sums) {
  chance c = {seed * 2 + 88172645463325252u};
  gfx950_rules r = gfx950_rules_default();
  for (int i = 0; gfx950_rule_name(i, nullptr); i++) {
    int n = 0;
    while (gfx950_choice_name(i, n, nullptr)) n++;
    *gfx950_rule_of(&r, i) = (int)c.below((unsigned)n);
  }
  mx_accum all = drawn_sums(&c, sums);
  gfx950_rules_sums(&r, &all);
  if (c.below(2)) return r;
  std::string other;
  mx_accum fp4 = all;
  if (all.join != MX_ACC_JOIN_AFTER || c.below(2))
    fp4 = drawn_sums(&c, &other);
  else if (c.below(2))
    fp4.c_drop = all.c_drop ? all.c_drop + 2 : 27, other = "c_drop=" + std::to_string(fp4.c_drop);
  else
    fp4.c_bits++, other = "c_bits=" + std::to_string(fp4.c_bits);
  *sums += "; FP4: " + other;
  for (int edge : {16, 32}) r.accum[gfx950_pair(edge, GFX950_E2M1, GFX950_E2M1)] = fp4;
  return r;
}

/* Kernels that are wrong in a way that no rule describes. row: how the name of the row in hip-diff's table begins. */
const struct wrong_kernel {
  const char *kernel, *row, *what;
} wrong_kernels[] = {
    {"native_mxfp4_hadamard_sr", "native_mxfp4_hadamard_sr:", "the next word of the generator"},
    {"gfx950_mfma_scale_f32_16x16x128_f8f6f4_a4_b4_s6", "v_mfma_scale_f32_16x16x128_f8f6f4", "scales of A and B exchanged"},
    {"native_gemm_mxfp4", "native_gemm_mxfp4:", "one output's last bit"},
    {"gfx950_mfma_scale_f32_32x32x64_f8f6f4_a2_b0_s9", "v_mfma_scale_f32_32x32x64_f8f6f4", "scales of A and B exchanged"},
    {"native_mxfp4", "native_mxfp4:", "one code"},
};
enum { WRONG_KERNELS = sizeof wrong_kernels / sizeof *wrong_kernels };

/* The host runtime with one wrong kernel. */
struct wrong_device : mxh_passing_device {
  const wrong_kernel *wrong;
  wrong_device(mxh_device *d, const wrong_kernel *w) : mxh_passing_device(d), wrong(w) {}
  static void flip(void *word) { *(uint32_t *)word ^= 1; }
  int launch(const char *kernel, unsigned grid, unsigned block, const void *args, size_t n) override {
    if (strcmp(kernel, wrong->kernel)) return said(inner->launch(kernel, grid, block, args, n));
    if (n == sizeof(gfx950_mfma_args) && !strncmp(kernel, "gfx950_mfma", 11)) {
      gfx950_mfma_args a;
      memcpy((void *)&a, args, sizeof a);
      const auto scale_a = a.scale_a;
      a.scale_a = a.scale_b;
      a.scale_b = scale_a;
      return said(inner->launch(kernel, grid, block, &a, sizeof a));
    }
    if (!strcmp(kernel, "native_gemm_mxfp4")) {
      void *d;
      const int status = inner->launch(kernel, grid, block, args, n);
      memcpy(&d, args, sizeof d); /* the first argument */
      flip(d);
      return said(status);
    }
    native_quantize_args a;
    memcpy((void *)&a, args, sizeof a);
    if (strstr(kernel, "_sr")) a.seed++;
    const int status = inner->launch(kernel, grid, block, &a, sizeof a);
    void *codes;
    memcpy(&codes, (const char *)&a + offsetof(native_quantize_args, codes), sizeof codes);
    if (!strstr(kernel, "_sr")) flip(codes);
    return said(status);
  }
};

/* The columns of the table: rules on which documents and source comments disagree most. */
const char *const SHOWN[] = {"nan_fp4", "scale_ff", "f32_subnormal", "sr_seed", "sr_next", "sr_subnormal", "sr8_round", "mfma_scale_ff"};

/* Rehearses one device in its own process, and writes its line of the table to f. */
int one(const gfx950_rehearsal &r, int index, FILE *f) {
  char why[256];
  std::string sums;
  mxh_device *dev = mxh_open("host", why, sizeof why);
  const wrong_kernel *wrong = index < r.devices ? nullptr : &wrong_kernels[(index - r.devices) % WRONG_KERNELS];
  if (wrong) dev = new wrong_device(dev, wrong);
  gfx950_rules hidden = drawn(r.seed + (uint64_t)index, &sums);
  mxh_run run = {};
  run.dev = dev;
  run.oracle = r.oracle;
  run.play = &hidden;
  run.quick = true;
  const bool passed = mxh_run_native(&run);
  if (!run.profile) return fprintf(f, "hip-rehearse: %s\n", run.rows.empty() ? "no rows" : run.rows[0].first.c_str()), 2;
  const gfx950_profile &p = *run.profile;
  /* Each hidden answer must be among those found; several answers may give the same bits on this device, which the rows confirm. */
  int missed = 0;
  std::string notes;
  fprintf(f, "%6d", index + 1);
  for (int rule = 0; gfx950_rule_name(rule, nullptr); rule++) {
    const gfx950_answer &a = p.answers[(size_t)rule];
    const char *said = gfx950_choice_name(rule, *gfx950_rule_of(&hidden, rule), nullptr);
    bool among = false;
    for (int c : a.choices) among |= c == *gfx950_rule_of(&hidden, rule);
    missed += !among;
    if (!among)
      notes += "       " + a.rule + ": hidden " + said + ", found " +
               (a.choices.empty() ? "none" : gfx950_choice_name(rule, a.choices[0], nullptr)) + "\n";
    else if (a.choices.size() > 1) {
      notes += "       " + a.rule + ": hidden " + said + ", the same bits as";
      for (int c : a.choices) notes += std::string(" ") + gfx950_choice_name(rule, c, nullptr);
      notes += "\n";
    }
    for (const char *shown : SHOWN)
      if (a.rule == shown) fprintf(f, " %-13s", said);
  }
  /* The rows of the table: exactly those of the wrong kernel must differ. */
  int equal = 0, differ = 0, other = 0, noticed = 0;
  for (const mxh_row &row : run.rows) {
    const bool differs = row.differences && !row.open, its = wrong && row.operation.compare(0, strlen(wrong->row), wrong->row) == 0;
    equal += !row.skipped && !row.differences;
    differ += differs;
    other += row.skipped || row.open;
    noticed += its && differs;
    if (row.differences || row.skipped || r.verbose)
      notes += "       " + row.operation + ": " + std::to_string(row.differences) + " of " + std::to_string(row.values) + " differ " +
               row.first + (row.note.empty() ? "" : " (" + row.note + ")") + "\n";
  }
  bool all_fit = true;
  for (const gfx950_sums &s : p.sums) all_fit &= s.fits != 0;
  const bool named = !missed && all_fit, fine = named && !other && (wrong ? !passed && noticed && noticed == differ : passed && !differ);
  fprintf(f, " %5zu %5d %5zu %5d %6d %9llu  %-13s %s%s\n", p.answers.size() - (size_t)missed, missed, p.sums.size(), equal, differ,
          (unsigned long long)p.words(),
          fine    ? wrong ? "noticed" : "recovered"
          : wrong ? "NOT NOTICED"
                  : "NOT RECOVERED",
          sums.c_str(), wrong ? (std::string("; ") + wrong->kernel + ": " + wrong->what).c_str() : "");
  if (!fine || r.verbose) {
    fputs(notes.c_str(), f);
    for (const gfx950_sums &s : p.sums) fprintf(f, "       sums of %s: %s\n", gfx950_sums_pairs(s).c_str(), gfx950_sums_text(s).c_str());
  }
  mxh_close(dev);
  return !fine;
}
} // namespace

int gfx950_rehearse(const gfx950_rehearsal &r) {
  const int n = r.devices + r.wrong;
  int jobs = r.jobs;
  if (jobs < 1) jobs = (int)sysconf(_SC_NPROCESSORS_ONLN);
  struct timespec t0, t1;
  clock_gettime(CLOCK_MONOTONIC, &t0);
  printf("device");
  for (const char *shown : SHOWN) printf(" %-13s", shown);
  printf(" %5s %5s %5s %5s %6s %9s  %-13s %s\n", "named", "wrong", "sums", "equal", "differ", "words", "verdict", "hidden sums");
  fflush(stdout);
  struct child {
    pid_t pid;
    FILE *said;
    int status;
    bool ended;
  };
  std::vector<child> children;
  int running = 0, recovered = 0, noticed = 0, printed = 0, trouble = 0;
  while (printed < n) {
    if ((int)children.size() < n && running < jobs) {
      child c = {0, tmpfile(), 0, false};
      if (!c.said || (c.pid = fork()) < 0) return perror("hip-rehearse"), 2;
      if (!c.pid) {
        const int index = (int)children.size(), result = one(r, index, c.said);
        _exit(fflush(c.said) ? 2 : result);
      }
      children.push_back(c);
      running++;
      continue;
    }
    int status;
    const pid_t pid = wait(&status);
    if (pid < 0 && errno != EINTR) return perror("hip-rehearse"), 2;
    for (child &c : children)
      if (c.pid == pid) c.ended = true, c.status = status, running--;
    for (; printed < (int)children.size() && children[(size_t)printed].ended; printed++) { /* printed in order */
      const child &c = children[(size_t)printed];
      char line[1024];
      rewind(c.said);
      while (fgets(line, sizeof line, c.said)) fputs(line, stdout);
      fclose(c.said);
      fflush(stdout);
      (printed < r.devices ? recovered : noticed) += c.status == 0;
      if (!WIFEXITED(c.status) || WEXITSTATUS(c.status) > 1) trouble = 2, printf("%6d ended with status %d\n", printed + 1, c.status);
    }
  }
  clock_gettime(CLOCK_MONOTONIC, &t1);
  printf("hip-rehearse: %d of %d hidden rule sets recovered with every row equal, %d of %d wrong kernels noticed, %.0f s\n", recovered,
         r.devices, noticed, r.wrong, (double)(t1.tv_sec - t0.tv_sec) + (double)(t1.tv_nsec - t0.tv_nsec) * 1e-9);
  return trouble ? trouble : recovered + noticed != n;
}
