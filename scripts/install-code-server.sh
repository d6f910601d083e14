#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# install-code-server.sh: VS Code in a browser, for tests/web/test_code_server.py, in plumb's cache. It takes minutes and 300 MB, so only full
# runs use it. Prints its folder.
set -u
folder=${BUILD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/plumb}/code-server/4.100.3
log=$folder/install.log
mkdir -p "$folder"

root() {
	if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}
install() {
	# Its native modules are built here; its packages run no scripts, some of which download programs.
	root env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends ripgrep libkrb5-dev libsecret-1-dev \
		libx11-dev libxkbfile-dev &&
		cd "$folder" &&
		npm install --ignore-scripts --no-audit --no-fund code-server@4.100.3 &&
		npm rebuild argon2 --build-from-source &&
		cd node_modules/code-server/lib/vscode &&
		npm install --omit=dev --ignore-scripts --no-audit --no-fund &&
		npm_config_yes=true npm rebuild node-pty @vscode/spdlog kerberos native-watchdog &&
		mkdir -p node_modules/@vscode/ripgrep/bin &&
		ln -sf "$(command -v rg)" node_modules/@vscode/ripgrep/bin/rg &&
		ln -sfn node_modules node_modules.asar
}
[ -e "$folder/installed" ] || {
	(install) >"$log" 2>&1 || {
		echo "plumb: cannot install code-server; $log says why" >&2
		exit 1
	}
	touch "$folder/installed"
}
echo "$folder"
