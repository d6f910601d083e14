# SPDX-License-Identifier: Apache-2.0
"""Hardware counters (plumb run --counters) on the stand-in driver: known counts of known kernels, through the passes,
the evaluation and the filter into metrics. The stand-in has a GH100 that counts four metrics in a pass."""
import sqlite3

import pytest
from conftest import PLUMB, run_command
from test_doctor import doctor, fake_python, one
from test_mock_gpu import BUILD, RELEASES, mock_environment, run_profiled

THREADS = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum"
TENSOR = "sm__ops_path_tensor_src_{}.sum"
COUNTS = {THREADS.format("fadd"): 10, THREADS.format("fmul"): 5, THREADS.format("ffma"): 1000,
          THREADS.format("dfma"): 3, THREADS.format("hadd"): 8, TENSOR.format("fp16"): 4096,
          TENSOR.format("bf16_dst_fp32"): 100, TENSOR.format("fp8"): 7,
          "dram__bytes_read.sum": 1000000, "dram__bytes_write.sum": 500000,
          "sm__warps_active.avg.pct_of_peak_sustained_active": 50, "lts__t_sector_hit_rate.pct": 25,
          "smsp__issue_active.avg.pct_of_peak_sustained_active": 10}
VALUES = {"flop_count_sp": 2015, "flop_count_dp": 6, "flop_count_hp": 8, "flop_count_tensor": 4203,
          "dram_read_bytes": 1000000, "dram_write_bytes": 500000, "achieved_occupancy": 500000,
          "l2_hit_rate": 250000, "issue_utilization": 100000}
