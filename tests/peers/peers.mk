# Held to other libraries: the bytes that are committed, and the libraries themselves. Included by the Makefile.
.PHONY: check-peers peers deps-peers
deps-peers:
	@tools/install-deps.sh --mode=$(INSTALL) build test peers
check-peers: deps-test $(B)/tests/test_peers ## the committed bytes of 118 presets, as a table
	PEERS_TABLE=1 $(B)/tests/test_peers
peers: deps-test deps-peers $(BIN) $(B)/tests/test_peers $(B)/tests/test_casts ## run the libraries that PyPI has, at pinned versions, on fresh seeds, and compare
	tests/peers/run.sh $(B) $(SEED)
