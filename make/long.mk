# Tests that take too long for each change, and what left `make test` to keep that short.

# The number of cases of each fuzzing test. Fast tests have 10 or 100 times as many, with optimisation; slow ones, of kernels
# and of random programs, have FUZZ_SLOW.
FUZZ := 100000
FUZZ_SLOW := 400
PYTEST_LONG := -m pytest -p no:cacheprovider -o faulthandler_timeout=0
OPTIMISED := CARGO_PROFILE_TEST_OPT_LEVEL=2 CARGO_TARGET_DIR=$(TARGET)/optimised

.PHONY: test-daily lint-loom lint-abi3 test-valgrind test-instructions test-loader-all test-rust-daily test-python-again test-python-daily
test-daily: lint-loom lint-abi3 test-valgrind test-instructions test-loader-all test-rust-daily test-crate test-python-again test-python-daily test-intel-part ## For each day: clippy with loom, valgrind, instruction counts, what `test` runs in one mode or environment only, and a part of test-intel

# Allocation, sharing and freeing under valgrind. It runs one thread at a time: without a fair lock, a test that polls an event
# starved the thread that executes the work, for minutes.
VALGRIND := valgrind -q --fair-sched=try --error-exitcode=99 --leak-check=full \
	--show-leak-kinds=definite --errors-for-leak-kinds=definite
test-valgrind: build ## The Rust tests of memory and queues under valgrind
	ZEUSM_CPU_LIBRARY=$(CPU_RUNTIME) $(RUNNER)="$(VALGRIND)" \
		$(CARGO) test $(WORKSPACE) --locked --test memory --test queue --test asynchronous --test operands

test-instructions: $(VENV)/.zeusm ## Instructions of the shortest calls, at most 5 % more than tests/instructions/counts.json has
	$(PY) tests/instructions

# Chromium has 160 MB to download and 560 MB on the disk, so `test-python` skips its tests where it is missing.
.PHONY: test-browser
test-browser: $(VENV)/.zeusm ## The pictures of `zeusm memory report` in a headless Chromium, which is installed (apt) if missing
	sh tools/setup.sh browser
	ZEUSM_TEST_BROWSER_REQUIRED=1 $(PY) $(PYTEST) tests/python/test_memory_browser.py

# With dpctl 0.17 and NumPy 1.26. The others of `once` need packages of the first environment.
AGAIN := array_objects array_repr array_views arrow async_operands bad_interfaces buffer calls cuda data_frames doctor \
	doctor_remedies doctor_windows documents dpctl_suite exit fork gate history html in_place info interrupts ipc ipc_driver ipc_dpctl lifetime \
	memory_replay model_arrays parallel pool records reduce signals stub suspend threads_shortage
test-python-again: $(NUMBA_DPEX) ## Tests of the first environment only, and all random programs, in the second one
	$(PY_NUMBA_DPEX) $(PYTEST) -m 'once and not daily' $(AGAIN:%=tests/python/test_%.py)
	$(PY_NUMBA_DPEX) $(PYTEST) tests/python/test_model.py tests/python/test_model_arrays.py

test-python-daily: venvs ## The Python tests that take long, in both environments
	$(PY) $(PYTEST) -m daily tests/python
	$(PY) $(PYTEST) -m daily tests/peers
	$(PY_NUMBA_DPEX) $(PYTEST) -m 'daily and not once' tests/python

.PHONY: test-crate
test-crate: | setup ## A Rust program outside of the workspace, as docs/reference/rust.md says
	cp Cargo.lock examples/rust
	CARGO_TARGET_DIR=$(TARGET)/crate $(CARGO) run --manifest-path examples/rust/Cargo.toml

test-rust-daily: build ## The Rust tests that take long
	ZEUSM_CPU_LIBRARY=$(CPU_RUNTIME) $(CARGO_TEST) --test pool --test footprint --test kernels -- $(TIMES) $(DAILY)

lint-abi3: | setup ## clippy for the wheel that serves all versions of Python
	$(CARGO) clippy $(WORKSPACE) --all-targets --features zeusm-python/abi3 --locked -- -D warnings

test-loader-all: ## All programs of the Rust tests behind the system's loader without its validation layer
	$(MAKE) test-loader LOADER_TESTS='*'

# JAX needs a later Python than Debian 12's: JAX_PYTHON=python3.12 names it. The wheel is that for all versions. The kernel of
# jnp.linalg.solve takes minutes to build on a busy machine, so that no test has a limit.
JAX_PYTHON := python3.12
VENV_JAX := .venv-jax
$(VENV_JAX)/.requirements: PYTHON := $(JAX_PYTHON)
$(VENV_JAX)/.requirements: requirements/venv-jax.txt
.PHONY: test-jax
test-jax: $(VENV_JAX)/.zeusm ## JAX with Intel's plugin on the CPU runtime, beside JAX's own CPU device (3.5 GB of packages)
	$(VENV_JAX)/bin/python $(PYTEST_LONG) tests/jax

