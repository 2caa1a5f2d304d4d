/* Lists the specs of an ablation: presets, and every combination of the values of --set. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ablate.h"
#include "cli/base/list.h"
#include "cli/checkpoint/fake_file.h"
#include "mxgold/nearest.h"

enum { MAX_SETS = 16, MAX_SPECS = 4096, MAX_LABEL = 480 };

typedef struct axis {
  char key[64];
  char **values;
  size_t n;
} axis;

static int is_among(char *const *values, size_t n, const char *value) {
  for (size_t i = 0; i < n; i++)
    if (!strcmp(values[i], value)) return 1;
  return 0;
}

/* Names between commas, one that is given again only once: so that no spec is measured twice. Returns 0 if memory ran out; what there is by then is freed by split_free() all the same. */
static int split(char ***out, size_t *n, const char *text) {
  *out = NULL;
  *n = 0;
  char *own = strdup(text), *save = NULL, *word = own ? strtok_r(own, ",", &save) : NULL;
  int whole = own != NULL;
  for (; whole && word; word = strtok_r(NULL, ",", &save)) {
    if (is_among(*out, *n, word)) continue;
    char **more = realloc(*out, (*n + 1) * sizeof *more);
    if (more) *out = more;
    whole = more && (more[*n] = strdup(word));
    *n += (size_t)whole;
  }
  free(own);
  return whole;
}

static void split_free(char **values, size_t n) {
  for (size_t i = 0; i < n; i++) free(values[i]);
  free(values);
}

static int axis_of(axis *a, const char *text) {
  const char *is = strchr(text, '=');
  if (!is || is == text || (size_t)(is - text) >= sizeof a->key) return cli_error("--set: '%.80s', expected KEY=VALUE[,VALUE]...", text);
  snprintf(a->key, sizeof a->key, "%.*s", (int)(is - text), text);
  if (list_check("--set", text, is + 1, "KEY=VALUE[,VALUE]...")) return CLI_TROUBLE;
  return split(&a->values, &a->n, is + 1) ? CLI_FINE : cli_error("out of memory");
}

/* If a key is given again, its new values are added to those before. */
static int merge(axis *axes, size_t *n) {
  axis *last = &axes[*n - 1];
  for (size_t i = 0; i + 1 < *n; i++) {
    if (strcmp(axes[i].key, last->key)) continue;
    char **all = realloc(axes[i].values, (axes[i].n + last->n) * sizeof *all);
    if (!all) return cli_error("out of memory");
    axes[i].values = all;
    for (size_t k = 0; k < last->n; k++) {
      if (is_among(all, axes[i].n, last->values[k]))
        free(last->values[k]);
      else
        all[axes[i].n++] = last->values[k];
    }
    free(last->values);
    *last = (axis){0};
    --*n;
    return CLI_FINE;
  }
  return CLI_FINE;
}

static int leave_out(ablate_specs *s, const char *label, const char *why) {
  char *more;
  if (asprintf(&more, "%s%s: %s\n", s->left_out ? s->left_out : "", label, why) < 0) return cli_error("out of memory");
  free(s->left_out);
  s->left_out = more;
  return CLI_FINE;
}

static int add(ablate_specs *s, const char *label, const mx_spec *spec, const mx_recipe *recipe) {
  ablate_spec *at = realloc(s->at, (s->n + 1) * sizeof *at);
  if (!at) return cli_error("out of memory");
  s->at = at;
  at[s->n] = (ablate_spec){strdup(label), *spec, recipe};
  if (!at[s->n].label) return cli_error("out of memory");
  s->n++;
  return CLI_FINE;
}

/* The combination-th choice of a value from each axis, the last axis fastest. */
static int combine(ablate_specs *s, const char *preset, const mx_spec *base, const mx_recipe *recipe, const axis *axes, size_t n_axes,
                   size_t combination) {
  char label[MAX_LABEL], keys[MAX_LABEL] = "";
  size_t nl = (size_t)snprintf(label, sizeof label, "%s", preset), nk = 0, at[MAX_SETS];
  for (size_t i = n_axes; i-- > 0; combination /= axes[i].n) at[i] = combination % axes[i].n;
  for (size_t i = 0; i < n_axes && nl < sizeof label && nk < sizeof keys; i++) {
    const char *value = axes[i].values[at[i]];
    nl += (size_t)snprintf(label + nl, sizeof label - nl, " %s=%s", axes[i].key, value);
    nk += (size_t)snprintf(keys + nk, sizeof keys - nk, "%s=%s ", axes[i].key, value);
  }
  if (nl >= sizeof label || nk >= sizeof keys) return cli_error("--set: expected less than %d characters in all", MAX_LABEL);
  mx_spec spec = *base;
  mx_error err;
  if (mx_spec_parse(&spec, keys, &err)) return cli_error("--set: %s", err.text);
  if (mx_spec_check(&spec, &err)) return leave_out(s, label, err.text);
  return add(s, label, &spec, recipe);
}

