#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bootstrap.sh [--check] build|demo|test|fuzz|wheel
#
# Makes sure that this machine has everything that the stage needs. On Debian and Ubuntu, as root or with a
# sudo that asks for no password, it installs what is missing. In all other cases, and with --check, it
# names what is missing and fails. It is quick if nothing is missing.
set -eu
cd "$(dirname "$0")/.."

check=
if [ "${1-}" = --check ]; then
	check=1
	shift
fi
stage=${1-}
case $stage in
build | demo | test | fuzz | wheel) ;;
*)
	echo "usage: bootstrap.sh [--check] build|demo|test|fuzz|wheel" >&2
	exit 1
	;;
esac

cc=${CC:-gcc}
cache=${BUILD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/plumb}
flags=    # for the compiler
missing=  # what it is, for people
packages= # what Debian calls it
want() {
	missing="$missing${missing:+, }$1"
	packages="$packages $2"
}
has() { command -v "$1" >/dev/null 2>&1; }

any() { [ -e "$1" ]; } # any PATTERN: does a file match?

# The missing headers among "header:package" pairs, found by one run of the preprocessor with $flags.
want_headers() {
	if has "$cc"; then
		found=$(for pair in "$@"; do
			printf '#if __has_include(<%s>)\nfound %s\n#endif\n' "${pair%%:*}" "$pair"
		done | "$cc" $flags -E -P - 2>/dev/null || true)
	else
		found=
	fi
	for pair in "$@"; do
		case $found in
		*"found $pair"*) ;;
		*) want "${pair%%:*}" "${pair#*:}" ;;
		esac
	done
}

# The missing libraries among "name:header:package". Their names are pkg-config's, which says where their headers are.
# The build does without pkg-config if they lie where the compiler looks (Makefile).
want_libraries() {
	pairs=
	for library in "$@"; do
		if [ "$pkg_config" ] && ! "$pkg_config" --exists "${library%%:*}"; then
			want "${library%%:*}" "${library##*:}"
		else
			[ -z "$pkg_config" ] || flags="$flags $("$pkg_config" --cflags "${library%%:*}")"
			pairs="$pairs ${library#*:}"
		fi
	done
	# shellcheck disable=SC2086 # a list of words
	want_headers $pairs
}

# Clang without what its sanitizers and libFuzzer link in is a package of its own.
want_libfuzzer() {
	clang=$(command -v clang || ls /usr/bin/clang-[12][0-9] 2>/dev/null | head -n 1)
	if [ -z "$clang" ]; then
		want clang clang
		major=$(apt-cache show clang 2>/dev/null | sed -n 's/^Depends:.*clang-\([0-9]*\).*/\1/p' | head -n 1)
	elif echo 'int LLVMFuzzerTestOneInput(const char *at, long bytes) { return !at && bytes; }' |
		"$clang" -w -fsanitize=fuzzer,address,undefined -x c -o /dev/null - 2>/dev/null; then
		return 0
	else
		major=$("$clang" -dumpversion | cut -d. -f1)
	fi
	want "libFuzzer" "libclang-rt-$major-dev"
}

