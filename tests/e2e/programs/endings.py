# SPDX-License-Identifier: Apache-2.0
"""Runs COUNT operators and then ends as it is told: endings.py HOW [COUNT [FILE]]. HOW*N: N children do so before it, one
after another; it prints how they ended."""
import ctypes
import json
import os
import resource
import signal
import sys
import threading
import time

import torch

how, _, children = sys.argv[1].partition("*")
count = int(sys.argv[2]) if len(sys.argv) > 2 else 10
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
x = torch.ones(4)


def work():
    for _ in range(count):
        torch.neg(x)  # @work


def forever():
    while True:
        torch.exp(x)


def close_all():
    """Closes every descriptor and takes the numbers for a file of the program's own."""
    path = sys.argv[3]
    os.closerange(0, 4096)
    first = os.open(path, os.O_RDWR | os.O_CREAT)
    for _ in range(20):
        os.dup(first)
    work()
    os.write(first, b"mine\n")
    os._exit(os.fstat(first).st_size)


def wait_for_interrupt():
    try:
        print("ready", flush=True)
        time.sleep(60)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        work()
        sys.exit(9)


def keep_on():
    """Tells FILE that it is ready, and goes on until that file is gone."""
    with open(sys.argv[3], "w") as file:
        file.write(str(os.getpid()))
    while os.path.exists(sys.argv[3]):
        time.sleep(0.01)
    work()


def fill_up():
    """Leaves no space where FILE lies, then makes many contexts."""
    with open(sys.argv[3], "wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            pass
        contexts()


def contexts():
    for number in range(count):
        exec(compile("torch.neg(x)", f"context_{number:06}", "exec"))


def threads_at_once():
    barrier = threading.Barrier(40)

    def run():
        barrier.wait()
        work()
        barrier.wait()
    threads = [threading.Thread(target=run) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def from_deep_inside():
    class Ends(torch.autograd.Function):
        @staticmethod
        def forward(ctx, value):
            torch.neg(value)
            sys.stdout.flush()
            os._exit(6)

        @staticmethod
        def backward(ctx, grad):
            return grad
    Ends.apply(x)


def at_once():
    """Other threads are in the middle of operators."""
    for _ in range(3):
        threading.Thread(target=forever, daemon=True).start()
    time.sleep(0.05)


def too_deep():
    """Calls itself deeper than plumb keeps."""
    sys.setrecursionlimit(count + 1000)

    def down(depth):
        if depth:
            return down(depth - 1)  # @down
        torch.neg(x)  # @bottom
        return torch.exp(x)

    down(count)


def still_inside():
    """Other threads are in one operator for longer than the program lives."""
    matrix = torch.ones(7000, 7000)
    for _ in range(2):
        threading.Thread(target=torch.mm, args=(matrix, matrix), daemon=True).start()
    time.sleep(0.05)


endings = {
    "return": work,
    "exit": lambda: (work(), sys.exit(4)),
    "raise": lambda: (work(), 1 / 0),
    "_exit": lambda: (work(), os._exit(5)),
    "abort": lambda: (work(), os.abort()),
    "segfault": lambda: (work(), ctypes.string_at(0)),
    "kill": lambda: (work(), os.kill(os.getpid(), signal.SIGKILL)),
    "terminate": lambda: (work(), os.kill(os.getpid(), signal.SIGTERM), time.sleep(60)),
    "interrupt": lambda: (work(), os.kill(os.getpid(), signal.SIGINT), time.sleep(60)),
    "exec": lambda: (work(), sys.stdout.flush(), os.execv("/bin/sh", ["sh", "-c", "exit 11"])),
    "close": close_all,
    "wait": wait_for_interrupt,
    "sleep": lambda: (work(), print("ready", flush=True), time.sleep(60)),
    "keep_on": keep_on,
    "fill": fill_up,
    "contexts": contexts,
    "threads": threads_at_once,
    "deep": too_deep,
    "inside": from_deep_inside,
    "daemons": lambda: (work(), at_once()),
    "daemons_inside": lambda: (work(), still_inside()),
    "daemons_exit": lambda: (work(), at_once(), os._exit(5)),
}
def fork_children(number):
    """Returns in each child, and then in this process."""
    ends = []
    while len(ends) < number:
        child = os.fork()
        if not child:
            return
        ends.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    print(json.dumps(ends), flush=True)


print("begun", flush=True)
if children:
    fork_children(int(children))
endings[how]()
print("ended", flush=True)
