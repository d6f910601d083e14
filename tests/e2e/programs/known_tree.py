# SPDX-License-Identifier: Apache-2.0
"""A program whose calling context tree is known: one function for each case, marked lines.

It prints nothing and fails when PyTorch does not behave as the test takes it to.
"""
import asyncio
import importlib
import os
import pathlib
import sys
import tempfile
import threading

import torch
from torch.autograd.profiler import record_function
from torch.utils._python_dispatch import TorchDispatchMode

DEEP = 10000
x = torch.ones(4)


def inner():
    torch.neg(x)  # @inner


def middle(times):
    for _ in range(times):
        inner()  # @middle_loop
    inner()  # @middle_after


def nested():
    middle(3)  # @nested_first
    middle(0)  # @nested_second
    torch.exp(torch.neg(x))  # @nested_own


def loops():
    for i in range(4):
        torch.neg(x)  # @loop_first
        for _ in range(i):
            torch.exp(x)  # @loop_second
            torch.neg(x)  # @loop_third
    while i:
        i -= 1
        torch.sin(x) if i % 2 else torch.cos(x)  # @loop_while
    [torch.tanh(x) for _ in range(2)]  # @loop_comprehension


def recurse(depth):
    if depth == 1:
        return torch.neg(x)  # @recurse_bottom
    return recurse(depth - 1)  # @recurse_call


def deep():
    recurse(DEEP)  # @deep


def hop(depth):
    torch.exp(x)  # @hop_before
    if depth:
        hop(depth - 1)  # @hop_call
    torch.neg(x)  # @hop_after


def in_and_out():
    hop(3)  # @in_and_out


def worker(times):
    for _ in range(times):
        torch.neg(x)  # @worker


