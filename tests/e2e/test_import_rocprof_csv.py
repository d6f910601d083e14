# SPDX-License-Identifier: Apache-2.0
"""rocprofv3's CSV files: column sets of ROCm 6 and 7, the files of one process as one trace, those of several as
several, counters, and what is not used."""
import gzip

import pytest
from importing import cut_everywhere, run_import
from tables import files, imported, refused

NEW_KERNELS = """"Kind","Agent_Id","Queue_Id","Stream_Id","Thread_Id","Dispatch_Id","Kernel_Id","Kernel_Name",\
"Correlation_Id","Start_Timestamp","End_Timestamp","LDS_Block_Size","Scratch_Size","VGPR_Count","Accum_VGPR_Count",\
"SGPR_Count","Workgroup_Size_X","Workgroup_Size_Y","Workgroup_Size_Z","Grid_Size_X","Grid_Size_Y","Grid_Size_Z"
"KERNEL_DISPATCH","Agent 4",1,3,70,1,33,"void add<float, 4>(float*, int)",12,172352210005122,172352210008122,512,0,8,4,\
16,64,2,1,1000,4,1
"KERNEL_DISPATCH","Agent 4",1,3,70,2,34,"mul(float*) [clone .kd]",13,172352210007122,172352210009122,0,0,8,0,16,64,1,1,\
64,1,1
"KERNEL_DISPATCH","Agent 5",2,0,70,3,34,"sub.kd",99,172352210010000,172352210010007,0,0,8,0,16,64,1,1,64,1,1
"""
OLD_KERNELS = """"Kind","Agent_Id","Queue_Id","Kernel_Id","Kernel_Name","Correlation_Id","Start_Timestamp",\
"End_Timestamp","Private_Segment_Size","Group_Segment_Size","Workgroup_Size_X","Workgroup_Size_Y","Workgroup_Size_Z",\
"Grid_Size_X","Grid_Size_Y","Grid_Size_Z"
"KERNEL_DISPATCH",1,139690710949888,15,"matrixTranspose(float*, float*, int)",7,671599758568,671599825328,0,128,4,4,1,\
1024,1024,1
"""
COPIES = """"Kind","Direction","Stream_Id","Source_Agent_Id","Destination_Agent_Id","Correlation_Id","Start_Timestamp",\
"End_Timestamp"
"MEMORY_COPY","MEMORY_COPY_HOST_TO_DEVICE",3,"Agent 0","Agent 4",11,172352210001000,172352210002000
"MEMORY_COPY","MEMORY_COPY_DEVICE_TO_HOST",3,"Agent 4","Agent 0",0,172352210020000,172352210020500
"MEMORY_COPY","MEMORY_COPY_DEVICE_TO_DEVICE",3,"Agent 4","Agent 5",0,172352210030000,172352210030100
"MEMORY_COPY","MEMORY_COPY_HOST_TO_HOST",3,"Agent 0","Agent 0",0,172352210040000,172352210040100
"""
OLD_COPIES = """"Kind","Direction","Source_Agent_Id","Destination_Agent_Id","Correlation_Id","Start_Timestamp",\
"End_Timestamp"
"MEMORY_COPY","HOST_TO_DEVICE",0,1,0,14955949675563,14955950239443
"MEMORY_COPY","DEVICE_TO_DEVICE",1,1,0,14955952733485,14955953315285
"""
CALLS = """"Domain","Function","Process_Id","Thread_Id","Correlation_Id","Start_Timestamp","End_Timestamp"
"HIP_RUNTIME_API","hipMemcpyAsync",4711,4711,11,172352210000000,172352210000900
"HIP_RUNTIME_API","hipLaunchKernel",4711,4711,12,172352210004000,172352210004900
"HIP_RUNTIME_API","hipLaunchKernel",4711,4712,13,172352210004000,172352210004900
"HIP_RUNTIME_API","hipStreamSynchronize",4711,4711,14,172352210006000,172352210009900
"""
HSA = """"Domain","Function","Process_Id","Thread_Id","Correlation_Id","Start_Timestamp","End_Timestamp"
"HSA_CORE_API","hsa_signal_create",4711,4711,15,172352210004100,172352210004200
"""
MARKERS = """"Domain","Function","Process_Id","Thread_Id","Correlation_Id","Start_Timestamp","End_Timestamp"
"MARKER_CORE_API","step, ""one""\",4711,4711,3,172352210003000,172352210010000
"MARKER_CORE_API","here",4711,4711,4,172352210003500,172352210003500
"""
COUNTERS = """"Correlation_Id","Dispatch_Id","Agent_Id","Queue_Id","Process_Id","Thread_Id","Grid_Size","Kernel_Id",\
"Kernel_Name","Workgroup_Size","LDS_Block_Size","Scratch_Size","VGPR_Count","Accum_VGPR_Count","SGPR_Count",\
"Counter_Name","Counter_Value","Start_Timestamp","End_Timestamp"
12,1,"Agent 4",1,4711,4711,4000,33,"void add<float, 4>(float*, int)",128,512,0,8,4,16,"SQ_WAVES",16384.000000,\
172352210005122,172352210008122
12,1,"Agent 4",1,4711,4711,4000,33,"void add<float, 4>(float*, int)",128,512,0,8,4,16,"OccupancyPercent",12.345678,\
172352210005122,172352210008122
13,2,"Agent 4",1,4711,4711,64,34,"mul(float*) [clone .kd]",64,0,0,8,0,16,"SQ_WAVES",1.000000,172352210007122,\
172352210009122
13,2,"Agent 4",1,4711,4711,64,34,"mul(float*) [clone .kd]",64,0,0,8,0,16,"OccupancyPercent",100,172352210007122,\
172352210009122
"""
RUN = {"4711_counter_collection.csv": COUNTERS, "4711_hip_api_trace.csv": CALLS, "4711_hsa_api_trace.csv": HSA,
       "4711_kernel_trace.csv": NEW_KERNELS, "4711_marker_api_trace.csv": MARKERS,
       "4711_memory_copy_trace.csv": COPIES}
