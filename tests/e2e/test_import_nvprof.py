# SPDX-License-Identifier: Apache-2.0
"""nvprof's traces of GPU work and of API calls, as CSV and as plain text: columns of old and new versions, units
that change from run to run, what nvprof and the program print in between, and rows that are no work."""
import gzip

import pytest
from conftest import PLUMB, run_command
from importing import cut_everywhere
from tables import imported, refused

HEAD = "==4711== NVPROF is profiling process 4711, command: ./train -n \"2\"\n"
OLD = """hello, "world
==4711== Profiling result:
"Start","Duration","Grid X","Grid Y","Grid Z","Block X","Block Y","Block Z","Registers Per Thread","Static SMem",\
"Dynamic SMem","Size","Throughput","Device","Context","Stream","Name"
ms,us,,,,,,,,KB,B,MB,GB/s,,,,
182.960000,6404.900000,,,,,,,,,,38.146973,5.816300,"GeForce GT 650M (0)","1","7","[CUDA memcpy HtoD]"
195.890000,3407.200000,39063,2,1,256,4,1,8,0.500000,16,,,"GeForce GT 650M (0)","1","7","add(float const *, int) [112]"
195.990001,1.0005,1,1,1,32,1,1,8,0,0,,,"GeForce GT 650M (1)","2","13","add(float const *, int) [113]"
"""
NEW = """==9== NVPROF is profiling process 9, command: ./a.out
==9== Warning: 3 records have invalid timestamps
==9== Profiling result:
"Start","Duration","Grid X","Grid Y","Grid Z","Block X","Block Y","Block Z","Registers Per Thread","Static SMem",\
"Dynamic SMem","Size","Throughput","SrcMemType","DstMemType","Device","Context","Stream","Unified Memory",\
"Virtual Address","Src Dev","Src Ctx","Dst Dev","Dst Ctx","Name","Correlation_ID"
s,ns,,,,,,,,B,KB,KB,MB/s,,,,,,,,,,,,,
0.488050000,,,,,,,,,,,,,,,,,,"PC 0x46de3225","0x7612d2000000",,,,,"[Unified Memory CPU page faults]",
0.491480000,25952,,,,,,,,,,,,,,"Tesla T4 (0)",,,"2","0x7612d2000000",,,,,"[Unified Memory GPU page faults]",
0.491500000,1500,,,,,,,,,,,,,,"Tesla T4 (0)",,,"64.000000 KB","0x7612d2000000",,,,,"[Unified Memory Memcpy HtoD]",
0.491600000,1888,,,,,,,,,,1.003906,0.507097,"Device",,"Tesla T4 (0)","1","7",,,,,,,"[CUDA memset]",272
0.491700000,1536,,,,,,,,,,0.125000,0.077610,"Pinned","Device","Tesla T4 (0)","1","22",,,,,,,"[CUDA memcpy HtoD]",316
0.491800000,100,,,,,,,,,,2048,1,"Device","Device","Tesla T4 (0)","1","22",,,"Tesla T4 (0)","1","Tesla T4 (1)","2",\
"[CUDA memcpy PtoP]",317
0.491900000,2000,64,1,1,128,1,1,32,1024,2.5,,,,,"Tesla T4 (0)","1","7",,,,,,,"void k<int, 4>(int*, ""x"")",318
"""


def test_old_columns(tmp_path):
    made = imported(tmp_path, HEAD + OLD)
    assert made.format == "nvprof"
    first, second = made.device(0), made.device(1)
    assert (first["name"], first["ordinal"], second["ordinal"]) == ("GeForce GT 650M", 0, 1)
    assert first["copies"] == {"count": 1, "ns": 6404900, "bytes": 40000000}  # 38.146973 MiB
    assert first["kernels"] == {"count": 1, "ns": 3407200}
    assert first["busy_ns"] == 9812100 and first["span_ns"] == 195890000 + 3407200 - 182960000
    assert second["kernels"] == {"count": 1, "ns": 1001}  # 1000.5 is rounded
    assert made.contexts("gpu.time") == {"kernel:add(float const *, int)": (3408201, 2)}
    assert made.contexts("gpu.copy_bytes") == {"copy:copy host→device": (40000000, 1)}
    assert made.spans() == [("copy", "copy host→device", 182960000, 6404900, 0),
                            ("kernel", "add(float const *, int)", 195890000, 3407200, 112),
                            ("kernel", "add(float const *, int)", 195990001, 1001, 113)]
    (process,) = made.profile.processes
    assert (process.pid, process.command) == (4711, './train -n "2"')
    variants = sorted(made.profile.kernels[0].variants, key=lambda variant: variant.time_ns)
    assert variants[1][2:8] == ((39063, 2, 1), (256, 4, 1), 8, 512, 16, None)
    tracks = {(track.gpu_context, track.stream) for track in made.profile.tracks}
    assert tracks == {(1, 7), (2, 13)}


