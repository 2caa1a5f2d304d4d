# Builds what compares mxgold with an NVIDIA H200. The Makefile includes it. Only the device programs need CUDA's compiler.
SIL    := tests/silicon
SIL_B  := $(B)/silicon
NVCC   ?= nvcc
CUDA   ?= $(patsubst %/bin/,%,$(dir $(shell command -v $(NVCC))))
SIL_H  := $(wildcard $(SIL)/*.h $(SIL)/*.def)
SIL_CU := $(patsubst %,$(SIL_B)/%_cu.o,mma_sync mma_f64 wgmma all32)
# The programs are copied to another machine, so what it may lack is linked in.
SIL_LIBS  := -l:libjansson.a -l:libxxhash.a -l:libgomp.a -lm -ldl -lpthread -lrt
SIL_FLAGS  = $(filter-out -fopenmp,$(CFLAGS_ALL)) -fopenmp -I$(SIL) $(WERROR)

.PHONY: silicon-build
silicon-build: $(SIL_B)/device $(SIL_B)/mxgold $(SIL_B)/probe.sh $(SIL_B)/hold $(SIL_B)/all32 $(SIL_B)/hold-cpu $(SIL_B)/all32-cpu $(SIL_B)/power ## programs that hold the models to an H200
.PHONY: silicon-check silicon-check-all
# Runs probe on the models: it must answer what it answered for the device, and the bits of its tiles must be those of the device.
sil_probe = DEVICE=model JOBS=2 sh $(SIL)/probe.sh $(B) $(SIL_B)/probe $(1) && \
  cat $(SIL_B)/probe/probe.txt $(SIL_B)/probe/probe.digests | grep -vxFf $(SIL)/h200/probe.txt | grep -vxFf $(SIL)/h200/probe.digests; test $$? = 1
silicon-check: $(SIL_B)/hold-cpu $(SIL_B)/all32-cpu $(SIL_B)/power $(BIN) ## without a device: the tiles notice every change, the models give the H200's bits (30 s)
	$(SIL_B)/power 340 > $(SIL_B)/power.txt || { cat $(SIL_B)/power.txt; exit 1; }
	$(SIL_B)/hold-cpu --outputs 40000 --no-plain --against $(SIL)/h200/hold.digests --kept $(SIL_B)/kept.safetensors > $(SIL_B)/hold.txt || { grep NOT $(SIL_B)/hold.txt; exit 1; }
	cmp $(SIL_B)/kept.safetensors $(SIL)/h200/kept.safetensors
	$(SIL_B)/all32-cpu --only rcp --against $(SIL)/h200/all32.digests
	$(call sil_probe,mma_m16n8k8_f16_f16_f16_f16 mma_m16n8k16_f32_bf16_bf16_f32 mma_m16n8k64_s32_s4_u4_s32_satfinite)
silicon-check-all: $(SIL_B)/hold-cpu $(SIL_B)/all32-cpu $(BIN) ## the same over all that the device computed: 14 million outputs an instruction, 2^32 a conversion (15 minutes)
	$(SIL_B)/hold-cpu --against $(SIL)/h200/hold.digests
	$(call sil_probe,)
	$(SIL_B)/all32-cpu --against $(SIL)/h200/all32.digests

$(SIL_B)/%_cu.o: $(SIL)/%.cu $(SIL_H)
	@mkdir -p $(@D)
	$(call say,NVCC,$<)$(NVCC) -gencode=arch=compute_90a,code=sm_90a -O2 -std=c++17 -Xcompiler -Wall -c $< -o $@
$(SIL_B)/hold $(SIL_B)/all32 $(SIL_B)/device: $(SIL_B)/%: $(SIL)/%.c $(SIL_CU) $(LIB_A) $(SIL_H)
	$(call say,CC,$<)$(CC) $(SIL_FLAGS) -I$(CUDA)/include $< $(SIL_CU) $(LIB_A) -L$(CUDA)/lib64 -lcudart_static $(SIL_LIBS) -l:libstdc++.a -static-libgcc -o $@
$(SIL_B)/mxgold: $(call obj,$(CLI_SRC)) $(REF_A) $(LIB_A)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(LDFLAGS_ALL) -static $^ $(LIBS) $(LIBS_REF) -o $@
$(SIL_B)/probe.sh: $(SIL)/probe.sh
	@mkdir -p $(@D)
	cp $< $@
$(SIL_B)/hold-cpu $(SIL_B)/all32-cpu: $(SIL_B)/%-cpu: $(SIL)/%.c $(LIB_A) $(SIL_H)
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(SIL_FLAGS) -DHOLD_NO_DEVICE $< $(LIB_A) $(LIBS) -o $@
$(SIL_B)/power: $(SIL)/power.c $(SIL_H)
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(SIL_FLAGS) $< -lm -o $@
