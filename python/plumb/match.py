# SPDX-License-Identifier: Apache-2.0
"""Patterns over the paths of a calling context tree.

A pattern is a path from the root: segments separated by "/", one for each frame.

    segment     matches one frame (or, for **, any number of frames, also none)
    *  ?        in a segment: any text, any one character; "/" in a name included
    **          as a whole segment: any frames
    kind:name   only frames of that kind: "kernel:*gemm*", "python:forward", "copy:*"
    name@file   only frames whose file (of a native frame: whose source file) ends with that:
                "step@train.py", "python:*@train.py:42", "native:*@Linear.cpp:90"
    \\           takes the next character as it is: "a\\/b" is the one name a/b

A pattern matches a whole path: "**/aten::mm" finds aten::mm anywhere, "**/aten::mm/**" it and all
below it. Upper and lower case differ. There are no character classes, since names are full of
brackets.
"""
import re


def glob(text):
    """A segment's glob as a regular expression over a whole name."""
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
    """TEXT split at each SEPARATOR that no backslash precedes; the backslashes stay."""
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
    """A compiled pattern. A state is how many segments are matched; a set of states is a bit mask."""

    def __init__(self, text, kinds):
        if not text:
            raise ValueError("an empty pattern; '**' matches everything")
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
