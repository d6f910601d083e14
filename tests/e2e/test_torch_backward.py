# SPDX-License-Identifier: Apache-2.0
"""Every backward operator lies under the forward operator that caused it, or is counted as gradient
accumulation under the line that called backward."""
import collections
import re

import pytest
from plumbtest import check_sums, recorded

from plumb.reading import ACCUMULATION, BACKWARD

ENGINE = "autograd::engine::evaluate_function: "


@pytest.fixture(scope="module")
def made(torch_python, tmp_path_factory):
    return recorded(torch_python, "backward.py", tmp_path_factory)


def backward(made, inside):
    """made.tree() of the backward records alone. The engine's own frame around each, which is
    checked for itself below, is left out, and so is "torch::autograd::"."""
    found = {}
    for path, calls in made.tree(inside).items():
        steps = [step.replace("torch::autograd::", "") for step in path.split(" > ")
                 if not step.startswith(ENGINE)]
        if path.split(" > ")[-1].startswith(ENGINE) or not is_backward(steps[-1]):
            continue
        path = " > ".join(steps)
        assert path not in found
        found[path] = calls
    return found


def is_backward(step):
    return step.endswith((" (backward)", " (accumulation)"))


def check(made, inside, expected):
    assert backward(made, inside) == made.expand(expected)


def test_plain(made):
    check(made, "plain", {
        "plain:@plain_mul > aten::mul > MulBackward0 (backward)": 3,
        "plain:@plain_sin > aten::sin > SinBackward0 (backward)": 3,
        "plain:@plain_sum > aten::sum > SumBackward0 (backward)": 3,
        "plain:@plain_backward > AccumulateGrad (accumulation)": 3,
    })


def test_tied_weights(made):
    check(made, "tied", {
        "tied:@tied_first > aten::mm > MmBackward0 (backward)": 1,
        "tied:@tied_second > aten::mm > MmBackward0 (backward)": 1,
        "tied:@tied_backward > aten::sum > SumBackward0 (backward)": 1,
        "tied:@tied_backward > AccumulateGrad (accumulation)": 1,
    })


def test_tied_modules(made):
    tree = backward(made, "tied_modules")
    assert tree.pop(made.expand("tied_modules:@tied_embedding > aten::embedding > "
                                "EmbeddingBackward0 (backward)")) == 2
    assert tree.pop(made.expand("tied_modules:@tied_modules_backward > AccumulateGrad "
                                "(accumulation)")) == 2
    head = made.expand("tied_modules:@tied_head > aten::linear > ")
    assert any(path.startswith(head) and "MmBackward0" in path for path in tree)
    assert all(calls == 2 for calls in tree.values())


def test_reentrant_checkpoint(made):
    """What is computed again, and its own backward, lie under the checkpoint's backward."""
    again = ("reentrant:@reentrant_call > CheckpointFunction > "
             "CheckpointFunctionBackward (backward)")
    check(made, "reentrant", {
        again: 1,
        again + " > block:@block_mul > aten::mul > MulBackward0 (backward)": 1,
        again + " > block:@block_sin > aten::sin > SinBackward0 (backward)": 1,
        again + " > AccumulateGrad (accumulation)": 2,
        "reentrant:@reentrant_backward > AccumulateGrad (accumulation)": 2,
        "reentrant:@reentrant_backward > aten::sum > SumBackward0 (backward)": 1,
    })
    forward = made.tree("reentrant")
    assert forward[made.expand("reentrant:@reentrant_call > CheckpointFunction > "
                               "block:@block_mul > aten::mul")] == 1


def test_checkpoint_without_reentry(made):
    """What is computed again lies under the backward operator that needs it."""
    check(made, "non_reentrant", {
        "non_reentrant:@non_reentrant_call > block:@block_mul > aten::mul > "
        "MulBackward0 (backward)": 1,
        "non_reentrant:@non_reentrant_call > block:@block_sin > aten::sin > "
        "SinBackward0 (backward)": 1,
        "non_reentrant:@non_reentrant_backward > AccumulateGrad (accumulation)": 2,
        "non_reentrant:@non_reentrant_backward > aten::sum > SumBackward0 (backward)": 1,
    })
    sin = ("non_reentrant:@non_reentrant_call > block:@block_sin > aten::sin > "
           f"{ENGINE}SinBackward0 (backward) > SinBackward0 (backward)")
    assert made.tree("non_reentrant")[made.expand(sin + " > block:@block_mul > aten::mul")] == 1


