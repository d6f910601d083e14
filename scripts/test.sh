#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test.sh [PYTEST ARGUMENTS]: every test in one pytest run; what is built is in $BUILD.
set -eu
cd "$(dirname "$0")/.."
BUILD=$(realpath "${BUILD:-build}")
export BUILD
python=$(scripts/find-python torch pytest)
# Files of tests run side by side, where pytest-xdist is there; those that measure how processors are
# shared have them for themselves (tests/conftest.py).
if [ $# = 0 ] && "$python" -c 'import xdist' 2>/dev/null; then
	processors=$(nproc)
	set -- -n "$((processors < 4 ? processors : 4))" --dist loadfile
fi
exec "$python" -m pytest -p no:cacheprovider "$@"
