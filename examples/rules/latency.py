# SPDX-License-Identifier: Apache-2.0
# Functions that keep the CPU busy far longer than the GPU, for a tenth of the device's span.
span = sum(device.last_ns - device.first_ns for device in profile.devices)
for node in profile.of_kind("python"):
    cpu, gpu = node.inclusive["op.time"].sum, node.inclusive["gpu.time"].sum
    if cpu >= max(0.1 * span, 5 * gpu) > 0:
        flag(node, f"{cpu / 1e6:.0f} ms on the CPU, {gpu / 1e6:.0f} ms on the GPU")