def test_new_columns_and_what_is_no_work(tmp_path):
    made = imported(tmp_path, NEW)
    device = made.device()
    assert device["copies"] == {"count": 3, "ns": 1500 + 1536 + 100, "bytes": 65536 + 128 + 2048 * 1024}
    assert device["sets"] == {"count": 1, "ns": 1888, "bytes": 1028}
    assert device["kernels"] == {"count": 1, "ns": 2000}
    assert device["busy_ns"] == 1500 + 1536 + 100 + 1888 + 2000
    assert set(made.contexts("gpu.copy_time")) == {
        "copy:copy host→device", "copy:copy pinned→device", "copy:copy device→peer device", "set:set device"}
    assert made.contexts("gpu.time") == {'kernel:void k<int, 4>(int*, "x")': (2000, 1)}
    assert made.profile.kernels[0].variants[0][2:8] == ((64, 1, 1), (128, 1, 1), 32, 1024, 2560, None)
    unused = {key[2]: count for key, count in made.fates().items() if key[0] == "import"}
    assert unused == {"[Unified Memory CPU page faults]": 1, "[Unified Memory GPU page faults]": 1}
    assert [span[4] for span in made.spans()] == [0, 272, 316, 317, 318]


@pytest.mark.parametrize("unit, start", [("s", "0.182960001"), ("ms", "182.960001"), ("us", "182960.001"),
                                         ("ns", "182960001")])
def test_units_of_a_run(tmp_path, unit, start):
    text = OLD.replace("ms,us,,", f"{unit},us,,").split("\n")
    made = imported(tmp_path, "\n".join(text[:4]) + f'\n{start},1,,,,,,,,,,1,1,"G (0)","1","7","[CUDA memset]"\n')
    assert made.spans() == [("set", "set device", 182960001, 1000, 0)]


def test_calls_and_the_work_they_start(tmp_path):
    made = imported(tmp_path, """======== Profiling result:
"Start","Duration","Name","Correlation_ID"
us,us,,
0.000000,2.866000,"cuDeviceGetPCIBusId",1
10.000000,5.000000,"cudaLaunchKernel (add(int*) [16])",16
11.000000,3.000000,"cuLaunchKernel",17

======== Profiling result:
"Start","Duration","Grid X","Device","Context","Stream","Name","Correlation_ID"
us,us,,,,,,
12.5,100,4,"G (0)",1,7,"add(int*) [16]",16
13.5,100,4,"G (0)",1,7,"sub(int*) [17]",17
14.5,100,4,"G (0)",1,7,"mul(int*) [99]",99
""")
    assert made.contexts("gpu.time") == {
        "gpu_api:cudaLaunchKernel/kernel:add(int*)": (100000, 1),
        "gpu_api:cudaLaunchKernel/gpu_api:cuLaunchKernel/kernel:sub(int*)": (100000, 1),
        "kernel:mul(int*)": (100000, 1)}
    assert sum(count for key, count in made.fates().items() if "no launch" in (key[1] or "")) == 1
    assert made.device()["busy_ns"] == 102000


def test_several_processes_in_one_file(tmp_path):
    made = imported(tmp_path, HEAD + OLD + NEW)
    assert {process.pid: process.command for process in made.profile.processes} == {
        4711: './train -n "2"', 9: "./a.out"}
    assert len(made.report()["devices"]) == 3


def text_table(rows, old=False):
    """As nvprof prints it: right-aligned under the headings, the name left-aligned."""
    widths = [8, 8, 19, 14, 8, 8, 8] + [8, 10] + ([] if old else [10, 10]) + [15, 8, 8]
    names = ["Start", "Duration", "Grid Size", "Block Size", "Regs*", "SSMem*", "DSMem*", "Size", "Throughput"]
    names += ([] if old else ["SrcMemType", "DstMemType"]) + ["Device", "Context", "Stream", "Name"]
    lines = []
    for row in [names] + rows:
        cells = [cell.rjust(width) for cell, width in zip(row, widths)]
        lines.append("  ".join(cells + [row[-1]]))
    return "\n".join(lines) + "\n"


