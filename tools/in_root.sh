#!/bin/sh
# Runs a command in a Debian root as root: in_root.sh <root> <path>... -- <folder> [NAME=VALUE]... <command>...
# The paths are files and folders of this machine that are there, too. The mounts end with the command, and so do its processes.
set -eu
if [ "${1:-}" != --in-namespace ]; then
	exec unshare --mount --pid --fork --kill-child --propagation=private sh "$0" --in-namespace "$@"
fi
root=$2
shift 2
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/dev/shm"
mount -t tmpfs tmpfs "$root/tmp"
while [ "$1" != -- ]; do
	if [ -d "$1" ]; then mkdir -p "$root$1"; else mkdir -p "$(dirname "$root$1")"; touch "$root$1"; fi
	mount --rbind "$1" "$root$1"
	shift
done
shift
folder=$1
shift
# Not `exec`: the shell is the first process there, and collects those whose parents have ended.
chroot "$root" /usr/bin/env -i -C "$folder" PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 "$@"
