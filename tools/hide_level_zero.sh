#!/bin/sh
# hide_level_zero.sh <scratch folder> <command>...
# Runs the command with the Level Zero loaders hidden: an overlay is mounted over each folder that contains one, and the
# loader is removed from it. Needs a new mount namespace (unshare --map-root-user --mount).
set -eu
scratch=$1
shift
count=0
for folder in $(PATH=/usr/sbin:/sbin:/usr/bin:/bin ldconfig -p | sed -n 's|.*libze_.* => \(/.*\)/libze_[^/]*$|\1|p' | sort -u); do
    folder=$(readlink -f "$folder")
    ls "$folder"/libze_* >/dev/null 2>&1 || continue # Another path of a folder that is done.
    count=$((count + 1))
    mkdir -p "$scratch/up$count" "$scratch/work$count"
    mount -t overlay overlay \
        -o "lowerdir=$folder,upperdir=$scratch/up$count,workdir=$scratch/work$count" "$folder"
    rm -f "$folder"/libze_*
done
exec "$@"
