# SPDX-License-Identifier: Apache-2.0
"""The CSV that nsys stats writes of cuda_gpu_trace: text before the heading, units that differ, column sets of old
and new versions, several reports in one file."""
import gzip

import pytest
from conftest import PLUMB, run_command
from importing import cut_everywhere
from tables import imported, refused

BEFORE = """
NOTICE: Existing SQLite export found: x.sqlite
        It is assumed "x.nsys-rep
Processing [x.sqlite] with [/opt/reports/cuda_gpu_trace.py]...
"""
NEW = """Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),Bytes (MB),\
Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,GreenCtx,Strm,Name
1000,300,11,2,3,4,64,1,1,24,0.000,0.049,,,,,NVIDIA H100 80GB HBM3 (0),1,,7,"void k<float, 4>(T1 *)"
1100,500,12,3,1,1,32,1,1,18,0.001,0.000,,,,,NVIDIA H100 80GB HBM3 (0),1,2,8,void k<float>(float*)
2000,50,13,,,,,,,,,,4.096,81.920,Pageable,Device,NVIDIA H100 80GB HBM3 (1),2,,7,[CUDA memcpy Host-to-Device]
2100,40,14,,,,,,,,,,0.001,1.0,Device,,NVIDIA H100 80GB HBM3 (1),2,,7,[CUDA memset]
2200,40,15,,,,,,,,,,0.065,1.0,Managed,Device,NVIDIA H100 80GB HBM3 (1),2,,7,[CUDA Unified Memory memcpy HtoD]
"""
AFTER = """
Processing [x.sqlite] with [/opt/reports/cuda_gpu_kern_sum.py]...
Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name
99.0,800,2,400.0,400.0,300,500,141.4,k
"""


def test_rows(tmp_path):
    made = imported(tmp_path, BEFORE + NEW + AFTER)
    assert made.format == "nsys-csv"
    first, second = made.device(0), made.device(1)
    assert (first["name"], first["ordinal"], second["ordinal"]) == ("NVIDIA H100 80GB HBM3", 0, 1)
    assert first["kernels"] == {"count": 2, "ns": 800}
    assert (first["busy_ns"], first["span_ns"]) == (600, 600)  # 1000–1300 and 1100–1600
    assert second["copies"] == {"count": 2, "ns": 90, "bytes": 4096000 + 65000}
    assert second["sets"] == {"count": 1, "ns": 40, "bytes": 1000}
    assert made.contexts("gpu.time") == {"kernel:void k<float, 4>(T1 *)": (300, 1),
                                         "kernel:void k<float>(float*)": (500, 1)}
    assert set(made.contexts("gpu.copy_time")) == {"copy:copy pageable→device", "copy:copy managed→device",
                                                   "set:set device"}
    variants = {node.name: node.variants[0] for node in made.profile.kernels}
    assert variants["void k<float, 4>(T1 *)"][2:8] == ((2, 3, 4), (64, 1, 1), 24, 0, 49000, None)
    assert [span[4] for span in made.spans()] == [11, 12, 13, 14, 15]
    (process,) = made.profile.processes
    assert process.pid is None
    assert sum(count for key, count in made.fates().items() if "no launch" in key[1]) == 5


OLD = """Start({t}),Duration({t}),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem({s}),DymSMem({s}),Bytes({s}),\
Throughput({s}ps),SrcMemKd,DstMemKd,Device,Ctx,Strm,Name
{a},{b},12,1,1,1,32,1,1,18,0,0,,,,,A100 (0),1,8,k
{c},{b},13,,,,,,,,,,{n},1,Pinned,Device,A100 (0),1,7,[CUDA memcpy HtoD]
"""


@pytest.mark.parametrize("t, a, b, c", [
    ("nsec", "1500000000", "2500", "1500005000"), ("ns", "1500000000", "2500", "1500005000"),
    ("us", "1500000.000", "2.500", "1500005"), ("usec", "1500000", "2.5", "1500005.0"),
    ("ms", "1500", "0.0025", "1500.005"), ("sec", "1.5", "0.0000025", "1.500005"), ("s", "1.5", "2.5e-6", "1.500005"),
])
@pytest.mark.parametrize("s, n, size", [
    ("MB", "1.500", 1500000), ("MiB", "1.500", 1572864), ("bytes", "1572864", 1572864), ("B", "7", 7),
    ("KB", "0.0007", 1), ("KiB", "64", 65536), ("GiB", "1", 1 << 30),
])
def test_units(tmp_path, t, a, b, c, s, n, size):
    made = imported(tmp_path, OLD.format(t=t, a=a, b=b, c=c, s=s, n=n))
    assert made.spans() == [("kernel", "k", 1500000000, 2500, 12),
                            ("copy", "copy pinned→device", 1500005000, 2500, 13)]
    assert made.device()["copies"] == {"count": 1, "ns": 2500, "bytes": size}