static const char *name_at(const void *set, size_t index) {
  (void)set;
  const size_t n = mx_preset_count();
  return index < n ? mx_preset_at(index)->name : index - n < mx_recipe_count() ? mx_recipe_at(index - n)->name : NULL;
}

/* A preset, or with `six` a recipe; the names of both are near names. */
static int base_of(mx_spec *base, const mx_recipe **recipe, const char *name, int six) {
  mx_error err;
  const int index = mx_recipe_find(name);
  *recipe = index < 0 ? NULL : mx_recipe_at((size_t)index);
  if (*recipe && !six) return cli_error("'%s' is a recipe, of six operands: it goes with --six", name);
  const mx_status status = *recipe ? mx_recipe_base(base, *recipe, &err) : mx_preset_find(base, name, &err);
  if (!status) return CLI_FINE;
  if (status != MX_ERR_KEY || *recipe) return cli_fail(&err);
  return cli_unknown(NULL, "preset", name, name_at, NULL);
}

static int all_of_preset(ablate_specs *s, const char *preset, const axis *axes, size_t n_axes, size_t combinations, uint64_t seed, int six) {
  mx_spec base;
  const mx_recipe *recipe;
  if (base_of(&base, &recipe, preset, six)) return CLI_TROUBLE;
  base.seed = seed;
  int rc = CLI_FINE;
  for (size_t c = 0; c < combinations && !rc; c++) rc = combine(s, preset, &base, recipe, axes, n_axes, c);
  return rc;
}

int ablate_specs_make(ablate_specs *out, const char *presets, const cli_list *sets, uint64_t seed, int six) {
  *out = (ablate_specs){.seed = seed};
  axis axes[MAX_SETS] = {0};
  size_t n_axes = 0, n_names = 0, combinations = 1;
  char **names = NULL;
  int rc = sets->n > MAX_SETS ? cli_error("--set: expected at most %d", MAX_SETS) : CLI_FINE;
  for (size_t i = 0; i < sets->n && !rc; i++) {
    rc = axis_of(&axes[n_axes++], sets->items[i]);
    if (!rc) rc = merge(axes, &n_axes);
  }
  if (!rc && presets) rc = list_check("--presets", presets, presets, "NAME[,NAME]...");
  if (!rc && !split(&names, &n_names, presets ? presets : "ocp-mxfp4")) rc = cli_error("out of memory");
  for (size_t i = 0; i < n_axes && !rc; i++)
    if ((combinations *= axes[i].n) * n_names > MAX_SPECS) rc = cli_error("--set: expected at most %d combinations", MAX_SPECS);
  for (size_t i = 0; i < n_names && !rc; i++) rc = all_of_preset(out, names[i], axes, n_axes, combinations, seed, six);
  if (!rc && !out->n) {
    out->left_out[strcspn(out->left_out, "\n")] = 0;
    rc = cli_error("--set: no combination is possible: %s", out->left_out);
  }
  split_free(names, n_names);
  for (size_t i = 0; i < n_axes; i++) split_free(axes[i].values, axes[i].n);
  if (rc) ablate_specs_free(out);
  return rc;
}

int ablate_specs_draw(const ablate_specs *s) {
  int drawn = 0;
  for (size_t i = 0; i < s->n; i++) drawn |= mx_spec_is_random(&s->at[i].spec);
  return drawn;
}

int ablate_refuse_repeats(void) {
  return cli_error("ablate: --repeats is of specs that draw random bits, and there is none, expected one such as --set elem.round=sr");
}

mx_spec ablate_spec_of(const ablate_spec *s, const ablate_tensor *t) {
  mx_spec own = s->spec;
  if (t->array && *t->array->name) own.seed = tensor_seed(own.seed, t->array->name);
  return own;
}

void ablate_specs_free(ablate_specs *s) {
  for (size_t i = 0; i < s->n; i++) free(s->at[i].label);
  free(s->at);
  free(s->left_out);
  *s = (ablate_specs){0};
}
