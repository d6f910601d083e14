# SPDX-License-Identifier: Apache-2.0
"""A program with a known structure gives exactly the known tree: names, lines, counts."""
import collections

import pytest
from plumbtest import check_sums, recorded

DEEP = 10000


@pytest.fixture(scope="module")
def made(torch_python, tmp_path_factory):
    return recorded(torch_python, "known_tree.py", tmp_path_factory)


def check(made, inside, expected, files=None):
    assert made.tree(inside, files) == made.expand(expected)


def test_nested_functions(made):
    check(made, "nested", {
        "nested:@nested_first > middle:@middle_loop > inner:@inner > aten::neg": 3,
        "nested:@nested_first > middle:@middle_after > inner:@inner > aten::neg": 1,
        "nested:@nested_second > middle:@middle_after > inner:@inner > aten::neg": 1,
        "nested:@nested_own > aten::neg": 1,
        "nested:@nested_own > aten::exp": 1,
    })


def test_loops(made):
    tree = made.tree("loops")
    # A comprehension is a function of its own before Python 3.12.
    tree = {path.replace(made.expand("<listcomp>:@loop_comprehension > "), ""): count
            for path, count in tree.items()}
    assert tree == made.expand({
        "loops:@loop_first > aten::neg": 4,
        "loops:@loop_second > aten::exp": 6,
        "loops:@loop_third > aten::neg": 6,
        "loops:@loop_while > aten::sin": 1,
        "loops:@loop_while > aten::cos": 2,
        "loops:@loop_comprehension > aten::tanh": 2,
    })


def test_recursion_deeper_than_any_stack(made):
    tree = made.tree("deep")
    (path, count), = tree.items()
    steps = collections.Counter(path.split(" > "))
    assert count == 1
    assert steps == collections.Counter(made.expand({
        "deep:@deep": 1,
        "recurse:@recurse_call": DEEP - 1,
        "recurse:@recurse_bottom": 1,
        "aten::neg": 1,
    }))
    assert made.reasons("python") == {}
    assert not any(node.is_truncated for node in made.profile.children)


def test_recursion_in_and_out(made):
    """Each depth has its own context, on the way in and on the way out."""
    expected = {}
    above = "in_and_out:@in_and_out > "
    for _ in range(4):
        expected[above + "hop:@hop_before > aten::exp"] = 1
        expected[above + "hop:@hop_after > aten::neg"] = 1
        above += "hop:@hop_call > "
    check(made, "in_and_out", expected)


def test_threads_join_in_one_context(made):
    check(made, "worker", {"worker:@worker > aten::neg": 28})
    assert made.by_track("worker") == {made.expand("worker:@worker > aten::neg"): [2, 3, 5, 7, 11]}


def test_exceptions_through_operators(made):
    tree = made.tree("errors")
    assert {path: count for path, count in tree.items() if "ones" not in path} == made.expand({
        "errors:@errors_fail > aten::matmul": 3,
        "errors:@errors_fail > aten::matmul > aten::mm": 3,
        "errors:@errors_handler > aten::neg": 3,
        "errors:@errors_after > aten::exp": 3,
    })


def test_exceptions_through_functions(made):
    tree = {path: count for path, count in made.tree("outer_handler").items() if "ones" not in path}
    assert tree == made.expand({
        "outer_handler:@outer_handler_call > broken:@broken_first > aten::neg": 2,
        "outer_handler:@outer_handler_call > broken:@broken_second > aten::cat": 2,
        "outer_handler:@outer_handler_after > aten::exp": 1,
    })


def test_exceptions_inside_operators(made):
    check(made, "error_inside", {
        "error_inside:@error_inside_call > Fails": 2,
        "error_inside:@error_inside_call > Fails > forward:@fails_forward > aten::neg": 2,
        "error_inside:@error_inside_handler > aten::exp": 2,
        "error_inside:@error_inside_after > aten::sin": 1,
    })


def test_generators(made):
    check(made, "generators", {
        "generators:@generators_for > produce:@produce > aten::neg": 3,
        "generators:@generators_for > produce:@produce_last > aten::exp": 1,
        "generators:@generators_body > aten::sin": 3,
        "generators:@generators_next_first > produce:@produce > aten::neg": 1,
        "generators:@generators_next_second > produce:@produce > aten::neg": 1,
        "generators:@generators_expression > <genexpr>:@generators_expression > "
        "<genexpr>:@generators_expression > aten::cos": 2,
    })


def test_coroutines(made):
    """A coroutine stands below what awaits it, and below the loop's caller when a task runs it."""
    check(made, "coroutines", {
        "coroutines:@coroutines > both:@both_await > coroutine:@coroutine > aten::neg": 1,
        "coroutines:@coroutines > coroutine:@coroutine > aten::neg": 5,
        "coroutines:@coroutines > both:@both_after > aten::exp": 1,
    })


def test_lambdas(made):
    check(made, "lambdas", {
        "lambdas:@lambdas_call_pair > <lambda>:@lambdas_pair > aten::neg": 2,
        "lambdas:@lambdas_call_pair > <lambda>:@lambdas_pair > aten::exp": 2,
        "lambdas:@lambdas_call_third > <lambda>:@lambdas_third > aten::neg": 1,
    })


