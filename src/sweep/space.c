/* Makes the runs of a sweep from its file: arms, the combinations of a grid, references, seeds. */
#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "mxgold/random.h"
#include "mxgold/train.h"
#include "sweep/internal.h"

enum { MOST_AXES = 16, MOST_RUNS = 1000000 };

/* Keys that belong together, and what they are called. */
typedef struct choice {
  char *name;
  char **set;
  size_t n_set;
  int of_quant; /* one of the keys is of "quant" */
} choice;

typedef struct axis {
  const char *key; /* of the sweep's file */
  choice *values;
  size_t n;
} axis;

typedef struct space {
  const char *path;
  choice base, reference;
  int has_reference;
  axis arms, grid[MOST_AXES];
  size_t n_axes, n_random, random_seed;
  uint64_t *seeds;
  size_t n_seeds;
  void **seen; /* "SEED NAME" of the runs so far, a tree of tsearch() */
} space;

static mx_status no_memory(mx_error *err) { return mx_fail(err, MX_ERR_NOMEM, "out of memory"); }

/* ---- reading ---- */

/* JSON with the fewest digits that say the same numbers. */
static char *shortest(const json_t *value) {
  for (size_t digits = 15;; digits++) {
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(digits));
    json_t *back = text ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL;
    const int same = back && json_equal(back, value);
    json_decref(back);
    if (same || digits == 17 || !text) return text;
    free(text);
  }
}

static mx_status add_set(choice *c, const char *key, const json_t *value, mx_error *err) {
  char *text = shortest(value), *item = NULL;
  char **more = realloc(c->set, (c->n_set + 1) * sizeof *more);
  if (more) c->set = more;
  const int made = text && more && asprintf(&item, "%s=%s", key, text) >= 0;
  free(text);
  if (!made) return no_memory(err);
  c->set[c->n_set++] = item;
  c->of_quant |= !strncmp(key, "quant", 5) && (key[5] == '.' || !key[5]);
  return MX_OK;
}

static mx_status read_set(choice *c, json_t *object, const char *path, const char *where, mx_error *err) {
  const char *key;
  json_t *value;
  mx_status status = MX_OK;
  if (object && !json_is_object(object)) return mx_fail(err, MX_ERR_ARG, "%s: %s: expected an object of keys and values", path, where);
  json_object_foreach(object, key, value) if (!status) status = add_set(c, key, value, err);
  return status;
}

/* {"name": ..., "set": {...}}. */
static mx_status read_choice(choice *c, json_t *v, const char *path, const char *where, mx_error *err) {
  static const char *const names[] = {"name", "set", NULL};
  const char *name = json_string_value(json_object_get(v, "name"));
  if (!json_is_object(v) || !name || !*name)
    return mx_fail(err, MX_ERR_ARG, "%s: %s: expected {\"name\": \"...\", \"set\": {...}}", path, where);
  const mx_status status = mxi_only(v, names, path, where, err);
  if (status) return status;
  return (c->name = strdup(name)) ? read_set(c, json_object_get(v, "set"), path, where, err) : no_memory(err);
}

static mx_status new_values(axis *a, const json_t *list, const char *path, const char *where, mx_error *err) {
  if (!json_is_array(list) || !json_array_size(list)) return mx_fail(err, MX_ERR_ARG, "%s: %s: expected a list", path, where);
  a->values = calloc(json_array_size(list), sizeof *a->values);
  return a->values ? MX_OK : no_memory(err);
}

static mx_status read_arms(axis *a, json_t *list, const char *path, mx_error *err) {
  size_t i;
  json_t *v;
  mx_status status = new_values(a, list, path, "arms", err);
  json_array_foreach(list, i, v) {
    char where[32];
    snprintf(where, sizeof where, "arms[%zu]", i);
    if (!status) status = read_choice(&a->values[a->n++], v, path, where, err);
    for (size_t k = 0; k < i && !status; k++)
      if (!strcmp(a->values[k].name, a->values[i].name))
        status = mx_fail(err, MX_ERR_ARG, "%s: %s: the name '%s' is that of arms[%zu]", path, where, a->values[i].name, k);
  }
  return status;
}