VENV_TORCH := .venv-torch
$(VENV_TORCH)/.requirements: requirements/venv-torch.txt
.PHONY: test-torch
test-torch: $(VENV_TORCH)/.zeusm ## PyTorch's tensors over zeusm's arrays (5 GB of packages)
	$(VENV_TORCH)/bin/python $(PYTEST) tests/torch

VENV_MPI := .venv-mpi
$(VENV_MPI)/.requirements: requirements/venv-mpi.txt
.PHONY: test-mpi
test-mpi: $(VENV_MPI)/.zeusm ## Intel MPI with GPU offload: its messages and its benchmarks, also under the checker
	$(VENV_MPI)/bin/python $(PYTEST) tests/mpi

# Programs that nobody here wrote, in environments of their own, by `zeusm run`: SYCL's libraries are found by the path. Dash, which
# Open3D brings, has a plugin that this pytest refuses.
VENV_LLAMA := .venv-llama
$(VENV_LLAMA)/.requirements: PYTHON := $(JAX_PYTHON)
$(VENV_LLAMA)/.requirements: requirements/venv-llama.txt
VENV_OPEN3D := .venv-open3d
$(VENV_OPEN3D)/.requirements: requirements/venv-open3d.txt
# Their Python may be another one.
$(VENV_JAX)/.zeusm $(VENV_LLAMA)/.zeusm $(VENV_TORCH)/.zeusm: %/.zeusm: %/.requirements dist/abi3/.built
	$*/bin/pip install -q --no-deps --force-reinstall dist/abi3/*.whl
	@touch $@
FOREIGN = LD_LIBRARY_PATH=$(CURDIR)/$(1)/lib $(1)/bin/python -m zeusm run $(1)/bin/python $(PYTEST_LONG) -p no:dash tests/foreign
.PHONY: test-llama test-open3d test-pyzes test-umf
test-llama: $(VENV_LLAMA)/.zeusm ## llama.cpp's SYCL backend: ggml's operations and a small model beside its CPU backend (2.7 GB of packages)
	$(call FOREIGN,$(VENV_LLAMA))/test_llama.py

test-open3d: $(VENV_OPEN3D)/.zeusm ## Open3D's tensors and point clouds on SYCL beside its CPU device (2.9 GB of packages)
	@sh tools/setup.sh open3d
	rm -f $(VENV_OPEN3D)/lib/libtcm.so* # docs/limits.md: its exit aborts
	$(call FOREIGN,$(VENV_OPEN3D))/test_open3d.py

test-pyzes: $(VENV_OPEN3D)/.zeusm ## Intel's bindings of Sysman
	$(call FOREIGN,$(VENV_OPEN3D))/test_pyzes.py

test-umf: $(VENV_OPEN3D)/.zeusm ## UMF's Level Zero provider, its pools, and its IPC
	$(call FOREIGN,$(VENV_OPEN3D))/test_umf.py

# Each has three hours. PROGRAMS="umf pyzes" runs a part.
PROGRAMS := umf pyzes llama open3d mpi jax torch
.PHONY: test-foreign
test-foreign: ## Foreign programs on the CPU runtime, those above and test-mpi, test-jax, test-torch, with a table at the end (15 GB of packages)
	$(PYTHON) tools/foreign.py --logs $(TARGET)/tests --make $(MAKE_COMMAND) $(PROGRAMS) $(MAKEOVERRIDES)

.PHONY: test-long test-checked test-compared test-faults test-fuzz test-forks test-handoffs test-lifetime test-loom test-miri test-sanitized test-soak test-threads mutants
test-long: test-daily test-checked test-compared test-faults test-fuzz test-forks test-handoffs test-lifetime test-loom test-miri test-sanitized test-soak test-threads ## All long tests; takes hours

test-checked: $(VENV)/.zeusm ## dpctl's and dpnp's own tests under the checker, without a finding
	$(PY) tests/soak/suites.py

test-compared: $(VENV)/.zeusm ## dpnp's own tests on the CPU runtime's CPU device and on OpenCL's; an hour
	$(PY) tests/soak/compared.py

test-faults: build venvs ## Fault injection: each Level Zero call fails with each code
	ZEUSM_TEST_FAULTS=all ZEUSM_CPU_LIBRARY=$(CPU_RUNTIME) $(CARGO) test --locked --test faults
	ZEUSM_TEST_FAULTS=all $(PY) $(PYTEST_LONG) tests/python/test_faults.py
	ZEUSM_TEST_FAULTS=all $(PY_NUMBA_DPEX) $(PYTEST_LONG) tests/python/test_faults.py

test-fuzz: build venvs ## Fuzzing, FUZZ cases for each test, and FUZZ_SLOW random programs
	PROPTEST_CASES=$(FUZZ) $(CARGO) test --locked --lib
	PROPTEST_CASES=$(FUZZ) $(CARGO) test --locked -p zeusm-cpu --lib
	PROPTEST_CASES=$(FUZZ_SLOW) ZEUSM_OPENCL_LIBRARY=$(CURDIR)/$(VENV)/lib/libintelocl.so \
		$(CARGO) test --locked -p zeusm-cpu --test kernels changed_byte
	$(OPTIMISED) PROPTEST_CASES=$(FUZZ)00 $(CARGO) test --locked --lib suai::tests::fuzz
	$(OPTIMISED) ZEUSM_SIMULATIONS=$(FUZZ)0 $(CARGO) test --locked -p zeusm-cpu --lib simulation
	ZEUSM_FUZZ=$(FUZZ) $(PY) $(PYTEST_LONG) tests/python/test_pickles.py tests/python/test_ipc_forged.py \
		tests/python/test_random_calls.py
	ZEUSM_TEST_MODEL=$(FUZZ_SLOW) $(PY) $(PYTEST_LONG) tests/python/test_model.py tests/python/test_model_arrays.py
	ZEUSM_TEST_MODEL=$(FUZZ_SLOW) $(PY_NUMBA_DPEX) $(PYTEST_LONG) tests/python/test_model.py tests/python/test_model_arrays.py

# The long launches take up to half a minute, and each runs in a separate process.
LONG_LAUNCHES := kernels::a_child_of_a_fork_during_a_long_launch_has_no_kernels \
	kernels::a_child_of_a_fork_during_a_launch_of_a_child_answers_queries
test-forks: export ZEUSM_TEST_FORKS := 100
test-forks: export ZEUSM_OPENCL_LIBRARY := $(CURDIR)/$(VENV)/lib/libintelocl.so
test-forks: build venvs ## 500 forks in processes with busy threads, in each environment
	$(CARGO) test --locked -p zeusm-cpu --test forks
	set -e; for test in $(LONG_LAUNCHES); do \
		$(CARGO) test --locked -p zeusm-cpu --test forks -- --ignored --exact $$test; done
	$(PY) $(PYTEST_LONG) tests/python/test_fork.py
	$(PY_NUMBA_DPEX) $(PYTEST_LONG) tests/python/test_fork.py

test-handoffs: export ZEUSM_TEST_HANDOFFS := 100000
test-handoffs: export ZEUSM_TEST_KILLS := 1000
test-handoffs: build venvs ## 10^5 handoffs by events between processes, none early, and 1000 processes that are killed, without a hang
	ZEUSM_CPU_LIBRARY=$(CPU_RUNTIME) $(CARGO) test --locked --test ipc events:: -- --nocapture
	$(PY) $(PYTEST_LONG) -s tests/python/test_ipc_events.py

test-lifetime: export ZEUSM_TEST_ROUNDS := 100
test-lifetime: venvs ## Leak tests with millions of objects
	$(PY) $(PYTEST_LONG) tests/python/test_lifetime.py
	$(PY_NUMBA_DPEX) $(PYTEST_LONG) tests/python/test_lifetime.py

# SOAK is the seconds in each environment.
SOAK := 1800
test-soak: venvs ## Random programs of dpnp and zeusm against NumPy: both adapters, 1 to 8 threads, 1 to 4 devices
	$(PY) tests/soak --seconds $(SOAK)
	$(PY_NUMBA_DPEX) tests/soak --seconds $(SOAK)

# With optimisation, and with overflow checks. MODEL selects models by their names. Tests that are no models do not run with
# loom's locks.
LOOM := RUSTFLAGS="--cfg loom" CARGO_PROFILE_DEV_OPT_LEVEL=1 CARGO_TARGET_DIR=$(TARGET)/loom $(CARGO)
MODELLED := -p zeusm-process -p zeusm-cpu -p zeusm -p zeusm-python
lint-loom: | setup
	$(LOOM) clippy --locked $(MODELLED) --lib -- -D warnings

test-loom: lint-loom ## Loom models of the synchronisation, in every interleaving of a few threads
	$(LOOM) test --locked $(MODELLED) --lib -- "models::$(MODEL)" --nocapture

# Miri is a component of the nightly toolchain: `rustup component add miri rust-src --toolchain nightly`. It does not support
# foreign functions, so it runs the tests that call no driver; and it is slow, so they are smaller under it.
MIRI := MIRIFLAGS=-Zmiri-disable-isolation PROPTEST_CASES=2 CARGO_TARGET_DIR=$(TARGET)/miri $(CARGO) +nightly miri test --locked
test-miri: | setup ## Unsafe code of suai, dlpack, process and the pool under Miri
	$(MIRI) -p zeusm-process --lib -- --skip a_child
	$(MIRI) --lib -- suai:: dlpack:: pool:: exit:: --skip a_child --skip event:: --skip sycl::
	$(MIRI) --test pool -- --skip level_zero

HOST := $(shell rustc -vV | sed -n 's/^host: //p')
# Leaks are detected by test-valgrind; here drivers and devices, which live as long as the process, would be reported.
test-sanitized: build ## The Rust tests of memory, queues and the pool with AddressSanitizer
	RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address ASAN_OPTIONS=detect_leaks=0 \
		CARGO_TARGET_DIR=$(TARGET)/sanitized ZEUSM_CPU_LIBRARY=$(CPU_RUNTIME) $(CARGO) test --locked --target $(HOST) \
		--lib --test memory --test queue --test asynchronous --test operands --test pool -- --skip a_million --skip mixes_fragment

# The standard library has to be instrumented, too: `rustup component add rust-src --toolchain nightly`. Tests on the CPU
# runtime, which is not instrumented, are skipped, as they give false reports.
test-threads: | setup ## The pool's tests with ThreadSanitizer
	RUSTFLAGS=-Zsanitizer=thread CARGO_TARGET_DIR=$(TARGET)/threads $(RUNNER)="setarch -R" \
		$(CARGO) +nightly test --locked -Zbuild-std --target $(HOST) --test pool -- \
		--skip level_zero --skip all_memory_is_returned --skip a_million --skip mixes --skip a_child

# Lines and branches that the tests reach: the Rust tests and, with an instrumented wheel in a copy of .venv, the Python tests. The
# counters are mapped files (%c), so they also have what processes did that were killed or ended by `_exit`; processes without the
# variable leave files in the folders where they run. A few tests of times, descriptors and resident memory fail with it, and tests
# of millions of objects take long. `rustup component add llvm-tools` first; takes an hour.
COVERAGE := $(TARGET)/coverage
COVERED := env CARGO_TARGET_DIR=$(COVERAGE) LLVM_PROFILE_FILE=$(COVERAGE)/%c%m.profraw RUSTC_BOOTSTRAP=1 \
	RUSTFLAGS="-Cinstrument-coverage -Zcoverage-options=branch -Cllvm-args=-runtime-counter-relocation"
.PHONY: coverage
coverage: export ZEUSM_OPENCL_LIBRARY := $(CURDIR)/$(VENV)/lib/libintelocl.so
coverage: export RUST_MIN_STACK := 8388608
coverage: $(VENV)/.requirements $(VENV_BUILD)/.requirements ## Lines and branches that the Rust and the Python tests reach, by folder
	rm -rf $(COVERAGE)/*.profraw $(COVERAGE)/venv $(COVERAGE)/wheel
	$(COVERED) $(CARGO) build --locked -p zeusm-cpu
	-$(COVERED) ZEUSM_CPU_STRICT=1 ZEUSM_CPU_LIBRARY=$(COVERAGE)/debug/libzeusm_cpu.so $(RUNNER)="timeout -k 10 1800" \
		ZEUSM_TEST_DPCTL=$$(echo $(CURDIR)/$(VENV)/lib/python3*/site-packages/dpctl) $(CARGO) test $(WORKSPACE) --locked --no-fail-fast --tests
	cp -al $(VENV) $(COVERAGE)/venv
	$(COVERED) $(UNOPTIMISED) $(PIP_WHEEL) -w $(COVERAGE)/wheel .
	$(COVERAGE)/venv/bin/python -m pip install -q --no-deps --force-reinstall $(COVERAGE)/wheel/*.whl
	-$(COVERED) $(COVERAGE)/venv/bin/python $(PYTEST_LONG) tests/python
	rm -f default_*.profraw cpu/default_*.profraw
	$(PYTHON) tools/covered.py $(COVERAGE)

# `cargo install --locked cargo-mutants` first. MUTANTS='src/queue --only Queue::wait' takes one folder, and of it what is named so.
MUTANTS := cpu/src/engine cpu/src/memory cpu/src/usm src/pool src/queue src/event
mutants: export ZEUSM_OPENCL_LIBRARY := $(CURDIR)/$(VENV)/lib/libintelocl.so
mutants: export RUST_MIN_STACK := 8388608
mutants: build $(VENV)/.requirements ## Mutants of a hundred functions of each folder that no Rust test notices; an hour
	$(PYTHON) tools/mutants $(MUTANTS) --target $(TARGET)/mutants
