#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# install-torch.sh: installs PyPI's newest PyTorch into plumb's cache, unless it is there already. Prints its Python.
# It takes 6 GB. Fails with one line if the disk has no room for it.
set -eu
cache=${BUILD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/plumb}
venv=$cache/venv-torch
if ! "$venv/bin/python" -c 'import numpy, torch' 2>/dev/null; then
	mkdir -p "$cache"
	if [ "$(df -Pk "$cache" | awk 'NR == 2 { print $4 }')" -lt 14000000 ]; then
		echo "plumb: PyPI's PyTorch needs 14 GB of free space in $cache; free some, or set BUILD_CACHE to another folder" >&2
		exit 1
	fi
	echo "plumb: installing PyPI's newest PyTorch into $venv (6 GB)" >&2
	rm -rf "$venv"
	/usr/bin/python3 -m venv "$venv" >&2
	"$venv/bin/pip" install -q --disable-pip-version-check torch numpy pytest pytest-xdist >&2
fi
echo "$venv/bin/python"
