# zeusm: `make demo` runs the examples, `make test` runs the tests, `make help` lists all targets.

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

# A full run builds everything once, so incremental state would not be used.
export CARGO_INCREMENTAL ?= 0

TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))
CPU_RUNTIME := $(TARGET)/debug/libzeusm_cpu.so

# The two test environments with their Python commands; the third one draws figures, the fourth builds the pages, the fifth
# releases. The RPATH in dpctl 0.17's wheel does not contain the folder of the SYCL runtime, so the library path is set.
VENV := .venv
VENV_NUMBA_DPEX := .venv-numba-dpex
VENV_FIGURE := .venv-figure
VENV_DOCS := .venv-docs
VENV_DIST := .venv-dist
PY := $(VENV)/bin/python
ifeq ($(shell $(PYTHON) -c 'import sys; print(sys.version_info[:2] == (3, 11))' 2>/dev/null),True)
NUMBA_DPEX := $(VENV_NUMBA_DPEX)/.zeusm
PY_NUMBA_DPEX := LD_LIBRARY_PATH=$(CURDIR)/$(VENV_NUMBA_DPEX)/lib $(VENV_NUMBA_DPEX)/bin/python
else
NUMBA_DPEX :=
PY_NUMBA_DPEX := echo "Not run, because numba-dpex has wheels for Python 3.11 only:"
endif

# The simulated GPU needs a header of a newer kernel than Debian 12's, so only its own target builds it.
WORKSPACE := --workspace --exclude xe-sim

SOURCES := $(shell find Cargo.toml Cargo.lock pyproject.toml README.md tools/build_backend.py tools/third_party.py \
	build.rs src sys cpu python -type f ! -name '*.so*' ! -name '*.pyc' 2>/dev/null)

.PHONY: help
help: ## Lists the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r target text; \
		do printf '  make %-18s %s\n' "$$target" "$$text"; done

.PHONY: setup
setup: ## Installs missing dependencies of the build (apt)
	@sh tools/setup.sh

.PHONY: build
build: | setup ## The crates, for development
	cargo build $(WORKSPACE) --locked

# --- the Python package --------------------------------------------------------------------------

# Wheels contain no links, so the SYCL runtime's large libraries are duplicated: hardlink (util-linux) replaces equal files
# by links.
$(VENV)/.requirements: requirements/venv.txt
$(VENV_FIGURE)/.requirements: requirements/venv-figure.txt
$(VENV_DOCS)/.requirements: requirements/venv-docs.txt
$(VENV_DIST)/.requirements: requirements/venv-dist.txt
$(VENV_NUMBA_DPEX)/.requirements: requirements/venv-numba-dpex.txt
# An interrupted installation leaves packages that pip takes for complete: the environment is made anew.
%/.requirements: | setup
	$(PYTHON) -m venv --clear $*
	$*/bin/pip install -q -r $(filter %.txt,$^)
	@! command -v hardlink >/dev/null || hardlink -q -c $*
	@touch $@

