#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How plumb behaves around real programs on a GPU: each scenario states facts that must hold.

    python3 tests/accuracy/behaviour.py [--plumb PATH] [--only NAME]…

Prints one line per scenario, PASS or FAIL with what failed; exits 0 or 1. A scenario whose framework
is missing is skipped with a word.
"""
import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SCENARIOS = {}


def scenario(function):
    SCENARIOS[function.__name__] = function
    return function


class Bench:
    def __init__(self, plumb, folder):
        self.plumb, self.folder = plumb, folder

    def command(self, source, options=()):
        program = os.path.join(self.folder, "program.py")
        with open(program, "w") as file:
            file.write(textwrap.dedent(source))
        self.profile = os.path.join(self.folder, "out.plumb")
        if os.path.exists(self.profile):
            os.remove(self.profile)
        return [self.plumb, "run", "-o", self.profile, *options, "--", sys.executable, program]

    def run(self, source, *options, code=0, environment=None):
        command = self.command(source, options)
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True,
                              env={**os.environ, **(environment or {})}, timeout=300)
        assert done.returncode == code, f"exit code {done.returncode}, not {code}: {done.stderr[-1500:]}"
        return done

    def plain(self, source):
        command = self.command(source)[-2:]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=300)

    def report(self, *options):
        done = subprocess.run([self.plumb, "report", self.profile, "--json", "--top", "0", *options],
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


def kernels(data):
    return sum(device["kernels"]["count"] for device in data["devices"])


def dropped(data, source):
    return sum(row["dropped"] for row in data["ledger"] if row["source"] == source)


def received(data, source):
    return sum(row["received"] for row in data["ledger"] if row["source"] == source)


def paths(data, kind="kernel"):
    """(context, chain of contexts from it to the root) of every context of KIND that has GPU work."""
    by_id = {context["id"]: context for context in data["contexts"]}
    for context in data["contexts"]:
        if context["kind"] == kind:
            chain, at = [], context
            while at is not None:
                chain.append(at)
                at = by_id.get(at["parent"])
            yield context, chain


PROFILES_ITSELF = """
    import torch
    from torch.profiler import profile, ProfilerActivity
    x = torch.randn(256, 256, device="cuda")
    for _ in range(20): x = (x @ x).tanh()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as p:
        for _ in range(50): x = (x @ x).tanh()
        torch.cuda.synchronize()
    print("kernels seen", sum(1 for e in p.events() if e.device_type.name == "CUDA"))
    for _ in range(30): x = (x @ x).tanh()
    torch.cuda.synchronize()
"""


@scenario
def program_profiles_itself(bench):
    plain = bench.plain(PROFILES_ITSELF)
    watched = bench.run(PROFILES_ITSELF)
    assert watched.stdout == plain.stdout, f"{plain.stdout!r} became {watched.stdout!r}"
    assert "kernels seen 0" not in watched.stdout
    data = bench.report()
    seen = kernels(data)
    assert seen >= 40, f"only {seen} kernels outside the program's own profile"
    assert any(row["source"] == "gpu.slot" for row in data["ledger"]), "the ledger does not tell of the gap"


@scenario
def keeps_the_slot_when_asked(bench):
    bench.run(PROFILES_ITSELF, "--keep-cupti")
    assert kernels(bench.report()) >= 200


LOOP = """
    import os, sys, time, torch
    x = torch.randn(512, 512, device="cuda")
    for _ in range(2000):
        x = (x @ x).tanh()
    torch.cuda.synchronize()
    print("ready", flush=True)
    END
