#!/bin/sh
# Creates a Debian root: debian_root.sh <folder> <suite> <package>... It uses the mirror that apt is configured for on this machine.
set -eu
root=$1 suite=$2
shift 2
command -v debootstrap >/dev/null || { apt-get update -q && apt-get install -y -q --no-install-recommends debootstrap; }
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | grep '/debian/\?$' | head -n 1)
[ -n "$mirror" ] || { echo "apt has no Debian mirror configured" >&2; exit 1; }

rm -rf "$root"
mkdir -p "$root"
debootstrap --variant=minbase "$suite" "$root" "$mirror"
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
chroot "$root" apt-get install -y -q "$@"
chroot "$root" apt-get clean
trust_as_here # The package ca-certificates has replaced the certificates.
rm -rf "$root"/var/lib/apt/lists/*
touch "$root/.complete"
