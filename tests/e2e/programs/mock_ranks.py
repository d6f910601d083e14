# SPDX-License-Identifier: Apache-2.0
"""Ranks of a job on the stand-in driver: each is a process, and computes what every rank's GPU does, to the ns. It launches
its own work at these times. A collective begins on each rank when that has got so far, and ends on all together.

    mock_ranks.py KIND RANKS STEPS

KIND is a function below that tells what a rank's host and GPU do in a step. The milliseconds are those of the GPU's clock;
`late_host` also sleeps for real.
"""
import os
import subprocess
import sys
import time

from launcher import launch, stream_until

MS = 1000000
COMPUTE, COMMUNICATION = 0, 1  # streams
REDUCE = b"_Z40ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE"
SEND = b"_Z22ncclDevKernel_SendRecv24ncclDevKernelArgsStorageILm4096EE"


class Job:
    def __init__(self, rank, ranks, begin):
        self.rank, self.ranks = rank, ranks
        self.now = [begin] * ranks      # of each rank's host
        self.gpu = [begin] * ranks      # when its computation ends
        self.busy = {}                  # when its communication ends, by (rank, stream)

    def host(self, rank, ms):
        self.now[rank] += int(ms * MS)

    def start(self, rank, ms):
        """Of computation of so many ms."""
        at = max(self.now[rank], self.gpu[rank])
        self.gpu[rank] = at + int(ms * MS)
        return at

    def collective(self, members, stream=COMMUNICATION, ms=1.0):
        """When it begins on our rank and how long it takes there; None: we take no part."""
        starts = {rank: max(self.gpu[rank], self.now[rank], self.busy.get((rank, stream), 0)) for rank in members}
        end = max(starts.values()) + int(ms * MS)
        for rank in members:
            self.busy[rank, stream] = end
        return (starts[self.rank], end - starts[self.rank]) if self.rank in starts else None

    def done(self, members):
        """What comes next on the GPU waits for communication, and so does the host."""
        for rank in members:
            end = max([at for (own, _), at in self.busy.items() if own == rank], default=0)
            self.gpu[rank] = self.now[rank] = max(self.gpu[rank], end)


def compute(job, factor=None):
    """Forward and backward pass: two kernels of 10 ms on each rank, or FACTOR[rank] times that."""
    for part in range(2):
        starts = [job.start(rank, 10 * (factor[rank] if factor else 1)) for rank in range(job.ranks)]
        stream_until(job.rank, COMPUTE, starts[job.rank])
        length = job.gpu[job.rank] - starts[job.rank]
        launch(b"forward_kernel" if part == 0 else b"backward_kernel", length, COMPUTE, job.rank)  # @compute


def reduce(job, members=None, stream=COMMUNICATION, kernel=REDUCE):
    members = members or range(job.ranks)
    own = job.collective(members, stream)
    if own:
        stream_until(job.rank, stream, own[0])
        launch(kernel, own[1], stream, job.rank)  # @reduce


def update(job):
    job.done(range(job.ranks))
    at = [job.start(rank, 1) for rank in range(job.ranks)]
    stream_until(job.rank, COMPUTE, at[job.rank])
    launch(b"update_kernel", MS, COMPUTE, job.rank)  # @update


def healthy(job, step):
    for rank in range(job.ranks):
        job.host(rank, 0.2 + 0.1 * ((step * 7 + rank * 3) % 5))
    compute(job)
    reduce(job)
    update(job)


def late(job, step):
    """Rank 1's host comes 20 ms late in each step."""
    job.host(1, 20)
    healthy(job, step)


def late_host(job, step):
    if job.rank == 1:
        time.sleep(0.02)  # @sleep
    late(job, step)


def sometimes(job, step):
    if step % 5 == 2:
        job.host(1, 60)
    healthy(job, step)


def turns(job, step):
    job.host(step % job.ranks, 20)
    healthy(job, step)


def device(job, step):
    """Rank 1's kernels take twice as long."""
    for rank in range(job.ranks):
        job.host(rank, 0.2)
    compute(job, [2 if rank == 1 else 1 for rank in range(job.ranks)])
    reduce(job)
    update(job)


def overlapped(job, step):
    """Two buckets: the first is reduced while the backward pass goes on. The ranks' hosts are even."""
    for rank in range(job.ranks):
        job.host(rank, 0.2)
    compute(job)
    reduce(job)
    compute(job)
    reduce(job)
    update(job)


def overlapped_late(job, step):
    job.host(1, 20)
    overlapped(job, step)


def groups(job, step):
    """Pairs that share a layer, then pairs that share gradients: rank 1 makes all of them late."""
    job.host(1, 20)
    compute(job)
    for pair in ((0, 1), (2, 3)):
        reduce(job, pair, 2)
    job.done(range(job.ranks))
    compute(job)
    for pair in ((0, 2), (1, 3)):
        reduce(job, pair, 3)
    update(job)


def pipeline(job, step):
    """Rank 0 computes, sends to rank 1, which takes twice as long."""
    for _ in range(4):
        at = [job.start(0, 5)] + [0] * (job.ranks - 1)
        if job.rank == 0:
            stream_until(0, COMPUTE, at[0])
            launch(b"stage_kernel", 5 * MS, COMPUTE, 0)
        reduce(job, (0, 1), kernel=SEND)
        job.done((0, 1))
        at = job.start(1, 12)
        if job.rank == 1:
            stream_until(1, COMPUTE, at)
            launch(b"stage_kernel", 12 * MS, COMPUTE, 1)


def alone(job, step):
    """No communication."""
    job.host(1, 20)
    compute(job)


def main(kind, ranks, steps, begin=None):
    if begin is None:
        begin = str(time.time_ns() + 50 * MS)
        children = [subprocess.Popen([sys.executable, __file__, kind, ranks, steps, begin],
                                     env={**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": ranks})
                    for rank in range(int(ranks))]
        sys.exit(max(child.wait() for child in children))
    job = Job(int(os.environ["RANK"]), int(ranks), int(begin))
    for step in range(int(steps)):
        globals()[kind](job, step)


if __name__ == "__main__":
    main(*sys.argv[1:])
