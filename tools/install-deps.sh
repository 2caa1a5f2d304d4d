#!/bin/sh
# Installs what a make target misses, and nothing when nothing is missing.
#   install-deps.sh --mode=yes|no GROUP...     groups: build test fuzz charts bench neon style hip hip-host peers
set -eu
mode=yes
groups=
for a in "$@"; do
  case $a in
    --mode=*) mode=${a#--mode=} ;;
    *) groups="$groups $a" ;;
  esac
done

missing=
# need PACKAGE COMMAND...: PACKAGE is missing when COMMAND fails
need() {
  package=$1
  shift
  if ! "$@" >/dev/null 2>&1; then missing="$missing $package"; fi
}
# Debian splits clang's runtime from clang; Ubuntu 22.04 does not.
fuzzer_links() {
  stub=$(mktemp) && printf 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { (void)d; (void)n; return 0; }\n' >"$stub.c" &&
    clang -fsanitize=fuzzer,address "$stub.c" -o "$stub"
  linked=$?
  rm -f "$stub" "$stub.c"
  return $linked
}
clang_runtime() { if grep -q jammy /etc/os-release 2>/dev/null; then echo libclang-common-14-dev; else echo libclang-rt-dev; fi; }
header() { printf '#include <%s>\n' "$1" | ${CC:-cc} -E -x c - ; } # CC may be several words
compiler() { case ${CC:-cc} in clang*) echo "${CC%% *}" ;; *) echo gcc ;; esac; }

for g in $groups; do
  case $g in
    build)
      need "$(compiler)" sh -c "command -v $(echo "${CC:-cc}" | cut -d' ' -f1)"
      need libc6-dev header stdio.h # gcc recommends it, which does not count here
      need pkg-config command -v pkg-config
      need libjansson-dev header jansson.h
      need libxxhash-dev header xxhash.h
      need libgmp-dev header gmp.h
      need librandom123-dev header Random123/philox.h
      ;;
    bench)
      need libopenblas-openmp-dev header cblas.h
      ;;
    fuzz)
      need clang command -v clang
      need "$(clang_runtime)" fuzzer_links
      ;;
    charts)
      need gnuplot-nox command -v gnuplot
      need fonts-dejavu-core sh -c 'fc-list 2>/dev/null | grep -q .'
      ;;
    neon)
      need gcc-aarch64-linux-gnu command -v "${CROSS:-aarch64-linux-gnu-}gcc"
      need libc6-dev-arm64-cross test -d /usr/aarch64-linux-gnu/include
      need qemu-user command -v qemu-aarch64
      ;;
    hip) # device code for AMD needs the compiler alone, none of ROCm
      need clang-22 command -v clang-22
      need llvm-22 command -v llvm-objdump-22
      need lld-22 command -v ld.lld-22
      need g++ command -v "${CXX:-g++}"
      ;;
    hip-host) # a .hip source whose host half is compiled too, where there is no hipcc: clang's bundler
      command -v hipcc >/dev/null || need clang-tools-22 command -v clang-offload-bundler-22
      ;;
    style)
      need clang-format-14 command -v clang-format-14
      ;;
    peers) # tests/peers/run.sh makes an environment of its own
      need python3-venv python3 -c "import ensurepip"
      ;;
    test)
      need valgrind command -v valgrind
      need libc6-dbg valgrind -q true # valgrind recommends it, and does not start without
      need check header check.h
      need libmpfr-dev header mpfr.h
      need python3 command -v python3
      ;;
  esac
done
[ -n "$missing" ] || exit 0

if [ "$mode" = no ]; then
  echo "mxgold: these Debian packages are missing:$missing" >&2
  exit 2
fi
if [ "$(id -u)" = 0 ]; then root=
elif command -v sudo >/dev/null 2>&1; then root=sudo
else
  echo "mxgold: neither root nor sudo is to be had; please install:$missing" >&2
  exit 2
fi
if ! command -v apt-get >/dev/null 2>&1; then
  echo "mxgold: apt-get is not to be had; please install the equivalents of:$missing" >&2
  exit 2
fi
echo "mxgold: installing$missing"
$root apt-get update -qq
# Not every release has these, and what needs them says that it did not run: clang-format 14 decides the format of the tree, clang 22 knows gfx950.
present=
for p in $missing; do
  case $p in
    clang-format-14 | clang-22 | clang-tools-22 | llvm-22 | lld-22)
      if [ -z "$(apt-cache policy "$p" 2>/dev/null | sed -n 's/.*Candidate: \([0-9].*\)/\1/p')" ]; then
        echo "mxgold: this release has no $p"
        continue
      fi
      ;;
  esac
  present="$present $p"
done
missing=$present
[ -n "$missing" ] || exit 0
DEBIAN_FRONTEND=noninteractive $root apt-get install -y -qq --no-install-recommends $missing
