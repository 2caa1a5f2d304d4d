/* Every preset that carries a library's name gives that library's bytes. */
#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../ref/ref.h"
#include "lib/peers.h"
#include "lib/run.h"

static const char *folder(void) { return getenv("PEERS") ? getenv("PEERS") : "tests/peers"; }

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Names of the block quantisers' files, sorted; the casters' files have no codes and are left to test_casts. */
static size_t list(char *names[256]) {
  DIR *d = opendir(folder());
  ck_assert_msg(d != NULL, "cannot open %s", folder());
  size_t n = 0;
  for (struct dirent *e; (e = readdir(d)) && n < 256;) {
    const size_t length = strlen(e->d_name);
    if (length > 12 && !strcmp(e->d_name + length - 12, ".safetensors")) names[n++] = strndup(e->d_name, length - 12);
  }
  closedir(d);
  qsort(names, n, sizeof *names, by_name);
  return n;
}

static void all(peer_quantize *quantize, const char *who) {
  static const char *casters[] = {"amd_host", "cuda_host", "ml_dtypes", "torch", "gfloat-sr"};
  char *names[256], path[512], why[256];
  const size_t n = list(names);
  peer_count total = {0};
  size_t presets = 0;
  for (size_t i = 0; i < n; i++) {
    int caster = 0;
    for (size_t k = 0; k < 5; k++) caster |= !strcmp(names[i], casters[k]);
    if (!caster) {
      peer_count c = {0};
      snprintf(path, sizeof path, "%s/%s.safetensors", folder(), names[i]);
      ck_assert_msg(peers_compare(&c, path, names[i], quantize, why) == 0, "%s: %s", names[i], why);
      if (getenv("PEERS_TABLE")) printf("| %s | %zu | %zu | %s |\n", names[i], c.bytes, c.codes + c.scales + c.tensor_scales, c.table);
      ck_assert_msg(c.codes + c.scales + c.tensor_scales == 0, "%s: %zu codes, %zu scales, %zu tensor scales differ", names[i], c.codes,
                    c.scales, c.tensor_scales);
      total.bytes += c.bytes;
      total.suites += c.suites;
      presets++;
    }
    free(names[i]);
  }
  printf("peers: %s: %zu presets, %zu suites, %zu bytes compared, 0 differ\n", who, presets, total.suites, total.bytes);
  if (!getenv("PEERS")) ck_assert_uint_eq(presets, 118);
}

START_TEST(production_gives_every_librarys_bytes) { all(mx_quantize, "library"); }
END_TEST

START_TEST(reference_gives_every_librarys_bytes) { all(ref_quantize, "reference"); }
END_TEST

int main(void) {
  Suite *s = suite_create("peers");
  TCase *t = tcase_create("bytes");
  tcase_set_timeout(t, 300);
  tcase_add_test(t, production_gives_every_librarys_bytes);
  tcase_add_test(t, reference_gives_every_librarys_bytes);
  suite_add_tcase(s, t);
  return run_suite(s);
}