STEP = 'range:step, "one"/'


def test_new_kernels(tmp_path):
    made = imported(tmp_path, NEW_KERNELS)
    assert made.format == "rocprof-csv"
    first, second = made.device(0), made.device(1)
    assert (first["ordinal"], second["ordinal"]) == (4, 5)
    assert first["kernels"] == {"count": 2, "ns": 5000} and first["busy_ns"] == 4000
    assert second["kernels"] == {"count": 1, "ns": 7}
    assert made.contexts("gpu.time") == {"kernel:void add<float, 4>(float*, int)": (3000, 1),
                                         "kernel:mul(float*)": (2000, 1), "kernel:sub": (7, 1)}
    add = [node for node in made.profile.kernels if node.name.startswith("void add")][0]
    # 1000 × 4 work-items in groups of 64 × 2: the last group of a row is a part of one
    assert add.variants[0][2:5] == ((16, 2, 1), (64, 2, 1), 12)
    assert made.contexts("gpu.blocks")["kernel:void add<float, 4>(float*, int)"] == (32, 1)
    assert add.exclusive["gpu.shared_bytes"].max == 512
    assert {(track.stream, track.gpu_context) for track in made.profile.tracks} == {(3, None), (0, None)}


def test_old_kernels_and_copies(tmp_path):
    made = imported(tmp_path, {"7_kernel_trace.csv": OLD_KERNELS, "7_memory_copy_trace.csv": OLD_COPIES})
    device = made.device()
    assert device["ordinal"] == 1 and device["kernels"] == {"count": 1, "ns": 66760}
    assert device["copies"] == {"count": 2, "ns": 563880 + 581800, "bytes": None}  # rocprofv3 does not tell
    assert made.profile.kernels[0].variants[0][2:5] == ((256, 256, 1), (4, 4, 1), None)
    assert made.profile.kernels[0].exclusive["gpu.shared_bytes"].max == 128
    assert set(made.contexts("gpu.copy_time")) == {"copy:copy host→device", "copy:copy device→device"}
    assert len(made.profile.processes) == 1


def test_columns_as_rocpd_writes_them(tmp_path):
    lines = NEW_KERNELS.replace("LDS_", "Lds_").replace("VGPR", "Vgpr").split("\n")
    text = "\n".join([('"Guid",' if i == 0 else '"0-1",') + line for i, line in enumerate(lines) if line])
    made = imported(tmp_path, {"a.csv.gz": gzip.compress(text.encode())})
    assert made.device(0)["kernels"] == {"count": 2, "ns": 5000}
    assert made.profile.kernels[0].variants[0].registers in (8, 12)


@pytest.mark.parametrize("order", [sorted(RUN), sorted(RUN, reverse=True), sorted(RUN, key=lambda n: n[9:])],
                         ids=["sorted", "reversed", "other"])
