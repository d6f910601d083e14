# SPDX-License-Identifier: Apache-2.0
"""Ranks of a job on the stand-in driver that communicate by the stand-in NCCL: the kinds of mock_ranks.py, but each kernel of a
collective is launched, and told of, by that library.

    nccl_ranks.py KIND RANKS STEPS [VERSION]
"""
import os
import subprocess
import sys
import time

import mock_ranks
from launcher import launch, stream_until
from mock_ranks import COMMUNICATION, MS, REDUCE, SEND, Job
from nccl_player import F32, collective, communicator, nccl_open, p2p, run

ELEMENTS = 250000
communicators = {}


def communicator_of(job, members):
    members = tuple(members)
    if members not in communicators:
        number = 0xabc000 + sum(1 << rank for rank in members)
        communicators[members] = communicator(number, b"group", 1, len(members), members.index(job.rank))
    return communicators[members]


def reduce(job, members=None, stream=COMMUNICATION, kernel=REDUCE, ms=1.0):
    members = members or range(job.ranks)
    own = job.collective(members, stream, ms)
    if not own:
        return
    comm = communicator_of(job, members)
    stream_until(job.rank, stream, own[0])
    if kernel is SEND:
        sends = job.rank == members[0]
        p2p(comm, b"Send" if sends else b"Recv", 4096, F32, 1 if sends else 0)
    else:
        collective(comm, b"AllReduce", ELEMENTS, F32, 0)  # @reduce
    run(comm, kernel, own[1], stream, job.rank)


def sizes(job, step):
    """Two sizes, and rank 1 is 20 ms late to the larger one, in each step."""
    for rank in range(job.ranks):
        job.host(rank, 0.2)
    mock_ranks.compute(job)
    reduce(job)
    job.done(range(job.ranks))
    job.host(1, 20)
    own = job.collective(range(job.ranks), ms=4.0)
    comm = communicator_of(job, range(job.ranks))
    launch(b"between_kernel", MS // 10, 0, job.rank)
    stream_until(job.rank, COMMUNICATION, own[0])
    collective(comm, b"AllReduce", 10 * ELEMENTS, F32, 0)
    run(comm, REDUCE, own[1], COMMUNICATION, job.rank)
    mock_ranks.update(job)


def shift(job, step):
    """Each rank sends to the next one, all in one kernel."""
    own = job.collective(range(job.ranks))
    comm = communicator_of(job, range(job.ranks))
    stream_until(job.rank, COMMUNICATION, own[0])
    p2p(comm, b"Send", 1000 * (job.rank + 1), F32, (job.rank + 1) % job.ranks)
    p2p(comm, b"Recv", 1000 * ((job.rank - 1) % job.ranks + 1), F32, (job.rank - 1) % job.ranks)
    run(comm, SEND, own[1], COMMUNICATION, job.rank)
    job.done(range(job.ranks))


def main(kind, ranks, steps, version="5", begin=None):
    if begin is None:
        begin = str(time.time_ns() + 50 * MS)
        children = [subprocess.Popen([sys.executable, __file__, kind, ranks, steps, version, begin],
                                     env={**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": ranks})
                    for rank in range(int(ranks))]
        sys.exit(max(child.wait() for child in children))
    assert nccl_open(int(version)) == int(version)
    mock_ranks.reduce = reduce
    job = Job(int(os.environ["RANK"]), int(ranks), int(begin))
    for step in range(int(steps)):
        (globals().get(kind) or getattr(mock_ranks, kind))(job, step)


if __name__ == "__main__":
    main(*sys.argv[1:])
