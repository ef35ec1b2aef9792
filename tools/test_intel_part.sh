#!/bin/sh
# A part of `make test-intel` for CI: test_intel_part.sh ROOT MACHINE PART...
#
# It says why and succeeds on a machine that cannot run the simulated GPU, and for another version of Intel's driver than the
# tests are known to pass with: Debian sid changes without a change here.
set -u
root=$1 machine=$2
shift 2
known=26.27

skip() {
	echo "test-intel-part skipped: $*"
	exit 0
}

[ "$(id -u)" = 0 ] || skip "it needs root"
unshare --mount true 2>/dev/null || skip "this process may not mount"
[ -e "$root/.complete" ] || sh tools/intel_root.sh "$root" || skip "there is no Debian sid in $root"
version=$(dpkg-query --root="$root" -W -f '${Version}' libze-intel-gpu1)
case $version in
"$known".*) ;;
*) skip "Debian sid has Intel's driver $version; \`make test-intel\` runs all tests with it" ;;
esac
make xe-sim || exit 1
xe_sim=${CARGO_TARGET_DIR:-target}/debug/xe-sim
why=$("$xe_sim" "$root" "$machine" -- true 2>&1) || skip "the simulated GPU does not start here: $why"
exec make test-intel INTEL_MACHINES="$machine" INTEL_ONLY="$*"