dist/.built: $(SOURCES) $(VENV)/.requirements
	@rm -f dist/*.whl
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(VENV)/bin/pip wheel --no-deps --no-build-isolation -w dist .
	$(PY) tools/check_wheel.py dist/*.whl
	@touch $@

.PHONY: wheel
wheel: dist/.built ## The wheel, in dist/

%/.zeusm: %/.requirements dist/.built
	$*/bin/pip install -q --no-deps --force-reinstall dist/*.whl
	@touch $@
.SECONDARY:

# The downloads of one environment go on beside the installation of the other, and beside the checks and builds by cargo.
.PHONY: venvs prepare
venvs: | setup ## .venv (dpctl, dpnp) and .venv-numba-dpex, with zeusm in both
	@$(MAKE) --no-print-directory --jobs=2 $(VENV)/.zeusm $(NUMBA_DPEX)

prepare: | setup
	@$(MAKE) --no-print-directory --jobs=3 $(VENV)/.zeusm $(NUMBA_DPEX) test-programs

# --- examples and tests --------------------------------------------------------------------------

.PHONY: demo
demo: venvs ## Runs the examples in both environments
	$(PY) examples/demo.py
	@echo
	$(PY_NUMBA_DPEX) examples/demo.py

# Tests that use one processor for most of the time run two at once; the output of each follows its end. The longest start first.
TEST_PYTHON := test-python-dpctl test-python-numba-dpex test-python-once
TOGETHER := $(TEST_PYTHON) test-peers test-valgrind test-sycl test-instructions
.PHONY: test
test: prepare lint-python test-rust ## Everything that CI runs
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target $(TOGETHER)

.PHONY: lint lint-rust lint-python
lint: lint-rust lint-python ## Layers, format, clippy, rustdoc, ruff, type stubs

lint-rust: | setup
	$(PYTHON) tools/layers.py src cpu/src python/src
	cargo fmt --all --check
	cargo clippy $(WORKSPACE) --all-targets --locked -- -D warnings
	$(LOOM) clippy --locked -p zeusm-models --features loom -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc $(WORKSPACE) --no-deps --locked

lint-python: $(VENV)/.zeusm
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy --strict -p zeusm -p zeusm_dask -p zeusm_numba -p zeusm_start
	$(PY) -m mypy.stubtest --mypy-config-file pyproject.toml --allowlist tools/stubtest.txt zeusm

# Kernels run through the OpenCL runtime that dpnp brings into the environment.
test-direct test-loader test-validated: export ZEUSM_OPENCL_LIBRARY := $(CURDIR)/$(VENV)/lib/libintelocl.so
# Threads of tests have the stacks of a program's main thread, with which they execute kernels while they wait.
test-direct test-loader test-validated: export RUST_MIN_STACK := 8388608

# The same tests in three modes: with the CPU runtime in the loader's place, behind the system's loader, and behind it with
# the validation layer.
.PHONY: test-programs test-rust test-direct test-loader test-validated
test-programs: lint-rust
	cargo test $(WORKSPACE) --locked --no-run

test-rust: build $(VENV)/.requirements ## The Rust tests, in all three modes, two at once
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target test-direct test-loader test-validated

# Without MAKEFLAGS, as rustdoc warns of a jobserver that it cannot use.
test-direct: build $(VENV)/.requirements
	env -u MAKEFLAGS ZEUSM_CPU_STRICT=1 ZEUSM_TEST_MODE=direct ZEUSM_CPU_LIBRARY=$(CPU_RUNTIME) cargo test $(WORKSPACE) --locked

# Tests with a library of their own, and long tests that do not depend on the mode (of the pool and the compiler, and the
# unit tests), run in one mode only. A few forks are enough in the others.
ONCE := --test '*' -- --skip every_call_may_fail --skip every_call_of_the_start_may_fail \
	--skip a_million --skip mixes_fragment --skip changed_byte
test-loader test-validated: export ZEUSM_TEST_FORKS := 3
LOADER := ZEUSM_RUNTIME=system ZE_ENABLE_ALT_DRIVERS=$(CPU_RUNTIME)
test-loader: build $(VENV)/.requirements
	ZEUSM_TEST_MODE=loader $(LOADER) cargo test $(WORKSPACE) --locked $(ONCE)

VALIDATION := ZE_ENABLE_VALIDATION_LAYER=1 ZE_ENABLE_PARAMETER_VALIDATION=1 ZE_ENABLE_HANDLE_LIFETIME=1
test-validated: build $(VENV)/.requirements
	ZEUSM_TEST_MODE=validated $(LOADER) $(VALIDATION) cargo test $(WORKSPACE) --locked $(ONCE)

# With the SYCL runtime of each environment, opened as by `import dpctl`.
TEST_SYCL := ZEUSM_CPU_LIBRARY=$(CPU_RUNTIME) cargo test $(WORKSPACE) --locked --test sycl
RUNNER := CARGO_TARGET_$(shell rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')_RUNNER
.PHONY: test-sycl
test-sycl: build venvs ## The Rust tests of the SYCL layer, with both SYCL runtimes
	ZEUSM_TEST_DPCTL=$$(echo $(CURDIR)/$(VENV)/lib/python3*/site-packages/dpctl) $(TEST_SYCL)
	$(if $(NUMBA_DPEX),ZEUSM_TEST_DPCTL=$$(echo $(CURDIR)/$(VENV_NUMBA_DPEX)/lib/python3*/site-packages/dpctl) \
		$(RUNNER)="env LD_LIBRARY_PATH=$(CURDIR)/$(VENV_NUMBA_DPEX)/lib" $(TEST_SYCL))

