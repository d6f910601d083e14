# SPDX-License-Identifier: Apache-2.0
"""plumb why: profiles whose samples are planted at instructions of a real cubin, and code without samples."""
import csv
import io
import json
import pathlib
import random
import sqlite3

import pytest
from conftest import PLUMB, run_command
from sqlitetest import changed
from test_stalls import STALLS, WORK, stalled
from whytest import CUBIN, Cubin, Function, add_launches, lines, profile

LOAD, USE = 0x110, 0x160  # of row_sums: the load at rows.h:8, and the FFMA at stalls.cu:13 that needs it
FATBIN = CUBIN.parent / "walk.fatbin"
STREAM, STREAM_USE = CUBIN.parent / "stream.cubin", 0xe0  # the FFMA that needs both loads
CAUSE = {"kind": (str,), "name": (str, type(None)), "offset": (int, type(None)), "file": (str, type(None)),
         "line": (int, type(None)), "share": (int, float), "samples": (int,), "factors": (dict,), "chain": (list,),
         "confidence": (int, float), "ambiguous_with": (list,), "advice": (str, type(None)),
         "saving_ns": (int, type(None)), "evidence": (str, type(None)), "proved": (bool,)}
STALL = {"offset": (int,), "file": (str, type(None)), "line": (int, type(None)), "inlined": (list,), "reason": (str,),
         "class": (str,), "samples": (int,), "hidden": (int,), "share": (int, float, type(None)), "causes": (list,)}
KERNEL = {"name": (str,), "mangled": (str,), "device": (str, type(None)), "mode": (str,), "samples": (int,),
          "coverage": (int, float, type(None)), "stalls": (list,), "causes": (list,), "problem": (str, type(None)),
          "summary": (str,), "accesses": (list,), "unplaced": (int,), "memory": (dict,)}


def why(*words, **more):
    return run_command(PLUMB, "why", *words, timeout=60, **more)


