#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bench.sh [OPTIONS of bench/overhead.py]: prints what plumb costs (bench/overhead.py), and the two costs that
# this is made of (bench/micro.py). Needs a Python with PyTorch. Without a GPU the workload is `tiny`.
set -eu
cd "$(dirname "$0")/.."
python=$(scripts/find-python torch)
plumb=$(realpath "${BUILD:-build}/plumb")
"$python" bench/micro.py --plumb "$plumb"
if [ $# = 0 ] && ! "$python" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())'; then
	set -- --workload tiny --mode none --mode plumb --mode torch
fi
exec "$python" bench/overhead.py --plumb "$plumb" "$@"
