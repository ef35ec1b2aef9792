# zeusm: `make demo` runs the examples, `make test` runs the tests, `make help` lists the targets for every day.
# Those of make/ are for long tests, the simulated GPU, benchmarks and releases: `make help-all` lists them, too.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# The caller's paths must not affect the tests; each recipe sets the variables that it needs.
unexport LD_LIBRARY_PATH LD_PRELOAD PYTHONPATH

ifeq ($(origin PYTHON),undefined)
PYTHON := $(shell sh tools/python.sh)
endif
export PYTHON
export PIP_CACHE_DIR ?= $(CURDIR)/.cache/pip
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# The Python module is built for the Python version of the tests.
export PYO3_PYTHON ?= $(PYTHON)

# Kernels that one program of the tests has built are there for the others. The Rust tests build theirs (.cargo/config.toml).
export ZEUSM_CACHE_DIR ?= $(TARGET)/modules

# A full run builds everything once, so incremental state would not be used.
export CARGO_INCREMENTAL ?= 0

# make's jobserver is closed to recipes; cargo has one of its own, and warns of make's.
CARGO := env -u MAKEFLAGS -u MFLAGS cargo

TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))
CPU_RUNTIME := $(TARGET)/debug/libzeusm_cpu.so

# The simulated GPU needs a header of a newer kernel than Debian 12's, so only its own target builds it.
WORKSPACE := --workspace --exclude xe-sim

include make/environments.mk

# Prints the targets of the files that have a text.
LIST = sed -n 's/^\([a-z-]*\):.*\#\# \(.*\)/\1|\2/p' $(1) | while IFS='|' read -r target text; \
	do printf '  make %-18s %s\n' "$$target" "$$text"; done

.PHONY: help help-all
help: ## Lists these targets
	@$(call LIST,$(firstword $(MAKEFILE_LIST)))

help-all: ## Lists all targets: also those of long tests, the simulated GPU, benchmarks and releases
	@$(call LIST,$(MAKEFILE_LIST))

.PHONY: setup build wheel
setup: ## Installs missing dependencies of the build (apt)
	@sh tools/setup.sh

build: | setup ## The crates, for development
	$(CARGO) build $(WORKSPACE) --locked

# --- the Python package --------------------------------------------------------------------------

wheel: dist/.built ## The wheel, in dist/

# The downloads of one environment go on beside the installation of the other and beside the build of the wheel. The number of
# jobs is the caller's, if there is one.
.PHONY: venvs
venvs: | setup ## .venv (dpctl, dpnp) and .venv-numba-dpex, with zeusm in both
	@$(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,--jobs=3) $(VENV)/.zeusm $(NUMBA_DPEX)

# --- examples and tests --------------------------------------------------------------------------

.PHONY: demo test
demo: venvs ## Runs the examples in both environments
	$(PY) examples/demo.py
	@echo
	$(PY_NUMBA_DPEX) examples/demo.py

# The parts of `make test`; those of Python by the letters that files begin with. Two more than there are processors run at once, as
# tests wait (with more they take longer: OpenCL's threads spin). Each leaves its output in target/tests. Others: make/long.mk.
TEST_RUST := test-direct test-validated test-loader
TEST_DPCTL := $(addprefix test-python-dpctl-,m-z f-l a-e)
TEST_NUMBA_DPEX := $(addprefix test-python-numba-dpex-,m-z f-l a-e)
TEST_ONCE := $(addprefix test-python-once-,a-k l-z)
TEST_PYTHON := $(TEST_ONCE) $(TEST_NUMBA_DPEX) $(TEST_DPCTL)
NEED_WHEEL := $(TEST_ONCE) test-peers $(TEST_NUMBA_DPEX) $(TEST_DPCTL) test-sycl lint-python
# PART:NEED is begun after NEED: the Rust tests run while the wheel is built.
PARTS := requirements wheel test-programs lint-rust requirements-numba-dpex $(TEST_RUST:%=%:requirements:test-programs) \
	venvs:requirements:wheel:requirements-numba-dpex $(NEED_WHEEL:%=%:venvs)
TOGETHER = @$(PYTHON) tools/parts.py --jobs $$(($$(nproc) + 2)) --logs $(TARGET)/tests --make $(MAKE_COMMAND) $(MAKEOVERRIDES)
test: | setup ## Everything that CI runs: the parts below, in about ten minutes
	$(TOGETHER) $(PARTS)