TEXT_ROWS = [
    ["182.96ms", "6.4049ms", *"-----", "38.147MB", "5.8163GB/s", "Pageable", "Device", "GeForce GT 650", "1", "7",
     "[CUDA memcpy HtoD]"],
    ["1.19589s", "3.4072us", "(39063 2 1)", "(256 1 1)", "8", "4.0000KB", "0B", *"----", "GeForce GT 650", "1",
     "7", "add(float const *, int) [112]"],
    ["1.20000s", "2.4e+03s", "(151 76 1)", "(8 8 1)", "48", "0B", "0B", *"----", "NVIDIA GeForce ", "1",
     "Default", "two  blanks"],
]
TEXT = "12.5 items done\n==4711== Profiling result:\n" + text_table(TEXT_ROWS) + \
    "\nRegs: Number of registers used per CUDA thread. This number includes registers used internally.\n"


def test_plain_text(tmp_path):
    made = imported(tmp_path, HEAD + TEXT)
    first, second = made.device(0), made.device(1)
    assert (first["name"], first["ordinal"]) == ("GeForce GT 650", None)
    assert (second["name"], second["ordinal"]) == ("NVIDIA GeForce", None)
    assert first["copies"] == {"count": 1, "ns": 6404900, "bytes": 40000029}
    assert first["kernels"] == {"count": 1, "ns": 3407}
    assert second["kernels"] == {"count": 1, "ns": 2400 * 10**9}
    assert made.spans()[1] == ("kernel", "add(float const *, int)", 1195890000, 3407, 112)
    assert set(made.contexts("gpu.time")) == {"kernel:add(float const *, int)", "kernel:two  blanks"}
    assert set(made.contexts("gpu.copy_time")) == {"copy:copy pageable→device"}
    variants = {node.name: node.variants[0] for node in made.profile.kernels}
    assert variants["add(float const *, int)"][2:7] == ((39063, 2, 1), (256, 1, 1), 8, 4096, 0)


def test_plain_text_of_old_versions(tmp_path):
    rows = [[cell for i, cell in enumerate(row) if i not in (9, 10)] for row in TEXT_ROWS]
    made = imported(tmp_path, text_table(rows, old=True))
    assert made.device(0)["copies"]["bytes"] == 40000029
    assert set(made.contexts("gpu.copy_time")) == {"copy:copy host→device"}


def test_recognised_packed_and_behind_much_output(tmp_path):
    text = HEAD + "".join(f"step {i}: loss 0.5\n" for i in range(9000)) + OLD
    assert len(text) > 1 << 17
    made = imported(tmp_path, {"anything.gz": gzip.compress(text.encode())})
    assert made.format == "nvprof" and made.device(0)["kernels"]["count"] == 1


@pytest.mark.parametrize("old, new, says", [
    ("ms,us,,", "hours,us,,", "line 5: the row of units is missing"),
    ("ms,us,,,", "ms,us,,", "line 5: the row of units is missing"),
    ("182.960000,", "1.8e300,", "line 6: its start is not a time"),
    ("182.960000,", "182x,", "line 6: its start is not a time"),
    ("3407.200000,", "-,-,", "line 7: the number of cells"),
    ("3407.200000,", "fast,", "line 7: its duration is not a time"),
    ('"add(float const *, int) [113]"', '"add', "line 8: a quoted cell has no"),
    ('"add(float const *, int) [113]"', "", "line 8: has no name"),
])
def test_errors_name_line_and_reason(tmp_path, old, new, says):
    assert refused(tmp_path, (HEAD + OLD).replace(old, new, 1)).startswith(says)


def test_text_that_does_not_stand_under_its_headings(tmp_path):
    assert refused(tmp_path, TEXT.replace("182.96ms", "182.96ms   ")).startswith("line 4: the row does not fit")
    assert refused(tmp_path, TEXT.replace(TEXT_ROWS[2][-1] + "\n", "\n")).startswith("line 6: ")


def test_odd_rows_are_counted(tmp_path):
    made = imported(tmp_path, (HEAD + OLD).replace("3407.200000", "-5").replace("195.990001", "-1"))
    assert made.device(0)["kernels"] == {"count": 0, "ns": 0}  # it would end before it begins
    assert made.fates()["import", "it ends before it begins, or has no time", None] == 1
    assert made.spans()[0][1:3] == ("add(float const *, int)", -1000000)


