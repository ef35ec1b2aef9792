# Benchmarks: what `make bench` needs, and its shorter and longer forms.

.PHONY: bench-write bench-quick
bench-write bench-quick: venvs $(VENV_FIGURE)/.requirements
bench bench-write bench-quick: export ZEUSM_UMF_LIBRARY := $(CURDIR)/$(VENV)/lib/libumf.so.1
# Debian's package libmimalloc2.0, if it is installed.
bench bench-write bench-quick: export ZEUSM_MIMALLOC_LIBRARY ?= $(firstword $(wildcard /usr/lib/*/libmimalloc.so.2))

bench-write: ## The same, with the pool beside UMF and copies beside memcpy; writes benches/results
	$(CARGO) bench --locked --bench pool
	$(CARGO) bench --locked -p zeusm-cpu --bench ratios
	$(PY) benches/run.py --processes 3 --write
	$(VENV_FIGURE)/bin/python benches/figure.py

bench-quick: export ZEUSM_BENCH_ROUNDS := 3
bench-quick: ## Short benchmarks for development; writes target/bench
	$(PY) benches/run.py --processes 1 --output $(TARGET)/bench
	$(VENV_FIGURE)/bin/python benches/figure.py $(TARGET)/bench
