#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cases of examples/cases on a GPU: what plumb finds in them, and what their fix gains.

    python3 cases.py --plumb PATH --out FOLDER      in less than two minutes

Times each variant without plumb (all rounds in one process), records each once, and prints a table for
docs/cases.md. FOLDER gets NAME.plumb.gz (without the paths and names of this machine), NAME.json (what
`plumb report --findings` says of it) and measured.json. Ends with 1 when a case does not hold: its finding
is there before the fix, once, and gone after it, the fix gains, and by no more than the finding's bound.
"""
import argparse
import gzip
import json
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "examples" / "cases"

# What a case is found by: the beginning of a finding's id, and of its title; and how it is recorded.
CASES = {
    "embedding": ("balance", "the backward pass of aten::index at ", ()),
    "unet": ("hotspot-layout", "layout conversions take ", ("--mode", "full")),
    "loss": ("fusion", ("loss_fn ", "fused_loss_fn "), ()),
    "loader": ("latency-workers", "", ("--cpu",)),
    "copies": ("hotspot-pageable", "", ()),
}
VARIANTS = ("", "--fixed")
LINE = re.compile(r"loss (\S+), (\S+) ms a step, (\d+) steps after (\d+)\n")

# Starts a program as far as it does not matter to its times, and the rest when it is told to.
WAITING = """
import runpy, sys, torch
torch.zeros(1, device=sys.argv[1])
print("ready", flush=True)
if not sys.stdin.readline():
    sys.exit(1)
sys.argv = sys.argv[2:]
sys.path.insert(0, {folder!r})
runpy.run_path(sys.argv[0], run_name="__main__")
""".format(folder=str(PROGRAMS))


def findings_of(report, case):
    """The case's own among the findings of a report in JSON."""
    rule, title, _ = CASES[case]
    return [row for row in report["findings"]
            if row["id"].startswith(rule + "-") and row["title"].startswith(title)]


def bound_ms(finding, recorded_steps):
    saving = finding["saving_ns"]
    return None if saving is None else saving / recorded_steps / 1e6


def gain_ms(measured):
    """The least disturbed round of each variant."""
    return min(measured["before_ms"]) - min(measured["fixed_ms"])


# ---- running ----

def start(options, case, variant):
    command = [options.python, "-c", WAITING, options.device, PROGRAMS / f"{case}.py",
               "--device", options.device, "--rounds", str(options.rounds), *variant.split(),
               *options.steps]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def times(process):
    """The time of a step in each round, in milliseconds."""
    output, _ = process.communicate("go\n", timeout=300)
    rounds = LINE.findall(output)
    if process.returncode or not rounds:
        raise SystemExit(f"a program ended with {process.returncode}: {output}")
    return [float(row[1]) for row in rounds]


def record(options, case, variant):
    """Records one run. Returns its profile and how many steps it did in all."""
    path = options.out / f"{case}{variant}.plumb"
    done = subprocess.run([options.plumb, "run", "-o", path, *CASES[case][2], "--",
                           options.python, PROGRAMS / f"{case}.py", "--device", options.device,
                           *variant.split(), *options.steps],
                          capture_output=True, text=True, timeout=300, cwd=ROOT)
    if done.returncode:
        raise SystemExit(f"{case} {variant} ended with {done.returncode} under plumb:\n{done.stderr}")
    _, _, steps, warm_up = LINE.search(done.stdout).groups()
    return path, int(steps) + int(warm_up)