# Allocation, sharing and freeing under valgrind. It runs one thread at a time: without a fair lock, a test that polls an event
# starved the thread that executes the work, for minutes.
VALGRIND := valgrind -q --fair-sched=try --error-exitcode=99 --leak-check=full \
	--show-leak-kinds=definite --errors-for-leak-kinds=definite
.PHONY: test-valgrind
test-valgrind: build ## The Rust tests of memory and queues under valgrind
	ZEUSM_CPU_LIBRARY=$(CPU_RUNTIME) $(RUNNER)="$(VALGRIND)" \
		cargo test $(WORKSPACE) --locked --test memory --test queue --test asynchronous --test operands

.PHONY: test-python $(TEST_PYTHON)
test-python: venvs ## The Python tests, in both environments at once; the output of each follows its end
	$(MAKE) --no-print-directory --jobs=2 --output-sync=target $(TEST_PYTHON)

test-python-dpctl: $(VENV)/.zeusm
	$(PY) -m pytest -p no:cacheprovider -m 'not once'

test-python-numba-dpex: $(NUMBA_DPEX)
	$(PY_NUMBA_DPEX) -m pytest -p no:cacheprovider -m 'not once'

test-python-once: $(VENV)/.zeusm
	$(PY) -m pytest -p no:cacheprovider -m once

.PHONY: test-peers
test-peers: $(VENV)/.zeusm ## The Python tests with MPI, Dask, Ray, scikit-learn-intelex and others
	$(PY) -m pytest -p no:cacheprovider tests/peers

.PHONY: test-instructions
test-instructions: $(VENV)/.zeusm ## Instructions of the shortest calls, at most 5 % more than tests/instructions/counts.json has
	$(PY) tests/instructions

# Chromium has 160 MB to download and 560 MB on the disk, so `test-python` skips its tests where it is missing.
.PHONY: test-browser
test-browser: $(VENV)/.zeusm ## The pictures of `zeusm memory report` in a headless Chromium, which is installed (apt) if missing
	sh tools/setup.sh browser
	ZEUSM_TEST_BROWSER_REQUIRED=1 $(PY) -m pytest -p no:cacheprovider tests/python/test_memory_browser.py

# --- tests that take too long for CI -------------------------------------------------------------

# The number of cases of each fuzzing test. Fast tests have 10 or 100 times as many, with optimisation; slow ones, of kernels
# and of random programs, have FUZZ_SLOW.
FUZZ := 100000
FUZZ_SLOW := 400
OPTIMISED := CARGO_PROFILE_TEST_OPT_LEVEL=2 CARGO_TARGET_DIR=$(TARGET)/optimised

.PHONY: test-long test-checked test-compared test-faults test-fuzz test-forks test-lifetime test-loom test-miri test-sanitized test-soak test-threads mutants
test-long: test-checked test-compared test-faults test-fuzz test-forks test-lifetime test-loom test-miri test-sanitized test-soak test-threads ## All long tests; takes hours

test-checked: $(VENV)/.zeusm ## dpctl's and dpnp's own tests under the checker, without a finding
	$(PY) tests/soak/suites.py

