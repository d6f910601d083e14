#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# demo.sh: profiles examples/train.py with the PyTorch that is here, and reports where its time went.
set -eu
cd "$(dirname "$0")/.."
python=$(scripts/find-python torch)
profile=$BUILD/demo.plumb
"$BUILD/plumb" run -o "$profile" -- "$python" examples/train.py
for by in operator line; do
	printf '\n$ plumb report %s --by %s --top 10\n' "$profile" "$by"
	"$BUILD/plumb" report "$profile" --by "$by" --top 10
done
