# SPDX-License-Identifier: Apache-2.0
"""What unitrace prints as text: sums of kernels and calls, with and without shapes and quotation marks; the timeline;
hardware counters; and that sums beside a timeline are not counted twice."""
import gzip
import json

import pytest
from conftest import PLUMB, run_command
from importing import cut_everywhere, run_import
from tables import imported, refused

API = """[INFO] Hello, "world

=== API Timing Summary ===

                Total Execution Time (ns):           5579618203
       Total API Time for L0 backend (ns):                  650

== L0 Backend ==

                         Function,        Calls,            Time (ns),     Time (%),         Average (ns),\
             Min (ns),             Max (ns)
zeEventHostSynchronize,            3,                  600,    92.307693,                  200,\
                  100,                  400
     zeCommandListCreate,            2,                   50,     7.692307,                   25,\
                   20,                   30


"""
DEVICE = """=== Device Timing Summary ===

                Total Execution Time (ns):           5579618203
    Total Device Time for L0 backend (ns):             22017040

== L0 Backend ==

{heading}
{gemm},  4, 9000, 44.850000, 2250, 2000, 3000
{gemm_too},  1, 500, 1.0, 500, 500, 500
{copy},  3, 300, 1.0, 100, 90, 120
{fill},  1, 9120, 0.040000, 9120, 9120, 9120
{barrier},  7, 70, 0.1, 10, 10, 10


=== Kernel Properties ===

    Kernel, Compiled, SIMD, Number of Arguments, SLM Per Work Group, Private Memory Per Thread,\
 Spill Memory Per Thread, Register File Size Per Thread
{gemm},     JIT,   16,                   27,                   8,                         0,                       0,\
                     unknown


"""
HEADING = "      Kernel,        Calls,            Time (ns),     Time (%),         Average (ns),\
             Min (ns),             Max (ns)"
NAMES = {"gemm": "gemm<float, 4>[SIMD16 {56; 2; 1} {64; 8; 1}]",
         "gemm_too": "gemm<float, 4>[SIMD_ANY {1; 1; 1} {4; 2; 1}]",
         "copy": "zeCommandListAppendMemoryCopy(M2D)[1024]", "fill": "zeCommandListAppendMemoryFill(D)[512]",
         "barrier": "zeCommandListAppendBarrier"}
QUOTED = DEVICE.format(heading=HEADING, **{key: f'   "{name}"' for key, name in NAMES.items()})
BARE = DEVICE.format(heading=HEADING.replace(", ", ",  "), **{key: f"      {name}" for key, name in NAMES.items()})
PLAIN = DEVICE.format(heading=HEADING, **{key: f'   "{name.partition("[")[0]}"' for key, name in NAMES.items()})
TIMELINE = """Thread 1092793 Device 94073441158112 : "gemm<float, 4>[SIMD16 {56; 2; 1} {64; 8; 1}]" [ns] 1000 (append)\
 1100 (submit) 2000 (start) 4000 (end)
Thread 1092793 Device 94073441158112 : zeCommandListAppendMemoryCopy(D2M)[4096] [ns] 1500 (append) 1600 (submit) 5000\
 (start) 5250 (end)
Thread 1092794 Device 94073441158999 : "zeCommandListAppendBarrier" [ns] 1500 (append) 1600 (submit) 5000\
 (start) 5250 (end)
"""
COUNTERS = """
== Kernel Metrics ==

Kernel,Device,SubDeviceId,GpuTime[ns],XVE_ACTIVE[%],XVE_BUSY[events],ReportId,
"gemm<float, 4>[SIMD16 {56; 2; 1} {64; 8; 1}]",0,0,563720,90.354,1,17,

Kernel,Device,SubDeviceId,GpuTime[ns],XVE_ACTIVE[%],XVE_BUSY[events],ReportId,
"gemm<float, 4>[SIMD16 {56; 2; 1} {64; 8; 1}]",0,0,100,6.89741e-06,1,18,
"""
WARNING = ("import", "plumb does not show this kind")