"""


def interrupted(bench, number, end="time.sleep(60)"):
    command = bench.command(LOOP.replace("END", end))
    child = subprocess.Popen(command, cwd=bench.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True)
    assert child.stdout.readline() == "ready\n"
    time.sleep(0.3)
    if number == signal.SIGKILL:
        listed = subprocess.run(["pgrep", "-P", str(child.pid)], capture_output=True, text=True).stdout
        os.kill(int(listed.split()[0]), number)
    else:
        child.send_signal(number)
    child.communicate(timeout=60)
    return child.returncode


@scenario
def sigterm(bench):
    code = interrupted(bench, signal.SIGTERM)
    assert code == -15, f"exit code {code}"
    data = bench.report()
    assert kernels(data) >= 4000 and dropped(data, "gpu.launch") == 0, (kernels(data), data["ledger"])


@scenario
def sigkill_of_the_program(bench):
    code = interrupted(bench, signal.SIGKILL)
    assert code == -9, f"exit code {code}"
    data = bench.report()
    assert kernels(data) >= 4000, kernels(data)


@scenario
def leaves_by_underscore_exit(bench):
    bench.run(LOOP.replace("END", "os._exit(7)"), code=7)
    data = bench.report()
    assert kernels(data) >= 4000 and dropped(data, "gpu.launch") == 0, data["ledger"]


@scenario
def copies_and_sets(bench):
    bench.run("""
        import torch
        pageable, pinned = torch.ones(1 << 20), torch.ones(1 << 20).pin_memory()
        for _ in range(3): pageable.to("cuda")
        for _ in range(5): d = pinned.to("cuda", non_blocking=True)
        for _ in range(2): d.cpu()
        e = d.clone()
        torch.zeros(1 << 20, dtype=torch.uint8, device="cuda")
        torch.cuda.synchronize()
    """)
    data = bench.report("--by", "context")
    copies = {}
    for context, _ in paths(data, "copy"):
        value = context["exclusive"]["gpu.copy_bytes"]
        row = copies.setdefault(context["name"], [0, 0])
        row[0] += value["count"]
        row[1] += value["sum"]
    assert copies.get("copy pageable→device") == [3, 3 << 22], copies
    assert copies.get("copy pinned→device") == [5, 5 << 22], copies
    assert copies.get("copy device→pageable") == [2, 2 << 22], copies
    assert copies.get("copy device→device") == [1, 1 << 22], copies


@scenario
def streams_and_threads(bench):
    bench.run("""
        import threading, torch
        def work(n):
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                x = torch.zeros(1000, device="cuda")
                for _ in range(n): x.add_(1)
                stream.synchronize()
        threads = [threading.Thread(target=work, args=(100 * (i + 1),)) for i in range(4)]
        [t.start() for t in threads]; [t.join() for t in threads]
    """)
    data = bench.report("--by", "context")
    adds = sum(c["exclusive"]["gpu.time"]["count"] for c, chain in paths(data)
               if any(k["name"] == "aten::add_" for k in chain))
    assert adds == 1000, adds


GRAPHS = """
    import threading
    import torch
    x = torch.zeros(1000, device="cuda")
    def capture(count):
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            x.add_(1).mul_(2)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            for _ in range(count): x.add_(1)
            x.mul_(2)
        return graph
    def first(graph): graph.replay()
    def second(graph): graph.replay()
    a, b = capture(3), capture(20)
    for i in range(250):
        first(a)
        if i % 2: second(a)
        first(b)
    c = capture(5)
    for _ in range(120): first(c)
    torch.cuda.synchronize()
