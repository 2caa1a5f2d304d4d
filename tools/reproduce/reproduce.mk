# Makes docs/FINDINGS.md: what papers state, beside what mxgold measures. The Makefile includes it.
.PHONY: reproduce-tensor
REPRODUCE := $(B)/tools/reproduce
$(REPRODUCE): $(call obj,$(wildcard tools/reproduce/*.c)) $(LIB_A)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(LDFLAGS_ALL) $^ $(LIBS) -o $@
reproduce-tensor: deps $(REPRODUCE) ## the tensor tables of the FP4 papers, stated value beside ours, to docs/FINDINGS.md (REPEATS=16)
	OMP_WAIT_POLICY=passive $(REPRODUCE) $(REPEATS) >$(B)/FINDINGS-tensor.md
	@sed '/^# Findings: the papers/,$$d' docs/FINDINGS.md | cat - $(B)/FINDINGS-tensor.md >$(B)/FINDINGS.md
	@mv $(B)/FINDINGS.md docs/FINDINGS.md; sed -n 5,40p $(B)/FINDINGS-tensor.md

# What papers claim of training, held against sweeps (configs/findings). ONLY=NAME runs one of them and prints its section; findings-page
# puts what has been run into the page, which keeps its sections of the others.
.PHONY: reproduce reproduce-all findings-page
FINDINGS_SHORT := gemms hadamard rounding scales hadamard-sizes scale-rules learning-rates random late outliers estimators scale-gradients range \
  zero-scales scale-rounding blocks optimizers requantisation few-bits oscillation ramping threshold eden gaussian-grid
FINDINGS_LONG := recipes swiglu llama gaussian-1000 gaussian-seed004
reproduce: $(BIN) ## what papers claim of FP4 training beside sweeps of this machine, to docs/FINDINGS.md: some 35 minutes on two idle cores, resumed; ONLY=NAME prints one of configs/findings instead
	tools/reproduce/training.sh $(BIN) $(B)/findings $(or $(ONLY),$(FINDINGS_SHORT))
	$(PYTHON) tools/reproduce/training.py $(B)/findings/reports $(if $(ONLY),- $(ONLY),docs/FINDINGS.md $(FINDINGS_SHORT) $(FINDINGS_LONG))
findings-page: ## docs/FINDINGS.md with the sweeps that make reproduce ONLY=NAME has run here, and its sections of the others (REPORTS=)
	$(PYTHON) tools/reproduce/training.py $(or $(REPORTS),$(B)/findings/reports) docs/FINDINGS.md $(FINDINGS_SHORT) $(FINDINGS_LONG)
reproduce-all: $(BIN) ## the same with the sweeps that take longer: a llama, Gaussian regression at the size of arXiv 2509.17791
	tools/reproduce/training.sh $(BIN) $(B)/findings $(FINDINGS_SHORT) $(FINDINGS_LONG)
	$(PYTHON) tools/reproduce/training.py $(B)/findings/reports docs/FINDINGS.md $(FINDINGS_SHORT) $(FINDINGS_LONG)

.PHONY: ablate-coverage
COVERAGE := $(B)/tools/ablate-coverage
$(COVERAGE): $(call obj,tools/ablate-coverage.c) $(LIB_A)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(LDFLAGS_ALL) $^ $(LIBS) -o $@
ablate-coverage: deps $(COVERAGE) ## how often ablate's 95 % interval holds what it should, by data and shape (about a minute)
	OMP_WAIT_POLICY=passive $(COVERAGE)
