#!/bin/sh
# Creates a Debian sid root with Intel's Level Zero driver and loader in the folder $1, for `make test-intel`.
#
# Debian 12 has neither a driver with support for the xe kernel interface nor its kernel header. The script uses the mirror
# that apt is configured for on this machine.
set -eu
root=$1
command -v debootstrap >/dev/null || { apt-get update -q && apt-get install -y -q --no-install-recommends debootstrap; }
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | grep '/debian/\?$' | head -n 1)
[ -n "$mirror" ] || { echo "apt has no Debian mirror configured" >&2; exit 1; }

rm -rf "$root"
mkdir -p "$root"
debootstrap --variant=minbase sid "$root" "$mirror"
cp /etc/resolv.conf /etc/hosts "$root/etc/"
# The certificates of this machine, because a mirror or package index may be behind a proxy with a private certificate
# authority.
trust_as_here() {
	mkdir -p "$root/etc/ssl/certs"
	cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
}
trust_as_here
# The mirror may be a snapshot, whose package lists have valid signatures but are past their expiry date.
printf 'APT::Install-Recommends "false";\nAcquire::Check-Valid-Until "false";\n' > "$root/etc/apt/apt.conf.d/90zeusm"
printf 'path-exclude /usr/share/doc/*\npath-exclude /usr/share/man/*\npath-exclude /usr/share/locale/*\n' \
	> "$root/etc/dpkg/dpkg.cfg.d/90zeusm"
export DEBIAN_FRONTEND=noninteractive
chroot "$root" apt-get update -q
# The driver and the loader; the driver's compiler, without which it aborts during initialisation; the header
# drm/xe_drm.h; Python for zeusm's tests; a C compiler and Level Zero's headers for tests with C programs.
chroot "$root" apt-get install -y -q libze1 libze-intel-gpu1 libigc2 libigdfcl2 libze-dev linux-libc-dev python3-venv \
	python3-dev g++
chroot "$root" apt-get clean
trust_as_here # The package ca-certificates has replaced the certificates.
rm -rf "$root"/var/lib/apt/lists/*
touch "$root/.complete"