METRICS = 3 + 3 + 3 + 5 + 2 + 3
PASSES = -(-METRICS // 4)


def counts_of(kernel, counts=COUNTS):
    return [f"counter:{kernel}:{metric}:{value}" for metric, value in counts.items()]


def rows(path, sql):
    with sqlite3.connect(path) as database:
        return database.execute(sql).fetchall()


def values(path):
    """{kernel: {counter: (sum, count)}}"""
    found = {}
    for kernel, metric, total, count in rows(
            path, "SELECT f.name, m.name, v.sum, v.count FROM context_values v JOIN metrics m ON m.id = v.metric "
                  "JOIN contexts c ON c.id = v.context JOIN frames f ON f.id = c.frame"):
        if metric in VALUES or "__" in metric:
            before = found.setdefault(kernel, {}).get(metric, (0, 0))
            found[kernel][metric] = (before[0] + total, before[1] + count)
    return found


def facts(path):
    return dict(rows(path, "SELECT key, value FROM environment WHERE key LIKE 'gpu.counters%'"))


def counted(folder, *actions, options=("--counters",), scenario="", **more):
    made = run_profiled(folder, *actions, options=options, env={"PLUMB_MOCK": scenario} if scenario else None, **more)
    assert made.done.returncode == 0, made.done.stderr
    return made


def shown(made):
    return dict(line.split("=") for line in made.done.stdout.split() if "=" in line)


@pytest.mark.parametrize("release", ["12.8", "13.0"])
def test_values_of_passes(tmp_path, release):
    made = counted(tmp_path, *counts_of("gemm"), *["launch:gemm:5000"] * 3, "launch:copy:100", "show:count_passes",
                   "show:count_enabled", release=release)
    # Of three launches the first and the second; the other kernel counts nothing, which is known to be 0.
    assert values(made.path) == {"gemm": {name: (2 * value, 2) for name, value in VALUES.items()},
                                 "copy": {name: (0, 1) for name in VALUES}}
    assert made.ledger("gpu.counter") == {"received": 4, "attributed": 3, "enough": 1}
    assert shown(made) == {"count_passes": str(3 * PASSES), "count_enabled": "1"}
    assert facts(made.path) == {"gpu.counters": "roofline", "gpu.counters.passes": str(PASSES)}
    assert dict(rows(made.path, "SELECT name, unit FROM metrics WHERE name IN ('flop_count_tensor', 'dram_read_bytes', "
                                "'l2_hit_rate')")) == {"flop_count_tensor": "flop", "dram_read_bytes": "byte", "l2_hit_rate": "ppm"}
    # A launch that was counted has no time.
    assert rows(made.path, "SELECT sum(v.count) FROM context_values v JOIN metrics m ON m.id = v.metric "
                           "WHERE m.name = 'gpu.time'") == [(1,)]


def test_single_names_and_those_of_others(tmp_path):
    made = counted(tmp_path, *counts_of("gemm"), "launch:gemm:5000",
                   options=("--counters=dram_read_bytes,dram__bytes_write.sum,dram_read_bytes",))
    assert values(made.path) == {"gemm": {"dram_read_bytes": (1000000, 1), "dram__bytes_write.sum": (500000, 1)}}
    assert facts(made.path)["gpu.counters.passes"] == "1"


def test_launches_are_spread(tmp_path):
    made = counted(tmp_path, *["launch:gemm:5000"] * 20)
    assert made.ledger("gpu.counter") == {"received": 20, "attributed": 4, "enough": 16}


@pytest.mark.parametrize("most, number", [(1, 1), (3, 2), (16, 5)])
def test_so_many_launches(tmp_path, most, number):
    made = counted(tmp_path, *["launch:gemm:5000"] * 20, options=("--counters", f"--counters-launches={most}"))
    assert made.ledger("gpu.counter") == {"received": 20, "attributed": number, "enough": 20 - number}


def test_the_cost_is_limited(tmp_path):
    """Each counted launch takes 600 ms more, and the rest next to nothing: so one is counted, as half a second is free."""
    launches = [f"launch:{kernel}:5000" for kernel in ("gemm", "copy") * 8]
    made = counted(tmp_path, *launches, scenario="count_us=600000")
    assert made.ledger("gpu.counter") == {"received": 16, "attributed": 1, "too_slow": 15}
    assert "some kernels were counted less often, or not at all: --counters-cost=0 has no limit" in made.done.stderr + made.done.stdout


def test_a_kernel_that_was_not_counted_comes_first(tmp_path):
    """After 0.9 s of other work there is time for one of a new kernel, and not for another one of the kernel before."""
    work = ["launch:gemm:5000"] * 2 + ["sleep:900", "launch:gemm:5000", "launch:copy:5000", "launch:copy:5000"]
    made = counted(tmp_path, *work, scenario="count_us=600000")
    assert made.ledger("gpu.counter") == {"received": 5, "attributed": 2, "too_slow": 3}
    assert {name: of["l2_hit_rate"][1] for name, of in values(made.path).items()} == {"gemm": 1, "copy": 1}


def test_without_a_limit_of_the_cost_all_are_counted(tmp_path):
    made = counted(tmp_path, *["launch:gemm:5000"] * 8, scenario="count_us=200000", options=("--counters", "--counters-cost=0"))
    assert made.ledger("gpu.counter") == {"received": 8, "attributed": 4, "enough": 4}
    said = made.done.stderr + made.done.stdout
    assert "counting launches (--counters) made the program slower" in said and "less often" not in said


def test_a_launch_that_was_too_costly_is_made_up_for(tmp_path):
    """The second launch comes at once, and the fifth after the program did other work for a while."""
    work = ["launch:gemm:5000"] * 4 + ["sleep:1600", "launch:gemm:5000"]
    made = counted(tmp_path, *work, scenario="count_us=600000")
    assert made.ledger("gpu.counter") == {"received": 5, "attributed": 2, "too_slow": 3}


def test_records_come_while_the_program_runs(tmp_path):
    """CUPTI holds all records back after a counted launch, until a forced flush."""
    work = ["launch:gemm:5000", "launch:copy:5000", "launch:gemm:5000"]
    made = counted(tmp_path, *work, "launch:gemm:50", "sleep:300", "show:delivered", options=("--counters", "--flush-ms=50"))
    assert shown(made) == {"delivered": "4"}
    assert made.ledger("gpu.counter") == {"received": 4, "attributed": 3, "enough": 1}
    assert made.ledger("gpu.kernel") == {"received": 4, "attributed": 1, "no_python": 1, "counted": 3}
    assert made.ledger("gpu.launch") == {"received": 4, "attributed": 4}


def test_only_kernels_of_a_first_run(tmp_path):
    first = tmp_path / "first"
    first.mkdir()
    work = ["launch:short:10"] * 9 + ["launch:long:5000", "launch:middle:900"]
    made = counted(first, *work, options=())
    made = counted(tmp_path, *work, options=("--counters=dram_read_bytes", f"--counters-kernels={made.path}:2"))
    assert set(values(made.path)) == {"long", "middle"}
    assert made.ledger("gpu.counter") == {"received": 11, "attributed": 2, "not_hot": 9}


def test_what_cannot_run_again_is_left_alone(tmp_path):
    made = counted(tmp_path, "launch:_Z29ncclDevKernel_AllReduce_Sum_fv:100", "capture:2:v:50", "replay:3",
                   "launch:v:50", "show:count_captured", options=("--counters", "--graphs=nodes"))
    assert made.ledger("gpu.counter") == {"received": 7, "attributed": 1, "no_replay": 4, "busy": 2}
    assert shown(made) == {"count_captured": "0"}


def test_more_launches_than_an_image_holds(tmp_path):
    made = counted(tmp_path, *counts_of("k0"), *counts_of("k99"), "names:60:100", "sleep:700", "names:100:100",
                   options=("--counters=dram_read_bytes", "--flush-ms=50"))
    ledger = made.ledger("gpu.counter")
    assert ledger["received"] == 160 == ledger["attributed"] + ledger.get("busy", 0)
    assert ledger["attributed"] >= 120
    found = values(made.path)
    assert found["k0"]["dram_read_bytes"] == (2000000, 2) and found["k1"]["dram_read_bytes"] == (0, 2)


def test_threads_that_launch_at_once(tmp_path):
    made = counted(tmp_path, *counts_of("v"), "threads:8:40:v:100", options=("--counters=dram_read_bytes",))
    ledger = made.ledger("gpu.counter")
    assert ledger.pop("received") == 320 == sum(ledger.values())
    assert set(ledger) <= {"attributed", "enough", "busy", "ambiguous"}
    total, count = values(made.path).get("v", {}).get("dram_read_bytes", (0, 0))
    assert total == count * 1000000 and count == ledger.get("attributed", 0)


def test_a_context_that_goes(tmp_path):
    made = counted(tmp_path, *counts_of("v"), "launch:v:100", "destroy:0", "show:count_enabled", "launch:v:100",
                   options=("--counters=dram_read_bytes",))
    assert values(made.path)["v"]["dram_read_bytes"] == (2000000, 2)
    assert shown(made) == {"count_enabled": "0"}


def test_a_chip_without_some_metrics(tmp_path):
    made = counted(tmp_path, *counts_of("gemm"), "launch:gemm:5000", scenario="count_lacks=1")
    assert values(made.path) == {"gemm": {name: (value, 1) for name, value in VALUES.items()
                                          if name != "flop_count_tensor"}}
    assert facts(made.path)["gpu.counters.without"] == "flop_count_tensor"


def test_no_permission(tmp_path):
    made = counted(tmp_path, "launch:gemm:5000", scenario="count_refuse=35")
    why = facts(made.path)["gpu.counters.off"]
    assert "ERR_NVGPUCTRPERM" in why and "NVreg_RestrictProfilingToAdminUsers=0" in why
    assert values(made.path) == {} and made.ledger("gpu.counter") == {"received": 1, "not_counted": 1}
    assert made.ledger("gpu.kernel")["attributed"] == 1


@pytest.mark.parametrize("release", ["11.8", "12.1"])
def test_older_releases(tmp_path, release):
    made = counted(tmp_path, "launch:gemm:5000", release=release)
    assert "CUDA 12.8" in facts(made.path)["gpu.counters.off"]
    assert made.ledger("gpu.kernel")["attributed"] == 1


@pytest.mark.parametrize("options, expected", [
    (["--counters=dram_reed_bytes"], 'does not know "dram_reed_bytes"; near: dram_read_bytes.'),
    (["--counters=nothing"], "near: flop_count_sp, flop_count_dp"),
    (["--counters=roofline,"], "empty name"),
    (["--counters-kernels=x.plumb"], "add --counters"),
    (["--counters", "--counters-kernels=none.plumb"], "none.plumb"),
    (["--counters", "--counters-launches=0"], "takes 1 to 1048576"),
    (["--counters", "--counters-cost=1"], "--counters-cost takes 2 to 1000, or 0 for no limit"),
    (["--counters", "--no-gpu"], "needs records of GPU work"),
    (["--counters", "--stalls"], "contradicts --stalls"),
    (["--counters=" + ",".join(f"a__b{i}.sum" for i in range(33))], "at most 32"),
])
def test_wrong_use(tmp_path, options, expected):
    done = run_command(PLUMB, "run", *options, "--", "true", cwd=tmp_path)
    assert done.returncode == 125 and expected in done.stderr and not list(tmp_path.iterdir())
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("release, scenario, passes", [
    ("13.0", "", {"flop_count_sp": 1, "flop_count_tensor": 2, "roofline": PASSES}),
    ("13.0", "count_lacks=1", {"flop_count_tensor": None, "roofline": -(-(METRICS - 5) // 4)}),
    ("12.1", "", {"flop_count_sp": None, "roofline": None})])
def test_doctor_tells_passes(tmp_path, release, scenario, passes):
    library = BUILD / "mock" / release / RELEASES[release]
    checks = doctor("--counters", env={**mock_environment(release, scenario), **fake_python(tmp_path, cupti=library)})
    assert set(VALUES) <= {check["id"] for check in checks}
    for name, number in passes.items():
        check = one(checks, name)
        if number is None:
            assert check["state"] == "no" and ("CUDA 12.8" in check["why"]) == (release == "12.1"), check
        else:
            assert check["state"] == "yes" and check["what"].endswith(f": {number} pass{'es' if number > 1 else ''}"), check


def test_doctor_without_a_gpu(tmp_path):
    checks = doctor("--counters", env=fake_python(tmp_path))
    assert one(checks, "roofline")["state"] == "no" and one(checks, "gpu.counters")["what"]
    assert "roofline" not in {check["id"] for check in doctor(env=fake_python(tmp_path))}
