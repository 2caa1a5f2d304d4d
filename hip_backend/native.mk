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
