#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# vsix.sh [--packages]: makes dist/plumb-VERSION.vsix of vscode/, with the page of web/dist (make web), and prints its path. With --packages,
# it only installs the packages of vscode/package-lock.json.
set -eu
cd "$(dirname "$0")/.."
mkdir -p dist
exec 9>dist/vsix.lock # tests come at once
flock 9
[ vscode/node_modules/.package-lock.json -nt vscode/package-lock.json ] ||
	(cd vscode && npm ci --no-audit --no-fund --ignore-scripts >/dev/null && touch node_modules/.package-lock.json)
[ "${1-}" != --packages ] || exit 0
web=${WEB:-web/dist}
version=$(cat VERSION)
[ -e "$web/app.js" ] && [ -e "$web/app.css" ] || {
	echo "plumb: $web has no page; run make web" >&2
	exit 1
}
rm -rf vscode/dist vscode/media
mkdir -p vscode/media
cp "$web/app.js" "$web/app.css" vscode/media/
cp LICENSE vscode/LICENSE
out=$(pwd)/dist/plumb-$version.vsix
cd vscode
npm run -s build
# The version is that of plumb, whatever package.json says; nothing is changed there.
node_modules/.bin/vsce package "$version" --no-dependencies --no-git-tag-version --no-update-package-json \
	--allow-missing-repository --out "$out.new" >/dev/null
mv "$out.new" "$out" # a reader sees the old or the new one
echo "$out"