/* A value of a grid: an object with a name of its own, or what the axis's key is set to. */
static mx_status read_value(choice *c, const char *key, json_t *v, const char *path, const char *where, mx_error *err) {
  if (json_is_object(v)) return read_choice(c, v, path, where, err);
  const mx_status status = add_set(c, key, v, err);
  if (status) return status;
  const int made = json_is_string(v) ? asprintf(&c->name, "%s=%s", key, json_string_value(v)) >= 0 : (c->name = strdup(c->set[0])) != NULL;
  return made ? MX_OK : no_memory(err);
}

/* Length of the key in "KEY=VALUE". */
static size_t key_length(const char *set) { return strcspn(set, "="); }

/* An arm that sets the key of an axis would be another arm than its name says. */
static mx_status no_key_twice(const space *s, const choice *value, const char *where, mx_error *err) {
  for (size_t i = 0; i < s->arms.n; i++)
    for (size_t k = 0; k < s->arms.values[i].n_set; k++)
      for (size_t j = 0; j < value->n_set; j++) {
        const char *of_arm = s->arms.values[i].set[k], *of_axis = value->set[j];
        const size_t n = key_length(of_arm);
        if (n == key_length(of_axis) && !strncmp(of_arm, of_axis, n))
          return mx_fail(err, MX_ERR_CONFLICT, "%s: %s: %.*s is set by arms[%zu] too", s->path, where, (int)n, of_arm, i);
      }
  return MX_OK;
}

static mx_status read_grid(space *s, json_t *grid, mx_error *err) {
  const char *key;
  json_t *list, *v;
  if (grid && !json_is_object(grid)) return mx_fail(err, MX_ERR_ARG, "%s: grid: expected an object of lists", s->path);
  if (json_object_size(grid) > MOST_AXES) return mx_fail(err, MX_ERR_ARG, "%s: grid: expected at most %d axes", s->path, MOST_AXES);
  json_object_foreach(grid, key, list) {
    char where[160];
    snprintf(where, sizeof where, "grid.%s", key);
    axis *a = &s->grid[s->n_axes++];
    a->key = key;
    mx_status status = new_values(a, list, s->path, where, err);
    size_t i;
    json_array_foreach(list, i, v) {
      if (!status) status = read_value(&a->values[a->n++], key, v, s->path, where, err);
      if (!status) status = no_key_twice(s, &a->values[a->n - 1], where, err);
    }
    if (status) return status;
  }
  return MX_OK;
}

static mx_status read_seeds(space *s, json_t *v, mx_error *err) {
  const size_t n = json_is_array(v)                                  ? json_array_size(v)
                   : json_is_integer(v) && json_integer_value(v) > 0 ? (size_t)json_integer_value(v)
                   : v                                               ? 0
                                                                     : 1;
  if (!n || n > MOST_RUNS) return mx_fail(err, MX_ERR_ARG, "%s: seeds: expected how many, or a list of them", s->path);
  if (!(s->seeds = malloc(n * sizeof *s->seeds))) return no_memory(err);
  for (; s->n_seeds < n; s->n_seeds++) {
    const json_t *one = json_is_array(v) ? json_array_get(v, s->n_seeds) : NULL;
    if (one && !(json_is_integer(one) && json_integer_value(one) > 0))
      return mx_fail(err, MX_ERR_ARG, "%s: seeds[%zu]: expected a whole number above 0", s->path, s->n_seeds);
    s->seeds[s->n_seeds] = one ? (uint64_t)json_integer_value(one) : s->n_seeds + 1;
    for (size_t k = 0; k < s->n_seeds; k++)
      if (s->seeds[k] == s->seeds[s->n_seeds]) return mx_fail(err, MX_ERR_ARG, "%s: seeds[%zu] stands there twice", s->path, s->n_seeds);
  }
  return MX_OK;
}

static mx_status read_random(space *s, json_t *v, mx_error *err) {
  static const char *const names[] = {"arms", "seed", NULL};
  if (!v) return MX_OK;
  const json_int_t n = json_integer_value(json_object_get(v, "arms")), seed = json_integer_value(json_object_get(v, "seed"));
  const mx_status status = mxi_only(v, names, s->path, "random", err);
  if (status) return status;
  if (!json_is_object(v) || n < 1 || n > MOST_RUNS || seed < 0)
    return mx_fail(err, MX_ERR_ARG, "%s: random: expected {\"arms\": N, \"seed\": S}", s->path);
  s->n_random = (size_t)n;
  s->random_seed = (size_t)seed;
  return MX_OK;
}

