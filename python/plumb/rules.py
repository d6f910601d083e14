# SPDX-License-Identifier: Apache-2.0
"""Runs rules of your own: `plumb report FILE --rule my_rule.py`.

A rule file is Python. It loops over nodes and flags some of them:

    for node in profile.walk():
        time = node.inclusive["gpu.time"]
        if time.count > 100 and time.mean < 5_000:
            flag(node, "many short kernels")

`profile` (a plumb.Profile), `flag` and `rule` are defined already. The file's name is the name of the rule. A file
can have several rules, as functions with a decorator. Then the function's name is the name of the rule:

    @rule
    def copies(profile):
        for node in profile.of_kind("copy"):
            flag(node, "a copy", severity="note")

The rule runs in an isolated interpreter (python3 -I). It cannot import modules from the current folder, from the
rule's own folder or from PYTHONPATH. If a rule needs such a module, it adds the folder itself:

    sys.path.append(os.path.dirname(os.path.abspath(__file__)))

Each flag becomes a finding of the report. What a rule prints goes to standard error.
"""
import json
import math
import os
import sys
import traceback

SEVERITIES = {"note": 1, "warning": 2, "serious": 3}

_run = None  # the Run whose rule file is being executed


class Run:
    """One rule file on one profile. It collects the flags."""

    def __init__(self, profile, name):
        self.profile = profile
        self.name = name  # of the rule that runs now
        self.functions = []
        self.flags = []
        self.seen = {}

    def add(self, node, text, saving_ns, severity, advice, confidence, evidence):
        if severity not in SEVERITIES:
            raise ValueError(f"unknown severity {severity!r}; use one of: {', '.join(SEVERITIES)}")
        if node is not None and getattr(node, "profile", None) is not self.profile:
            raise TypeError("flag() takes a node of this profile (or None, for the run as a whole), "
                            f"not {node!r}")
        if saving_ns is not None:
            saving_ns = int(saving_ns)
            if not 0 <= saving_ns < 2 ** 63:
                raise ValueError(f"saving_ns must be from 0 to 2**63 - 1, not {saving_ns}")
        if confidence is not None and not 0 <= confidence <= 1:
            raise ValueError(f"confidence {confidence!r} must be between 0 and 1")
        place = (self.name, None if node is None else node.id)
        ordinal = self.seen[place] = self.seen.get(place, -1) + 1
        self.flags.append(("F", "-" if node is None else node.id, ordinal, SEVERITIES[severity],
                           "-" if saving_ns is None else saving_ns,
                           "-" if confidence is None else float(confidence), self.name, text,
                           advice, json.dumps(_plain(evidence))))


def flag(node, text, saving_ns=None, severity="warning", advice="", confidence=None, evidence=None):
    """Makes a finding about NODE. None: about the run as a whole.

    text: the title of the finding. saving_ns: the most that can be saved (None: unknown). severity: "note",
    "warning" or "serious". advice: what to do. confidence: 0 to 1. evidence: a dict of numbers and texts.
    """
    if _run is None:
        raise RuntimeError("flag() works only in a rule file; run it with plumb report FILE --rule RULE.py")
    _run.add(node, str(text), saving_ns, severity, str(advice), confidence, evidence or {})


def rule(function):
    """A decorator that makes FUNCTION(profile) a rule. It runs after the file itself."""
    if _run is not None:
        _run.functions.append(function)
    return function


def _plain(value):
    """VALUE in a form that JSON can have: no NaN, no infinity, no objects."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def run(profile, path):
    """Runs the rule file at PATH on PROFILE. Returns the Run with its flags."""
    global _run
    stem = os.path.splitext(os.path.basename(path))[0]
    with open(path, "rb") as source:
        code = compile(source.read(), path, "exec")
    import plumb
    space = {"__name__": "__main__", "__file__": path, "profile": profile, "plumb": plumb,
             "flag": flag, "rule": rule}
    before, _run = _run, Run(profile, stem)
    try:
        exec(code, space)
        for function in _run.functions:
            _run.name = function.__name__
            function(profile)
        return _run
    finally:
        _run = before


def describe(error, path):
    """An exception as one line, with the rule's file and line."""
    text = str(error).splitlines()
    kind, said = type(error).__name__, text[0] if text else ""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}: {kind}: {error.msg}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__)
             if frame.filename == path]
    place = f"{path}:{lines[-1]}" if lines else path
    return f"{place}: {kind}: {said}" if said else f"{place}: {kind}"


def _line(fields):
    """FIELDS as one line that src/cli/rules.c can read."""
    texts = (str(field).replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n")
             .replace("\0", "") for field in fields)
    return ("\t".join(texts) + "\n").encode("utf-8", errors="replace")


def main(profile, path, descriptor):
    """What plumb starts. The answer goes to the pipe DESCRIPTOR."""
    from ._text import Printable
    from .reading import Profile
    sys.stdout, sys.stderr = Printable(sys.stdout), Printable(sys.stderr)
    with open(int(descriptor), "wb") as answer:
        try:
            done = run(Profile(profile), path)
        except BaseException as error:  # also SystemExit: a rule has no say in how plumb ends
            answer.write(_line(("E", "rule " + describe(error, path))))
            return
        for fields in done.flags:
            answer.write(_line(fields))
        answer.write(_line(("D",)))
