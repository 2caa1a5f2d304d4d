#!/usr/bin/env bash
# The command line as a user meets it. run-cli.sh MXGOLD [CASE...]: each tests/cli/CASE.sh is sourced in a folder of its own, with the helpers
# below; prints one line a case, exit 1 if one failed.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
mxgold=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
shift
[ -x "$mxgold" ] || { echo "run-cli.sh: $mxgold is not there, make it first" >&2; exit 2; }
export LC_ALL=C
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# After a dozen failures more would tell no more.
fail() {
  [ $failures -ge 12 ] || echo "  $case: $*" >&2
  failures=$((failures + 1))
}

# refuses LINE COMMAND...: exit 2, exactly LINE on standard error, nothing on standard output
refuses() {
  local want=$1 rc
  shift
  "$@" >"$scratch/stdout" 2>"$scratch/stderr"
  rc=$?
  [ $rc = 2 ] || fail "exit $rc, expected 2: $*"
  [ "$(cat "$scratch/stderr")" = "$want" ] || fail "$(printf '%s\n    said     %s\n    expected %s' "$*" "$(cat "$scratch/stderr")" "$want")"
  [ "$(wc -l <"$scratch/stderr")" = 1 ] || fail "more or less than one line: $*"
  [ ! -s "$scratch/stdout" ] || fail "something on standard output: $*"
}

# interrupted FUNCTION:N:SIGNAL LINE COMMAND...: the same of a command that gets the signal at that call (tests/cli/interrupt.c). A job in the
# background may have inherited that a signal is ignored, and the program would heed that.
build_interrupt() {
  [ -e "$scratch/interrupt.so" ] || ${CC:-cc} -O1 -shared -fPIC -D_GNU_SOURCE "$root/tests/cli/interrupt.c" -ldl -o "$scratch/interrupt.so" ||
    fail "interrupt.c does not build"
}
interrupted() {
  local at=$1 line=$2
  shift 2
  build_interrupt
  refuses "$line" env --default-signal=INT,TERM,HUP ASAN_OPTIONS="${ASAN_OPTIONS-}:verify_asan_link_order=0" \
    LD_PRELOAD="$scratch/interrupt.so" INTERRUPT="$at" "$@"
}

# shrunk FUNCTION:N FILE:BYTES LINE COMMAND...: the same of a command whose input is cut to so many bytes at that call.
shrunk() {
  local at=$1 file=$2
  shift 2
  SHRINK=$file interrupted "$at:0" "$@"
}

# accepts COMMAND...: exit 0, nothing on standard error
accepts() {
  local rc
  "$@" >"$scratch/stdout" 2>"$scratch/stderr"
  rc=$?
  [ $rc = 0 ] || fail "exit $rc, expected 0: $*: $(cat "$scratch/stderr")"
  [ ! -s "$scratch/stderr" ] || fail "said $(head -1 "$scratch/stderr"): $*"
}

# differs WORDS COMMAND...: exit 1, and the output has the words
differs() {
  local want=$1 rc
  shift
  "$@" >"$scratch/stdout" 2>"$scratch/stderr"
  rc=$?
  [ $rc = 1 ] || fail "exit $rc, expected 1: $*: $(cat "$scratch/stderr")"
  grep -qF -- "$want" "$scratch/stdout" || fail "$* did not say: $want; said: $(cat "$scratch/stdout")"
}

# leaves_only NAME...: the folder holds these files and no other, hidden ones included
leaves_only() {
  local have want
  have=$(ls -A | sort)
  want=$([ $# = 0 ] || printf '%s\n' "$@" | sort)
  [ "$have" = "$want" ] || fail "left behind: $(echo $have), expected: $(echo $want)"
}

total=0
[ $# -gt 0 ] || for file in "$root"/tests/cli/*.sh; do set -- "$@" "$(basename "$file" .sh)"; done
for case in "$@"; do
  failures=0
  [ -e "$root/tests/cli/$case.sh" ] || fail "no such case"
  mkdir "$scratch/$case"
  cd "$scratch/$case" || exit 2
  # shellcheck source=/dev/null
  . "$root/tests/cli/$case.sh"
  cd "$scratch" || exit 2
  if [ $failures = 0 ]; then echo "cli: $case: ok"; else echo "cli: $case: $failures failed"; fi
  total=$((total + failures))
done
[ $total = 0 ]