.PHONY: lint lint-rust lint-python
lint: lint-rust lint-python ## Layers, format, clippy, rustdoc, ruff, type stubs, length of the documents' sentences

lint-rust: | setup
	$(PYTHON) tools/layers.py
	$(CARGO) fmt --all --check
	$(CARGO) clippy $(WORKSPACE) --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc $(WORKSPACE) --no-deps --locked

MYPY = $(VENV)/bin/mypy --strict -p zeusm -p zeusm_dask -p zeusm_numba -p zeusm_ray -p zeusm_start
# The steps of the doctor that Windows does not have.
ONLY_LINUX := gpu|libraries|limits|linux|mpi
lint-python: $(VENV)/.zeusm
	$(PYTHON) tools/sentences.py README.md CONTRIBUTING.md $$(find docs -name '*.md' ! -path '*/generated/*')
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(MYPY)
	$(MYPY) --platform win32 --exclude '/_doctor/($(ONLY_LINUX))\.py$$'
	$(PY) -m mypy.stubtest --mypy-config-file pyproject.toml --allowlist tools/stubtest.txt zeusm

# Kernels run through the OpenCL runtime that dpnp brings into the environment.
$(TEST_RUST): export ZEUSM_OPENCL_LIBRARY := $(CURDIR)/$(VENV)/lib/libintelocl.so
# Threads of tests have the stacks of a program's main thread, with which they execute kernels while they wait.
$(TEST_RUST): export RUST_MIN_STACK := 8388608

