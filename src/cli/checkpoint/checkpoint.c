/* Finds the shards of a checkpoint and the tensors in them. */
#include "checkpoint.h"

#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/base/files.h"

static const char suffix[] = ".index.json";

int checkpoint_is_index(const char *path) { return file_ends_with(path, suffix); }

int checkpoint_is_folder(const char *path) {
  struct stat s;
  return !stat(path, &s) && S_ISDIR(s.st_mode);
}

/* How many names of a folder end so; *out: the path of the last. */
static size_t files_of(char **out, const char *folder, const char *end) {
  size_t n = 0;
  DIR *dir = opendir(folder);
  for (struct dirent *e; dir && (e = readdir(dir));) {
    if (!file_ends_with(e->d_name, end)) continue;
    free(*out);
    if (asprintf(out, "%s%s%s", folder, file_ends_with(folder, "/") ? "" : "/", e->d_name) < 0) *out = NULL;
    n++;
  }
  if (dir) closedir(dir);
  return n;
}

static int resolve(char **out, const char *path) {
  *out = NULL;
  if (!checkpoint_is_folder(path)) return (*out = strdup(path)) ? CLI_FINE : cli_error("out of memory");
  const size_t indexes = files_of(out, path, suffix), files = indexes ? 0 : files_of(out, path, ".safetensors");
  if (indexes + files == 1) return *out ? CLI_FINE : cli_error("out of memory");
  if (indexes) return cli_error("%s: a folder with %zu indexes of shards, expected one, or the name of one", path, indexes);
  return cli_error("%s: a folder with %zu .safetensors files and no index of them, expected one file, or the name of one", path, files);
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
  int rc = resolve(&c->from, path);
  c->indexed = !rc && checkpoint_is_index(c->from);
  if (!rc) rc = c->indexed ? read_index(c, c->from) : add(c, c->from) ? CLI_FINE : cli_error("out of memory");
  if (!rc && c->n) qsort(c->names, c->n, sizeof *c->names, compare);
  if (!rc && !(c->paths = calloc(c->n + 1, sizeof *c->paths))) rc = cli_error("out of memory");
  const char *slash = rc ? NULL : strrchr(c->from, '/');
  const int dir = c->indexed && slash ? (int)(slash - c->from + 1) : 0;
  for (size_t i = 0; i < c->n && !rc; i++)
    if (asprintf(&c->paths[i], "%.*s%s", dir, c->from, c->names[i]) < 0) rc = cli_error("out of memory");
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
  free(c->from);
  *c = (checkpoint){0};
}