test-compared: $(VENV)/.zeusm ## dpnp's own tests on the CPU runtime's CPU device and on OpenCL's; an hour
	$(PY) tests/soak/compared.py

test-faults: build venvs ## Fault injection: each Level Zero call fails with each code
	ZEUSM_TEST_FAULTS=all ZEUSM_CPU_LIBRARY=$(CPU_RUNTIME) cargo test --locked --test faults
	ZEUSM_TEST_FAULTS=all $(PY) -m pytest tests/python/test_faults.py
	ZEUSM_TEST_FAULTS=all $(PY_NUMBA_DPEX) -m pytest tests/python/test_faults.py

test-fuzz: build venvs ## Fuzzing, FUZZ cases for each test, and FUZZ_SLOW random programs
	PROPTEST_CASES=$(FUZZ) cargo test --locked --lib
	PROPTEST_CASES=$(FUZZ) cargo test --locked -p zeusm-cpu --lib
	PROPTEST_CASES=$(FUZZ_SLOW) ZEUSM_OPENCL_LIBRARY=$(CURDIR)/$(VENV)/lib/libintelocl.so \
		cargo test --locked -p zeusm-cpu --test kernels changed_byte
	$(OPTIMISED) PROPTEST_CASES=$(FUZZ)00 cargo test --locked --lib suai::tests::fuzz
	$(OPTIMISED) ZEUSM_SIMULATIONS=$(FUZZ)0 cargo test --locked -p zeusm-cpu --lib simulation
	ZEUSM_FUZZ=$(FUZZ) $(PY) -m pytest tests/python/test_pickles.py tests/python/test_ipc_forged.py \
		tests/python/test_random_calls.py
	ZEUSM_TEST_MODEL=$(FUZZ_SLOW) $(PY) -m pytest tests/python/test_model.py tests/python/test_model_arrays.py
	ZEUSM_TEST_MODEL=$(FUZZ_SLOW) $(PY_NUMBA_DPEX) -m pytest tests/python/test_model.py tests/python/test_model_arrays.py

# The long launches take up to half a minute, and each runs in a separate process.
LONG_LAUNCHES := kernels::a_child_of_a_fork_during_a_long_launch_has_no_kernels \
	kernels::a_child_of_a_fork_during_a_launch_of_a_child_answers_queries
test-forks: export ZEUSM_TEST_FORKS := 100
test-forks: export ZEUSM_OPENCL_LIBRARY := $(CURDIR)/$(VENV)/lib/libintelocl.so
test-forks: build venvs ## 500 forks in processes with busy threads, in each environment
	cargo test --locked -p zeusm-cpu --test forks
	set -e; for test in $(LONG_LAUNCHES); do \
		cargo test --locked -p zeusm-cpu --test forks -- --ignored --exact $$test; done
	$(PY) -m pytest tests/python/test_fork.py
	$(PY_NUMBA_DPEX) -m pytest tests/python/test_fork.py

test-lifetime: export ZEUSM_TEST_ROUNDS := 100
test-lifetime: venvs ## Leak tests with millions of objects
	$(PY) -m pytest tests/python/test_lifetime.py
	$(PY_NUMBA_DPEX) -m pytest tests/python/test_lifetime.py

# SOAK is the seconds in each environment.
SOAK := 1800
test-soak: venvs ## Random programs of dpnp and zeusm against NumPy: both adapters, 1 to 8 threads, 1 to 4 devices
	$(PY) tests/soak --seconds $(SOAK)
	$(PY_NUMBA_DPEX) tests/soak --seconds $(SOAK)

# With optimisation, and with overflow checks. MODEL selects models by their names.
LOOM := CARGO_PROFILE_DEV_OPT_LEVEL=1 CARGO_TARGET_DIR=$(TARGET)/loom cargo
test-loom: | setup ## Loom models of the synchronisation, in every interleaving of a few threads
	$(LOOM) run --locked -p zeusm-models --features loom -- "$(MODEL)"

