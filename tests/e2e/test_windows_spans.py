# SPDX-License-Identifier: Apache-2.0
"""Windows of traces, whose single spans are known: exact, and nothing of start-up is in the loop."""
import json

import pytest
from kineto_traces import call, event, kernel, save
from plumbtest import query
from test_mock_gpu import run_driver

US = 1000


class Host:
    """A thread that launches kernels, which begin LAG µs after their call at the earliest."""

    def __init__(self, lag=0, pid=5, device=0, start=1000):
        self.events, self.lag, self.pid, self.device = [], lag, pid, device
        self.now = self.free = start
        self.correlation = 0

    def operator(self, name, kernel_name, duration, host=8, **launch):
        self.correlation += 1
        self.events += [event("cpu_op", name, self.now, host, pid=self.pid),
                        call(self.correlation, self.now + 2, duration=4, pid=self.pid)]
        self.free = max(self.free, self.now + 7 + self.lag)
        self.events.append(kernel(self.correlation, self.free, duration, name=kernel_name, device=self.device,
                                  **launch))
        self.free += duration + 1
        self.now += host + 2

    def graph(self, kernels):
        """One call that starts all of KERNELS: (name, duration)."""
        self.correlation += 1
        self.events.append(call(self.correlation, self.now + 2, name="cudaGraphLaunch", duration=4, pid=self.pid))
        self.free = max(self.free, self.now + 7 + self.lag)
        for name, duration in kernels:
            self.events.append(kernel(self.correlation, self.free, duration, name=name, device=self.device))
            self.free += duration + 1
        self.now += 10

    def synchronize(self):
        start, self.now = self.now, max(self.now, self.free + 3) + 2
        self.correlation += 1
        self.events.append(call(self.correlation, start, name="cudaStreamSynchronize", duration=self.now - start - 1,
                                pid=self.pid))

    def span(self, name, start):
        self.events.append(event("user_annotation", name, start, self.now - start, pid=self.pid))


def prefill(host, marked=True):
    start = host.now
    host.operator("aten::embedding", "embed_many", 50, grid=[64, 1, 1], **{"registers per thread": 16})
    for _ in range(24):
        host.operator("aten::mm", "gemm", 400, grid=[64, 1, 1])
        host.operator("attention", "flash_prefill", 300)
        host.operator("aten::mm", "shared_kernel", 500, grid=[64, 1, 1])
    host.synchronize()
    if marked:
        host.span("prefill", start)


def decode(host, steps, marked=True):
    for _ in range(steps):
        start = host.now
        host.operator("aten::embedding", "embed_one", 3)
        for _ in range(24):
            host.operator("aten::mm", "gemv", 20)
            host.operator("attention", "flash_decode", 10)
            host.operator("aten::mm", "shared_kernel", 22, grid=[2, 1, 1])
        host.operator("sample", "argmax", 4)
        host.synchronize()
        if marked:
            host.span("decode", start)


def step(host, names, count):
    for _ in range(count):
        for i, name in enumerate(names):
            start = host.now
            host.operator(f"aten::{name}", f"k_{name}", 20 + 3 * i)
            if name == "update":
                host.span("Optimizer.step#SGD.step", start)
        host.synchronize()


TRAIN = ("linear", "relu", "conv", "loss", "backward", "weights", "bias", "update")
EVALUATE = ("linear", "norm", "softmax", "argmax", "gather", "mean")


def windows(path):
    return query(path, """
        SELECT w.process, w.kind || COALESCE(':' || w.number, ''), w.iterations, COUNT(*),
               SUM(s.end_ns - s.start_ns)
        FROM windows w JOIN window_stretches s ON s.window = w.id GROUP BY w.id ORDER BY w.id""")


def names(path):
    return [row[1] for row in windows(path)]