static mx_status read_space(space *s, json_t *root, mx_error *err) {
  static const char *const names[] = {"about", "config", "set", "arms", "grid", "random", "reference", "seeds", "claims", NULL};
  json_t *arms = json_object_get(root, "arms"), *reference = json_object_get(root, "reference");
  mx_status status = mxi_only(root, names, s->path, "", err);
  if (!status) status = read_set(&s->base, json_object_get(root, "set"), s->path, "set", err);
  if (!status && arms) status = read_arms(&s->arms, arms, s->path, err);
  if (!status) status = read_grid(s, json_object_get(root, "grid"), err);
  if (!status) status = read_random(s, json_object_get(root, "random"), err);
  if (!status) status = read_seeds(s, json_object_get(root, "seeds"), err);
  s->has_reference = !json_is_false(reference);
  if (!status && s->has_reference && reference) status = read_set(&s->reference, reference, s->path, "reference", err);
  if (!status && s->has_reference && !reference) status = add_set(&s->reference, "quant", json_null(), err);
  if (!status && !s->arms.n && !s->n_axes) status = mx_fail(err, MX_ERR_ARG, "%s: expected arms or a grid", s->path);
  return status;
}

static void free_choice(choice *c) {
  for (size_t i = 0; i < c->n_set; i++) free(c->set[i]);
  free(c->set);
  free(c->name);
}

static void free_axis(axis *a) {
  for (size_t i = 0; i < a->n; i++) free_choice(&a->values[i]);
  free(a->values);
}

static void free_space(space *s) {
  free_choice(&s->base);
  free_choice(&s->reference);
  free_axis(&s->arms);
  for (size_t i = 0; i < s->n_axes; i++) free_axis(&s->grid[i]);
  free(s->seeds);
}

/* ---- expanding ---- */

/* An arm of the expanded space: an arm of the list, if any, and a value of each axis. */
typedef struct arm {
  const choice *parts[MOST_AXES + 3];
  const char *axes[MOST_AXES + 3]; /* the key of each part's axis; NULL: it is not one of several */
  size_t n;
} arm;

static void add_part(arm *a, const choice *part, const char *of) {
  a->parts[a->n] = part;
  a->axes[a->n++] = of;
}

static char *name_of(const arm *a) {
  char *name = NULL;
  size_t size = 0;
  FILE *to = open_memstream(&name, &size);
  if (!to) return NULL;
  int any = 0;
  for (size_t i = 0; i < a->n; i++)
    if (a->parts[i]->name) fprintf(to, "%s%s", any++ ? " " : "", a->parts[i]->name);
  return fclose(to) ? NULL : name;
}

static int compare_names(const void *a, const void *b) { return strcmp(a, b); }

/* A run of this arm and seed, the first time it is asked for: drawn arms may repeat, references do. 0 if memory ran out, -1 if it was there. */
static int is_new(void **seen, const char *name, uint64_t seed) {
  char *key;
  if (asprintf(&key, "%llu %s", (unsigned long long)seed, name) < 0) return 0;
  char *const *found = tsearch(key, seen, compare_names);
  if (found && *found == key) return 1;
  free(key);
  return found ? -1 : 0;
}

static mx_status add_levels(mx_sweep_run *r, const arm *a, mx_error *err) {
  mx_sweep_level *levels = calloc(a->n + 1, sizeof *levels);
  r->levels = levels;
  if (!levels) return no_memory(err);
  for (size_t i = 0; i < a->n; i++) {
    if (!a->axes[i]) continue;
    mx_sweep_level *l = &levels[r->n_levels++];
    *l = (mx_sweep_level){strdup(a->axes[i]), strdup(a->parts[i]->name)};
    if (!l->axis || !l->level) return no_memory(err);
  }
  return MX_OK;
}

