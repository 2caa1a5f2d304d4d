# What papers state, beside what mxgold measures. Included by the Makefile.
.PHONY: reproduce-tensor
REPRODUCE := $(B)/tools/reproduce
$(REPRODUCE): $(call obj,$(wildcard tools/reproduce/*.c)) $(LIB_A)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(LDFLAGS_ALL) $^ $(LIBS) -o $@
reproduce-tensor: deps $(REPRODUCE) ## the tensor tables of the FP4 papers, stated value beside ours, to docs/FINDINGS.md (REPEATS=16)
	OMP_WAIT_POLICY=passive $(REPRODUCE) $(REPEATS) >$(B)/FINDINGS.md
	@mv $(B)/FINDINGS.md docs/FINDINGS.md; sed -n 5,40p docs/FINDINGS.md

.PHONY: ablate-coverage
COVERAGE := $(B)/tools/ablate-coverage
$(COVERAGE): $(call obj,tools/ablate-coverage.c) $(LIB_A)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(LDFLAGS_ALL) $^ $(LIBS) -o $@
ablate-coverage: deps $(COVERAGE) ## how often ablate's 95 % interval holds what it should, by data and shape (about a minute)
	OMP_WAIT_POLICY=passive $(COVERAGE)
