#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What windows cost the program: `plumb run` looks at its values and at its main thread while it runs.

    python3 bench/windows.py [--workload W] [--rounds N] [--iterations N] [--python PYTHON] [--plumb PATH]

Two processes of one program differ by a percent or two by chance: where their memory lies, which processor they are on. So this
is one process, under `plumb run`. In every second block `plumb run` is stopped (SIGSTOP), so it does not look; the program goes
on as it is. Two blocks, one after the other, are a pair, and their order changes from pair to pair. The ratio is the block with
looks to the one without.
"""
import argparse
import os
import signal
import statistics
import sys
import tempfile
import time

from overhead import HERE, ITERATIONS, Worker, interval, written

SETTLE = 0.06  # seconds: a look that is late is over


def measure(worker, iterations, looks):
    os.kill(worker.process.pid, signal.SIGCONT if looks else signal.SIGSTOP)
    time.sleep(SETTLE)
    try:
        return worker.block(iterations)["seconds"]
    finally:
        os.kill(worker.process.pid, signal.SIGCONT)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--workload", default="gptsmall", choices=ITERATIONS)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--iterations", type=int, help="of a block")
    parser.add_argument("--seconds", type=float, default=600, help="no new pair after these (default: 600)")
    parser.add_argument("--plumb", default=os.path.join(HERE, "..", "build", "plumb"))
    parser.add_argument("--python", default=sys.executable)
    options = parser.parse_args()
    options.plumb, options.tiny = os.path.abspath(options.plumb), False
    iterations = options.iterations or ITERATIONS[options.workload]
    with tempfile.TemporaryDirectory() as folder:
        worker = Worker(options.workload, "light", folder, options)
        print(worker.ready())
        worker.block(iterations)
        pairs, end = [], time.monotonic() + options.seconds
        for number in range(options.rounds):
            if time.monotonic() > end:
                break
            pair = {looks: measure(worker, iterations, looks) for looks in (number % 2 == 0, number % 2 == 1)}
            pairs.append((pair[True], pair[False]))
        worker.end()
    print(f"{options.workload}: {iterations} iterations a block, {len(pairs)} pairs")
    print(f"{1e3 * statistics.median(off for _, off in pairs):.3f} ms an iteration without looks; "
          f"with them {written(*interval([on / off for on, off in pairs]))} times that")


if __name__ == "__main__":
    main()
