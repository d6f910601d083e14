# SPDX-License-Identifier: Apache-2.0
# Functions under which the GPU runs many short kernels.
total = profile.root.inclusive["gpu.time"].sum
for node in profile.of_kind("python"):
    time = node.inclusive["gpu.time"]
    if time.count >= 100 and time.mean < 10_000 and time.sum >= 0.1 * total:
        flag(node, f"fuse: {time.count} kernels of {time.mean:.0f} ns", saving_ns=time.sum)
