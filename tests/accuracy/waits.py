#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Streams and a host that wait for each other, recorded with `plumb run --trace` on a GPU: does the profile say who
waited for whom?

    python3 tests/accuracy/waits.py [--plumb PLUMB] [--keep FILE]

The program has its waits counted by itself. Prints what differs and exits with 1, else says that all agree. --keep
writes the profile, gzipped, for tests/e2e/test_waits.py.
"""
import argparse
import collections
import gzip
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROUNDS = 30
PROGRAM = f"""\
import torch

device = torch.device("cuda")
a, b = torch.randn(2048, 2048, device=device), torch.randn(2048, 2048, device=device)
first, second = torch.cuda.Stream(), torch.cuda.Stream()
host = torch.empty(1 << 20, pin_memory=True)
torch.cuda.synchronize()
for number in range({ROUNDS}):
    with torch.cuda.stream(first):
        x = a @ b
        done = first.record_event()
    with torch.cuda.stream(second):
        second.wait_event(done)
        y = x @ b
        done = second.record_event()
    torch.cuda.current_stream().wait_event(done)
    z = (x + y).sum()
    host.to(device, non_blocking=True)
    torch.ones(number + 1).to(device)
    event = torch.cuda.Event()
    event.record()
    event.synchronize()
    z.item()
torch.cuda.synchronize()
"""
# Copies of pageable memory and z.item() wait for the stream that they are on.
EXPECTED = {("stream", "second", "first", True): ROUNDS, ("stream", "current", "second", True): ROUNDS,
            ("cuEventSynchronize", None, "current", True): ROUNDS,
            ("cuStreamSynchronize", None, "current", False): 2 * ROUNDS,
            ("cuCtxSynchronize", None, None, False): 2}


def who_waited(profile):
    """{(call or "stream", its stream, the awaited stream, whether for an event): times}. The three streams are told
    by their numbers, which PyTorch hands out in this order."""
    tracks = profile.tracks
    calls = {span.correlation: profile.node(span.context).name for span in profile.spans()
             if span.correlation and tracks[span.track].kind == "thread"}
    numbers = sorted(track.stream for track in tracks if track.kind == "stream")
    names = dict(zip(numbers, ("current", "first", "second")))
    found = collections.Counter()
    for wait in profile.waits:
        track = tracks[wait.track]
        waits = track.kind == "stream"
        found["stream" if waits else calls.get(wait.call), names[track.stream] if waits else None,
              None if wait.awaited is None else names[tracks[wait.awaited].stream], wait.after > 0] += 1
    return dict(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--plumb", default="plumb")
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args()
    import plumb
    with tempfile.TemporaryDirectory() as folder:
        program, path = os.path.join(folder, "waits_program.py"), os.path.join(folder, "waits.plumb")
        with open(program, "w", encoding="utf-8") as file:
            file.write(PROGRAM)
        subprocess.run([options.plumb, "run", "--trace", "-o", path, "--", sys.executable, "waits_program.py"],
                       cwd=folder, check=True)
        found = who_waited(plumb.Profile(path))
        if options.keep:
            with open(path, "rb") as source, gzip.GzipFile(options.keep, "wb", mtime=0) as target:
                shutil.copyfileobj(source, target)
    for key in sorted(found.keys() | EXPECTED.keys(), key=str):
        if found.get(key) != EXPECTED.get(key):
            print(f"{key}: {found.get(key)}, should be {EXPECTED.get(key)}")
    print("all agree" if found == EXPECTED else "they differ")
    return found != EXPECTED


if __name__ == "__main__":
    sys.exit(main())
