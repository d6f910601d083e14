#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every command of the guides (docs/guides/*.md), and compares what it prints with the page.

    scripts/guides.py [--write] [--python PYTHON] [PAGE...]

--write writes the output of today into the pages, where it differs. PYTHON has PyTorch. plumb is the one in $BUILD (build).
tests/e2e/test_guides.py does the same comparison. Nothing else knows the form of the pages:

    ```console                    "$ COMMAND", then its output. A line "…" is output that the page leaves out.
    ```console run                the same, of a run: numbers, and the way that lines are broken, differ from run to run.
                                  Only words and the lines of programs are compared
    ```console recorded=FILE      "$ plumb run -o NAME …". The command is run, small, on the CPU. Then the profile FILE
                                  of tests/data becomes NAME, and its summary is what the page shows
    ```console data=FILE          the same as `console`, and the folder has this file of tests/data
    ```python cell                a cell of a notebook, and in ```text (or ```text run), right after it, what it
                                  prints. Cells run first
    ```yaml                       the commands after "run:" are commands of the page

A command in the text (`plumb report …`) must succeed. Commands of one page run in one folder, which has a copy of
examples/ and the program of tests/accuracy/planted.py. `echo $?` prints the exit code of the command before it; any
other command must end with 0 if `echo $?` does not follow it.
"""
import argparse
import difflib
import gzip
import os
import pathlib
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA = ROOT / "tests" / "data"
PAGES = sorted((ROOT / "docs" / "guides").glob("*.md"))
CUT = "…"
HOME = "/home/you/my-project"  # takes the place of the folder, which has another name in each run
BLOCK = re.compile(r"^```(\w+)(?: ([^\n]*))?\n(.*?)^```$", re.M | re.S)
SUMMARY = "plumb: summary of the run"


class Wrong(Exception):
    """A page does not say what happens."""


# ---- comparing ----

NUMBER = re.compile(r"(?<![\w:.])[-+]?\d[\d,]*(?:\.\d+)?(?: (?:ns|µs|ms|s|min|h|B|KiB|MiB|GiB|TiB|%)(?![\w/]))?")
INTERVAL = re.compile(r"# … #(?:\s+\*)?")  # "–" if there are too few measurements
PATH = re.compile(r"[^\s(]*[/…](?=[\w.-]+\.py\b)")


def words_of(line):
    """The words of a line, without what differs from run to run."""
    return INTERVAL.sub("–", NUMBER.sub("#", PATH.sub("", line))).split()


def pieces(lines, loose):
    """What the page shows between its cuts: lists of lines, or of words."""
    found = [[]]
    for line in lines:
        if line.strip() == CUT:
            found.append([])
        else:
            found[-1] += words_of(line) if loose else [line.rstrip()]
    return found


def stripped(lines):
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    return lines


def agrees(shown, actual, loose):
    """Is ACTUAL what SHOWN shows, with something in place of each cut?"""
    parts, (whole,) = pieces(stripped(shown), loose), pieces(stripped(actual), loose)
    if len(parts) == 1:
        return parts[0] == whole
    first, last = parts[0], parts[-1]
    if len(whole) < len(first) + len(last) or whole[:len(first)] != first or whole[len(whole) - len(last):] != last:
        return False
    at, end = len(first), len(whole) - len(last)
    for part in parts[1:-1]:
        at = next((i for i in range(at, end - len(part) + 1) if whole[i:i + len(part)] == part), None)
        if at is None:
            return False
        at += len(part)
    return True


def rewritten(shown, actual):
    """ACTUAL, cut where SHOWN is cut: lines that are like those of SHOWN are kept, and so is what is new between them."""
    def likeness(lines):
        return [tuple(words_of(line)) for line in lines]
    result = []
    matcher = difflib.SequenceMatcher(None, likeness(shown), likeness(actual), autojunk=False)
    for tag, i, j, k, m in matcher.get_opcodes():
        cuts = [number for number in range(i, j) if shown[number].strip() == CUT]
        if tag == "equal" or not cuts:
            result += actual[k:m]
            continue
        before, after = cuts[0] - i, j - cuts[-1] - 1
        if before + after >= m - k:
            result += actual[k:m]
        else:
            result += actual[k:k + before] + [CUT] + actual[m - after:m]
    return result


# ---- running ----


class Folder:
    """Where the commands of a page run."""

    runs = {}  # the output of recordings that several pages have
    # torchrun of PyTorch 1.13 fails with Python 3.11, so the launcher is that of a newer one. Without it, it is not run.
    launcher = next(filter(None, os.environ.get("PLUMB_TORCH_PYTHONS", "").split(":")), None)

    def __init__(self, python, build):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="guides-"))
        self.python, self.code = python, 0
        shutil.copytree(ROOT / "examples", self.path / "examples")
        planted = runpy.run_path(str(ROOT / "tests" / "accuracy" / "planted.py"))
        (self.path / "planted_program.py").write_text(planted["PROGRAM"])
        kept = {key: value for key, value in os.environ.items()
                if not key.startswith("PLUMB_") and key not in ("LD_PRELOAD", "COLUMNS")}
        self.environment = {
            **kept, "PATH": os.pathsep.join([str(build), os.path.dirname(python), kept.get("PATH", "")]),
            "PYTHONPATH": str(ROOT / "python"), "PLUMB_BINARY": str(build / "plumb"), "OMP_NUM_THREADS": "1",
            "PYTHONDONTWRITEBYTECODE": "1", "PYTHONWARNINGS": "ignore", "CUDA_VISIBLE_DEVICES": "",
            "IPYTHONDIR": str(self.path / ".ipython"), "LC_ALL": "C.UTF-8"}

    def __enter__(self):
        return self

    def __exit__(self, *error):
        shutil.rmtree(self.path, ignore_errors=True)

    def call(self, command, folder=None):
        """The lines that a command prints, with what it writes to standard error."""
        done = subprocess.run(["bash", "-c", f"(exit {self.code}); {command}"], cwd=folder or self.path, timeout=300,
                              env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
        self.code = done.returncode
        # Of a path that plumb shortened, the end is left. It has the same length.
        text = done.stdout.replace(str(self.path), HOME).replace(self.path.name, HOME[-len(self.path.name):])
        return stripped(text.splitlines())

    def record(self, command, recorded):
        """What `plumb run` prints on the machine on which the profile RECORDED was made."""
        words = re.sub(r" -o \S+", "", command)  # the same run, by another name, is not made again
        name, packed = profile_of(command), DATA / (recorded + ".gz")
        if words not in self.runs and "torchrun" in command and not self.launcher:
            self.runs[words] = []
        elif words not in self.runs:
            usual = self.environment["PATH"]
            if "torchrun" in command:
                self.environment["PATH"] = os.path.dirname(self.launcher) + os.pathsep + usual
            lines = self.call(re.sub(r"\bcuda\b", "cpu", command))
            self.environment["PATH"] = usual
            if self.code or SUMMARY not in lines or not (self.path / name).stat().st_size:
                raise Wrong(f"$ {command}\nended with {self.code}:\n" + "\n".join(lines))
            self.runs[words] = lines[:lines.index(SUMMARY)]
        scratch = self.path / "recorded"
        scratch.mkdir(exist_ok=True)
        with gzip.open(packed) as source, open(scratch / "source", "wb") as target:
            shutil.copyfileobj(source, target)
        summary = self.call(f"plumb settle source -o {shlex.quote(name)} --summary", scratch)
        shutil.move(scratch / "source", self.path / name)
        return self.runs[words] + summary

    def cells(self, sources):
        """What each cell of a notebook prints."""
        between = "-- the next cell --"
        program = ("import sys\nfrom IPython.core.interactiveshell import InteractiveShell\n"
                   "sys.stderr = sys.stdout\nshell = InteractiveShell.instance()\n"
                   f"for source in {sources!r}:\n    shell.run_cell(source)\n    print({between!r}, flush=True)\n")
        (self.path / "cells.py").write_text(program)
        lines = self.call(shlex.join([self.python, "cells.py"]))
        (self.path / "cells.py").unlink()
        outputs = "\n".join(lines).split(between)
        if len(outputs) != len(sources) + 1:
            raise Wrong("the cells ended with:\n" + "\n".join(lines))
        return [stripped(text.strip("\n").splitlines()) for text in outputs[:-1]]


def profile_of(command):
    words = shlex.split(command)
    return words[words.index("-o") + 1]


# ---- pages ----


def steps_of(body):
    """[[command, the output under it], …] of a console block."""
    steps, open_line = [], False
    for line in body.splitlines():
        if open_line:
            steps[-1][0] += "\n" + line
        elif line.startswith("$ "):
            steps.append([line[2:], []])
        elif steps:
            steps[-1][1].append(line)
        else:
            raise Wrong(f"a console block begins with a command, not with: {line}")
        open_line = (open_line or line.startswith("$ ")) and line.endswith("\\")
    return steps


class Page:
    def __init__(self, path, python, build):
        self.path, self.python, self.build = pathlib.Path(path), python, build
        self.text = self.path.read_text()
        self.wrong, self.commands = [], []

    def settle(self, what, shown, actual, loose):
        """What the page should show: SHOWN if that is right."""
        if agrees(shown, actual, loose):
            return shown
        new = rewritten(shown, actual)
        self.wrong.append(f"{self.path.name}: {what}\n" + "\n".join(
            difflib.unified_diff(shown, new, "the page", "what happens", lineterm="")))
        return new

    def console(self, folder, options, body):
        steps, result = steps_of(body), []
        if "data" in options:
            shutil.copy(DATA / options["data"], folder.path)
        for number, (command, shown) in enumerate(steps):
            recorded = options.get("recorded")
            records = recorded and command.startswith("plumb run ")
            actual = folder.record(command, recorded) if records else folder.call(command)
            self.commands.append(command)
            asks = number + 1 < len(steps) and "$?" in steps[number + 1][0]
            if folder.code and not asks:
                raise Wrong(f"{self.path.name}: $ {command}\nended with {folder.code}:\n" + "\n".join(actual))
            result += ["$ " + command, *self.settle("$ " + command, shown, actual, "run" in options)]
        return "\n".join(result) + "\n"

    def check(self):
        """Runs the page. What is wrong is in self.wrong, and self.text becomes right."""
        blocks = list(BLOCK.finditer(self.text))
        bodies = [block[3] for block in blocks]
        options = [dict((word + "=").split("=")[:2] for word in (block[2] or "").split()) for block in blocks]
        cells = [i for i, block in enumerate(blocks) if block[1] == "python" and "cell" in options[i]]
        with Folder(self.python, self.build) as folder:
            for i, actual in zip(cells, folder.cells([bodies[i] for i in cells]) if cells else []):
                if i + 1 < len(blocks) and blocks[i + 1][1] == "text":
                    shown = bodies[i + 1].splitlines()
                    bodies[i + 1] = "\n".join(self.settle(bodies[i], shown, actual, "run" in options[i + 1])) + "\n"
                elif actual:
                    raise Wrong(f"{self.path.name}: a cell prints more than the page shows:\n" + "\n".join(actual))
            for i, block in enumerate(blocks):
                if block[1] == "console":
                    bodies[i] = self.console(folder, options[i], block[3])
            self.check_words(folder, blocks)
        for block, body in reversed(list(zip(blocks, bodies))):
            self.text = self.text[:block.start(3)] + body + self.text[block.end(3):]

    def check_words(self, folder, blocks):
        """Commands outside of console blocks."""
        for block in blocks:
            for command in re.findall(r"run: (.*)", block[3]) if block[1] == "yaml" else []:
                if command not in self.commands:
                    raise Wrong(f"{self.path.name}: no console block runs: {command}")
        for command in re.findall(r"`(plumb \w+ [^`]+)`", BLOCK.sub("", self.text)):
            lines = folder.call(command)
            if folder.code:
                raise Wrong(f"{self.path.name}: `{command}` ended with {folder.code}:\n" + "\n".join(lines))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--python")
    parser.add_argument("pages", nargs="*", metavar="PAGE", default=PAGES)
    chosen = parser.parse_args()
    python = chosen.python or subprocess.run([ROOT / "scripts" / "find-python", "torch"], capture_output=True, text=True,
                                             check=True).stdout.strip()
    build = pathlib.Path(os.environ.get("BUILD") or ROOT / "build").resolve()
    wrong = 0
    for path in chosen.pages:
        page = Page(path, python, build)
        try:
            page.check()
        except Wrong as error:
            page.wrong.append(str(error))
            chosen_write = False
        else:
            chosen_write = chosen.write
        if page.wrong and chosen_write:
            page.path.write_text(page.text)
            print(f"{page.path.name}: written")
        elif page.wrong:
            wrong = 1
            print("\n\n".join(page.wrong), file=sys.stderr)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