# Each test program has 15 minutes; each Python test, by pyproject.toml, has five. The bootstrap variable lets the test harness
# of a stable Rust report times.
RUNNER := CARGO_TARGET_$(shell rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')_RUNNER
TIMED := env RUSTC_BOOTSTRAP=1 timeout --foreground -k 10 900
CARGO_TEST = $(RUNNER)="$(TIMED)" $(CARGO) test $(WORKSPACE) --locked --no-fail-fast
TIMES := -Zunstable-options --report-time

# The same tests in three modes: with the CPU runtime in the loader's place, behind the system's loader, and behind it with
# the validation layer.
.PHONY: test-programs test-rust $(TEST_RUST)
test-programs: | setup
	$(CARGO) test $(WORKSPACE) --locked --no-run

test-rust: build $(VENV)/.requirements ## The Rust tests, in all three modes
	$(TOGETHER) $(TEST_RUST)

test-direct: export ZEUSM_CPU_LIBRARY := $(CPU_RUNTIME)
test-direct: build $(VENV)/.requirements
	ZEUSM_CPU_STRICT=1 ZEUSM_TEST_MODE=direct $(CARGO_TEST) --tests -- $(TIMES) $(DAILY:%=--skip %)
	ZEUSM_CPU_STRICT=1 ZEUSM_TEST_MODE=direct $(CARGO) test $(WORKSPACE) --locked --doc -q

# Tests that do not depend on the mode run in one only, the longest of them in `test-daily`; a few forks suffice in the others.
DAILY := a_build_that_takes_ten a_million mixes_fragment
ONCE := $(DAILY) every_call_may_fail every_call_of_the_start_may_fail changed_byte a_read_behind_which a_block_is_not_reused \
	a_command_that_waits_for_the_host a_device_executes_commands after_a_failure_the_operands are_limited_by_the_control_group \
	freed_memory_is_returned of_any_length_and_alignment survive_copies_between_all threads_that_need_few
test-loader test-validated: export ZEUSM_TEST_FORKS := 3
LOADER := ZEUSM_RUNTIME=system ZE_ENABLE_ALT_DRIVERS=$(CPU_RUNTIME)
VALIDATION := ZE_ENABLE_VALIDATION_LAYER=1 ZE_ENABLE_PARAMETER_VALIDATION=1 ZE_ENABLE_HANDLE_LIFETIME=1
test-validated: build $(VENV)/.requirements
	ZEUSM_TEST_MODE=validated $(LOADER) $(VALIDATION) $(CARGO_TEST) --test '*' -- $(TIMES) $(ONCE:%=--skip %) --skip suspend::

# What the validation layer refuses, in-order lists, queues and reservations anywhere (pools that sleep), is tested without it.
# `test-loader-all` runs the rest.
LOADER_TESTS := command_errors counter_ipc engines event_pools events graphs lists runtime virtual_ranges
test-loader: build $(VENV)/.requirements
	ZEUSM_TEST_MODE=loader $(LOADER) $(CARGO_TEST) $(LOADER_TESTS:%=--test '%') -- $(TIMES) $(ONCE:%=--skip %)

# With the SYCL runtime of each environment, opened as by `import dpctl`.
TEST_SYCL := ZEUSM_CPU_LIBRARY=$(CPU_RUNTIME) $(CARGO) test $(WORKSPACE) --locked --test sycl -- $(TIMES)
.PHONY: test-sycl
test-sycl: build venvs ## The Rust tests of the SYCL layer, with both SYCL runtimes
	ZEUSM_TEST_DPCTL=$$(echo $(CURDIR)/$(VENV)/lib/python3*/site-packages/dpctl) $(RUNNER)="$(TIMED)" $(TEST_SYCL)
	$(if $(NUMBA_DPEX),ZEUSM_TEST_DPCTL=$$(echo $(CURDIR)/$(VENV_NUMBA_DPEX)/lib/python3*/site-packages/dpctl) \
		$(RUNNER)="env LD_LIBRARY_PATH=$(CURDIR)/$(VENV_NUMBA_DPEX)/lib $(TIMED)" $(TEST_SYCL))

PYTEST := -m pytest -p no:cacheprovider --durations 25 --durations-min 0.5
.PHONY: test-python $(TEST_PYTHON)
test-python: venvs ## The Python tests, in both environments
	$(TOGETHER) $(TEST_PYTHON)

$(TEST_DPCTL): test-python-dpctl-%: $(VENV)/.zeusm
	$(PY) $(PYTEST) -m 'not once and not daily' tests/python/test_[$*]*.py

# A few of the random programs and forks are enough here; test-fuzz and test-forks run many in both environments.
$(TEST_NUMBA_DPEX): test-python-numba-dpex-%: $(NUMBA_DPEX)
	ZEUSM_TEST_MODEL=8 ZEUSM_TEST_FORKS=3 $(PY_NUMBA_DPEX) $(PYTEST) -m 'not once and not daily' tests/python/test_[$*]*.py

$(TEST_ONCE): test-python-once-%: $(VENV)/.zeusm
	$(PY) $(PYTEST) -m 'once and not daily' tests/python/test_[$*]*.py

.PHONY: test-peers
test-peers: $(VENV)/.zeusm ## The Python tests with MPI, Dask, Ray, scikit-learn-intelex and others
	$(PY) $(PYTEST) -m 'not daily' tests/peers

# --- what is measured and published --------------------------------------------------------------

.PHONY: bench
bench: venvs $(VENV_FIGURE)/.requirements ## Benchmarks against the peers, in ten minutes; writes target/bench
	$(PY) benches/run.py --processes 3 --output $(TARGET)/bench
	$(VENV_FIGURE)/bin/python benches/figure.py $(TARGET)/bench

# The pages describe the installed wheel, which need not be optimised. Warnings and links that lead nowhere are errors.
SITE := $(TARGET)/site
.PHONY: docs
docs: $(VENV_DOCS)/.requirements $(DEVELOP)/.built ## The documentation as a site, in target/site
	$(VENV_DOCS)/bin/pip install -q --no-deps --force-reinstall $(DEVELOP)/*.whl
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc -p zeusm -p level-zero-sys -p zeusm-cpu --no-deps --locked
	rm -rf $(SITE) $(TARGET)/site-cache docs/reference/generated
	PATH="$(CURDIR)/$(VENV_DOCS)/bin:$$PATH" $(VENV_DOCS)/bin/python -m sphinx -q -W --keep-going \
		-d $(TARGET)/site-cache docs $(SITE)
	cp -r $(TARGET)/doc $(SITE)/rust
	$(VENV_DOCS)/bin/python tools/check_site.py $(SITE)

.PHONY: clean
clean: ## Removes all build results; keeps the download cache
	$(CARGO) clean
	rm -rf .venv* dist python/zeusm/lib
	rm -rf .pytest_cache .hypothesis .mypy_cache .ruff_cache docs/reference/generated

include make/long.mk make/conformance.mk make/pocl.mk make/intel.mk make/bench.mk make/release.mk make/windows.mk
