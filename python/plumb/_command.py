# SPDX-License-Identifier: Apache-2.0
"""The `plumb` command: runs the binary that belongs to this package."""
import os
import sys

# From this folder: what a wheel carries, what `make install` puts there, and a checkout's build.
PLACES = ("_bin/plumb", "../../plumb", "../../build/plumb")


def binary():
    """The path of the package's own plumb program. If it is missing: the path that it has in a wheel."""
    named = os.environ.get("PLUMB_BINARY")
    if named:
        return named
    folder = os.path.dirname(os.path.realpath(__file__))
    paths = [os.path.normpath(os.path.join(folder, place)) for place in PLACES]
    for path in paths:
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return paths[0]


def main():
    path = binary()
    try:
        os.execv(path, ["plumb"] + sys.argv[1:])
    except OSError as error:
        sys.exit(f"plumb: cannot run {path}: {error.strerror}; install plumb-profiler again (in a checkout: run "
                 "make)")
