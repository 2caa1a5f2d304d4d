/* Tests how many threads a call gets: any number is allowed, none ends the process, and a child of fork() does not wait for threads of its
 * parent. */
#include <check.h>
#include <limits.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/run.h"
#include "mxgold/mxgold.h"

enum { ROWS = 2048, COLS = 1024 };

static float *values(void) {
  float *x = malloc(ROWS * COLS * sizeof *x);
  ck_assert_ptr_nonnull(x);
  for (size_t i = 0; i < ROWS * COLS; i++) x[i] = (float)((i * 2654435761u) % 2000) / 100 - 10;
  return x;
}

static void digest_with(char out[33], const float *x, int n_threads) {
  const mx_spec spec = {0};
  mx_tensor t;
  const mx_exec exec = {.n_threads = n_threads};
  ck_assert_int_eq(mx_tensor_alloc(&t, ROWS, COLS, &spec), MX_OK);
  ck_assert_int_eq(mx_quantize(&t, x, ROWS, COLS, COLS, &spec, &exec, NULL), MX_OK);
  mx_digest(out, t.codes, t.rows * t.code_stride);
  mx_tensor_free(&t);
}

START_TEST(any_number_is_allowed) {
  const int most = omp_get_num_procs() > MX_MOST_THREADS ? omp_get_num_procs() : MX_MOST_THREADS;
  ck_assert_int_eq(mx_thread_count(1), 1);
  ck_assert_int_eq(mx_thread_count(0), omp_get_max_threads());
  ck_assert_int_eq(mx_thread_count(-5), omp_get_max_threads());
  ck_assert_int_eq(mx_thread_count(MX_MOST_THREADS), MX_MOST_THREADS);
  static const int many[] = {MX_MOST_THREADS + 1, 32768, 70000, 1000000000, INT_MAX};
  float *x = values();
  char one[33], all[33];
  digest_with(one, x, 1);
  for (size_t i = 0; i < sizeof many / sizeof *many; i++) {
    ck_assert_int_eq(mx_thread_count(many[i]), many[i] < most ? many[i] : most);
    digest_with(all, x, many[i]);
    ck_assert_str_eq(one, all);
  }
  free(x);
}
END_TEST

START_TEST(openmp_is_held_as_well) {
  omp_set_num_threads(1000000);
  ck_assert_int_le(mx_thread_count(0), omp_get_num_procs() > MX_MOST_THREADS ? omp_get_num_procs() : MX_MOST_THREADS);
}
END_TEST

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* their shadow memory needs more address space than any limit allows */
/* Leaves address space for only a few stacks. (Check runs each test in its own process.) */
START_TEST(no_more_than_can_be_started) {
  float *x = values();
  char one[33], few[33];
  digest_with(one, x, 1);
  unsigned long pages = 0;
  FILE *f = fopen("/proc/self/statm", "r");
  ck_assert(f && fscanf(f, "%lu", &pages) == 1);
  fclose(f);
  const rlim_t most = pages * (rlim_t)sysconf(_SC_PAGESIZE) + ((rlim_t)100 << 20);
  ck_assert_int_eq(setrlimit(RLIMIT_AS, &(struct rlimit){most, most}), 0);
  const int n = mx_thread_count(200);
  ck_assert_int_ge(n, 1);
  ck_assert_int_lt(n, 200);
  digest_with(few, x, 200);
  ck_assert_str_eq(one, few);
  free(x);
}
END_TEST
#endif

/* The child sends its digest through a pipe; a child that hangs is ended by its alarm and writes nothing. */
START_TEST(a_child_of_fork) {
  float *x = values();
  char here[33], there[64] = "";
  int ends[2], status, count = 0;
  digest_with(here, x, 4); /* now the parent has a team of threads */
  ck_assert_int_eq(pipe(ends), 0);
  const pid_t pid = fork();
  if (!pid) {
    alarm(20);
    digest_with(there, x, 4);
    count = mx_thread_count(4);
    if (write(ends[1], there, 33) != 33 || write(ends[1], &count, sizeof count) != sizeof count) _exit(1);
    _exit(0);
  }
  ck_assert_int_gt(pid, 0);
  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  ck_assert_int_eq(read(ends[0], there, 33), 33);
  ck_assert_str_eq(here, there);
  ck_assert_int_eq(read(ends[0], &count, sizeof count), sizeof count);
  ck_assert_int_eq(count, 1);
  ck_assert_int_eq(mx_thread_count(4), 4); /* the parent goes on as before */
  digest_with(there, x, 4);
  ck_assert_str_eq(here, there);
  free(x);
}
END_TEST

/* If the parent never had a second thread, the child may have all of them. */
START_TEST(a_child_of_one_thread) {
  int status;
  const pid_t pid = fork();
  if (!pid) {
    alarm(20);
    _exit(mx_thread_count(3));
  }
  ck_assert_int_gt(pid, 0);
  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  ck_assert(WIFEXITED(status));
  ck_assert_int_eq(WEXITSTATUS(status), 3);
}
END_TEST

int main(void) {
  Suite *s = suite_create("threads");
  TCase *t = tcase_create("counts");
  tcase_set_timeout(t, 120);
  tcase_add_test(t, any_number_is_allowed);
  tcase_add_test(t, openmp_is_held_as_well);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  tcase_add_test(t, no_more_than_can_be_started);
#endif
  tcase_add_test(t, a_child_of_fork);
  tcase_add_test(t, a_child_of_one_thread);
  suite_add_tcase(s, t);
  return run_suite(s);
}
