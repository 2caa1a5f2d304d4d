# Makes the programs that use the library and the kernels under test, and runs the walk-through of docs/guide/VERIFY.md. The Makefile includes it.
.PHONY: examples demo-verify demo-train
EXAMPLES := $(patsubst examples/%.c,$(B)/examples/%,$(filter-out examples/kernel_plugin.c,$(wildcard examples/*.c)))
$(B)/examples/%: examples/%.c $(LIB_A)
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(CFLAGS_ALL) $(WERROR) $< $(LIB_A) $(LDFLAGS_ALL) $(LIBS) -o $@
# Kernels under test: shared objects. The one for a GPU needs nvcc; a machine without one does without.
SM      ?= sm_90
PLUGINS := $(B)/examples/kernel_plugin.so
ifneq ($(shell command -v $(NVCC) 2>/dev/null),)
PLUGINS += $(B)/examples/kernel_plugin_cuda.so
else
PLUGINS += no-nvcc
endif
.PHONY: no-nvcc
no-nvcc:
	@echo "examples: kernel_plugin_cuda.cu is left out: no $(NVCC)"
$(B)/examples/%.so: examples/%.c
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) -O2 -shared -fPIC -Iinclude $(KERNEL_FLAGS) $< -lm -o $@
$(B)/examples/%.so: examples/%.cu examples/mxfp4_kernel.h
	@mkdir -p $(@D)
	$(call say,NVCC,$<)$(NVCC) -O2 -std=c++17 -arch=$(SM) -shared -Xcompiler -fPIC -Iinclude $(KERNEL_FLAGS) $< -o $@
examples: deps $(EXAMPLES) $(PLUGINS) ## the programs and kernels of examples/
demo-verify: $(BIN) ## from a wrong kernel to its named bug: docs/guide/VERIFY.md
	examples/demo-verify.sh $(BIN)
demo-train: $(BIN) deps-charts ## a small llama in FP32 and under three FP4 recipes: loss curves and what they mean (under two minutes)
	examples/demo-train.sh $(BIN) $(B)/demo-train