def test_double_backward(made):
    """The second pass lies under the operators of the first that made its graph."""
    first = "double:@double_sin > aten::sin > SinBackward0 (backward)"
    check(made, "double", {
        first: 1,
        first + " > aten::mul > MulBackward0 (backward)": 1,
        first + " > aten::cos > CosBackward0 (backward)": 1,
        "double:@double_first > aten::sum > SumBackward0 (backward)": 1,
        "double:@double_second > aten::sum > SumBackward0 (backward)": 1,
        "double:@double_second > AccumulateGrad (accumulation)": 1,
    })
    node, = [node for node in made.profile.operators if node.name == "CosBackward0"
             and made.steps(node, "double")]
    assert node.is_backward and not node.is_accumulation
    assert (node.forward.name, made.steps(node.forward)[-1]) == ("aten::sin", "aten::sin")
    assert {below.name for below in node.forward.backward} == {ENGINE + "SinBackward0"}


def test_tensor_hooks(made):
    """Hooks belong to the line that called backward; their own lines are there."""
    check(made, "tensor_hooks", {
        "tensor_hooks:@hooks_mul > aten::mul > MulBackward0 (backward)": 1,
        "tensor_hooks:@hooks_sin > aten::sin > SinBackward0 (backward)": 1,
        "tensor_hooks:@hooks_backward > aten::sum > SumBackward0 (backward)": 1,
        "tensor_hooks:@hooks_backward > AccumulateGrad (accumulation)": 1,
    })
    hooks = {path: calls for path, calls in made.tree("tensor_hooks").items() if "<lambda>" in path}
    found = collections.Counter()
    for path, calls in hooks.items():
        steps = path.split(" > ")
        assert steps[0] == made.expand("tensor_hooks:@hooks_backward")
        assert steps[1].endswith(" (accumulation)")
        hook = steps[[step[:8] for step in steps].index("<lambda>"):]
        if len(hook) == 2:
            found[" > ".join(hook)] += calls
    assert found == made.expand({
        "<lambda>:@leaf_hook > aten::neg": 1,
        "<lambda>:@inner_hook > aten::abs": 1,
    })


def test_module_hooks(made):
    tree = made.tree("module_hooks")
    assert tree[made.expand("module_hooks:@module_call > <lambda>:@forward_hook > aten::neg")] == 1
    assert backward(made, "module_hooks")[made.expand(
        "module_hooks:@module_call > <lambda>:@forward_hook > aten::neg > "
        "NegBackward0 (backward)")] == 1
    hook, = [path for path in tree if re.search(r"<lambda>:\d+ > aten::abs$", path)
             and made.expand("<lambda>:@backward_hook") in path]
    assert " (backward) > " in hook and hook.startswith(made.expand("module_hooks:@module_call > "))


def test_retained_graph(made):
    check(made, "retained", {
        "retained:@retained_exp > aten::exp > ExpBackward0 (backward)": 3,
        "retained:@retained_exp > aten::sum > SumBackward0 (backward)": 3,
        "retained:@retained_first > AccumulateGrad (accumulation)": 1,
        "retained:@retained_second > AccumulateGrad (accumulation)": 1,
        "retained:@retained_third > AccumulateGrad (accumulation)": 1,
    })


def test_gradient_of_outputs(made):
    check(made, "grad_outputs", {
        "grad_outputs:@outputs_tanh > aten::tanh > TanhBackward0 (backward)": 1,
    })


def test_several_losses(made):
    check(made, "losses", {
        "losses:@losses_shared > aten::exp > ExpBackward0 (backward)": 2,
        "losses:@losses_first > aten::sin > SinBackward0 (backward)": 1,
        "losses:@losses_first > aten::sum > SumBackward0 (backward)": 1,
        "losses:@losses_second > aten::cos > CosBackward0 (backward)": 1,
        "losses:@losses_second > aten::sum > SumBackward0 (backward)": 1,
        "losses:@losses_second_backward > aten::mul > MulBackward0 (backward)": 1,
        "losses:@losses_first_backward > AccumulateGrad (accumulation)": 1,
        "losses:@losses_second_backward > AccumulateGrad (accumulation)": 1,
        "losses:@losses_at_once > aten::exp > ExpBackward0 (backward)": 1,
        "losses:@losses_at_once > aten::tanh > TanhBackward0 (backward)": 1,
        "losses:@losses_at_once > aten::sum > SumBackward0 (backward)": 2,
        "losses:@losses_at_once > GraphRoot (accumulation)": 1,
        "losses:@losses_at_once > AccumulateGrad (accumulation)": 1,
    })