def report(options, path):
    done = subprocess.run([options.plumb, "report", path, "--findings", "--json"],
                          capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


# ---- profiles without the machine ----

def texts(db):
    """(table, column) of everything that can hold text."""
    for table, in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        for column in db.execute(f"PRAGMA table_info({table})").fetchall():
            yield table, column[1]


def scrub(path, out):
    """Takes this machine's folders and names out of a profile."""
    db = sqlite3.connect(path)
    values = dict(db.execute("SELECT key, value FROM environment WHERE process IS NULL"
                             " OR process = 0"))
    renames = [(str(out), "."), (str(ROOT), "/repo")]
    if "/lib/python" in values.get("torch.library", ""):
        renames.append((values["torch.library"].split("/lib/python")[0], "/venv"))
    for table, column in texts(db):
        for old, new in renames:
            db.execute(f"UPDATE {table} SET \"{column}\" = replace(\"{column}\", ?, ?)"
                       f" WHERE typeof(\"{column}\") = 'text' AND instr(\"{column}\", ?)",
                       (old, new, old))
    db.execute("UPDATE processes SET host = 'host'")
    db.execute("UPDATE devices SET uuid = 'GPU-00000000-0000-0000-0000-00000000000' || id")
    for key, value in (("host.name", "host"), ("host.kernel", "Linux")):
        db.execute("UPDATE environment SET value = ? WHERE key = ?", (value, key))
    db.commit()
    db.execute("VACUUM")
    left = {text for table, column in texts(db) for text, in db.execute(
        f"SELECT DISTINCT \"{column}\" FROM {table} WHERE typeof(\"{column}\") = 'text'")
        if re.search(r"(?<![\w.])/(home|root|tmp|opt|work|mnt|srv|data|var)/", text)}
    db.close()
    if left:
        raise SystemExit(f"{path} still names {sorted(left)[:5]}")


def pack(path):
    with open(path, "rb") as source, open(f"{path}.gz", "wb") as target:
        with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=target, mtime=0) as packed:
            shutil.copyfileobj(source, packed)
    path.unlink()


# ---- the table ----

def judge(case, measured, reports):
    """One row of the table, and whether the case holds."""
    before, after = (findings_of(reports[variant], case) for variant in VARIANTS)
    gain = gain_ms(measured)
    bound = bound_ms(before[0], measured["recorded_steps"]) if before else None
    holds = len(before) == 1 and not after and bound is not None and 0 < gain <= bound
    row = (f"`{case}.py`", f"{len(before)} / {len(after)}", f"{min(measured['before_ms']):.3f}",
           f"{min(measured['fixed_ms']):.3f}", f"{gain:.3f}",
           "unknown" if bound is None else f"{bound:.3f}",
           "" if bound is None or gain <= 0 else f"{bound / gain:.2f}")
    return "| " + " | ".join(row) + " |" + ("" if holds else "  <- does not hold"), holds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plumb", required=True, help="the program")
    parser.add_argument("--out", required=True, type=pathlib.Path, help="folder for the profiles")
    parser.add_argument("--python", default="python3", help="one that has PyTorch")
    parser.add_argument("--cases", default=",".join(CASES), help="which, with commas")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", help="instead of each program's own number")
    options = parser.parse_args()
    options.plumb = pathlib.Path(options.plumb).resolve()
    options.out = options.out.resolve()
    options.out.mkdir(parents=True, exist_ok=True)
    options.steps = ["--steps", options.steps] if options.steps else []
    cases = options.cases.split(",")

    # All start at once, because importing PyTorch takes long, and run one after the other.
    waiting = {(case, variant): start(options, case, variant)
               for case in cases for variant in VARIANTS}
    measured = {case: {} for case in cases}
    for process in waiting.values():
        if process.stdout.readline() != "ready\n":
            raise SystemExit("a program did not start")
    for (case, variant), process in waiting.items():
        measured[case]["fixed_ms" if variant else "before_ms"] = times(process)

    rows, all_hold = [], True
    for case in cases:
        reports = {}
        for variant in VARIANTS:
            path, steps = record(options, case, variant)
            scrub(path, options.out)
            reports[variant] = report(options, path)
            (options.out / f"{case}{variant}.json").write_text(json.dumps(reports[variant], indent=1))
            pack(path)
            if not variant:
                measured[case]["recorded_steps"] = steps
        row, holds = judge(case, measured[case], reports)
        rows.append(row)
        all_hold &= holds
    (options.out / "measured.json").write_text(json.dumps(measured, indent=1) + "\n")
    print("| program | finding before / after | before, ms a step | fixed | gain | bound | bound / gain |")
    print("|---|---|---|---|---|---|---|")
    print("\n".join(rows))
    return 0 if all_hold else 1


if __name__ == "__main__":
    sys.exit(main())
