/* Makes a folder for the files of one test, and removes it. */
#define _XOPEN_SOURCE 700
#include <check.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scratch.h"

void scratch_begin(scratch *s) {
  const char *tmp = getenv("TMPDIR");
  snprintf(s->dir, sizeof s->dir, "%s/mxgold-test-XXXXXX", tmp && *tmp ? tmp : "/tmp");
  ck_assert_msg(mkdtemp(s->dir) != NULL, "cannot make %s", s->dir);
}

static int seen;

static int see(const char *path, const struct stat *about, int type, struct FTW *where) {
  (void)path, (void)about, (void)where;
  seen += type != FTW_DP;
  return 0;
}

static int remove_one(const char *path, const struct stat *about, int type, struct FTW *where) {
  (void)about, (void)type, (void)where;
  return remove(path);
}

static void walk(const scratch *s, int (*each)(const char *, const struct stat *, int, struct FTW *)) {
  seen = 0;
  ck_assert_int_eq(nftw(s->dir, each, 16, FTW_DEPTH | FTW_PHYS), 0);
}

void scratch_end(scratch *s) { walk(s, remove_one); }

int scratch_count(const scratch *s) {
  walk(s, see);
  return seen;
}

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
