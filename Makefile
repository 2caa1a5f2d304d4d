# mxgold: the only build file. `make help` lists the targets; all output goes to build/$(CONFIG)/.
# CONFIG is release unless a prefix target (asan-, usan-, tsan-, clang-) sets it.

ifdef MPI # mxgold sweep and ablate by the ranks of mpirun; mpicc knows where MPI's headers are
CONFIG  ?= mpi
CC      := mpicc
CFLAGS  += -DMXGOLD_MPI
endif
CONFIG  ?= release
# make itself knows a CC, so ?= would never apply.
ifeq ($(origin CC),default)
CC      := gcc
endif
AR      ?= ar
PYTHON  ?= python3
PREFIX  ?= /usr/local
JOBS    ?= $(shell nproc 2>/dev/null || echo 2)
INSTALL ?= yes
B       := build/$(CONFIG)

# Bits first: no fused multiply-add behind our back, no -march=native, no fast-math. ISA flags belong to single files (below).
WARN    := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wno-missing-field-initializers
# A warning stops developers' and CI's builds alone (DEV=1, and make check): next year's compiler warns of what nobody has seen. No part of
# $(B)/flags: who has built need not build again to check.
WERROR   = $(if $(filter-out 0,$(DEV)),-Werror)
OPT     ?= -O2
DEBUG_INFO ?= -g
CSTD    := -std=c11 -D_GNU_SOURCE
FP      := -ffp-contract=off -fno-fast-math -fno-math-errno -fno-trapping-math
OMP     ?= -fopenmp
CFLAGS_ALL := $(CSTD) $(OPT) $(DEBUG_INFO) $(WARN) $(FP) $(OMP) -fPIC -fvisibility=hidden -I. -Iinclude -Isrc $(SAN) $(CFLAGS)
# What a build for one installation compiles for fewer seconds (python/mxgold_build.py): rooms where no time is spent. Nothing without OPT_COLD.
COLD    := src/cli src/io src/report src/sweep ref
OPT_COLD ?=
LIBS    := -ljansson -lxxhash -lm
LIBS_REF := -lgmp
LDFLAGS_ALL := $(SAN) $(OMP) $(LDFLAGS)

ARCH    := $(shell { $(CC) -dumpmachine 2>/dev/null || uname -m; } | cut -d- -f1)# the compiler may still have to be installed
# One operation x one ISA a file; only the file of that name may use the ISA.
ISA_avx2   := -mavx2 -mfma -mf16c -mbmi -mbmi2
ISA_avx512 := -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512cd -mavx512vbmi -mavx512vbmi2 -mavx512vnni -mavx512vpopcntdq -mfma -mf16c -mbmi -mbmi2
ISA_amx    := $(ISA_avx512) -mamx-tile -mamx-int8
ISA_neon   :=
isa_of      = $(lastword $(subst _, ,$(basename $(notdir $(1)))))
ifeq ($(ARCH),x86_64)
ISA_SKIP := %_neon.c
else
ISA_SKIP := %_avx2.c %_avx512.c %_amx.c
endif