def total(path, window, metric, frame=None):
    """(sum, count, minimum, maximum)"""
    named = f"AND f.name = '{frame}'" if frame else ""
    return query(path, f"""
        SELECT COALESCE(SUM(v.sum), 0), COALESCE(SUM(v.count), 0), MIN(v.min), MAX(v.max)
        FROM window_values v JOIN windows w ON w.id = v.window JOIN contexts c ON c.id = v.context
        JOIN frames f ON f.id = c.frame JOIN metrics m ON m.id = v.metric
        WHERE m.name = '{metric}' {named} AND w.kind || COALESCE(':' || w.number, '') = '{window}'""")[0]


def check_sums(path, unknown=()):
    """Together the windows have what the whole has: for each context, metric, track and device, and all time."""
    named = ", ".join(f"'{name}'" for name in unknown)
    key = "context, metric, track, from_device, to_device"
    whole = query(path, f"""
        SELECT {key}, sum, count, min, max FROM context_values
        WHERE metric NOT IN (SELECT id FROM metrics WHERE name IN ({named})) ORDER BY {key}""")
    parts = query(path, f"""
        SELECT {key}, SUM(sum), SUM(count), MIN(min), MAX(max) FROM window_values
        WHERE metric NOT IN (SELECT id FROM metrics WHERE name IN ({named})) GROUP BY {key} ORDER BY {key}""")
    assert whole and whole == parts
    fields = "kernels, kernel_ns, copies, copy_ns, copy_bytes, sets, set_ns, set_bytes, busy_ns"
    sums = ", ".join(f"SUM({field})" for field in fields.split(", "))
    assert query(path, f"SELECT id, {fields} FROM devices ORDER BY id") == \
        query(path, f"SELECT device, {sums} FROM window_devices GROUP BY device ORDER BY device")
    assert query(path, "SELECT id, end_ns - start_ns FROM processes ORDER BY id") == query(path, """
        SELECT w.process, SUM(s.end_ns - s.start_ns) FROM windows w
        JOIN window_stretches s ON s.window = w.id GROUP BY w.process ORDER BY w.process""")


@pytest.fixture
def profile_of(plumb, tmp_path):
    def make(*hosts):
        paths = []
        for rank, host in enumerate(hosts):
            paths.append(save(tmp_path / f"t{rank}.json", *host.events, distributedInfo={"rank": rank}))
        plumb("import", *paths, "-o", tmp_path / "p.plumb", "--force")
        return tmp_path / "p.plumb"

    return make


@pytest.mark.parametrize("lag", [0, 300, 5000])
def test_decode_is_apart_from_prefill(profile_of, lag):
    host = Host(lag)
    prefill(host)
    decode(host, 40)
    path = profile_of(host)
    assert [(name, iterations) for _, name, iterations, *_ in windows(path)] == \
        [("startup", None), ("loop:1", 40), ("rest", None)]
    check_sums(path)
    # Each of 40 steps has 74 operators and its own range, and all of their kernels.
    assert total(path, "loop:1", "op.calls")[:2] == (40 * 75, 40 * 75)
    assert total(path, "startup", "op.calls")[:2] == (74, 74)
    assert total(path, "loop:1", "gpu.launches")[0] == 40 * 74
    assert total(path, "loop:1", "host.wait")[1] == 40 and total(path, "startup", "host.wait")[1] == 1
    assert total(path, "loop:1", "gpu.time", "flash_prefill") == (0, 0, None, None)
    assert total(path, "loop:1", "gpu.time", "gemm")[1] == 0
    assert total(path, "startup", "gpu.time", "gemv")[1] == 0
    # What both do is told apart by its single times.
    assert total(path, "loop:1", "gpu.time", "shared_kernel") == (40 * 24 * 22 * US, 40 * 24, 22 * US, 22 * US)
    assert total(path, "startup", "gpu.time", "shared_kernel") == (24 * 500 * US, 24, 500 * US, 500 * US)


