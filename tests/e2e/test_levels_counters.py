# SPDX-License-Identifier: Apache-2.0
"""plumb levels --counters: one more run counts kernels on the stand-in driver, and its known counts are at the call
paths of the first run. What that run did otherwise is named, and has no counters."""
import json
import sys

import pytest
from conftest import PLUMB, ROOT, run_command
from plumbtest import PROGRAMS, environment_for_programs, query
from test_mock_gpu import NEWEST, mock_environment

GEMM = {"flop_count_sp": 2000, "dram_read_bytes": 700, "dram_write_bytes": 300, "achieved_occupancy": 500000}
NAMES = "--counters=" + ",".join(GEMM)
def counted(folder, *arguments, python=sys.executable, options=(NAMES,), scenario="", status=0):
    env = environment_for_programs(PYTHONPATH=f"{ROOT / 'python'}:{PROGRAMS}", **mock_environment(NEWEST, scenario))
    done = run_command(PLUMB, "levels", "--runs=1", "--serialised=never", "-o", folder / "l.plumb", "--json", *options, "--", python,
                       PROGRAMS / "counted.py", *arguments, cwd=folder, env=env, timeout=300)
    assert done.returncode == status, done.stderr
    assert not [path.name for path in folder.iterdir() if path.name.startswith(".plumb")]
    return json.loads(done.stdout) if status == 0 else done


def level(answer):
    found = [row for row in answer["measured"] if row["level"] == "M/L/G/C"]
    assert len(found) <= 1
    return found[0] if found else None


def counters(folder):
    """{kernel: {counter: of a launch}}, each of one context. Of eight launches the first, second, fourth and eighth are counted,
    without one during which plumb reads the counters."""
    found = {}
    for kernel, name, total, count in query(
            folder / "l.plumb", "SELECT f.name, m.name, v.sum, v.count FROM context_values v JOIN metrics m ON m.id = v.metric "
            "JOIN contexts c ON c.id = v.context JOIN frames f ON f.id = c.frame JOIN tracks t ON t.id = v.track "
            "WHERE m.id >= 1000 AND t.kind = 'thread'"):
        assert name not in found.setdefault(kernel, {}) and 1 <= count <= 4 and total % count == 0
        found[kernel][name] = total // count
    return found


NOTHING = dict.fromkeys(GEMM, 0)


def test_counts_stand_at_the_kernels(tmp_path):
    answer = counted(tmp_path, "same", "runs.txt")
    assert [row["level"] for row in answer["measured"]] == ["M", "M/L", "M/L/G", "M/L/G/C"]
    assert (tmp_path / "runs.txt").read_text() == 5 * "run\n"
    row = level(answer)
    assert row["runs"] == row["kept"] == 1 and row["why"] is None and row["overhead_ns"] is None
    assert counters(tmp_path) == {"gemm": GEMM, "small": NOTHING}
    # The times are those of the first run, each launch once.
    assert query(tmp_path / "l.plumb", "SELECT f.name, SUM(v.count), SUM(v.sum) FROM context_values v JOIN metrics m ON m.id = v.metric "
                 "JOIN contexts c ON c.id = v.context JOIN frames f ON f.id = c.frame WHERE m.name = 'gpu.time' GROUP BY f.name"
                 ) == [("gemm", 8, 800000), ("small", 8, 8000)]
    assert query(tmp_path / "l.plumb", "SELECT DISTINCT m.unit FROM metrics m WHERE m.name LIKE 'dram%'") == [("byte",)]
    shown = run_command(PLUMB, "report", tmp_path / "l.plumb", "--metric", "dram_read_bytes", "--json")
    assert "gemm" in json.dumps(json.loads(shown.stdout)["rows"][0])


def test_only_the_kernels_with_most_time(tmp_path):
    answer = counted(tmp_path, "same", "runs.txt", options=(NAMES, "--counters-kernels=1"))
    assert counters(tmp_path) == {"gemm": GEMM} and level(answer)["why"] is None


def test_only_the_first_launches(tmp_path):
    counted(tmp_path, "same", "runs.txt", options=(NAMES, "--counters-launches=1"))
    assert counters(tmp_path) == {"gemm": GEMM, "small": NOTHING}
    assert query(tmp_path / "l.plumb", "SELECT DISTINCT v.count FROM context_values v JOIN metrics m ON m.id = v.metric "
                 "WHERE m.id >= 1000") == [(1,)]


def test_only_what_may_be_spent(tmp_path):
    """Half a second is free, and each counted launch takes 0.7 s: so one is counted."""
    answer = counted(tmp_path, "same", "runs.txt", options=(NAMES, "--counters-cost=2"), scenario="count_us=700000")
    assert len(counters(tmp_path)) == 1
    assert level(answer)["why"] == ("no counters for 1 call path of kernels, because their launches were not counted: small at backward, "
                                    "counting it would have slowed the program too much (--counters-cost)")


