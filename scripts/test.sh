#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test.sh [PYTEST ARGUMENTS]: every test in one pytest run; what is built is in $BUILD.
set -eu
cd "$(dirname "$0")/.."
BUILD=$(realpath "${BUILD:-build}")
export BUILD
exec "$(scripts/find-python torch pytest)" -m pytest -p no:cacheprovider "$@"
