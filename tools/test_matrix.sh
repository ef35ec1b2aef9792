#!/bin/sh
# Runs tests with a wheel on one Python: test_matrix.sh <python> <work folder> <wheel> <tests>...
set -eu
python=$1 work=$2 wheel=$3
shift 3
version=$("$python" -c 'import platform; print(platform.python_version())')
venv=$work/$version
# Without the file, `-nt` is false in dash and true in bash.
if [ ! -e "$venv/.requirements" ] || [ requirements/matrix.txt -nt "$venv/.requirements" ]; then
    "$python" -m venv --clear "$venv"
    "$venv/bin/pip" install -q -r requirements/matrix.txt
    touch "$venv/.requirements"
fi
"$venv/bin/pip" install -q --no-deps --force-reinstall "$wheel"
echo "== Python $version"
"$venv/bin/python" -m pytest -p no:cacheprovider -q "$@"
