#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# install-browser.sh PYTHON: what tests/web needs. This is Debian's Chromium, Playwright (PyPI) for PYTHON in plumb's cache, and the
# packages of web/package-lock.json (npm). Prints the folder of Playwright. If something
# cannot be installed, it says what, and the tests are skipped.
set -u
cd "$(dirname "$0")/.."
python=$1
cache=${BUILD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/plumb}
folder=$cache/browser/$("$python" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
mkdir -p "$folder"
exec 9>"$cache/browser/lock" # workers of pytest come at once
flock 9

root() {
	if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}
failed() {
	echo "plumb: cannot install $1 for the tests of the page" >&2
	exit 1
}
# with COMMAND PACKAGE...: installs the packages unless there is such a command.
with() {
	command -v "$1" >/dev/null && return
	what=$1
	shift
	root env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$@" >/dev/null 2>&1 || failed "$what"
}
with chromium chromium fonts-dejavu-core
with npm nodejs npm
[ -e "$folder/playwright" ] ||
	"$python" -m pip install -q --disable-pip-version-check --target "$folder" 'playwright>=1.48,<2' >/dev/null 2>&1 || failed Playwright
[ web/node_modules/.package-lock.json -nt web/package-lock.json ] ||
	(cd web && npm ci --no-audit --no-fund --ignore-scripts >/dev/null 2>&1 && touch node_modules/.package-lock.json) ||
	failed "the packages of web/package-lock.json"
echo "$folder"
