# `make check`: each test is a part, and the parts run side by side (tools/run-parts.py). Included by the Makefile after all that it names.
# Parts name their commands; what they need is built before the first of them starts, so that no two of them build one file.
CHECK_B     := $(B)/check
CHECK_FUZZ  := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
# Targets that are one part each. The second line: those that this tree has.
CHECK_TARGETS := golden-check check-layers check-isa check-instructions style-check hip hip-layers hip-runtime-check hip-check hip-native-code hip-diff-check hip-plugin-check \
  $(foreach t,check-symbols check-asan check-faults check-install check-python,$(if $(shell grep -sl '^$(t):' $(MAKEFILE_LIST)),$(t)))
# More of `make check-all`, beside what the suites do whole then.
CHECK_MORE  := check-tsan check-train-compilers exhaustive exhaustive-math mutants silicon-check-all hip-mutants hip-native-mutants hip-rehearse check-memory train-kills sweep-kills
CHECK_PARTS  = $(foreach t,$(TESTS) $(HIP_NATIVE_TESTS),$(notdir $(t))=$(t)) \
  $(foreach c,$(basename $(notdir $(wildcard tests/cli/*.sh))),'cli/$(c)=tests/run-cli.sh $(BIN) $(c)') \
  $(foreach f,$(CHECK_FUZZ),'fuzz/$(f)=tests/run-fuzz.sh build/fuzz/fuzz short 1 $(f)') \
  $(foreach t,$(CHECK_TARGETS) $(if $(CHECK_ALL),$(CHECK_MORE)),'$(t)=$(MAKE) -s $(t)')

.PHONY: deps-check check check-all check-build check-run
deps-check: # all at once, before minutes of tests
	@tools/install-deps.sh --mode=$(INSTALL) build test fuzz style hip python charts
check: export DEV := 1
check: deps-check ## all the tests, side by side: one line a part with its seconds, logs in build/release/check (FAST=1: 90 seconds, before each commit; JOBS=)
	@$(MAKE) -s -j$(JOBS) check-build
	@$(MAKE) -s check-run
check-all: ## check with every sweep whole, and the tests that are too long for it (hours)
	@CHECK_ALL=1 $(MAKE) -s check
check-run:
	@$(PYTHON) tools/run-parts.py --jobs $(JOBS) $(if $(FAST),--only-fast) --expected tests/parts.txt --logs $(CHECK_B) $(CHECK_PARTS)
check-build: $(BIN) $(LIB_A) $(LIB_SO) $(TESTS) $(GOLDEN) examples $(if $(FAST),,$(B)/hip/check $(B)/hip/test_runtime $(HIP_NATIVE_TESTS) $(B)/hip/hip-diff-host $(HIP_GRAPH) \
  $(if $(SAN),,$(MACHINE)) $(if $(HIP_HAVE_CLANG),$(HIP_CODE) $(HIP_EXAMPLE)) fuzz-build)
# Its allocations go through functions of its own, which can fail.
$(B)/tests/test_nomem: private LDFLAGS_ALL += -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc
