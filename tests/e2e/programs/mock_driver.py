# SPDX-License-Identifier: Apache-2.0
"""Work on the stand-in driver without any framework: mock_driver.py SECTION [NUMBER]. Durations and
sizes are all different, so that each can be found again."""
import os
import sys
import threading
import time

from launcher import (ARRAY, CONTEXT, DEVICE, EVENT, MANAGED, PAGEABLE, PINNED, STREAM, alloc,
                      capture_begin, capture_end, copy, event_record, event_wait, free, gap,
                      graph_launch, kernel, launch, memset, mock_get, stream_wait,
                      stream_wait_event, stream_waits, wait)

number = int(sys.argv[2]) if len(sys.argv) > 2 else 10


def copies():
    copy(PAGEABLE, DEVICE, 4096, 900, 2000000, 0, 0)  # @pageable
    copy(PINNED, DEVICE, 100, 10, 2000000, 0, 0)  # @pinned
    copy(DEVICE, PAGEABLE, 4, 20, 3000000, 1, 0)  # @blocking
    for _ in range(3):
        copy(DEVICE, DEVICE, 8, 30, 0, 0, 0)  # @device
    copy(DEVICE, DEVICE, 16, 40, 0, 0, 1)  # @peer
    copy(MANAGED, DEVICE, 32, 50, 0, 0, 0)  # @managed
    copy(DEVICE, ARRAY, 64, 60, 0, 0, 0)  # @array
    memset(512, 70, 0)  # @first_set
    memset(1024, 80, 0)  # @second_set


def peers():
    for further in (1, 2, 2):
        copy(DEVICE, DEVICE, 100 * further, 10 * further, 0, 0, further)  # @peers


def waits():
    wait(STREAM, 2000000)  # @stream
    wait(CONTEXT, 3000000)  # @context
    wait(EVENT, 1000000)  # @event
    stream_wait_event(1)  # @no_wait


def dependencies():
    """Stream 1 waits for stream 0, whose event is then recorded again; the host for each, then for all."""
    launch(b"first", 1000, 0, 0)
    event_record(1, 0)
    stream_waits(1, 1)
    launch(b"second", 1000, 1, 0)
    event_record(1, 1)
    launch(b"third", 1000, 0, 0)
    event_wait(1, 1000)
    stream_wait(0, 1000)
    wait(CONTEXT, 1000)
    stream_waits(0, 99)  # which nobody recorded


def memory():
    launch(b"a", 1000, 0, 0)
    first = alloc(1000, -1)  # @alloc
    free(first, -1)  # @free
    for _ in range(2):
        alloc(4096, -1)  # @kept
    free(alloc(300, 0), 0)  # @stream_ordered
    free(12345, -1)  # @stranger


def streams():
    """Device 0: stream 0 works in [0, 1000) and [1500, 2500), stream 1 in [0, 600) and [600, 1200),
    stream 3 sets in [0, 400). Device 1: streams 0 and 2 in [0, 300) and [0, 500)."""
    launch(b"a", 1000, 0, 0)  # @first
    gap(0, 0, 500)
    launch(b"a", 1000, 0, 0)  # @second
    for _ in range(2):
        launch(b"b", 600, 1, 0)  # @other
    memset(512, 400, 3)  # @set
    launch(b"c", 300, 0, 1)  # @second_device
    launch(b"c", 500, 2, 1)  # @second_device_again


def short_loop():
    """A loop that is over before anyone looks: NUMBER rounds of six kernels."""
    for i in range(20):
        launch(b"try%d" % i, 500000, 0, 0)  # @tries
    wait(STREAM, 1000)
    for _ in range(number):
        for name in (b"a", b"b", b"c", b"d", b"e", b"f"):
            launch(name, 20000, 0, 0)  # @rounds
        wait(STREAM, 1000)  # @waits


def shapes():
    for _ in range(3):  # four blocks fit by their registers: 32 of 64 warps
        kernel(b"_Z5shapePf", 1000, 80, 256, 64, 16384, 4096)  # @shape
    for _ in range(2):
        kernel(b"_Z5shapePf", 500, 20, 128, 32, 0, 0)  # @shape_small
    for block in (32, 64, 32):
        kernel(b"two", 10, 1, block, 16, 0, 0)  # @two


def loop():
    for _ in range(number):
        launch(b"loop", 10, 0, 0)  # @loop


def threads():
    workers = [threading.Thread(target=loop) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def graph():
    capture_begin(0)
    for _ in range(5):
        launch(b"node", 100, 0, 0)  # @capture
    made = capture_end(0)
    for _ in range(3):
        graph_launch(made, 0)  # @replay


def fork():
    launch(b"parent", 10, 0, 0)  # @before
    child = os.fork()
    if not child:
        launch(b"child", 20, 0, 0)
        os._exit(0)
    os.waitpid(child, 0)
    launch(b"parent", 10, 0, 0)  # @after


def pieces():
    """Records parts of its GPU work. A launch before a pause keeps its record, one in it has none."""
    import plumb
    for _ in range(10):
        launch(b"first", 100, 0, 0)  # @recorded
    plumb.stop()
    for _ in range(number):
        launch(b"paused", 200, 0, 0)
    wait(STREAM, 1000)
    time.sleep(0.4)
    print("kinds", mock_get(b"enabled"))
    plumb.start()
    print("kinds", mock_get(b"enabled"))
    for _ in range(30):
        launch(b"second", 300, 0, 0)  # @again
    plumb.stop()
    launch(b"paused", 200, 0, 0)


def paced():
    """Launches at an even pace for NUMBER seconds; says how often."""
    end = time.monotonic() + number
    count = 0
    while time.monotonic() < end:
        launch(b"paced", 1000, 0, 0)
        count += 1
        time.sleep(0.002)
    print("launched", count)


def share():
    """Two children use the one device, at the same time; their parent does not."""
    children = []
    for rank in range(2):
        child = os.fork()
        if not child:
            os.environ["RANK"] = str(rank)
            for _ in range(4):
                launch(b"shared", 250000000, 0, 0)
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)


def nccl():
    launch(b"_Z40ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE", 7, 0, 0)
    launch(b"_Z40ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE", 7, 0, 0)
    launch(b"ncclSymkDevKernel_AllGather_LL", 11, 0, 0)
    launch(b"_Z9ncclThingv", 13, 0, 0)


def stay():
    loop()
    print("ready", flush=True)
    time.sleep(60)


def stay_delivered():
    """Says that it is ready only when all records have been handed over."""
    loop()
    while mock_get(b"delivered") < number:
        time.sleep(0.01)
    time.sleep(0.3)  # the profiler reads what was handed over
    print("ready", flush=True)
    time.sleep(60)


globals()[sys.argv[1]]()
