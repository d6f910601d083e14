# SPDX-License-Identifier: Apache-2.0
"""Origins of compiled kernels, on regions written by hand with the file and log that PyTorch 2.11 left of a
compiled function on a GPU (fuzz/corpus/inductor): settling, reports, and what is not there or not true."""
import collections
import json
import pathlib
import sqlite3

import pytest
from conftest import ROOT, PLUMB, run_command
from regionwriter import Region

import plumb as plumb_package

CORPUS = ROOT / "tests" / "fuzz" / "corpus" / "inductor"
NAME = "ck5mudjvwzejwh6p67duvedmyp2r5zp2k5nak3nbsjfnal2cq5mq.py"
LOGGED = "/home/u/c2/k5/" + NAME
USER = "/home/u/comp.py"
KERNELS = ("triton_poi_fused_mul_sin_0", "scaled_add", "triton_poi_fused_add_cos_1")


class Run:
    """A run folder with one compiled region that ran the three kernels of the corpus."""

    def __init__(self, folder):
        self.folder = folder / "a.run"
        (self.folder / "torch_trace").mkdir(parents=True)
        self.file = folder / NAME
        self.profile = folder / "a.plumb"
        self.code = (CORPUS / "cuda.py").read_text()
        self.log = (CORPUS / "cuda.log").read_text().replace(LOGGED, str(self.file))
        self.region = Region(pid=10921)
        self.thread = self.region.thread(10921)
        self.user = self.region.node(0, "python", "<module>", file=USER, number=53)
        self.compiled = self.region.node(self.user, "operator", "Torch-Compiled Region: 2/0")

    def line_of(self, text):
        return next(n for n, line in enumerate(self.code.splitlines(), 1) if text in line)

    def launch(self, line, kernel):
        """A kernel that the generated file's LINE launched, as on a GPU; its call of the driver."""
        region = self.region
        frame = region.node(self.compiled, "python", "Runner.call", file=str(self.file), number=line)
        frame = region.node(frame, "python", "launcher", file="<string>", number=5)
        call = region.node(frame, "gpu_api", "cuLaunchKernel")
        region.value(region.node(call, "kernel", kernel), self.thread, 10)
        return call

    def launch_all(self):
        for name, kernel in zip((KERNELS[0], "scaled_add_0", KERNELS[2]), KERNELS):
            self.launch(self.line_of(name + ".run("), kernel)

    def settle(self, write_code=True):
        if write_code:
            self.file.write_text(self.code)
        if self.log:
            (self.folder / "torch_trace" / "dedicated_log_torch_trace_x.log").write_text(self.log)
        self.region.write(self.folder / "10921.region")
        done = run_command(PLUMB, "settle", self.folder, "-o", self.profile)
        assert done.returncode == 0, done.stderr
        return done

    def origins(self):
        """{kernel: {(operator or None, lines outermost first)}}."""
        found = collections.defaultdict(set)
        for node in plumb_package.Profile(self.profile).kernels:
            found[node.name]
            for reason, origin in node.origins:
                assert reason == "fused"
                operator = origin.name if origin.kind == "operator" else None
                lines, at = [], origin if operator is None else origin.parent
                while at.kind == "python":
                    assert at.file == USER
                    lines.insert(0, at.line)
                    at = at.parent
                assert at.name == "Torch-Compiled Region: 2/0"
                found[node.name].add((operator, tuple(lines)))
        return dict(found)

    def ledger(self):
        rows = sqlite3.connect(self.profile).execute(
            "SELECT fate, coalesce(detail, ''), count FROM ledger WHERE source = 'provenance'")
        return {(fate, detail): count for fate, detail, count in rows}

    def rows(self, by):
        done = run_command(PLUMB, "report", self.profile, "--json", "--by", by, "--top", "0",
                           "--metric", "op.duration")
        return json.loads(done.stdout)["rows"]


