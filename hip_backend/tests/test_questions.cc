/* Tests the questions of the device profile: devices drawn at random, which the host runtime imitates, are asked every rule of
 * formats/gfx950_rules.def. The answer that was drawn must be among those found, and on words that no question used the rules found must
 * give the same bits as those drawn. The profile is told how products are summed; make hip-rehearse hides that too. */
#include "hip_backend/gfx950/run.h"
#include "hip_backend/tests/native_test.h"

static uint64_t ambiguous;

/* Compares every conversion in every mode under both sets of rules. */
static void hold(int number, const gfx950_rules &hidden, const gfx950_rules &found) {
  for (int index = 0; index < GFX950_COUNT; index++) {
    const gfx950_row &row = gfx950_rows[index];
    for (uint32_t mode = 0; row.kind != GFX950_MFMA && mode < 4; mode++) {
      gfx950_run::conversion c = gfx950_run::of(index, (int)below((unsigned)row.selects), mode);
      for (int i = 0; i < (row.lanes == 32 ? 20 : 200); i++) {
        const unsigned byte = below(4) ? 117 + below(20) : below(256);
        c.add({}, byte << 23, below(4) ? random32() : UINT32_MAX << below(20), random32());
        for (auto x = c.x.end() - row.words_x; x != c.x.end(); x++) {
          *x = random32();
          if (row.wide == GFX950_F32 && row.kind != GFX950_WIDEN && below(5) && byte > 20 && byte < 235) /* near the scale */
            *x = (*x & 0x807FFFFF) | (byte + below(24) - 14) << 23;
        }
      }
      const gfx950_run::words want = gfx950_run::predicted(c, hidden), got = gfx950_run::predicted(c, found);
      for (size_t i = 0; i < want.size(); i++, compared++)
        if (want[i] != got[i]) {
          fail(row.name, "device " + std::to_string(number) + ", mode " + std::to_string(mode) + ": the rules found give " + hex(got[i]) +
                             ", the device " + hex(want[i]));
          break;
        }
    }
  }
}

int main(int argc, char **argv) {
  const int devices = argc > 1 ? atoi(argv[1]) : 16;
  char why[256];
  mxh_device *dev = mxh_open("host", why, sizeof why);
  for (int number = 0; dev && number < devices; number++) {
    const gfx950_rules hidden = drawn();
    gfx950_run::device d = {dev, &hidden, ""};
    gfx950_run::generator g = {random64() | 1};
    gfx950_profile p;
    p.rules = gfx950_rules_default();
    memcpy(p.rules.accum, hidden.accum, sizeof hidden.accum);
    gfx950_rules copy = hidden;
    for (int rule = 0; gfx950_rule_name(rule, nullptr); rule++) {
      const int answer = *gfx950_rule_of(&copy, rule);
      if (!gfx950_run::ask_rule(&p, &d, rule, &g)) fail(gfx950_rule_name(rule, nullptr), d.why);
      if (p.answers.size() <= (size_t)rule) return 1;
      bool among = false;
      for (int choice : p.answers.back().choices) among |= choice == answer;
      ambiguous += p.answers.back().choices.size() > 1;
      if (!among)
        fail(gfx950_rule_name(rule, nullptr), "device " + std::to_string(number) + ": drawn " + gfx950_choice_name(rule, answer, nullptr) +
                                                  ", found " + std::to_string(p.answers.back().choices.size()) + " others");
    }
    hold(number, hidden, p.rules);
  }
  if (!dev) fail("host", why);
  printf("hip native: questions: %d devices with drawn rules, %llu answers of several with the same bits, %llu words under the rules found, %d "
         "faults\n",
         devices, (unsigned long long)ambiguous, (unsigned long long)compared, failures);
  return failures != 0;
}
