#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# demo.sh: profiles examples/train.py with the installed PyTorch, and reports where its time went.
set -eu
cd "$(dirname "$0")/.."
python=$(scripts/find-python torch)
profile=$BUILD/demo.plumb
show() {
	printf '\n$ %s\n' "$*"
	"$@"
}
show "$BUILD/plumb" run -o "$profile" -- "$python" examples/train.py
show "$BUILD/plumb" report "$profile" --by context --top 25
