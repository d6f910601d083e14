# SPDX-License-Identifier: Apache-2.0
"""Hardware counters over time (plumb run --counters-series) on the stand-in driver: known values of samples, what does not
fit into one pass, overflow, clocks that differ, and who may not sample."""
import csv
import json
import sqlite3

import pytest
from conftest import PLUMB, run_command
from test_counters import rows, shown
from test_doctor import doctor, fake_python, one
from test_mock_gpu import BUILD, RELEASES, mock_environment, run_profiled

READ, WRITTEN = "dram__bytes_read.sum", "dram__bytes_write.sum"
ACTIVE = "sm__cycles_active.avg.pct_of_peak_sustained_elapsed"
DEFAULT = ("sm_active", "dram_read_bytes", "dram_write_bytes", "tensor_active", "achieved_occupancy", "issue_utilization",
           "l2_hit_rate")
A_MS = 1000000  # ns


def series(path, metric=None):
    with sqlite3.connect(path) as database:
        database.row_factory = sqlite3.Row
        found = [dict(row) for row in database.execute("SELECT * FROM counter_series ORDER BY start_ns")]
    return [row for row in found if metric in (None, row["metric"])]


def facts(path):
    found = dict(rows(path, "SELECT key, value FROM environment WHERE key LIKE 'gpu.counters%'"))
    found.pop("gpu.counters.series.clock_ns", None)
    return {key.removeprefix("gpu.counters.series") or "list": value for key, value in found.items()}


def sampled(folder, *actions, options=("--counters-series",), scenario="clock=1", **more):
    made = run_profiled(folder, *actions, options=options, env={"PLUMB_MOCK": scenario}, **more)
    assert made.done.returncode == 0, made.done.stderr
    return made


@pytest.mark.parametrize("release", ["12.8", "13.0"])
def test_values_of_an_even_load(tmp_path, release):
    made = sampled(tmp_path, f"counter:gpu:{READ}:5000000", f"counter:gpu:{ACTIVE}:25", "launch:v:1000", "sleep:300",
                   "show:series_enabled", release=release)
    assert shown(made) == {"series_enabled": "1"}
    assert facts(made.path) == {"list": ",".join(DEFAULT), ".interval_ns": str(A_MS)}
    # 5 MB in each sample of 1 ms are 5 GB/s, and a quarter of the cycles are 250 000 ppm.
    for metric, unit, value in (("dram_read_bytes", "byte/s", 5e9), ("sm_active", "ppm", 250000),
                                ("dram_write_bytes", "byte/s", 0)):
        found = series(made.path, metric)
        assert sum(row["samples"] for row in found) >= 250
        for row in found:
            assert (row["unit"], row["width_ns"], row["process"], row["device"]) == (unit, A_MS, 0, 0)
            assert row["min"] == row["max"] == pytest.approx(value) == row["mean"]
            assert row["sampled_ns"] == row["samples"] * A_MS
    ledger = made.ledger("gpu.counter.sample")
    assert ledger.pop("received") == ledger.pop("attributed") >= 250 and not ledger
    # Records of work are there as always.
    assert rows(made.path, "SELECT sum(v.count) FROM context_values v JOIN metrics m ON m.id = v.metric "
                           "WHERE m.name = 'gpu.time'") == [(1,)]


def test_a_kernel_is_where_it_ran(tmp_path):
    """Times of samples and of kernels are of one clock in the profile."""
    made = sampled(tmp_path, f"counter:busy:{READ}:100000000", "launch:v:1000", "sleep:100", f"launch:busy:{100 * A_MS}",
                   "sleep:300", options=("--counters-series=dram_read_bytes", "--trace"))
    found = series(made.path, "dram_read_bytes")
    assert sum(row["mean"] * row["sampled_ns"] / 1e9 for row in found) == pytest.approx(1e8, rel=0.001)
    high = [row for row in found if row["mean"] > 5e8]
    assert len(high) == pytest.approx(100, abs=2) and high[-1]["start_ns"] - high[0]["start_ns"] == pytest.approx(100 * A_MS, abs=3 * A_MS)
    assert all(row["max"] == pytest.approx(1e9) for row in high[1:-1])