def workers():
    threads = [threading.Thread(target=worker, args=(times,)) for times in (2, 3, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for times in (7, 11):  # one after the other: these may take over what an ended one left
        thread = threading.Thread(target=worker, args=(times,))
        thread.start()
        thread.join()


def errors():
    matrix = torch.ones(2, 3)
    for _ in range(3):
        try:
            torch.matmul(matrix, matrix)  # @errors_fail
        except RuntimeError:
            torch.neg(x)  # @errors_handler
        torch.exp(x)  # @errors_after


def broken():
    torch.neg(x)  # @broken_first
    torch.cat([x, torch.ones(2, 2)])  # @broken_second


def outer_handler():
    for _ in range(2):
        try:
            broken()  # @outer_handler_call
        except RuntimeError:
            pass
    torch.exp(x)  # @outer_handler_after


class Fails(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        torch.neg(value)  # @fails_forward
        raise ValueError("as asked")

    @staticmethod
    def backward(ctx, grad):
        return grad


def error_inside():
    """Python raises inside an operator; what comes after stands where it should."""
    for _ in range(2):
        try:
            Fails.apply(x)  # @error_inside_call
        except ValueError:
            torch.exp(x)  # @error_inside_handler
    torch.sin(x)  # @error_inside_after


def produce(times):
    for _ in range(times):
        yield torch.neg(x)  # @produce
    torch.exp(x)  # @produce_last


def generators():
    for _ in produce(3):  # @generators_for
        torch.sin(x)  # @generators_body
    first, second = produce(2), produce(2)
    next(first)  # @generators_next_first
    next(second)  # @generators_next_second
    sum(1 for _ in (torch.cos(x) for _ in range(2)))  # @generators_expression


async def coroutine(times):
    for _ in range(times):
        torch.neg(x)  # @coroutine
        await asyncio.sleep(0)


async def both():
    await coroutine(1)  # @both_await
    await asyncio.gather(coroutine(2), coroutine(3))
    torch.exp(x)  # @both_after


def coroutines():
    asyncio.run(both())  # @coroutines


def lambdas():
    first, second = (lambda: torch.neg(x)), (lambda: torch.exp(x))  # @lambdas_pair
    third = lambda: torch.neg(x)  # noqa: E731  # @lambdas_third
    for _ in range(2):
        first(), second()  # @lambdas_call_pair
    third()  # @lambdas_call_third


def reloaded():
    """The module's function moves down three lines and is loaded again."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "moving.py")
        source = "import torch\ndef move(x):\n    return torch.neg(x)\n"
        path.write_text(source)
        sys.path.insert(0, folder)
        import moving
        moving.move(x)  # @reloaded_first
        old = moving.move
        for lines in (3, 8):
            path.write_text("\n" * lines + source)
            os.utime(path, (lines, lines))
            importlib.reload(moving)
            moving.move(x)  # @reloaded_again
        old(x)  # @reloaded_old
        sys.path.remove(folder)


def made():
    """Code objects that are made and freed in the same places, so that addresses come back."""
    for number in range(20):
        exec(compile("\n" * number + "torch.neg(x)", "made_lines", "exec"))  # @made_lines
    for number in range(20):
        exec(compile("torch.neg(x)", f"made_file_{number:02}", "exec"))  # @made_files
    for number in range(20):
        names = {"torch": torch, "x": x}
        exec(f"def made_name_{number:02}():\n    torch.neg(x)", names)
        names.pop(f"made_name_{number:02}")()  # @made_names


def step_inside():
    torch.neg(x)  # @step_inside


def ranges():
    for _ in range(2):
        with record_function("outer"):  # @ranges_outer
            torch.exp(x)  # @ranges_first
            step_inside()  # @ranges_call
            with record_function("inner"):  # @ranges_inner
                step_inside()  # @ranges_call_inner
                torch.sin(x)  # @ranges_second
            torch.cos(x)  # @ranges_third
        torch.neg(x)  # @ranges_after
    with record_function("empty"):  # @ranges_empty
        pass
    torch.tanh(x)  # @ranges_end


@record_function("decorated")
def decorated():
    torch.neg(x)  # @decorated


def ranges_elsewhere():
    decorated()  # @elsewhere_decorated
    span = open_range()  # @elsewhere_open
    torch.exp(x)  # @elsewhere_inside
    step_inside()  # @elsewhere_call
    span.__exit__(None, None, None)
    torch.sin(x)  # @elsewhere_after


def open_range():
    span = record_function("open")
    torch.cos(x)  # @open_before
    span.__enter__()  # @open_enter
    torch.neg(x)  # @open_after
    return span


def range_with_error():
    try:
        with record_function("failing"):  # @range_error
            torch.neg(x)  # @range_error_inside
            raise KeyError
    except KeyError:
        torch.exp(x)  # @range_error_after


def quiet():
    weight = torch.ones(4, requires_grad=True)
    with torch.no_grad():
        torch.neg(weight)  # @quiet_no_grad
    with torch.inference_mode():
        torch.exp(weight)  # @quiet_inference
    torch.sin(weight)  # @quiet_grad


class Twice(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        torch.exp(x)  # @dispatch_extra
        return func(*args, **(kwargs or {}))  # @dispatch_call


class Named(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        torch.cos(x)  # @function_extra
        return super().__torch_function__(func, types, args, kwargs or {})  # @function_call


def overridden():
    with Twice():
        torch.neg(x)  # @overridden_mode
    named = x.as_subclass(Named)
    torch.sin(named)  # @overridden_class


torch._C._jit_set_texpr_fuser_enabled(False)  # which some builds have for CPUs, too


@torch.jit.script
def scripted(value: torch.Tensor):
    for _ in range(3):
        value = torch.tanh(value)
    return value


def scripts():
    for _ in range(4):
        scripted(x)  # @scripts


def main():
    nested()
    loops()
    in_and_out()
    workers()
    errors()
    outer_handler()
    error_inside()
    generators()
    coroutines()
    lambdas()
    reloaded()
    made()
    ranges()
    ranges_elsewhere()
    range_with_error()
    quiet()
    overridden()
    scripts()
    sys.setrecursionlimit(DEEP + 1000)
    threading.stack_size(512 << 20)
    thread = threading.Thread(target=deep)
    thread.start()
    thread.join()


main()
