# SPDX-License-Identifier: Apache-2.0
"""The same functions called from several lines, so that their frames come back at the same addresses."""
from launcher import launch


def inner():
    launch(b"k", 1000, 0, 0)  # @inner


def outer():
    inner()  # @outer


def other():
    outer()  # @other_first
    inner()  # @other_inner
    outer()  # @other_second


for _ in range(50):
    outer()
    outer()
    other()
