# SPDX-License-Identifier: Apache-2.0
"""Patterns that select nodes of the context tree by their path.

A pattern is a path from the root. Segments are separated by "/", and each one stands for a frame.

    name        one frame with that name
    *  ?        in a name: any text, any one character; they also match a "/" in a name
    **          as a whole segment: any number of frames, or no frame
    kind:name   only frames of that kind: "kernel:*gemm*", "python:forward", "copy:*"
    name@file   only frames whose file (for a native frame: source file) ends with that text:
                "step@train.py", "python:*@train.py:42", "native:*@Linear.cpp:90"
    \\           takes the next character as it is: "a\\/b" is the one name a/b

A pattern matches a whole path: "**/aten::mm" finds aten::mm anywhere, "**/aten::mm/**" also finds everything
below it. Upper and lower case differ. There are no character classes, because names are full of brackets.
"""
import re


def glob(text):
    """A segment's glob as a regular expression for a whole name."""
    out = []
    characters = iter(text)
    for character in characters:
        if character == "\\":
            out.append(re.escape(next(characters, "\\")))
        elif character == "*":
            out.append(".*")
        elif character == "?":
            out.append(".")
        else:
            out.append(re.escape(character))
    return re.compile("".join(out) + r"\Z", re.S)


def split(text, separator):
    """TEXT split at each SEPARATOR without a backslash before it. The backslashes stay."""
    return re.findall(r"(?:\A|{0})((?:\\.|[^\\{0}]|\\\Z)*)".format(separator), text, re.S)


class Segment:
    """One segment of a pattern other than **."""

    def __init__(self, text, kinds):
        self.kind = self.file = self.line = None
        prefix, colon, rest = text.partition(":")
        if colon and prefix in kinds and not rest.startswith(":"):
            self.kind, text = prefix, rest
        name, *place = split(text, "@")
        if place:
            file = "@".join(place)
            found = re.match(r"(.*):(\d+)\Z", file, re.S)
            if found:
                file, self.line = found.group(1), int(found.group(2))
            self.file = glob(file if file.startswith("*") else "*" + file)
        self.name = glob(name or "*")

    def _is_at(self, file, line):
        return bool(file and self.file.match(file)) and self.line in (None, line)

    def accepts(self, node):
        return ((self.kind is None or node.kind == self.kind)
                and (self.file is None or self._is_at(node.file, node.line)
                     or self._is_at(node.source_file, node.source_line))
                and bool(self.name.match(node.name)))


class Pattern:
    """A compiled pattern. A state is the number of segments that are matched. A set of states is a bit mask."""

    def __init__(self, text, kinds):
        if not text:
            raise ValueError("the pattern is empty; '**' matches everything")
        self.segments = [None if part == "**" else Segment(part, kinds)
                         for part in split(text.strip("/") if text != "/" else text, "/")]
        self.accepting = 1 << len(self.segments)

    def close(self, states):
        """STATES and what follows from them when a ** matches nothing."""
        for number, segment in enumerate(self.segments):
            if segment is None and states >> number & 1:
                states |= 1 << number + 1
        return states

    def start(self):
        return self.close(1)

    def step(self, states, node):
        """The states after NODE, from those at its parent."""
        after = 0
        for number, segment in enumerate(self.segments):
            if states >> number & 1:
                if segment is None:
                    after |= 1 << number
                elif segment.accepts(node):
                    after |= 1 << number + 1
        return self.close(after)

    def matches(self, states):
        return bool(states & self.accepting)