@pytest.mark.parametrize("skew", [0, 7000 * A_MS, -3 * A_MS])
def test_clocks_that_differ(tmp_path, skew):
    made = sampled(tmp_path, f"counter:busy:{READ}:100000000", "launch:v:1000", "sleep:100", f"launch:busy:{100 * A_MS}",
                   "sleep:500", options=("--counters-series=dram_read_bytes",), scenario=f"clock=1,series_skew={skew}")
    busy = [row for row in rows(made.path, "SELECT start_ns FROM series WHERE busy_ns > 500000 ORDER BY start_ns")]
    high = [row for row in series(made.path, "dram_read_bytes") if row["mean"] > 5e8]
    # As late as a sample is known at the earliest of the newest decodings: an interval, and what a machine at work adds.
    assert -2 * A_MS <= high[0]["start_ns"] - busy[0][0] <= 20 * A_MS


def test_bins_get_wider(tmp_path):
    made = sampled(tmp_path, f"counter:gpu:{READ}:100", "launch:v:1000", "sleep:1400",
                   options=("--counters-series=dram_read_bytes", "--counters-every=100"))
    found = series(made.path)
    assert {row["width_ns"] for row in found} == {2 * 100000}
    assert len(found) <= 8192 and sum(row["samples"] for row in found) >= 12000
    assert {row["samples"] for row in found[1:-1]} <= {1, 2, 3}
    assert {row["mean"] for row in found} == {1e6}


def test_what_does_not_fit_into_one_pass(tmp_path):
    made = sampled(tmp_path, "launch:v:1000", "sleep:100", scenario="series_pass=4")
    assert facts(made.path) == {"list": ",".join(DEFAULT[:4]), ".interval_ns": str(A_MS),
                                ".without": "achieved_occupancy, issue_utilization, l2_hit_rate"}
    assert {row["metric"] for row in series(made.path)} == set(DEFAULT[:4])


def test_nothing_fits(tmp_path):
    made = sampled(tmp_path, "launch:v:1000", "sleep:50", options=("--counters-series=flop_count_tensor",), scenario="series_pass=2")
    assert not series(made.path) and facts(made.path)[".off"].startswith(
        "hardware counters are not sampled: no counter of --counters-series fits into one pass here")


def test_names_of_others(tmp_path):
    made = sampled(tmp_path, "counter:gpu:lts__t_sectors.sum:32", "counter:gpu:lts__t_sector_hit_rate.pct:75", "launch:v:1000",
                   "sleep:100", options=("--counters-series=lts__t_sectors.sum,lts__t_sector_hit_rate.pct,nvlrx__bytes.sum",))
    found = {(row["metric"], row["unit"], row["mean"]) for row in series(made.path)}
    assert {(name, unit) for name, unit, _ in found} == {("lts__t_sectors.sum", "count/s"), ("lts__t_sector_hit_rate.pct", "%")}
    assert all(mean == pytest.approx(32000 if name.endswith(".sum") else 75) for name, _, mean in found)
    assert facts(made.path)[".without"] == "nvlrx__bytes.sum"  # the stand-in has no such unit


def test_an_overflow_is_counted_and_sampling_goes_on(tmp_path):
    made = sampled(tmp_path, f"counter:gpu:{READ}:5000", "launch:v:1000", "sleep:1500", "show:series_starts",
                   options=("--counters-series=dram_read_bytes",), scenario="series_full=2")
    assert shown(made) == {"series_starts": "2"}
    ledger = made.ledger("gpu.counter.sample")
    assert ledger["hardware_full"] >= 100 and ledger["attributed"] >= 500
    assert ledger["received"] == ledger["attributed"] + ledger["hardware_full"]
    assert {row["mean"] for row in series(made.path)} == {5e6}


def test_samples_that_found_no_room(tmp_path):
    made = sampled(tmp_path, "launch:v:1000", "sleep:1500", options=("--counters-series=dram_read_bytes",),
                   scenario="series_places=100")
    ledger = made.ledger("gpu.counter.sample")
    assert ledger["cupti_dropped"] >= 300 and ledger["attributed"] >= 300
    assert ledger["received"] == ledger["attributed"] + ledger["cupti_dropped"]


