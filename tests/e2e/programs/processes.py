# SPDX-License-Identifier: Apache-2.0
"""Makes processes in one way, named by the first argument, each of which runs a known number of operators."""
import concurrent.futures
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import torch
from torch.utils.data import DataLoader, Dataset


def work(times):
    x = torch.ones(4)
    for _ in range(times):
        torch.sin(x)  # @work
    return times


def leave(code=0):
    sys.stdout.flush()
    os._exit(code)


def fork_idle():
    """Before any operator, and after; children of children."""
    for generation in range(2):
        child = os.fork()
        if not child:
            work(3)
            grandchild = os.fork()
            if not grandchild:
                work(4)
                leave()
            os.waitpid(grandchild, 0)
            work(3)
            leave()
        os.waitpid(child, 0)
        work(5)


class Forks(torch.autograd.Function):
    """Forks in the middle of operators, whose ends then come in both processes."""
    @staticmethod
    def forward(ctx, x):
        Forks.child = os.fork()
        return torch.neg(x)  # @inside

    @staticmethod
    def backward(ctx, gradient):
        return gradient


def fork_in_operator():
    x = torch.ones(4, requires_grad=True)
    work(2)
    with torch.autograd.profiler.record_function("range"):
        y = Forks.apply(x)
    y.sum().backward()
    work(3)
    if not Forks.child:
        leave()
    os.waitpid(Forks.child, 0)


def fork_with_threads():
    stop, begun = threading.Event(), threading.Barrier(5)

    def spin():
        torch.cos(torch.ones(2))
        begun.wait()
        while not stop.is_set():
            torch.cos(torch.ones(2))

    threads = [threading.Thread(target=spin) for _ in range(4)]
    for thread in threads:
        thread.start()
    begun.wait()  # a thread's first operator takes a lock of PyTorch's: a child forked then hangs
    work(1)
    for _ in range(20):
        child = os.fork()
        if not child:
            thread = threading.Thread(target=work, args=(6,))
            thread.start()
            thread.join()
            work(1)
            leave()
        assert os.waitpid(child, 0)[1] == 0
    stop.set()
    for thread in threads:
        thread.join()


def fork_in_handler():
    """A signal's handler forks, at any moment of the loop."""
    children = []
    parent = os.getpid()

    def handler(number, frame):
        if os.getpid() != parent:
            return
        child = os.fork()
        if not child:
            work(2)
            leave()
        children.append(child)
        if len(children) < 10:
            signal.setitimer(signal.ITIMER_REAL, 0.01)

    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    while len(children) < 10:
        work(1)
    print("statuses", {os.waitpid(child, 0)[1] for child in children})


def pool(method):
    work(1)
    context = multiprocessing.get_context(method)
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as executor:
        assert sum(executor.map(work, [5] * 8)) == 40


def fork_pool():
    with multiprocessing.get_context("fork").Pool(3) as workers:
        assert sum(workers.map(work, [5] * 8, chunksize=1)) == 40
        workers.close()
        workers.join()


class Numbers(Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, index):
        return torch.full((2,), float(index)).exp()  # @item


def loader():
    work(1)
    batches = list(DataLoader(Numbers(), batch_size=3, num_workers=2, multiprocessing_context="fork"))
    assert len(batches) == 4


def vfork():
    """Children that share the parent's memory until they become another program, or cannot."""
    work(2)
    for _ in range(5):
        subprocess.run(["/bin/true"], check=True, close_fds=False)
        pid = os.posix_spawn("/bin/true", ["true"], os.environ)
        assert os.waitpid(pid, 0)[1] == 0
        try:
            subprocess.run(["/nonexistent"], check=False)  # the child leaves by _exit
        except FileNotFoundError:
            pass
    os.system("exit 3")
    work(3)


def exec_chain():
    """Becomes itself again twice: one process, three programs."""
    left = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    work(4)
    if left:
        os.execv(sys.executable, [sys.executable, __file__, "exec_chain", str(left - 1)])


def killed():
    work(1)
    child = os.fork()
    if not child:
        work(7)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)


def zombie():
    """A child that nobody waits for."""
    child = os.fork()
    if not child:
        work(7)
        leave()
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    work(1)


def outlives():
    """A daemon: it goes on when the program has ended, until the file "go" is there."""
    work(1)
    if os.fork():
        return
    os.setsid()
    work(2)
    for stream in (0, 1, 2):
        os.close(stream)
    open("ready", "w").close()
    while not os.path.exists("go"):
        time.sleep(0.02)
    work(3)
    os._exit(0)


def many(number):
    for _ in range(int(number)):
        child = os.fork()
        if not child:
            work(1)
            leave()
        assert os.waitpid(child, 0)[1] == 0


def one():
    work(int(sys.argv[2]))


def pieces():
    """Records parts of itself; standard output says what the API answers."""
    import plumb
    work(1)
    print("recording", plumb.recording())
    print("stop", plumb.stop(), plumb.recording())
    work(100)
    print("start", plumb.start(), plumb.recording())
    work(10)
    plumb.stop()
    child = os.fork()  # a child takes part: recording is paused for it, too, and it starts all again
    if not child:
        work(100)
        plumb.start()
        work(20)
        leave()
    os.waitpid(child, 0)
    print("recording", plumb.recording())
    work(1)


def watch(periods):
    """Runs operators until it has seen so many periods of recording; says in how many turns of its loop
    recording was on, and how many there were."""
    import plumb
    end, turns, recorded, was, left = time.monotonic() + 100, 0, 0, plumb.recording(), int(periods)
    print("ready", flush=True)
    while left and time.monotonic() < end:
        now = plumb.recording()
        left -= was and not now
        turns, recorded, was = turns + 1, recorded + now, now
        work(1)
        time.sleep(0.002)
    print(recorded, turns)


def slowly(seconds):
    """Operators at an even pace; says when it begins."""
    end = time.monotonic() + float(seconds)
    print("ready", flush=True)
    while time.monotonic() < end:
        work(1)
        time.sleep(0.002)


if __name__ == "__main__":
    name, arguments = sys.argv[1], sys.argv[2:]
    if name in ("pool", "many", "slowly", "watch"):
        globals()[name](*arguments)
    else:
        globals()[name]()