static mx_status add_run(mx_sweep *sweep, const space *s, const arm *a, const char *name, const char *reference, uint64_t seed, mx_error *err) {
  const int fresh = is_new(s->seen, name, seed);
  if (fresh <= 0) return fresh ? MX_OK : no_memory(err);
  if (sweep->n_runs == MOST_RUNS) return mx_fail(err, MX_ERR_ARG, "more than %d runs", MOST_RUNS);
  mx_sweep_run *more = realloc(sweep->runs, (sweep->n_runs + 1) * sizeof *more);
  if (!more) return no_memory(err);
  sweep->runs = more;
  mx_sweep_run *r = &more[sweep->n_runs++];
  size_t n = 1;
  for (size_t i = 0; i < a->n; i++) n += a->parts[i]->n_set;
  char **set = calloc(n, sizeof *set), *id = malloc(33), seed_of[48];
  *r = (mx_sweep_run){.arm = strdup(name), .reference = reference ? strdup(reference) : NULL, .seed = seed, .id = id, .config = sweep->config};
  r->set = (const char *const *)set;
  if (!set || !id || !r->arm || (reference && !r->reference)) return no_memory(err);
  snprintf(seed_of, sizeof seed_of, "train.seed=%llu", (unsigned long long)seed);
  for (size_t i = 0; i < a->n; i++)
    for (size_t k = 0; k < a->parts[i]->n_set; k++)
      if (!(set[r->n_set++] = strdup(a->parts[i]->set[k]))) return no_memory(err);
  if (!(set[r->n_set++] = strdup(seed_of))) return no_memory(err);
  mx_status status = add_levels(r, a, err);
  if (status) return status;
  mx_error why;
  const mx_train_options how = {.config = sweep->config, .set = r->set, .n_set = r->n_set};
  status = mx_train_identity(id, &how, &why);
  return status ? mx_fail(err, status, "arm '%s': %s", name, why.text) : MX_OK;
}

/* The i-th combination; `arms` vary slowest, the last axis fastest. */
static arm arm_at(const space *s, size_t i) {
  arm a = {.n = 0};
  size_t of[MOST_AXES + 1];
  for (size_t k = s->n_axes; k-- > 0; i /= s->grid[k].n) of[k + 1] = i % s->grid[k].n;
  of[0] = i;
  add_part(&a, &s->base, NULL);
  if (s->arms.n) add_part(&a, &s->arms.values[of[0]], "arms");
  for (size_t k = 0; k < s->n_axes; k++) add_part(&a, &s->grid[k].values[of[k + 1]], s->grid[k].key);
  return a;
}

/* What this arm is compared with: the reference's keys, then the axes that leave "quant" alone. */
static arm reference_of(const space *s, const arm *a) {
  static const choice name = {.name = (char *)"reference"};
  arm r = {.n = 0};
  add_part(&r, &s->base, NULL);
  add_part(&r, &name, NULL);
  add_part(&r, &s->reference, NULL);
  for (size_t i = s->arms.n ? 2 : 1; i < a->n; i++) {
    int differs = 0;
    for (size_t k = 0; k < s->grid[i - (s->arms.n ? 2 : 1)].n; k++) differs |= s->grid[i - (s->arms.n ? 2 : 1)].values[k].of_quant;
    if (!differs) add_part(&r, a->parts[i], a->axes[i]);
  }
  return r;
}

static mx_status add_arm(mx_sweep *sweep, const space *s, const arm *a, int references, mx_error *err) {
  const arm of = reference_of(s, a);
  char *name = name_of(a), *reference = s->has_reference ? name_of(&of) : NULL;
  mx_status status = name && (reference || !s->has_reference) ? MX_OK : no_memory(err);
  for (size_t i = 0; i < s->n_seeds && !status; i++) {
    if (!references)
      status = add_run(sweep, s, a, name, reference, s->seeds[i], err);
    else if (s->has_reference)
      status = add_run(sweep, s, &of, reference, NULL, s->seeds[i], err);
  }
  free(name);
  free(reference);
  return status;
}

