# SPDX-License-Identifier: Apache-2.0
"""Rules over a profile, written in Python and run by `plumb report FILE --rule my_rule.py`.

A rule file loops over nodes and flags some of them:

    for node in profile.walk():
        time = node.inclusive["gpu.time"]
        if time.count > 100 and time.mean < 5_000:
            flag(node, "many short kernels")

`profile` (a plumb.Profile), `flag` and `rule` are there already. Several rules in one file are functions
with the decorator; a function's name is its rule's name, else the file's:

    @rule
    def copies(profile):
        for node in profile.of_kind("copy"):
            flag(node, "a copy", severity="note")

What is flagged becomes findings of the report. What a rule prints goes to standard error.
"""
import json
import math
import os
import sys
import traceback

SEVERITIES = {"note": 1, "warning": 2, "serious": 3}

_run = None  # the Run whose rule file is being executed


class Run:
    """One rule file on one profile; collects what it flags."""

    def __init__(self, profile, name):
        self.profile = profile
        self.name = name  # of the rule that runs now
        self.functions = []
        self.flags = []
        self.seen = {}

    def add(self, node, text, saving_ns, severity, advice, confidence, evidence):
        if severity not in SEVERITIES:
            raise ValueError(f"severity {severity!r}; there are: {', '.join(SEVERITIES)}")
        if node is not None and getattr(node, "profile", None) is not self.profile:
            raise TypeError("flag() takes a node of the profile (or None for the run as a whole), "
                            f"not {node!r}")
        if saving_ns is not None:
            saving_ns = int(saving_ns)
            if not 0 <= saving_ns < 2 ** 63:
                raise ValueError(f"saving_ns {saving_ns} is no time in nanoseconds")
        if confidence is not None and not 0 <= confidence <= 1:
            raise ValueError(f"confidence {confidence!r} is not between 0 and 1")
        place = (self.name, None if node is None else node.id)
        ordinal = self.seen[place] = self.seen.get(place, -1) + 1
        self.flags.append(("F", "-" if node is None else node.id, ordinal, SEVERITIES[severity],
                           "-" if saving_ns is None else saving_ns,
                           "-" if confidence is None else float(confidence), self.name, text,
                           advice, json.dumps(_plain(evidence))))


def flag(node, text, saving_ns=None, severity="warning", advice="", confidence=None, evidence=None):
    """Makes a finding of NODE (None: the run as a whole): TEXT is its title.

    saving_ns: the most that is saved if the cause vanished; confidence: 0…1; severity: "note",
    "warning" or "serious"; evidence: a dict of numbers and texts.
    """
    if _run is None:
        raise RuntimeError("flag() works in a rule file: plumb report FILE --rule RULE.py")
    _run.add(node, str(text), saving_ns, severity, str(advice), confidence, evidence or {})


def rule(function):
    """A decorator: FUNCTION(profile) is a rule of the file, run after the file itself."""
    if _run is not None:
        _run.functions.append(function)
    return function


def _plain(value):
    """VALUE as JSON has it: no NaN, no infinity, no objects."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def run(profile, path):
    """Runs the rule file at PATH on PROFILE; returns the Run with its flags."""
    global _run
    stem = os.path.splitext(os.path.basename(path))[0]
    with open(path, "rb") as source:
        code = compile(source.read(), path, "exec")
    import plumb
    space = {"__name__": "__main__", "__file__": path, "profile": profile, "plumb": plumb,
             "flag": flag, "rule": rule}
    before, _run = _run, Run(profile, stem)
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    try:
        exec(code, space)
        for function in _run.functions:
            _run.name = function.__name__
            function(profile)
        return _run
    finally:
        sys.path.pop(0)
        _run = before


def describe(error, path):
    """An exception as one line that names the rule's file and line."""
    text = str(error).splitlines()
    kind, said = type(error).__name__, text[0] if text else ""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}: {kind}: {error.msg}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__)
             if frame.filename == path]
    place = f"{path}:{lines[-1]}" if lines else path
    return f"{place}: {kind}: {said}" if said else f"{place}: {kind}"


def _line(fields):
    """FIELDS on one line, as src/cli/rules.c reads them."""
    texts = (str(field).replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n")
             .replace("\0", "") for field in fields)
    return ("\t".join(texts) + "\n").encode("utf-8", errors="replace")


def main(profile, path, descriptor):
    """What plumb starts: answers on the pipe DESCRIPTOR."""
    from .profile import Profile
    with open(int(descriptor), "wb") as answer:
        try:
            done = run(Profile(profile), path)
        except BaseException as error:  # also SystemExit: a rule has no say in how plumb ends
            answer.write(_line(("E", "rule " + describe(error, path))))
            return
        for fields in done.flags:
            answer.write(_line(fields))
        answer.write(_line(("D",)))
