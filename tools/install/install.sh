#!/bin/sh
# Installs what was built, and takes away what an install wrote.
#   install.sh install FOLDER-OF-THE-BUILD VERSION LIBS-OF-A-STATIC-LINK
#   install.sh uninstall
# PREFIX, LIBDIR and DESTDIR come from the environment. What is written, files and the folders that were not there before, is listed in
# PREFIX/share/mxgold/installed, without DESTDIR; another install adds to the list. uninstall removes what it lists, folders only when they are empty.
set -eu
umask 022
export LC_ALL=C
prefix=${PREFIX:-/usr/local}
libdir=${LIBDIR:-$prefix/lib}
dest=${DESTDIR:-}
list=$prefix/share/mxgold/installed
fail() {
  echo "mxgold: $*" >&2
  exit 2
}
for d in "$prefix" "$libdir"; do
  case $d in /*) ;; *) fail "PREFIX and LIBDIR must be absolute: $d" ;; esac
done

if [ "${1:-}" = uninstall ]; then
  [ -f "$dest$list" ] || fail "nothing to uninstall: $dest$list is not there"
  files=0
  # Folders after what lies in them.
  sort -r "$dest$list" >"$dest$list.reverse"
  while IFS= read -r name; do
    if [ "$name" = "$list" ] || [ "$name" = "$prefix/share/mxgold" ]; then continue; fi
    if [ -d "$dest$name" ] && [ ! -L "$dest$name" ]; then rmdir "$dest$name" 2>/dev/null || true
    elif [ -e "$dest$name" ] || [ -L "$dest$name" ]; then rm -f "$dest$name" && files=$((files + 1)); fi
  done <"$dest$list.reverse"
  # The folder of the list, and those above it that the install made.
  grep -Fx -e "$prefix/share/mxgold" -e "$prefix/share" -e "$prefix" "$dest$list.reverse" >"$dest$list.last" || true
  above=$(sed "s|^|$dest|" "$dest$list.last")
  rm -f "$dest$list" "$dest$list.reverse" "$dest$list.last"
  echo "$above" | while IFS= read -r d; do
    [ -z "$d" ] || rmdir "$d" 2>/dev/null || true
  done
  echo "mxgold: $files files were removed from $dest$prefix"
  exit 0
fi
[ "${1:-}" = install ] && [ $# = 4 ] || fail "usage: install.sh install BUILD VERSION LIBS | install.sh uninstall"
build=$2 version=$3 libs=$4
major=${version%%.*}

written=
# make_folder FOLDER: with those above it, each of which is listed if it was not there
make_folder() {
  [ -d "$dest$1" ] && return
  case $1 in /*/*) make_folder "${1%/*}" ;; esac
  mkdir -p "$dest$1"
  written="$written$1
"
}
# put MODE SOURCE TARGET
put() {
  make_folder "${3%/*}"
  install -m "$1" "$2" "$dest$3"
  written="$written$3
"
}
# link TEXT TARGET
link() {
  ln -sfn "$1" "$dest$2"
  written="$written$2
"
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

put 755 "$build/mxgold" "$prefix/bin/mxgold"
put 644 "$build/libmxgold.a" "$libdir/libmxgold.a"
put 755 "$build/libmxgold.so.$version" "$libdir/libmxgold.so.$version"
link "libmxgold.so.$version" "$libdir/libmxgold.so.$major"
link "libmxgold.so.$major" "$libdir/libmxgold.so"
# Installed, the tables lie beside the headers.
for h in include/mxgold/*.h; do
  sed 's#"../../formats/#"formats/#' "$h" >"$work/header"
  put 644 "$work/header" "$prefix/include/mxgold/${h##*/}"
done
for t in formats/*.def; do put 644 "$t" "$prefix/include/mxgold/formats/${t##*/}"; done
# Paths under the prefix are said by it, so that pkg-config --define-prefix finds the library where it was moved to.
case $libdir in "$prefix"/*) at="\${prefix}${libdir#"$prefix"}" ;; *) at=$libdir ;; esac
cat >"$work/mxgold.pc" <<PC
prefix=$prefix
libdir=$at
includedir=\${prefix}/include

Name: mxgold
Description: bit-exact reference of microscaling formats
Version: $version
Cflags: -I\${includedir}
Libs: -L\${libdir} -lmxgold
Libs.private: $libs
PC
put 644 "$work/mxgold.pc" "$libdir/pkgconfig/mxgold.pc"
"$build/mxgold" help --man >"$work/man"
put 644 "$work/man" "$prefix/share/man/man1/mxgold.1"
"$build/mxgold" help --bash-completion >"$work/completion"
put 644 "$work/completion" "$prefix/share/bash-completion/completions/mxgold"

make_folder "${list%/*}"
written="$written$list
"
{
  printf %s "$written"
  [ ! -f "$dest$list" ] || cat "$dest$list"
} | sort -u >"$work/installed"
install -m 644 "$work/installed" "$dest$list"
echo "mxgold: $version is installed in $dest$prefix"
