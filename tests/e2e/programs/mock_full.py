# SPDX-License-Identifier: Apache-2.0
"""3000 launches on the stand-in driver, each from a function of its own."""
from launcher import launch

for number in range(3000):
    space = {"launch": launch}
    exec(f"def f{number}():\n    launch(b'k', 10, 0, 0)\nf{number}()\n", space)