def test_calls(tmp_path):
    made = imported(tmp_path, API)
    assert made.format == "unitrace-csv"
    assert made.contexts("api.time") == {"gpu_api:zeEventHostSynchronize": (600, 3),
                                         "gpu_api:zeCommandListCreate": (50, 2)}
    assert made.contexts("host.wait") == {"gpu_api:zeEventHostSynchronize": (600, 3)}
    values = {node.name: node.exclusive["api.time"] for node in made.profile.children}
    assert values["zeEventHostSynchronize"][2:] == (100, 400, 200.0, None)  # the spread of three is not known
    assert values["zeCommandListCreate"].std == pytest.approx(50**0.5)  # of two it is: 20 and 30
    assert not made.spans() and made.profile.metrics["api.time"].unit == "ns"
    run = json.loads(run_command(PLUMB, "report", made.path, "--json", "--metric", "api.time").stdout)
    assert run["run"]["wall_ns"] == 5579618203 and run["total"]["std"] is None
    assert "std" not in run_command(PLUMB, "report", made.path, "--metric", "api.time").stderr


@pytest.mark.parametrize("text", [QUOTED, BARE, QUOTED.replace('"gemm', 'Tile #0: "gemm')],
                         ids=["quoted", "bare", "tiles"])
def test_kernels_and_copies(tmp_path, text):
    made = imported(tmp_path, API + text)
    assert made.contexts("gpu.time") == {"kernel:gemm<float, 4>": (9500, 5)}
    assert made.contexts("gpu.copy_time") == {"copy:copy pageable→device": (300, 3), "set:set device": (9120, 1)}
    assert made.contexts("gpu.copy_bytes") == {"copy:copy pageable→device": (3072, 3), "set:set device": (512, 1)}
    (kernel,) = made.profile.kernels
    variants = sorted(kernel.variants, key=lambda variant: variant.time_ns)
    assert [(v.grid, v.block, v.count, v.time_ns, v.min_ns, v.max_ns) for v in variants] == [
        ((1, 1, 1), (4, 2, 1), 1, 500, 500, 500), ((56, 2, 1), (64, 8, 1), 4, 9000, 2000, 3000)]
    assert kernel.exclusive["gpu.time"][:5] == (9500, 5, 500, 3000, 1900.0)
    assert not made.report()["devices"] and not made.spans()
    fates = made.fates()
    assert fates[(*WARNING, "zeCommandListAppendBarrier")] == 7
    assert fates[(*WARNING, "rows of other tables (properties, submissions)")] == 1


def test_without_shapes(tmp_path):
    made = imported(tmp_path, PLAIN.replace("(M2D)", "(S2H)"))
    assert made.contexts("gpu.time") == {"kernel:gemm<float, 4>": (9500, 5)}
    assert made.contexts("gpu.copy_time")["copy:copy managed→pinned"] == (300, 3)
    assert made.contexts("gpu.copy_bytes") == {} and made.profile.kernels[0].variants == []


def test_opencl(tmp_path):
    text = QUOTED.replace("zeCommandListAppendMemoryCopy(M2D)", "clEnqueueReadBuffer") \
        .replace("zeCommandListAppendMemoryFill(D)", "clEnqueueWriteBuffer")
    made = imported(tmp_path, text)
    assert made.contexts("gpu.copy_time") == {"copy:copy device→host": (300, 3), "copy:copy host→device": (9120, 1)}


def test_timeline(tmp_path):
    made = imported(tmp_path, TIMELINE)
    (device,) = made.report()["devices"]
    assert device["kernels"] == {"count": 1, "ns": 2000} and device["ordinal"] is None
    assert device["copies"] == {"count": 1, "ns": 250, "bytes": 4096}
    assert made.profile.kernels[0].variants[0][2:4] == ((56, 2, 1), (64, 8, 1))
    assert set(made.contexts("gpu.copy_time")) == {"copy:copy device→pageable"}


def test_sums_beside_a_timeline_are_not_counted_twice(tmp_path):
    made = imported(tmp_path, TIMELINE + QUOTED)
    assert made.contexts("gpu.time") == {"kernel:gemm<float, 4>": (2000, 1)}
    assert made.fates()["import", "a second record of the same thing", "sums of kernels"] == 16


