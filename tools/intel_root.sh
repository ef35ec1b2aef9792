#!/bin/sh
# Creates a Debian sid root with Intel's Level Zero driver and loader in the folder $1, for `make test-intel`.
#
# Debian 12 has neither a driver with support for the xe kernel interface nor its kernel header.
set -eu
# The driver and the loader; the driver's compiler, without which it aborts during initialisation; the header
# drm/xe_drm.h; Python for zeusm's tests; a C compiler and Level Zero's headers for tests with C programs.
exec sh "$(dirname "$0")/debian_root.sh" "$1" sid libze1 libze-intel-gpu1 libigc2 libigdfcl2 libze-dev linux-libc-dev \
	python3-venv python3-dev g++
