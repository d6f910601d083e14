// SPDX-License-Identifier: Apache-2.0
// A program of PyTorch's C++ library: operators without Python. It launches a kernel first, because plumb
// meets the library when the GPU's driver is initialised.
#include <ATen/core/Tensor.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/relu.h>

#include "mock.h"

static __attribute__((noinline)) at::Tensor
layer(const at::Tensor &input, const at::Tensor &weight)
{
	at::Tensor output = at::mm(input, weight); // PRODUCT
	asm volatile("");
	return at::relu(output); // RELU
}

static __attribute__((noinline)) at::Tensor
model(at::Tensor input, const at::Tensor &weight)
{
	for (int i = 0; i < 3; i++)
		input = layer(input, weight);
	asm volatile("");
	return input;
}

int
main()
{
	mock_launch("first", 1000);
	at::Tensor weight = at::ones({ 8, 8 }), input = at::ones({ 8, 8 });
	for (int i = 0; i < 5; i++)
		model(input, weight);
	return 0;
}
