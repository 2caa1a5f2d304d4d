# Tests SIGKILL at any moment: it leaves the old file or the new one and nothing else, and where files need a name the next run of that output clears up.
: "${scratch:?run by tests/run-cli.sh}"
yes mxgold-kill | head -c 1048576 >raw
accepts "$mxgold" quantize raw --shape 512x512 -o want.safetensors
build_interrupt
killed() { # killed CALL COMMAND...: by SIGKILL at that call
  local at=$1
  shift
  interrupted_by_kill=$(
    ASAN_OPTIONS="${ASAN_OPTIONS-}:verify_asan_link_order=0" LD_PRELOAD="$scratch/interrupt.so" INTERRUPT="$at:9" "$@" 2>&1
    echo "rc $?"
  ) 2>"$scratch/killed"
  [ "$interrupted_by_kill" = "rc 137" ] || fail "$*: $interrupted_by_kill, expected to be killed at $at"
}
# The program's first call already stands under the handlers.
interrupted fcntl:1:15 "mxgold: interrupted by SIGTERM, no file was changed" "$mxgold" --version
interrupted fsync:1:15 "mxgold: interrupted by SIGTERM, no file was changed" "$mxgold" quantize raw --shape 512x512 -o o.safetensors --sync
interrupted fsync:2:15 "mxgold: interrupted by SIGTERM, the files that were finished stay" "$mxgold" quantize raw --shape 512x512 -o o.safetensors --sync
cmp -s want.safetensors o.safetensors || fail "--sync: other bytes"
interrupted fsync:1:15 "mxgold: interrupted by SIGTERM, no file was changed" env MXGOLD_SYNC=1 "$mxgold" gen ties -o o.mxv
rm o.safetensors
# With files that have no name: nothing, until the file is whole.
for at in open:1 pwrite:1 pwrite:3; do
  killed $at "$mxgold" quantize raw --shape 512x512 -o o.safetensors
  leaves_only raw want.safetensors
done
# The same on tmpfs, where the machine has one: the documentation promises it of both.
if [ "$(stat -f -c %T /dev/shm 2>/dev/null)" = tmpfs ] && shm=$(mktemp -d /dev/shm/mxgold.XXXXXX); then
  for at in open:1 pwrite:1 pwrite:3; do
    killed $at "$mxgold" quantize raw --shape 512x512 -o "$shm/o.safetensors"
    [ -z "$(ls -A "$shm")" ] || fail "tmpfs: killed at $at leaves $(ls -A "$shm")"
  done
  killed linkat:1 "$mxgold" quantize raw --shape 512x512 -o "$shm/o.safetensors"
  cmp -s want.safetensors "$shm/o.safetensors" && [ "$(ls -A "$shm")" = o.safetensors ] || fail "tmpfs: killed behind linkat: $(ls -A "$shm")"
  rm -rf "$shm"
fi
killed linkat:1 "$mxgold" quantize raw --shape 512x512 -o o.safetensors
cmp -s want.safetensors o.safetensors || fail "killed behind linkat: no whole file"
killed rename:1 "$mxgold" quantize raw --shape 512x512 -o o.safetensors
cmp -s want.safetensors o.safetensors || fail "killed behind rename: no whole file"
leaves_only o.safetensors raw want.safetensors
# Between the two calls that replace an old file: it stays, with one temporary file that the next run takes away.
echo old >o.safetensors
killed linkat:2 "$mxgold" quantize raw --shape 512x512 -o o.safetensors
[ "$(cat o.safetensors)" = old ] || fail "killed before rename: the old file is gone"
[ "$(ls -A | grep -c '^\.mxgold\.[0-9a-f]*\.0\.tmp$')" = 1 ] || fail "expected one temporary file: $(ls -A)"
accepts "$mxgold" quantize raw --shape 512x512 -o o.safetensors
leaves_only o.safetensors raw want.safetensors
# Without them: left by SIGKILL, taken away by the next run of that output, not while its writer lives, and no run takes another output's.
export NO_NAMELESS=1
preloaded() { env ASAN_OPTIONS="${ASAN_OPTIONS-}:verify_asan_link_order=0" LD_PRELOAD="$scratch/interrupt.so" "$@"; }
rm o.safetensors
for run in 1 2 3; do killed pwrite:3 "$mxgold" quantize raw --shape 512x512 -o o.safetensors; done
[ "$(ls -A | grep -c '^\.mxgold\.')" = 1 ] || fail "three killed runs of one output: $(ls -A)"
left=$(ls -A | grep '^\.mxgold\.')
accepts preloaded "$mxgold" gen ties -o other.mxv
[ -e "$left" ] || fail "another output took $left away"
exec 7<"$left"
flock 7
accepts preloaded "$mxgold" quantize raw --shape 512x512 -o o.safetensors
[ -e "$left" ] || fail "a living process's $left was taken away"
exec 7<&-
accepts preloaded "$mxgold" quantize raw --shape 512x512 -o o.safetensors
cmp -s want.safetensors o.safetensors || fail "other bytes"
leaves_only o.safetensors other.mxv raw want.safetensors
interrupted pwrite:3:15 "mxgold: interrupted by SIGTERM, no file was changed" "$mxgold" quantize raw --shape 512x512 -o o.safetensors
interrupted rename:1:15 "mxgold: interrupted by SIGTERM, the files that were finished stay" "$mxgold" quantize raw --shape 512x512 -o o.safetensors
unset NO_NAMELESS
leaves_only o.safetensors other.mxv raw want.safetensors
