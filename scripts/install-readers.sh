#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# install-readers.sh: what other people read exports with, into plumb's cache, for tests/e2e/test_export.py:
# Perfetto's and pprof's own definitions as Python modules (PyPI), speedscope's schema (npm) and a
# validator for it, and pprof (Go). What cannot be had here is left out, with a line; prints the folder.
set -u
cache=${BUILD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/plumb}
readers=$cache/readers
mkdir -p "$readers"

# try WHAT FILE COMMAND...: runs COMMAND unless FILE is there.
try() {
	what=$1 file=$2
	shift 2
	[ -e "$file" ] && return
	"$@" >"$readers/log" 2>&1 && [ -e "$file" ] && return
	echo "plumb: no $what here: $(tail -n 1 "$readers/log")" >&2
}
python() {
	python3 -m venv "$readers/venv" &&
		"$readers/venv/bin/pip" install -q --disable-pip-version-check perfetto protobuf jsonschema &&
		touch "$readers/venv/complete"
}
speedscope() {
	(cd "$readers" && npm pack --silent speedscope && tar xzf speedscope-*.tgz &&
		mv package/dist/release/file-format-schema.json speedscope.json && rm -rf package)
}
pprof() {
	GOBIN=$readers go install github.com/google/pprof@latest
}
try "Perfetto package" "$readers/venv/complete" python
try "speedscope package" "$readers/speedscope.json" speedscope
try "pprof" "$readers/pprof" pprof
echo "$readers"
