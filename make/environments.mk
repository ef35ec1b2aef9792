# The Python environments, and the wheel that is installed in them.

# The environments with their Python commands: of the tests the first two; the others build the wheel, figures, the pages, releases and
# conda packages. The RPATH in dpctl 0.17's wheel does not contain the folder of the SYCL runtime, so the library path is set.
VENV := .venv
VENV_NUMBA_DPEX := .venv-numba-dpex
VENV_BUILD := .venv-build
VENV_FIGURE := .venv-figure
VENV_DOCS := .venv-docs
VENV_DIST := .venv-dist
VENV_CONDA := .venv-conda
PY := $(VENV)/bin/python
ifeq ($(shell $(PYTHON) -c 'import sys; print(sys.version_info[:2] == (3, 11))' 2>/dev/null),True)
NUMBA_DPEX := $(VENV_NUMBA_DPEX)/.zeusm
PY_NUMBA_DPEX := LD_LIBRARY_PATH=$(CURDIR)/$(VENV_NUMBA_DPEX)/lib $(VENV_NUMBA_DPEX)/bin/python
else
NUMBA_DPEX :=
PY_NUMBA_DPEX := echo "Not run, because numba-dpex has wheels for Python 3.11 only:"
endif

# Wheels contain no links, so the SYCL runtime's large libraries are duplicated: hardlink (util-linux) replaces equal files
# by links.
$(VENV)/.requirements: requirements/venv.txt
$(VENV_BUILD)/.requirements: requirements/venv-build.txt
$(VENV_FIGURE)/.requirements: requirements/venv-figure.txt
$(VENV_DOCS)/.requirements: requirements/venv-docs.txt
$(VENV_DIST)/.requirements: requirements/venv-dist.txt
$(VENV_CONDA)/.requirements: requirements/venv-conda.txt
$(VENV_NUMBA_DPEX)/.requirements: requirements/venv-numba-dpex.txt
# An interrupted installation leaves packages that pip takes for complete: the environment is made anew.
%/.requirements: | setup
	$(PYTHON) -m venv --clear $*
	$*/bin/pip install -q -r $(filter %.txt,$^)
	@! command -v hardlink >/dev/null || hardlink -q -c $*
	@touch $@

.PHONY: requirements requirements-numba-dpex
requirements: $(VENV)/.requirements
requirements-numba-dpex: $(NUMBA_DPEX:.zeusm=.requirements)

# What the wheel is built from.
SOURCES := $(shell find Cargo.toml Cargo.lock pyproject.toml README.md $(addprefix tools/,build_backend.py docstrings.py third_party.py \
	wheels.py) build.rs process src sys cpu python -type f ! -name '*.so*' ! -name '*.pyc' 2>/dev/null)

# The wheel in dist is for the version of Python that the tests use; that in dist/abi3 is for all.
PIP_WHEEL := env -u MAKEFLAGS -u MFLAGS PATH="$(CURDIR)/$(VENV_BUILD)/bin:$$PATH" $(VENV_BUILD)/bin/pip wheel --no-deps --no-build-isolation
dist/.built: $(SOURCES) $(VENV_BUILD)/.requirements
	@rm -f dist/*.whl
	$(PIP_WHEEL) -w dist .
	$(PYTHON) tools/check_wheel.py dist/*.whl
	@touch $@

dist/abi3/.built: $(SOURCES) $(VENV_BUILD)/.requirements
	@rm -f dist/abi3/*.whl
	$(PIP_WHEEL) -C build-args="--features abi3" -w dist/abi3 .
	$(PYTHON) tools/check_wheel.py dist/abi3/*.whl
	@touch $@

# A wheel that is quick to build after a change: little optimisation, and only what has changed is compiled.
UNOPTIMISED := CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
DEVELOP := $(TARGET)/develop/wheel
$(DEVELOP)/.built: $(SOURCES) $(VENV_BUILD)/.requirements
	@rm -rf $(DEVELOP)
	$(UNOPTIMISED) CARGO_INCREMENTAL=1 CARGO_TARGET_DIR=$(TARGET)/develop $(PIP_WHEEL) -q -w $(DEVELOP) .
	@touch $@

.PHONY: develop
develop: $(VENV)/.requirements $(DEVELOP)/.built ## Builds and installs an unoptimised wheel in .venv; `make venvs` puts the optimised one back
	@rm -f $(VENV)/.zeusm
	$(VENV)/bin/pip install -q --no-deps --force-reinstall $(DEVELOP)/*.whl

%/.zeusm: %/.requirements dist/.built
	$*/bin/pip install -q --no-deps --force-reinstall dist/*.whl
	@touch $@
.SECONDARY:
