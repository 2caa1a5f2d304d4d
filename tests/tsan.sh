#!/bin/sh
# Are threads free of races, and would one be seen? tsan.sh "COMPILER FLAGS" PROGRAM TEST_THREADS, all built with -fsanitize=thread by clang, whose OpenMP tells
# ThreadSanitizer of its barriers through Archer (gcc's libgomp does not, and a program without a race is reported). Exit 1 if not.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
status=0
export TSAN_OPTIONS="exitcode=66 ignore_noninstrumented_modules=1"
bad() {
  echo "tsan: $*" >&2
  status=1
}
# What it must say of two programs: the first waits for its threads before it reads what they wrote, the second's threads add to one number.
cat >clean.c <<'C'
#include <stdio.h>
#include <stdlib.h>
int main(void) {
  int *x = calloc(1000, sizeof *x);
  long sum = 0;
#pragma omp parallel for num_threads(4)
  for (int i = 0; i < 1000; i++) x[i] = i;
#pragma omp parallel for num_threads(3) reduction(+ : sum)
  for (int i = 0; i < 1000; i++) sum += x[999 - i];
  printf("%ld\n", sum);
  free(x);
  return 0;
}
C
cat >race.c <<'C'
#include <stdio.h>
int main(void) {
  int n = 0;
#pragma omp parallel for num_threads(4)
  for (int i = 0; i < 100000; i++) n += i & 1;
  printf("%d\n", n);
  return 0;
}
C
for name in clean race; do
  # shellcheck disable=SC2086
  $1 "$name.c" -o "$name"
done
./clean >said 2>&1 || bad "a program without a race is reported: $(grep -m 1 SUMMARY said || tail -1 said). Is Archer beside clang's libomp?"
./race >said 2>&1 && bad "a planted race is not noticed"
grep -q 'SUMMARY: ThreadSanitizer: data race .*race.c' said || bad "a planted race is not named: $(tail -1 said)"
[ $status = 0 ] || exit 1
echo "tsan: a planted race is found, a program without one is clean"
run() { # run NAME COMMAND...: 0 or 1 is what a command may exit with
  name=$1
  shift
  rc=0
  "$@" >said 2>&1 || rc=$?
  if [ $rc -gt 1 ] || grep -q 'WARNING: ThreadSanitizer' said; then
    bad "$name: exit $rc: $(grep -m 1 SUMMARY said || tail -1 said)"
  else
    echo "tsan: $name: clean"
  fi
}
run test_threads "$3"
x=$root/tests/data/minilm_slices.safetensors
run quantize "$2" quantize "$x:weight" --preset te-nvfp4 --threads 4 -o q.safetensors
run "quantize by another rule" "$2" quantize "$x:weight" --preset nvfp4 --threads 3 -o r.safetensors
run "quantize --all" "$2" quantize "$x" --all --fake --preset ocp-mxfp4 --threads 4 -o all.safetensors
run diff "$2" diff q.safetensors r.safetensors --input "$x:weight" --threads 4
run gemm "$2" gemm q.safetensors r.safetensors --threads 4 -o d.npy
run ablate "$2" ablate "$x" -p ocp-mxfp4,nvfp4,hif4 --set elem.round=rne,sr --threads 4 --state state
run "ablate --six" "$2" ablate --six gen:gaussian gen:laplace gen:uniform --shape 64x64 -p recipe-nvfp4 --threads 4
run identify "$2" identify --input "$x:weight" --codes q.safetensors:codes --scales q.safetensors:scales --quick
exit $status
