# SPDX-License-Identifier: Apache-2.0
"""The `plumb` command: becomes the binary that the package carries."""
import os
import sys


def binary():
    """The path of the package's own plumb program."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "_bin", "plumb")


def main():
    path = binary()
    try:
        os.execv(path, ["plumb"] + sys.argv[1:])
    except OSError as error:
        sys.exit(f"plumb: cannot run {path}: {error.strerror}; install plumb-profiler again")
