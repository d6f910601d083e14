#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# install-editor.sh code-server|theia: an editor that runs in a browser, for tests/web/test_editors.py, in plumb's cache. Its packages come from
# npm and run no scripts, some of which download programs; native modules are built here. It takes a minute or two. Prints its folder.
set -u
editor=${1-}
case $editor in
code-server) version=4.100.3 ;;
theia) version=1.74.1 ;;
*)
	echo "usage: install-editor.sh code-server|theia" >&2
	exit 1
	;;
esac
folder=${BUILD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/plumb}/$editor/$version
log=$folder/install.log
mkdir -p "$folder"
exec 9>"$folder/lock" # workers of pytest come at once
flock 9

root() {
	if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}
# with FILE PACKAGE...: installs Debian's packages unless there is FILE or such a command.
with() {
	[ -e "$1" ] || command -v "$1" >/dev/null && return
	shift
	root env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$@"
}
# A registry that does not answer once is asked again.
packages() {
	for _ in 1 2 3; do
		npm install --ignore-scripts --no-audit --no-fund "$@" && return
	done
	return 1
}
code_server() {
	with rg ripgrep && with /usr/include/gssapi.h libkrb5-dev && with /usr/include/X11/Xlib.h libx11-dev &&
		with /usr/include/X11/extensions/XKBfile.h libxkbfile-dev &&
		packages "code-server@$version" &&
		npm rebuild argon2 --build-from-source &&
		cd node_modules/code-server/lib/vscode &&
		packages --omit=dev &&
		npm_config_yes=true npm rebuild node-pty @vscode/spdlog kerberos native-watchdog &&
		mkdir -p node_modules/@vscode/ripgrep/bin &&
		ln -sf "$(command -v rg)" node_modules/@vscode/ripgrep/bin/rg &&
		ln -sfn node_modules node_modules.asar
}
# The smallest Theia that has files, editors and extensions. It is bundled, and then needs no packages.
theia() {
	{
		echo '{"private": true, "name": "plumb-theia", "theia": {"target": "browser"}, "devDependencies": {"@theia/cli": "'"$version"'"}, "dependencies": {'
		for part in core editor filesystem markers messages monaco navigator plugin-ext preferences process workspace; do
			echo "	\"@theia/$part\": \"$version\","
		done
		echo "	\"@theia/plugin-ext-vscode\": \"$version\"}}"
	} >package.json &&
		with /usr/include/libsecret-1/libsecret/secret.h libsecret-1-dev &&
		packages &&
		npm rebuild drivelist keytar &&
		node_modules/.bin/theia build --mode production &&
		rm -rf node_modules
}
[ -e "$folder/installed" ] || {
	# The headers of this Node.js, if they are there; else node-gyp downloads them.
	prefix=$(dirname "$(dirname "$(command -v node)")")
	[ ! -e "$prefix/include/node/node.h" ] || export npm_config_nodedir="$prefix"
	case $editor in code-server) install=code_server ;; *) install=theia ;; esac
	(with g++ g++ && with npm nodejs npm && cd "$folder" && $install) >"$log" 2>&1 || {
		echo "plumb: cannot install $editor; $log says why: $(grep -v '^$' "$log" | tail -n 1)" >&2
		exit 1
	}
	touch "$folder/installed"
}
echo "$folder"
