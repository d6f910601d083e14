#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# wheel.sh: builds dist/plumb_profiler-*.whl and checks it (scripts/check_wheel.py).
set -eu
cd "$(dirname "$0")/.."
rm -rf dist
mkdir dist
BUILD=$(realpath -m "$BUILD")
export BUILD
name=$(PYTHONPATH=python python3 -c 'import backend; print(backend.build_wheel("dist"))')
scripts/check_wheel.py "dist/$name"
echo "dist/$name"
