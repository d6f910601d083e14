# SPDX-License-Identifier: Apache-2.0
"""A profile as a tree: nodes, and the values of each."""
from __future__ import annotations

import collections
import collections.abc
from typing import Iterator

from ._rows import Value, Variant, value_of
from .match import Pattern

KINDS = ("root", "python", "module", "operator", "range", "native", "library", "gpu_api", "graph",
         "collective", "kernel", "copy", "set", "device_function", "inline", "loop", "line",
         "instruction")
BACKWARD, ACCUMULATION, TRUNCATED = 1, 2, 4


class Values(collections.abc.Mapping):
    """Metric name → Value, for one node. Iterating gives the metrics that were observed at the node.

    Another metric of the profile gives an empty Value. An unknown metric raises KeyError."""

    __slots__ = ("_node", "_inclusive")

    def __init__(self, node, inclusive):
        self._node = node
        self._inclusive = inclusive

    def __getitem__(self, name: str) -> Value:
        profile = self._node.profile
        if name not in profile.metrics:
            known = ", ".join(profile.metrics)
            raise KeyError(f"no metric {name!r}; this profile has: {known}")
        found = profile._stats(name)[self._inclusive].get(self._node.id)
        return value_of(found, profile.metrics[name].aggregation)

    def __contains__(self, name):
        profile = self._node.profile
        return name in profile.metrics and \
            self._node.id in profile._stats(name)[self._inclusive]

    def __iter__(self):
        return (name for name in self._node.profile.metrics if name in self)

    def __len__(self):
        return sum(1 for _ in self)

    def __repr__(self):
        return repr(dict(self))


