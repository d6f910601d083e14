#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_collector.py [--glibc 2.28] LIBRARY: checks that any running program can load the collector, or the counter.

They may export only the entry points in this file. They may need only the C library (with --glibc: no
symbol that is newer). Their thread-local storage must be small and static. The script prints each rule that is
broken, and fails.
"""
import argparse
import pathlib
import re
import subprocess
import sys

# What a program may see of us, and why.
ENTRY_POINTS = {
    "InitializeInjection": "CUDA's driver calls it (CUDA_INJECTION64_PATH)",
    **dict.fromkeys(
        ["cuptiSubscribe", "cuptiSubscribe_v2", "cuptiUnsubscribe", "cuptiEnableCallback",
         "cuptiEnableDomain", "cuptiEnableAllDomains", "cuptiActivityRegisterCallbacks",
         "cuptiActivityRegisterTimestampCallback", "cuptiActivityEnable", "cuptiActivityDisable",
         "cuptiActivityFlushAll", "cuptiFinalize"],
        "the program's own profiler takes and leaves CUPTI's slot"),
    **dict.fromkeys(["nvshmem_malloc", "nvshmem_calloc", "nvshmem_align", "nvshmem_free"],
                    "NVSHMEM allocates memory that other processes reach"),
    **dict.fromkeys(["plumb_start", "plumb_stop", "plumb_is_recording"],
                    "the program turns recording on and off"),
    **dict.fromkeys(["plumb_session_begin", "plumb_session_end"],
                    "a recording of a process that `plumb run` did not start (plumb.profile)"),
    **dict.fromkeys(["ncclProfiler_v3", "ncclProfiler_v4", "ncclProfiler_v5"],
                    "NCCL and RCCL look them up (NCCL_PROFILER_PLUGIN)"),
    "InitializeInjectionNvtx2": "NVTX calls it (NVTX_INJECTION64_PATH)",
    "InitializeInjectionNvtxExtension": "likewise, for the tool that was there before",
    "plumb_annotate_v1": "the program's own ranges and metrics (plumb/annotate.h, plumb.span)",
    **dict.fromkeys(
        ["plumb_monitor_" + name for name in
         ("init", "register", "unregister", "path", "finalize", "version")],
        "other tools (plumb/monitor.h)"),
    "dlsym": "a framework is being loaded",
    "dlclose": "what is known of a library's code goes with it",
    "pthread_create": "a thread begins, which may be sampled",
    **dict.fromkeys(
        ["sigaction", "signal", "__sysv_signal", "sysv_signal", "sigprocmask", "pthread_sigmask", "sigwait",
         "sigwaitinfo", "sigtimedwait", "signalfd"],
        "the program's signals and that of the samples are kept apart"),
    "sigaltstack": "a thread's signal stack may be too small for a sample, and plumb's is hidden",
    **dict.fromkeys(
        ["execve", "execv", "execvp", "execvpe", "execl", "execlp", "execle", "fexecve", "execveat",
         "posix_spawn", "posix_spawnp", "system", "popen"],
        "a program is started, which gets the collector also where LD_PRELOAD was set on the way"),
    **dict.fromkeys(["setuid", "seteuid", "setreuid", "setresuid"],
                    "the process becomes another user, who is let into the run folder"),
    "_PyGen_Send": "asyncio of CPython 3.9 gives a coroutine its turn",
    "_exit": "the program ends without running its exit handlers",
    "_Exit": "likewise",
    "_ZN5torch8autograd6Engine7executeERKSt6vectorINS0_4EdgeESaIS3_EERKS2_IN2at6TensorESaIS9_EEbbbS7_":
        "PyTorch begins a backward pass",
    "_ZN5torch8autograd6Engine17evaluate_functionERSt10shared_ptrINS0_9GraphTaskEEPNS0_4NodeERNS0_11InputBufferERKS2_INS0_10ReadyQueueEE":
        "PyTorch runs one node of a backward pass",
    "_ZN2at15sequence_number17get_and_incrementEv": "PyTorch makes the node of an operator",
    "_ZN3c109alloc_cpuEm": "PyTorch allocates a tensor on the CPU",
    "_ZN3c108free_cpuEPv": "PyTorch frees it",
    "_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE":
        "an allocator of PyTorch reports what it gives out and takes back (1.13)",
    "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE": "likewise (2)",
}
# The same of the counter.
COUNTER_ENTRY_POINTS = {
    "dlsym": "the program looks the driver's functions up",
    "plumb_count_answer": "the collector's dlsym asks the counter",
    **dict.fromkeys(
        [name + variant for name in ("cuLaunchKernel", "cuLaunchKernelEx", "cuLaunchCooperativeKernel", "cuGraphLaunch")
         for variant in ("", "_ptsz")],
        "the program launches work"),
    **dict.fromkeys(["cuGetProcAddress", "cuGetProcAddress_v2"], "the program asks for the functions that do"),
}
LIBRARIES = {"libc.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2",
             "ld-linux-aarch64.so.1"}
MOST_TLS = 512


def readelf(*arguments):
    done = subprocess.run(["readelf", "-W", *arguments], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr.strip() or f"readelf {' '.join(map(str, arguments))} failed")
    return done.stdout


def newest_glibc(path):
    """The newest GLIBC_x.y that PATH needs, as (x, y)."""
    found = re.findall(r"Name: GLIBC_(\d+)\.(\d+)", readelf("-V", path))
    return max((int(major), int(minor)) for major, minor in found) if found else (0, 0)


def needed(path):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("-d", path))


def problems(path, glibc):
    """Yields one line for every rule that PATH breaks."""
    entry_points = COUNTER_ENTRY_POINTS if pathlib.Path(path).name == "plumb-counter.so" else ENTRY_POINTS
    for line in readelf("--dyn-syms", path).splitlines():
        field = line.split()
        if len(field) < 7 or field[0] == "Num:":
            continue
        name = field[7].split("@")[0] if len(field) > 7 else ""
        if field[6] == "UND":
            if name == "__tls_get_addr":
                yield "needs __tls_get_addr: compile with -ftls-model=initial-exec"
        elif name and name not in entry_points:
            yield f"exports {name}, which is not in the list of entry points"
    for library in needed(path):
        if library not in LIBRARIES:
            yield f"needs the library {library}"
    if glibc and newest_glibc(path) > glibc:
        yield "needs GLIBC_{}.{}, newer than {}.{}".format(*newest_glibc(path), *glibc)
    for size in re.findall(r"^\s*TLS(?:\s+\S+){4}\s+(0x[0-9a-f]+)", readelf("-l", path), re.M):
        if int(size, 16) >= MOST_TLS:
            yield f"has {int(size, 16)} bytes of thread-local storage; it must have less than {MOST_TLS}"
    if "NODELETE" not in readelf("-d", path):
        yield "can be unloaded: link with -z nodelete"


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    parser.add_argument("--glibc", type=lambda text: tuple(map(int, text.split("."))))
    parser.add_argument("path")
    options = parser.parse_args(arguments)
    found = list(problems(options.path, options.glibc))
    for line in found:
        print(f"{options.path}: {line}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
