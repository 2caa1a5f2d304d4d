# The Python package: the extension module, the program that goes with it, wheels and their tests. Included by the Makefile.
# A wheel is made without any build package: python/mxgold_build.py calls `make python-parts` and packs what that made.
PY_B    := $(B)/python
PY_EXT  := $(wildcard python/ext/*.c)
PY_CORE := $(PY_B)/_core.abi3.so
PY_PROGRAM := $(PY_B)/bin/mxgold
PY_INCLUDE  = $(shell $(PYTHON) -c 'import sysconfig; print(sysconfig.get_paths()["include"])')
# What the wheel has inside, hidden: it must run where none of these is installed. libgomp.a goes into the program alone (python/ext/threads.c says why).
PY_STATIC  := -Wl,-Bstatic -ljansson -lxxhash
PY_DYNAMIC := -Wl,-Bdynamic -lm -lpthread -ldl
OBJCOPY ?= objcopy
PY_JANSSON := $(PY_B)/libjansson.a

.PHONY: python-parts
python-parts: deps $(PY_CORE) $(PY_PROGRAM) # what python/mxgold_build.py puts into a wheel
$(PY_B)/obj/%.o: python/ext/%.c $(B)/flags | deps
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(filter-out $(OMP),$(CFLAGS_ALL)) $(WERROR) -isystem $(PY_INCLUDE) -MMD -MP -c $< -o $@
# Debian's libjansson.a is made for programs: it can go into a shared object but for one address, that of stdin, with which it compares a file of the
# caller's. The library never gives it stdin, so a word of the module's own stands in for it.
$(PY_JANSSON):
	@mkdir -p $(@D)
	@from=$$($(CC) -print-file-name=libjansson.a); [ -f "$$from" ] || { echo "mxgold: no libjansson.a, expected one for the wheel (libjansson-dev)"; exit 2; }; \
	$(OBJCOPY) --redefine-sym stdin=mxp_no_stdin "$$from" $@
$(PY_CORE): $(patsubst python/ext/%.c,$(PY_B)/obj/%.o,$(PY_EXT)) $(LIB_A) $(PY_JANSSON)
	$(call say,LD,$@)$(CC) -shared -s -Wl,--exclude-libs,ALL $(LDFLAGS) $(filter-out $(PY_JANSSON),$^) $(PY_JANSSON) -Wl,-Bstatic -lxxhash $(PY_DYNAMIC) -o $@
$(PY_PROGRAM): $(call obj,$(CLI_SRC)) $(REF_A) $(LIB_A)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) -s $(LDFLAGS) $^ $(PY_STATIC) -lgmp -lgomp $(PY_DYNAMIC) -o $@
-include $(wildcard $(PY_B)/obj/*.d)

# --- wheels ---
.PHONY: wheel sdist deps-python
deps-python:
	@tools/install-deps.sh --mode=$(INSTALL) build python
wheel: deps-python ## build/release/python/dist/mxgold-VERSION-cp311-abi3-PLATFORM.whl, which runs where none of this is installed
	@$(PYTHON) python/mxgold_build.py $(PY_B)/dist
sdist: deps-python ## the source archive beside it, for pip
	@mkdir -p $(PY_B)/dist; cd python && $(PYTHON) -c 'import mxgold_build as b; print(b.build_sdist("$(CURDIR)/$(PY_B)/dist"))'

# --- tests: of the wheel as it is installed, in an environment of its own ---
# The interpreter: that of the archive, whose NumPy and pytest tools/install-deps.sh installs; PY_CHECK= takes another that has both.
.PHONY: check-python python-presets
PY_CHECK ?= $(firstword $(wildcard /usr/bin/python3) $(PYTHON))
check-python: deps-python ## the wheel in a fresh environment: its tests, without network
	@MAKE="$(MAKE)" python/tests/run.sh $(PY_CHECK) $(PY_B) $(PY_TESTS)
# What the archive's interpreter lacks comes from a package index, pinned: without it those tests are skipped, and pytest says so.
.PHONY: check-python-extras
PY_EXTRAS := matplotlib==3.10.0 pandas==2.2.3 polars==1.17.1 nbclient==0.10.2 nbformat==5.10.4 ipykernel==6.29.5 hypothesis==6.122.3
check-python-extras: deps-python ## notebooks by a Jupyter kernel, plots, pandas and polars, Hypothesis: needs a package index
	@MAKE="$(MAKE)" MXGOLD_EXTRAS="$(PY_EXTRAS)" python/tests/run.sh $(PY_CHECK) $(PY_B) test_notebooks.py test_ablate.py test_strategies.py
# Minutes each, and figures that are read: not a part of make check.
.PHONY: python-leaks python-speed
python-leaks: deps-python ## 10^6 calls of each kind from Python (10^4 of those that take long): what the process then holds more (two minutes of processor time)
	@MAKE="$(MAKE)" MXGOLD_CALLS=1000000 MXGOLD_PYTEST="-s -k no_leaks" python/tests/run.sh $(PY_CHECK) $(PY_B) test_process.py
python-speed: deps-python ## quantize from Python by turns with the C program, and with torchao where it is
	@MAKE="$(MAKE)" MXGOLD_RUN=speed.py python/tests/run.sh $(PY_CHECK) $(PY_B)
.PHONY: python-aarch64
python-aarch64: deps-python python-parts ## the module for AArch64 in an arm64 Python under qemu: its bytes are those of this machine's (needs Debian's archive)
	@tools/install-deps.sh --mode=$(INSTALL) neon neon-program
	@mkdir -p build/aarch64 && MAKE="$(MAKE)" MXGOLD_RUN=digests.py python/tests/run.sh $(PY_CHECK) $(PY_B) > build/aarch64/here.txt
	@HERE=$(CURDIR)/build/aarch64/here.txt python/aarch64.sh build/aarch64/python-root
# The whole peer files, of which tests/peers has slices: make python-presets PEERS=FOLDER
python-presets: deps-python ## every byte of the peers' whole files through Python (PEERS=FOLDER)
	@MAKE="$(MAKE)" MXGOLD_PEERS="$(abspath $(PEERS))" python/tests/run.sh $(PY_CHECK) $(PY_B) test_peers.py
