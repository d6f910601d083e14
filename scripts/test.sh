#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test.sh [PYTEST ARGUMENTS]: runs every test in one pytest run. Builds are in $BUILD.
set -eu
cd "$(dirname "$0")/.."
BUILD=$(realpath "${BUILD:-build}")
export BUILD
python=$(scripts/find-python torch pytest)
# With pytest-xdist, files of tests run in parallel, one more than there are processors, because many tests wait. Tests
# that measure how processors are shared run alone (tests/conftest.py).
if [ $# = 0 ] && "$python" -c 'import xdist' 2>/dev/null; then
	processors=$(nproc)
	set -- -n "$((processors < 4 ? processors + 1 : 5))" --dist loadfile
fi
exec "$python" -m pytest -p no:cacheprovider "$@"
