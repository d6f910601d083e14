# SPDX-License-Identifier: Apache-2.0
"""Helpers for tests of imported tables (CSV and plain text).

    made = imported(tmp_path, text)          # or several files: {"name": text, …}
    made.device(0)["kernels"]                # {"count": 1, "ns": 3407200}
    made.contexts("gpu.time")                # {"gpu_api:cudaLaunchKernel/kernel:add(int*)": (3407200, 1)}
    refused(tmp_path, text)                  # "line 3: …"
"""
import collections

import importing
from importing import Imported


class Made(Imported):
    def device(self, index=0):
        return self.report()["devices"][index]

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


def files(folder, texts):
    """The paths of TEXTS ({name: text or bytes}), which are written."""
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        yield path


def imported(folder, text):
    return Made(importing.imported(folder, *(files(folder, text) if isinstance(text, dict) else [text])).path)


def refused(folder, text):
    """What plumb says about TEXT, without the path."""
    return importing.refused(folder, text).partition("refused-0: ")[2]
