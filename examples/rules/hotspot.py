# SPDX-License-Identifier: Apache-2.0
# Kernels that take at least a tenth of the GPU time.
total = profile.root.inclusive["gpu.time"].sum
for node in profile.kernels:
    time = node.exclusive["gpu.time"].sum
    if time >= 0.1 * total:
        flag(node, f"hotspot: {time / total:.0%} of the GPU time")
