# SPDX-License-Identifier: Apache-2.0
"""What bench/zoo/run.py runs under plumb: inference of one model, with each iteration at batch size N in the range "batch N", from
the call of the model until the GPU has done its work. So one process has all sizes, and plumb tells them apart by their ranges.

    work.py sweep MODEL        1, 2, 4, … until the throughput grows by 5 % or less, or memory or time is out
    work.py look MODEL 1,64    a few iterations of each of these sizes
    work.py count MODEL 64     one iteration, without one before it: for hardware counters

Single precision, without TF32, as in the XSP paper. $ZOO_LOCK is a file: models and GPU work are there only while this process holds
its lock, so that several processes may load their libraries at once, and none disturbs what another one times. $ZOO_PROCESSORS are
those that it may use.
"""
import argparse
import fcntl
import os
import time

GAIN = 1.05  # of the throughput, from which on a size is worth being doubled
WARM = 2     # iterations before those in ranges


def steps_of(seconds, budget, least, most):
    return max(least, min(most, int(budget / max(seconds, 1e-9))))


class Work:
    def __init__(self, options):
        import torch
        from plumb import span
        from zoo_models import build
        self.torch, self.span, self.options = torch, span, options
        self.device = "cpu" if options.cpu else "cuda"
        torch.manual_seed(0)
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
        self.model, self.inputs = build(options.model, options.tiny, self.device)

    def wait(self):
        if self.device == "cuda":
            self.torch.cuda.synchronize()

    def once(self, inputs):
        self.model(*inputs)
        self.wait()

    def marked(self, size, inputs):
        with self.span(f"batch {size}"):
            self.once(inputs)

    def timed(self, size):
        """Seconds of an iteration of SIZE inputs. Only for when to stop and how often to repeat: the times shown are plumb's."""
        inputs = self.inputs(size)
        for _ in range(WARM):
            self.once(inputs)
        begin = time.perf_counter()
        self.once(inputs)
        steps = steps_of(time.perf_counter() - begin, self.options.budget, 3, 50)
        begin = time.perf_counter()
        for _ in range(steps):
            self.marked(size, inputs)
        return (time.perf_counter() - begin) / steps

    def sweep(self):
        size, before, end = 1, 0, time.perf_counter() + self.options.seconds
        while size <= self.options.most:
            try:
                throughput = size / self.timed(size)
            except self.torch.cuda.OutOfMemoryError:
                self.torch.cuda.empty_cache()
                return
            if throughput <= GAIN * before or time.perf_counter() > end:
                return
            size, before = 2 * size, throughput

    def look(self):
        for size in map(int, self.options.sizes.split(",")):
            inputs = self.inputs(size)
            for _ in range(WARM):
                self.once(inputs)
            for _ in range(5):
                self.marked(size, inputs)

    def count(self):
        size = int(self.options.sizes)
        self.marked(size, self.inputs(size))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["sweep", "look", "count"])
    parser.add_argument("model")
    parser.add_argument("sizes", nargs="?", default="1")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--most", type=int, default=256, help="the largest size of a sweep")
    parser.add_argument("--budget", type=float, default=0.25, help="seconds of iterations of each size")
    parser.add_argument("--seconds", type=float, default=15, help="of a sweep, after which it does not double any more")
    options = parser.parse_args()
    if os.environ.get("ZOO_PROCESSORS"):
        os.sched_setaffinity(0, map(int, os.environ["ZOO_PROCESSORS"].split(",")))
    import torch
    from zoo_models import IMAGES
    __import__("torchvision" if options.model in IMAGES else "transformers")
    counts = options.what == "count"
    if not options.cpu and not counts:
        torch.cuda.init()
    lock = os.environ.get("ZOO_LOCK") or os.devnull
    # A bare descriptor: Python closes a file object before plumb gives the counters back, and the next process would get none.
    descriptor = os.open(lock, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    if lock != os.devnull:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    with torch.no_grad():
        work = Work(options)
        getattr(work, options.what)()
    work.wait()
    del work
    if not options.cpu:
        torch.cuda.empty_cache()
    # One process at a time has the GPU's counters, up to its end.
    if not counts:
        os.close(descriptor)


main()
