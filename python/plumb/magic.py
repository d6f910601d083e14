# SPDX-License-Identifier: Apache-2.0
"""For Jupyter and IPython: `%load_ext plumb`, then `%%plumb` at the top of a cell, or `%plumb STATEMENT`."""
from __future__ import annotations

import shlex
from typing import Any

from .session import profile

USAGE = "%%plumb [-o FILE] [--OPTION[=VALUE] ...]   with the options of plumb run, such as --mode=full or --shapes"


def _options(words: list[str]) -> tuple[str | None, dict[str, Any]]:
    """The file of -o, and the other options as plumb.profile() takes them."""
    path, options, rest = None, {}, iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if name in ("-o", "--output"):
            path = value if equals else next(rest, None)
            if path is None:
                raise ValueError(f"{name} needs a file\n{USAGE}")
        elif name.startswith("--") and len(name) > 2:
            options[name[2:].replace("-", "_")] = value if equals else True
        else:
            raise ValueError(f"{word!r} is not an option\n{USAGE}")
    if options.pop("no_gpu", False):
        options["gpu"] = False
    return path, options


def plumb(line: str, cell: str | None = None) -> None:
    """Records a cell or one statement, and prints the summary. Afterwards `_plumb` is the recording.

        %%plumb -o step.plumb --shapes
        train_step()
    """
    from IPython import get_ipython
    shell = get_ipython()
    try:
        path, options = _options(shlex.split(line) if cell is not None else [])
    except ValueError as error:
        print(f"plumb: {error}")
        return
    with profile(path, **options) as recording:
        shell.run_cell(line if cell is None else cell)
    shell.user_ns["_plumb"] = recording


def load_ipython_extension(shell: Any) -> None:
    """What `%load_ext plumb` calls."""
    shell.register_magic_function(plumb, "line_cell", "plumb")
