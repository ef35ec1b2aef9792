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
	$(CARGO) build --locked -p xe-sim
	$(CARGO) clippy --locked -p xe-sim --all-targets -- -D warnings
	$(CARGO) test --locked -p xe-sim --lib

$(INTEL_VENV)/.requirements: requirements/venv-intel.txt | xe-sim
	$(IN_INTEL_ROOT) python3 -m venv --clear /opt/venv
	$(IN_INTEL_ROOT) /opt/venv/bin/pip install -q --no-cache-dir -r $(CURDIR)/$<
	@! command -v hardlink >/dev/null || hardlink -q -c $(INTEL_VENV)
	@touch $@

$(INTEL_VENV)/.zeusm: $(INTEL_VENV)/.requirements dist/abi3/.built
	$(IN_INTEL_ROOT) sh -c '/opt/venv/bin/pip install -q --no-deps --force-reinstall $(CURDIR)/dist/abi3/*.whl'
	@touch $@

.PHONY: test-intel
test-intel: xe-sim $(INTEL_VENV)/.zeusm ## The tests on Intel's own driver over a simulated GPU (root; not in `test`)
	RESUME=$(INTEL_RESUME) ONLY="$(INTEL_ONLY)" sh tools/test_intel.sh $(XE_SIM) $(INTEL_ROOT) $(INTEL_MACHINES)

# The Rust and the Python tests of what calls the driver most, and one of injected faults.
INTEL_PART := deps/asynchronous- slow-asynchronous deps/memory- deps/operands- deps/peer_copy- deps/queue- lists test_async \
	test_buffer test_copies test_driver test_exchange test_history test_pool test_sharing intel/test_faults

.PHONY: bench-intel
bench-intel: xe-sim $(INTEL_VENV)/.zeusm ## Host-side time with Intel's own driver over a simulated GPU
	@for machine in $(INTEL_MACHINES); do \
		$(XE_SIM) $(INTEL_ROOT) $$machine --bind $(CURDIR) -- env -i PATH=/usr/bin:/bin HOME=/root \
			ZEUSM_BENCH_ROUNDS=5 ZEUSM_BENCH_LARGEST=1048576 \
			$(INTEL_VENV:$(INTEL_ROOT)%=%)/bin/python $(CURDIR)/benches/run.py --processes 1 \
			--output $(TARGET)/bench-intel/$$machine memory copies || exit 1; \
	done

.PHONY: test-intel-part
test-intel-part: ## A part of test-intel, on one simulated GPU (root): before a change of how the driver is called is complete
	sh tools/test_intel_part.sh $(INTEL_ROOT) lnl $(INTEL_PART)