def test_units_as_the_reports_script_names_them(tmp_path):
    heading = NEW.split("\n")[0].replace("Start (ns)", "Start:ts_ns").replace("Duration (ns)", "Duration:dur_ns")
    heading = heading.replace("Bytes (MB)", "Bytes:mem_B").replace("SMem (MB)", "SMem:mem_B")
    rows = "\n".join(NEW.split("\n")[2:]).replace(",4.096,", ",4096,").replace("0.065", "65")
    made = imported(tmp_path, heading + "\n" + rows)
    assert made.device(1)["copies"]["bytes"] == 4096 + 65


@pytest.mark.parametrize("unit, start, ns", [
    ("ns", "1,500,000,007", 1500000007), ("us", "1,500.25", 1500250), ("us", "1.500,25", 1500250),
    ("ms", "12,5", 12500000), ("ms", "0,125", 125000), ("ns", "-1,000,000", -1000000), ("s", "1.234.567,5", 1234567500000000),
    ("ns", "1,500", None), ("us", "1,50,000.5", None), ("us", "1500,000.5", None), ("us", "1,500,25.5", None),
    ("us", ",500,000", None), ("us", "1,500,0x0", None), ("us", "1.5,5.5", None), ("us", ",", None), ("us", "-,", None),
    ("us", "1,2.345,678", None), ("ns", "9,999,999,999,999,999,999,999", None), ("us", "," * 70, None),
])
def test_separators_of_other_countries(tmp_path, unit, start, ns):
    """One mark with three digits behind it may be either: a time is then refused, a count is a whole number."""
    heading = NEW.split("\n")[0].replace("Start (ns)", f"Start ({unit})")
    text = f'{heading}\n"{start}",300,11,"2,048",3,4,64,1,1,24,"1,5",0,,,,,H100 (0),1,,7,k\n'
    text = text.replace(f'"{start}"', f'0,7,3,1,1,1,64,1,1,24,0,0,,,,,H100 (0),1,,7,k\n"{start}"')
    if ns is None:
        assert refused(tmp_path, text).startswith("line 3: its start is not a time")
        return
    made = imported(tmp_path, text)
    assert ns in [span[2] for span in made.spans()]
    assert ((2048, 3, 4), 1500000) in [(variant[2], variant[5]) for variant in made.profile.kernels[0].variants]


def test_bytes_that_are_not_told_are_left_out(tmp_path):
    made = imported(tmp_path, (NEW).replace("4.096", ""))
    assert made.device(1)["copies"] == {"count": 2, "ns": 90, "bytes": 65000}  # of the one that says
    assert made.device(1)["sets"]["bytes"] == 1000


@pytest.mark.parametrize("text", [
    AFTER, "Time(%),Total Time (ns),Instances,Average,Minimum,Maximum,Name\n50.0,100,2,50.0,50,50,k\n",
    " ** CUDA API Summary (cuda_api_sum):\n\n Time (%)  Total Time (ns)  Num Calls  Avg (ns)  Name\n"
    " --------  ---------------  ---------  --------  ----\n     50.0              100          2      50.0  cudaFree\n"])
def test_summaries(text, tmp_path):
    """They have no single kernels, and the error says what to write instead."""
    said = refused(tmp_path, text)
    assert "this summary of Nsight Systems" in said and "--report cuda_gpu_trace" in said
    assert imported(tmp_path, text + NEW).device()["kernels"]["count"] == 2


def test_recognised_by_content(tmp_path):
    assert imported(tmp_path, {"x": gzip.compress((BEFORE + NEW).encode())}).format == "nsys-csv"
    assert imported(tmp_path, {"x": NEW.replace("\n", "\r\n")}).device()["kernels"]["ns"] == 800


@pytest.mark.parametrize("old, new, says", [
    ("1000,300", "1000,3x0", "line 6: its duration is not a time"),
    ("1000,300", "99999999999999999999,300", "line 6: its start is not a time"),
    ("1000,300", "1000", "line 6: the number of cells"),
    ("Start (ns)", "Start (h)", "line 6: its start is not a time"),
    ("Duration (ns)", "Duration of it", "line 5: the heading needs"),
    ('"void k<float, 4>(T1 *)"', '"void', "line 6: a quoted cell has no"),
])
def test_errors_name_line_and_reason(tmp_path, old, new, says):
    assert refused(tmp_path, (BEFORE + NEW).replace(old, new, 1)).startswith(says)


def test_a_hole_of_4_gb_is_refused_early(tmp_path):
    path = tmp_path / "table"
    path.write_text(NEW)
    with path.open("r+b") as file:
        file.truncate(4 << 30)
    done = run_command(PLUMB, "import", path, "-o", tmp_path / "out.plumb", timeout=20)
    assert done.returncode == 2 and "line 7: is longer than 16 MiB" in done.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["table"]


def test_cut_anywhere(tmp_path):
    assert cut_everywhere(tmp_path, BEFORE + NEW + AFTER)