look() {
	missing=""
	packages=""
	# make is here: it called us. ca-certificates: downloads from PyPI.
	has "$cc" || want "the C compiler $cc" gcc
	want_headers stdio.h:libc6-dev
	pkg_config=$(command -v "${PKG_CONFIG:-pkg-config}" || true)
	[ "$pkg_config" ] || ! can_install || want pkg-config pkg-config
	want_libraries sqlite3:sqlite3.h:libsqlite3-dev libzstd:zstd.h:libzstd-dev zlib:zlib.h:zlib1g-dev \
		libelf:libelf.h:libelf-dev libdw:elfutils/libdw.h:libdw-dev liblzma:lzma.h:liblzma-dev
	# Without libevent plumb builds, but its plumb view serves no pages.
	case $stage in
	test | wheel) want_libraries libevent_extra:event2/http.h:libevent-dev ;;
	*) ! can_install || want_libraries libevent_extra:event2/http.h:libevent-dev ;;
	esac
	# From 0.186 on, libdw reads the inlined calls of GPU code.
	if [ "$pkg_config" ] && "$pkg_config" --exists libdw && ! "$pkg_config" --atleast-version=0.186 libdw; then
		want "libdw 0.186 or later (this is $("$pkg_config" --modversion libdw))" libdw-dev
	fi
	if has "$cc"; then
		case $("$cc" -print-file-name=libstdc++.a 2>/dev/null) in
		/*) ;;
		*) want "libstdc++.a" g++ ;;
		esac
	else
		want "libstdc++.a" g++
	fi
	has python3 || want python3 python3
	if ! [ -e "$cache/cuda/13.0/include/cupti.h" ] || [ "$stage" = wheel ] || [ "$stage" = test ]; then
		python3 -c 'import pip' 2>/dev/null || want "Python's pip" "python3-pip ca-certificates"
	fi
	case $stage in
	fuzz) want_libfuzzer ;;
	demo) scripts/find-python torch >/dev/null 2>&1 || want "PyTorch" python3-torch ;;
	test)
		want_headers cmocka.h:libcmocka-dev divsufsort.h:libdivsufsort-dev
		scripts/find-python torch pytest >/dev/null 2>&1 ||
			want "a Python with PyTorch and pytest" "python3-torch python3-pytest python3-pytest-xdist"
		case $(scripts/find-python torch pytest 2>/dev/null) in
		/usr/bin/*) /usr/bin/python3 -c 'import xdist' 2>/dev/null || want pytest-xdist python3-pytest-xdist ;;
		esac
		/usr/bin/python3 -c 'import pandas, IPython' 2>/dev/null || want "pandas and IPython" "python3-pandas python3-ipython"
		/usr/bin/python3 -c 'import venv, ensurepip' 2>/dev/null || want "Python's venv" python3-venv
		any /usr/include/python3*/Python.h || want Python.h python3-dev
		has clang || any /usr/bin/clang-[12][0-9] || want clang clang
		has git || want git git
		has ccache || want ccache ccache # the sanitizers' and Clang's builds take minutes without it
		has sqlite3 || want "SQLite's shell" sqlite3
		has npm || want npm "nodejs npm"
		;;
	wheel) ! can_install || has npm || want npm "nodejs npm" ;; # without it, the wheel has no page
	esac
	# The wheel's binary has libdw, and what that needs, linked in; a test makes a wheel, and who has seen the demo may
	# want `pip install .`.
	case $stage in demo | test | wheel) want_headers bzlib.h:libbz2-dev zlib.h:zlib1g-dev ;; esac
}

can_install() {
	[ -z "$check" ] && has apt-get || return 1
	if [ "$(id -u)" = 0 ]; then
		sudo=
	elif has sudo && sudo -n true 2>/dev/null; then
		sudo="sudo -n"
	else
		return 1
	fi
}

look
[ -z "$missing" ] && exit 0
if ! can_install; then
	target="make $stage"
	echo "plumb: '${target% build}' needs what is not installed: $missing" >&2
	if has apt-get; then
		echo "plumb: install it: apt-get install$packages" >&2
	else
		echo "plumb: install it with your system's package manager (for a library, Fedora: dnf install 'pkgconfig(NAME)')," \
			"and try again" >&2
	fi
	exit 1
fi

apt() { $sudo env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 "$@" >&2; }

# PyTorch from PyPI where the system has none to install (Ubuntu).
replace_torch() {
	case $packages in *python3-torch*) ;; *) return ;; esac
	[ -n "$(apt-cache madison python3-torch 2>/dev/null)" ] && return
	packages="$(echo "$packages" | sed 's/python3-torch//') python3-venv"
	torch=pypi
}

torch=
if [ -z "$(find /var/lib/apt/lists -name '*Packages*' 2>/dev/null | head -n 1)" ]; then
	apt update
	look # names of packages may have been unknown
fi
replace_torch
echo "plumb: installing$packages" >&2
# shellcheck disable=SC2086 # a list of words
if ! apt install -y --no-install-recommends $packages >/dev/null 2>&1; then
	apt update
	apt install -y --no-install-recommends $packages
fi
[ -z "$torch" ] || scripts/install-torch.sh >/dev/null
look
if [ -n "$missing" ]; then
	echo "plumb: still missing after the installation: $missing" >&2
	exit 1
fi
