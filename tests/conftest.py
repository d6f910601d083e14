# SPDX-License-Identifier: Apache-2.0
"""Makes every case of the C unit tests (tests/unit/test_*.c, cmocka) an item of pytest's run.

The programs are built by `make unit-programs` into $BUILD/unit. Each runs once; its cases are taken
from its own report.
"""
import fcntl
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import types

import pytest
from _pytest import runner

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("BUILD") or ROOT / "build").resolve()

# With PYTHONDONTWRITEBYTECODE each worker would compile all tests again, which takes seconds. Programs that tests start
# have the environment as it is.
if sys.dont_write_bytecode:
    sys.dont_write_bytecode, sys.pycache_prefix = False, str(BUILD / "pycache")


def pytest_collect_file(file_path, parent):
    if file_path.suffix == ".c" and file_path.match("tests/unit/test_*.c"):
        return UnitProgram.from_parent(parent, path=file_path)
    return None


class UnitProgram(pytest.File):
    """One cmocka program; its cases are read from the source, its results from one run."""

    def collect(self):
        source = self.path.read_text()
        short = re.findall(r"^#define (\w+)\(\w+\) cmocka_unit_test.*$", source, re.M)
        source = re.sub(r"^#define .*$", "", source, flags=re.M)
        cases = "|".join([r"cmocka_unit_test\w*", *short])
        for name in dict.fromkeys(re.findall(rf"\b(?:{cases})\(\s*(\w+)", source)):
            yield UnitCase.from_parent(self, name=name)

    def results(self):
        """The program's exit status, whole output, and {case: passed}; runs it the first time."""
        if not hasattr(self, "_results"):
            program = BUILD / "unit" / self.path.stem
            if not program.exists():
                pytest.fail(f"{program} is not built: run make test", pytrace=False)
            done = subprocess.run([program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  cwd=ROOT, timeout=600, errors="replace",
                                  env={**os.environ, "CMOCKA_MESSAGE_OUTPUT": "stdout"})
            cases = {}  # a case may run more than once
            for state, name in re.findall(r"^\[\s+(OK|FAILED)\s+\] (\w+)", done.stdout, re.M):
                cases[name] = cases.get(name, True) and state == "OK"
            skipped = set(re.findall(r"^\[\s+SKIPPED\s+\] (\w+)", done.stdout, re.M))
            self._results = done.returncode, done.stdout, cases, skipped
        return self._results


class UnitCase(pytest.Item):
    def runtest(self):
        status, output, cases, skipped = self.parent.results()
        if self.name in skipped:
            pytest.skip("the program skipped it")
        if not cases.get(self.name):
            raise UnitFailure(status, output)
        if status and all(cases.values()):  # it died at its end, e.g. of a leak
            raise UnitFailure(status, output)

    def repr_failure(self, excinfo, style=None):
        if isinstance(excinfo.value, UnitFailure):
            status, output = excinfo.value.args
            return f"{self.path.stem} ended with status {status}\n{output}"
        return super().repr_failure(excinfo, style)

    def reportinfo(self):
        return self.path, None, f"{self.path.stem}: {self.name}"


class UnitFailure(Exception):
    pass


# ---- two tests at once ----

# A processor that does something else spoils what they measure. So they come after all other tests, and only one of each
# kind may run: most of the time two of the three only wait.
# Files of different kinds follow each other: a worker that waits for its kind cannot run another one. Each kind's longest file comes
# first. Those that wait are in two kinds of about the same length.
ALONE = {"test_measure_cost.py": "waits", "test_cpu.py": "computes", "test_waiting.py": "waits, too", "test_windows_find.py": "computes",
         "test_waiting_lines.py": "waits, too", "test_iters_samples.py": "computes", "test_ranks_late.py": "waits", "test_glimpses.py": "computes",
         "test_windows.py": "waits"}
# A busy machine hardly ever disturbs these: they run beside others, but they are measured again, too.
MEASURE = {*ALONE, "test_divided.py", "test_host_time.py", "test_levels.py", "test_outside.py", "test_signals.py", "test_tasks.py", "test_windows_ends.py"}
# These take longest, so they begin first: a long file at the end would leave a processor idle.
LONG = ["test_house.py", "test_wheel.py", "test_fuzz.py", "test_processes.py", "test_signals.py", "test_bad_times.py", "test_modules.py",
        "test_pages.py", "test_marks.py", "test_torture.py", "test_guides.py", "test_lean.py", "test_python_walker.py", "test_compiled.py",
        "test_native_walk.py", "test_trace.py", "test_bench.py", "test_report_calls.py", "test_monitor.py", "test_derived.py", "test_editors.py",
        "test_windows_ends.py"]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Long files first, those that need the machine last. In a file, the tests of one Python follow each other: a fixture
    that records with it is made once. pytest's own order goes back and forth between them, and between files."""
    pythons = list(dict.fromkeys(map(torch_python_of, items)))
    first, last = ({name: number for number, name in enumerate(names)} for names in (LONG, ALONE))
    items.sort(key=lambda item: (first.get(item.path.name, len(LONG)), last.get(item.path.name, -1), item.path,
                                 pythons.index(torch_python_of(item))))


def torch_python_of(item):
    return getattr(getattr(item, "callspec", None), "params", {}).get("torch_python")


_held = []  # the lock of this worker, while it has the machine
PATIENCE = 300  # seconds in which no test ends: a worker has crashed, or its next tests are behind one of ALONE


def shared(name):
    """A file of all workers of this run."""
    return pathlib.Path(tempfile.gettempdir()) / f"plumb-tests-{os.environ['PYTEST_XDIST_TESTRUNUID']}.{name}"


def wait_for_others(items):
    """Until all tests but those of ALONE are done: each adds a byte to a file."""
    others = sum(item.path.name not in ALONE for item in items)
    done, since = 0, time.monotonic()
    while done < others and time.monotonic() < since + PATIENCE:
        time.sleep(0.1)
        before, done = done, shared("done").stat().st_size if shared("done").exists() else 0
        if done != before:
            since = time.monotonic()


@pytest.hookimpl(hookwrapper=True, specname="pytest_runtest_protocol")
def pytest_have_the_machine(item, nextitem):
    """Of several pytest workers (scripts/test.sh). Tests of one kind that follow each other keep the machine."""
    several, kind = "PYTEST_XDIST_TESTRUNUID" in os.environ, ALONE.get(item.path.name)
    if several and kind and not _held:
        wait_for_others(item.session.items)
        _held.append(open(shared(kind), "w", encoding="ascii"))
        fcntl.flock(_held[0], fcntl.LOCK_EX)
    yield
    if several and not kind:
        with open(shared("done"), "a", encoding="ascii") as done:
            done.write(".")
    if _held and not (nextitem and ALONE.get(nextitem.path.name) == kind):
        _held.pop().close()


# ---- a machine that others use, too ----

TRIES = 3
BUSY = 0.05  # of the time something waited for a processor or the disk, or the host gave the processor to another machine


def waited():
    """Seconds since the machine started for which something that could run did not; 0 where the kernel tells none."""
    seconds = 0.0
    try:
        steal = int(pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[8])
        seconds += steal / os.sysconf("SC_CLK_TCK") / (os.cpu_count() or 1)
        for what in ("cpu", "io"):
            pressure = pathlib.Path(f"/proc/pressure/{what}").read_text()
            seconds += int(re.search(r"^some .*total=(\d+)", pressure, re.M).group(1)) / 1e6
    except (OSError, AttributeError, IndexError, ValueError):
        pass
    return seconds


@pytest.hookimpl(specname="pytest_runtest_protocol")
def pytest_measure_again(item, nextitem):
    """A test of MEASURE that fails while the machine is busy says nothing: it is run again, and counted as "rerun". On a
    quiet machine, and at the last try, it has failed. What fixtures of the module recorded is recorded again."""
    if item.path.name not in MEASURE:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for left in reversed(range(TRIES)):
        begin, before = time.monotonic(), waited()
        reports = runner.runtestprotocol(item, nextitem=nextitem, log=False)
        busy = waited() - before > BUSY * (time.monotonic() - begin)
        again = left and busy and any(report.failed for report in reports)
        for report in reports:
            if again and report.failed:
                report.outcome = "rerun"
            if not again or report.outcome == "rerun":
                item.ihook.pytest_runtest_logreport(report=report)
        if not again:
            break
        nodes = item.listchain()
        above = nodes[:nodes.index(item.getparent(pytest.Module))]
        item.session._setupstate.teardown_exact(types.SimpleNamespace(listchain=lambda: above))
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def pytest_report_teststatus(report):
    return ("rerun", "R", ("RERUN", {"yellow": True})) if report.outcome == "rerun" else None
