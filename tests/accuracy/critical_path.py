#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sets the critical path of plumb beside HolisticTraceAnalysis', of traces that have synchronisation events.

    python3 -m venv VENV && VENV/bin/pip install HolisticTraceAnalysis==0.5.0 'pandas<2.2' 'numpy<2'
    VENV/bin/python tests/accuracy/critical_path.py build/plumb TRACE.json.gz …

Of each trace, three lines in µs: HTA's; HTA's where a work that was launched after the work before it on its
stream was over waits for its launch (HTA has it wait for that work when its queue counted another one, so that
its path runs through the idle GPU); plumb's. What differs beside:

- between two outermost operators of a thread HTA's path has no length; plumb calls that host;
- a call that HTA knows to wait (cudaMemcpyAsync among them) has no length; plumb leaves out what it waited;
- a delay between two works that one event orders has no length in HTA; plumb calls it a gap.
"""
import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile

KINDS = ("cpu_bound", "gpu_compute_bound", "gpu_communication_bound", "gpu_kernel_launch_overhead",
         "gpu_kernel_kernel_overhead")


def wait_for_launches(graph, module):
    """Edges from a work to the next one of its stream that was launched after it become launch delays."""
    frame, full = graph.trace_df, graph.full_trace_df
    late = []
    for u, v in graph.edges:
        edge = graph.edges[u, v]["object"]
        if edge.type == module.CPEdgeType.KERNEL_KERNEL_DELAY:
            runtime = frame.index_correlation.loc[graph.node_list[v].ev_idx]
            if full.ts.loc[runtime] > graph.node_list[u].ts:
                late.append((u, v, runtime))
    for u, v, runtime in late:
        graph.remove_edge(u, v)
        graph._add_kernel_launch_delay_edge(runtime, graph.node_list[v])
    return len(late)


def sums(graph):
    table = graph.get_critical_path_breakdown().groupby("bound_by").duration.sum()
    return [float(table.get(kind, 0)) for kind in KINDS]


def hta(trace):
    logging.disable(logging.CRITICAL)
    import hta.analyzers.critical_path_analysis as module
    from hta.trace_analysis import TraceAnalysis
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copy(trace, folder)
        analysis = TraceAnalysis(trace_files={0: copy}, trace_dir=folder)
        graph, done = analysis.critical_path_analysis(rank=0, annotation="", instance_id=None)
        assert done
        plain = sums(graph)
        late = wait_for_launches(graph, module)
        assert graph.critical_path()
        return plain, sums(graph), late


def plumb(program, trace):
    done = subprocess.run([program, "iters", trace, "--json"], stdout=subprocess.PIPE, check=True)
    path = json.loads(done.stdout)["path"]
    between = sum(row["path_ns"] for row in path["top"] if row["name"] is None)
    return [(path["host_ns"] - between) / 1e3, (path["kernel_ns"] + path["copy_ns"]) / 1e3,
            path["communication_ns"] / 1e3, path["launch_ns"] / 1e3, path["gap_ns"] / 1e3]


def main(program, *traces):
    print(f"{'':24}" + "".join(f"{kind.replace('_bound', '').replace('_overhead', ''):>20}"
                              for kind in KINDS))
    for trace in traces:
        plain, mended, late = hta(trace)
        rows = [("HTA", plain), (f"HTA, {late} by launch", mended), ("plumb", plumb(program, trace))]
        print(os.path.basename(trace))
        for name, row in rows:
            print(f"  {name:22}" + "".join(f"{value:20,.0f}" for value in row))


if __name__ == "__main__":
    main(*sys.argv[1:])