# Miri is a component of the nightly toolchain: `rustup component add miri rust-src --toolchain nightly`. It does not support
# foreign functions, so it runs the tests that call no driver; and it is slow, so they are smaller under it.
MIRI := MIRIFLAGS=-Zmiri-disable-isolation PROPTEST_CASES=2 CARGO_TARGET_DIR=$(TARGET)/miri cargo +nightly miri test --locked
test-miri: | setup ## Unsafe code of suai, dlpack, process and the pool under Miri
	$(MIRI) --lib -- suai:: dlpack:: pool:: process:: --skip a_child --skip event:: --skip sycl::
	$(MIRI) --test pool -- --skip level_zero

HOST := $(shell rustc -vV | sed -n 's/^host: //p')
# Leaks are detected by test-valgrind; here drivers and devices, which live as long as the process, would be reported.
test-sanitized: build ## The Rust tests of memory, queues and the pool with AddressSanitizer
	RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address ASAN_OPTIONS=detect_leaks=0 \
		CARGO_TARGET_DIR=$(TARGET)/sanitized ZEUSM_CPU_LIBRARY=$(CPU_RUNTIME) cargo test --locked --target $(HOST) \
		--lib --test memory --test queue --test asynchronous --test operands --test pool -- --skip a_million --skip mixes_fragment

# The standard library has to be instrumented, too: `rustup component add rust-src --toolchain nightly`. Tests on the CPU
# runtime, which is not instrumented, are skipped, as they give false reports.
test-threads: | setup ## The pool's tests with ThreadSanitizer
	RUSTFLAGS=-Zsanitizer=thread CARGO_TARGET_DIR=$(TARGET)/threads $(RUNNER)="setarch -R" \
		cargo +nightly test --locked -Zbuild-std --target $(HOST) --test pool -- \
		--skip level_zero --skip all_memory_is_returned --skip a_million --skip mixes --skip a_child

# `cargo install --locked cargo-mutants` first. MUTANTS=queue takes one folder, SHARD=0/10 every tenth mutant. Each mutant is
# built incrementally and without debug information, with the tests of these folders (or files) only: the options that
# select them (-C) go to the build, too.
MUTANTS := pool suai dlpack event queue ipc usm
MUTANT_TESTS_pool := pool
MUTANT_TESTS_event := queue asynchronous operands capabilities faults
MUTANT_TESTS_queue := queue asynchronous operands peer_copy capabilities faults
MUTANT_TESTS_ipc := ipc
MUTANT_TESTS_usm := memory capabilities pool
mutants: build ## Mutation tests of src/; takes hours
	ZEUSM_CPU_LIBRARY=$(CPU_RUNTIME) CARGO_INCREMENTAL=1 CARGO_PROFILE_DEV_DEBUG=none cargo mutants -j1 --cap-lints true \
		--timeout 120 --build-timeout 900 $(if $(SHARD),--shard $(SHARD) --sharding round-robin) \
		$(foreach folder,$(MUTANTS),-f 'src/$(folder)/*.rs' -f 'src/$(folder).rs') \
		-o $(TARGET) -C=--locked -C=--lib \
		$(patsubst %,-C=--test=%,$(sort $(foreach folder,$(MUTANTS),$(MUTANT_TESTS_$(folder))))) \
		-- -- --skip a_million --skip mixes_fragment --skip all_memory_is_returned

# On Intel's own driver, over a simulated GPU: a Debian sid root has the driver, the kernel's header and its own Python.
INTEL_ROOT := $(CURDIR)/.cache/intel-root
INTEL_VENV := $(INTEL_ROOT)/opt/venv
INTEL_MACHINES ?= lnl bmg bmg2
# With INTEL_RESUME=1 a run of the tests leaves out the files that passed in the last one; INTEL_ONLY selects files by parts
# of their names.
INTEL_RESUME ?=
INTEL_ONLY ?=
XE_SIM := $(TARGET)/debug/xe-sim
IN_INTEL_ROOT := $(XE_SIM) $(INTEL_ROOT) lnl --bind $(CURDIR) -- env -i PATH=/usr/bin:/bin HOME=/root \
	PIP_CERT=/etc/ssl/certs/ca-certificates.crt

