/* Finds what an arm and its reference differ in beyond the number format, which their difference in loss would then be due to as well. */
#include <stdio.h>
#include <string.h>

#include "report/internal.h"

/* Sections that say what is learnt, from what and how fast. All others belong to the number format or decide no loss. */
static const char *const sections[] = {"model", "data", "train", "optimizer", "schedule"};
/* Keys of them that decide no loss, or are a technique of the number format. */
static const char *const others[] = {"train.checkpoint_every", "train.eval_every", "train.divergence", "model.smooth_swiglu"};

static int is_other(const char *name) {
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (!strcmp(name, others[i])) return 1;
  return 0;
}

void mxi_unlike(char *out, size_t size, const mx_report *r, const mxi_arm *a) {
  *out = 0;
  if (a->reference == SIZE_MAX) return;
  const json_t *own = a->config, *of = r->arms[a->reference].config;
  for (size_t i = 0; own && of && i < sizeof sections / sizeof *sections; i++) {
    json_t *mine = json_object_get(own, sections[i]), *value;
    const json_t *theirs = json_object_get(of, sections[i]);
    const char *key;
    json_object_foreach(mine, key, value) {
      if (json_equal(value, json_object_get(theirs, key)) || !strncmp(key, "seed", 4)) continue;
      snprintf(out, size, "%s.%s", sections[i], key);
      if (!is_other(out)) return;
      *out = 0;
    }
  }
}
