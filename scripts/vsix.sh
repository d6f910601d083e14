#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# vsix.sh: makes dist/plumb-VERSION.vsix of vscode/, with the page of web/dist (make web).
set -eu
cd "$(dirname "$0")/.."
web=${WEB:-web/dist}
version=$(cat VERSION)
[ -e "$web/app.js" ] && [ -e "$web/app.css" ] || {
	echo "plumb: $web has no page; run make web" >&2
	exit 1
}
[ vscode/node_modules/.package-lock.json -nt vscode/package-lock.json ] ||
	(cd vscode && npm ci --no-audit --no-fund --ignore-scripts >/dev/null && touch node_modules/.package-lock.json)
rm -rf vscode/dist vscode/media
mkdir -p vscode/media dist
cp "$web/app.js" "$web/app.css" vscode/media/
cp LICENSE vscode/LICENSE
out=$(pwd)/dist/plumb-$version.vsix
cd vscode
npm run -s build
# The version is that of plumb, whatever package.json says; nothing is changed there.
node_modules/.bin/vsce package "$version" --no-dependencies --no-git-tag-version --no-update-package-json \
	--allow-missing-repository --out "$out" >/dev/null
echo "$out"
