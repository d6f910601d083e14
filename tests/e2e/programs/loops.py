# SPDX-License-Identifier: Apache-2.0
"""Loops of ranges, without a framework: loops.py HOW [FILE]. The environment says where the package plumb is. Each process
writes to done.LABEL.json how often it went round each of its loops."""
import errno
import json
import os
import signal
import subprocess
import sys
import time

import plumb

done = {}


def set_up(seconds=0.6):
    """No two moments are alike."""
    until = time.monotonic() + seconds
    number = 0
    while time.monotonic() < until:
        with plumb.span(f"set up {number}"):
            time.sleep(0.01 * (1 + number % 4))
        number += 1


def loop(name, seconds, stop=None):
    """Four ranges each time, about 20 ms."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and not (stop and stop()):
        for part in ("load", "forward", "backward", "update"):
            with plumb.span(f"{name} {part}"):
                time.sleep(0.005)
        done[name] = done.get(name, 0) + 1


def write(label):
    with open(f"done.{label}.json", "w", encoding="utf-8") as file:
        json.dump(done, file)


def fork():
    """A child with a loop of its own, while its parent waits; then the parent's."""
    set_up()
    child = os.fork()
    if not child:
        loop("child", 2)
        write("child")
        os._exit(0)
    os.waitpid(child, 0)
    loop("parent", 2)
    write("parent")


def killed():
    set_up()
    loop("train", 2.5)
    write("killed")
    os.kill(os.getpid(), signal.SIGKILL)


def ranks():
    """The second rank alone checks something first; then both train, and the first alone evaluates."""
    started = [subprocess.Popen([sys.executable, __file__, "rank"], env={**os.environ, "RANK": rank})
               for rank in "01"]
    sys.exit(max(process.wait() for process in started))


def rank():
    number = os.environ["RANK"]
    if number == "1":
        loop("check", 3)
    else:
        set_up(3)
    loop("train", 3)
    if number == "0":
        loop("evaluate", 2.5)
    write(f"rank{number}")


def short():
    """All that repeats is shorter than the time between two looks."""
    set_up(1.0)
    loop("brief", 0.06)
    set_up(1.0)
    write("short")


def short_before():
    """The same before a long loop."""
    set_up(1.0)
    loop("brief", 0.06)
    loop("train", 2)
    write("short_before")


def until_gone():
    """Tells FILE its number, and goes on until that file is gone."""
    path = sys.argv[2]
    set_up()
    loop("train", 1)
    with open(path, "w", encoding="utf-8") as file:
        file.write(str(os.getpid()))
    loop("train", 100, stop=lambda: not os.path.exists(path))
    write("until_gone")


def fill():
    """Its end finds no room on the disk of FILE."""
    set_up()
    loop("train", 2)
    write("fill")
    try:
        with open(sys.argv[2], "wb", buffering=0) as file:
            while file.write(bytes(4096)):
                pass
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise


if __name__ == "__main__":
    globals()[sys.argv[1]]()
