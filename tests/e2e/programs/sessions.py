# SPDX-License-Identifier: Apache-2.0
"""Parts of this process that plumb.profile() records, though `plumb run` did not start it: sessions.py SECTION.
Each prints what it knows of itself as one JSON object."""
import json
import os
import signal
import subprocess
import sys
import threading
import time
import warnings

import plumb


def count(profile, name):
    return sum(node.exclusive["op.calls"].sum for node in profile.operators if node.name == name)


def spans():
    """Three recordings, one after the other. What happens between them is in none of them."""
    @plumb.span("decorated")
    def decorated():
        pass

    kept, seen = plumb.span("kept"), []
    for number in range(1, 4):
        with plumb.profile(f"spans-{number}.plumb", quiet=True) as recording:
            assert plumb.recording()
            for _ in range(number):
                with plumb.span("step"):  # @step
                    plumb.metric("tokens", 10)
                    plumb.mark("here")
                decorated()
                with kept:
                    pass
        assert not plumb.recording()
        with plumb.span("between"):
            plumb.metric("tokens", 1000)
        profile = recording.result()
        tokens = sum(node.exclusive["tokens"].sum for node in profile.walk() if "tokens" in node.exclusive)
        ranges = {node.name: node.exclusive["op.calls"].sum for node in profile.of_kind("range")
                  if "op.calls" in node.exclusive}
        seen.append([tokens, ranges])
    return seen


def torch_late():
    """PyTorch comes during the first recording; the second finds it there."""
    seen = []
    for number in (7, 9):
        with plumb.profile(f"late-{number}.plumb", quiet=True) as recording:
            import torch
            one = torch.ones(8)
            for _ in range(number):
                one + 1  # @add
        seen.append(count(recording.result(), "aten::add"))
        one * 2
    return seen


def threads():
    """Operators on four other threads, all the time, while recordings come and go."""
    import torch
    stop, small = [], torch.ones(8)

    def compute():
        other = torch.ones(16)
        while not stop:
            other * 2
    running = [threading.Thread(target=compute) for _ in range(4)]
    for thread in running:
        thread.start()
    seen = []
    for number in range(12):
        with plumb.profile(f"threads-{number}.plumb", quiet=True, shapes=number % 2 == 0, trace=number % 3 == 0) as recording:
            for _ in range(50):
                small + 1
            time.sleep(0.02)
        profile = recording.result()
        seen.append([count(profile, "aten::add"), count(profile, "aten::mul") > 0])
    stop.append(True)
    for thread in running:
        thread.join()
    return seen


def gpu():
    """The driver is initialised in the first recording; in the others it is up already."""
    import launcher
    seen = []
    for number in range(1, 4):
        with plumb.profile(f"gpu-{number}.plumb", quiet=True) as recording:
            for _ in range(number):
                launcher.launch(b"inside", 1000 * number, 0, 0)
            launcher.copy(launcher.PINNED, launcher.DEVICE, 100, 10, 2000000, 0, 0)
        launcher.launch(b"outside", 77, 0, 0)
        profile = recording.result()
        seen.append([{kernel.name: [kernel.exclusive["gpu.time"].sum, kernel.exclusive["gpu.time"].count]
                      for kernel in profile.kernels}, len(profile.devices),
                     sum(row.count for row in profile.ledger if row.is_drop)])
    return seen


def gpu_up():
    """The driver was initialised before the first recording."""
    import launcher
    launcher.launch(b"before", 55, 0, 0)
    return gpu()


