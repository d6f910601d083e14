# SPDX-License-Identifier: Apache-2.0
"""Two threads that wait at known lines and compute; prints how long each was asleep in each function,
by the kernel's own account (wall time less CPU time less time ready to run), in ns."""
import ctypes  # noqa: F401 (an extension module: there plumb meets Python)
import json
import queue
import threading
import time


def asleep():
    with open("/proc/thread-self/schedstat") as file:
        on, ready, _ = map(int, file.read().split())
    return time.monotonic_ns() - on - ready


def sleeps(seconds):
    time.sleep(seconds)  # @sleeps


def gets(items):
    return items.get()  # @gets


def locks(lock):
    with lock:  # @locks
        pass


def computes(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


truth = {}


def call(function, *arguments):
    before = asleep()
    function(*arguments)
    name = function.__name__
    truth[name] = truth.get(name, 0) + asleep() - before


def other(lock, go):
    computes(0.03)
    for _ in range(4):
        call(locks, lock)
        go.wait()
        go.clear()


def main():
    items, lock, go = queue.Queue(), threading.Lock(), threading.Event()
    lock.acquire()
    computes(0.03)  # a thread is known from its first sample on
    thread = threading.Thread(target=other, args=(lock, go))
    thread.start()
    for _ in range(4):
        feeder = threading.Timer(0.25, items.put, args=(1,))
        feeder.start()
        call(gets, items)
        call(sleeps, 0.15)
        computes(0.1)
        lock.release()
        time.sleep(0.01)
        lock.acquire()
        go.set()
    thread.join()
    print(json.dumps(truth))


main()