def test_several_roots(made):
    """The root of several losses is no operator's, whatever numbers operators had."""
    check(made, "two_roots", {
        "two_roots:@roots_first > aten::exp > ExpBackward0 (backward)": 1,
        "two_roots:@roots_first > aten::sum > SumBackward0 (backward)": 1,
        "two_roots:@roots_second > aten::tanh > TanhBackward0 (backward)": 1,
        "two_roots:@roots_second > aten::sum > SumBackward0 (backward)": 1,
        "two_roots:@roots_backward > GraphRoot (accumulation)": 1,
        "two_roots:@roots_backward > AccumulateGrad (accumulation)": 1,
    })


def test_in_place_on_views(made):
    tree = backward(made, "in_place")
    slices = [path for path in tree if path.endswith("CopySlices (backward)")]
    assert {path.split(" > ")[0] for path in slices} == {
        made.expand("in_place:@in_place_set"), made.expand("in_place:@in_place_mul")}
    assert any(path.endswith("aten::mul_ > CopySlices (backward)") for path in slices)


def test_backward_on_another_thread(made):
    check(made, "elsewhere", {
        "elsewhere:@elsewhere_forward > aten::exp > ExpBackward0 (backward)": 2,
        "elsewhere:@elsewhere_forward > aten::sum > SumBackward0 (backward)": 2,
    })
    check(made, "call_backward", {
        "call_backward:@elsewhere_backward > AccumulateGrad (accumulation)": 2,
    })


def test_forward_on_threads_that_ended(made):
    check(made, "forward_in_thread", {
        "forward_in_thread:@ended_forward > aten::tanh > TanhBackward0 (backward)": 3,
        "forward_in_thread:@ended_forward > aten::sum > SumBackward0 (backward)": 3,
    })
    check(made, "ended", {"ended:@ended_backward > AccumulateGrad (accumulation)": 3})


def test_two_threads_at_once(made):
    for name, operator in (("train_exp", "exp"), ("train_tanh", "tanh")):
        forward = f"{name}:@{name}_forward > aten::{operator}"
        check(made, name, {
            f"{forward} > {operator.title()}Backward0 (backward)": 50,
            f"{name}:@{name}_forward > aten::sum > SumBackward0 (backward)": 50,
            f"{name}:@{name}_backward > AccumulateGrad (accumulation)": 50,
        })


def test_function_written_in_python(made):
    below = "function:@function_apply > Scale > ScaleBackward (backward)"
    check(made, "function", {
        below: 2,
        "function:@function_backward > aten::sum > SumBackward0 (backward)": 2,
        "function:@function_backward > AccumulateGrad (accumulation)": 2,
    })
    tree = made.tree("function")
    assert tree[made.expand("function:@function_apply > Scale > forward:@scale_forward > "
                            "aten::exp")] == 2
    engine = f"function:@function_apply > Scale > {ENGINE}ScaleBackward (backward) > "
    assert tree[made.expand(engine + "ScaleBackward (backward) > backward:@scale_backward > "
                                     "helper:@scale_helper > aten::mul")] == 2


def test_backward_inside_backward(made):
    inside = "inside:@inside_backward > Inner > InnerBackward (backward)"
    check(made, "inside", {
        inside: 1,
        inside + " > backward:@inside_cos > aten::cos > CosBackward0 (backward)": 1,
        "inside:@inside_backward > aten::sum > SumBackward0 (backward)": 1,
        "inside:@inside_backward > AccumulateGrad (accumulation)": 1,
    })


def test_backward_that_fails(made):
    check(made, "broken", {
        "broken:@broken_backward > Raises > RaisesBackward (backward)": 1,
        "broken:@broken_backward > aten::sum > SumBackward0 (backward)": 1,
        "broken:@broken_handler > aten::tanh > TanhBackward0 (backward)": 1,
        "broken:@broken_handler > aten::sum > SumBackward0 (backward)": 1,
        "broken:@broken_handler > AccumulateGrad (accumulation)": 1,
    })


def test_forgotten_forward(made):
    """What plumb no longer knows the forward operator of is counted, and stays with the caller."""
    tree = backward(made, "forgotten")
    assert not any(path.startswith(made.expand("forgotten:@forgotten_forward > ")) for path in tree)
    path, = [path for path in tree if "ExpBackward0" in path]
    assert path.startswith(made.expand("forgotten:@forgotten_backward > "))
    node, = [node for node in made.profile.operators if node.name == "ExpBackward0"
             and made.steps(node, "forgotten")]
    assert node.is_backward and node.forward is None


