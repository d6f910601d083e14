# SPDX-License-Identifier: Apache-2.0
"""A jitted training step in JAX. Fault: every fourth batch has a length of its own, and compiles."""
import sys

import jax
import jax.numpy as jnp
import numpy

fault, device, steps = sys.argv[1] == "fault", sys.argv[2], int(sys.argv[3])
width, batch = (64, 64) if device == "cpu" else (4096, 2048)
weights = [jax.random.normal(jax.random.PRNGKey(i), (width, width)) / width ** 0.5 for i in range(4)]


def loss(weights, x):
    for weight in weights:
        x = jax.nn.relu(x @ weight)
    return (x ** 2).mean()


@jax.jit
def step(weights, x):
    value, gradients = jax.value_and_grad(loss)(weights, x)
    return value, [w - 1e-3 * g for w, g in zip(weights, gradients)]


for number in range(steps):
    x = numpy.ones((batch + (number if fault and number % 4 == 0 else 0), width), numpy.float32)
    value, weights = step(weights, x)  # @fault
    value.block_until_ready()
