# The same bits everywhere: other processors, each ISA, all floats. Included by the Makefile.
# The library without its readers, for AArch64, under an emulator of it. Random123 is headers alone, the same for every machine.
.PHONY: deps-neon check-neon
CROSS   ?= aarch64-linux-gnu-
QEMU    ?= qemu-aarch64 -L /usr/aarch64-linux-gnu
NEON    := build/neon
DIGESTS := $(filter-out src/core/spec_json.c,$(wildcard src/core/*.c)) $(call rooms,src/kernels) $(wildcard src/gemm/dense/*.c) src/io/base/digest.c \
  tests/lib/suites.c tests/lib/checkasm.c tests/lib/checkasm_inputs.c tests/lib/checkasm_tensors.c tests/lib/math_inputs.c tests/isa_digests.c
deps-neon:
	@tools/install-deps.sh --mode=$(INSTALL) build neon
check-neon: deps-neon ## NEON kernels under qemu: golden/HASHES, and each operation against the scalar code
	@mkdir -p $(NEON)/include && ln -sfn /usr/include/Random123 $(NEON)/include/Random123 && ln -sfn /usr/include/xxhash.h $(NEON)/include/
	$(CROSS)gcc $(CSTD) $(OPT) $(WARN) $(WERROR) $(FP) $(OMP) -DXXH_INLINE_ALL -I. -Iinclude -Isrc -Itests -isystem $(NEON)/include \
	  $(filter-out %_avx2.c %_avx512.c %_amx.c,$(DIGESTS)) -lm -o $(NEON)/isa_digests
	tools/check-isa.sh $(NEON)/isa_digests $(CROSS)objdump
	$(QEMU) $(NEON)/isa_digests golden/HASHES

# The whole program for AArch64: a training run there must give the bits that it gives here.
.PHONY: check-train-neon
NEON_CONFIG := CONFIG=aarch64 CC=$(CROSS)gcc AR=$(CROSS)ar LDFLAGS=-static
check-train-neon: deps-neon $(BIN) ## the digests of short training runs on AArch64 under qemu and here, step by step
	@tools/install-deps.sh --mode=$(INSTALL) neon-program
	@$(MAKE) -s $(NEON_CONFIG) build/aarch64/mxgold
	tests/train_digests.sh "$(QEMU) build/aarch64/mxgold" $(BIN)

# The same of other compilers: clang, and gcc without optimisation, which keeps every value that it could have fused or reordered.
.PHONY: check-train-compilers
CLANG ?= clang
check-train-compilers: $(BIN) ## the digests of short training runs built by clang and at -O0, against this build's (CLANG=)
	@tools/install-deps.sh --mode=$(INSTALL) tsan
	@$(MAKE) -s CONFIG=$(CLANG) CC=$(CLANG) build/$(CLANG)/mxgold
	@$(MAKE) -s CONFIG=o0 OPT=-O0 build/o0/mxgold
	tests/train_digests.sh build/$(CLANG)/mxgold $(BIN)
	tests/train_digests.sh build/o0/mxgold $(BIN)

.PHONY: train-kills
train-kills: deps-test $(BIN) ## a training run killed at 20 random moments and resumed, against one that was never stopped (KILLS=, KILLS_SEED=)
	$(PYTHON) tests/train_kills.py $(BIN) $(or $(KILLS),20) $(or $(KILLS_SEED),1)

.PHONY: sweep-kills
sweep-kills: deps-test $(BIN) ## sweeps, with halving and without, killed at 20 random moments, their journals cut at random bytes, against ones left alone (KILLS=, KILLS_SEED=)
	$(PYTHON) tests/sweep_kills.py $(BIN) $(or $(KILLS),20) $(or $(KILLS_SEED),1)

# Vector instructions of an ISA stand in files of its name alone.
.PHONY: check-isa
check-isa: $(LIB_A) ## each object's instructions, by their encoding, are of the ISA that its name says; planted objects are found
	tools/check-isa.sh $(B)
ifeq ($(ARCH),x86_64)
	@tools/check-isa.sh --plant $(CC)
endif

.PHONY: check-instructions
check-instructions: deps-test $(BIN) ## instructions of the AVX2 kernels against the scalar code, by callgrind: a kernel that falls back is seen
	$(if $(SAN),@echo "check-instructions: SKIPPED$(comma) a sanitizer's instructions are no kernel's",tests/instructions.sh $(BIN))

.PHONY: exhaustive
exhaustive: deps-test $(B)/tests/exhaustive ## all 2^32 floats x format x rounding, all block maxima x scale rule
	$(B)/tests/exhaustive $(ONLY)

.PHONY: exhaustive-math
exhaustive-math: deps-test $(B)/tests/exhaustive_math ## all 2^32 floats through exp, tanh, gelu, ...: stated errors, and the same bits on each ISA (ONLY=name)
	$(B)/tests/exhaustive_math $(or $(ONLY),all)

.PHONY: check-mpi
check-mpi: $(BIN) ## a sweep and an ablation by 1, 2 and 3 ranks of MPI, one of them killed, against ones without MPI
	@tools/install-deps.sh --mode=$(INSTALL) mpi
	@$(MAKE) -s MPI=1 build/mpi/mxgold
	tests/mpi.sh build/mpi/mxgold $(BIN)
