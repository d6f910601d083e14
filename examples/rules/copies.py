# SPDX-License-Identifier: Apache-2.0
# Copies from pageable memory that hold the host up for a hundredth of the device's span.
span = sum(device.last_ns - device.first_ns for device in profile.devices)
for node in profile.of_kind("copy"):
    wait = node.inclusive["host.wait"].sum
    if node.name.startswith("copy pageable") and wait >= 0.01 * span > 0:
        flag(node, "pin this memory and copy with non_blocking=True", saving_ns=wait)
