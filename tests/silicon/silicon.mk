# Held to silicon (an NVIDIA H200): included by the Makefile. CUDA's compiler is needed for the device programs only.
SIL    := tests/silicon
SIL_B  := $(B)/silicon
NVCC   ?= nvcc
CUDA   ?= $(patsubst %/bin/,%,$(dir $(shell command -v $(NVCC))))
SIL_CU := $(patsubst %,$(SIL_B)/%.o,mma_sync mma_f64 wgmma all32_cu)
# Programs travel to another machine: what it may lack is linked in.
SIL_LIBS  := -l:libjansson.a -l:libxxhash.a -l:libgomp.a -lm -ldl -lpthread -lrt
SIL_FLAGS := $(filter-out -fopenmp,$(CFLAGS_ALL)) -fopenmp -I$(SIL)

.PHONY: silicon-build
silicon-build: $(SIL_B)/device $(SIL_B)/hold $(SIL_B)/all32 $(SIL_B)/hold-cpu $(SIL_B)/all32-cpu $(SIL_B)/power ## programs that hold the models to an H200
.PHONY: silicon-check
silicon-check: $(SIL_B)/hold-cpu $(SIL_B)/power ## without a device: the tiles notice every change, and the models still give the H200's bits
	$(SIL_B)/power
	$(SIL_B)/hold-cpu --outputs $(or $(SIL_OUTPUTS),10500000) --no-plain --against $(SIL)/h200/hold.digests

$(SIL_B)/%.o: $(SIL)/%.cu $(wildcard $(SIL)/*.h $(SIL)/*.def)
	@mkdir -p $(@D)
	$(NVCC) -gencode=arch=compute_90a,code=sm_90a -O2 -std=c++17 -Xcompiler -Wall -c $< -o $@
$(SIL_B)/all32_cu.o: $(SIL)/all32.cu $(wildcard $(SIL)/*.h $(SIL)/*.def)
	@mkdir -p $(@D)
	$(NVCC) -gencode=arch=compute_90a,code=sm_90a -O2 -std=c++17 -Xcompiler -Wall -c $< -o $@
$(SIL_B)/hold $(SIL_B)/all32 $(SIL_B)/device: $(SIL_B)/%: $(SIL)/%.c $(SIL_CU) $(LIB_A) $(wildcard $(SIL)/*.h $(SIL)/*.def)
	$(CC) $(SIL_FLAGS) -I$(CUDA)/include $< $(SIL_CU) $(LIB_A) -L$(CUDA)/lib64 -lcudart_static $(SIL_LIBS) -l:libstdc++.a -static-libgcc -o $@
$(SIL_B)/hold-cpu $(SIL_B)/all32-cpu: $(SIL_B)/%-cpu: $(SIL)/%.c $(LIB_A) $(wildcard $(SIL)/*.h $(SIL)/*.def)
	@mkdir -p $(@D)
	$(CC) $(SIL_FLAGS) -DHOLD_NO_DEVICE $< $(LIB_A) $(LIBS) -o $@
$(SIL_B)/power: $(SIL)/power.c $(wildcard $(SIL)/*.h $(SIL)/*.def)
	@mkdir -p $(@D)
	$(CC) $(SIL_FLAGS) $< -lm -o $@