class Node:
    """A context: a path of frames from the root. Two nodes are equal if they are the same context of one profile."""

    __slots__ = ("profile", "id")

    def __init__(self, profile, number):
        self.profile = profile
        self.id = number

    def __eq__(self, other):
        return isinstance(other, Node) and (self.profile, self.id) == (other.profile, other.id)

    def __hash__(self):
        return hash(self.id)

    def __repr__(self):
        return f"<{self.kind} {self.name!r}>"

    def _frame(self):
        return self.profile._frames[self.profile._contexts[self.id][1]]

    @property
    def kind(self) -> str:
        """"python", "operator", "kernel", …: see the table of frames in the documentation."""
        return self._frame()[0]

    @property
    def name(self) -> str:
        """The frame's name. Kernels and native functions have their demangled name. "?" if it is
        unknown."""
        frame = self._frame()
        return frame[4] or frame[1] or "?"

    @property
    def symbol(self) -> str | None:
        """The name as recorded (a kernel's or a native function's mangled name), or None."""
        return self._frame()[1]

    @property
    def file(self) -> str | None:
        """The source file (of a module: its class; of a native frame: its build id). None: unknown."""
        return self._frame()[2]

    @property
    def line(self) -> int | None:
        """The line in the file (of a native frame: the offset of its call in the function). None: unknown."""
        return self._frame()[3]

    @property
    def source_file(self) -> str | None:
        """The file with the frame's code, if `file` means something else (a native frame). None: unknown."""
        return self._frame()[5]

    @property
    def source_line(self) -> int | None:
        """The line in source_file. None: unknown."""
        return self._frame()[6]

    @property
    def depth(self) -> int:
        """0 for the root."""
        return self.profile._contexts[self.id][4]

    @property
    def parent(self) -> Node | None:
        """The node above, or None for the root."""
        number = self.profile._contexts[self.id][0]
        return None if number is None else Node(self.profile, number)

    @property
    def ancestors(self) -> list[Node]:
        """The nodes above, the nearest first."""
        above, node = [], self.parent
        while node is not None:
            above.append(node)
            node = node.parent
        return above

    @property
    def children(self) -> list[Node]:
        """The nodes directly below."""
        found, number, last = [], self.id + 1, self.profile._contexts[self.id][3]
        while number <= last:
            found.append(Node(self.profile, number))
            number = self.profile._contexts[number][3] + 1
        return found

    @property
    def path(self) -> str:
        """The names from below the root to this node, separated by "/"; a "/" in a name is "\\/"."""
        names = [node.name for node in reversed([self] + self.ancestors[:-1])] if self.id else []
        return "/".join(name.replace("\\", "\\\\").replace("/", "\\/") for name in names)

    def walk(self) -> Iterator[Node]:
        """This node and all nodes below it. Each comes before its children (preorder)."""
        for number in range(self.id, self.profile._contexts[self.id][3] + 1):
            yield Node(self.profile, number)

    def bfs(self) -> Iterator[Node]:
        """This node and all nodes below it, level by level."""
        waiting = collections.deque([self])
        while waiting:
            node = waiting.popleft()
            yield node
            waiting.extend(node.children)

    def match(self, pattern: str) -> list[Node]:
        """The nodes below this one whose path from here matches PATTERN, in preorder.

        Example: "**/aten::linear/**/kernel:*gemm*". plumb.match describes patterns.
        """
        compiled = Pattern(pattern, KINDS)
        contexts = self.profile._contexts
        states = {self.id: compiled.start()}
        found = []
        number, last = self.id + 1, contexts[self.id][3]
        while number <= last:
            node = Node(self.profile, number)
            after = compiled.step(states[contexts[number][0]], node)
            if compiled.matches(after):
                found.append(node)
            if after:
                states[number] = after
                number += 1
            else:  # nothing below can match
                number = contexts[number][3] + 1
        return found

    @property
    def exclusive(self) -> Values:
        """Metric name → Value of this context alone."""
        return Values(self, False)

    @property
    def inclusive(self) -> Values:
        """Metric name → Value of this context and everything below it, with backward work."""
        return Values(self, True)

    @property
    def variants(self) -> list[Variant]:
        """The launch configurations or input shapes at this node (a list of Variant)."""
        return self.profile._variants().get(self.id, [])

    @property
    def is_backward(self) -> bool:
        """True for work of a backward pass."""
        return self._flag(BACKWARD | ACCUMULATION)

    @property
    def is_accumulation(self) -> bool:
        """True for backward work that no single forward operator caused: gradient accumulation, root
        gradients, hooks. It is under the line that called backward."""
        return self._flag(ACCUMULATION)

    @property
    def is_truncated(self) -> bool:
        """True if there were deeper frames that plumb did not keep."""
        return bool(self.profile._contexts[self.id][2] & TRUNCATED)

    def _flag(self, flag):
        node = self
        while node is not None:
            if self.profile._contexts[node.id][2] & flag:
                return True
            node = node.parent
        return False

    @property
    def forward(self) -> Node | None:
        """For backward work: the node of the forward operator that caused it. For a double backward pass: the
        first operator of the chain. None for forward work and for gradient accumulation."""
        contexts, found = self.profile._contexts, None
        for node in [self] + self.ancestors:
            flags = contexts[node.id][2]
            if flags & BACKWARD:
                found = None if flags & ACCUMULATION else node.parent
        return found

    @property
    def backward(self) -> list[Node]:
        """The topmost nodes of the backward work that this node or an operator below it caused."""
        found, contexts = [], self.profile._contexts
        number, last = self.id + 1, contexts[self.id][3]
        while number <= last:
            flags = contexts[number][2]
            if flags & BACKWARD and not flags & ACCUMULATION:
                found.append(Node(self.profile, number))
            number = contexts[number][3] + 1 if flags & BACKWARD else number + 1
        return found

    @property
    def origins(self) -> list[tuple[str, Node]]:
        """Contexts that explain this one, as (reason, Node): who called backward, the capture of a
        graph's node, …"""
        return [(reason, Node(self.profile, origin))
                for reason, origin in self.profile._origins().get(self.id, [])]
