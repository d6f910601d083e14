#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs as people write them, each with one fault and without: do the first lines of plumb name it?

    python3 tests/accuracy/programs.py [--plumb COMMAND] [--out FOLDER] [--program NAME]… [--device cpu] [--table FILE]

Records each program of tests/accuracy/programs twice with a plain `plumb run`: with its fault, and healthy. Prints
one line each, PASS or FAIL with what failed; exits 0 or 1. What must hold:

- The main loop is found, with the number of iterations that the program made (one or two may be missing).
- With the fault, a finding within the first forty lines of the summary names the cause; it is the first that is not
  about start-up. Healthy, no finding says so.
- A program whose start-up takes long has that as a finding of its own.

--out keeps the profiles and what was printed. --table writes the table of docs/accuracy.md. --device cpu only runs the
programs, to see that they do. Needs CUDA; a program whose library is missing is left out, and said.
"""
import argparse
import dataclasses
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")


@dataclasses.dataclass
class Program:
    file: str
    fault: str              # what is wrong with it, in words
    cause: str              # a pattern of the finding that says so; LINE is the line marked @fault
    steps: int = 100
    iterations: int = None  # of the main loop, if they are not the steps; 0: not looked at
    loops: int = 1          # at least; 0: the healthy one is too short
    needs: tuple = ()       # modules of Python
    arguments: tuple = ()
    options: tuple = ()     # of plumb run
    startup: str = None     # a pattern of the finding about start-up
    where: str = None       # the window that the finding is of, if it is not the main loop


PROGRAMS = {
    "compiled": Program("compiled.py", "Python changes each batch for 20 ms", r"idle.*compiled\.py:(19|20|21)\b", 40,
                        needs=("torchvision",), startup="compil"),
    "compiled-long": Program("compiled.py", "Python changes each batch for 20 ms", r"idle.*compiled\.py:(19|20|21)\b", 400,
                             needs=("torchvision",), arguments=("mobilenet_v2",), startup="compil"),
    "hf-train": Program("hf_train.py", "making a batch takes 25 ms of Python", r"^loading data at .*trainer\.py",
                        needs=("transformers", "accelerate")),
    "hf-generate": Program("hf_generate.py", "each token's scores are sorted on the host", r"^Rank\.__call__ \(LINE\) keeps", 200,
                           needs=("transformers",)),
    "lightning": Program("lightning_fit.py", "each step copies a table of 64 MB", r"^LINE copies .* from pageable",
                         needs=("pytorch_lightning",)),
    "pyg": Program("pyg_train.py", "the whole graph is copied in each step", r"LINE (in \d+ of \d+ looks|copies)",
                   needs=("torch_geometric",)),
    "triton": Program("triton_rows.py", "one launch for each 64 rows", r"(softmax|LINE).*keeps the CPU|LINE.*looks", 300, 0, needs=("triton",)),
    "cupy": Program("cupy_steps.py", "the host reads the grid after each sweep", r"LINE (copies|waits)", 30, 300, needs=("cupy",)),
    "jax": Program("jax_steps.py", "each fourth step compiles", r"^compiling: ", 200, 0, needs=("jax",)),
    "cuda": Program("stages.cu", "each step copies the input again", r"^stages\.cu:46 copies .* from pageable", 200,
                    loops=0),
    "decode": Program("decode_graph.py", "the host sleeps 4 ms between replays", r"idle.*LINE", 600, needs=("torch",)),
    "epochs": Program("epochs.py", "evaluation reads each result on the host", r"^evaluate.*(LINE|epochs\.py:3\d)|^LINE", 400, 1200, 2,
                      needs=("torch",), where="loop:2"),
}


class Session:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder

    def command(self, program, kind):
        path = os.path.join(FOLDER, program.file)
        words = [kind, self.options.device, str(program.steps), *program.arguments]
        if not path.endswith(".cu"):
            return [sys.executable, path, *words]
        built = os.path.join(self.folder, os.path.basename(path)[:-3])
        if not os.path.exists(built):
            subprocess.run(["nvcc", "-g", "-O2", "-o", built, path], check=True)
        return [built, *words]

    def record(self, name, program, kind):
        """The profile's path, and what was printed."""
        path = os.path.join(self.folder, f"{name}-{kind}.plumb")
        environment = dict(os.environ, TORCHINDUCTOR_CACHE_DIR=tempfile.mkdtemp(), TRITON_CACHE_DIR=tempfile.mkdtemp(),
                           XLA_PYTHON_CLIENT_PREALLOCATE="false")
        begin = time.monotonic()
        done = subprocess.run([*shlex.split(self.options.plumb), "run", *program.options, "-o", path, "--",
                               *self.command(program, kind)], capture_output=True, text=True, env=environment,
                              check=False)
        with open(path[:-6] + ".txt", "w", encoding="utf-8") as file:
            file.write(done.stderr)
        assert done.returncode == 0, done.stderr[-2000:]
        print(f"recorded {name} {kind}: {time.monotonic() - begin:.1f} s", flush=True)
        return path, done.stderr


def line_of(program):
    with open(os.path.join(FOLDER, program.file), encoding="utf-8") as file:
        return next(number for number, line in enumerate(file, 1) if "@fault" in line)


