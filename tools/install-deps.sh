#!/bin/sh
# Installs what a make target misses, and nothing when nothing is missing.
#   install-deps.sh --mode=yes|no GROUP...     groups: build test fuzz charts bench mpi neon neon-program tsan style hip hip-host peers python
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
# The package's own word, where nothing can be tried: of this machine's architecture, beside which others may be installed.
installed() {
  dpkg-query -W -f '${Architecture} ${Status}\n' "$1" 2>/dev/null | grep -Eq "^($(dpkg --print-architecture)|all) install ok installed"
}
# need PACKAGE COMMAND...: PACKAGE is missing when COMMAND fails
need() {
  package=$1
  shift
  if ! "$@" >/dev/null 2>&1; then missing="$missing $package"; fi
}
# Debian splits clang's runtime from clang; Ubuntu 22.04 does not.
fuzzer_links() {
  CC=clang links 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { (void)d; (void)n; return 0; }' -fsanitize=fuzzer,address
}
thread_links() { CC=clang links 'int main(void) { return 0; }' -fsanitize=thread; }
openmp_links() { CC=clang links '#include <omp.h>
int main(void) { return omp_get_max_threads() < 1; }' -fopenmp; }
clang_runtime() { if grep -q jammy /etc/os-release 2>/dev/null; then echo libclang-common-14-dev; else echo libclang-rt-dev; fi; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# links SOURCE FLAG...: does the compiler make a program of it? CC may be several words.
links() {
  printf '%s\n' "$1" >"$scratch/t.c"
  shift
  ${CC:-cc} "$scratch/t.c" "$@" -o "$scratch/t" >/dev/null 2>&1
}
preprocesses() { echo 1 | ${CC:-cc} -E -x c -; }
# library PACKAGE HEADER CALL FLAG...: asked below, together, by a program that includes HEADER and makes CALL.
libraries=0
library() {
  libraries=$((libraries + 1))
  echo "$1" >"$scratch/$libraries.package"
  printf '#include <stdio.h>\n#include <%s>\n' "$2" >"$scratch/$libraries.include"
  echo "$3" >"$scratch/$libraries.call"
  shift 3
  echo "$*" >"$scratch/$libraries.flags"
}
# program N...: the source that asks for these libraries
program() {
  for i in "$@"; do cat "$scratch/$i.include"; done
  echo 'int main(void) {'
  for i in "$@"; do cat "$scratch/$i.call"; done
  echo 'return 0; }'
}
# One program for all that are there; one each where that does not link. Without a compiler that makes programs at all, the packages' own word.
look_for_libraries() {
  all=$(seq "$libraries")
  [ -n "$all" ] || return 0
  if links "$(program $all)" $(for i in $all; do cat "$scratch/$i.flags"; done); then return 0; fi
  works=no
  if links "$(program)"; then works=yes; fi
  for i in $all; do
    package=$(cat "$scratch/$i.package")
    case $works in
      yes) need "$package" links "$(program "$i")" $(cat "$scratch/$i.flags") ;;
      no) need "$package" installed "$package" ;;
    esac
  done
}
compiler() { case ${CC:-cc} in clang*) echo "${CC%% *}" ;; *) echo gcc ;; esac; }

for g in $groups; do
  case $g in
    build)
      need "$(compiler)" preprocesses
      need pkg-config command -v pkg-config
      library libc6-dev stdio.h 'puts("");' # gcc recommends it, which does not count here
      library libjansson-dev jansson.h 'json_decref(json_object());' -ljansson
      library libxxhash-dev xxhash.h 'printf("%d", (int)XXH3_64bits("", 0));' -lxxhash
      library libgmp-dev gmp.h '{ mpz_t z; mpz_init(z); }' -lgmp
      library librandom123-dev Random123/philox.h '{ philox4x32_key_t k = {{0}}; (void)k; }'
      # gcc brings its OpenMP, clang does not: each version has a package of its own.
      case $(compiler):${OMP--fopenmp} in
        clang*:-fopenmp*) library "$(compiler | sed 's/^clang/libomp/')-dev" omp.h 'printf("%d", omp_get_max_threads());' -fopenmp ;;
      esac
      ;;
    bench)
      # Other packages have a cblas.h as well, and no OpenBLAS.
      library libopenblas-openmp-dev cblas.h '{ extern char *openblas_get_corename(void); float x = 0;
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, 1, 1, 1, 1, &x, 1, &x, 1, 0, &x, 1); puts(openblas_get_corename()); }' -lopenblas
      ;;
    fuzz)
      need clang command -v clang
      if command -v clang >/dev/null; then need "$(clang_runtime)" fuzzer_links; else need "$(clang_runtime)" installed "$(clang_runtime)"; fi
      ;;
    tsan)
      need clang command -v clang
      if command -v clang >/dev/null; then need "$(clang_runtime)" thread_links; else need "$(clang_runtime)" installed "$(clang_runtime)"; fi
      need libomp-dev openmp_links
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
    neon-program) # the whole program: what it links, for that processor
      for p in libjansson-dev libxxhash-dev libgmp-dev; do need "$p:arm64" installed "$p:arm64"; done
      ;;
    mpi)
      need libopenmpi-dev command -v mpicc
      need openmpi-bin command -v mpirun
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
    python) # the wheel and its tests: the archive's own interpreter and packages
      need python3 test -x /usr/bin/python3
      need python3-venv /usr/bin/python3 -c "import ensurepip"
      need python3-dev /usr/bin/python3 -c 'import os, sysconfig; open(os.path.join(sysconfig.get_paths()["include"], "Python.h"))'
      need python3-numpy /usr/bin/python3 -c "import numpy"
      need python3-pytest /usr/bin/python3 -c "import pytest"
      ;;
    test)
      need valgrind command -v valgrind
      # valgrind recommends it, and does not start without
      if command -v valgrind >/dev/null; then need libc6-dbg valgrind -q true; else need libc6-dbg installed libc6-dbg; fi
      if command -v pkg-config >/dev/null; then
        library check check.h 'suite_create("");' $(pkg-config --libs check 2>/dev/null || echo -lcheck)
      else
        need check installed check # what else it links, pkg-config alone knows
      fi
      library libmpfr-dev mpfr.h '{ mpfr_t f; mpfr_init(f); }' -lmpfr -lgmp
      need python3 command -v python3
      ;;
  esac
done
look_for_libraries
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
case $missing in *:arm64*) $root dpkg --add-architecture arm64 ;; esac
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
