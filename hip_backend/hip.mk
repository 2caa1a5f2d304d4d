# The HIP backend: kernels for AMD (clang-22, no ROCm), for NVIDIA (nvcc, if there), and for the CPU host runtime. Included by the Makefile.
# hip_backend/gfx950/native_*.hip use instructions of gfx950 and are built for it and for the host runtime alone; those of hip_backend/kernels/ are portable.
HIP       := hip_backend
HIP_B     := build/hip
ROCM ?= $(firstword $(wildcard /opt/rocm))
# ROCm's own clang where clang-22 cannot be had.
HIP_CLANG ?= $(if $(shell command -v clang-22 2>/dev/null),clang-22,$(firstword $(wildcard $(addsuffix /llvm/bin/clang,$(ROCM))) clang-22))
# What code for AMD needs, and the shell command that prints which of the tools named are not there.
HIP_TOOLS := $(HIP_CLANG) $(if $(filter clang-22,$(HIP_CLANG)),ld.lld-22)
hip_missing = for t in $(1); do command -v $$t >/dev/null || printf '%s ' $$t; done
# Said before a program that goes without, the installation having failed.
hip_without = m=$$($(call hip_missing,$(HIP_TOOLS))); if [ -z "$$m" ]; then echo "$(1): kernels for AMD are compiled by $(HIP_CLANG)"; else echo "$(1): not to be had: $${m}- kernels for AMD are SKIPPED"; fi
HIP_ARCHS := gfx950 gfx942 gfx90a
# make itself knows a CXX; clang-% sets CC.
ifeq ($(origin CXX),default)
CXX       := $(if $(findstring clang,$(CC)),$(subst clang,clang++,$(CC)),g++)
endif
HIP_WARN   = -Wall -Wextra -Wshadow $(WERROR)
HIP_FP    := -ffp-contract=off -fno-fast-math
HIP_INC   := -I. -Iinclude
# No packed binary32 arithmetic: gfx950 mis-executes some of it at times (ROCm/rocMLIR pull request 2459). Both vectorisers make it.
HIP_AMD   := -fno-slp-vectorize -fno-vectorize
HIP_HDR   := $(wildcard $(HIP)/*/*.h $(HIP)/kernels/device/*.h $(HIP)/compare/*.def formats/gfx950*.def)
HIP_NATIVE   := $(wildcard $(HIP)/gfx950/native_*.hip)
HIP_PORTABLE := $(wildcard $(HIP)/kernels/*.hip)
hip_stem   = $(basename $(notdir $(1)))
hip_of     = $(patsubst %,$(HIP_B)/$(1)/%.hsaco,$(call hip_stem,$(HIP_PORTABLE) $(if $(filter gfx950,$(1)),$(HIP_NATIVE))))
HIP_EXAMPLE := $(HIP_B)/example/device_kernel_hip.s
HIP_CODE  := $(foreach a,$(HIP_ARCHS),$(call hip_of,$(a)))

.PHONY: hip hip-device deps-hip hip-runtime-check
deps-hip:
	@tools/install-deps.sh --mode=$(INSTALL) build hip
# Without the compiler there is nothing to build: said, and counted as a skip, not as a success.
hip: ## every kernel for gfx950, and the portable ones for gfx942 and gfx90a; assembly in build/hip/ARCH/*.s
	@tools/install-deps.sh --mode=$(INSTALL) hip || true
	@missing=$$($(call hip_missing,$(HIP_TOOLS))); if [ -z "$$missing" ]; then $(MAKE) -s hip-device; \
	else echo "hip: SKIPPED, not to be had: $${missing}- no kernel was compiled for AMD"; fi
hip-device: $(HIP_CODE) $(HIP_EXAMPLE)
	@for f in $(HIP_CODE:.hsaco=.s); do [ -f $$f ] || { echo "hip: $$f is not there"; exit 1; }; done
	@for f in $(HIP_EXAMPLE); do echo "hip: $$f: a kernel in HIP's own words, $$(grep -c '\.amdhsa_kernel' $$f) compiled"; done
	@for a in $(HIP_ARCHS); do echo "hip: $$a: $$(ls $(HIP_B)/$$a/*.hsaco | wc -l) files compiled, $$(cat $(HIP_B)/$$a/*.s | grep -c '\.amdhsa_kernel') kernels"; done

# The outputs are named by the source's own name; vpath finds the room that it stands in.
vpath %.hip $(HIP)/kernels $(HIP)/gfx950
# Assembly first, the code object from it: what is read in the .s is what runs.
define hip_arch
.PRECIOUS: $(HIP_B)/$(1)/%.s
$(HIP_B)/$(1)/%.s: %.hip $(HIP_HDR) $(HIP)/hip.mk
	@mkdir -p $$(@D)
	$$(call say,HIP,$$@)$(HIP_CLANG) -x hip --offload-arch=$(1) -nogpulib -nogpuinc --offload-device-only -std=c++17 -O2 $$(HIP_WARN) $(HIP_FP) $(HIP_AMD) $(HIP_INC) -DMXH_HIP=1 -S $$< -o $$@
$(HIP_B)/$(1)/%.hsaco: $(HIP_B)/$(1)/%.s
	$$(call say,AS,$$@)$(HIP_CLANG) -target amdgcn-amd-amdhsa -mcpu=$(1) $$< -o $$@
endef
$(foreach a,$(HIP_ARCHS),$(eval $(call hip_arch,$(a))))

# The worked example in HIP's own words: its device half, with ROCm's header where that is not here played by ours.
$(HIP_B)/example/%.s: examples/%.hip $(HIP_HDR) $(wildcard $(HIP)/without_rocm/hip/*.h) $(HIP)/hip.mk
	@mkdir -p $(@D)
	$(call say,HIP,$<)$(HIP_CLANG) -x hip --offload-arch=gfx950 -nogpulib -nogpuinc --offload-device-only -std=c++17 -O2 $(HIP_WARN) $(HIP_FP) $(HIP_AMD) $(HIP_INC) -I$(HIP)/without_rocm -S $< -o $@

# The host program: g++ for the host runtime's kernels, and the code objects of every device that could be built, carried inside.
HIP_CXX    = $(CXX) -std=c++17 $(OPT) -g $(HIP_WARN) $(HIP_FP) $(HIP_INC) -DMXH_HOST=1 $(OMP) $(SAN)
HIP_OBJ   := $(patsubst %,$(B)/hip/%.o,$(addprefix run/,plan device device_dl ops ops_fast host_lanes) $(addprefix compare/,diff golden portable quantize values fast gemm))
HIP_KOBJ  := $(patsubst $(HIP)/%.hip,$(B)/hip/%.o,$(HIP_PORTABLE))
HIP_SUITE := $(patsubst %,$(B)/obj/tests/lib/%.o,suites mixtures product_inputs)

$(B)/hip/%.o: $(HIP)/%.cc $(HIP_HDR) | deps
	@mkdir -p $(@D)
	$(call say,CXX,$<)$(HIP_CXX) -c $< -o $@
$(B)/hip/%.o: $(HIP)/tests/%.cc $(HIP_HDR) | deps
	@mkdir -p $(@D)
	$(call say,CXX,$<)$(HIP_CXX) -c $< -o $@
$(B)/hip/%.o: $(HIP)/%.hip $(HIP_HDR) | deps
	@mkdir -p $(@D)
	$(call say,HIP,$<)$(HIP_CXX) -x c++ -c $< -o $@

# NVIDIA: one file with machine code for sm_90 and PTX of compute capability 8.0, of which the driver makes code for every other device from sm_80 on.
# Single operations are rounded to nearest in the PTX as well (.rn), so the bits are the same.
CUDA_B    := build/hip/cuda
CUDA_CODE := $(patsubst %,$(CUDA_B)/%.fatbin,$(call hip_stem,$(HIP_PORTABLE)))
$(CUDA_B)/%.fatbin: %.hip $(HIP_HDR) $(HIP)/hip.mk
	@mkdir -p $(@D)
	$(call say,NVCC,$<)$(NVCC) -x cu -std=c++17 -O3 -fmad=false -prec-div=true -prec-sqrt=true -ftz=false $(if $(WERROR),-Werror all-warnings) $(HIP_INC) -DMXH_CUDA=1 \
	  -gencode=arch=compute_90,code=sm_90 -gencode=arch=compute_80,code=compute_80 -fatbin $< -o $@

# A table of the code objects: HIP_EMBED says which go in.
HIP_EMBED ?=
$(B)/hip/embed.S: $(HIP_EMBED) $(HIP)/embed.sh $(HIP)/hip.mk
	@mkdir -p $(@D)
	$(HIP)/embed.sh $(HIP_EMBED) >$@
$(B)/hip/embed-none.S: $(HIP)/embed.sh
	@mkdir -p $(@D)
	$(HIP)/embed.sh >$@

$(B)/hip/check: $(B)/hip/check.o $(HIP_OBJ) $(HIP_KOBJ) $(HIP_SUITE) $(B)/hip/embed-none.S $(REF_A) $(LIB_A)
	$(call say,LD,$@)$(CXX) $(LDFLAGS_ALL) $^ $(LIBS) $(LIBS_REF) -ldl -o $@
$(B)/hip/test_runtime: $(HIP)/tests/test_runtime.cc $(HIP)/tests/runtime_kernels.hip $(HIP)/run/host_lanes.cc $(HIP_HDR)
	@mkdir -p $(@D)
	$(call say,CXX,$<)$(HIP_CXX) $(HIP)/run/host_lanes.cc $< -o $@

.PHONY: hip-check hip-runtime-check
hip-runtime-check: deps $(B)/hip/test_runtime ## the host runtime reports kernels that are wrong on purpose
	$(B)/hip/test_runtime
hip-check: deps hip-runtime-check $(B)/hip/check ## the portable kernels on the CPU host runtime against ref/: half of the presets and suites (CHECK_ALL=1: all of them, 10 s)
	$(B)/hip/check

# The drivers' headers are not needed to build: where they are, the calls are held to them. HIP_API=FOLDER of hip/hip_runtime_api.h, CUDA_API= of cuda.h.
HIP_API  ?= $(firstword $(wildcard /opt/rocm/include /usr/include/hip/..))
CUDA_API ?= $(firstword $(wildcard /usr/local/cuda/include))
.PHONY: hip-api-check
hip-api-check: ## the drivers' calls against the headers of HIP and CUDA, if they are there (HIP_API=FOLDER, CUDA_API=FOLDER)
	@if [ -n "$(HIP_API)" ]; then $(CXX) -std=c++17 -fsyntax-only $(HIP_WARN) $(HIP_INC) -isystem $(HIP_API) $(HIP)/tests/driver_api.cc && \
	  echo "hip-api-check: HIP's calls are as its headers say"; else echo "hip-api-check: HIP SKIPPED, no headers (libamdhip64-dev)"; fi
	@if [ -n "$(CUDA_API)" ]; then $(CXX) -std=c++17 -fsyntax-only -DCUDA_API $(HIP_WARN) $(HIP_INC) -isystem $(CUDA_API) $(HIP)/tests/driver_api.cc && \
	  echo "hip-api-check: CUDA's calls are as its header says"; else echo "hip-api-check: CUDA SKIPPED, no cuda.h"; fi

include hip_backend/native.mk

# mxgold-hip-diff carries the code objects that could be built here; make hip-diff builds them first. Programs travel to the machine with the
# device: what that may lack is linked in.
HIP_COMMIT = $(shell git describe --always --dirty 2>/dev/null || echo unknown)
HIP_HAVE_CLANG := $(if $(shell $(call hip_missing,$(HIP_TOOLS))),,$(HIP_CLANG))
HIP_HAVE_NVCC  := $(shell command -v $(NVCC) 2>/dev/null)
HIP_CARRIED := $(if $(HIP_HAVE_CLANG),$(HIP_CODE)) $(if $(HIP_HAVE_NVCC),$(CUDA_CODE))
HIP_COMPILERS = $(if $(HIP_HAVE_CLANG),$(HIP_CLANG) $(shell $(HIP_CLANG) -dumpversion 2>/dev/null)) $(if $(HIP_HAVE_NVCC),nvcc $(shell $(NVCC) --version | sed -n 's/.*release \([0-9.]*\).*/\1/p')) $(CXX) $(shell $(CXX) -dumpversion)
HIP_STATIC := -l:libjansson.a -l:libxxhash.a -l:libgomp.a -l:libstdc++.a -static-libgcc -lm -ldl -lpthread
$(B)/hip/embed-all.S: $(HIP_CARRIED) $(HIP)/embed.sh
	@mkdir -p $(@D)
	$(HIP)/embed.sh $(HIP_CARRIED) >$@
# The commit is part of a report: the program is made anew when it changes.
$(B)/hip/commit: FORCE
	@mkdir -p $(@D); echo '$(HIP_COMMIT)' | cmp -s - $@ || echo '$(HIP_COMMIT)' >$@
FORCE:
.PHONY: FORCE
$(B)/hip/compare/hip_diff.o: $(B)/hip/commit
$(B)/hip/compare/hip_diff.o: HIP_CXX += -DMXH_COMMIT='"$(HIP_COMMIT)"' -DMXH_COMPILERS='"$(HIP_COMPILERS)"'
HIP_DIFF := $(B)/mxgold-hip-diff
HIP_DIFF_OBJ := $(patsubst %,$(B)/hip/%.o,$(addprefix compare/,hip_diff watch report native rehearse) $(addprefix gfx950/,profile questions hold sums joins records report)) $(HIP_NATIVE_OBJ)
$(HIP_DIFF): $(HIP_DIFF_OBJ) $(HIP_OBJ) $(HIP_KOBJ) $(HIP_SUITE) $(B)/hip/embed-all.S $(LIB_A)
	$(call say,LD,$@)gcc $(filter-out -fopenmp,$(LDFLAGS_ALL)) $^ $(HIP_STATIC) -o $@

# The same program without code for any device: what it prints and writes, and that mxgold takes the profile.
$(B)/hip/hip-diff-host: $(HIP_DIFF_OBJ) $(HIP_OBJ) $(HIP_KOBJ) $(HIP_SUITE) $(B)/hip/embed-none.S $(LIB_A)
	$(call say,LD,$@)$(CXX) $(LDFLAGS_ALL) $^ $(LIBS) -ldl -o $@
# Every host object of the backend: who calls whom is read from their symbols.
HIP_GRAPH := $(sort $(HIP_DIFF_OBJ) $(HIP_OBJ) $(HIP_KOBJ) $(HIP_SUITE) $(GFX950_OBJ) $(B)/hip/run/device_plugin.o)
.PHONY: hip-layers
hip-layers: deps $(BIN) $(HIP_GRAPH) ## check-layers with the calls of hip_backend's own objects
	@tools/check-layers.sh $(B)/obj . tools/rooms.txt $(B)/hip
.PHONY: hip-diff-check
hip-diff-check: deps $(BIN) $(B)/hip/hip-diff-host ## hip-diff's table, report and profile, from the CPU host runtime (half a minute)
	hip_backend/tests/diff_fault.sh $(B)/hip/hip-diff-host
	hip_backend/tests/diff.sh $(BIN) $(B)/hip/hip-diff-host

.PHONY: hip-diff hip-diff-build
hip-diff-build: deps $(HIP_DIFF)
DEVICE ?= auto
hip-diff: ## every kernel and instruction on the device at hand (DEVICE=auto|hip|cuda|host) against the emulator: a table, build/hip/diff.json, diff.html, a device profile
	@tools/install-deps.sh --mode=$(INSTALL) build hip || { $(call hip_without,hip-diff); }
	@$(MAKE) -s hip-diff-build
	@mkdir -p $(HIP_B)
	@$(HIP_DIFF) --device $(DEVICE) --hashes golden/HASHES --bench --json $(HIP_B)/diff.json --html $(HIP_B)/diff.html --profile $(HIP_B)

.PHONY: hip-mutants
hip-mutants: deps $(B)/hip/check ## the device code broken in one place at a time: hip-check must notice (3 minutes)
	@CHECK_ALL=1 $(PYTHON) $(HIP)/tests/mutants.py "$(HIP_CXX)" "$(B)/hip/check.o $(HIP_OBJ) $(HIP_KOBJ) $(HIP_SUITE) $(B)/hip/embed-none.S $(REF_A) $(LIB_A) $(LDFLAGS_ALL) $(LIBS) $(LIBS_REF) -ldl" $(ONLY)