def pattern_of(program):
    return program.cause.replace("LINE", rf"{re.escape(program.file)}:{line_of(program)}\b")


def told(plumb, *arguments):
    done = subprocess.run([*plumb, *arguments], capture_output=True, text=True, check=True)
    return done.stdout


def report_of(plumb, path):
    return json.loads(told(plumb, "report", str(path), "--json"))


def findings_of(plumb, path):
    return own_findings(json.loads(told(plumb, "report", str(path), "--findings", "--json")))


def own_findings(report):
    """Those that are not about start-up, best first."""
    return [one for one in report["findings"] if one["rule"] != "startup"]


def shown_at(text, title):
    """The line of TEXT, from 1, that begins to print a finding's TITLE, which may be broken or cut."""
    lines = text.splitlines()
    begin = re.sub(r"\W+", "", title)[:24]
    for number in range(len(lines)):
        if begin in re.sub(r"\W+", "", "".join(lines[number:number + 3])):
            return number + 1
    return None


def judge_loops(program, report):
    loops = [one for one in report["windows"] or [] if one["name"].startswith("loop")]
    if len(loops) < program.loops and program.iterations != 0:
        return [f"{len(loops)} loops"]
    if program.iterations == 0:  # more than one loop could be meant
        return []
    if not loops:
        return []
    main, wanted = next(one for one in loops if one["main"]), program.iterations or program.steps
    if main["iterations"] is None or abs(main["iterations"] - wanted) <= 2 + wanted // 10:
        return []
    return [f"{main['iterations']} iterations in {main['name']}, not {wanted}"]


def judge(plumb, name, sick, well, summary=None):
    """A row of the table. Its "failed" has what plumb does not say of the recordings SICK and WELL. SUMMARY is what
    `plumb run` printed; without it, what `plumb report --findings` prints counts."""
    program, pattern = PROGRAMS[name], pattern_of(PROGRAMS[name])
    reports = report_of(plumb, sick), report_of(plumb, well)
    findings = findings_of(plumb, sick)
    text = summary[summary.index("summary of the run"):] if summary else told(plumb, "report", str(sick), "--findings")
    first = findings[0]["title"] if findings else "none"
    row = {"name": name, "fault": program.fault, "finding": first, "line": shown_at(text, first), "failed": []}
    if not re.search(pattern, first):
        row["failed"].append(f"first finding: {first!r}")
    if not row["line"] or row["line"] > 40:
        row["failed"].append(f"it is at line {row['line']}")
    if program.where and (not findings or findings[0]["window"] != program.where):
        row["failed"].append(f"the first finding is not of {program.where}")
    healthy = findings_of(plumb, well)
    row["failed"] += [f"healthy: {one['title']}" for one in healthy if re.search(pattern, one["title"])]
    for kind, report in zip(("fault", "healthy"), reports):
        row["failed"] += [f"{kind}: {what}" for what in judge_loops(program, report)]
    if program.startup:
        found = [one["title"] for one in reports[1]["findings"] if one["rule"] == "startup"]
        if not any(re.search(program.startup, title) for title in found):
            row["failed"].append(f"start-up: {found}")
    return row


def check(session, name):
    program = PROGRAMS[name]
    sick, printed = session.record(name, program, "fault")
    well, _ = session.record(name, program, "healthy")
    return None if session.options.device == "cpu" else judge(shlex.split(session.options.plumb), name, sick, well, printed)


def is_here(module):
    return subprocess.run([sys.executable, "-c", f"import importlib.util as u, sys; sys.exit(not u.find_spec('{module}'))"],
                          check=False).returncode == 0


def write_table(rows, path):
    with open(path, "w", encoding="utf-8") as file:
        file.write("| program | what is wrong with it | the first finding | at line |\n|---|---|---|---|\n")
        for row in rows:
            file.write(f"| {row['name']} | {row['fault']} | {row['finding']} | {row['line']} |\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plumb", default="plumb")
    parser.add_argument("--out")
    parser.add_argument("--table")
    parser.add_argument("--program", action="append", choices=sorted(PROGRAMS))
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    options = parser.parse_args()
    rows, failed = [], False
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.out or temporary
        os.makedirs(folder, exist_ok=True)
        session = Session(options, folder)
        for name in options.program or PROGRAMS:
            missing = [module for module in PROGRAMS[name].needs if not is_here(module)]
            if missing or (name == "cuda" and not shutil.which("nvcc")):
                print(f"LEFT OUT {name}: {', '.join(missing) or 'nvcc'} is missing", flush=True)
                continue
            try:
                row = check(session, name)
            except (AssertionError, StopIteration, subprocess.CalledProcessError) as error:
                row = {"name": name, "failed": [str(error)]}
            if row and row["failed"]:
                failed = True
                print(f"FAIL {name}: " + "; ".join(row["failed"]), flush=True)
            else:
                print(f"PASS {name}", flush=True)
            rows += [row] if row and "finding" in row else []
    if options.table:
        write_table(rows, options.table)
    sys.exit(failed)


if __name__ == "__main__":
    main()
