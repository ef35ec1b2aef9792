#!/bin/sh
# Installs missing dependencies of the build, and with the argument `browser` a browser, with `open3d` the libraries that Open3D's
# wheel opens; changes nothing if none is missing.
set -eu

packages=
need() { # need <package> <command that succeeds if it is installed>
    package=$1
    shift
    "$@" >/dev/null 2>&1 || packages="$packages $package"
}
exists() { for path in "$@"; do [ -e "$path" ] && return 0; done; return 1; }
library() { /sbin/ldconfig -p | grep -q "$1"; }
level_zero_headers() {
    [ -n "${LEVEL_ZERO_INCLUDE_DIR:-}" ] || pkg-config --exists level-zero ||
        exists /usr/include/level_zero/ze_api.h /usr/local/include/level_zero/ze_api.h
}
libclang() { # With the compiler's headers, which are in another package.
    [ -n "${LIBCLANG_PATH:-}" ] || library libclang || exists /usr/lib/llvm-*/lib/libclang*.so* &&
        exists /usr/lib/llvm-*/lib/clang/*/include/stddef.h /usr/lib*/clang/*/include/stddef.h
}
python=${PYTHON:-$(sh tools/python.sh)}
# tools/python.sh names python3.11, to be installed, where there is no Python; others have been asked for.
if [ "$python" != python3.11 ] && ! "$python" -c '' 2>/dev/null; then
    echo "$python is no command of Python here: PYTHON=/path/to/python names another one" \
        "(FREE_THREADED= for make test-free-threaded)." >&2
    exit 1
fi
python_headers() { # For the C extension that the tests compile.
    exists "$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h"
}
browser() { command -v chromium || command -v chromium-browser || command -v google-chrome; }
python() { "$python" -c 'import ensurepip, venv'; }

if ! cargo fmt --version >/dev/null 2>&1 || ! cargo clippy --version >/dev/null 2>&1; then
    echo "Rust is missing, or its rustfmt and clippy: install it with rustup (https://rustup.rs)." >&2
    exit 1
fi

need gcc cc --version
need g++ cc -x c++ -fsyntax-only /dev/null # The C API's header supports C++.
need libc6-dev exists /usr/include/stdio.h
need libze-dev level_zero_headers
need libze1 library libze_loader.so.1
need libclang-dev libclang
need pkg-config pkg-config --version
need valgrind valgrind --version
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || version=3.11
need "python$version-venv" python
need "python$version-dev" python_headers
[ "${1:-}" != browser ] || need chromium browser
if [ "${1:-}" = open3d ]; then
    need libegl-dev library 'libEGL.so '
    need libgl1 library libGL.so.1
    need libidn2-0 library libidn2.so.0
    need libopengl0 library libOpenGL.so.0
    need libusb-1.0-0 library libusb-1.0.so.0
    need libx11-6 library libX11.so.6
fi
[ -z "$packages" ] && exit 0

echo "Missing on this machine:$packages"
if ! command -v apt-get >/dev/null; then
    echo "This is no Debian or Ubuntu: install what these packages hold with your package manager." >&2
    exit 1
fi
root=
[ "$(id -u)" = 0 ] || root=sudo
$root apt-get update -qq || true # Without a network the present lists may suffice.
# shellcheck disable=SC2086 # one word for each package
$root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends $packages || failed=yes
if [ -n "${failed:-}" ] || ! python 2>/dev/null; then
    echo "Could not be installed:$packages" >&2
    echo "PYTHON=/path/to/python names another Python from version 3.11 on." >&2
    exit 1
fi
