# SPDX-License-Identifier: Apache-2.0
# Operators whose backward pass takes more than five times their forward pass on the GPU.
total = profile.root.inclusive["gpu.time"].sum
for node in profile.operators:
    backward = sum(root.inclusive["gpu.time"].sum for root in node.backward)
    forward = node.inclusive["gpu.time"].sum - backward
    if not node.is_backward and backward >= max(5 * forward, 0.01 * total) > 0 < forward:
        flag(node, f"backward takes {backward / forward:.1f} times forward")
