#!/bin/sh
# Installs into scratch folders and uses what lies there as a stranger would: a C and a C++ program through pkg-config against the shared and the
# static library, after a move as well; uninstalls, and finds what was there before and nothing else.
#   check.sh "MAKE" [CONFIG]      CC, CXX, PKG_CONFIG from the environment
set -eu
cd "$(dirname "$0")/../.."
make=$1
pkg=${PKG_CONFIG:-pkg-config}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
  echo "install: $*" >&2
  exit 1
}
cat >"$work/app.c" <<'C'
#include <mxgold/mxgold.h>
#include <mxgold/nearest.h>
#include <mxgold/plugin.h>
#include <mxgold/probe.h>
#include <mxgold/rcp.h>
#include <stdio.h>
/* The sum of the codes of 64 numbers under OCP MXFP4, and the version of the headers. */
int main(void) {
  float x[64];
  static mx_spec spec; /* all zeros: the default */
  mx_tensor t;
  unsigned sum = 0;
  for (int i = 0; i < 64; i++) x[i] = (float)(i - 20) / 7;
  if (mx_spec_parse(&spec, "", NULL) || mx_tensor_alloc(&t, 2, 32, &spec)) return 2;
  if (mx_quantize(&t, x, 2, 32, 32, &spec, NULL, NULL)) return 2;
  for (int i = 0; i < 32; i++) sum = sum * 31 + t.codes[i];
  printf("%s %08x %02x%02x\n", MX_VERSION, sum & 0xffffffffu, t.scales[0], t.scales[1]);
  mx_tensor_free(&t);
  return 0;
}
C
cp "$work/app.c" "$work/app.cc"

# What was there before must stay: a file of someone else's in each shared folder.
dest=$work/root prefix=/opt/a\ prefix
mkdir -p "$dest$prefix/bin" "$dest$prefix/lib/pkgconfig" "$dest$prefix/include"
touch "$dest$prefix/bin/other" "$dest$prefix/lib/pkgconfig/other.pc"
(cd "$dest" && find . | sort) >"$work/before"
$make install DESTDIR="$dest" PREFIX="$prefix" >"$work/log" || fail "make install failed: $(tail -1 "$work/log")"
$make install DESTDIR="$dest" PREFIX="$prefix" >"$work/log" || fail "a second make install failed: $(tail -1 "$work/log")"
version=$(sed -n 's/^#define MX_VERSION "\(.*\)"/\1/p' include/mxgold/version.h)
soname=libmxgold.so.${version%%.*}
lib=$dest$prefix/lib
[ "$(readlink "$lib/libmxgold.so")" = "$soname" ] && [ "$(readlink "$lib/$soname")" = "libmxgold.so.$version" ] || fail "the links of the shared library"
[ "$("$dest$prefix/bin/mxgold" --version | awk '{print $NF}')" = "$version" ] || fail "mxgold --version is not $version"

# A prefix with a blank is one for make install; pkg-config and the shell's words want one without.
home=$work/home
$make install PREFIX="$home" >"$work/log" || fail "make install failed: $(tail -1 "$work/log")"
(cd "$home" && find . | sort) >"$work/installed"
mv "$home" "$work/moved"
# use FOLDER PKG-CONFIG-OPTION...: each way to link
use() {
  at=$1
  shift
  export PKG_CONFIG_PATH="$at/lib/pkgconfig"
  [ "$($pkg "$@" --modversion mxgold)" = "$version" ] || fail "pkg-config's version"
  flags=$($pkg "$@" --cflags mxgold)
  case $flags in *"$at/include"*) ;; *) fail "pkg-config's flags are not of $at: $flags" ;; esac
  ${CC:-cc} "$work/app.c" -Wall -Wextra -Werror $flags $($pkg "$@" --libs mxgold) -o "$work/shared"
  ${CXX:-g++} "$work/app.cc" -Wall -Wextra -Werror -fvisibility=hidden $flags $($pkg "$@" --libs mxgold) -o "$work/shared_cc"
  ${CC:-cc} "$work/app.c" $flags -static $($pkg "$@" --static --libs mxgold) -o "$work/static" 2>"$work/err" || fail "static: $(tail -1 "$work/err")"
  readelf -d "$work/shared" | grep -q "NEEDED.*\[$soname\]" || fail "the program does not ask for $soname"
  LD_LIBRARY_PATH=$at/lib "$work/shared" >"$work/out"
  LD_LIBRARY_PATH=$at/lib "$work/shared_cc" | cmp - "$work/out" || fail "C++ differs"
  "$work/static" | cmp - "$work/out" || fail "the static library differs"
  grep -q "^$version " "$work/out" || fail "the program printed $(cat "$work/out")"
}
use "$work/moved" --define-prefix
mv "$work/moved" "$home"
use "$home" --dont-define-prefix
sed 's/^[^ ]* //' "$work/out" | grep -qx "[0-9a-f]\{8\} 7e7f" || fail "the scales of the program: $(cat "$work/out")"

$make uninstall PREFIX="$home" >"$work/log" || fail "make uninstall failed: $(tail -1 "$work/log")"
[ ! -e "$home" ] || fail "left behind: $(find "$home" | tail -3)"
touch "$dest$prefix/include/mxgold/mine.h"
$make uninstall DESTDIR="$dest" PREFIX="$prefix" >"$work/log" || fail "make uninstall failed: $(tail -1 "$work/log")"
{
  cat "$work/before"
  printf '.%s\n' "$prefix/include/mxgold" "$prefix/include/mxgold/mine.h"
} | sort >"$work/expected"
(cd "$dest" && find . | sort) | diff "$work/expected" - || fail "uninstall left other files than were there before"
if $make uninstall PREFIX="$home" >"$work/log" 2>&1; then fail "a second uninstall succeeds"; fi
grep -q "nothing to uninstall" "$work/log" || fail "a second uninstall says: $(tail -1 "$work/log")"
echo "install: $(wc -l <"$work/installed") files and folders; programs in C and C++ run through pkg-config, shared and static, before and after a move; uninstall leaves nothing"
