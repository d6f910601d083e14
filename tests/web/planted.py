# SPDX-License-Identifier: Apache-2.0
"""Profiles with samples that are planted at instructions of a real cubin. tests/e2e/whytest.py makes them."""
import os
import subprocess
import sys

from web.browser import ROOT

SCRIPT = "<img src=x onerror=document.title='bad'>"
MAKE = """
import pathlib, sqlite3, sys
from whytest import CUBIN, Cubin, Function, lines, profile
folder, cubin, script = pathlib.Path(sys.argv[1]), CUBIN, sys.argv[2]
code, USE, LOAD = Cubin(cubin), 0x160, 0x110
chase = "_Z5chaseIjEvPKT_PS0_i"
samples = {(USE, "long_scoreboard"): (900, 100), (USE, "wait"): (10, 0), (LOAD, "selected"): (80, 0), (0x130, "not_selected"): (20, 0),
           (0x120, "barrier"): (5, 0)}
def there(rows):
    return [(offset, depth, str(cubin.parent / pathlib.Path(file).name), *rest) for offset, depth, file, *rest in rows]
known = there(lines("row_sums"))
profile(folder / "run.plumb", [Function("row_sums", samples, gpu_ns=5_000_000, lines=known),
    Function(chase, {(0xb0, "long_scoreboard"): (400, 0)}, gpu_ns=1_000_000, lines=there(lines(chase)))])
with sqlite3.connect(folder / "run.plumb") as database:
    put = database.execute
    put("UPDATE run SET analyses = NULL")  # so that findings are made anew
    # Below the kernel chase, the line that waits, as a recording has it.
    put("INSERT INTO frames(id, kind, name, file, line) VALUES (3, 'line', 'stalls.cu:25', ?, 25)", (str(cubin.parent / "stalls.cu"),))
    put("INSERT INTO contexts VALUES (3, 2, 3, 0, 3, 2)")
    put("UPDATE contexts SET last = 3 WHERE id IN (0, 2)")
    for row, (metric, count) in enumerate((("stall.memory", 400), ("stall.execution", 20))):
        put("INSERT INTO context_values(id, context, metric, track, sum, count, min, max, mean, m2) "
            "SELECT 2 + ?, 3, id, 0, ?, ?, 1, 1, 1, 0 FROM metrics WHERE name = ?", (row, count, count, metric))
database.close()
gone = [(offset, depth, "/nowhere/" + script + ".cu", *rest) for offset, depth, file, *rest in known]
profile(folder / "hostile.plumb", [
    Function("row_sums", samples, gpu_ns=5_000_000, lines=gone, text=b""),
    Function(script, samples, gpu_ns=4_000_000, lines=gone, text=code.functions["row_sums"]),
    Function("future", samples, gpu_ns=3_000_000, architecture="sm_999"),
    Function("noise" + chr(0x202e), {(0x9990, "what is this " + script): (50, 5), (0, script): (3, 1)}, text=b"\\xff" * 320)])
text = code.functions["row_sums"]
profile(folder / "long.plumb", [Function("long", {(16 * at, "long_scoreboard"): (100 + at % 7, 3) for at in range(0, 100_000, 400)},
    gpu_ns=1_000_000, text=text[:-32] * 4000)])
profile(folder / "many.plumb", [Function(f"kernel_{number:02}", samples, gpu_ns=9_000_000 - number, text=text, references=[]) for number in range(12)])
"""


def planted(folder):
    """run, hostile, long and many.plumb in FOLDER."""
    subprocess.run([sys.executable, "-c", MAKE, folder, SCRIPT], check=True, timeout=120,
                   env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "tests/e2e"), str(ROOT / "python")])})
    return folder
