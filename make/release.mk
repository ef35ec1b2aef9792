# --- what is published; docs/install.md says what was tested -------------------------------------

# The wheel is built from the source distribution, in a folder of its own: zig prints relative paths of its headers if it is
# below the current folder, and bindgen runs in another one.
RELEASE := dist/release
GLIBC := manylinux_2_28
# Beside the module for all versions of Python, each of these that is here gets its own.
VERSIONS := python3.11 python3.12 python3.13 python3.14
VERSIONED := $(RELEASE)/versions
RELEASE_WHEEL = env -u PYO3_PYTHON CARGO_TARGET_DIR=$(TARGET) $(VENV_DIST)/bin/pip wheel -q --no-deps --no-build-isolation \
	-C build-args="--zig --compatibility $(GLIBC) $(1)" -w $(2) $(RELEASE)/*.tar.gz
.PHONY: dist
dist: export PATH := $(CURDIR)/$(VENV_DIST)/bin:$(PATH)
dist: $(VENV_DIST)/.requirements ## A source distribution and wheels for old C libraries: in dist/release for all versions of Python, in its folder versions for each that is here
	rm -rf $(RELEASE)
	$(VENV_DIST)/bin/python -m build --no-isolation --sdist -o $(RELEASE) .
	$(call RELEASE_WHEEL,--features abi3,$(RELEASE))
	set -e; for python in $(VERSIONS); do ! $$python -c "" 2>/dev/null || $(call RELEASE_WHEEL,-i $$python,$(VERSIONED)); done
	$(VENV_DIST)/bin/twine check --strict $(RELEASE)/*.tar.gz $(RELEASE)/*.whl $(VERSIONED)/*.whl
	for wheel in $(RELEASE)/*.whl $(VERSIONED)/*.whl; do \
		$(VENV_DIST)/bin/auditwheel show $$wheel | grep 'platform tag: "$(GLIBC)_x86_64"' || exit 1; done
	$(VENV_DIST)/bin/python tools/check_wheel.py $(RELEASE)/*.whl $(VERSIONED)/*.whl
	@touch $(RELEASE)/.built

# `make dist` always builds, test-dist after a change only: it tests the files that are there.
$(RELEASE)/.built: $(SOURCES)
	$(MAKE) --no-print-directory dist

.PHONY: test-dist
test-dist: $(RELEASE)/.built ## The wheel and each of its extras in new environments, and a build of the source distribution in an empty one
	sh tools/test_dist.sh $(PYTHON) $(TARGET)/dist $(RELEASE)

# For programs that have no Python: docs/howto/ci.md. DESTDIR goes before PREFIX, as packagers expect. Both may have blanks.
PREFIX := /usr/local
INSTALLED = $(shell realpath -ms -- "$(PREFIX)")
STAGED = $(DESTDIR)$(INSTALLED)
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
.PHONY: install
install: | setup ## The CPU runtime below PREFIX=/usr/local (DESTDIR=), with its pkg-config file and the variable for the system's loader
	$(CARGO) build --release --locked -p zeusm-cpu
	install -d "$(STAGED)/lib/zeusm" "$(STAGED)/lib/pkgconfig" "$(STAGED)/share/zeusm"
	install -m 755 $(TARGET)/release/libzeusm_cpu.so "$(STAGED)/lib/zeusm/libze_loader.so.1"
	ln -sf libze_loader.so.1 "$(STAGED)/lib/zeusm/libze_loader.so"
	printf '%s\n' 'prefix=$(INSTALLED)' 'libdir=$${prefix}/lib/zeusm' 'driver=$${libdir}/libze_loader.so.1' 'Name: zeusm-cpu' \
		'Description: Level Zero runtime on the CPU' 'Version: $(VERSION)' 'Libs: -L"$${libdir}" -lze_loader' \
		> "$(STAGED)/lib/pkgconfig/zeusm-cpu.pc"
	echo 'ZE_ENABLE_ALT_DRIVERS=$(INSTALLED)/lib/zeusm/libze_loader.so.1' > "$(STAGED)/share/zeusm/level-zero.env"

# The conda recipe's packages are built by this machine's compilers, and run; conda's channels are not needed.
.PHONY: test-conda
test-conda: $(VENV_CONDA)/.requirements ## The conda recipe: its packages are built without conda's channels, and run
	env -u MAKEFLAGS -u MFLAGS PATH="$(CURDIR)/$(VENV_CONDA)/bin:$$PATH" \
		$(VENV_CONDA)/bin/python tools/conda/check.py $(CURDIR)/$(VENV_CONDA)/bin/python $(TARGET)/conda

# The lines of docs/howto/ci.md, in a Debian root that has what a runner's image has.
CI_ROOT := $(CURDIR)/.cache/ci-root
$(CI_ROOT)/.complete: tools/debian_root.sh
	sh tools/debian_root.sh $(CI_ROOT) trixie ca-certificates
.PHONY: test-ci
test-ci: $(CI_ROOT)/.complete dist/abi3/.built ## The lines of docs/howto/ci.md in a clean Debian root (root; ZEUSM_TEST_CI_JAX=1: JAX's, too)
	rm -rf $(CI_ROOT)/opt/installed
	$(MAKE) install DESTDIR=$(CI_ROOT) PREFIX=/opt/installed
	$(PY) tools/test_ci.py $(CI_ROOT) docs/howto/ci.md dist/abi3/*.whl

# PYTHONS are commands of Python; MATRIX_TESTS selects tests.
PYTHONS := $(PYTHON)
MATRIX_TESTS := tests/python
.PHONY: test-matrix
test-matrix: ## The Python tests with the wheel of `make dist`, on each of PYTHONS="python3.12 python3.13 python3.14"
	@for python in $(PYTHONS); do sh tools/test_matrix.sh $$python $(TARGET)/matrix $(RELEASE)/*.whl $(MATRIX_TESTS) || exit 1; done

# A free-threaded Python has no stable ABI. Tests of what needs dpctl, which has no release
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
	$(CARGO) deny --workspace --locked check $(AUDIT)

# The crates that are published, in order. The bindings go with level-zero-sys, for documentation services without headers.
CRATES := zeusm-process level-zero-sys zeusm zeusm-cpu
.PHONY: package
package: | setup ## Packages and builds each crate as `cargo publish` does, and the documentation without headers
	sh tools/package.sh $(CRATES)
