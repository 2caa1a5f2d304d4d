#!/bin/sh
# Holds the symbol tables of the library to its public headers:
#   check-symbols.sh LIBRARY.so LIBRARY.a
# The shared library exports the functions and objects that include/mxgold declares, and nothing else; its soname and the node of its symbols carry
# the major version of version.h. Every other global name of the static library begins with mxi_; the compiler itself puts .gomp_critical_user_ before the
# name of a critical section of OpenMP, which is mxi_ too, and no C program can name that symbol, so it passes. Then the same is asked of libraries with one
# violation of each kind planted in them, which must be found. CC is the compiler. Exit 1 with a line for each name that is wrong.
set -eu
cd "$(dirname "$0")/.."
so=$1 a=$2
cc=${CC:-cc}
export LC_ALL=C
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# declared FOLDER...: what the headers in these folders declare. mxgold_quantize is what a plugin defines.
declared() {
  for h in include/mxgold/*.h "$@"; do printf '#include "%s"\n' "$h"; done | $cc -E -I. -x c - | awk -f tools/public-symbols.awk | grep -vx mxgold_quantize | sort -u
}
# Names with the version that they are bound to: mx_quantize@@MXGOLD_0.
exported() { nm -D --defined-only "$1" | awk '$2 != "A" {print $3}' | sort -u; }
globals() { nm -g --defined-only "$1" | awk 'NF == 3 {print $3}' | sort -u; }

# look SO A HEADER...: a line for each name that is wrong
look() {
  library=$1 archive=$2
  shift 2
  declared "$@" >"$work/declared"
  exported "$library" >"$work/bound"
  sed 's/@.*//' "$work/bound" >"$work/exported"
  globals "$archive" >"$work/globals"
  comm -13 "$work/declared" "$work/exported" | sed 's/$/: exported, and no public header declares it/'
  comm -23 "$work/declared" "$work/exported" | sed 's/$/: declared by a public header, and not exported/'
  comm -13 "$work/declared" "$work/globals" | grep -v -e '^mxi_' -e '^\.gomp_critical_user_mxi_' |
    sed 's/$/: global in the static library, neither public nor mxi_/' || true
  grep -v "@@MXGOLD_$major\$" "$work/bound" | sed "s/\$/: bound to another version than MXGOLD_$major/" || true
}

major=$(sed -n 's/^#define MX_VERSION "\([0-9]*\)\..*/\1/p' include/mxgold/version.h)
look "$so" "$a" >"$work/wrong"
soname=$(readelf -d "$so" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')
[ "$soname" = "libmxgold.so.$major" ] || echo "soname: $soname, not libmxgold.so.$major" >>"$work/wrong"
n=$(wc -l <"$work/declared")
[ "$n" -gt 0 ] || echo "no declaration was found in include/mxgold" >>"$work/wrong"
if [ -s "$work/wrong" ]; then
  sed 's/^/symbols: /' "$work/wrong"
  exit 1
fi

cat >"$work/planted.c" <<'C'
#pragma GCC visibility push(default)
int mx_planted_export(void);
int mx_planted_export(void) { return 0; }
int mx_planted_table[2] = {1, 2};
#pragma GCC visibility pop
int planted_internal(void);
int planted_internal(void) { return 0; }
C
echo 'int mx_planted_missing(int (*f)(void), const char *text); extern const int mx_planted_object[2];' >"$work/planted.h"
mkdir -p "$work/include/mxgold" && mv "$work/planted.h" "$work/include/mxgold/"
$cc -c -fPIC -fvisibility=hidden "$work/planted.c" -o "$work/planted.o"
cp "$a" "$work/planted.a"
${AR:-ar} qs "$work/planted.a" "$work/planted.o"
$cc -shared -Wl,--version-script=src/libmxgold.map -Wl,--whole-archive "$work/planted.a" -Wl,--no-whole-archive -o "$work/planted.so"
look "$work/planted.so" "$work/planted.a" "$work/include/mxgold/planted.h" | sort >"$work/found"
sort >"$work/expected" <<'X'
mx_planted_export: exported, and no public header declares it
mx_planted_table: exported, and no public header declares it
mx_planted_missing: declared by a public header, and not exported
mx_planted_object: declared by a public header, and not exported
mx_planted_export: global in the static library, neither public nor mxi_
mx_planted_table: global in the static library, neither public nor mxi_
planted_internal: global in the static library, neither public nor mxi_
X
if ! cmp -s "$work/expected" "$work/found"; then
  echo "symbols: the planted violations (<) were not found as they are (>):"
  diff "$work/expected" "$work/found"
  exit 1
fi
echo "symbols: libmxgold.so.$major exports the $n names that include/mxgold declares; every other global of libmxgold.a begins with mxi_; planted violations are found"
