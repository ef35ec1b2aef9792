#!/bin/sh
# Tests what `make dist` has made, in new environments: test_dist.sh <python> <work folder> <release folder>
set -eu
python=$1 work=$2 release=$3
wheel=$(echo "$release"/*.whl)

fresh() { # fresh <requirement>: a new environment with it, in $bin
    rm -rf "$work/venv"
    "$python" -m venv "$work/venv"
    bin=$work/venv/bin
    "$bin/pip" install -q "$@"
}

echo "== the wheel alone"
fresh "$wheel"
"$bin/zeusm" doctor
"$bin/python" -c 'import zeusm.memory as m; assert bytes(m.MemoryUSMShared(64)) == bytes(64)'
# Without an OpenCL runtime no kernel is built, and the log says so. A machine may have one of its own.
if "$bin/python" -m zeusm._doctor.build_kernel; then echo "(this machine has an OpenCL runtime)"; fi

echo "== zeusm[cpu]"
fresh "$wheel[cpu]"
"$bin/python" -m zeusm._doctor.build_kernel

echo "== zeusm[dpctl]"
fresh "$wheel[dpctl]"
"$bin/zeusm" doctor
"$bin/python" -m zeusm._doctor.build_kernel
"$bin/python" examples/handoff_dpctl.py

echo "== threads that the exit ends, in the modules that zig has linked"
"$bin/pip" install -q pytest numpy hypothesis
for module in "$wheel" "$release"/versions/*; do
    # Those for other versions of Python cannot be installed.
    "$bin/pip" install -q --no-deps --force-reinstall "$module" || continue
    "$bin/python" -m pytest -p no:cacheprovider -q tests/python/test_exit.py
done

echo "== zeusm[dpnp]"
fresh "$wheel[dpnp]"
"$bin/zeusm" doctor | tee "$work/doctor.txt"
grep -q "^ok .*kernels" "$work/doctor.txt"

echo "== the source distribution, in an empty environment"
rm -rf "$work/wheel"
# Without rustfmt, which small installations of Rust lack.
RUSTFMT=/nonexistent CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$(pwd)/target} "$bin/pip" wheel -q --no-deps -w "$work/wheel" "$release"/*.tar.gz
fresh "$work"/wheel/*.whl
"$bin/python" -c 'import zeusm.memory as m; assert bytes(m.MemoryUSMShared(64)) == bytes(64)'
rm -rf "$work/venv"