def test_counters(tmp_path):
    made = imported(tmp_path, QUOTED + COUNTERS)
    kernel = "kernel:gemm<float, 4>"
    assert made.contexts("gpu.time") == {kernel: (9500, 5)}
    assert made.contexts("XVE_BUSY") == {kernel: (2, 2)}
    assert made.contexts("GpuTime") == {kernel: (563820, 2)}
    assert made.contexts("XVE_ACTIVE [1e-6]") == {kernel: (90354007, 2)}
    assert {name: made.profile.metrics[name].unit for name in ("XVE_BUSY", "GpuTime", "XVE_ACTIVE [1e-6]")} == {
        "XVE_BUSY": "events", "GpuTime": "ns", "XVE_ACTIVE [1e-6]": "1e-6 %"}
    assert "ReportId" not in made.profile.metrics
    assert imported(tmp_path, COUNTERS).contexts("XVE_BUSY") == {kernel: (2, 2)}


def test_communication_of_a_rank(tmp_path):
    text = "****\n*  Process ID : 4711 | Rank ID : 3\n****\n" + API.split("== L0 Backend ==\n\n")[1]
    made = imported(tmp_path, text.replace("zeCommandListCreate", "allreduce"))
    (process,) = made.profile.processes
    assert (process.pid, process.rank) == (4711, 3)
    assert made.contexts("api.time")["library:allreduce"] == (50, 2)


def test_submissions_are_counted(tmp_path):
    text = """=== Kernel Submission Summary ===

  Kernel,  Calls,  Append (ns),  Append (%),  Submit (ns),  Submit (%),  Execute (ns),  Execute (%)
  "gemm",  2,  10,  1.0,  20,  1.0,  30,  1.0
"""
    assert imported(tmp_path, API + text).fates()[(*WARNING, "rows of other tables (properties, submissions)")] == 1
    done, *_ = run_import(tmp_path, text)
    assert done.returncode == 3


def test_recognised_packed(tmp_path):
    assert imported(tmp_path, {"x": gzip.compress(QUOTED.encode())}).format == "unitrace-csv"
    assert imported(tmp_path, {"x": QUOTED.replace("\n", "\r\n")}).contexts("gpu.time")


def test_std_in_text_and_csv_is_unknown(tmp_path):
    made = imported(tmp_path, QUOTED)
    text = run_command(PLUMB, "report", made.path, "--by", "kernel", "--columns", "std").stdout
    assert "nan" not in text.lower() and "9223" not in text


@pytest.mark.parametrize("old, new, says", [
    (",  4, 9000,", ",  4, many,", "line 9: a cell is not a number"),
    (",  4, 9000,", ",  0, 9000,", "line 9: the numbers contradict"),
    (",  4, 9000,", ",  4, 90000,", "line 9: the numbers contradict"),
    (",  4, 9000,", ",  4, 99999999999999999999,", "line 9: a cell is not a number"),
    (f'   "{NAMES["gemm"]}",  4, 9000,', "x", "line 9: the row has fewer cells"),
    (f'   "{NAMES["gemm"]}",  4', "  ,  4", "line 9: the name is missing"),
])
def test_errors_name_line_and_reason(tmp_path, old, new, says):
    assert refused(tmp_path, QUOTED.replace(old, new, 1)).startswith(says)


def test_errors_of_timeline_and_counters(tmp_path):
    assert refused(tmp_path, TIMELINE.replace("4000 (end)", "(end)")).startswith("line 1: the four times")
    assert refused(tmp_path, TIMELINE.replace("94073441158112", "x", 1)).startswith("line 1: the device is missing")
    assert refused(tmp_path, COUNTERS.replace("90.354", "high")).startswith("line 5: column 5 is not a number")
    assert refused(tmp_path, COUNTERS.replace("90.354,", "")).startswith("line 5: the number of cells")


@pytest.mark.parametrize("text", [QUOTED, TIMELINE + COUNTERS], ids=["sums", "events"])
def test_cut_anywhere(tmp_path, text):
    assert cut_everywhere(tmp_path, text, step=3)
