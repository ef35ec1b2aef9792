#!/bin/sh
# Prints the Python command of the environments: the first one from version 3.11 on. python3.11 is preferred, because
# numba-dpex has wheels for that version only.
for python in python3.11 python3 python3.12 python3.13 python3.14; do
    if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        echo "$python"
        exit
    fi
done
echo python3.11
