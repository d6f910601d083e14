# SPDX-License-Identifier: Apache-2.0
"""Helpers for tests of imported tables (CSV and plain text).

    made = imported(tmp_path, text)          # or several files: {"name": text, …}
    made.device(0)["kernels"]                # {"count": 1, "ns": 3407200}
    made.contexts("gpu.time")                # {"gpu_api:cudaLaunchKernel/kernel:add(int*)": (3407200, 1)}
    refused(tmp_path, text)                  # "line 3: …"
    cut_everywhere(tmp_path, text)           # whatever the end: a profile, or one error
"""
import collections
import functools
import json
import re

from conftest import PLUMB, run_command

import plumb as plumb_package


class Made:
    def __init__(self, path):
        self.path = path
        self.profile = plumb_package.Profile(path)

    @functools.cached_property
    def report(self):
        done = run_command(PLUMB, "report", self.path, "--json", "--top", "0")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    @property
    def format(self):
        return self.profile.environment["import.format"]

    def device(self, index=0):
        return self.report["devices"][index]

    def fates(self):
        """{(source, reason, detail): count}, whatever has a reason."""
        found = collections.Counter()
        for row in self.profile.ledger:
            if row.reason:
                found[row.source, row.reason, row.detail] += row.count
        return dict(found)

    def contexts(self, metric):
        """{"kind:name/kind:name": (sum, count)} of the contexts that have METRIC themselves."""
        found = {}
        for node in self.profile.walk():
            value = node.exclusive[metric]
            if value.count:
                above = list(reversed([node] + node.ancestors[:-1]))
                found["/".join(f"{step.kind}:{step.name}" for step in above)] = (value.sum, value.count)
        return found

    def spans(self):
        """[(kind, name, start, length, correlation)] by time."""
        found = []
        for span in self.profile.spans():
            node = self.profile.node(span.context)
            found.append((node.kind, node.name, span.start_ns, span.end_ns - span.start_ns,
                          span.correlation or 0))
        return sorted(found, key=lambda row: row[2:])


def imports(folder, files, name="out.plumb"):
    """The finished `plumb import` of FILES ({name: text or bytes}), and where its profile would be."""
    paths = []
    for file, text in files.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        paths.append(path)
    out = folder / name
    out.unlink(missing_ok=True)
    return run_command(PLUMB, "import", *paths, "-o", out), out


def imported(folder, text):
    done, out = imports(folder, text if isinstance(text, dict) else {"table": text})
    assert done.returncode == 0 and not done.stderr, done.stderr
    return Made(out)


def refused(folder, text):
    """What plumb says about TEXT, without the path; nothing may be left."""
    done, out = imports(folder, {"table": text})
    assert done.returncode == 2, (done.returncode, done.stderr)
    assert not out.exists() and len(done.stderr.splitlines()) == 1
    match = re.search(r"table: (.*)", done.stderr)
    assert match, done.stderr
    return match[1]


def cut_everywhere(folder, text, step=1):
    """Cut behind any byte, TEXT is a profile or one line of error, and never half a profile."""
    data = text if isinstance(text, bytes) else text.encode()
    codes = collections.Counter()
    for size in range(0, len(data) + 1, step):
        done, out = imports(folder, {"table": data[:size]})
        codes[done.returncode] += 1
        if done.returncode == 0:
            assert out.exists() and not done.stderr
        else:
            assert done.returncode in (2, 3), (size, done.stderr)
            assert not out.exists() and len(done.stderr.splitlines()) == 1, (size, done.stderr)
    assert codes[0] and codes[2], codes
    return codes
