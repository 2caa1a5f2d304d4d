# Tests that a failed allocation inside identify, diff or gen ends the run with one line and exit status 2, or changes nothing: it never passes for an answer.
: "${scratch:?run by tests/run-cli.sh}"
case $mxgold in
*asan* | *tsan*) return ;; # have an allocator of their own
esac
${CC:-cc} -O1 -shared -fPIC "$root/tests/cli/no-memory.c" -o no-memory.so || fail "no-memory.c does not build"
"$mxgold" gen random --preset nvfp4 --shape 16x64 -o in.safetensors
"$mxgold" quantize in.safetensors:input --preset nvfp4 --set elem.round=rna -o q.safetensors
"$mxgold" quantize in.safetensors:input --preset nvfp4 -o p.safetensors
# answers COMMAND...: with each of some allocations failing, one in EVERY; FROM_END: with allocations among the last so many failing, where the answer is written
answers() {
  local at rc want wanted n said=0 which
  wanted=$("$@" 2>&1)
  want=$?
  [ $want != 2 ] || fail "trouble: $*"
  which="3 40 $(seq 171 "${EVERY:-37}" 760)"
  if [ -n "${FROM_END:-}" ]; then
    COUNT_TO=count.txt LD_PRELOAD=./no-memory.so "$@" >out.txt 2>&1
    n=$(cat count.txt)
    which=$(seq $((n > FROM_END ? n - FROM_END : 0)) 31 "$n")
  fi
  for at in $which; do
    FAIL_AT=$at LD_PRELOAD=./no-memory.so "$@" >out.txt 2>err.txt
    rc=$?
    if [ $rc = 2 ]; then
      said=$((said + 1))
      [ -s err.txt ] || fail "allocation $at fails: nothing is said: $*"
    else
      [ $rc = $want ] && [ "$(cat out.txt)" = "$wanted" ] || fail "allocation $at fails, and the answer is another, exit $rc: $*"
    fi
  done
  [ $said -gt 0 ] || fail "no allocation failed: $*"
}
answers "$mxgold" identify --quick --threads 1 --input in.safetensors:input --output q.safetensors
EVERY=147 answers "$mxgold" identify --threads 1 --input in.safetensors:input --output q.safetensors
EVERY=147 answers "$mxgold" gen minimal --preset nvfp4
answers "$mxgold" diff q.safetensors p.safetensors
# What --json writes is whole, and so is a list of specs.
FROM_END=300 answers "$mxgold" identify --json --quick --threads 1 --input in.safetensors:input --output q.safetensors
EVERY=3 answers "$mxgold" ablate in.safetensors:input --presets nvfp4,ocp-mxfp4,mxfp4-e4m3 --set elem.round=rne,rna --threads 1 --json
