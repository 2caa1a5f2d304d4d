# The native half of the HIP backend: gfx950's own instructions. Included by hip.mk.
HIP_NATIVE_C   := $(wildcard $(HIP)/gfx950_*.c)
HIP_NATIVE_OBJ := $(call obj,$(HIP_NATIVE_C)) $(patsubst $(HIP)/%.hip,$(B)/obj/$(HIP)/%.host.o,$(HIP_NATIVE))
# Packed binary32 arithmetic is left alone: gfx950 mis-executes some of it at times (ROCm/rocMLIR issue 2459).
HIP_FLAGS_native_quantize := -fno-slp-vectorize
OBJDUMP_AMD ?= llvm-objdump-22
READELF_AMD ?= llvm-readelf-22

# The kernels as the CPU host runtime runs them.
$(B)/obj/$(HIP)/%.host.o: $(HIP)/%.hip $(HIP_HDR) | deps
	@mkdir -p $(@D)
	$(HIP_CXX) -fPIC -x c++ -c $< -o $@
$(B)/hip/test_gfx950 $(B)/hip/test_native: $(B)/hip/%: $(HIP)/tests/%.cc $(HIP)/host_lanes.cc $(HIP_NATIVE_OBJ) $(HIP_HDR) $(REF_A) $(LIB_A)
	@mkdir -p $(@D)
	$(HIP_CXX) $(HIP)/host_lanes.cc $< $(HIP_NATIVE_OBJ) $(REF_A) $(LIB_A) $(LDFLAGS_ALL) $(LIBS) $(LIBS_REF) -o $@

.PHONY: hip-native-check hip-native-host hip-native-code
hip-native-check: hip-native-host hip-native-code ## gfx950's instructions: every kernel on the host runtime against ref/, and its disassembly
hip-native-host: deps-test $(B)/hip/test_gfx950 $(B)/hip/test_native
	$(B)/hip/test_gfx950
	$(B)/hip/test_native
hip-native-code:
	@if tools/install-deps.sh --mode=$(INSTALL) hip && command -v $(HIP_CLANG) >/dev/null && command -v $(OBJDUMP_AMD) >/dev/null; then \
	  $(MAKE) -s hip-native-disassembly; \
	else echo "hip-native-code: SKIPPED, $(HIP_CLANG) is not to be had: no native kernel was compiled or disassembled"; fi
.PHONY: hip-native-disassembly
hip-native-disassembly: $(patsubst $(HIP)/%.hip,$(HIP_B)/gfx950/%.hsaco,$(HIP_NATIVE))
	@$(PYTHON) tools/check-gfx950.py $(OBJDUMP_AMD) $(READELF_AMD) $^

# mxgold-gfx950: the profile of a device, with the kernels for gfx950 inside where they could be built.
GFX950_OBJ := $(patsubst %,$(B)/hip/%.o,gfx950_profile gfx950_sums gfx950_report gfx950_main device device_dl host_lanes)
GFX950 := $(B)/mxgold-gfx950
GFX950_CODE := $(if $(shell command -v $(HIP_CLANG) 2>/dev/null),$(patsubst $(HIP)/%.hip,$(HIP_B)/gfx950/%.hsaco,$(HIP_NATIVE)))
$(B)/hip/embed-native.S: $(GFX950_CODE) $(HIP)/embed.sh
	@mkdir -p $(@D)
	$(HIP)/embed.sh $(GFX950_CODE) >$@
$(GFX950): $(GFX950_OBJ) $(HIP_NATIVE_OBJ) $(B)/hip/embed-native.S $(LIB_A)
	$(CXX) $(LDFLAGS_ALL) $^ $(LIBS) -ldl -o $@

.PHONY: hip-rehearse hip-profile
REHEARSE ?= 20
hip-rehearse: deps $(B)/hip/hip-diff-host ## devices with hidden rules, played by the CPU host runtime: does the device profile find them? (REHEARSE=20, two minutes)
	$(B)/hip/hip-diff-host --rehearse $(REHEARSE) --wrong 5 --seed 101
hip-profile: deps $(GFX950) ## what the gfx950 at hand does where no document says it: build/hip/gfx950@DATE.json
	@mkdir -p $(HIP_B)
	$(GFX950) -o $(HIP_B)

# A kernel of someone else's under the harness: device pointers in, verdict out. docs/HIP.md, "Other people's kernels".
PLUGIN_SRC ?= examples/device_kernel.cc
PLUGIN_OBJ := $(patsubst %,$(HIP)/%.cc,device_plugin device device_dl host_lanes)
$(B)/device_kernel.so: $(PLUGIN_SRC) $(PLUGIN_OBJ) $(HIP_NATIVE_OBJ) $(B)/hip/embed-native.S $(HIP_HDR) $(LIB_A)
	@mkdir -p $(@D)
	$(HIP_CXX) -fPIC -shared $(PLUGIN_FLAGS) $(PLUGIN_SRC) $(PLUGIN_OBJ) $(HIP_NATIVE_OBJ) $(B)/hip/embed-native.S $(LIB_A) $(LDFLAGS_ALL) $(LIBS) -ldl -o $@
.PHONY: device-plugin
device-plugin: deps $(B)/device_kernel.so ## examples/device_kernel.cc (PLUGIN_SRC=yours.cc) as a plugin of mxgold test, operands on the device
