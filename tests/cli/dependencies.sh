# Tests that INSTALL=no, as make calls it, lists exactly the packages that are missing.
: "${scratch:?run by tests/run-cli.sh}"
# Nothing is taken away from the machine: commands are hidden by a PATH of links, headers by one of their name that does not compile, libraries by a compiler
# that does not find them.
real=$(command -v ${CC:-cc})
mkdir bin headers
for folder in /usr/local/bin /usr/bin /bin; do ln -s "$folder"/* bin/ 2>"$scratch/twice"; done # the first of a name stays
rm -f bin/cc
cat >bin/cc <<P
#!/bin/sh
for word; do
  shift
  case " \$NO_LIBRARY " in *" \$word "*) word=-lhidden-by-the-test ;; esac
  set -- "\$@" "\$word"
done
exec "$real" -I"$PWD/headers" "\$@"
P
chmod +x bin/cc
ask() { # ask HIDDEN... -- GROUP...: commands, headers (jansson.h) and libraries (-ljansson) that are not there
  local libraries=
  rm -rf headers away
  mkdir headers away
  [ -z "${foreign-}" ] || cp "$foreign" headers/
  while [ "$1" != -- ]; do
    case $1 in
    -l*) libraries="$libraries $1" ;;
    *.h) mkdir -p "headers/$(dirname "$1")" && echo "#error hidden" >"headers/$1" ;;
    *) [ ! -e "bin/$1" ] || mv "bin/$1" away/ ;;
    esac
    shift
  done
  shift
  env -i HOME="$HOME" TMPDIR="$PWD" PATH="$PWD/bin" CC="${with-cc}" NO_LIBRARY="$libraries" sh "$root/tools/install-deps.sh" --mode=no "$@"
  local rc=$?
  for file in away/*; do [ ! -e "$file" ] || mv "$file" bin/; done
  return $rc
}
lists() { # lists "PACKAGE ..." HIDDEN... -- GROUP...
  local want=$1
  shift
  refuses "mxgold: these Debian packages are missing: $want" ask "$@"
}
# On a machine that lacks some already, every list would have them too.
if ! ask -- build test >"$scratch/stdout" 2>"$scratch/stderr"; then
  echo "  dependencies: SKIPPED, this machine lacks some itself: $(cat "$scratch/stderr")"
else
  accepts ask -- build test
  # A header, or the library behind it.
  lists libjansson-dev jansson.h -- build test
  lists libjansson-dev -ljansson -- build
  lists libgmp-dev gmp.h -- build
  lists librandom123-dev Random123/philox.h -- build
  lists check check.h -- test
  lists libmpfr-dev -lmpfr -- test
  lists "libxxhash-dev libmpfr-dev" xxhash.h mpfr.h -- build test
  # A command; what it alone can ask for is not listed if it is installed.
  lists pkg-config pkg-config -- build test
  lists clang clang -- fuzz
  lists python3 python3 -- test
  lists valgrind valgrind -- test
  # A clang without its OpenMP names the package of its version.
  cp bin/cc bin/clang-99
  with=clang-99 accepts ask -- build
  with=clang-99 lists libomp-99-dev omp.h -- build
  lists librandom123-dev omp.h Random123/philox.h -- build
  if command -v dpkg >/dev/null; then # the packages' own word, where no compiler can be asked
    with=gcc lists gcc gcc -- build test
    with=gcc lists "gcc pkg-config" gcc pkg-config -- build
  fi
  # Another package's cblas.h is no OpenBLAS, which the benchmark links.
  foreign=$PWD/cblas.h
  cat >cblas.h <<'P'
enum CBLAS_ORDER { CblasRowMajor = 101 };
enum CBLAS_TRANSPOSE { CblasNoTrans = 111, CblasTrans = 112 };
void cblas_sgemm(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *, int);
P
  lists libopenblas-openmp-dev -lopenblas -- bench
  lists "libjansson-dev libopenblas-openmp-dev" jansson.h -lopenblas -- build bench
  foreign=
  lists libopenblas-openmp-dev cblas.h -- bench
fi