def test_several_devices(tmp_path):
    made = sampled(tmp_path, f"counter:one:{READ}:1000000", "launch:v:1000:0:0", f"launch:one:{100 * A_MS}:0:1", "sleep:300",
                   "show:series_enabled", options=("--counters-series=dram_read_bytes",), scenario="clock=1,devices=2")
    assert shown(made) == {"series_enabled": "2"}
    sums = {}
    for row in series(made.path):
        sums[row["device"]] = sums.get(row["device"], 0) + row["mean"] * row["sampled_ns"] / 1e9
    assert sums == {0: 0, 1: pytest.approx(1e6, rel=0.01)}


def test_without_permission(tmp_path):
    for fault in ("count_refuse=35", "series_refuse=35"):
        made = sampled(tmp_path, "launch:v:1000", "sleep:50", scenario=fault)
        assert "NVreg_RestrictProfilingToAdminUsers=0" in facts(made.path)[".off"] and not series(made.path)
        assert made.ledger("gpu.kernel")["attributed"] == 1


@pytest.mark.parametrize("release", ["11.8", "12.1"])
def test_an_old_cupti(tmp_path, release):
    made = sampled(tmp_path, "launch:v:1000", "sleep:50", release=release)
    off = facts(made.path).pop(".off")
    assert off.startswith("hardware counters are not sampled: this CUPTI has no cupti") and "CUDA 12.8" in off
    assert not series(made.path) and made.ledger("gpu.kernel")["attributed"] == 1


def test_the_program_profiles_itself(tmp_path):
    """It gets the GPU's counters with CUPTI's slot, and sampling begins anew after it."""
    made = sampled(tmp_path, "launch:v:1000", "sleep:100", "profile:begin", "show:series_enabled", "launch:v:1000", "profile:end",
                   "profile:leave", "sleep:600", "launch:v:1000", "sleep:100", "show:series_starts")
    assert shown(made) == {"series_enabled": "0", "series_starts": "2"}


def test_it_does_not_begin_while_a_stream_is_captured(tmp_path):
    """After the program's own profiler, the first launch is of a graph that is being captured."""
    made = sampled(tmp_path, "launch:v:1000", "profile:begin", "profile:end", "profile:leave", "sleep:600", "capture:2:v:50",
                   "show:count_captured", "show:series_starts", "launch:v:1000", "sleep:100", "show:series_enabled")
    assert shown(made) == {"count_captured": "0", "series_starts": "1", "series_enabled": "1"}


def test_a_child_samples_nothing(tmp_path):
    made = sampled(tmp_path, "launch:v:1000", "fork:v:1000", "sleep:100")
    assert series(made.path)


@pytest.mark.parametrize("options, message", [
    (["--counters-series=dram_reed_bytes"], 'does not know "dram_reed_bytes"; near: dram_read_bytes.'),
    (["--counters-series=default,"], "empty name"),
    (["--counters-every=1000"], "add --counters-series"),
    (["--counters-series", "--counters-every=50"], "takes 100 to 1000000 microseconds"),
    (["--counters-series", "--no-gpu"], "needs records of GPU work"),
    (["--counters-series", "--stalls"], "--counters-series contradicts --stalls"),
    (["--counters-series", "--counters"], "--counters-series contradicts --counters"),
    (["--counters-series=" + ",".join(f"a__b{i}.sum" for i in range(17))], "at most 16"),
])
def test_wrong_use(tmp_path, options, message):
    done = run_command(PLUMB, "run", *options, "--", "true", cwd=tmp_path)
    assert done.returncode == 125 and message in done.stderr and not list(tmp_path.iterdir())
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("release, scenario, sampled_there", [
    ("13.0", "", ", ".join(DEFAULT)), ("13.0", "series_pass=3", ", ".join(DEFAULT[:3])), ("12.1", "", None)])
def test_doctor_tells_what_can_be_sampled(tmp_path, release, scenario, sampled_there):
    library = BUILD / "mock" / release / RELEASES[release]
    check = one(doctor("--counters", env={**mock_environment(release, scenario), **fake_python(tmp_path, cupti=library)}), "series")
    assert check["state"] == ("yes" if sampled_there else "no")
    assert (check["what"].endswith(": " + sampled_there) if sampled_there else "CUDA 12.8" in check["why"]), check


STEPS = [f"launch:fwd:{8 * A_MS}", f"launch:bwd:{16 * A_MS}", "sleep:60"] * 10


def steps(folder, *options):
    return sampled(folder, f"counter:bwd:{READ}:64000000", f"counter:fwd:{ACTIVE}:50", f"counter:bwd:{ACTIVE}:100", *STEPS, "sleep:100",
                   options=("--counters-series=sm_active,dram_read_bytes", "--trace", *options))


