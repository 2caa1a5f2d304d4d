# Builds and runs libFuzzer on every reader of files. The Makefile includes it. Fuzz targets link instrumented objects of core and io; only clang has
# libFuzzer.
.PHONY: deps-fuzz fuzz fuzz-short fuzz-build fuzzers
FUZZ_SECONDS ?= 600
# 0 takes another seed each time.
FUZZ_SEED ?= 0
FUZZERS := $(patsubst tests/fuzz/%.c,$(B)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
deps-fuzz:
	@tools/install-deps.sh --mode=$(INSTALL) build fuzz
# The files of verify/ that the pipe protocol and the comparison of outputs need.
FUZZ_SRC := $(wildcard src/core/*.c src/io/*.c src/io/base/*.c) $(filter-out $(ISA_SKIP),$(call rooms,src/kernels)) \
  src/verify/vectors/vectors.c src/verify/vectors/compare.c $(wildcard src/verify/diff/*.c)
$(B)/libfuzz.a: $(call obj,$(FUZZ_SRC))
	@mkdir -p $(@D); rm -f $@
	$(call say,AR,$@)$(AR) qcs $@ $^
$(B)/fuzz/%: $(B)/obj/tests/fuzz/%.o $(B)/libfuzz.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(LDFLAGS_ALL) -fsanitize=fuzzer $^ $(LIBS) -o $@
fuzzers: deps-fuzz $(FUZZERS)
fuzz-short: fuzz-build ## some seconds of each fuzz target, the same inputs each time
	tests/run-fuzz.sh build/fuzz/fuzz short 1
fuzz: fuzz-build ## FUZZ_SECONDS (600) of each fuzz target; what it finds is kept under build/fuzz/found
	tests/run-fuzz.sh build/fuzz/fuzz seconds=$(FUZZ_SECONDS) $(FUZZ_SEED)
fuzz-build: deps-fuzz
	@$(MAKE) -s CONFIG=fuzz CC="$(filter ccache,$(CC)) clang" OMP="-Itests/fuzz/serial -Wno-unknown-pragmas -Wno-source-uses-openmp -Wno-unused -Wno-unused-parameter" OPT=-O1 \
	  SAN="-fsanitize=fuzzer-no-link,address" fuzzers
