# Tests test --plugin: what a kernel says is passed on once, and a run in which it declined everything does not pass.
: "${scratch:?run by tests/run-cli.sh}"
build() { # build NAME C
  printf '#include <stdio.h>\n#include <stdlib.h>\n#include <signal.h>\n#include <unistd.h>\n#include "mxgold/plugin.h"\nint mxgold_quantize(const mxgold_job *job) { %s }\n' "$2" >"$1.c"
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
# Whole suites that it declined are named; a value that is neither 0 nor MXGOLD_DECLINED is a failure, with what the kernel said.
build fails 'fprintf(stderr, "a note\n"); fprintf(stderr, "invalid configuration\n"); return 719;'
"$mxgold" test --plugin ./fails.so --preset ocp-mxfp4 --suite ties --junit fails.xml >"$scratch/stdout" 2>"$scratch/stderr"
[ $? = 1 ] && grep -q 'verdict  *Your kernel fails on [0-9]* x [0-9]*: it returned 719 and said: invalid configuration\.$' "$scratch/stdout" || fail "a kernel that fails: $(cat "$scratch/stdout" "$scratch/stderr")"
[ "$(cat "$scratch/stderr")" = "$(printf 'a note\ninvalid configuration')" ] && grep -q '1 crashed: returned 719, invalid configuration' fails.xml || fail "a kernel that fails: $(cat "$scratch/stderr" fails.xml)"
"$mxgold" test --plugin ./some.so --preset ocp-mxfp4 >"$scratch/stdout" 2>"$scratch/stderr"
grep -q 'verdict  .* Not tested: your kernel declined [0-9]* of 366 tensors, all of ' "$scratch/stdout" || fail "declined some: $(cat "$scratch/stdout")"
awk '/^[a-z]+  +[0-9]/ && NF == 9 && $2 == $9 { s = s (s ? ", " : "") $1 } /^verdict/ { t = $0; sub(/.*all of /, "", t); exit !(s != "" && t == s ".") }' "$scratch/stdout" ||
  fail "the suites that were declined: $(cat "$scratch/stdout")"
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
# A crash: its signal, and which buffer the address belongs to.
finds behind 'job->codes[job->rows * job->code_stride + 3] = 1; return 0;' 'verdict  *Your kernel crashes on .*: SIGSEGV at address 0x[0-9a-f]*, 4 bytes behind the end of codes\.$'
finds below 'job->scales[-8192] = 1; return 0;' 'SIGSEGV at address 0x[0-9a-f]*, 8192 bytes before scales\.$'
finds const 'job->codes[0] = 0; ((float *)job->x)[3] = 1; return 0;' 'SIGSEGV at address 0x[0-9a-f]*, byte 12 of x, which is read-only\.$'
finds null 'volatile int *p = 0; return p[3];' 'SIGSEGV at address 0xc: a NULL pointer\.$'
finds wild 'volatile int *volatile p = (int *)0x123456789000; return *p;' 'SIGSEGV at address 0x123456789000, in none of its buffers\.$'
finds abort 'abort();' 'verdict  *Your kernel crashes on [0-9]* x [0-9]*: SIGABRT\.$'
ulimit -Ss 8192 # it may be without a limit
finds deep 'volatile char big[1 << 24]; big[0] = 1; return big[0] - 1 + (big[1 << 23] = 0);' 'SIGSEGV at address 0x[0-9a-f]*, in none of its buffers\.$'
"$mxgold" test --plugin ./null.so --preset ocp-mxfp4 --suite ties --junit crash.xml >"$scratch/stdout" 2>"$scratch/stderr"
grep -q '1 crashed: SIGSEGV at address 0xc: a NULL pointer, 0 late' crash.xml || fail "JUnit of a crash: $(cat crash.xml)"
# Children that a kernel leaves behind hold nothing up, whether they stay in its group or not; what it prints is no part of the output.
for leave in '' 'setsid();'; do
  build forks "printf(\"{\"); fflush(stdout); if (!fork()) { $leave sleep(20); _exit(0); } return job->rows > 0;"
  SECONDS=0
  "$mxgold" test --plugin ./forks.so --preset ocp-mxfp4 --suite ties --json 2>"$scratch/stderr" | cat >"$scratch/stdout"
  [ $SECONDS -lt 15 ] || fail "a child of the kernel ($leave) held the output open for $SECONDS s"
  python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$scratch/stdout" || fail "what a kernel prints is in the output: $(cat "$scratch/stdout")"
done
build hangs 'if (!fork()) { sleep(20); _exit(0); } for (;;) ;'
SECONDS=0
"$mxgold" test --plugin ./hangs.so --preset ocp-mxfp4 --suite ties --seconds 0.5 2>"$scratch/stderr" | cat >"$scratch/stdout"
[ $SECONDS -lt 15 ] || fail "a kernel that hangs, and its child, held the output open for $SECONDS s"
grep -q 'verdict  *Your kernel does not return in time on' "$scratch/stdout" || fail "a kernel that hangs: $(cat "$scratch/stdout")"
# A run that is interrupted leaves no kernel behind; and whoever started us may ignore the end of children.
rm -f pid
build stays 'FILE *f = fopen("pid.new", "w"); fprintf(f, "%d", (int)getpid()); fclose(f); rename("pid.new", "pid"); for (;;) pause();'
"$mxgold" test --plugin ./stays.so --preset ocp-mxfp4 --suite ties --seconds 600 >"$scratch/stdout" 2>"$scratch/stderr" &
until [ -e pid ] || ! kill -0 $!; do sleep 0.01; done
kill -TERM $!
wait $!
[ $? = 2 ] && [ "$(cat "$scratch/stderr")" = "mxgold: interrupted by SIGTERM, no file was changed" ] || fail "test, interrupted: $(cat "$scratch/stderr")"
runs() { [ -n "$(tr -d '\0' <"/proc/$(cat pid)/cmdline")" ]; } 2>"$scratch/stderr" # not: is dead, and nobody waits for it
for _ in $(seq 1000); do runs || break; sleep 0.01; done
! runs || { kill -9 "$(cat pid)"; fail "a kernel outlives the run that started it"; }
finds terminated 'raise(SIGTERM); return 0;' 'verdict  *Your kernel crashes on [0-9]* x [0-9]*: SIGTERM\.$'
build right 'return job->rows > 0;'
"$mxgold" test --plugin ./right.so --preset ocp-mxfp4 --suite ties >"$scratch/stdout" 2>"$scratch/want"
env --ignore-signal=CHLD "$mxgold" test --plugin ./right.so --preset ocp-mxfp4 --suite ties >"$scratch/stdout" 2>"$scratch/stderr"
cmp -s "$scratch/want" "$scratch/stderr" || fail "with SIGCHLD ignored: $(cat "$scratch/stdout" "$scratch/stderr")"
# A report of an earlier run does not outlive a run that fails.
echo '<testsuite old="yes"/>' >stale.xml
refuses "mxgold: ./none.so: cannot be loaded: cannot open shared object file: No such file or directory, expected a shared object that defines mxgold_quantize" "$mxgold" test --plugin ./none.so --suite ties --junit stale.xml
[ ! -e stale.xml ] || fail "test left a stale report"
echo '<testsuite old="yes"/>' >stale.xml
"$mxgold" verify missing.mxv missing.mxv --junit stale.xml >"$scratch/stdout" 2>&1
[ $? = 2 ] && [ ! -e stale.xml ] || fail "verify left a stale report"
echo '<testsuite old="yes"/>' >stale.xml
"$mxgold" diff missing.safetensors missing.safetensors --junit stale.xml >"$scratch/stdout" 2>&1
[ $? = 2 ] && [ ! -e stale.xml ] || fail "diff left a stale report"
echo 'of mine' >mine.txt
"$mxgold" diff missing.safetensors missing.safetensors --junit mine.txt >"$scratch/stdout" 2>&1
[ "$(cat mine.txt)" = 'of mine' ] || fail "a file that is not a report was taken away"
refuses "mxgold: test: --seconds: expected more than 0" "$mxgold" test --plugin ./nothing.so --seconds -1
rm -f ./*.c ./*.so ./*.xml ./*.txt pid