def test_by_iteration(tmp_path):
    made = steps(tmp_path)
    level = json.loads(run_command(PLUMB, "iters", "--json", made.path).stdout)["tracks"][0]["levels"][0]
    assert [found["name"] for found in level["summary"]["counters"]] == ["sm_active", "dram_read_bytes"]
    known = 0
    for item in level["iterations"][1:]:
        time = item["end_ns"] - item["start_ns"] + (item["interval_ns"] or 0)
        # 24 ms of work: 8 at a half and 16 in full, and 64 MB read. The ends of an iteration lie within bins of 1 ms.
        assert item["counters"]["sm_active"] == pytest.approx(1e6 * 20 * A_MS / time, rel=0.08)
        assert item["counters"]["dram_read_bytes"] == pytest.approx(64e6 / time * 1e9, rel=0.08)
        known += 1
    assert known == 9
    active = level["summary"]["counters"][0]
    assert active["unit"] == "ppm" and active["iterations"] == 10 and active["min"] <= active["mean"] <= active["max"]
    text = run_command(PLUMB, "iters", made.path).stdout
    assert "    sm_active: mean " in text and "    dram_read_bytes: mean " in text and "B/s of an iteration" in text
    table = list(csv.DictReader(run_command(PLUMB, "iters", "--csv", made.path).stdout.splitlines()))
    assert float(table[3]["dram_read_bytes"]) == pytest.approx(level["iterations"][3]["counters"]["dram_read_bytes"])


def test_iterations_that_are_shorter_than_a_bin(tmp_path):
    """What is not known is not shown as a number."""
    made = steps(tmp_path, "--counters-every=200000")
    text = run_command(PLUMB, "iters", made.path).stdout
    assert "sm_active: mean" not in text and "    counters: an iteration is shorter than" in text
    level = json.loads(run_command(PLUMB, "iters", "--json", made.path).stdout)["tracks"][0]["levels"][0]
    assert {value for item in level["iterations"] for value in item["counters"].values()} == {None}


def test_the_summary_and_the_devices_of_a_report(tmp_path):
    made = steps(tmp_path)
    line, = [line for line in run_command(PLUMB, "report", made.path).stdout.splitlines() if line.startswith("  sampled ")]
    assert " sm_active " in line and " %, dram_read_bytes " in line and line.endswith("B/s")
    device, = json.loads(run_command(PLUMB, "report", "--json", made.path).stdout)["devices"]
    read = device["counters"][1]
    assert (read["name"], read["unit"]) == ("dram_read_bytes", "byte/s")
    assert read["mean"] * read["sampled_ns"] / 1e9 == pytest.approx(64e7, rel=0.001)
    assert read["max"] == pytest.approx(4e9) and read["min"] == 0


def test_other_recordings_have_none(tmp_path):
    made = sampled(tmp_path, "launch:v:1000", options=())
    assert not series(made.path) and not made.profile.counter_series
    assert "counters" not in json.loads(run_command(PLUMB, "report", "--json", made.path).stdout)["devices"][0]


def test_python_reads_them(tmp_path):
    made = sampled(tmp_path, f"counter:gpu:{READ}:1000", "launch:v:1000", "sleep:100", options=("--counters-series=dram_read_bytes",))
    row = made.profile.counter_series[1]
    assert (row.metric, row.unit, row.mean, row.samples) == ("dram_read_bytes", "byte/s", 1e6, 1)


def test_samples_of_a_pause_are_left_out(tmp_path):
    made = sampled(tmp_path, f"counter:gpu:{READ}:1000", "launch:v:1000", "sleep:1200", options=("--counters-series", "--duration=0.5"))
    ledger = made.ledger("gpu.counter.sample")
    assert 200 <= ledger["attributed"] <= 900


def test_a_program_that_is_killed_keeps_its_samples(tmp_path):
    made = run_profiled(tmp_path, "launch:v:1000", "sleep:1500", "kill:9", options=("--counters-series=sm_active",), env={"PLUMB_MOCK": "clock=1"})
    assert sum(row["samples"] for row in series(made.path)) >= 500
    ledger = made.ledger("gpu.counter.sample")
    assert ledger["received"] == ledger["attributed"] >= 500
