# Tests that a failed allocation inside identify, diff or gen ends the run with one line and exit status 2, or changes nothing: it never passes for an answer.
: "${scratch:?run by tests/run-cli.sh}"
case $mxgold in
*asan* | *tsan*) return ;; # have an allocator of their own
esac
${CC:-cc} -O1 -shared -fPIC "$root/tests/cli/no-memory.c" -o no-memory.so || fail "no-memory.c does not build"
"$mxgold" gen random --preset nvfp4 --shape 16x64 -o in.safetensors
"$mxgold" quantize in.safetensors:input --preset nvfp4 --set elem.round=rna -o q.safetensors
"$mxgold" quantize in.safetensors:input --preset nvfp4 -o p.safetensors
# answers COMMAND...: with each of some allocations failing
answers() {
  local at rc want wanted said=0
  wanted=$("$@" 2>&1)
  want=$?
  [ $want != 2 ] || fail "trouble: $*"
  for at in 3 40 $(seq 171 37 760); do
    FAIL_AT=$at LD_PRELOAD=./no-memory.so "$@" >out.txt 2>err.txt
    rc=$?
    if [ $rc = 2 ]; then
      said=$((said + 1))
      [ -s err.txt ] || fail "allocation $at fails: nothing is said: $*"
    else
      [ $rc = $want ] && [ "$(cat out.txt)" = "$wanted" ] || fail "allocation $at fails, and the answer is another, exit $rc: $*"
    fi
  done
  [ $said -gt 1 ] || fail "no allocation failed: $*"
}
answers "$mxgold" identify --quick --threads 1 --input in.safetensors:input --output q.safetensors
answers "$mxgold" identify --threads 1 --input in.safetensors:input --output q.safetensors
answers "$mxgold" gen minimal --preset nvfp4
answers "$mxgold" diff q.safetensors p.safetensors