@pytest.mark.parametrize("cost", ["1", "-1", "x"])
def test_a_wrong_cost(tmp_path, cost):
    done = counted(tmp_path, "same", "runs.txt", options=(NAMES, f"--counters-cost={cost}"), status=1)
    assert "--counters-cost takes" in done.stderr


def test_a_place_with_fewer_launches_has_no_counters(tmp_path):
    answer = counted(tmp_path, "fewer", "runs.txt")
    assert counters(tmp_path) == {"small": NOTHING}
    assert level(answer)["kept"] == 1 and level(answer)["why"] == (
        "no counters for 1 call path of kernels, because the run that counts did other work there: "
        "gemm at forward, 7 launches there, and 8 in the first run")


def test_another_kernel_is_named(tmp_path):
    answer = counted(tmp_path, "other", "runs.txt")
    assert counters(tmp_path) == {"small": NOTHING}
    assert level(answer)["why"] == (
        "no counters for 1 call path of kernels, because the run that counts did not launch them: gemm at forward")


def test_a_counting_run_that_fails(tmp_path):
    answer = counted(tmp_path, "exit", "runs.txt")
    assert level(answer)["kept"] == 0 and "the program failed with exit code 3" in level(answer)["why"]
    assert counters(tmp_path) == {} and [row["kept"] for row in answer["measured"]] == [1, 1, 1, 0]


def test_without_permission_the_levels_are_there(tmp_path):
    answer = counted(tmp_path, "same", "runs.txt", scenario="count_refuse=35")
    assert "NVreg_RestrictProfilingToAdminUsers=0" in level(answer)["why"] and counters(tmp_path) == {}
    assert answer["measured"][2]["wall_ns"]["mean"] > 0


def test_tables_take_counters_and_levels(tmp_path, any_torch_python):
    counted(tmp_path, "model", python=any_torch_python)
    done = run_command(PLUMB, "tables", tmp_path / "l.plumb", "A8", "A9", "A11", "A15", "--peak=100", "--bandwidth=10", "--json")
    assert done.returncode == 0, done.stderr
    tables = {table["id"]: [dict(zip((column["name"] for column in table["columns"]), row)) for row in table["rows"]]
              for table in json.loads(done.stdout)["tables"]}
    kernels = {row["kernel_name"]: row for row in tables["A8"]}
    assert (kernels["gemm"]["kernel_flops"], kernels["gemm"]["kernel_dram_read_bytes"], kernels["gemm"]["kernel_dram_write_bytes"],
            kernels["gemm"]["kernel_achieved_occupancy (%)"]) == (2000, 700, 300, 50)
    assert kernels["small"]["kernel_flops"] == 0
    roofline = {row["kernel_name"]: row for row in tables["A9"]}
    assert roofline["gemm"]["kernel_arithmetic_intensity (flops/byte)"] == pytest.approx(2)
    assert roofline["gemm"]["kernel_memory_bound"] is True  # below 100 / 10
    layers = {row["layer_name"]: row for row in tables["A11"]}
    assert layers["0"]["layer_flops"] == 2000 and layers["1"]["layer_flops"] == 0
    model, = tables["A15"]
    assert (model["model_flops"], model["model_dram_read_bytes"], model["model_dram_write_bytes"]) == (2000, 700, 300)


@pytest.mark.parametrize("options, words", [
    (("--counters=dram_reed_bytes",), 'does not know "dram_reed_bytes"; near: dram_read_bytes.'),
    (("--counters-kernels=3",), "add --counters"), (("--counters", "--counters-kernels=0"), "takes 1 to 256"),
    (("--counters", "--counters-kernels=257"), "takes 1 to 256"),
    (("--counters", "--counters-launches=0"), "--counters-launches takes 1 to 1048576")])
def test_wrong_options(tmp_path, options, words):
    done = run_command(PLUMB, "levels", *options, "--", "touch", "started", cwd=tmp_path)
    assert done.returncode == 1 and words in done.stderr and not (tmp_path / "started").exists()
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_program_without_kernels(tmp_path, any_torch_python):
    env = environment_for_programs(PYTHONPATH=f"{ROOT / 'python'}:{PROGRAMS}")
    done = run_command(PLUMB, "levels", "--runs=1", "--counters", "-o", tmp_path / "l.plumb", "--json", "--", any_torch_python,
                       PROGRAMS / "layered.py", "infer", "20", cwd=tmp_path, env=env, timeout=300)
    assert done.returncode == 0 and "no kernels were recorded in the first run, so none are counted" in done.stderr
    assert level(json.loads(done.stdout)) is None