def test_what_spans_do_not_tell_is_unknown(profile_of):
    host = Host()
    prefill(host, marked=False)
    decode(host, 40, marked=False)
    path = profile_of(host)
    check_sums(path, unknown=["gpu.blocks"])
    # shared_kernel has two grids in one context, and its spans do not say which: all blocks are unknown.
    assert query(path, "SELECT COUNT(*) FROM context_values v JOIN metrics m ON m.id = v.metric "
                      "WHERE m.name = 'gpu.blocks'") != [(0,)]
    for window in ("startup", "loop:1"):
        assert total(path, window, "gpu.blocks") == (0, 0, None, None)
    assert total(path, "startup", "gpu.registers") == (16, 1, 16, 16)


def shape_calls(path, window, shapes):
    return query(path, f"""
        SELECT COALESCE(SUM(v.count), 0), COALESCE(SUM(v.time_ns), 0) FROM window_variants v
        JOIN windows w ON w.id = v.window
        WHERE v.shapes = '{shapes}' AND w.kind || COALESCE(':' || w.number, '') = '{window}'""")[0]


def test_shapes_of_one_context(profile_of, plumb):
    """One shape lies in start-up, the other in start-up and the loop. The file says no shape of a span."""
    host = Host()
    prefill(host, marked=False)
    decode(host, 40, marked=False)
    products = [made for made in host.events if made["name"] == "aten::mm"]
    for i, made in enumerate(products):
        many = i < 40
        made["args"] = {"Input Dims": [[512 if many else 1, 64], [64, 64]], "Input type": ["float", "float"]}
    path = profile_of(host)
    many, one = (f"(float32[{rows_of},64], float32[64,64])" for rows_of in (512, 1))
    assert shape_calls(path, "startup", many) == (40, 40 * 8 * US)
    assert shape_calls(path, "loop:1", many) == (0, 0)
    assert shape_calls(path, "startup", one) == (8, 8 * 8 * US)
    assert shape_calls(path, "loop:1", one) == (40 * 48, 40 * 48 * 8 * US)
    assert "main loop only" in plumb("report", path, "--by", "shape").stdout


def test_shapes_that_are_mixed_are_shown_of_the_whole(profile_of, plumb):
    host = Host()
    prefill(host, marked=False)
    decode(host, 40, marked=False)
    for i, made in enumerate(made for made in host.events if made["name"] == "aten::mm"):
        made["args"] = {"Input Dims": [[1 + i % 2, 64], [64, 64]], "Input type": ["float", "float"]}
    path = profile_of(host)
    assert query(path, "SELECT COUNT(*) FROM window_variants WHERE shapes IS NOT NULL") == [(0,)]
    text = plumb("report", path, "--by", "shape").stdout
    assert "main loop only" not in text and "984" in text
    assert "984" not in plumb("report", path, "--by", "shape", "--window", "loop").stdout


def test_loops_that_take_turns(profile_of):
    host = Host()
    for i in range(60):
        host.operator("aten::fill_", f"tune_{i}", 100 + i)
    host.synchronize()
    for _ in range(3):
        step(host, TRAIN, 30)
        step(host, EVALUATE, 20)
    path = profile_of(host)
    assert [(name, iterations, count) for _, name, iterations, count, _ in windows(path)
            if name.startswith("loop")] == [("loop:1", 90, 3), ("loop:2", 60, 3)]
    check_sums(path)
    assert total(path, "startup", "gpu.time")[1] == 60
    for window, names_of, calls in (("loop:1", TRAIN, 90), ("loop:2", EVALUATE, 60)):
        assert total(path, window, "op.calls")[0] == calls * (len(names_of) + (names_of is TRAIN))
        for name in names_of:
            assert total(path, window, "gpu.time", f"k_{name}")[1] == calls
    assert total(path, "loop:1", "gpu.time", "k_softmax")[1] == 0
    assert total(path, "loop:2", "gpu.time", "k_conv")[1] == 0


def test_ranks_have_the_same_loops(profile_of):
    hosts = [Host(pid=5, start=1000), Host(pid=9, start=4000)]
    for host in hosts:
        prefill(host)
        decode(host, 40)
        step(host, TRAIN, 200)
    path = profile_of(*hosts)
    for process in (0, 1):
        assert [(name, iterations) for own, name, iterations, *_ in windows(path) if own == process
                if name.startswith("loop")] == [("loop:1", 40), ("loop:2", 200)]
    check_sums(path)
    assert total(path, "loop:1", "gpu.time", "gemv")[1] == 2 * 40 * 24
    assert total(path, "loop:2", "gpu.time", "gemv")[1] == 0