def stalls():
    """A context that was there before, and a module that is loaded in the first recording."""
    import ctypes
    import launcher
    driver = ctypes.CDLL("libcuda.so.1")
    launcher.launch(b"before", 55, 0, 0)
    with open(os.environ["CUBIN"], "rb") as file:
        image = ctypes.create_string_buffer(file.read())
    seen = []
    for number in range(1, 4):
        with plumb.profile(f"stalls-{number}.plumb", quiet=True, stalls=10) as recording:
            if number == 1:
                driver.mock_module_load(image, ctypes.c_size_t(len(image) - 1))
                driver.mock_stall(b"gather", ctypes.c_uint64(192), b"wait", ctypes.c_uint32(10), ctypes.c_uint32(4))
            for _ in range(number):
                launcher.launch(b"gather", 1000, 0, 0)
        launcher.launch(b"gather", 77, 0, 0)
        found = {row.fate: row.count for row in recording.result().ledger if row.source == "gpu.stall"}
        seen.append([found.get(fate) for fate in ("received", "attributed", "unknown_module")])
    return [*seen, launcher.mock_get(b"pc_enabled"), launcher.mock_get(b"pc_period")]


def gpu_modes():
    """Whether GPU work is recorded, in each form that the argument takes."""
    import launcher
    seen = []
    for mode in (False, "off", "activity", True):
        with plumb.profile(f"mode-{mode}.plumb", quiet=True, gpu=mode) as recording:
            with plumb.span("work"):
                launcher.launch(b"inside", 1000, 0, 0)
        seen.append([mode, len(recording.result().kernels)])
    return seen


def children():
    """A program that is started during the recording is recorded, too; one that is started later is not."""
    code = "import plumb\nwith plumb.span('child'): pass"
    with plumb.profile("children.plumb", quiet=True) as recording:
        subprocess.run([sys.executable, "-c", code], check=True)
        with plumb.span("parent"):
            pass
    left = sorted(name for name in os.environ if name.startswith("PLUMB_") and name != "PLUMB_BINARY"), os.environ.get("LD_PRELOAD")
    subprocess.run([sys.executable, "-c", code], check=True)
    profile = recording.result()
    return [sorted(node.name for node in profile.of_kind("range")), len(profile.processes), *left]


def errors():
    """Every wrong use is one exception, after which recordings work."""
    said = []
    for path, options in (("nowhere/x.plumb", {}), ("x.plumb", {"cpu": True}), ("x.plumb", {"bogus": 1}),
                          ("x.plumb", {"limit": "much"})):
        try:
            with plumb.profile(path, **options):
                said.append("recorded")
        except plumb.SessionError as error:
            said.append(str(error))
    with plumb.profile("outer.plumb", quiet=True) as outer:
        with plumb.span("outer"):
            try:
                with plumb.profile("inner.plumb"):
                    said.append("recorded")
            except plumb.SessionError as error:
                said.append(str(error))
    try:
        with plumb.profile("raised.plumb", quiet=True) as raised:
            with plumb.span("raises"):
                raise KeyError("mine")
    except KeyError:
        pass
    return [said, outer.path, raised.path]


def nothing():
    with plumb.profile("nothing.plumb") as recording:
        pass
    try:
        recording.result()
    except plumb.SessionError as error:
        return [recording.path, str(error), sorted(os.listdir())]


def killed():
    with plumb.profile("killed.plumb"):
        with plumb.span("before the end"):
            pass
        os.kill(os.getpid(), signal.SIGKILL)


def under_run():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with plumb.profile("own.plumb") as recording:
            with plumb.span("inside"):
                pass
    return [recording.path, [str(one.message) for one in caught]]


def magic():
    from IPython.core.interactiveshell import InteractiveShell
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "plumb")
    shell.run_cell("%%plumb -o cell.plumb --mode=full\nimport plumb\nfor _ in range(3):\n    with plumb.span('cell'): pass")
    first = shell.user_ns["_plumb"]
    shell.run_cell("%plumb exec('with plumb.span(str(1)): pass')")
    shell.run_cell("%%plumb bogus\n1")
    return [first.path, [node.name for node in first.result().of_kind("range")],
            os.path.basename(shell.user_ns["_plumb"].path) != first.path]


print(json.dumps(globals()[sys.argv[1]]()))
