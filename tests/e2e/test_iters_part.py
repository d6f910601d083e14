# SPDX-License-Identifier: Apache-2.0
"""The critical path of a profile that has more spans than it is made of: --path-spans makes "more" small. Times
are µs."""
import json

from conftest import PLUMB, run_command
from json_traces import write

STEPS, SPANS = 41, 31  # a step has as many spans


def training(device, steps, base=0, extra=0):
    """Steps of 1000 µs and one more each: loading takes 700, and each of ten kernels begins 10 after its launch."""
    events, at = [], base

    def add(category, name, pid, tid, start, length, **more):
        events.append({"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": start, "dur": length,
                       "args": more})
    for number in range(steps):
        add("cpu_op", "load", 100 + device, 1, at, 700)
        for k in range(10):
            begin, call = at + 700 + 20 * k, (device * 1000 + number) * 10 + k + 1
            add("cpu_op", f"aten::op{k}", 100 + device, 1, begin, 18)
            add("cuda_runtime", "cudaLaunchKernel", 100 + device, 1, begin + 5, 5, correlation=call)
            add("kernel", f"kernel{k if steps > 1 else number}_{extra}", device, 7, begin + 15, 12, device=device,
                context=1, stream=7, correlation=call)
        at += 1000 + number
    add("user_annotation", "all of it", 100 + device, 1, base, at - base)
    return events


def trace(folder, events, name="trace", devices=1):
    return write(folder, {"schemaVersion": 1, "baseTimeNanoseconds": 0, "traceEvents": events,
                          "deviceProperties": [{"id": i, "name": "Test GPU"} for i in range(devices)]}, name)


def iters(path, *options):
    done = run_command(PLUMB, "iters", path, *options)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return json.loads(done.stdout) if "--json" in options else done.stdout


def test_whole_iterations_around_the_median(tmp_path):
    path = trace(tmp_path, training(0, STEPS))
    whole, part = iters(path, "--json"), iters(path, "--json", f"--path-spans={12 * SPANS}")
    assert whole["path"]["part"] is None
    (all_of,), (some,) = whole["tracks"], part["tracks"]
    assert (all_of["path"]["first_iteration"], all_of["path"]["last_iteration"]) == (0, STEPS - 1)
    said = part["path"]["part"]
    first, last = said["first_iteration"], said["last_iteration"]
    assert (said["track"], said["spans_most"]) == (some["track"], 12 * SPANS)
    assert (some["path"]["first_iteration"], some["path"]["last_iteration"]) == (first, last)
    assert 10 <= last - first + 1 <= 12 and first <= all_of["path"]["iteration"] <= last
    items = some["levels"][0]["iterations"]
    assert (said["start_ns"], said["end_ns"]) == (items[first]["start_ns"] - items[first]["interval_ns"],
                                                  items[last]["end_ns"])
    # What there is, is the same: the median's path, what each row saves an iteration, other iterations' sums.
    for key in ("iteration", "start_ns", "end_ns", "host_ns", "kernel_ns", "launch_ns", "top"):
        assert some["path"][key] == all_of["path"][key], key
    assert {row["name"]: row["saving_ns"] for row in some["path"]["top"]}["load"] == 700_000
    for number, (mine, theirs) in enumerate(zip(some["path"]["iterations"], all_of["path"]["iterations"])):
        assert mine == (theirs if first <= number <= last else None)
    assert part["path"]["end_ns"] - part["path"]["start_ns"] <= said["end_ns"] - said["start_ns"]
    text = iters(path, f"--path-spans={12 * SPANS}")
    assert f"  critical path of iteration {all_of['path']['iteration']}, the median (1." in text
    assert f"    iterations {first} to {last} of {STEPS}: only this part is searched, because the profile has more than {12 * SPANS} spans" in text
    assert "only a part" not in iters(path)


def test_no_loop(tmp_path):
    """Then the last stretch of time that fits."""
    events = [event for n in range(STEPS) for event in training(0, 1, 1000 * n, n)]
    path = trace(tmp_path, events)
    whole, part = iters(path, "--json"), iters(path, "--json", "--path-spans=200")
    said = part["path"]["part"]
    assert (said["track"], said["first_iteration"], said["last_iteration"]) == (None, None, None)
    assert said["end_ns"] == whole["path"]["end_ns"] == part["path"]["end_ns"]
    assert said["start_ns"] <= part["path"]["start_ns"] and 5e6 < said["end_ns"] - said["start_ns"] < 8e6
    text = iters(path, "--path-spans=200")
    assert "critical path of a part of the profile (" in text
    assert "ms of the profile: only this part is searched, because the profile has more than 200 spans" in text


def test_two_loops_one_after_the_other(tmp_path):
    """The part lies around the one with more kernels, or the one that is asked for; the other's is said to be missing."""
    path = trace(tmp_path, training(0, 40) + training(1, 30, 100_000, 1), devices=2)
    tracks = {one["process"]: one for one in iters(path, "--json", "--path-spans=400")["tracks"]}
    assert tracks[100]["path"] and tracks[101]["path"] is None
    other = tracks[101]["track"]
    assert (f"  no critical path: its iterations are outside the part that is searched; use --track={other} to search "
            "around them") in iters(path, "--path-spans=400")
    (own,) = iters(path, "--json", "--path-spans=400", f"--track={other}")["tracks"]
    assert own["path"]["iteration"] == 15
    assert "critical path of iteration 15" in iters(path, "--path-spans=400", f"--track={other}")


def test_not_even_one_iteration_fits(tmp_path):
    """--track would not help; more room would."""
    path = trace(tmp_path, training(0, 40) + training(1, 10, 100_000, 1), devices=2)
    for track in iters(path, "--json", "--path-spans=4")["tracks"]:
        text = iters(path, "--path-spans=4", f"--track={track['track']}")
        if track["path"] is None:
            assert ("  no critical path: one iteration has more than 4 spans; use a larger --path-spans"
                    in text)
        assert "--track=" not in text
    assert any(track["path"] is None for track in iters(path, "--json", "--path-spans=4")["tracks"])