@pytest.fixture
def made(tmp_path):
    return Run(tmp_path)


def test_what_was_compiled_in_this_run(made):
    made.launch_all()
    made.settle()
    found = made.origins()
    # The log's nodes of a kernel that is called once; the graph's lines.
    assert found[KERNELS[2]] == {("aten::cos", (27,)), ("aten::add", (27,))}
    assert {("aten::sin", (25,)), ("aten::mul", (25,))} <= found[KERNELS[0]]
    assert (25,) in {lines for _, lines in found["scaled_add"]}
    assert made.ledger() == {("received", ""): 3, ("attributed", ""): 3}
    rows = {row["name"]: row for row in made.rows("kernel")}
    assert rows[KERNELS[2]]["user_file"] == USER and rows[KERNELS[2]]["user_line"] == 27
    assert {"operator": "aten::cos", "file": USER, "line": 27} in rows[KERNELS[2]]["from"]
    # The one that was written by hand says where.
    assert (rows["scaled_add"]["source_file"], rows["scaled_add"]["source_line"]) == (USER, 6)
    lines = {row["line"]: row for row in made.rows("line") if row["file"] == USER}
    assert lines[27]["exclusive"]["op.duration"]["max"] == 10
    assert {part["operator"] for part in lines[27]["from"]} >= {"aten::cos", "aten::add"}
    text = run_command(PLUMB, "report", made.profile, "--by", "kernel", "--metric", "op.duration").stdout
    assert f"{KERNELS[2]}: from " in text and "at comp.py:27" in text
    tree = run_command(PLUMB, "report", made.profile, "--by", "context", "--metric", "op.duration",
                       "--top", "0").stdout.splitlines()
    (kernel,) = [line for line in tree if "comp.py:27" in line]  # and no row for the origin itself
    assert "generated:" in kernel and kernel.endswith("at comp.py:27")


def test_stacks_of_provenance(made):
    """With INDUCTOR_PROVENANCE the file has handles, and the log the whole stack of each call."""
    for number, name in enumerate((KERNELS[0], "scaled_add_0", KERNELS[2]), 1):
        call = f"            {name}.run("
        made.code = made.code.replace(
            call, f"            # [Provenance debug handles] {name}:{number}\n{call}")
    made.launch_all()
    made.settle()
    found = made.origins()
    assert {("aten::sin", (25,)), ("aten::mul", (25,)), (None, (26, 16))} <= found[KERNELS[0]]
    assert found[KERNELS[2]] == {("aten::cos", (27,)), ("aten::add", (27,))}


def test_node_without_a_line(made):
    """A node that one of the compiler's passes made is on no line, not on that of the node before it."""
    node = '\t        add: "f32[32, 64][64, 1]cuda:0" = torch.ops.aten.add.Tensor'
    assert node in made.log
    made.log = made.log.replace(node, "\t        # No stacktrace found for following nodes\n" + node)
    made.launch_all()
    made.settle()
    assert made.origins()[KERNELS[2]] == {("aten::cos", (27,)), ("aten::add", ())}


def test_without_a_log(made):
    made.log = ""
    made.launch_all()
    made.settle()
    assert made.origins() == {KERNELS[0]: {("aten::sin", ()), ("aten::mul", ())},
                              "scaled_add": {("aten::sin", ()), ("aten::mul", ())},
                              KERNELS[2]: {("aten::cos", ()), ("aten::add", ())}}
    assert made.ledger() == {("received", ""): 3, (
        "no_provenance", "lines: its compilation left no log"): 3}


def test_of_another_process(made):
    made.log = made.log.replace(" 10921 ", " 10922 ")
    made.launch_all()
    made.settle()
    assert all(not lines for parts in made.origins().values() for _, lines in parts)


