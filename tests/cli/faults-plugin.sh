# Tests what test --plugin says of the loader, its limits on what a kernel takes, and a kernel that kills or stops its parent.
: "${scratch:?run by tests/run-cli.sh}"
build() { # build NAME C [FUNCTIONS]
  printf '#define _GNU_SOURCE\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <signal.h>\n#include <sys/prctl.h>\n#include <unistd.h>\n#include "mxgold/plugin.h"\nextern int nowhere(void);\n%s\nint mxgold_quantize(const mxgold_job *job) { %s }\n' "${3-}" "$2" >"$1.c"
  ${CC:-cc} -O1 -shared -fPIC -I"$root/include" "$1.c" -o "$1.so" || fail "cannot build $1.c"
}
build undefined 'return nowhere() + (int)job->rows;'
refuses "mxgold: ./undefined.so: cannot be loaded: undefined symbol: nowhere, expected a shared object that defines mxgold_quantize" \
  "$mxgold" test --plugin ./undefined.so --suite ties
refuses "mxgold: undefined.so: cannot be loaded: cannot open shared object file: No such file or directory; for a file of this folder, --plugin ./undefined.so, expected a shared object that defines mxgold_quantize" \
  "$mxgold" test --plugin undefined.so --suite ties
for signal in KILL TERM SEGV; do
  build parent "kill(getppid(), SIG$signal); sleep(5); return (int)job->rows > 0;"
  "$mxgold" test --plugin ./parent.so --suite ties >"$scratch/stdout" 2>"$scratch/stderr"
  rc=$?
  [ $rc = 2 ] && [ "$(wc -l <"$scratch/stderr")" = 1 ] || fail "a kernel that sends its parent SIG$signal: exit $rc, $(cat "$scratch/stderr")"
done
build parent "kill(getppid(), SIGKILL); sleep(5); return (int)job->rows > 0;"
refuses "mxgold: ./parent.so: the process that ran the kernel was ended by signal 9: does the kernel signal its parent?" "$mxgold" test --plugin ./parent.so --suite ties
# A parent that is stopped ends, and so do the kernel and its own child.
gone() { # gone FILE: the process whose number is in the file has ended
  for _ in $(seq 500); do
    case $(sed 's/.*) //; s/ .*//' "/proc/$(cat "$1")/stat" 2>/dev/null) in '' | Z | X) return ;; esac
    sleep 0.01
  done
  kill -9 "$(cat "$1")"
  fail "$1 is left behind by a kernel that stops its parent"
}
notes='static void note(const char *to, int pid) { FILE *f = fopen("new", "w"); fprintf(f, "%d", pid); fclose(f); rename("new", to); }'
for signal in STOP:19 TSTP:20; do
  build stops "note(\"parent\", getppid()); note(\"kernel\", getpid()); int pid = fork(); if (!pid) for (;;) pause(); note(\"child\", pid); kill(getppid(), SIG${signal%:*}); for (;;) pause();" "$notes"
  SECONDS=0
  refuses "mxgold: ./stops.so: the process that ran the kernel was stopped by signal ${signal#*:}: does the kernel signal its parent?" \
    timeout -s KILL 60 "$mxgold" test --plugin ./stops.so --suite ties --seconds 600
  [ $SECONDS -lt 20 ] || fail "a kernel that stops its parent took $SECONDS s"
  for file in parent kernel child; do gone $file; done
  rm -f parent kernel child
done
# A signal ends the run, the kernel and its child, also where the kernel has given up that its parent's end is its own.
for signal in INT TERM; do
  build waits "prctl(PR_SET_PDEATHSIG, 0); note(\"parent\", getppid()); int pid = fork(); if (!pid) for (;;) pause(); note(\"child\", pid); note(\"kernel\", getpid()); for (;;) pause();" "$notes"
  env --default-signal=INT,TERM,HUP "$mxgold" test --plugin ./waits.so --suite ties --seconds 600 >"$scratch/stdout" 2>"$scratch/stderr" &
  until [ -e kernel ] || ! kill -0 $!; do sleep 0.01; done
  kill -$signal $!
  wait $!
  [ $? = 2 ] && [ "$(cat "$scratch/stderr")" = "mxgold: interrupted by SIG$signal, no file was changed" ] || fail "SIG$signal: $(cat "$scratch/stdout" "$scratch/stderr")"
  for file in parent kernel child; do gone $file; done
  rm -f parent kernel child
done
finds() { # finds NAME C WORDS OPTION...
  build "$1" "$2"
  "$mxgold" test --plugin "./$1.so" --preset ocp-mxfp4 --suite ties "${@:4}" >"$scratch/stdout" 2>"$scratch/stderr"
  [ $? = 1 ] && grep -q "$3" "$scratch/stdout" || fail "$1: $(cat "$scratch/stdout" "$scratch/stderr")"
}
hungry='char *p = malloc(200 << 20); if (!p) { fprintf(stderr, "no memory\n"); return -1; } memset(p, (int)job->rows, 200 << 20); return p[5] == 0;'
case $mxgold in
*asan* | *tsan*) ;;
*) finds memory "$hungry" 'it returned -1 and said: no memory' --memory 100 ;;
esac
finds enough "$hungry" 'writes no scales' --memory 0
finds file 'FILE *f = fopen("big", "w"); char b[4096] = ""; for (int i = 0; i < 2000 && f; i++) { fwrite(b, 1, sizeof b, f); fflush(f); } fclose(f); return job->rows == 0;' \
  'verdict  *Your kernel crashes on [0-9]* x [0-9]*: SIGXFSZ, the limit on a file.s size (--file-size) was reached\.$' --file-size 1
[ "$(wc -c <big)" -le 1048576 ] || fail "a kernel wrote $(wc -c <big) bytes under --file-size 1"
finds spins 'for (volatile size_t i = 0;; i++) ; return job->rows == 0;' 'verdict  *Your kernel does not return in time on [0-9]* x [0-9]*: SIGXCPU, the limit on processor time (--processor-time) was reached\.$' --processor-time 1 --seconds 60
# A right kernel, and the same one that fills the nibbles behind the last column: the library's own file says what is right.
cp "$root/examples/kernel_plugin.c" right.c
sed 's/^int mxgold_quantize(/static int whole(/' right.c >padding.c
cat >>padding.c <<'C'
int mxgold_quantize(const mxgold_job *job) {
  const int rc = whole(job);
  for (size_t r = 0; rc == 0 && r < job->rows && job->cols % 2; r++) job->codes[r * job->code_stride + job->cols / 2] |= 0x70;
  return rc;
}
C
for name in right padding; do ${CC:-cc} -O2 -shared -fPIC -I"$root/include" $name.c -lm -o $name.so || fail "cannot build $name.c"; done
accepts "$mxgold" test --plugin ./right.so --preset ocp-mxfp4 --suite tails
differs "behind the last column of" "$mxgold" test --plugin ./padding.so --preset ocp-mxfp4 --suite tails
rm -f ./*.c ./*.so big
leaves_only
