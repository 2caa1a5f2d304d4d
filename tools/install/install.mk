# Installs and uninstalls. The Makefile includes it.
.PHONY: install uninstall check-install
DESTDIR ?=
LIBDIR  ?= $(PREFIX)/lib
INSTALL_SH = PREFIX='$(PREFIX)' LIBDIR='$(LIBDIR)' DESTDIR='$(DESTDIR)' tools/install/install.sh
install: deps $(BIN) $(LIB_A) $(LIB_SO) ## program, library, headers, tables, pkg-config file, man page and completion to PREFIX (/usr/local); DESTDIR=, LIBDIR=
	@$(INSTALL_SH) install $(B) $(VERSION) "$(OMP) $(LIBS)"
uninstall: ## remove what make install wrote there, with the same PREFIX and DESTDIR
	@$(INSTALL_SH) uninstall
check-install: deps-test $(BIN) $(LIB_A) $(LIB_SO) ## install into scratch folders, programs through pkg-config against both libraries, a move, uninstall: nothing is left
	@CC="$(CC)" CXX="$(CXX)" tools/install/check.sh "$(MAKE) -s CONFIG=$(CONFIG) INSTALL=$(INSTALL)"