static mx_status expand(mx_sweep *sweep, const space *s, mx_error *err) {
  size_t all = s->arms.n ? s->arms.n : 1;
  for (size_t k = 0; k < s->n_axes; k++)
    if (__builtin_mul_overflow(all, s->grid[k].n, &all)) return mx_fail(err, MX_ERR_ARG, "%s: the grid has too many combinations", s->path);
  const size_t n = s->n_random ? s->n_random : all;
  if (n > MOST_RUNS) return mx_fail(err, MX_ERR_ARG, "%s: %zu arms, expected at most %d; \"random\" draws some of them", s->path, n, MOST_RUNS);
  mx_status status = MX_OK;
  for (int references = 1; references >= 0; references--)
    for (size_t i = 0; i < n && !status; i++) {
      /* 64 random bits modulo the combinations: none is likelier by more than all / 2^64. */
      const uint64_t draw = mx_random(s->random_seed, MX_STREAM_TRAIN, 2 * i) | (uint64_t)mx_random(s->random_seed, MX_STREAM_TRAIN, 2 * i + 1)
                                                                                    << 32;
      const arm a = arm_at(s, s->n_random ? (size_t)(draw % all) : i);
      status = add_arm(sweep, s, &a, references, err);
    }
  return status;
}

/* ---- the whole ---- */

static char *beside(const char *path, const char *file) {
  const char *slash = strrchr(path, '/');
  char *joined;
  return asprintf(&joined, "%.*s%s", slash && *file != '/' ? (int)(slash - path + 1) : 0, path, file) < 0 ? NULL : joined;
}

static mx_status read_json(json_t **root, char **text, const char *path, mx_error *err) {
  FILE *f = fopen(path, "r");
  if (!f) return mx_fail(err, MX_ERR_IO, "%s: %s", path, strerror(errno));
  size_t size = 0;
  json_error_t why = {0};
  errno = 0;
  const ssize_t n = getdelim(text, &size, 0, f); /* JSON has no zero byte, so this is all of it */
  const int failed = ferror(f), reason = errno;
  fclose(f);
  if (failed) return mx_fail(err, MX_ERR_IO, "%s: %s", path, strerror(reason));
  *root = json_loadb(n > 0 ? *text : "", n > 0 ? (size_t)n : 0, JSON_REJECT_DUPLICATES, &why);
  return *root ? MX_OK : mx_fail(err, MX_ERR_FORMAT, "%s: line %d, column %d: %s", path, why.line, why.column, why.text);
}

mx_status mx_sweep_read(mx_sweep **out, const char *path, mx_error *err) {
  if (!out || !path) return mx_fail(err, MX_ERR_ARG, "NULL argument");
  *out = NULL;
  json_t *root = NULL;
  mx_sweep *sweep = calloc(1, sizeof *sweep);
  void *seen = NULL;
  space s = {.path = path, .seen = &seen};
  mx_status status = sweep ? read_json(&root, &sweep->text, path, err) : no_memory(err);
  const char *config = json_string_value(json_object_get(root, "config"));
  if (!status && !config) status = mx_fail(err, MX_ERR_ARG, "%s: config: expected the path of a configuration", path);
  if (!status && !(sweep->config = beside(path, config))) status = no_memory(err);
  if (!status) status = read_space(&s, root, err);
  if (!status) status = expand(sweep, &s, err);
  if (!status) status = mxi_claims_check(sweep, json_object_get(root, "claims"), path, err);
  free_space(&s);
  tdestroy(seen, free);
  json_decref(root);
  if (status)
    mx_sweep_free(sweep);
  else
    *out = sweep;
  return status;
}

void mx_sweep_free(mx_sweep *sweep) {
  if (!sweep) return;
  for (size_t i = 0; i < sweep->n_runs; i++) {
    mx_sweep_run *r = &sweep->runs[i];
    for (size_t k = 0; k < r->n_set && r->set; k++) free((char *)r->set[k]);
    free((char **)r->set);
    for (size_t k = 0; k < r->n_levels; k++) free((char *)r->levels[k].axis), free((char *)r->levels[k].level);
    free((mx_sweep_level *)r->levels);
    free((char *)r->arm);
    free((char *)r->reference);
    free((char *)r->id);
  }
  free(sweep->runs);
  free(sweep->config);
  free(sweep->text);
  free(sweep);
}

const mx_sweep_run *mx_sweep_run_at(const mx_sweep *sweep, size_t index) { return sweep && index < sweep->n_runs ? &sweep->runs[index] : NULL; }