def test_from_the_compilers_cache(made):
    """No graph was compiled, so names in comments are another compilation's, until a hit of Dynamo's own
    graph says that they are the same."""
    records, keep = [], False
    for line in made.log.splitlines(keepends=True):
        if not line.startswith("\t"):
            keep = "dynamo_output_graph" in line or "inductor_output_code" in line
        if keep:
            records.append(line)
    made.log = "".join(records)
    made.launch_all()
    made.settle()
    assert all(not lines for parts in made.origins().values() for _, lines in parts)
    (detail,) = (detail for fate, detail in made.ledger() if fate == "no_provenance")
    assert "cache" in detail and "TORCHINDUCTOR_FORCE_DISABLE_CACHES=1" in detail
    made.log += ('V1121 11:46:31.000000 10921 torch/x.py:1] {"artifact": {"name": '
                 '"aotautograd_cache_hit", "encoding": "json"}, "frame_id": 2, "frame_compile_id": 0}\n')
    made.settle()
    assert made.origins()[KERNELS[2]] == {("aten::cos", (27,)), ("aten::add", (27,))}


def test_two_compilations_that_contradict(made):
    made.log += made.log.replace("comp.py:27", "comp.py:99").replace("line 27", "line 99")
    made.launch_all()
    made.settle()
    assert all(not lines for parts in made.origins().values() for _, lines in parts)
    (detail,) = (detail for fate, detail in made.ledger() if fate == "no_provenance")
    assert "several compilations" in detail


def test_file_gone(made):
    made.launch_all()
    made.settle(write_code=False)
    assert made.origins() == {name: set() for name in KERNELS}
    assert made.ledger() == {("received", ""): 3, (
        "no_provenance", "the file that the compiler generated is gone"): 3}


def test_other_kernels_and_lines(made):
    """A kernel of another name under a call is not the call's; a line that calls nothing says so."""
    made.launch(made.line_of(KERNELS[2] + ".run("), "memset_kernel")
    made.launch(1, KERNELS[2])
    made.settle()
    assert made.origins() == {"memset_kernel": set(), KERNELS[2]: set()}
    assert any("calls no kernel" in detail for _, detail in made.ledger())


def test_replayed_graph(made):
    """A kernel of a CUDA graph comes from the calls that were captured, by its name."""
    region = made.region
    captured = [made.launch(made.line_of(name + ".run("), "capture")
                for name in (KERNELS[0], KERNELS[2])]
    replay = region.node(made.user, "gpu_api", "cuGraphLaunch")
    graph = region.node(replay, "graph", "Torch-Compiled Region: 2/0", file="triton.py", number=7)
    for call in captured:
        region.origin(graph, call, "graph_capture")
    region.value(region.node(graph, "kernel", KERNELS[2]), made.thread, 10)
    made.settle()
    assert made.origins()[KERNELS[2]] == {("aten::cos", (27,)), ("aten::add", (27,))}


@pytest.mark.parametrize("part", range(0, 100, 7))
def test_cut_off(made, part):
    """Half of a log and half of a file: what is whole counts, and nothing fails."""
    made.launch_all()
    whole = made.log, made.code
    made.log = whole[0][: len(whole[0]) * part // 100]
    made.settle()
    for parts in made.origins().values():
        assert {line for _, lines in parts for line in lines} <= {25, 16, 26, 27}
    made.code = whole[1][: len(whole[1]) * part // 100]
    made.settle()
    assert isinstance(made.file, pathlib.Path) and made.ledger()[("received", "")] == 3


@pytest.mark.parametrize("given, seen", [(None, "/torch_trace"), ("", "None"), ("/nowhere", "/nowhere")])
def test_variable(record, given, seen):
    """PyTorch logs beside the run's records, unless the user says where, or nowhere."""
    environment = {} if given is None else {"TORCH_TRACE": given}
    made = record("sh", "-c", "echo ${TORCH_TRACE-None}", env=environment)
    assert made.returncode == 0
    found = made.stdout.strip()
    assert found == seen if given is not None else found.endswith(".run" + seen)
