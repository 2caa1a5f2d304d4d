# Makes the measurements of speed that README's figures come from. The Makefile includes it.
.PHONY: deps-bench
deps-bench:
	@tools/install-deps.sh --mode=$(INSTALL) build bench

.PHONY: bench bench-keep bench-files bench-ablate
bench: $(BIN) deps-charts ## rates of the operations against memory, scalar code, ref and, with PYTHON=..., other libraries (ONLY=text)
	bench/run.sh $(BIN) $(B)/bench "$(ONLY)"
bench-keep: ## the last table of make bench, to bench/last.txt
	cat $(B)/bench/table.txt $(wildcard $(B)/bench/peers.txt) >bench/last.txt
bench-ablate: $(BIN) ## seconds of ablate with twelve presets on ABLATE_DATA, and of a checkpoint of SIZE MiB through --all --fake over cp of it (ROUNDS=)
	bench/ablate.sh $(BIN) $(ABLATE_DATA) "$(SIZE)" "$(ROUNDS)"
bench-files: $(BIN) ## mxgold quantize of a 1 GiB .npy in a RAM disk, over cp of it (ROUNDS=)
	bench/files.sh $(BIN) $(ROUNDS)

.PHONY: bench-gemm
ROUNDS  ?= 7
THREADS ?= 2
$(B)/bench/%: bench/%.c $(LIB_A) | deps-bench
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(CFLAGS_ALL) $(WERROR) $< $(LIB_A) $(LDFLAGS_ALL) $(LIBS) -lopenblas -o $@
bench-gemm: $(B)/bench/gemm ## the product against OpenBLAS sgemm
	$< $(ROUNDS) $(THREADS)
.PHONY: bench-dense
bench-dense: $(B)/bench/dense ## the float32 product against OpenBLAS sgemm, functions of float32 arrays (OPENBLAS_CORETYPE=)
	$< $(ROUNDS) $(THREADS)

.PHONY: bench-mma
bench-mma: $(B)/bench/mma ## rates of the matrix-unit models
	$< $(ROUNDS) $(THREADS)

MIXTURES ?= 1000
.PHONY: bench-mixtures
$(B)/bench/mixtures: $(call obj,bench/mixtures.c tests/lib/mixtures.c) $(LIB_A)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(LDFLAGS_ALL) $^ $(LIBS) -o $@
bench-mixtures: $(B)/bench/mixtures ## cycles of quantise under random mixtures of keys; fails where one without scale.max_byte takes more than 700 for sixteen elements (MIXTURES=)
	$< $(MIXTURES) 700

.PHONY: bench-diff
bench-diff: deps-test $(BIN) ## rate of diff over that of reading the two files, and its memory
	@$(PYTHON) bench/diff.py $(BIN) $(ROUNDS)

# Training beside PyTorch; PYTHON= needs torch, numpy and safetensors.
TORCH_STATES := llama gpt2 byte_mlp
.PHONY: bench-train train-profile torch-check torch-states
bench-train: $(BIN) ## seconds of a training step, FP32 and FP4, beside PyTorch's and those of a fake-quantised PyTorch model (PYTHON= CASES= ROUNDS= THREADS=)
	$(PYTHON) bench/torch_train.py time $(BIN) $(CASES) --rounds $(ROUNDS) --threads $(THREADS)
train-profile: $(BIN) ## which share of the processor time of a training step is quantising, products, functions, ...: FP32, NVFP4, MXFP4, by perf (STEPS=)
	@for r in "" "--set quant.recipe=recipe-nvfp4" "--set quant.recipe=recipe-ocp"; do \
	  $(PYTHON) bench/train_profile.py $(BIN) configs/llama.json $$r --set train.eval_batches=1 --steps $(or $(STEPS),100) || exit 1; done
torch-check: $(BIN) ## losses and gradients of training, and one quantised linear, against PyTorch from the same weights (PYTHON=)
	@for m in $(TORCH_STATES); do $(PYTHON) bench/torch_train.py check $(BIN) bench/torch_$$m.json || exit 1; done
	@$(PYTHON) bench/torch_train.py linear $(BIN)
torch-states: $(BIN) # the committed cases of tests/cli/torch_state.sh, made again
	@for m in $(TORCH_STATES); do $(PYTHON) bench/torch_train.py state $(BIN) bench/torch_$$m.json tests/data/torch/$$m.safetensors || exit 1; done
