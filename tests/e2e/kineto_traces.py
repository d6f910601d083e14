# SPDX-License-Identifier: Apache-2.0
"""Traces as PyTorch's profiler writes them, made by hand. Times are µs.

    save(path, event("cpu_op", "aten::mm", 10, 30), call(1, 15), kernel(1, 40, 5.5, grid=[2, 3, 4]))
"""
import json


def event(category, name, start, duration, pid=5, tid=6, **more):
    args = more.pop("args", None)
    made = {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": start, "dur": duration,
            **more}
    return {**made, "args": args} if args is not None else made


def call(correlation, start, name="cudaLaunchKernel", duration=2, category="cuda_runtime", **more):
    return event(category, name, start, duration, args={"correlation": correlation}, **more)


def kernel(correlation, start, duration, name="k", stream=7, device=0, category="kernel", tid=None, **args):
    return event(category, name, start, duration, pid=device, tid=stream if tid is None else tid,
                 args={"device": device, "stream": stream, "context": 1, "correlation": correlation, **args})


def document(*events, **more):
    return {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "Test GPU", "numSms": 4}],
            "traceEvents": list(events), **more}


def save(path, *events, **more):
    path.write_text(json.dumps(document(*events, **more)))
    return path
