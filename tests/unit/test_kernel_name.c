/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels' names: what is computed first. The names are those of PyTorch, CUTLASS, CUB and others,
 * as profilers show them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/kernel_name.h"

static void
check(const char *name, const char *wanted)
{
	char *compact = plumb_kernel_name_compact(name);

	assert_non_null(compact);
	assert_string_equal(compact, wanted);
	free(compact);
}

static void
functors_first(void **state)
{
	(void)state;
	check("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, "
	      "std::array<char*, 1ul> >(int, at::native::FillFunctor<float>, std::array<char*, "
	      "1ul>)",
	      "FillFunctor<float> (vectorized_elementwise_kernel<4, array<char*, 1>>)");
	check("void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl<at::native::"
	      "BinaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> > "
	      ">(at::TensorIteratorBase&, at::native::BinaryFunctor<float, float, float, at::native"
	      "::binary_internal::MulFunctor<float> > const&)::{lambda(int)#1}>(int, at::native::"
	      "gpu_kernel_impl<float>)",
	      "MulFunctor<float> (BinaryFunctor<float, float, float>, gpu_kernel_impl(int), "
	      "elementwise_kernel<128, 2>)");
	check("void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::("
	      "anonymous namespace)::TensorListMetadata<2>, at::native::(anonymous namespace)::"
	      "BinaryOpListAlphaFunctor<float, 2, 2, 0>, std::plus<float>, float>(int)",
	      "BinaryOpListAlphaFunctor<float, 2, 2, 0> (multi_tensor_apply_kernel<"
	      "TensorListMetadata<2>, plus<float>, float>)");
}

static void
lambdas_by_their_function(void **state)
{
	(void)state;
	check("void at::native::vectorized_elementwise_kernel<4, at::native::neg_kernel_cuda(at::"
	      "TensorIteratorBase&)::{lambda()#2}::operator()() const::{lambda()#7}::operator()() "
	      "const::{lambda(float)#1}, std::array<char*, 2ul> >(int)",
	      "neg_kernel_cuda(float)#2.7.1 (vectorized_elementwise_kernel<4, array<char*, 2>>)");
	check("void at::native::vectorized_elementwise_kernel<(int)4, void at::native::"
	      "compare_scalar_kernel<long>(at::TensorIteratorBase &, at::native::<unnamed>::OpType,"
	      " T1)::[lambda(long) (instance 1)], std::array<char *, (unsigned long)2>>(int, T2)",
	      "compare_scalar_kernel<long>(long) (vectorized_elementwise_kernel<4, array<char *, "
	      "2>>)");
	/* a lambda in a functor's call operator; the functor says what */
	check("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::"
	      "func_wrapper_t<float, at::native::sum_functor<float, float, float>::operator()(at::"
	      "TensorIterator&)::{lambda(float, float)#1}>, unsigned int, float, 4> >(int)",
	      "sum_functor<float, float, float>(float, float) (func_wrapper_t<float>, ReduceOp<"
	      "float, unsigned int, float, 4>, reduce_kernel<512, 1>)");
}

static void
general_templates_last(void **state)
{
	(void)state;
	check("void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_128x128_32x5_tn>("
	      "cutlass_80_tensorop_bf16_s16816gemm_bf16_128x128_32x5_tn::Params)",
	      "cutlass_80_tensorop_bf16_s16816gemm_bf16_128x128_32x5_tn (Kernel2)");
	check("void thrust::cuda_cub::core::_kernel_agent<thrust::cuda_cub::__parallel_for::"
	      "ParallelForAgent<thrust::cuda_cub::for_each_f<int*, saxpy_functor>, long>, long>(int"
	      ")",
	      "saxpy_functor (for_each_f<int*>, ParallelForAgent<long>, _kernel_agent<long>)");
	check("void solver::launch_kernel<solver::Smoother<double, 3>>(double*)",
	      "Smoother<double, 3> (launch_kernel)");
}

static void
plain_functions(void **state)
{
	(void)state;
	check("void at::native::(anonymous namespace)::softmax_warp_forward<c10::BFloat16, c10::"
	      "BFloat16, float, 10, true, false>(float*, float const*, int)",
	      "softmax_warp_forward<BFloat16, BFloat16, float, 10, true, false>");
	check("solver::smooth(float const*, int)", "smooth");
	check("solver::Field<float>::relax(int)", "relax");
	check("void f<(unsigned int)4, -1, true>(int)", "f<4, -1, true>");
	check("std::enable_if<!(false), void>::type internal::gemvx::kernel<int, float>(int)",
	      "kernel<int, float>");
	check("void f<(a::B)2, &g>(int)", "f<2, &g>");
}

static void
names_of_other_kinds(void **state)
{
	static const char *const names[] = {
		"triton_poi_fused_add_relu_3",
		"ampere_fp16_s1688gemm_fp16_128x128_ldg8_f2f_stages_32x1_tn",
		"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_execute_kernel__5x_cublas",
		"Cijk_Alik_Bljk_BBS_BH_MT128x128x64_MI16x16x16x1_SN_1LDSB0",
		"CUDA graph of 12 nodes",
		"ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
		"_ZN7sgl_hip10activation18act_and_mul_kernelI14__hip_bfloat16EEvPS3_PS4_i",
		"",
		"<",
		"f<",
		"f<>",
		"f<int",
		"f<int>>",
		"f(int",
		"operator<",
		"a b(c)",
		"::",
		"f<(>)",
		"void",
		"void ",
		"(anonymous namespace)",
		"{lambda(int)#1}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char *compact = plumb_kernel_name_compact(names[i]);
		assert_non_null(compact);
		if (!strpbrk(names[i], "<(") || strlen(names[i]) < 9)
			assert_true(!strcmp(compact, names[i]) || !strcmp(names[i], "f<>"));
		free(compact);
	}
}

/* No name is read past its end or for ever. */
static void
damaged_names(void **state)
{
	static const char name[] =
		"void at::native::vectorized_elementwise_kernel<4, at::native::neg_kernel_cuda(at::"
		"TensorIteratorBase&)::{lambda()#2}::operator()() const::{lambda(float)#1}, "
		"std::array<char*, 2ul> >(int)";
	static const char signs[] = "<>(){}[],:&*# '0a";
	uint32_t random = 1;

	(void)state;
	for (size_t length = 0; length < sizeof name; length++) {
		char *cut = strndup(name, length);
		free(plumb_kernel_name_compact(cut));
		free(cut);
	}
	for (int i = 0; i < 20000; i++) {
		char text[sizeof name];
		memcpy(text, name, sizeof name);
		for (int k = 0; k < 3; k++) {
			random = random * 1664525 + 1013904223;
			text[(random >> 8) % (sizeof name - 1)] =
				signs[(random >> 24) % (sizeof signs - 1)];
		}
		free(plumb_kernel_name_compact(text));
	}
	char *deep = calloc(1, 40001);
	for (int i = 0; i < 10000; i++)
		memcpy(deep + 2 * i, "a<", 2);
	for (int i = 0; i < 10000; i++)
		deep[20000 + i] = '>';
	free(plumb_kernel_name_compact(deep));
	free(deep);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functors_first),
		cmocka_unit_test(lambdas_by_their_function),
		cmocka_unit_test(general_templates_last),
		cmocka_unit_test(plain_functions),
		cmocka_unit_test(names_of_other_kinds),
		cmocka_unit_test(damaged_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