def test_reloaded_module(made):
    check(made, "reloaded", {
        "reloaded:@reloaded_first > move:3 > aten::neg": 1,
        "reloaded:@reloaded_again > move:6 > aten::neg": 1,
        "reloaded:@reloaded_again > move:11 > aten::neg": 1,
        "reloaded:@reloaded_old > move:3 > aten::neg": 1,
    }, {"known_tree.py", "moving.py"})


def test_code_made_at_run_time(made):
    def mine(name):
        return name in ("known_tree.py", "<string>") or name.startswith("made_")

    expected = {}
    for number in range(20):
        expected[f"made:@made_lines > <module>:{number + 1} > aten::neg"] = 1
        expected[f"made:@made_names > made_name_{number:02}:2 > aten::neg"] = 1
    expected["made:@made_files > <module>:1 > aten::neg"] = 20
    check(made, "made", expected, mine)
    found = {node.file: made.calls()[node.children[0].id] for node in made.profile.of_kind("python")
             if (node.file or "").startswith("made_file_")}
    assert found == {f"made_file_{number:02}": 1 for number in range(20)}


def ranges_only(made, inside):
    """The tree without what PyTorch does to make a range, which differs."""
    found = collections.Counter()
    for path, count in made.tree(inside).items():
        if not path.endswith(("aten::zeros", "aten::empty", "aten::zero_")):
            found[path] += count
    return dict(found)


def test_ranges(made):
    outer = 'ranges:@ranges_outer > "outer"'
    inner = outer + ' > ranges:@ranges_inner > "inner"'
    assert ranges_only(made, "ranges") == made.expand({
        outer: 2,
        outer + " > ranges:@ranges_first > aten::exp": 2,
        outer + " > ranges:@ranges_call > step_inside:@step_inside > aten::neg": 2,
        inner: 2,
        inner + " > ranges:@ranges_call_inner > step_inside:@step_inside > aten::neg": 2,
        inner + " > ranges:@ranges_second > aten::sin": 2,
        outer + " > ranges:@ranges_third > aten::cos": 2,
        "ranges:@ranges_after > aten::neg": 2,
        'ranges:@ranges_empty > "empty"': 1,
        "ranges:@ranges_end > aten::tanh": 1,
    })


def test_ranges_that_outlive_a_function(made):
    """A range stands under the innermost frame that was there when it began and still is."""
    span = 'ranges_elsewhere:@elsewhere_open > open_range:@open_enter > "open"'
    assert ranges_only(made, "ranges_elsewhere") == made.expand({
        'ranges_elsewhere:@elsewhere_decorated > "decorated"': 1,
        'ranges_elsewhere:@elsewhere_decorated > "decorated" > decorated:@decorated > aten::neg': 1,
        "ranges_elsewhere:@elsewhere_open > open_range:@open_before > aten::cos": 1,
        span: 1,
        span + " > open_range:@open_after > aten::neg": 1,
        span + " > ranges_elsewhere:@elsewhere_inside > aten::exp": 1,
        span + " > ranges_elsewhere:@elsewhere_call > step_inside:@step_inside > aten::neg": 1,
        "ranges_elsewhere:@elsewhere_after > aten::sin": 1,
    })


def test_range_left_by_an_exception(made):
    span = 'range_with_error:@range_error > "failing"'
    assert ranges_only(made, "range_with_error") == made.expand({
        span: 1,
        span + " > range_with_error:@range_error_inside > aten::neg": 1,
        "range_with_error:@range_error_after > aten::exp": 1,
    })


def test_code_without_gradients(made):
    tree = {path: count for path, count in made.tree("quiet").items() if "ones" not in path}
    assert tree == made.expand({
        "quiet:@quiet_no_grad > aten::neg": 1,
        "quiet:@quiet_inference > aten::exp": 1,
        "quiet:@quiet_grad > aten::sin": 1,
    })


def test_python_inside_operators(made):
    """A dispatch mode's Python runs inside the operator, a subclass's before it."""
    tree = {path.replace(" > PythonDispatchMode", ""): count
            for path, count in made.tree("overridden").items()
            if not path.endswith(("PythonDispatchMode", "alias"))}
    mode = "overridden:@overridden_mode > aten::neg"
    assert tree == made.expand({
        mode: 1,
        mode + " > __torch_dispatch__:@dispatch_extra > aten::exp": 1,
        mode + " > __torch_dispatch__:@dispatch_call > aten::neg": 1,
        "overridden:@overridden_class > __torch_function__:@function_extra > aten::cos": 1,
        "overridden:@overridden_class > __torch_function__:@function_call > aten::sin": 1,
    })


def test_scripts(made):
    tree = made.tree("scripts")
    assert tree[made.expand("scripts:@scripts > scripted")] == 4
    assert tree[made.expand("scripts:@scripts > scripted > aten::tanh")] == 12


def test_ranges_are_of_their_own_kind(made):
    assert {node.name for node in made.profile.of_kind("range")} == {
        "outer", "inner", "empty", "decorated", "open", "failing"}


def test_the_ledger_adds_up(made):
    check_sums(made)
    assert made.reasons("operator") == {}
    assert made.reasons("python") == {}


def test_overhead_is_measured(made):
    run = made.profile.run
    assert 0 < run.overhead_ns < run.wall_ns
    assert all(track.overhead_ns > 0 for track in made.profile.tracks if track.kind == "thread")
