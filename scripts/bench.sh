#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bench.sh [OPTIONS]: runs bench/bench.py with a Python that has PyTorch.
set -eu
cd "$(dirname "$0")/.."
exec "$(scripts/find-python torch)" bench/bench.py --plumb "$BUILD/plumb" "$@"