def answer(*words):
    done = why(*words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def known():
    return {name: lines(name) for name in ("row_sums", "_Z5chaseIjEvPKT_PS0_i", "spills")}


def waiting(known, **more):
    samples = {(USE, "long_scoreboard"): (900, 100), (USE, "wait"): (10, 0), (LOAD, "selected"): (80, 0),
               (0x130, "not_selected"): (20, 0)}
    return Function("row_sums", samples, gpu_ns=5_000_000, lines=known["row_sums"], **more)


@pytest.fixture(scope="module")
def made(tmp_path_factory, known):
    chase = Function("_Z5chaseIjEvPKT_PS0_i", {(0xb0, "long_scoreboard"): (400, 0)}, gpu_ns=1_000_000,
                     lines=known["_Z5chaseIjEvPKT_PS0_i"])
    return profile(tmp_path_factory.mktemp("why") / "run.plumb", [waiting(known), chase])


def wrong(expected, row):
    return {key: row.get(key, "missing") for key, types in expected.items() if not isinstance(row.get(key, "missing"), types)}


# ---- samples ----

def test_the_headline_names_the_cause(made):
    text = why(made).stdout
    head = "\n".join(text.splitlines()[:40])
    assert "83.3 % of the GPU time (5.00 ms), 1,110 samples" in head
    assert "of the waiting is for the load at rows.h:8" in head
    assert "advice" in head and "saving" in head and "of 5.00 ms" in head
    assert text.index("\nrow_sums\n") < text.index("chase<unsigned int>")  # the one with most time first
    assert "inlined at stalls.cu:13" in text


def test_keys_and_conservation(made):
    data = answer(made)
    assert data["verb"] == "why" and data["samples"] == 1510 and len(data["kernels"]) == 2
    for kernel in data["kernels"]:
        assert wrong(KERNEL, kernel) == {}
        assert kernel["mode"] == "continuous" and kernel["device"] == "NVIDIA H200"
        for stall in kernel["stalls"]:
            assert wrong(STALL, stall) == {}
            assert sum(cause["samples"] for cause in stall["causes"]) == stall["samples"]
            for cause in stall["causes"]:
                assert wrong(CAUSE, cause) == {}
                assert set(cause["factors"]) == {"distance", "efficiency", "issue", "match"}
        assert sum(cause["samples"] for cause in kernel["causes"]) == kernel["waiting"] == \
            sum(stall["samples"] for stall in kernel["stalls"])


def test_the_cause_and_its_line(made):
    kernel = answer(made, "row_sums")["kernels"][0]
    stall = kernel["stalls"][0]
    assert (stall["offset"], stall["reason"], stall["class"], stall["samples"], stall["hidden"]) == \
        (USE, "long_scoreboard", "memory", 900, 100)
    cause = stall["causes"][0]
    assert (cause["offset"], pathlib.Path(cause["file"]).name, cause["line"]) == (LOAD, "rows.h", 8)
    assert [(pathlib.Path(at["file"]).name, at["line"]) for at in cause["inlined"]] == [("stalls.cu", 13)]
    assert "element" in cause["inlined"][0]["function"]
    assert cause["share"] > 0.9 and 0 < cause["saving_ns"] <= 5_000_000


def test_a_kernel_by_a_part_of_its_name(made):
    for name in ("chase<unsigned", "_Z5chase", "chase"):
        kernels = answer(made, name)["kernels"]
        assert [kernel["mangled"] for kernel in kernels] == ["_Z5chaseIjEvPKT_PS0_i"]
        assert kernels[0]["name"].startswith("void chase<unsigned int>")
        assert kernels[0]["causes"][0]["line"] == 25 and kernels[0]["causes"][0]["name"] == "pointer indirection"
    done = why(made, "no such kernel")
    assert done.returncode == 3 and "no such kernel" in done.stderr and len(done.stderr.splitlines()) == 1


def test_csv(made):
    rows = list(csv.DictReader(io.StringIO(why(made, "--csv").stdout)))
    first = rows[0]
    assert (first["kernel"], first["offset"], first["reason"], first["samples"]) == ("row_sums", str(USE), "long_scoreboard", "900")
    assert (first["cause_line"], pathlib.Path(first["cause_file"]).name) == ("8", "rows.h")
    shares = {}
    for row in rows:
        shares.setdefault((row["kernel"], row["offset"], row["reason"]), []).append(float(row["cause_share"]))
    assert all(abs(sum(share) - 1) < 1e-6 for share in shares.values())


def test_line_both_ways(made):
    caused = answer(made, "--line", "rows.h:8")["kernels"]
    assert [kernel["name"] for kernel in caused] == ["row_sums"]
    assert (caused[0]["stalls"][0]["at_line"], caused[0]["stalls"][0]["caused_by_line"]) == (False, True)
    at = answer(made, "--line", "stalls.cu:13")["kernels"][0]["stalls"]
    assert at[0]["offset"] == USE and at[0]["at_line"]
    assert "your line causes this stall" in why(made, "--line", "rows.h:8").stdout
    done = why(made, "--line", "rows.h:9999")
    assert done.returncode == 3 and "rows.h:9999" in done.stderr
    assert why(made, "--line", "rows.h").returncode == 1
    assert "your line causes this stall" in why("--static", CUBIN, "--line", "rows.h:8").stdout  # of the last kernel
    assert why(made, "--line", "ows.h:8").returncode == 3  # a whole name, or the end of a path


def test_top_and_kernels(made):
    assert [len(kernel["stalls"]) for kernel in answer(made, "--top", "1")["kernels"]] == [1, 1]
    data = answer(made, "--kernels", "1")
    assert len(data["kernels"]) == 1 and data["kernels_left_out"] == 1
    assert "1 more" in why(made, "--kernels", "1").stdout


def test_several_processes_with_one_module(tmp_path, known):
    path = profile(tmp_path / "ranks.plumb", [waiting(known)], processes=3, twice=True)
    kernels = answer(path, "--by", "rank")["kernels"]
    assert len(kernels) == 1
    kernel = kernels[0]
    assert kernel["samples"] == 3 * 1110 and kernel["devices"] == 3 and kernel["device"] is None
    assert [group["number"] for group in kernel["groups"]] == [0, 1, 2]
    for group in kernel["groups"]:
        assert group["waiting"] == 910 and abs(sum(group["causes"]) - 910) < 1e-6
    assert "exposed samples of each rank, 3 of them" in why(path, "--by", "rank").stdout


def test_which_cause_moved(tmp_path, known):
    first = waiting(known)
    slow = Function("row_sums", {(USE, "long_scoreboard"): (4000, 0), (USE, "wait"): (10, 0)}, lines=known["row_sums"])
    path = profile(tmp_path / "ranks.plumb", [first], processes=2, twice=True)
    with sqlite3.connect(path) as database:
        database.execute("UPDATE code_samples SET count = 4000 WHERE process = 1 AND reason = 'long_scoreboard' AND issued = 0")
    database.close()
    assert slow.name == first.name
    kernel = answer(path, "--by", "rank")["kernels"][0]
    load = next(i for i, cause in enumerate(kernel["causes"]) if cause["line"] == 8)
    assert kernel["groups"][1]["causes"][load] - kernel["groups"][0]["causes"][load] > 3000
    table = why(path, "--by", "rank").stdout.split("exposed samples of each rank")[1].splitlines()
    assert "rows.h:8" in table[2] and "(0)" in table[2] and "(1)" in table[2]  # the one that moved is the first row


def test_iterations_need_launches(made):
    done = why(made, "--by", "iteration")
    assert done.returncode == 1 and "--stalls-mode=serialised" in done.stderr and len(done.stderr.splitlines()) == 1


def test_by_iteration(tmp_path):
    names = ("row_sums", "other", "third")
    events = [{"ph": "M", "name": "process_name", "pid": 9, "args": {"name": "python train.py"}}]
    for step in range(20):
        for i, name in enumerate(names):
            events.append({"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": 1000 * step + 100 * i,
                           "dur": 50, "args": {"device": 0, "stream": 7, "correlation": 10 * step + i + 1}})
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": events, "schemaVersion": 1}))
    path = tmp_path / "run.plumb"
    assert run_command(PLUMB, "import", tmp_path / "trace.json", "-o", path).returncode == 0
    found = json.loads(run_command(PLUMB, "iters", path, "--json").stdout)
    assert "row_sums" in json.dumps(found)
    starts = sorted(span.start_ns for span in __import__("plumb").Profile(path).spans() if span.end_ns - span.start_ns)
    launches = starts[::3]
    assert len(launches) == 20
    add_launches(path, "row_sums", {at: {(USE, "long_scoreboard"): 100 if i != 7 else 900} for i, at in enumerate(launches)})
    kernel = answer(path, "row_sums", "--by", "iteration")["kernels"][0]
    assert kernel["mode"] == "serialised"
    counts = {group["number"]: group["waiting"] for group in kernel["groups"]}
    assert sorted(counts.values())[-1] == 900 and sorted(counts.values())[0] == 100 and len(counts) >= 18


def test_what_is_known_comes_first(tmp_path, known):
    function = waiting(known)
    function.samples = {(USE, "long_scoreboard"): (300, 0), (0x10, "long_scoreboard"): (700, 0)}  # nothing explains these
    path = profile(tmp_path / "x.plumb", [function])
    kernel = answer(path)["kernels"][0]
    assert [(cause["kind"], cause["samples"]) for cause in kernel["causes"]] == [("unknown", 700), ("data", 300)]
    assert kernel["summary"].startswith("30.0 % of the waiting is for the load at rows.h:8")
    function.samples = {(USE, "long_scoreboard"): (30, 0), (0x10, "long_scoreboard"): (970, 0)}
    kernel = answer(profile(path, [function]))["kernels"][0]
    assert kernel["summary"].startswith("97.0 % of the waiting is for something that plumb cannot explain")
    done = run_command(PLUMB, "report", path, "--json", "--threshold", "stalls.share=4%")
    findings = json.loads(done.stdout)["findings"]
    finding, = [row for row in findings if row["rule"] == "stalls"]
    assert finding["saving_ns"] is None and "no rule explains it" in finding["advice"]


# ---- what is missing ----

def test_no_samples(tmp_path):
    path = tmp_path / "none.plumb"
    run_command(PLUMB, "run", "-o", path, "--", "true")
    done = why(path)
    assert done.returncode == 3 and "plumb run --stalls" in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("change, says", [
    ({"text": b""}, "does not have its machine code"),
    ({"architecture": "sm_999"}, "sm_999"),
    ({"architecture": "gfx942"}, "gfx942"),
    ({"text": b"\1\2\3"}, ""),
])
def test_code_that_cannot_be_read(tmp_path, known, change, says):
    path = profile(tmp_path / "x.plumb", [waiting(known, **change)])
    kernel = answer(path)["kernels"][0]
    assert says in kernel["problem"] and "\n" not in kernel["problem"]
    assert [(s["offset"], s["line"], s["reason"], s["samples"], s["hidden"], s["causes"]) for s in kernel["stalls"]] == \
        [(USE, 13, "long_scoreboard", 900, 100, []), (USE, 13, "wait", 10, 0, [])]
    text = why(path).stdout
    assert "98.9 % of the waiting is at +0x160: long_scoreboard" in text and kernel["problem"][:40] in text.replace("\n           ", " ")
    assert why(path, "--annotate").returncode == 0 and why(path, "--prompt").returncode == 0


def test_samples_outside_the_code(tmp_path, known):
    function = waiting(known)
    function.samples = {**function.samples, (0x99990, "long_scoreboard"): (50, 5)}
    path = profile(tmp_path / "x.plumb", [function])
    kernel = answer(path)["kernels"][0]
    assert kernel["outside"] == 55 and kernel["stalls"][0]["samples"] == 900 and kernel["problem"] is None
    assert "55 samples are outside" in why(path).stdout


def test_instructions_that_are_not_known(tmp_path, known):
    code = bytearray(Cubin(CUBIN).functions["row_sums"])
    code[0:16] = b"\xff" * 16
    path = profile(tmp_path / "x.plumb", [waiting(known, text=bytes(code))])
    kernel = answer(path)["kernels"][0]
    assert kernel["unknown_instructions"] == 1 and kernel["stalls"][0]["causes"][0]["line"] == 8
    assert "cannot decode 1 instruction" in why(path).stdout


def test_code_that_is_noise(tmp_path):
    chance = random.Random(3)
    for number in range(12):
        noise = chance.randbytes(16 * 200)
        samples = {(16 * chance.randrange(210), chance.choice(("long_scoreboard", "wait", "barrier", "what is this"))):
                   (chance.randrange(1, 99), chance.randrange(9)) for _ in range(60)}
        path = profile(tmp_path / f"{number}.plumb", [Function("noise", samples, text=noise, gpu_ns=1000)])
        kernel = answer(path)["kernels"][0]
        for stall in kernel["stalls"]:
            assert not stall["causes"] or sum(cause["samples"] for cause in stall["causes"]) == stall["samples"]
        for option in ((), ("--annotate",), ("--prompt",)):
            assert why(path, *option).returncode == 0


def test_hostile_rows(made, tmp_path):
    big = 2**62
    for number, statement in enumerate((
            f"UPDATE code_samples SET count = {big}",
            f"UPDATE code_samples SET offset = {big} WHERE id = (SELECT max(id) FROM code_samples)",
            "UPDATE code_lines SET line = 4294967295",
            "UPDATE code_samples SET reason = NULL",
            "UPDATE code_functions SET name = NULL",
            "UPDATE code_functions SET is_kernel = 0",
            "UPDATE code_functions SET registers = NULL, stack_bytes = NULL, shared_bytes = NULL",
            "UPDATE code_objects SET hash = NULL",
            "UPDATE variants SET grid_x = 2147483647, grid_y = 2147483647, grid_z = 2147483647",
            "INSERT INTO code_references VALUES (0, 0, 0, 'row_sums'), (1, 0, 16, '_Z5chaseIjEvPKT_PS0_i'), "
            "(2, 1, 0, 'row_sums'), (3, 1, 999999, 'row_sums')",
            "UPDATE context_values SET sum = -5")):
        path = changed(made, tmp_path / f"{number}.plumb", statement)
        for option in ((), ("--json",), ("--annotate",), ("--prompt",), ("--by", "rank")):
            done = why(path, *option)
            assert done.returncode in (0, 2, 3), (statement, option, done.stderr)
            assert len(done.stderr.splitlines()) <= 1, (statement, done.stderr)


# ---- savings ----

def stream(path, gpu_ns):
    """132 blocks of 8 warps, each of which moves 384 bytes, in GPU_NS."""
    function = Function("stream", {(STREAM_USE, "long_scoreboard"): (900, 0), (0xf0, "selected"): (100, 0)}, gpu_ns=gpu_ns)
    return profile(path, [function], cubin=STREAM)


def test_memory_bounds_what_can_be_saved(tmp_path):
    path = stream(tmp_path / "x.plumb", 100)
    kernel, text = answer(path)["kernels"][0], why(path).stdout
    memory, cause = kernel["memory"], kernel["causes"][0]
    assert memory["bytes_per_second"] == pytest.approx(132 * 8 * 384 / 100e-9)
    assert memory["peak_bytes_per_second"] == 4.8e12 and memory["part"] == pytest.approx(0.8448)
    assert memory["headroom"] == pytest.approx(1 - 0.8448 / 0.9)
    assert cause["saving"] == pytest.approx(memory["headroom"]) and cause["saving_ns"] == 6
    assert cause["saving_fewer_bytes"] == pytest.approx(0.9)
    assert all(one["saving"] <= cause["saving"] for one in kernel["stalls"][0]["causes"])
    assert "no headroom" in text and "84.5 %" in text and "Let independent work run" not in text


@pytest.mark.parametrize("gpu_ns, part", [(400, 0.2112), (60, None)])
def test_memory_that_bounds_nothing(tmp_path, gpu_ns, part):
    """Slow enough for other causes; faster than memory, so a cache has the bytes."""
    path = stream(tmp_path / "x.plumb", gpu_ns)
    kernel = answer(path)["kernels"][0]
    assert kernel["memory"]["part"] == (part and pytest.approx(part))
    text = why(path).stdout
    assert "headroom" not in text
    if not part:
        assert kernel["causes"][0]["saving_fewer_bytes"] is None and kernel["causes"][0]["saving"] == pytest.approx(0.9)


def test_all_causes_of_a_line_are_added_up(made):
    causes = answer(made, "row_sums")["kernels"][0]["causes"]
    for cause in causes:
        same = [one for one in causes if (one["file"], one["line"]) == (cause["file"], cause["line"])]
        assert cause["saving_line"] is None or cause["saving_line"] <= 1
        assert (cause["saving_line"] or 0) >= max(one["saving"] or 0 for one in same) - 1e-9


# ---- functions that kernels call ----

def test_samples_in_a_called_function_that_have_no_place(tmp_path):
    code = Cubin(CUBIN).functions["row_sums"]
    chase = "_Z5chaseIjEvPKT_PS0_i"
    functions = [Function(chase, {(0xb0, "long_scoreboard"): (100, 0)}, gpu_ns=1000, references=[(0x100, "helper")]),
                 Function("helper", {}, kernel=False, text=code, lines=lines("row_sums"))]
    path = profile(tmp_path / "x.plumb", functions)
    assert answer(path)["kernels"][0]["unplaced"] == 0
    add = "INSERT INTO ledger(id, process, source, fate, count) VALUES (0, 0, 'gpu.stall', 'system_kernel', {})"
    few = answer(changed(path, tmp_path / "few.plumb", add.format(50)))["kernels"][0]
    assert few["unplaced"] == 0 and few["samples"] == 100, "less than half of the samples is no sign"
    small = changed(path, tmp_path / "small.plumb", add.format(1900), "UPDATE variants SET grid_x = 4")
    assert answer(small)["kernels"][0]["unplaced"] == 0, "four blocks are on four of 132 multiprocessors"
    much = changed(path, tmp_path / "much.plumb", add.format(1900))
    kernel = answer(much)["kernels"][0]
    assert (kernel["unplaced"], kernel["samples"], kernel["waiting"]) == (1900, 2000, 2000) and kernel["estimated"]
    assert kernel["stalls"][0]["function"] == "helper"
    assert sum(stall["samples"] for stall in kernel["stalls"]) == 2000
    for stall in kernel["stalls"]:
        assert sum(cause["samples"] for cause in stall["causes"]) == stall["samples"]
    cause = kernel["causes"][0]
    assert (cause["function"], cause["line"]) == ("helper", 8) and cause["confidence"] < 0.5
    assert "1,900 of the samples" in " ".join(why(much).stdout.split())


# ---- functions that several kernels call ----

def test_a_function_that_two_kernels_call(tmp_path):
    code = Cubin(CUBIN).functions["row_sums"]
    chase = "_Z5chaseIjEvPKT_PS0_i"
    calls = [(0x100, "helper")]
    functions = [Function("row_sums", {(USE, "long_scoreboard"): (300, 0)}, references=calls),
                 Function(chase, {(0xb0, "long_scoreboard"): (100, 0)}, references=calls),
                 Function("helper", {(USE, "long_scoreboard"): (80, 0)}, kernel=False, text=code)]
    path = profile(tmp_path / "x.plumb", functions)
    kernels = {kernel["mangled"]: kernel for kernel in answer(path)["kernels"]}
    assert {name: kernel["samples"] for name, kernel in kernels.items()} == {"row_sums": 360, chase: 120}
    assert all(kernel["estimated"] for kernel in kernels.values())
    assert "estimate" in why(path).stdout
    assert {stall["function"] for stall in kernels[chase]["stalls"]} == {chase, "helper"}


def test_functions_that_call_each_other(tmp_path):
    code = Cubin(CUBIN).functions["row_sums"]
    functions = [Function("one", {(USE, "wait"): (5, 0)}, kernel=False, text=code, references=[(0x100, "two"), (0x110, "one")]),
                 Function("two", {(USE, "wait"): (7, 0)}, kernel=False, text=code, references=[(0x100, "one")])]
    data = answer(profile(tmp_path / "x.plumb", functions))
    assert data["samples"] == 12 and sum(kernel["samples"] for kernel in data["kernels"]) == 12


def test_a_function_that_nobody_calls(tmp_path):
    path = profile(tmp_path / "x.plumb", [Function("row_sums", {(USE, "wait"): (5, 0)}, kernel=False)])
    assert [kernel["name"] for kernel in answer(path)["kernels"]] == ["row_sums"]


# ---- code without samples ----

@pytest.mark.parametrize("kernel, line, name", [
    ("chase", 25, "pointer indirection"), ("spills", 53, "spill"), ("row_sums", 8, "uncoalesced access")])
def test_static(kernel, line, name):
    found = answer("--static", CUBIN, kernel)["kernels"][0]
    assert found["mode"] == "static" and found["samples"] == 0 and found["gpu_ns"] is None
    assert found["causes"][0]["line"] == line and found["causes"][0]["name"] == name
    assert found["causes"][0]["saving_ns"] is None
    assert "of the estimated waiting is for the load" in why("--static", CUBIN, kernel).stdout


@pytest.mark.parametrize("kernel, line, name", (
    ("copy", 9, "missed vectorisation"), ("transpose", 15, "uncoalesced access"),
    ("headers", 22, "latency chain"), ("digits", 30, "integer division")))
def test_static_of_ampere(kernel, line, name):
    """There the size of an element is in a register, and causes are in headers of libraries."""
    cause = answer("--static", CUBIN.with_name("names.cubin"), kernel)["kernels"][0]["causes"][0]
    assert (cause["file"].rpartition("/")[2], cause["line"], cause["name"]) == ("names.cu", line, name)
    library = (cause["library_file"] or "").rpartition("/")[2], cause["library_line"]
    assert library == (("lanes.cuh", 5) if kernel == "headers" else ("", None))


def test_static_names_your_line():
    """An instruction of a library's header is called by the line of yours that it was inlined at."""
    text = why("--static", CUBIN.with_name("names.cubin"), "headers").stdout
    assert "is for the special function at names.cu:22" in text and ", by lanes.cuh:5" in text


def test_static_accesses():
    rows = answer("--static", CUBIN, "spills")["kernels"][0]["accesses"]
    local = [row for row in rows if row["space"] == "local"]
    assert {row["class"] for row in local} == {"load", "store"}
    loads = [row for row in rows if row["space"] == "global" and row["class"] == "load"]
    assert [(row["line"], row["instructions"], row["bytes"]) for row in loads] == [(48, 40, 4)]
    barriers = [row for row in answer("--static", CUBIN, "shared")["kernels"][0]["accesses"] if row["class"] == "barrier"]
    assert [(row["line"], row["instructions"]) for row in barriers] == [(37, 1)]


def test_static_architectures():
    kernels = answer("--static", FATBIN)["kernels"]
    assert [kernel["architecture"] for kernel in kernels] == ["sm_75", "sm_90"]
    assert [k["architecture"] for k in answer("--static", FATBIN, "--arch", "sm_75")["kernels"]] == ["sm_75"]
    done = why("--static", FATBIN, "--arch", "sm_80")
    assert done.returncode == 3 and "sm_80" in done.stderr
    assert "nvcc -lineinfo adds them" in why("--static", FATBIN).stdout


def test_static_of_what_is_no_code(tmp_path, made):
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "text").write_text("hello")
    for path, code in ((tmp_path / "empty", 2), (tmp_path / "text", 3), (tmp_path / "none", 2), (tmp_path, 2), ("/bin/sh", 3)):
        done = why("--static", path)
        assert done.returncode == code and len(done.stderr.splitlines()) == 1 and not done.stdout, (path, done.stderr)
        assert str(path) in done.stderr
    done = why("--static", made)
    assert done.returncode == 1 and "is a profile" in done.stderr
    done = why(CUBIN)
    assert done.returncode == 1 and f"plumb why --static {CUBIN}" in done.stderr
    assert why("--static", CUBIN, "no such kernel").returncode == 3
    assert why(made, "--arch", "sm_90").returncode == 1


