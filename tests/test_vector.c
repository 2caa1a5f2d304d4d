/* Tests .mxv: what is written can be read again, and what is malformed is refused with its place. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "lib/run.h"
#include "mxgold/vector.h"

static const char good[] = "# mxv 1\n# elem=e2m1\n# scale.nan=byte=0\n# columns x:32:2 codes:4:2 scale:8:1\n"
                           "3f800000 80000000 | 4 8 | 7f\n7fc00000 00000001 | 7 0 | ff\n# end 2\n";

START_TEST(round_trip) {
  mx_vectors v;
  ck_assert_int_eq(mx_vectors_parse(&v, "t", good, strlen(good), NULL), MX_OK);
  ck_assert_uint_eq(v.n_cases, 2);
  ck_assert_str_eq(mx_vectors_meta(&v, "scale.nan"), "byte=0");
  ck_assert_uint_eq(mx_vectors_get(&v, 0, 0, 1), 0x80000000u);
  ck_assert_uint_eq(mx_vectors_get(&v, 1, 0, 1), 8);
  ck_assert_uint_eq(mx_vectors_get(&v, 2, 1, 0), 255);
  char *text;
  size_t n;
  FILE *to = open_memstream(&text, &n);
  ck_assert_int_eq(mx_vectors_print(&v, to), MX_OK);
  fclose(to);
  ck_assert_str_eq(text, good);
  free(text);
  mx_vectors_free(&v);
}
END_TEST

START_TEST(inputs_alone) {
  mx_vectors v;
  const char *t = "# mxv 1\n# columns x:32:2 codes:4:2\n3f800000 80000000\n# end 1\n";
  ck_assert_int_eq(mx_vectors_parse(&v, "t", t, strlen(t), NULL), MX_OK);
  ck_assert_uint_eq(v.n_columns, 2);
  ck_assert_uint_eq(v.n_filled, 1);
  mx_vectors_free(&v);
}
END_TEST

static const struct {
  const char *text, *says;
} bad[] = {
    {"", "mxv 1"},
    {"# mxv 2\n", "mxv 1"},
    {"# mxv 1\n", "header line"},
    {"# mxv 1\n# columns \n# end 0\n", "NAME:BITS:COUNT"},
    {"# mxv 1\n# columns x:0:1\n# end 0\n", "bits 1 to 64"},
    {"# mxv 1\n# columns x:65:1\n# end 0\n", "bits 1 to 64"},
    {"# mxv 1\n# columns x:8:0\n# end 0\n", "bits 1 to 64"},
    {"# mxv 1\n# columns x:8:4294967296\n# end 0\n", "count 1 or more"},
    {"# mxv 1\n# columns x:8:1 x:8:1\n# end 0\n", "new column name"},
    {"# mxv 1\n# b=1\n# a=1\n# columns x:8:1\n# end 0\n", "ascending order"},
    {"# mxv 1\n# a=1\n# a=1\n# columns x:8:1\n# end 0\n", "ascending order"},
    {"# mxv 1\n# noequals\n# columns x:8:1\n# end 0\n", "key=value"},
    {"# mxv 1\n# columns x:8:1\nFF\n# end 1\n", "lower-case"},
    {"# mxv 1\n# columns x:8:1\nfff\n# end 1\n", "number 0 of column x has 3 hexadecimal digits, expected 2"},
    {"# mxv 1\n# columns x:7:1\nff\n# end 1\n", "fits its column"},
    {"# mxv 1\n# columns x:8:2\nff-ff\n# end 1\n", "one blank"},
    {"# mxv 1\n# columns x:8:1\nff\n# end 2\n", "after 1 cases"},
    {"# mxv 1\n# columns x:8:1\nff\n", "# end N"},
    {"# mxv 1\n# columns x:8:1\nff\n# end 1", "# end N"},
    {"# mxv 1\n# columns x:8:1\nff\n# end 1\n\n", "nothing after"},
    {"# mxv 1\r\n# columns x:8:1\r\nff\r\n# end 1\r\n", "byte 7: expected a line feed alone"},
    {"# mxv 1\n# columns x:8:1\r\nff\n# end 1\n", "not CRLF"},
    {"# mxv 1\n# columns x:8:1\nff\r\n# end 1\n", "line 3, byte 26: expected a line feed alone"},
    {"# mxv 1\n# columns x:8:1\nff\nff\r\n# end 2\n", "not CRLF"},
    {"# mxv 1\n# columns x:8:1\nff\n# end 1\r\n", "not CRLF"},
    {"# mxv 1\n# columns x:64:4294967295\n0000000000000000\n# end 1\n", "column x has 1 numbers, expected 4294967295"},
    {"# mxv 1\n# columns x:8:2 y:4:2\nff ff | f\n# end 1\n", "line 3, byte 37: column y has 1 numbers, expected 2"},
    {"# mxv 1\n# columns x:8:2 y:4:2\nff ff |\n# end 1\n", "column y has 0 numbers, expected 2"},
    {"# mxv 1\n# columns x:8:2 y:4:2\nff ff | f f | f\n# end 1\n", "3 columns, expected at most the 2 of the header"},
    {"# mxv 1\n# columns x:8:2 y:4:2\nff ff\nff ff | f f\n# end 2\n",
     "line 3, byte 35: 1 columns, expected the 2 of the header: no column y, which line 4 has"},
    {"# mxv 1\n# columns x:8:2 y:4:2 z:4:1\nff ff\nff ff | f f\n# end 2\n", "line 4, byte 42: 2 columns, expected 1 as on the first line"},
    {"# mxv 1\n# columns x:8:2 y:4:2\nff ff | f f\nff ff\n# end 2\n", "1 columns, expected 2 as on the first line"},
    {"# mxv 1\n# columns x:8:2 y:4:2\nff ff |  f f\n# end 1\n", "one blank between numbers"},
    {"# mxv 1\n# columns x:8:2 y:4:2\nff ff | f f\nff ff | f ff\n# end 2\n", "line 4, byte 52: number 1 of column y has 2 hexadecimal digits"},
};

START_TEST(refused) {
  mx_vectors v;
  mx_error err;
  ck_assert_int_eq(mx_vectors_parse(&v, "t.mxv", bad[_i].text, strlen(bad[_i].text), &err), MX_ERR_FORMAT);
  ck_assert_msg(strstr(err.text, bad[_i].says) && strstr(err.text, "line"), "case %d: %s", _i, err.text);
  ck_assert_uint_eq(v.n_columns, 0);
}
END_TEST

START_TEST(truncated_anywhere) {
  for (size_t n = 0; n < strlen(good); n++) {
    mx_vectors v;
    char *text = malloc(n + 1);
    memcpy(text, good, n);
    ck_assert_int_eq(mx_vectors_parse(&v, "t", text, n, NULL), MX_ERR_FORMAT);
    free(text);
  }
}
END_TEST

int main(void) {
  Suite *s = suite_create("vector");
  TCase *t = tcase_create("mxv");
  tcase_add_test(t, round_trip);
  tcase_add_test(t, inputs_alone);
  tcase_add_loop_test(t, refused, 0, (int)(sizeof bad / sizeof bad[0]));
  tcase_add_test(t, truncated_anywhere);
  suite_add_tcase(s, t);
  return run_suite(s);
}
