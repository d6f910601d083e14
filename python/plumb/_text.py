# SPDX-License-Identifier: Apache-2.0
"""The filter for text that goes to a terminal. Names come from other people's files, so they cannot be trusted."""
import re

# Controls but not the ends of lines and tabs, marks of direction, characters without width, separators of lines
# and paragraphs, halves of characters: as src/cli/terminal.c has them.
_HIDDEN = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff"
                     "\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]")


def _escape(match):
    code = ord(match[0])
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def printable(text):
    """TEXT, with escapes for characters that control a terminal or hide other characters."""
    return _HIDDEN.sub(_escape, text)


class Printable:
    """A text stream that filters what it writes to STREAM."""

    def __init__(self, stream):
        self._stream = stream

    def write(self, text):
        self._stream.write(printable(text))
        return len(text)

    def __getattr__(self, name):
        return getattr(self._stream, name)
