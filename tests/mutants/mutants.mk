# Is the comparator itself any good? Known bugs, planted one at a time. Included by the Makefile.
.PHONY: mutants identify-all identify-time
$(B)/mutants: $(call obj,tests/mutants/mutants.c tests/lib/kernels.c) $(LIB_A)
	$(call say,LD,$@)$(CC) $(LDFLAGS_ALL) $^ $(LIBS) -o $@
mutants: deps $(B)/mutants $(B)/tests/test_bugs ## known kernel bugs, one at a time: caught by suite minimal, named by identify and diff
	$(B)/mutants
	BUGS_TABLE=1 $(B)/tests/test_bugs
identify-all: deps-test $(B)/tests/test_identify ## every preset and 1,000 mixtures of keys through identify, a line each
	IDENTIFY_ALL=1 IDENTIFY_TABLE=1 $(B)/tests/test_identify
identify-time: deps-test $(B)/tests/test_identify ## how long identify takes for every preset on 64 Ki and on 1 Mi elements
	@uptime
	IDENTIFY_TIME=1 $(B)/tests/test_identify
.PHONY: strangers strangers-all
STRANGERS_SEEDS ?= 5,6,7,8,9
STRANGERS_KINDS ?= activation,heavy,small,special
strangers-all: deps $(B)/mxgold ## all sets of wrong kernels on several kinds and seeds of inputs (STRANGERS_KINDS, STRANGERS_SEEDS): an hour or more
	cd tests/strangers && SET=all KIND=$(STRANGERS_KINDS) SEED=$(STRANGERS_SEEDS) JOBS=2 $(PYTHON) strangers.py $(abspath $(B)/mxgold)
strangers: deps $(B)/mxgold ## wrong kernels in numpy (PYTHON with numpy): what identify answers, and whether that predicts a second input
	cd tests/strangers && $(PYTHON) strangers.py $(abspath $(B)/mxgold)
	cd tests/strangers && SET=fresh $(PYTHON) strangers.py $(abspath $(B)/mxgold)
	cd tests/strangers && SET=a,b,c $(PYTHON) strangers.py $(abspath $(B)/mxgold)
