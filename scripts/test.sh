#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test.sh [PYTEST ARGUMENTS]: runs every test in one pytest run. Builds are in $BUILD.
set -eu
cd "$(dirname "$0")/.."
BUILD=$(realpath "${BUILD:-build}")
export BUILD
python=$(scripts/find-python torch pytest)
# With pytest-xdist, files of tests run in parallel, two more than there are processors, because many tests wait. Tests
# that measure how processors are shared run alone. tests/conftest.py has the order of the files, which pytest-xdist would
# change from 3.7 on.
if [ $# = 0 ] && xdist=$("$python" -c 'import xdist; print(xdist.__version__)' 2>/dev/null); then
	processors=$(nproc)
	set -- -n "$((processors < 4 ? processors + 2 : 6))" --dist loadfile
	case $xdist in
	[0-2].* | 3.[0-6] | 3.[0-6].*) ;;
	*) set -- "$@" --no-loadscope-reorder ;;
	esac
fi
exec "$python" -m pytest -p no:cacheprovider "$@"
