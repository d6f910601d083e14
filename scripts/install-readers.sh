#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# install-readers.sh [collector]: installs readers of exports into plumb's cache, for tests/e2e/test_export*.py.
# These are Perfetto's, pprof's and OpenTelemetry's own definitions as Python modules (PyPI), speedscope's schema (npm)
# with a validator, and pprof (Go). With `collector`: also OpenTelemetry's Collector (Go), which takes minutes to build.
# A reader that cannot be installed is left out, with one line that says why. Prints the folder.
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
	echo "plumb: cannot install the $what: $(tail -n 1 "$readers/log")" >&2
}
python() {
	python3 -m venv "$readers/venv" &&
		"$readers/venv/bin/pip" install -q --disable-pip-version-check perfetto protobuf jsonschema &&
		touch "$readers/venv/complete"
}
otlp() {
	"$readers/venv/bin/pip" install -q --disable-pip-version-check opentelemetry-proto &&
		touch "$readers/venv/otlp"
}
speedscope() {
	(cd "$readers" && npm pack --silent speedscope && tar xzf speedscope-*.tgz &&
		mv package/dist/release/file-format-schema.json speedscope.json && rm -rf package)
}
pprof() {
	GOBIN=$readers go install github.com/google/pprof@latest
}
# Not the newest: not all modules of a release are in the registry from its first day.
collector() {
	version=v0.158.0 build=$readers/collector
	mkdir -p "$build" && GOBIN=$build go install "go.opentelemetry.io/collector/cmd/builder@$version" &&
		cat >"$build/manifest.yaml" <<-END &&
			dist: {name: otelcol, output_path: $build/out}
			receivers: [{gomod: go.opentelemetry.io/collector/receiver/otlpreceiver $version}]
			exporters: [{gomod: github.com/open-telemetry/opentelemetry-collector-contrib/exporter/fileexporter $version}]
		END
		"$build/builder" --config "$build/manifest.yaml" && mv "$build/out/otelcol" "$readers/otelcol" &&
		rm -rf "$build"
}
try "Perfetto package" "$readers/venv/complete" python
try "OpenTelemetry package" "$readers/venv/otlp" otlp
try "speedscope package" "$readers/speedscope.json" speedscope
try "pprof program" "$readers/pprof" pprof
[ "${1-}" != collector ] || try "OpenTelemetry Collector" "$readers/otelcol" collector
echo "$readers"