def test_hostile_text_in_names(tmp_path):
    bad = (HEAD + OLD).encode().replace(b"add(float const *, int) [112]", b"\xff<b>\x1b[31m\x00x [1]")
    made = imported(tmp_path, {"table": bad})
    assert len(made.contexts("gpu.time")) == 2


@pytest.mark.parametrize("text", [HEAD + OLD, TEXT], ids=["csv", "text"])
def test_cut_anywhere(tmp_path, text):
    assert cut_everywhere(tmp_path, text)


SHORT = """==1== NVPROF is profiling process 1, command: x
==1== Profiling result:
   Start  Duration  Name
"""


@pytest.mark.parametrize("line", [
    "x" * 60 + "  Duration  ", "  Duration  " + "x" * 60, "Start  Duration  Name" + " " * 60 + "x",
    "  Duration  Start  Name", "Start  Duration  " + "  ".join("abcdefghijklmnopqrstuvwxyzabcdefghijklmnop")])
def test_a_line_that_is_no_heading(tmp_path, line):
    """It leaves the columns as they are, whatever the program printed."""
    row = "   1.00s     1.0ms  kern\n"
    made = imported(tmp_path, SHORT + row + line + "\n" + row.replace("1.00", "2.00"))
    assert [(name, start) for _, name, start, *_ in made.spans()] == [("kern", 10**9), ("kern", 2 * 10**9)]
    said = tmp_path / "short"
    said.write_text(SHORT + line + "\n  1.00s" + " " * 33 + "\n" + " " * 20 + "1.0ms" + " " * 24 + "[kern]\n")
    for verb in (("import", said, "-o", tmp_path / "short.plumb"), ("report", said)):
        done = run_command(PLUMB, *verb)
        assert done.returncode in (0, 2, 3) and done.stderr.count("\n") <= 1, done


def test_shared_memory_beyond_numbers(tmp_path):
    """The sum of two sizes that fit may not."""
    made = imported(tmp_path, OLD.replace(",0.500000,16,", ",8000000TB,8000000TB,"))
    assert made.device(0)["kernels"]["count"] == 1
    launches = {tuple(variant.grid): (variant.static_shared_bytes, variant.dynamic_shared_bytes)
                for variant in made.profile.kernels[0].variants}
    assert launches == {(39063, 2, 1): (8000000 << 40, 8000000 << 40), (1, 1, 1): (0, 0)}
    assert {node.exclusive["gpu.shared_bytes"].count for node in made.profile.kernels} == {1}  # the other one's


SUMMARIES = ["""            Type  Time(%)      Time     Calls       Avg       Min       Max  Name
 GPU activities:   99.94%  1.11524s       301  3.7051ms  3.6928ms  3.7174ms  void matrixMulCUDA<int=32>(float*)
                    0.04%  406.30us         2  203.15us  136.13us  270.18us  [CUDA memcpy HtoD]
      API calls:   90.00%  1.0s           300  3.0ms     1.0ms     4.0ms     cudaEventSynchronize
""", """Time(%)      Time     Calls       Avg       Min       Max  Name
 99.94%  1.11524s       301  3.7051ms  3.6928ms  3.7174ms  void matrixMulCUDA<int=32>(float*)
""", """"Type","Time(%)","Time","Calls","Avg","Min","Max","Name"
,%,s,,ms,ms,ms,
"GPU activities",99.94,1.11524,301,3.7051,3.6928,3.7174,"void matrixMulCUDA<int=32>(float*)"
""", """Time(%),Time,Calls,Avg,Min,Max,Name
%,s,,ms,ms,ms,
99.94,1.11524,301,3.7051,3.6928,3.7174,"void matrixMulCUDA<int=32>(float*)"
"""]


@pytest.mark.parametrize("head", [HEAD + "==4711== Profiling result:\n", ""])
@pytest.mark.parametrize("summary", SUMMARIES)
def test_summaries(tmp_path, head, summary):
    """They have no single kernels, and the error says what to do. Beside a trace they are passed over."""
    assert "this summary of nvprof" in refused(tmp_path, head + summary)
    assert "record with nvprof --print-gpu-trace" in refused(tmp_path, head + summary)
    assert imported(tmp_path, HEAD + OLD + head + summary).spans() == imported(tmp_path, HEAD + OLD).spans()
    assert imported(tmp_path, head + summary + HEAD + OLD).spans() == imported(tmp_path, HEAD + OLD).spans()