$(INTEL_ROOT)/.complete: tools/intel_root.sh
	sh tools/intel_root.sh $(INTEL_ROOT)

.PHONY: xe-sim
xe-sim: export XE_DRM_INCLUDE_DIR := $(INTEL_ROOT)/usr/include
xe-sim: $(INTEL_ROOT)/.complete | setup ## Builds, lints and tests the simulated GPU
	CARGO_PROFILE_DEV_OPT_LEVEL=1 cargo build --locked -p xe-sim
	cargo clippy --locked -p xe-sim --all-targets -- -D warnings
	cargo test --locked -p xe-sim --lib

$(INTEL_VENV)/.requirements: requirements/venv-intel.txt | xe-sim
	$(IN_INTEL_ROOT) python3 -m venv --clear /opt/venv
	$(IN_INTEL_ROOT) /opt/venv/bin/pip install -q --no-cache-dir -r $(CURDIR)/$<
	@! command -v hardlink >/dev/null || hardlink -q -c $(INTEL_VENV)
	@touch $@

$(INTEL_VENV)/.zeusm: $(INTEL_VENV)/.requirements dist/.built
	$(IN_INTEL_ROOT) sh -c '/opt/venv/bin/pip install -q --no-deps --force-reinstall $(CURDIR)/dist/*.whl'
	@touch $@

.PHONY: test-intel
test-intel: xe-sim $(INTEL_VENV)/.zeusm ## The tests on Intel's own driver over a simulated GPU (root; not in `test`)
	RESUME=$(INTEL_RESUME) ONLY="$(INTEL_ONLY)" sh tools/test_intel.sh $(XE_SIM) $(INTEL_ROOT) $(INTEL_MACHINES)

# The Rust and the Python tests of what calls the driver most, and one of injected faults.
INTEL_PART := deps/asynchronous- slow-asynchronous deps/memory- deps/operands- deps/peer_copy- deps/queue- lists test_async \
	test_buffer test_copies test_driver test_exchange test_history test_pool test_sharing intel/test_faults
.PHONY: test-intel-part
test-intel-part: ## What CI runs of test-intel: the tests of memory and queues, on one machine
	sh tools/test_intel_part.sh $(INTEL_ROOT) lnl $(INTEL_PART)

.PHONY: bench-intel
bench-intel: xe-sim $(INTEL_VENV)/.zeusm ## Host-side time with Intel's own driver over a simulated GPU
	@for machine in $(INTEL_MACHINES); do \
		$(XE_SIM) $(INTEL_ROOT) $$machine --bind $(CURDIR) -- env -i PATH=/usr/bin:/bin HOME=/root \
			ZEUSM_BENCH_ROUNDS=5 ZEUSM_BENCH_LARGEST=1048576 \
			$(INTEL_VENV:$(INTEL_ROOT)%=%)/bin/python $(CURDIR)/benches/run.py --processes 1 \
			--output $(TARGET)/bench-intel/$$machine memory copies || exit 1; \
	done

# --- what is published; docs/install.md says what was tested -------------------------------------

