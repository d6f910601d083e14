# SPDX-License-Identifier: Apache-2.0
"""What holds for every damaged or hostile trace that is JSON."""
import json

from conftest import PLUMB, run_command
from importing import cut_everywhere, write


def check_damaged(text, folder, whole=()):
    """Cut off at every byte it is no trace, but for its last blanks. WHOLE: lengths at which what there is is a file."""
    for length in cut_everywhere(folder, text):
        assert length in whole or not text.encode()[length:].strip(), length


def check_hostile(events, folder):
    """EVENTS, which are right, with each value replaced by what does not belong there: a profile or one line."""
    strange = [None, True, -1, 2**63, -2**63, 1e300, "", "x", "\ud800", [], {}, [[[]]], {"a": {"b": []}}]

    def places(value, path=()):
        if isinstance(value, dict):
            for key, inner in value.items():
                yield from places(inner, (*path, key))
        elif isinstance(value, list):
            for index, inner in enumerate(value):
                yield from places(inner, (*path, index))
        if path:
            yield path
    output = folder / "strange.plumb"
    for number, path in enumerate(places(events)):
        copy = json.loads(json.dumps(events))
        inner = copy
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = strange[number % len(strange)]
        done = run_command(PLUMB, "import", write(folder, copy, "strange"), "-o", output)
        assert done.returncode in (0, 2, 3), (path, done.stderr)
        assert done.stderr.count("\n") == (done.returncode != 0)
        assert output.exists() == (done.returncode == 0)
        output.unlink(missing_ok=True)
