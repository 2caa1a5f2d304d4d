# Tests ablate --state: every pair that was measured is kept however the run ends, and is not measured again.
: "${scratch:?run by tests/run-cli.sh}"
sweep() { "$mxgold" ablate gen:gaussian gen:laplace --shape 96x64 --seed 3 -p ocp-mxfp4,nvfp4,ocp-mxfp8-e4m3 --json --threads 2 "$@"; }
build_interrupt
# signalled N:SIGNAL COMMAND...: COMMAND gets the signal at its N-th lock; rc is its status. The shell's own word on a killed command is not shown.
signalled() {
  local at=$1
  shift
  { ASAN_OPTIONS="${ASAN_OPTIONS-}:verify_asan_link_order=0" LD_PRELOAD="$scratch/interrupt.so" INTERRUPT="flock:$at" "$@" >"$scratch/stdout" 2>"$scratch/stderr"; } 2>"$scratch/shell"
  rc=$?
}
accepts sweep
cp "$scratch/stdout" want
for signal in 9 15; do
  for pairs in 1 4; do # that are whole when the signal comes, at the next one's lock
    rm -f state
    signalled $((pairs + 1)):$signal sweep --state state
    [ $rc = $([ $signal = 9 ] && echo 137 || echo 2) ] || fail "signal $signal: exit $rc"
    [ $signal = 9 ] || [ "$(cat "$scratch/stderr")" = "mxgold: interrupted by SIGTERM, the results so far are in state" ] || fail "said: $(cat "$scratch/stderr")"
    [ "$(wc -l <state)" = $((pairs + 1)) ] || fail "signal $signal behind $pairs pairs: $(wc -l <state) lines, expected the name and $pairs"
    head -$((pairs + 1)) state >before
    accepts sweep --state state
    cmp -s want "$scratch/stdout" || fail "a run that went on behind $pairs pairs says something else"
    [ "$(wc -l <state)" = 7 ] && head -$((pairs + 1)) state | cmp -s - before || fail "pairs that were there are measured again"
  done
done
# The same of --six, which keeps each product of a spec: six lines for two specs; of --gemm, which has one.
for mode in six:3 gemm:1; do
  products=${mode#*:} tensors="gen:gaussian gen:laplace" presets=nvfp4,ocp-mxfp4
  [ $products = 1 ] || tensors="$tensors gen:rows:1.5" presets=nvfp4,recipe-tseng
  # shellcheck disable=SC2086
  layer() { "$mxgold" ablate --${mode%:*} $tensors --shape 64x64 --seed 3 -p $presets --json --threads 2 "$@"; }
  accepts layer
  cp "$scratch/stdout" want
  lines=$((1 + 2 * products))
  for signal in 9 15; do
    for kept in $(seq 1 $((2 * products - 1))); do # products that are whole when the signal comes, at the next one's lock
      rm -f state
      signalled $((kept + 1)):$signal layer --state state
      [ $rc = $([ $signal = 9 ] && echo 137 || echo 2) ] || fail "$mode, signal $signal: exit $rc"
      [ $signal = 9 ] || [ "$(cat "$scratch/stderr")" = "mxgold: interrupted by SIGTERM, the results so far are in state" ] || fail "$mode said: $(cat "$scratch/stderr")"
      [ "$(wc -l <state)" = $((kept + 1)) ] || fail "$mode, signal $signal behind $kept products: $(wc -l <state) lines, expected the name and $kept"
      cp state before
      accepts layer --state state
      cmp -s want "$scratch/stdout" || fail "$mode: a run that went on behind $kept products says something else"
      [ "$(wc -l <state)" = $lines ] && head -$((kept + 1)) state | cmp -s - before || fail "$mode: products that were there are measured again"
    done
  done
done
# Of a folder, which keeps the journals of all processes, the folder is named.
signalled 3:15 sweep --shard 0/1 --state folder
[ $rc = 2 ] && [ "$(cat "$scratch/stderr")" = "mxgold: interrupted by SIGTERM, the results so far are in folder" ] || fail "a folder: exit $rc, said $(cat "$scratch/stderr")"
rm -rf state before want folder
leaves_only
