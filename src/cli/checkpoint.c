/* Shards of a checkpoint. */
#include "checkpoint.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char suffix[] = ".index.json";

int checkpoint_is_index(const char *path) {
  const size_t n = strlen(path), m = sizeof suffix - 1;
  return n > m && !strcmp(path + n - m, suffix);
}

static int compare(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static int add(checkpoint *c, const char *name) {
  for (size_t i = 0; i < c->n; i++)
    if (!strcmp(c->names[i], name)) return 1;
  char **names = realloc(c->names, (c->n + 1) * sizeof *names);
  if (!names) return 0;
  c->names = names;
  if (asprintf(&names[c->n], "%s", name) < 0) return 0;
  c->n++;
  return 1;
}

/* The index is not ours: a shard's name must stay within the folder. */
static int is_plain_name(const char *s) { return *s && *s != '.' && !strchr(s, '/'); }

static int read_index(checkpoint *c, const char *path) {
  json_error_t error;
  json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &error), *map = root ? json_object_get(root, "weight_map") : NULL;
  if (!root) return cli_error("%s: %s, expected an index of shards in JSON", path, error.text);
  int rc = CLI_FINE;
  if (!json_is_object(map) || !json_object_size(map))
    rc = cli_error("%s: no weight_map, expected {\"weight_map\": {\"TENSOR\": \"SHARD\", ...}}", path);
  const char *key;
  json_t *value;
  if (!rc) json_object_foreach(map, key, value) {
      const char *name = json_string_value(value);
      if (!name || !is_plain_name(name)) {
        rc = cli_error("%s: weight_map of '%.80s' is not the name of a file in the same folder", path, key);
        break;
      }
      if (!add(c, name)) {
        rc = cli_error("out of memory");
        break;
      }
    }
  json_decref(root);
  return rc;
}

int checkpoint_open(checkpoint *c, const char *path) {
  *c = (checkpoint){0};
  c->indexed = checkpoint_is_index(path);
  int rc = c->indexed ? read_index(c, path) : add(c, path) ? CLI_FINE : cli_error("out of memory");
  if (!rc && c->n) qsort(c->names, c->n, sizeof *c->names, compare);
  if (!rc && !(c->paths = calloc(c->n + 1, sizeof *c->paths))) rc = cli_error("out of memory");
  const char *slash = strrchr(path, '/');
  const int dir = c->indexed && slash ? (int)(slash - path + 1) : 0;
  for (size_t i = 0; i < c->n && !rc; i++)
    if (asprintf(&c->paths[i], "%.*s%s", dir, path, c->names[i]) < 0) rc = cli_error("out of memory");
  if (rc) checkpoint_close(c);
  return rc;
}

void checkpoint_close(checkpoint *c) {
  for (size_t i = 0; i < c->n; i++) {
    free(c->names[i]);
    if (c->paths) free(c->paths[i]);
  }
  free(c->names);
  free(c->paths);
  *c = (checkpoint){0};
}