def test_files_of_a_run_are_one_trace(tmp_path, order):
    made = imported(tmp_path, {name: RUN[name] for name in order})
    (process,) = made.profile.processes
    assert process.pid == 4711 and process.rank is None
    add, mul = "kernel:void add<float, 4>(float*, int)", "kernel:mul(float*)"
    assert made.contexts("gpu.time") == {STEP + "gpu_api:hipLaunchKernel/" + add: (3000, 1),
                                         "gpu_api:hipLaunchKernel/" + mul: (2000, 1), "kernel:sub": (7, 1)}
    assert made.device(0)["kernels"] == {"count": 2, "ns": 5000}  # not once more by the counters' file
    assert made.contexts("SQ_WAVES") == {STEP + "gpu_api:hipLaunchKernel/" + add: (16384, 1),
                                         "gpu_api:hipLaunchKernel/" + mul: (1, 1)}
    assert made.contexts("OccupancyPercent [1e-6]") == {
        STEP + "gpu_api:hipLaunchKernel/" + add: (12345678, 1), "gpu_api:hipLaunchKernel/" + mul: (100000000, 1)}
    variants = {node.name: node.variants[0] for node in made.profile.kernels}
    assert variants["void add<float, 4>(float*, int)"].grid == (16, 2, 1)  # of the kernels' file
    assert made.contexts("gpu.launches") == {STEP + "gpu_api:hipLaunchKernel": (1, 1),
                                             "gpu_api:hipLaunchKernel": (1, 1), "gpu_api:hipMemcpyAsync": (1, 1)}
    assert made.contexts("host.wait") == {STEP + "gpu_api:hipStreamSynchronize": (3900, 1)}
    assert set(made.contexts("gpu.copy_time")) == {"gpu_api:hipMemcpyAsync/copy:copy host→device",
                                                   "copy:copy device→host", "copy:copy device→peer device"}
    assert ("gpu_api", "hsa_signal_create", 172352210004100, 100, 15) in made.spans()
    assert made.fates()["import", "plumb does not show this kind", "copies from host to host"] == 1


def test_processes_stay_apart(tmp_path):
    """By the pid in the rows, else before the name, else because a kind of file comes again."""
    other = {name.replace("4711", "4800"): text.replace("4711,", "4800,") for name, text in RUN.items()}
    made = imported(tmp_path, {**RUN, **other})
    assert sorted((process.pid, process.rank) for process in made.profile.processes) == [(4711, 0), (4800, 1)]
    assert made.contexts("gpu.time")["kernel:sub"] == (14, 2)
    assert len(made.report()["devices"]) == 4
    made = imported(tmp_path, {"1_kernel_trace.csv": OLD_KERNELS, "2_memory_copy_trace.csv": OLD_COPIES})
    assert len(made.profile.processes) == 2
    made = imported(tmp_path, {name.replace("4711", "2024"): RUN[name] for name in RUN})  # no number of a process
    assert [(process.pid, process.rank) for process in made.profile.processes] == [(4711, None)]
    made = imported(tmp_path, {"a/kernel_trace.csv": OLD_KERNELS, "b/kernel_trace.csv": OLD_KERNELS})
    assert [process.rank for process in made.profile.processes] == [0, 1]
    made = imported(tmp_path, {"a/kernel_trace.csv": OLD_KERNELS, "a/memory_copy_trace.csv": OLD_COPIES})
    assert [(process.pid, process.rank) for process in made.profile.processes] == [(None, None)]


def test_other_formats_in_between(tmp_path):
    nsys = "Start (ns),Duration (ns),CorrId,GrdX,Device,Ctx,Strm,Name\n1,2,3,4,G (0),1,7,k\n"
    made = imported(tmp_path, {"1_kernel_trace.csv": OLD_KERNELS, "x.csv": nsys, "1_memory_copy_trace.csv": OLD_COPIES})
    assert len(made.profile.processes) == 3


@pytest.mark.parametrize("timed", [True, False])
def test_counters_alone(tmp_path, timed):
    text = COUNTERS
    if not timed:  # to ROCm 6.1
        text = text.replace(',"Start_Timestamp","End_Timestamp"', "")
        for times in ("172352210005122,172352210008122", "172352210007122,172352210009122"):
            text = text.replace("," + times, "")
    made = imported(tmp_path, text)
    assert made.contexts("SQ_WAVES") == {"kernel:void add<float, 4>(float*, int)": (16384, 1),
                                         "kernel:mul(float*)": (1, 1)}
    assert len(made.spans()) == (2 if timed else 0)
    assert len(made.contexts("gpu.time")) == (2 if timed else 0)
    if timed:
        assert {node.exclusive["gpu.registers"].max for node in made.profile.kernels} == {8, 12}
    else:  # times of 0 are none either
        lines = [line + (",0,0" if i else ',"Start_Timestamp","End_Timestamp"')
                 for i, line in enumerate(text.strip().split("\n"))]
        assert not imported(tmp_path, "\n".join(lines)).spans()


