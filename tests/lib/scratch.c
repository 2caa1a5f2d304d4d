/* Makes a folder for the files of one test, and removes it. */
#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "scratch.h"

void scratch_begin(scratch *s) {
  const char *tmp = getenv("TMPDIR");
  snprintf(s->dir, sizeof s->dir, "%s/mxgold-test-XXXXXX", tmp && *tmp ? tmp : "/tmp");
  ck_assert_msg(mkdtemp(s->dir) != NULL, "cannot make %s", s->dir);
}

/* Calls unlink() on every file if asked to. */
static int walk(const scratch *s, int and_remove) {
  DIR *d = opendir(s->dir);
  ck_assert(d != NULL);
  int n = 0;
  for (struct dirent *e; (e = readdir(d));) {
    if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
    n++;
    if (!and_remove) continue;
    char path[600];
    snprintf(path, sizeof path, "%s/%s", s->dir, e->d_name);
    unlink(path);
  }
  closedir(d);
  return n;
}

void scratch_end(scratch *s) {
  walk(s, 1);
  ck_assert_int_eq(rmdir(s->dir), 0);
}

int scratch_count(const scratch *s) { return walk(s, 0); }

const char *scratch_path(scratch *s, const char *name) {
  snprintf(s->path, sizeof s->path, "%s/%s", s->dir, name);
  return s->path;
}

void scratch_write(scratch *s, const char *name, const void *data, size_t n_bytes) {
  FILE *f = fopen(scratch_path(s, name), "wb");
  ck_assert(f != NULL);
  ck_assert_uint_eq(fwrite(data, 1, n_bytes, f), n_bytes);
  ck_assert_int_eq(fclose(f), 0);
}

uint8_t *scratch_read(scratch *s, const char *name, size_t *n_bytes) {
  FILE *f = fopen(scratch_path(s, name), "rb");
  ck_assert_msg(f != NULL, "cannot open %s", s->path);
  size_t n = 0, room = 4096;
  uint8_t *p = malloc(room);
  for (size_t got; (got = fread(p + n, 1, room - n, f)) > 0;)
    if ((n += got) == room) p = realloc(p, room *= 2);
  fclose(f);
  *n_bytes = n;
  return p;
}
