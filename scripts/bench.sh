#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bench.sh [OPTIONS of bench/overhead.py]: the table of what being watched costs, and the two costs that
# make it up, with a Python that has PyTorch. Without a GPU the workload is `tiny`.
set -eu
cd "$(dirname "$0")/.."
python=$(scripts/find-python torch)
plumb=$(realpath "${BUILD:-build}/plumb")
"$python" bench/micro.py --plumb "$plumb"
if [ $# = 0 ] && ! "$python" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())'; then
	set -- --workload tiny --mode none --mode plumb --mode torch
fi
exec "$python" bench/overhead.py --plumb "$plumb" "$@"
