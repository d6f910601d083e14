#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# patches.sh: compiles src/collect/gpu/sanitizer/patch.cu into patches.fatbin beside it, which libplumb.so has in it.
# The result is committed, so that building plumb needs no nvcc. Run this after a change of patch.cu or counting.h.
# Needs nvcc 13 ($PLUMB_NVCC, or in PATH or $CUDA_HOME). tests/e2e/test_patches.py says if it was forgotten.
set -euo pipefail
cd "$(dirname "$0")/../src/collect/gpu/sanitizer"
out=${1:-patches.fatbin}
nvcc=${PLUMB_NVCC:-$(command -v nvcc || echo "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc")}
if ! [ -x "$nvcc" ]; then
	echo "patches.sh: nvcc was not found; install it (PyPI: nvidia-cuda-nvcc) or say in PLUMB_NVCC where it is" >&2
	exit 1
fi
# One machine code serves all GPUs of its generation: 8.0 also 8.6 and 8.9, 10.0 also 10.3, 12.0 also 12.1.
generations=()
for number in 75 80 90 100 120; do
	generations+=(-gencode "arch=compute_$number,code=sm_$number")
done
"$nvcc" --fatbin --compile-as-tools-patch -Xfatbin -compress-all "${generations[@]}" -o "$out" patch.cu
if [ "$out" = patches.fatbin ]; then
	sha256sum counting.h patch.cu patches.fatbin >patches.sha256
fi
