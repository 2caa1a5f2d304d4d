# ablate --state: every pair that was measured is there whenever the run ends, and is not measured again.
: "${scratch:?run by tests/run-cli.sh}"
sweep() { "$mxgold" ablate gen:gaussian gen:laplace --shape 96x64 --seed 3 -p ocp-mxfp4,nvfp4,ocp-mxfp8-e4m3 --json --threads 2 "$@"; }
build_interrupt
accepts sweep
cp "$scratch/stdout" want
for signal in 9 15; do
  for pairs in 1 4; do # that are whole when the signal comes, at the next one's lock
    rm -f state
    ASAN_OPTIONS="${ASAN_OPTIONS-}:verify_asan_link_order=0" LD_PRELOAD="$scratch/interrupt.so" INTERRUPT="flock:$((pairs + 1)):$signal" \
      "$mxgold" ablate gen:gaussian gen:laplace --shape 96x64 --seed 3 -p ocp-mxfp4,nvfp4,ocp-mxfp8-e4m3 --json --threads 2 --state state >"$scratch/stdout" 2>"$scratch/stderr"
    rc=$?
    [ $rc = $([ $signal = 9 ] && echo 137 || echo 2) ] || fail "signal $signal: exit $rc"
    [ $signal = 9 ] || [ "$(cat "$scratch/stderr")" = "mxgold: interrupted by SIGTERM, the files that were finished stay" ] || fail "said: $(cat "$scratch/stderr")"
    [ "$(wc -l <state)" = $((pairs + 1)) ] || fail "signal $signal behind $pairs pairs: $(wc -l <state) lines, expected the name and $pairs"
    head -$((pairs + 1)) state >before
    accepts sweep --state state
    cmp -s want "$scratch/stdout" || fail "a run that went on behind $pairs pairs says something else"
    [ "$(wc -l <state)" = 7 ] && head -$((pairs + 1)) state | cmp -s - before || fail "pairs that were there are measured again"
  done
done
rm -f state before want
leaves_only
