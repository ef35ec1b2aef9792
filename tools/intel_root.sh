#!/bin/sh
# Makes a Debian sid root with Intel's own Level Zero driver and loader in the folder $1, for `make test-intel`.
#
# Debian 12 has neither a driver for the xe kernel interface nor the kernel header of that interface. The mirror is the one
# that apt uses on this machine.
set -eu
root=$1
command -v debootstrap >/dev/null || { apt-get update -q && apt-get install -y -q --no-install-recommends debootstrap; }
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | grep '/debian/\?$' | head -n 1)
[ -n "$mirror" ] || { echo "apt has no Debian mirror configured" >&2; exit 1; }

rm -rf "$root"
mkdir -p "$root"
debootstrap --variant=minbase sid "$root" "$mirror"
cp /etc/resolv.conf /etc/hosts "$root/etc/"
# Copies the machine's certificates: a mirror or a package index may be behind a proxy that needs them.
trust_as_here() {
	mkdir -p "$root/etc/ssl/certs"
	cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
}
trust_as_here
# A mirror may be a snapshot, whose signatures are valid and whose lists have expired.
printf 'APT::Install-Recommends "false";\nAcquire::Check-Valid-Until "false";\n' > "$root/etc/apt/apt.conf.d/90zeusm"
printf 'path-exclude /usr/share/doc/*\npath-exclude /usr/share/man/*\npath-exclude /usr/share/locale/*\n' \
	> "$root/etc/dpkg/dpkg.cfg.d/90zeusm"
export DEBIAN_FRONTEND=noninteractive
chroot "$root" apt-get update -q
# The driver and the loader; the driver's compiler, without which it aborts at its initialisation; the header drm/xe_drm.h;
# Python for zeusm's tests, and a C compiler for the tests of the C API.
chroot "$root" apt-get install -y -q libze1 libze-intel-gpu1 libigc2 libigdfcl2 linux-libc-dev python3-venv python3-dev g++
chroot "$root" apt-get clean
trust_as_here # The package ca-certificates has replaced the certificates.
rm -rf "$root"/var/lib/apt/lists/*
touch "$root/.complete"
