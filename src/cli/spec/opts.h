/* Declares the options that say a spec, the same on every command that takes one. */
#ifndef CLI_SPEC_OPTS_H
#define CLI_SPEC_OPTS_H

#include "cli/base/cli.h"
#include "mxgold/spec.h"

typedef struct spec_opts {
  const char *preset, *spec_file;
  cli_list set;
  cli_u64 seed;
} spec_opts;

/* Rows for a command's option table; member: the spec_opts inside its struct. */
#define SPEC_OPTIONS(type, member)                                                                                                               \
  {                                                                                                                                              \
      "preset",         0, CLI_STRING, offsetof(struct type, member.preset), "NAME", "start from a preset (mxgold presets lists them)",          \
      spec_preset_names},                                                                                                                        \
      {"spec", 0, CLI_STRING, offsetof(struct type, member.spec_file), "FILE.json", "start from a spec in JSON: {\"key\": value, ...}", NULL},   \
      {"set", 0, CLI_LIST, offsetof(struct type, member.set), "KEY=VALUE", "set a key of the spec; may be repeated (mxgold formats lists them)", \
       NULL},                                                                                                                                    \
  {                                                                                                                                              \
    "seed", 0, CLI_U64, offsetof(struct type, member.seed), "N", "seed of stochastic rounding and of fresh signs", NULL                          \
  }

const char *spec_preset_names(size_t index);

/** Preset or spec file, then each --set, then --seed. Says what is wrong and returns CLI_TROUBLE, or CLI_FINE. */
int spec_from_options(mx_spec *out, const spec_opts *o);
/** The preset's name if spec is still that preset (seed, nibble order and a given tensor scale apart), or NULL. */
const char *spec_preset_label(const spec_opts *o, const mx_spec *spec);

#endif
