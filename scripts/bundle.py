#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bundle.py [APP.JS APP.CSS]: writes the C source that holds the page of `plumb view`; without files, one that holds
none. The script and the style are put into an HTML page, so neither may hold the text that ends it there."""
import pathlib
import re
import sys

HEAD = """/* SPDX-License-Identifier: Apache-2.0 */
/* Made by scripts/bundle.py. */
#include "serve/page.h"

"""


def array(name, data):
    rows = (data[i:i + 24] for i in range(0, len(data), 24))
    body = "".join("\t" + ",".join(map(str, row)) + ",\n" for row in rows)
    return f"static const unsigned char {name}[] = {{\n{body}\t0,\n}};\n"


def main(paths):
    parts = {}
    for path in map(pathlib.Path, paths):
        data = path.read_bytes().replace(b"\r\n", b"\n")
        if re.search(rb"</?(script|style)|<!--", data, re.I):
            sys.exit(f"plumb: {path} has a tag that ends it inside a page; escape it")
        parts[path.suffix] = data
    if set(parts) not in (set(), {".js", ".css"}):
        sys.exit("plumb: the page needs app.js and app.css; run \"make web\" again")
    print(HEAD, end="")
    if not parts:
        print("const struct plumb_bundle plumb_bundle;")
        return
    print(array("script", parts[".js"]) + array("style", parts[".css"]))
    print("const struct plumb_bundle plumb_bundle = {\n"
          "\t(const char *)script, (const char *)style, sizeof script - 1, sizeof style - 1,\n};")


if __name__ == "__main__":
    main(sys.argv[1:])
