# test --plugin: what a kernel says is passed on once, and a run in which it declined everything is not a pass.
build() { # build NAME C
  printf '#include <stdio.h>\n#include <stdlib.h>\n#include "mxgold/plugin.h"\nint mxgold_quantize(const mxgold_job *job) { %s }\n' "$2" >"$1.c"
  ${CC:-cc} -O1 -shared -fPIC -I"$root/include" "$1.c" -o "$1.so" || fail "cannot build $1.c"
}
build never 'fprintf(stderr, "no device, SKIPPED\n"); return job->rows > 0;'
"$mxgold" test --plugin ./never.so --preset ocp-mxfp4 --junit never.xml >"$scratch/stdout" 2>"$scratch/stderr"
[ $? = 2 ] || fail "a kernel that declined everything: expected exit 2"
[ "$(cat "$scratch/stderr")" = "mxgold: ./never.so: nothing was tested: the kernel declined all 366 tensors: no device, SKIPPED" ] ||
  fail "declined everything: said $(cat "$scratch/stderr")"
[ "$(grep -o '<skipped/>' never.xml | wc -l)" = 11 ] && grep -q 'failures="0" skipped="11"' never.xml || fail "declined everything: $(cat never.xml)"
build silent 'return job->rows > 0;'
"$mxgold" test --plugin ./silent.so --preset ocp-mxfp4 --suite ties >"$scratch/stdout" 2>"$scratch/stderr"
[ $? = 2 ] && [ "$(cat "$scratch/stderr")" = "mxgold: ./silent.so: nothing was tested: the kernel declined all 1 tensors" ] || fail "declined: $(cat "$scratch/stderr")"
# Declines all but the large ones, and fills nothing: what ran counts, and why the others did not is said once.
build some 'fprintf(stderr, "on a card\n"); if (job->rows < 8) { fprintf(stderr, "too small\n"); return 1; } return 0;'
"$mxgold" test --plugin ./some.so --preset ocp-mxfp4 >"$scratch/stdout" 2>"$scratch/stderr"
[ $? = 1 ] && [ "$(cat "$scratch/stderr")" = "$(printf 'on a card\ntoo small')" ] || fail "declined some: $(cat "$scratch/stderr")"
# More than a pipe holds: nothing waits.
build talks 'for (int i = 0; i < 100000; i++) fprintf(stderr, "line %d of a hundred thousand\n", i); return job->rows > 0;'
"$mxgold" test --plugin ./talks.so --preset ocp-mxfp4 --suite ties >"$scratch/stdout" 2>"$scratch/stderr"
[ $? = 2 ] || fail "a kernel that talks: $(cat "$scratch/stdout")"
# Writes that no guard page meets, and a process that ends by itself, are findings with a name.
finds() { # finds NAME C WORDS
  build "$1" "$2"
  "$mxgold" test --plugin "./$1.so" --preset ocp-mxfp4 --suite tails >"$scratch/stdout" 2>"$scratch/stderr"
  [ $? = 1 ] && grep -q "$3" "$scratch/stdout" || fail "$1: $(cat "$scratch/stdout" "$scratch/stderr")"
}
finds before 'job->codes[-1] = 1; return 0;' 'verdict  *Your kernel writes before or behind codes'
finds scales 'job->scales[-2] = 1; return 0;' 'verdict  *Your kernel writes before or behind scales'
finds input '((float *)job->x)[0] = 1; return 0;' '^tails  *1  *0  *0  *0  *0  *1  *0  *0$'
finds leaves 'exit(0);' 'verdict  *Your kernel ends its own process'
finds nothing 'return 0;' 'verdict  *Your kernel writes no scales'
refuses "mxgold: test: --seconds: expected more than 0" "$mxgold" test --plugin ./nothing.so --seconds -1
rm -f ./*.c ./*.so ./*.xml
