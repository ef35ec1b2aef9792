# The official tests of Level Zero. LEVEL_ZERO_TESTS is a folder with clones of oneapi-src/level-zero-tests and oneapi-src/level-zero,
# a loader, from GitHub. Both are built there, by what Debian 12 has: cmake, libboost1.81-all-dev, libpng-dev, googletest. AREAS names
# programs, as in AREAS='fence barrier', of which only these are built, and TESTS is a pattern of names. With WHOLE=1 tests run, too,
# that are known to be too much work.
AREAS ?=
TESTS ?= *
WHOLE ?=
.PHONY: test-conformance
test-conformance: build $(VENV)/.requirements ## The official conformance tests on the CPU runtime, compared with a committed list (LEVEL_ZERO_TESTS=FOLDER; hours)
	@test -n "$(LEVEL_ZERO_TESTS)" || { echo "LEVEL_ZERO_TESTS=FOLDER has the sources (make/conformance.mk)." >&2; exit 1; }
	$(PYTHON) tests/conformance $(LEVEL_ZERO_TESTS) --runtime $(CPU_RUNTIME) --opencl $(VENV)/lib/libintelocl.so \
		--output $(TARGET)/conformance --tests '$(TESTS)' $(if $(AREAS),--areas $(AREAS)) $(if $(WHOLE),--whole)