def test_training(made):
    accumulated = made.expand("training:@training_backward > AccumulateGrad (accumulation)")
    tree = backward(made, "training")
    assert tree.pop(accumulated) == 5 * 6  # six parameters
    assert set(tree.values()) == {5}
    for path in tree:
        assert path.startswith((made.expand("training:@training_forward > "),))
    span = made.expand('training:@training_step > "Optimizer.step#SGD.step"')
    assert made.tree("training")[span] == 5


def test_names_of_forward_and_backward_agree(made):
    """An independent look at every pair: XyzBackward0 lies under aten::xyz…"""
    seen = 0
    for node in made.profile.operators:
        contexts = made.profile._contexts
        match = re.fullmatch(r"(\w+?)Backward\d+", node.name)
        if not match or not contexts[node.id][2] & BACKWARD or node.is_accumulation:
            continue
        above = node.parent
        assert above.name == ENGINE + node.name or above.name == "torch::autograd::CopySlices" or \
            not contexts[above.id][2]
        while contexts[above.id][2]:
            above = above.parent
        forward = above.name.replace("aten::", "").replace("_", "").lower()
        assert forward.startswith(match[1].lower()), (node.path, above.name)
        seen += 1
    assert seen > 40


def test_each_backward_operator_has_one_frame_of_the_engine(made):
    calls = made.calls()
    for node in made.profile.operators:
        if node.name.startswith(ENGINE) and calls.get(node.id):
            inside = [calls[child.id] for child in node.children
                      if child.name == node.name[len(ENGINE):]]
            # A function that autograd.grad() asks the gradient of is captured and not called.
            assert inside in ([calls[node.id]], []) or node.is_accumulation, node.path


CALLERS = {  # function with the forward pass: the lines that called backward over it
    "plain": ["plain:@plain_backward"],
    "tied": ["tied:@tied_backward"],
    "retained": ["retained:@retained_first", "retained:@retained_second",
                 "retained:@retained_third"],
    "grad_outputs": ["grad_outputs:@outputs_grad"],
    "elsewhere": ["call_backward:@elsewhere_backward"],
    "forward_in_thread": ["ended:@ended_backward"],
    "train_exp": ["train_exp:@train_exp_backward"],
    "train_tanh": ["train_tanh:@train_tanh_backward"],
    "function": ["function:@function_backward"],
    "two_roots": ["two_roots:@roots_backward"],
    "training": ["training:@training_backward"],
}


@pytest.mark.parametrize("inside", CALLERS)
def test_who_called_backward(made, inside):
    """Each backward operator knows every line that called backward over it."""
    expected = [made.expand(caller) for caller in CALLERS[inside]]
    seen = 0
    for node in made.profile.operators:
        if node.name.startswith(ENGINE) and made.profile._contexts[node.id][2] == BACKWARD and \
                made.steps(node, inside):
            callers = [made.steps(origin)[-1] for _, origin in node.origins]
            assert sorted(callers) == sorted(expected), node.path
            seen += 1
    assert seen


def test_callers_of_what_losses_share(made):
    callers = {}
    for node in made.profile.operators:
        if node.name.startswith(ENGINE) and made.steps(node, "losses") and node.origins:
            callers[made.steps(node, "losses")[0], node.name[len(ENGINE):]] = sorted(
                made.steps(origin)[-1] for _, origin in node.origins)
    lines = {name: made.expand("losses:@losses_" + name) for name in (
        "shared", "first", "second", "first_backward", "second_backward")}
    assert callers[lines["shared"], "ExpBackward0"] == sorted(
        [lines["first_backward"], lines["second_backward"]])
    assert callers[lines["first"], "SinBackward0"] == [lines["first_backward"]]
    assert callers[lines["second"], "CosBackward0"] == [lines["second_backward"]]


def test_the_ledger_counts_every_backward_operator(made):
    check_sums(made)
    ledger = made.ledger("backward")
    assert ledger.pop("received") == sum(ledger.values())
    assert ledger.pop("forward_miss") == 1  # forgotten() asks for it
    assert set(ledger) == {"forward", "accumulation", "hook"}
    # What ran operators in the engine's own frame, before it named the forward operator.
    hooks = sum(1 for node in made.profile.operators
                if node.name.startswith(ENGINE)
                and made.profile._contexts[node.id][2] & ACCUMULATION
                and any(child.kind == "python" for child in node.children))
    assert hooks and ledger["hook"] == hooks
    calls = made.calls()
    records = collections.Counter()
    for node in made.profile.operators:
        flags = made.profile._contexts[node.id][2]
        if flags and not node.name.startswith(ENGINE):
            records["accumulation" if flags & ACCUMULATION else "forward"] += calls.get(node.id, 0)
    assert records["accumulation"] == ledger["accumulation"]
    assert records["forward"] == ledger["forward"] + 1