# Every room under src/ but the program's: a new room needs no line here.
rooms     = $(wildcard $(1)/*.c $(1)/*/*.c $(1)/*/*/*.c)
LIB_SRC  := $(filter-out $(ISA_SKIP) src/cli/%,$(call rooms,src/*))
REF_SRC  := $(wildcard ref/*.c)
CLI_SRC  := $(call rooms,src/cli)
TEST_SRC := $(wildcard tests/test_*.c)
TEST_LIB := $(wildcard tests/lib/*.c)

# What a recipe does in one line, CC src/core/codec.c; V=1 shows the command instead, -s nothing.
SILENT  := $(findstring s,$(firstword -$(MAKEFLAGS)))
say      = $(if $(V)$(SILENT),,@printf '  %-5s %s\n' $(1) $(2); )

obj = $(patsubst %.c,$(B)/obj/%.o,$(1))
ifdef BUILT # check-asan: rooms whose objects are taken from the build that is in this folder
UNSANITIZED := ref src/gemm src/kernels/math src/mma src/verify/suites src/verify/trial src/verify/fault src/verify/identify src/verify/judge src/verify/probe \
  src/verify/bugs src/ablate src/train src/sweep src/report
obj = $(foreach f,$(1),$(if $(filter $(UNSANITIZED:%=%/%),$(f)),$(BUILT),$(B))/obj/$(f:.c=.o))
endif
LIB_A := $(B)/libmxgold.a
# The shared library is named by its version, its soname by the major one; LIB_SO is the link that a compiler looks for.
VERSION := $(shell sed -n 's/^.define MX_VERSION "\(.*\)"/\1/p' include/mxgold/version.h)
SONAME  := libmxgold.so.$(firstword $(subst ., ,$(VERSION)))
LIB_SO_FILE := $(B)/libmxgold.so.$(VERSION)
LIB_SO := $(B)/libmxgold.so
REF_A := $(B)/libmxref.a
BIN   := $(B)/mxgold
TESTS := $(patsubst tests/%.c,$(B)/tests/%,$(TEST_SRC))

.PHONY: all
all: deps $(BIN) $(LIB_A) $(LIB_SO) examples ## build the library and build/release/mxgold (the default)
.DEFAULT_GOAL := all

.PHONY: help
help: ## this list
	@awk -F':.*## ' '/^[a-zA-Z%_-]+:.*## /{printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Each entry target installs what it misses through one script; nothing missing, nothing run. INSTALL=no prints the list and stops.
.PHONY: deps deps-test
deps:
	@tools/install-deps.sh --mode=$(INSTALL) $(if $(MPI),mpi) build
deps-test:
	@tools/install-deps.sh --mode=$(INSTALL) $(if $(MPI),mpi) build test

# Another compiler or other flags: everything is made again.
.PHONY: FORCE
$(B)/flags: FORCE
	@mkdir -p $(@D); echo '$(CC) $(CFLAGS_ALL)' | cmp -s - $@ || echo '$(CC) $(CFLAGS_ALL)' >$@
$(B)/obj/%.o: %.c $(B)/flags | deps
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(CFLAGS_ALL) $(WERROR) $(if $(filter $(COLD:%=%/%),$<),$(OPT_COLD)) $(ISA_$(call isa_of,$<)) $(if $(ISA_$(call isa_of,$<)),$(SAN_ISA)) -MMD -MP -c $< -o $@

$(LIB_A): $(call obj,$(LIB_SRC))
	@mkdir -p $(@D); rm -f $@
	$(call say,AR,$@)$(AR) qcs $@ $^
$(REF_A): $(call obj,$(REF_SRC))
	@mkdir -p $(@D); rm -f $@
	$(call say,AR,$@)$(AR) qcs $@ $^
$(LIB_SO_FILE): $(call obj,$(LIB_SRC)) src/libmxgold.map
	$(call say,LD,$@)$(CC) -shared -Wl,-soname,$(SONAME) -Wl,--version-script=src/libmxgold.map $(LDFLAGS_ALL) $(filter %.o,$^) $(LIBS) -o $@
$(LIB_SO): $(LIB_SO_FILE)
	@ln -sfn $(notdir $<) $(B)/$(SONAME); ln -sfn $(SONAME) $@
$(BIN): $(call obj,$(CLI_SRC)) $(REF_A) $(LIB_A)
	$(call say,LD,$@)$(CC) $(LDFLAGS_ALL) $^ $(LIBS) $(LIBS_REF) -o $@
$(B)/tests/%: $(B)/obj/tests/%.o $(call obj,$(TEST_LIB)) $(REF_A) $(LIB_A)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(LDFLAGS_ALL) $^ $(LIBS) $(LIBS_REF) -lmpfr -lgmp $$(pkg-config --libs check) -o $@

# What is beside this file's first business stands beside what it runs.
include tests/portability.mk tests/peers/peers.mk tests/fuzz/fuzz.mk tests/mutants/mutants.mk tests/silicon/silicon.mk
include bench/bench.mk examples/examples.mk tools/install/install.mk tools/reproduce/reproduce.mk
include hip_backend/hip.mk python/python.mk

# A row in formats/ is code: the dependency files know, so nothing else is needed for a new row to reach every object.
-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)

.PHONY: demo
DEMO_PRESETS := ocp-mxfp4,nvfp4,mxfp4-ue5m3,torchao-rceil
demo: all ## the main job on real data: a weight matrix and an activation with outliers under four presets, held to the reference
	@for t in weight activation; do \
	  $(BIN) quantize tests/data/minilm_slices.safetensors:$$t -o $(B)/demo-$$t.safetensors --preset nvfp4 && \
	  $(BIN) compare tests/data/minilm_slices.safetensors:$$t --presets $(DEMO_PRESETS) || exit; done
	@echo; echo "The bytes of nvfp4 are in $(B)/demo-weight.safetensors and $(B)/demo-activation.safetensors:"
	@$(BIN) inspect $(B)/demo-weight.safetensors

# The slices of real tensors that the tree holds; ABLATE_DATA=MODEL.safetensors for a whole checkpoint.
.PHONY: demo-ablate deps-charts
ABLATE_DATA ?= tests/data/minilm_slices.safetensors
ABLATE_PRESETS := ocp-mxfp4,torchao-rceil,nvfp4,fouroversix,hif4,mxfp4-e4m3,mxfp4-ue5m3,ocp-mxfp6-e2m3,ocp-mxfp8-e4m3,ocp-mxint8
deps-charts:
	@tools/install-deps.sh --mode=$(INSTALL) charts
demo-ablate: all deps-charts ## ten formats on real tensors: a table, a chart, a page, and a checkpoint in FP4
	$(BIN) ablate $(ABLATE_DATA) --presets $(ABLATE_PRESETS) --png $(B)/ablate.png --html $(B)/ablate.html
	@echo
	$(BIN) quantize $(ABLATE_DATA) --all --fake --preset nvfp4 -o $(B)/fake-nvfp4.safetensors
	@echo; echo "The chart is $(B)/ablate.png, the page $(B)/ablate.html, the checkpoint $(B)/fake-nvfp4.safetensors."

# A target half written is not taken for whole by the next make.
.DELETE_ON_ERROR:
# Check ends a test that takes longer than its time, four seconds by default: on a machine that has other work, or few processors, that says nothing.
export CK_TIMEOUT_MULTIPLIER ?= 20

.PHONY: unit
unit: deps-test $(BIN) $(TESTS) ## the Check suites alone
	@set -e; for t in $(TESTS); do $$t; done
test_%: deps-test $(BIN) $(B)/tests/test_% ## one of them; with a prefix too: make asan-test_codec
	$(B)/tests/$@

# The library under the two sanitizers that find most, in one build, and the suites that reach far into it in little time: tables and layouts, every
# operation on every ISA, the readers and writers, cases as files, and diff. Objects of rooms that none of these suites runs are those of the build that is
# there already: compiling them under sanitizers would take longer than all the rest. asan-test_gemm, usan-test_train and so on have them.
# -g1: a report needs lines and no variables, and the compiler half the time. Checks in the code are most of what the compiler works on, so none is made
# twice: what `null` and `object-size` find AddressSanitizer reports too; so it does of a pointer that left its object, when it is used, which is enough for
# the files of one ISA; and a function of more than 300 accesses calls AddressSanitizer's functions. usan-% has all of them.
.PHONY: check-asan sanitized
SANITIZED := tables layout kernels file vector diff
check-asan: $(LIB_A) $(REF_A) ## the library and quick suites under AddressSanitizer and UndefinedBehaviorSanitizer together
	@$(MAKE) -s CONFIG=asan+usan BUILT=$(B) OPT=-O1 SAN="-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -g1 \
	  -fno-sanitize=null,object-size $(call compiler_takes,--param asan-instrumentation-with-call-threshold=300)" SAN_ISA=-fno-sanitize=pointer-overflow sanitized
compiler_takes = $(shell echo 'int x;' | $(CC) $(1) -x c -c -o /dev/null - 2>/dev/null && echo '$(1)')
sanitized: deps-test $(SANITIZED:%=$(B)/tests/test_%)
	@set -e; for t in $(SANITIZED:%=$(B)/tests/test_%); do $$t; done

.PHONY: golden golden-check
GOLDEN := $(B)/tests/golden
golden: deps-test $(GOLDEN) ## write golden/HASHES and golden/vectors, by the reference model alone
	$(GOLDEN) golden
golden-check: deps-test $(GOLDEN) ## make them again elsewhere and compare
	@rm -rf $(B)/golden
	$(GOLDEN) $(B)/golden
	diff -r golden/HASHES $(B)/golden/HASHES
	diff -r golden/vectors $(B)/golden/vectors

.PHONY: probe-all
probe-all: deps-test $(B)/tests/test_probe ## every row of the tables, 50 random parameter sets and trees of additions through probe, a line each
	PROBE_ALL=1 $(B)/tests/test_probe

.PHONY: check-layers
check-layers: $(BIN) ## who may include and call whom (tools/rooms.txt), by the includes and the symbols of the objects; planted faults are found
	@tools/check-layers.sh $(B)/obj
	@tools/check-layers.sh --plant "$(CC)"

.PHONY: check-symbols
check-symbols: $(LIB_SO) $(LIB_A) ## the shared library exports what include/mxgold declares, every other global name begins with mxi_; planted violations are found
	$(if $(SAN),@echo "check-symbols: SKIPPED$(comma) a sanitizer adds names of its own",@CC="$(CC)" AR="$(AR)" tools/check-symbols.sh $(LIB_SO) $(LIB_A))

.PHONY: check-cli
check-cli: deps-test $(BIN) ## the program as a user meets it: messages, exits, what is left behind
	tests/run-cli.sh $(BIN)

# Faults: what a run leaves that something happens to.
.PHONY: faults check-faults
FAULTS      ?= 200
FAULTS_SEED ?= 1
faults: deps-test $(BIN) ## 200 random faults over every command that writes: killed, full disk, shrunk input, closed pipe, no memory (FAULTS=, FAULTS_SEED=)
	@$(PYTHON) tests/faults.py $(BIN) --faults $(FAULTS) --seed $(FAULTS_SEED)
check-faults: # a short fixed part of it
	@$(MAKE) -s faults FAULTS=60 FAULTS_SEED=1

.PHONY: man docs
man: $(BIN) ## docs/reference/mxgold.1 from the tables of commands
	@mkdir -p docs/reference
	$(BIN) help --man >docs/reference/mxgold.1
# The picture of the front page: the first block that two presets encode differently, as diff draws it. The README's table of rates.
.PHONY: picture speed-table
PICTURE_OF := tests/data/minilm_slices.safetensors:activation
picture: $(BIN) ## docs/picture.svg, the picture of README.md
	$(BIN) quantize $(PICTURE_OF) --preset ocp-mxfp4 -o $(B)/picture-a.safetensors
	$(BIN) quantize $(PICTURE_OF) --preset torchao-rceil -o $(B)/picture-b.safetensors
	$(BIN) diff $(B)/picture-a.safetensors $(B)/picture-b.safetensors --input $(PICTURE_OF) --html $(B)/picture.html >$(B)/picture.txt || [ $$? = 1 ]
	tools/picture.py $(B)/picture.html ocp-mxfp4 torchao-rceil "One block of 32 magnitudes under two rules that are both called MXFP4" docs/picture.svg
speed-table: ## the README's table of rates, from bench/last.txt and bench/last-gemm.txt
	@tools/speed-table.py
# docs/reference/PRESETS.md ends with what `make peers` measured, if it did: tests/peers/peers.md.
docs: man ## the pages of docs/reference that the program writes from its tables, and API.md from the headers
	$(BIN) help --markdown >docs/reference/CLI.md
	tools/api.py include/mxgold >docs/reference/API.md
	$(BIN) formats --markdown >docs/reference/FORMATS.md
	$(BIN) presets --markdown >docs/reference/PRESETS.md
	@if [ -f tests/peers/peers.md ]; then cat tests/peers/peers.md >>docs/reference/PRESETS.md; fi
	$(BIN) models --markdown >docs/reference/MODELS.md
	cat formats/datapaths.md >>docs/reference/MODELS.md

.PHONY: check-memory
check-memory: deps $(BIN) ## peak memory of mxgold gemm on large operands: under inputs + output + 64 MiB
	$(PYTHON) tests/memory.py $(BIN) $(B)/memory

.PHONY: clean
clean: ## remove build/
	rm -rf build

.PHONY: style style-check deps-style
deps-style:
	@tools/install-deps.sh --mode=$(INSTALL) style
# Not asked of git: in a tree without it, or of another owner, there would be no files, and clang-format would wait for one on its standard input.
STYLE_SRC = $(shell find bench examples formats hip_backend include python ref src tests tools -name '*.[ch]' -o -name '*.hip' -o -name '*.cu' -o -name '*.cc')
style: deps-style ## format every source file
	clang-format-14 -i $(STYLE_SRC)
style-check: deps-style
	@if command -v clang-format-14 >/dev/null; then clang-format-14 --dry-run --Werror $(STYLE_SRC) && echo "style: every file is formatted"; \
	else echo "style: SKIPPED, the archive of this release has no clang-format-14"; fi

asan-%: ## any target under AddressSanitizer
	$(MAKE) CONFIG=asan OPT=-O1 SAN="-fsanitize=address -fno-omit-frame-pointer -g1" $*
usan-%: ## any target under UndefinedBehaviorSanitizer
	$(MAKE) CONFIG=usan OPT=-O1 SAN="-fsanitize=undefined -fno-sanitize-recover=all -g1" $*
# By clang: its OpenMP tells ThreadSanitizer of its barriers (Archer). gcc's waits in ways that ThreadSanitizer does not see, and what threads wrote before such a
# barrier would be reported as a race with what is read behind it.
tsan-%: ## any target under ThreadSanitizer, with clang
	TSAN_OPTIONS="exitcode=66 ignore_noninstrumented_modules=1" $(MAKE) CONFIG=tsan CC=clang OPT=-O1 SAN="-fsanitize=thread -g1" $*
.PHONY: check-tsan run-tsan
check-tsan: ## threads of the library and the program under ThreadSanitizer; a planted race is found
	@tools/install-deps.sh --mode=$(INSTALL) tsan
	@$(MAKE) -s tsan-run-tsan
run-tsan: deps-test $(BIN) $(B)/tests/test_threads
	@tests/tsan.sh "$(CC) -g -O1 $(SAN) $(OMP)" $(abspath $(BIN) $(B)/tests/test_threads)
valgrind-%: deps-test ## a Check suite under valgrind: valgrind-test_quantize
	$(MAKE) $(B)/tests/$*
	CK_FORK=no MIXTURES=50 valgrind -q --error-exitcode=1 --leak-check=full $(B)/tests/$*
clang-%: ## any target with clang (CLANG=clang-22: that one)
	$(MAKE) CONFIG=$(CLANG) CC=$(CLANG) $*

# The last: it asks which targets there are.
include tests/check.mk