def test_a_process_without_a_loop_goes_by_the_others(profile_of):
    host = Host()
    prefill(host)
    decode(host, 40)
    host.events += [event("cpu_op", "load", start, 50, pid=77, tid=78)
                    for start in range(1000, int(host.now) - 50, 100)]
    path = profile_of(host)
    assert {name for process, name, *_ in windows(path) if process == 1} == {"startup", "loop:1"}
    check_sums(path)
    assert total(path, "loop:1", "op.calls", "load")[0] > 0 < total(path, "startup", "op.calls", "load")[0]
    assert total(path, "loop:1", "op.calls", "aten::mm")[0] == 40 * 48


@pytest.mark.parametrize("what", ["steps", "few", "step of layers", "graph of layers"])
def test_no_windows_where_they_would_tell_nothing(profile_of, what):
    host = Host()
    start = host.now
    if what == "steps":
        step(host, TRAIN, 30)
    elif what == "few":
        for i in range(60):
            host.operator("aten::fill_", f"tune_{i}", 100 + i)
        step(host, TRAIN, 3)
    elif what == "step of layers":
        prefill(host)
        host.span("ProfilerStep#3", start)
        start = host.now
        for i in range(9):
            host.operator("aten::embedding", f"embed_{i}", 300)
        step(host, TRAIN, 12)
        host.span("ProfilerStep#4", start)
    else:
        host.operator("aten::embedding", "embed", 500)
        host.graph([(f"k_{i}", 30) for i in range(40)] + [(name, 20) for _ in range(36) for name in TRAIN])
        host.synchronize()
    assert names(profile_of(host)) == []


def test_verbs_on_a_trace(plumb, tmp_path):
    host = Host()
    prefill(host)
    decode(host, 40)
    trace = save(tmp_path / "t.json", *host.events)
    text = plumb("report", trace).stdout
    assert "a GPU works for 28.9 ms of it" in text  # 24 layers of 1.2 ms, and 50 µs
    assert "main loop" in text and "40 iterations" in text and "flash_prefill" not in text
    report = json.loads(plumb("report", trace, "--json").stdout)
    assert [w["name"] for w in report["windows"]] == ["startup", "loop", "rest"]
    kernels = json.loads(plumb("report", trace, "--by", "kernel", "--window", "loop", "--json").stdout)
    kernels = {row["name"]: row for row in kernels["rows"]}
    assert kernels["gemv"]["calls"] == 40 * 24 and "flash_prefill" not in kernels
    assert "flash_prefill" in plumb("report", trace, "--by", "kernel", "--window", "startup").stdout
    found = plumb("report", trace, "--per-iteration", "--by", "kernel").stdout
    assert "gemv" in found and "24" in found and "flash_prefill" not in found
    assert "40 iterations of 74 kernels" in plumb("iters", trace, "--window", "loop").stdout
    missing = plumb("report", trace, "--window", "loop:2", check=False)
    assert missing.returncode == 3 and "startup, loop, rest" in missing.stderr


def test_a_short_loop_of_a_recording(tmp_path):
    """60 rounds of 120 µs are over before plumb looks at the values once; their spans have them."""
    made = run_driver(tmp_path, "short_loop", "60", options=("--trace",))
    path = made.profile.path
    assert [(name, iterations) for _, name, iterations, *_ in windows(path)] == \
        [("startup", None), ("loop:1", 60), ("rest", None)]
    assert total(path, "loop:1", "gpu.time") == (60 * 6 * 20 * US, 60 * 6, 20 * US, 20 * US)
    assert total(path, "startup", "gpu.time") == (20 * 500 * US, 20, 500 * US, 500 * US)
    # On a busy machine it is not so short, and looks may come.
    check_sums(path, unknown=["host.wait", "host.time"])