# The wheel is built from the source distribution, in a folder of its own: zig prints relative paths of its headers if it is
# below the current folder, and bindgen runs in another one.
RELEASE := dist/release
GLIBC := manylinux_2_28
.PHONY: dist
dist: export PATH := $(CURDIR)/$(VENV_DIST)/bin:$(PATH)
dist: $(VENV_DIST)/.requirements ## A source distribution and a wheel for old C libraries, in dist/release
	rm -rf $(RELEASE)
	$(VENV_DIST)/bin/python -m build --no-isolation --sdist -o $(RELEASE) .
	CARGO_TARGET_DIR=$(TARGET) $(VENV_DIST)/bin/pip wheel -q --no-deps --no-build-isolation \
		-C build-args="--zig --compatibility $(GLIBC)" -w $(RELEASE) $(RELEASE)/*.tar.gz
	$(VENV_DIST)/bin/twine check --strict $(RELEASE)/*
	$(VENV_DIST)/bin/auditwheel show $(RELEASE)/*.whl | grep 'platform tag: "$(GLIBC)_x86_64"'
	$(VENV_DIST)/bin/python tools/check_wheel.py $(RELEASE)/*.whl
	@touch $(RELEASE)/.built

# `make dist` always builds, test-dist after a change only: it tests the files that are there.
$(RELEASE)/.built: $(SOURCES)
	$(MAKE) --no-print-directory dist

.PHONY: test-dist
test-dist: $(RELEASE)/.built ## The wheel and each of its extras in new environments, and a build of the source distribution in an empty one
	sh tools/test_dist.sh $(PYTHON) $(TARGET)/dist $(RELEASE)

# PYTHONS are commands of Python; MATRIX_TESTS selects tests.
PYTHONS := $(PYTHON)
MATRIX_TESTS := tests/python
.PHONY: test-matrix
test-matrix: ## The Python tests with the wheel of `make dist`, on each of PYTHONS="python3.12 python3.13 python3.14"
	@for python in $(PYTHONS); do sh tools/test_matrix.sh $$python $(TARGET)/matrix $(RELEASE)/*.whl $(MATRIX_TESTS) || exit 1; done

# A free-threaded Python has no stable ABI, so each version has a wheel of its own. Tests of what needs dpctl, which has no release
# for it, are not run.
FREE_THREADED := python3.14t
VENV_FREE_THREADED := .venv-free-threaded
$(VENV_FREE_THREADED)/.requirements: PYTHON := $(FREE_THREADED)
$(VENV_FREE_THREADED)/.requirements: requirements/free-threaded.txt
.PHONY: test-free-threaded
test-free-threaded: export PATH := $(CURDIR)/$(VENV_FREE_THREADED)/bin:$(PATH)
test-free-threaded: export PYO3_PYTHON := $(CURDIR)/$(VENV_FREE_THREADED)/bin/python
test-free-threaded: $(VENV_FREE_THREADED)/.requirements $(RELEASE)/.built ## A wheel for FREE_THREADED=python3.14t beside that of `make dist`, and the tests that need no dpctl
	rm -rf $(RELEASE)/free-threaded
	CARGO_TARGET_DIR=$(TARGET)/free-threaded $(VENV_FREE_THREADED)/bin/pip wheel -q --no-deps --no-build-isolation \
		-C build-args="--zig --compatibility $(GLIBC)" -w $(RELEASE)/free-threaded $(RELEASE)/*.tar.gz
	$(VENV_FREE_THREADED)/bin/python tools/check_wheel.py $(RELEASE)/free-threaded/*.whl
	$(VENV_FREE_THREADED)/bin/pip install -q --no-deps --force-reinstall $(RELEASE)/free-threaded/*.whl
	ZEUSM_TEST_PARALLEL=10 $(VENV_FREE_THREADED)/bin/python -m pytest -p no:cacheprovider

# Advisories come from a database on the network: add "advisories" where there is one. Without --workspace, cargo-deny looks at
# the crate `zeusm` only, and not at the Python module.
AUDIT := bans licenses sources
.PHONY: audit
audit: ## The licences and sources of what is linked
	@command -v cargo-deny >/dev/null || { echo "cargo-deny is missing: cargo install --locked cargo-deny" >&2; exit 1; }
	cargo deny --workspace --locked check $(AUDIT)

# The crates that are published, in order. The bindings go with level-zero-sys, for documentation services without headers.
CRATES := level-zero-sys zeusm zeusm-cpu
.PHONY: package
package: | setup ## Packages and builds each crate as `cargo publish` does, and the documentation without headers
	sh tools/package.sh $(CRATES)

# `rustup component add rust-src --toolchain nightly` for the standard library, which needs mingw-w64 to link. CARGO_SOURCES may be
# another Rust with its sources: `env RUSTC_BOOTSTRAP=1 cargo` for Debian sid's packages cargo and rust-src. WINE runs the
# tests that need no driver, if it is version 9 or later (older ones lack bcryptprimitives.dll); it may be a command, such as
# `chroot ROOT wine` for a later Debian's.
WINDOWS := x86_64-pc-windows-gnu
WINE := wine
CARGO_SOURCES := cargo +nightly
ON_WINDOWS := CARGO_TARGET_DIR=$(TARGET)/windows CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER="$(WINE)" $(CARGO_SOURCES)
.PHONY: test-windows
test-windows: | setup ## The crates for Windows: compiles both, and runs the tests that need no driver in wine
	$(ON_WINDOWS) check -Zbuild-std --locked --target $(WINDOWS) -p level-zero-sys -p zeusm
	$(ON_WINDOWS) test -Zbuild-std --locked --target $(WINDOWS) -p level-zero-sys --lib --test library
	$(ON_WINDOWS) test -Zbuild-std --locked --target $(WINDOWS) -p zeusm --lib --test pool --test out_of_memory

.PHONY: bench bench-write bench-quick
bench bench-write bench-quick: venvs $(VENV_FIGURE)/.requirements
bench bench-write bench-quick: export ZEUSM_UMF_LIBRARY := $(CURDIR)/$(VENV)/lib/libumf.so.1
# Debian's package libmimalloc2.0, if it is installed.
bench bench-write bench-quick: export ZEUSM_MIMALLOC_LIBRARY ?= $(firstword $(wildcard /usr/lib/*/libmimalloc.so.2))