def test_a_counter_named_as_a_metric_of_plumb(tmp_path):
    made = imported(tmp_path, COUNTERS.replace("SQ_WAVES", "gpu.time"))
    assert made.contexts("user.gpu.time")["kernel:mul(float*)"] == (1, 1)


def test_what_is_not_used_is_counted(tmp_path):
    text = """"Kind","Operation","Agent_Id","Allocation_Size","Address","Correlation_Id","Start_Timestamp",\
"End_Timestamp"
"MEMORY_ALLOCATION","MEMORY_ALLOCATION_ALLOCATE","Agent 4",1024,"0x7f",1,172352210001000,172352210002000
"""
    made = imported(tmp_path, {"1_kernel_trace.csv": OLD_KERNELS, "1_memory_allocation_trace.csv": text,
                               "1_scratch_memory_trace.csv": text.replace("MEMORY_ALLOCATION\"", "SCRATCH_MEMORY\"")})
    unused = {key[2]: count for key, count in made.fates().items() if key[0] == "import"}
    assert unused == {"MEMORY_ALLOCATION": 1, "SCRATCH_MEMORY": 1} and len(made.profile.processes) == 1
    done, *_ = run_import(tmp_path, text)
    assert done.returncode == 3


def test_dispatches_with_one_number_are_one(tmp_path):
    made = imported(tmp_path, NEW_KERNELS.replace('70,2,34', '70,1,34'))
    assert made.device(0)["kernels"]["count"] == 1
    assert made.fates()["import", "a second record of the same thing", "dispatches whose number is used twice"] == 1


@pytest.mark.parametrize("text, old, new, says", [
    (NEW_KERNELS, ",172352210005122,", ",now,", "line 2: Start_Timestamp is not a number"),
    (NEW_KERNELS, "172352210009122,", "99999999999999999999,", "line 3: End_Timestamp is not a number"),
    (NEW_KERNELS, '"mul(float*) [clone .kd]",', "", "line 3: the number of cells"),
    (NEW_KERNELS, '"mul(float*) [clone .kd]"', '"mul', "line 3: the number of cells"),
    (NEW_KERNELS, '"sub.kd"', '"sub.kd', "line 4: a quoted cell has no"),
    (COUNTERS, "16384.000000", "many", "line 2: Counter_Value is not a number"),
    (COUNTERS, "16384.000000", "5.x", "line 2: Counter_Value is not a number"),
    (COUNTERS, '"SQ_WAVES"', "", "line 2: Counter_Name is empty"),
    (CALLS, "172352210009900", "", "line 5: End_Timestamp is not"),
])
def test_errors_name_line_and_reason(tmp_path, text, old, new, says):
    said = refused(tmp_path, text.replace(old, new, 1))
    assert said.startswith(says), said


def test_counters_beyond_every_range(tmp_path):
    made = imported(tmp_path, COUNTERS.replace("16384.000000", "9223372036854775807.25")
                    .replace("12.345678", "-0.5"))
    assert made.contexts("SQ_WAVES")["kernel:void add<float, 4>(float*, int)"] == (2**63 - 1, 1)
    assert made.contexts("OccupancyPercent [1e-6]")["kernel:void add<float, 4>(float*, int)"] == (-500000, 1)
    made = imported(tmp_path, COUNTERS.replace("16384.000000", "9223372036854775807").replace("1.000000", "1.5"))
    assert made.contexts("SQ_WAVES [1e-6]") == {"kernel:mul(float*)": (1500000, 1)}
    assert made.fates()["import", "plumb does not show this kind", "counter values out of range"] == 1


@pytest.mark.parametrize("text", [NEW_KERNELS, COUNTERS, MARKERS + CALLS.split("\n", 1)[1]],
                         ids=["kernels", "counters", "calls"])
def test_cut_anywhere(tmp_path, text):
    assert cut_everywhere(tmp_path, text, step=3)


def test_a_damaged_file_of_several_leaves_nothing(tmp_path):
    done, _, out = run_import(tmp_path, *files(tmp_path, {**RUN, "4711_z.csv": NEW_KERNELS[:-40]}))
    assert done.returncode == 2 and not out.exists() and "4711_z.csv: line" in done.stderr
