# The native half of the HIP backend: gfx950's own instructions. Included by hip.mk.
HIP_NATIVE_C   := $(wildcard $(HIP)/gfx950/*.c)
HIP_NATIVE_OBJ := $(call obj,$(HIP_NATIVE_C)) $(patsubst $(HIP)/%.hip,$(B)/obj/$(HIP)/%.host.o,$(HIP_NATIVE))
# Beside ROCm's clang stand its own.
llvm_tool = $(if $(filter clang-22,$(HIP_CLANG)),$(1)-22,$(dir $(HIP_CLANG))$(1))
OBJDUMP_AMD ?= $(call llvm_tool,llvm-objdump)
READELF_AMD ?= $(call llvm_tool,llvm-readelf)

# The kernels as the CPU host runtime runs them.
$(B)/obj/$(HIP)/%.host.o: $(HIP)/%.hip $(HIP_HDR) | deps
	@mkdir -p $(@D)
	$(call say,HIP,$<)$(HIP_CXX) -fPIC -x c++ -c $< -o $@
HIP_NATIVE_TESTS := $(patsubst %,$(B)/hip/test_%,gfx950 products published questions native)
$(HIP_NATIVE_TESTS): $(B)/hip/%: $(HIP)/tests/%.cc $(HIP)/tests/native_test.h $(B)/hip/run/host_lanes.o $(HIP_NATIVE_OBJ) $(HIP_HDR) $(REF_A) $(LIB_A)
	@mkdir -p $(@D)
	$(call say,CXX,$<)$(HIP_CXX) $(filter %.cc %.o %.S,$^) $(REF_A) $(LIB_A) $(LDFLAGS_ALL) $(LIBS) $(LIBS_REF) -ldl -o $@

$(B)/hip/test_questions: $(patsubst %,$(B)/hip/gfx950/%.o,profile questions hold sums joins records report) $(B)/hip/run/device.o $(B)/hip/run/device_dl.o $(B)/hip/embed-none.S

.PHONY: hip-native-check hip-native-host hip-native-code
hip-native-check: hip-native-host hip-native-code ## gfx950's instructions: every kernel on the host runtime against ref/, and its disassembly
hip-native-host: deps-test $(HIP_NATIVE_TESTS)
	@set -e; for t in $(HIP_NATIVE_TESTS); do $$t; done
hip-native-code:
	@tools/install-deps.sh --mode=$(INSTALL) hip || true
	@missing=$$($(call hip_missing,$(HIP_TOOLS) $(OBJDUMP_AMD) $(READELF_AMD))); if [ -z "$$missing" ]; then $(MAKE) -s hip-native-disassembly; \
	else echo "hip-native-code: SKIPPED, not to be had: $${missing}- no native kernel was compiled or disassembled"; fi
.PHONY: hip-native-disassembly
HIP_ENCODINGS := $(HIP_B)/gfx950/encodings.o
$(HIP_ENCODINGS): $(HIP)/tests/encodings.s
	@mkdir -p $(@D)
	$(call say,AS,$<)$(HIP_CLANG) -target amdgcn-amd-amdhsa -mcpu=gfx950 -c $< -o $@
hip-native-disassembly: $(patsubst %,$(HIP_B)/gfx950/%.hsaco,$(call hip_stem,$(HIP_NATIVE))) $(call hip_of,gfx950) $(HIP_ENCODINGS)
	@$(if $(SAN),,$(MAKE) -s $(MACHINE))
	@$(PYTHON) tools/check-portable.py $(patsubst %.hsaco,%.s,$(filter %.hsaco,$^)) >$(HIP_B)/registers.txt || { cat $(HIP_B)/registers.txt; exit 1; }
	@tail -1 $(HIP_B)/registers.txt
	@PYTHONDONTWRITEBYTECODE=1 $(PYTHON) tools/check-gfx950.py $(if $(SAN),,--library $(MACHINE)) $(OBJDUMP_AMD) $(READELF_AMD) $(filter $(HIP_B)/gfx950/native_%,$^) $(HIP_ENCODINGS)
# Python loads it: not with a sanitizer.
MACHINE := $(B)/hip/machine.so
$(MACHINE): $(B)/plugin/machine.o $(patsubst %,$(B)/plugin/run/%.o,device device_dl host_lanes) $(HIP_NATIVE_OBJ) $(B)/hip/embed-none.S $(LIB_A)
	$(call say,LD,$@)$(CXX) -shared $(LDFLAGS_ALL) $^ $(LIBS) -ldl -o $@
$(B)/plugin/machine.o: $(HIP)/tests/machine.cc $(HIP_HDR) | deps
	@mkdir -p $(@D)
	$(call say,CXX,$<)$(HIP_CXX) -fPIC -c $< -o $@

.PHONY: hip-native-mutants
hip-native-mutants: hip-native-code ## the native kernels' machine code changed in one place at a time: hip-native-code must notice (80 s of processor time)
	@PYTHONDONTWRITEBYTECODE=1 $(PYTHON) $(HIP)/tests/native_mutants.py $(HIP_CLANG) $(HIP_B)/gfx950 \
	  $(PYTHON) tools/check-gfx950.py --library $(MACHINE) $(OBJDUMP_AMD) $(READELF_AMD)

# mxgold-gfx950: the profile of a device, with the kernels for gfx950 inside where they could be built.
GFX950_OBJ := $(patsubst %,$(B)/hip/%.o,$(addprefix gfx950/,profile questions hold sums joins records report main) $(addprefix run/,device device_dl host_lanes))
GFX950 := $(B)/mxgold-gfx950
GFX950_CODE := $(if $(shell $(call hip_missing,$(HIP_TOOLS))),,$(patsubst %,$(HIP_B)/gfx950/%.hsaco,$(call hip_stem,$(HIP_NATIVE))))
$(B)/hip/embed-native.S: $(GFX950_CODE) $(HIP)/embed.sh
	@mkdir -p $(@D)
	$(HIP)/embed.sh $(GFX950_CODE) >$@
$(GFX950): $(GFX950_OBJ) $(HIP_NATIVE_OBJ) $(B)/hip/embed-native.S $(LIB_A)
	$(call say,LD,$@)$(CXX) $(LDFLAGS_ALL) $^ $(LIBS) -ldl -o $@

.PHONY: hip-rehearse hip-profile
REHEARSE ?= 20
hip-rehearse: deps $(B)/hip/hip-diff-host ## devices with hidden rules, played by the CPU host runtime: does the device profile find them? (REHEARSE=20, seven minutes of processor time)
	$(B)/hip/hip-diff-host --rehearse $(REHEARSE) --wrong 5 --seed 101
hip-profile: ## what the gfx950 at hand does where no document says it: build/hip/gfx950@DATE.json
	@tools/install-deps.sh --mode=$(INSTALL) build hip || { $(call hip_without,hip-profile); }
	@$(MAKE) -s hip-profile-build
	@mkdir -p $(HIP_B)
	$(GFX950) -o $(HIP_B)
.PHONY: hip-profile-build
hip-profile-build: deps $(GFX950)

# A kernel of someone else's under the harness: device pointers in, verdict out. docs/guide/HIP.md, "Put your own GPU kernel under test".
# PLUGIN_SRC: one or more of .cc, .cu (nvcc, for SM) and .hip (hipcc, else clang-22, for PLUGIN_ARCH); PLUGIN_FLAGS go to its compiler, PLUGIN_LIBS to the linker.
# PLUGIN_ON=host: a .hip that uses no more of HIP than without_rocm/hip/hip_runtime.h has, for the CPU host runtime.
PLUGIN_ON ?=
HIP_SHIM := -I$(HIP)/without_rocm
PLUGIN_SRC ?= examples/device_kernel.cc
PLUGIN_FLAGS ?=
PLUGIN_LIBS ?=
PLUGIN_ARCH ?= gfx950
PLUGIN_B := $(B)/plugin
PLUGIN_CXX = $(CXX) -std=c++17 $(OPT) -g $(HIP_FP) $(HIP_INC) -DMXH_HOST=1 -fPIC
PLUGIN_NVCC = $(NVCC) -O2 -std=c++17 -arch=$(SM) -Xcompiler -fPIC $(HIP_INC)
PLUGIN_HIPCC = $(if $(shell command -v hipcc 2>/dev/null),hipcc,$(HIP_CLANG) -x hip $(if $(ROCM),--rocm-path=$(ROCM),-nogpulib -nogpuinc $(HIP_SHIM))) \
  --offload-arch=$(PLUGIN_ARCH) -O2 -std=c++17 -ffp-contract=off -fPIC $(HIP_INC)
PLUGIN_RUNTIME = $(if $(filter %.cu,$(PLUGIN_SRC)),-L$(CUDA)/lib64 -lcudart_static -lrt -lpthread) \
  $(if $(filter host,$(PLUGIN_ON)),,$(PLUGIN_AMD))
PLUGIN_AMD = $(if $(filter %.hip,$(PLUGIN_SRC)),$(if $(ROCM),-L$(ROCM)/lib -Wl$(comma)-rpath$(comma)$(ROCM)/lib) -lamdhip64)
comma := ,
plugin_objs = $(foreach s,$(PLUGIN_SRC),$(PLUGIN_B)/$(notdir $(s)).o)
plugin_with = $(if $(filter %.cu,$(1)),$(PLUGIN_NVCC),$(if $(filter %.hip,$(1)),$(if $(filter host,$(PLUGIN_ON)),$(PLUGIN_CXX) $(HIP_SHIM) -x c++,$(PLUGIN_HIPCC)),$(PLUGIN_CXX)))
# Another source, other flags or another compiler: made again, whatever the files' times. A source that is gone since is no error.
$(PLUGIN_B)/flags: export MXH_STAMP = $(PLUGIN_SRC) | $(PLUGIN_FLAGS) | $(PLUGIN_LIBS) | $(foreach s,$(PLUGIN_SRC),$(call plugin_with,$(s)))
$(PLUGIN_B)/flags: FORCE
	@mkdir -p $(@D); printf '%s\n' "$$MXH_STAMP" | cmp -s - $@ || printf '%s\n' "$$MXH_STAMP" >$@
define plugin_obj
$(PLUGIN_B)/$(notdir $(1)).o: $(1) $(PLUGIN_B)/flags | deps
	$$(call say,CXX,$$<)$$(call plugin_with,$(1)) $$(PLUGIN_FLAGS) -MMD -MP -MF $$@.d -c $$< -o $$@
	@echo '$$<:' >>$$@.d
endef
$(foreach s,$(PLUGIN_SRC),$(eval $(call plugin_obj,$(s))))
-include $(wildcard $(PLUGIN_B)/*.d)
PLUGIN_OBJ := $(patsubst %,$(PLUGIN_B)/run/%.o,device_plugin device device_dl host_lanes)
$(PLUGIN_B)/%.o: $(HIP)/%.cc $(HIP_HDR) | deps
	@mkdir -p $(@D)
	$(call say,CXX,$<)$(HIP_CXX) -fPIC -c $< -o $@
$(B)/device_kernel.so: $(plugin_objs) $(PLUGIN_OBJ) $(HIP_NATIVE_OBJ) $(B)/hip/embed-native.S $(LIB_A) $(PLUGIN_B)/flags
	$(call say,LD,$@)$(CXX) -shared $(LDFLAGS_ALL) $(filter-out %/flags,$^) $(LIBS) $(PLUGIN_LIBS) $(PLUGIN_RUNTIME) -ldl -o $@
.PHONY: device-plugin device-plugin-build hip-plugin-check
device-plugin-build: deps $(B)/device_kernel.so
device-plugin: ## examples/device_kernel.cc (PLUGIN_SRC=yours.cc, .cu or .hip; PLUGIN_FLAGS, PLUGIN_LIBS) as a plugin of mxgold test, operands on the device
	@tools/install-deps.sh --mode=$(INSTALL) build hip $(if $(PLUGIN_AMD),hip-host) || echo "device-plugin: no compiler for AMD: our kernels for gfx950 are SKIPPED"
	@if $(PLUGIN_LINKS); then $(MAKE) -s device-plugin-build || { rm -f $(B)/device_kernel.so; echo "device-plugin: nothing was built"; exit 1; }; else rm -f $(B)/device_kernel.so; \
	  echo "device-plugin: SKIPPED, nothing was built: $(filter %.hip,$(PLUGIN_SRC)) needs HIP's runtime to link with, libamdhip64.so (ROCm in /opt/rocm, ROCM=FOLDER, or PLUGIN_LIBS=-LFOLDER); PLUGIN_ON=host builds a plain kernel for the CPU host runtime"; fi
# Can a .hip be linked here?
PLUGIN_LINKS = $(if $(filter host,$(PLUGIN_ON)),true,$(if $(PLUGIN_AMD),echo 'int main() {}' | $(CXX) -x c++ - -x none $(PLUGIN_LIBS) $(PLUGIN_AMD) -o /dev/null 2>/dev/null,true))
hip-plugin-check: deps-test $(BIN) ## device-plugin with other sources, flags and compilers, and mxgold test on it without a device and with a driver that is played
	hip_backend/tests/plugin.sh $(BIN) $(B) "$(MAKE) -s INSTALL=$(INSTALL) CONFIG=$(CONFIG)" "$(CC)"