bench: ## Benchmarks against the peers, in ten minutes; writes target/bench
	$(PY) benches/run.py --processes 3 --output $(TARGET)/bench
	$(VENV_FIGURE)/bin/python benches/figure.py $(TARGET)/bench

bench-write: ## The same, with the pool beside UMF and copies beside memcpy; writes benches/results
	cargo bench --locked --bench pool
	cargo bench --locked -p zeusm-cpu --bench ratios
	$(PY) benches/run.py --processes 3 --write
	$(VENV_FIGURE)/bin/python benches/figure.py

bench-quick: export ZEUSM_BENCH_ROUNDS := 3
bench-quick: ## Short benchmarks for development; writes target/bench
	$(PY) benches/run.py --processes 1 --output $(TARGET)/bench
	$(VENV_FIGURE)/bin/python benches/figure.py $(TARGET)/bench

# The pages describe the installed wheel. Warnings and links that lead nowhere are errors.
SITE := $(TARGET)/site
.PHONY: docs
docs: $(VENV_DOCS)/.zeusm ## The documentation as a site, in target/site
	RUSTDOCFLAGS="-D warnings" cargo doc -p zeusm -p level-zero-sys -p zeusm-cpu --no-deps --locked
	rm -rf $(SITE) $(TARGET)/site-cache docs/reference/generated
	PATH="$(CURDIR)/$(VENV_DOCS)/bin:$$PATH" $(VENV_DOCS)/bin/python -m sphinx -q -W --keep-going \
		-d $(TARGET)/site-cache docs $(SITE)
	cp -r $(TARGET)/doc $(SITE)/rust
	$(VENV_DOCS)/bin/python tools/check_site.py $(SITE)

.PHONY: clean
clean: ## Removes all build results; keeps the download cache
	cargo clean
	rm -rf $(VENV) $(VENV_NUMBA_DPEX) $(VENV_FIGURE) $(VENV_DOCS) $(VENV_DIST) $(VENV_FREE_THREADED) dist python/zeusm/lib
	rm -rf .pytest_cache .hypothesis .mypy_cache .ruff_cache docs/reference/generated
