#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# install-browser.sh PYTHON: what tests/web needs. This is Debian's Chromium, Playwright (PyPI) for PYTHON in plumb's cache, and the
# packages of web/package-lock.json (npm). Prints the folder of Playwright. What cannot be installed is named, and the tests that
# need it are skipped.
set -u
cd "$(dirname "$0")/.."
python=$1
cache=${BUILD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/plumb}
folder=$cache/browser/$("$python" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
mkdir -p "$folder"

root() {
	if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}
failed() {
	echo "plumb: cannot install $1 for the tests of the page" >&2
	exit 1
}
command -v chromium >/dev/null || {
	root env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends chromium fonts-dejavu-core >/dev/null 2>&1 ||
		failed Chromium
}
[ -e "$folder/playwright" ] ||
	"$python" -m pip install -q --disable-pip-version-check --target "$folder" 'playwright>=1.48,<2' >/dev/null 2>&1 || failed Playwright
command -v npm >/dev/null || failed npm
[ web/node_modules/.package-lock.json -nt web/package-lock.json ] ||
	(cd web && npm ci --no-audit --no-fund --ignore-scripts >/dev/null 2>&1 && touch node_modules/.package-lock.json) ||
	failed "the packages of web/package-lock.json"
echo "$folder"
