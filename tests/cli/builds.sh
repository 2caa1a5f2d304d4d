# Tests builds on other machines: big-endian stops the compiler with one line, no level of optimisation warns, and a new compiler's warning stops only a developer's build.
: "${scratch:?run by tests/run-cli.sh}"
cc=$(command -v ${CC:-cc} | tail -1) # CC may be "ccache gcc"
flags="-std=c11 -D_GNU_SOURCE -fPIC -I$root -I$root/include -I$root/src"

# Every header that comes to status.h, and so whatever includes one of them; one source of the library.
refused=0
for file in "$root"/include/mxgold/*.h "$root/src/core/tensor.c"; do
  # shellcheck disable=SC2086
  "$cc" $flags -w -M -x c "$file" | grep -q 'mxgold/status\.h' || continue
  # shellcheck disable=SC2086
  "$cc" $flags -w -U__BYTE_ORDER__ -D__BYTE_ORDER__=__ORDER_BIG_ENDIAN__ -fsyntax-only -include "$file" -x c /dev/null 2>said && fail "$(basename "$file") compiles for big-endian"
  [ "$(grep -c 'error: ' said)" = 1 ] && grep -q 'error: .*mxgold is for little-endian processors' said ||
    fail "$(basename "$file"), big-endian, says other than one line: $(cat said)"
  refused=$((refused + 1))
done
[ $refused -gt 15 ] || fail "$refused files were tried for big-endian"

# Files that once warned at one level or the other, and those with the most buffers of text: every warning is an error. make check-all compiles all files.
warn=$(sed -n 's/^WARN *:= //p' "$root/Makefile")
some="src/verify/bugs/maps.c src/cli/ablate/sweep.c src/cli/ablate/print.c src/cli/ablate/verdict.c src/kernels/quantize.c src/core/spec_json.c"
[ -z "${CHECK_ALL-}" ] || some=$(cd "$root" && find src ref -name '*.c' ! -name '*_avx2.c' ! -name '*_avx512.c' ! -name '*_amx.c' ! -name '*_neon.c')
for level in -O0 -O1 -Os; do
  for file in $some; do
    [ -f "$root/$file" ] || fail "$file is not there"
    # shellcheck disable=SC2086
    "$cc" $flags $warn -Werror $level -fopenmp -ffp-contract=off -c "$root/$file" -o one.o 2>said || fail "$level $file: $(grep -m 1 error said)"
  done
done

# A compiler that warns of everything: a user's build goes on, a developer's stops.
mkdir -p tree/src
cat >odd.sh <<P
#!/bin/sh
# The compiler of next year: a warning of its own in each file that it compiles.
case " \$* " in *" -c "*) exec "$cc" -Wunused-macros -DNOBODY_USES_THIS=1 -include "$PWD/odd.h" "\$@" ;; esac
exec "$cc" "\$@"
P
echo '#warning "the compiler of next year"' >odd.h
chmod +x odd.sh
out=src/core/nearest
build() { # build NAME=VALUE...: as a user does, not as the make that runs this test
  env -u DEV -u MAKEFLAGS -u MFLAGS -u CONFIG make -s -C "$root" INSTALL=no CONFIG="faults-$$" CC="$PWD/odd.sh" "$@" "build/faults-$$/obj/$out.o" >said 2>&1
}
build || fail "a warning stops a user's build: $(cat said)"
grep -q 'the compiler of next year' said || fail "the compiler of next year did not warn: $(cat said)"
rm -f "$root/build/faults-$$/obj/$out.o"
build DEV=0 || fail "DEV=0: a warning stops the build: $(cat said)"
rm -f "$root/build/faults-$$/obj/$out.o"
build DEV=1 && fail "DEV=1: a warning does not stop a developer's build"
grep -q 'error: .*the compiler of next year' said || fail "DEV=1 fails for another reason: $(cat said)"
rm -rf "$root/build/faults-$$"

# bench-gemm compares with the fastest kernels that OpenBLAS has here: one that knows neither a core type nor the processor, dies of another, and is fastest with a
# third. The library beside the program is of its flags; only a plain one can be linked so.
library=$(dirname "$mxgold")/libmxgold.a
if [ "$(basename "$(dirname "$mxgold")")" = release ] && [ -f "$library" ]; then
  cat >cblas.h <<'C'
enum { CblasRowMajor = 101, CblasNoTrans = 111, CblasTrans = 112 };
void cblas_sgemm(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *, int);
C
  cat >blas.c <<'C'
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
static const struct core { const char *name; double ms; } cores[] = {{"Prescott", 15}, {"Haswell", 4}, {"SkylakeX", 1}, {"Cooperlake", 0}, {"Sapphirerapids", 6}};
static const struct core *core(void) {
  const char *asked = getenv("OPENBLAS_CORETYPE");
  for (size_t i = 0; asked && i < sizeof cores / sizeof *cores; i++)
    if (!strcmp(asked, cores[i].name)) return &cores[i];
  return &cores[0];
}
__attribute__((constructor)) static void said(void) {
  FILE *f = fopen("parts", "a");
  if (getenv("BENCH_GEMM_PART")) fprintf(f, "%s %s\n", getenv("BENCH_GEMM_PART"), core()->name);
  fclose(f);
}
void openblas_set_num_threads(int n) { (void)n; }
char *openblas_get_corename(void) { return (char *)core()->name; }
void cblas_sgemm(int o, int ta, int tb, int m, int n, int k, float a, const float *x, int lx, const float *y, int ly, float b, float *d, int ld) {
  (void)o, (void)ta, (void)tb, (void)m, (void)n, (void)k, (void)a, (void)x, (void)lx, (void)y, (void)ly, (void)b, (void)d, (void)ld;
  if (core()->ms == 0) raise(SIGILL);
  struct timespec t;
  double from, now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  from = (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
  do {
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    now = (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
  } while (now < from + core()->ms);
}
C
  # shellcheck disable=SC2086
  "$cc" -I"$PWD" $flags -O1 -fopenmp "$root/bench/gemm.c" blas.c "$library" -ljansson -lxxhash -lm -o gemm || fail "bench/gemm.c against an OpenBLAS of its own"
  : >parts
  ./gemm 3 1 "no line" >said || fail "bench/gemm: exit $?"
  [ "$(sed -n 's/^OPENBLAS_CORETYPE=\([A-Za-z]*\): .*/\1/p; s/^OpenBLAS by itself: \([A-Za-z]*\), .*/\1/p' said | tr '\n' ' ')" = "Prescott Haswell SkylakeX Sapphirerapids " ] ||
    fail "bench/gemm tries other core types: $(cat said)"
  [ "$(grep -v '^sgemm ' parts | tr '\n' ' ')" = "fastest SkylakeX avx2 Haswell " ] || fail "bench/gemm compares with other kernels: $(cat parts)"
fi