def test_static_of_damaged_code(tmp_path):
    data, chance = CUBIN.read_bytes(), random.Random(9)
    damaged = [data[:length] for length in range(0, len(data), len(data) // 40)]
    for _ in range(40):
        copy = bytearray(data)
        for _ in range(8):
            copy[chance.randrange(16, len(copy))] = chance.randrange(256)
        damaged.append(bytes(copy))
    for number, content in enumerate(damaged):
        path = tmp_path / f"{number}.cubin"
        path.write_bytes(content)
        done = why("--static", path, "--json")
        assert done.returncode in (0, 2, 3), (number, done.stderr)
        assert done.returncode == 0 or len(done.stderr.splitlines()) == 1


# ---- the listing ----

def test_listing(made, tmp_path):
    done = why(made, "row_sums", "--annotate", env={"PATH": str(tmp_path)})
    assert done.returncode == 0
    assert done.stderr.count("nvdisasm is not installed") == 1 and len(done.stderr.splitlines()) == 1
    text = done.stdout.splitlines()
    assert any("plumb's decoder" in line for line in text)
    use = next(line for line in text if f"  {USE:06x}  " in line)
    assert use.split()[0] == "1,010" and "FFMA" in use and "long_scoreboard 900, long_scoreboard 100 hidden" in use
    assert f"+{LOAD:#x}" in use  # it depends on the load
    assert any(line.startswith("rows.h:8") and "inlined at stalls.cu:13" in line for line in text)


def test_listing_by_nvdisasm(made, tmp_path):
    fake = tmp_path / "nvdisasm"
    size = len(Cubin(CUBIN).functions["row_sums"])
    fake.write_text("#!/bin/sh\n[ \"$1 $2\" = '-b SM90' ] || exit 1\n" +
                    "".join(f"echo '        /*{at:04x}*/    WORDS R{at} ;   '\n" for at in range(0, size, 16)))
    fake.chmod(0o755)
    done = why(made, "row_sums", "--annotate", env={"PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert not done.stderr and "instruction (nvdisasm)" in done.stdout and f"WORDS R{USE}" in done.stdout
    fake.write_text("#!/bin/sh\nexit 1\n")
    done = why(made, "row_sums", "--annotate", env={"PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert "cannot disassemble code for sm_90" in done.stderr and len(done.stderr.splitlines()) == 1
    assert "FFMA" in done.stdout


def test_listing_as_json(made):
    rows = answer(made, "row_sums", "--annotate")["kernels"][0]["listing"]
    use = next(row for row in rows if row["offset"] == USE)
    assert (use["samples"], use["waiting"], use["hidden"], use["classes"]) == \
        (1010, 910, 100, {"memory": 1000, "execution": 10})
    assert LOAD in [edge["offset"] for edge in use["waits_for"]]
    assert why(made, "--annotate", "--csv").returncode == 1


# ---- for a language model ----

def test_prompt(tmp_path, known):
    source = tmp_path / "stalls.cu"
    source.write_bytes((CUBIN.parent / "stalls.cu").read_bytes())
    (tmp_path / "rows.h").write_bytes((CUBIN.parent / "rows.h").read_bytes())
    function = waiting(known)
    function.lines = [(offset, depth, str(tmp_path / pathlib.Path(file).name), line, inlined)
                      for offset, depth, file, line, inlined in function.lines]
    path = profile(tmp_path / "x.plumb", [function])
    texts = [why(path, f"--prompt={what}").stdout for what in ("code", "stalls", "causes")]
    assert all("return in[row * 32 + c] * 0.5f;" in text for text in texts)
    assert ["long_scoreboard" in text for text in texts] == [False, True, True]
    assert ["Cause:" in text for text in texts] == [False, False, True]
    assert texts[2] == why(path, "--prompt").stdout
    assert max(map(len, texts)) < 30000
    source.write_text("".join(f"// {'x' * 90} {i}\n" for i in range(100000)))
    function.lines = [(16 * i, 0, str(source), 10 * i + 1, None) for i in range(40)]
    assert len(why(profile(path, [function]), "--prompt").stdout) < 30000


def test_prompt_without_source(made):
    text = why(made, "row_sums", "--prompt").stdout
    assert "The source is not on this machine" in text and "FFMA" in text


def test_prompt_reads_no_other_files(tmp_path, known):
    for name in ("secret", "secret.txt", "id_rsa"):
        secret = tmp_path / name
        secret.write_text("TOPSECRET\n" * 50)
        function = waiting(known)
        function.lines = [(0, 0, str(secret), 8, None)]
        path = profile(tmp_path / "x.plumb", [function])
        assert "TOPSECRET" not in why(path, "--prompt").stdout + why(path, "--annotate").stdout


def test_wrong_use(made):
    for words in (("--prompt", "--json"), ("--json", "--csv"), ("--prompt", "--annotate"), ("a", "b")):
        done = why(made, *words)
        assert done.returncode == 1 and done.stderr.startswith("plumb: "), words


# ---- a whole run, on the stand-in driver ----

def test_a_run_with_samples(tmp_path):
    made = stalled(tmp_path, *STALLS, *WORK)
    kernels = {kernel["name"]: kernel for kernel in answer(made.path)["kernels"]}
    gather = kernels["gather"]
    stall = next(stall for stall in gather["stalls"] if stall["offset"] == 192)
    assert (stall["samples"], stall["hidden"], stall["line"]) == (160, 40, 21)
    assert sum(cause["samples"] for cause in stall["causes"]) == 160
    assert gather["gpu_ns"] == 12000 and gather["outside"] == 0
    inlined = next(stall for stall in gather["stalls"] if stall["offset"] == 240)
    assert inlined["line"] == 13 and [at["line"] for at in inlined["inlined"]] == [22]
    cause = inlined["causes"][0]
    assert (cause["offset"], cause["line"], cause["share"]) == (224, 21, 1) and cause["proved"]
    assert "the load at kernels.cu:21" in why(made.path).stdout


def test_a_serialised_run(tmp_path):
    made = stalled(tmp_path, *STALLS, *WORK, options=("--stalls-mode=serialised",))
    kernels = {kernel["name"]: kernel for kernel in answer(made.path)["kernels"]}
    assert kernels["gather"]["mode"] == "serialised" and not kernels["gather"]["estimated"]