"""


def replayed(data, function, metric="gpu.nodes"):
    """Executions in graphs that FUNCTION launched, by the operator that was captured."""
    count = {}
    for context, chain in paths(data):
        names = [k["name"] for k in chain]
        graph = [k["name"] for k in chain if k["kind"] == "graph"]
        if function in names and "cuGraphLaunch" in names and graph:
            value = context["exclusive"].get(metric, {"count": 0})
            count[graph[0]] = count.get(graph[0], 0) + value["count"]
    return count


def whole(data):
    """(replays, ns) of graphs that were timed as a whole."""
    found = [c["exclusive"]["gpu.time"] for c, chain in paths(data)
             if c["name"].startswith("CUDA graph")]
    return sum(v["count"] for v in found), sum(v["sum"] for v in found)


EVERY = {"aten::add_": 250 * 3 + 250 * 20 + 120 * 5, "aten::mul_": 250 + 250 + 120}
SECOND = {"aten::add_": 125 * 3, "aten::mul_": 125}


@scenario
def replays_have_exact_counts(bench):
    """One record for a replay, and counts as if each node had one."""
    bench.run(GRAPHS)
    data = bench.report("--by", "context")
    assert replayed(data, "first") == EVERY, replayed(data, "first")
    assert replayed(data, "second") == SECOND, replayed(data, "second")
    assert received(data, "gpu.replay") == 745, data["ledger"]
    assert not dropped(data, "gpu.replay") and not dropped(data, "gpu.launch"), data["ledger"]
    names = {c["name"] for c, chain in paths(data) if any(k["kind"] == "graph" for k in chain)}
    assert all("elementwise" in name for name in names), names
    count, ns = whole(data)
    bench.run(GRAPHS, "--graphs=nodes")
    nodes = bench.report("--by", "context")
    assert replayed(nodes, "first", "gpu.time") == EVERY, replayed(nodes, "first", "gpu.time")
    assert not received(nodes, "gpu.replay") and count == 745, count
    assert {c["name"] for c, chain in paths(nodes)
            if any(k["kind"] == "graph" for k in chain)} == names
    time = sum(c["exclusive"]["gpu.time"]["sum"] for c, chain in paths(nodes)
               if any(k["name"] == "cuGraphLaunch" for k in chain))
    assert 0.5 < time / ns < 2, (time, ns)


@scenario
def graphs_are_made_while_others_are_replayed(bench):
    source = GRAPHS.replace("    c = capture(5)", """
    def work(graph):
        with torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(3000): graph.replay()
    threads = [threading.Thread(target=work, args=[capture(2)]) for _ in range(2)]
    for thread in threads: thread.start()
    more = []
    for n in range(20):
        more.append(capture(2 + n % 3))
        for graph in more: graph.replay()
    for thread in threads: thread.join()
    c = capture(5)""")
    plain = bench.plain(source)
    if plain.returncode:
        return f"skipped: without plumb it ends with {plain.returncode}"
    bench.run(source)
    data = bench.report("--by", "context")
    assert replayed(data, "second") == SECOND, replayed(data, "second")
    assert replayed(data, "work") == {"aten::add_": 2 * 6000, "aten::mul_": 6000}
    assert not dropped(data, "gpu.launch"), data["ledger"]


@scenario
def graph_parts_of_a_run(bench):
    """Recording that begins after a graph was made and launched."""
    bench.run(GRAPHS.replace("    for i in range(250):", """
    import plumb, time
    for _ in range(150): first(a)
    torch.cuda.synchronize()
    plumb.start()
    time.sleep(0.5)
    for i in range(250):"""), "--toggle", "USR2")
    data = bench.report("--by", "context")
    assert received(data, "gpu.replay") == 150 + 745, data["ledger"]
    second = [c["exclusive"]["gpu.nodes"]["count"] for c, chain in paths(data)
              if "second" in [k["name"] for k in chain] and "gpu.nodes" in c["exclusive"]]
    assert whole(data)[0] == 745 and sum(second) == 125 * 4, (whole(data), second)


@scenario
def jax_without_its_operators(bench):
    """XLA launches from threads of its own, which run no Python: said, not guessed."""
    if subprocess.run([sys.executable, "-c", "import jax"], capture_output=True).returncode:
        return "no JAX"
    bench.run("""
        import jax, jax.numpy as jnp
        @jax.jit
        def f(x): return jnp.tanh(x @ x).sum()
        x = jnp.ones((256, 256))
        for _ in range(5): f(x).block_until_ready()
    """, environment={"XLA_PYTHON_CLIENT_PREALLOCATE": "false"})
    data = bench.report("--by", "context")
    total = python = 0
    for context, chain in paths(data):
        count = context["exclusive"]["gpu.time"]["count"]
        total += count
        python += count * any(c["kind"] == "python" for c in chain)
    assert total == received(data, "gpu.kernel"), (total, data["ledger"])
    said = [fate["count"] for row in data["ledger"] if row["source"] == "gpu.kernel"
            for fate in row.get("fates", []) if "no Python" in (fate["reason"] or "")]
    assert python and sum(said) == total - python, (python, total, said)


@scenario
def triton_kernel(bench):
    if subprocess.run([sys.executable, "-c", "import triton"], capture_output=True).returncode:
        return "no Triton"
    bench.run("""
        import torch, triton, triton.language as tl
        @triton.jit
        def double(x, n, B: tl.constexpr):
            i = tl.program_id(0) * B + tl.arange(0, B)
            tl.store(x + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)
        x = torch.ones(4096, device="cuda")
        for _ in range(7): double[(16,)](x, 4096, B=256)
        torch.cuda.synchronize()
        assert x[0].item() == 128
    """)
    data = bench.report("--by", "context")
    found = [(c, chain) for c, chain in paths(data) if c["name"] == "double"]
    assert sum(c["exclusive"]["gpu.time"]["count"] for c, _ in found) == 7, found
    assert all(any(k["kind"] == "python" and str(k["file"]).endswith("program.py") for k in chain)
               for _, chain in found)


@scenario
def forked_workers(bench):
    bench.run("""
        import torch
        from torch.utils.data import DataLoader, TensorDataset
        data = TensorDataset(torch.ones(64, 8))
        x = torch.zeros(8, device="cuda")
        for (batch,) in DataLoader(data, batch_size=8, num_workers=2):
            x += batch.cuda().sum(0)
        assert x[0].item() == 64
    """)
    data = bench.report()
    assert len(data["processes"]) == 3, data["processes"]  # each worker is one
    assert not any(row["source"] == "process" and row["dropped"] for row in data["ledger"])


@scenario
def child_forked_before_cuda_uses_it(bench):
    bench.run("""
        import os, torch
        torch.neg(torch.ones(2))
        child = os.fork()
        if not child:
            x = torch.ones(64, device="cuda")
            for _ in range(5): x = x.tanh()
            torch.cuda.synchronize()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        torch.zeros(8, device="cuda").add_(1)
        torch.cuda.synchronize()
    """)
    data = bench.report("--by", "operator")
    count = {row["name"]: row["inclusive"].get("gpu.time", {}).get("count") for row in data["rows"]}
    assert count["aten::tanh"] == 5, count
    device, = data["devices"]
    assert len(device["processes"]) == 2, device


@scenario
def parts_of_a_run(bench):
    package = os.path.join(HERE, "..", "..", "python")
    bench.run("""
        import plumb, torch
        x = torch.ones(64, device="cuda")
        def work(function, times):
            for _ in range(times): function(x)
        work(torch.sin, 10)
        plumb.stop()
        work(torch.cos, 1000)
        torch.cuda.synchronize()
        work(torch.cos, 1000)
        plumb.start()
        work(torch.tanh, 20)
        torch.cuda.synchronize()
    """, environment={"PYTHONPATH": package})
    data = bench.report("--by", "operator")
    count = {row["name"]: row["inclusive"].get("gpu.time", {}).get("count") for row in data["rows"]}
    assert count["aten::sin"] == 10 and count["aten::tanh"] == 20, count
    assert "aten::cos" not in count, count
    dropped = [row for row in data["ledger"] if row["dropped"]]
    assert not dropped, dropped


@scenario
def slot_held_by_another_tool(bench):
    sys.path.insert(0, os.path.join(HERE, "..", "..", "bench"))
    from overhead import build_floor
    other = build_floor(bench.folder, sys.executable)
    done = bench.run(LOOP.replace("END", ""), environment={"CUDA_INJECTION64_PATH": other})
    data = bench.report()
    rows = {row["name"] for row in data["rows"]}
    assert "aten::tanh" in rows, "the CPU side is missing"
    if not kernels(data):
        assert "slot" in json.dumps(data["run"]["environment"]) + done.stderr


@scenario
def same_warnings_and_output(bench):
    source = """
        import sys, warnings, torch
        torch.manual_seed(0)
        warnings.warn("a warning")
        m = torch.nn.Linear(64, 64).cuda()
        for _ in range(5): m(torch.randn(8, 64, device="cuda")).sum().backward()
        print(m.weight.grad.sum().item().hex(), file=sys.stderr)
        print(m.weight.grad.double().sum().item().hex())
        sys.exit(3)
    """
    plain = bench.plain(source)
    watched = bench.run(source, code=3)
    assert plain.stdout == watched.stdout
    own = [line for line in watched.stderr.splitlines()]
    for line in plain.stderr.splitlines():
        assert line in own, line


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--plumb", default=os.path.join(HERE, "..", "..", "build", "plumb"))
    parser.add_argument("--only", action="append")
    options = parser.parse_args()
    failed = 0
    for name, function in SCENARIOS.items():
        if options.only and name not in options.only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                word = function(Bench(os.path.abspath(options.plumb), folder))
                print(f"SKIP {name}: {word}" if word else f"PASS {name}", flush=True)
            except (AssertionError, KeyError, subprocess.TimeoutExpired) as why:
                failed += 1
                print(f"FAIL {name}: {type(why).__name__} {str(why)[:1500]}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
