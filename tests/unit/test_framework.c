/* SPDX-License-Identifier: Apache-2.0 */
/* The lookups of model/framework/framework.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/framework/framework.h"

static enum plumb_purpose
purpose_of(const char *range)
{
	return plumb_framework_range(range, strlen(range));
}

static void
test_ranges(void **state)
{
	(void)state;
	assert_int_equal(purpose_of("Optimizer.step#SGD.step"), PLUMB_PURPOSE_OPTIMIZER_STEP);
	assert_int_equal(purpose_of("Optimizer.zero_grad#SGD.zero_grad"), PLUMB_PURPOSE_OPTIMIZER);
	assert_int_equal(purpose_of("enumerate(DataLoader)#1"), PLUMB_PURPOSE_DATA);
	assert_int_equal(purpose_of("step"), PLUMB_PURPOSE_NONE);
	/* The name of a region's record is not terminated. */
	assert_int_equal(plumb_framework_range("Optimizer.step#", 14), PLUMB_PURPOSE_OPTIMIZER);
	assert_string_equal(plumb_framework_step("ProfilerStep#12"), "ProfilerStep");
	assert_string_equal(plumb_framework_step("ProfilerStep"), "ProfilerStep");
	assert_null(plumb_framework_step("ProfilerSteps"));
	assert_null(plumb_framework_step(NULL));
}

static void
test_functions(void **state)
{
	static const char module[] = "/x/torch/nn/modules/module.py";

	(void)state;
	assert_int_equal(plumb_framework_phase(module, "Module._wrapped_call_impl"),
	                 PLUMB_PURPOSE_MODULE);
	assert_int_equal(plumb_framework_phase(module, "Module._apply"), PLUMB_PURPOSE_PARAMETERS);
	assert_int_equal(plumb_framework_phase(module, "Module.train"), PLUMB_PURPOSE_OTHER);
	assert_int_equal(plumb_framework_phase("/x/amp/grad_scaler.py", "GradScaler.scale"),
	                 PLUMB_PURPOSE_OTHER);
	assert_int_equal(plumb_framework_phase("/x/amp/grad_scaler.py", "GradScaler.step"),
	                 PLUMB_PURPOSE_OPTIMIZER);
	assert_int_equal(plumb_framework_phase("/x/train.py", "backward"), PLUMB_PURPOSE_NONE);
	assert_true(plumb_framework_is_package("jaxlib", 6));
	assert_false(plumb_framework_is_package("jaxlib", 5));
	assert_false(plumb_framework_is_package("", 0));
}

static void
test_operators(void **state)
{
	const struct plumb_framework_operator *row = plumb_framework_operator("aten::addmm");

	(void)state;
	assert_non_null(row);
	assert_int_equal(row->flops, PLUMB_FLOPS_MATRICES);
	assert_int_equal(row->operand, 1);
	assert_null(plumb_framework_operator("addmm"));
	assert_null(plumb_framework_operator("aten::nothing"));
	assert_null(plumb_framework_operator(NULL));
	assert_true(plumb_framework_operator("aten::embedding_bag")->flags &
	            PLUMB_OPERATOR_TABLE_FIRST);
	assert_int_equal(plumb_framework_work("aten::add_"), PLUMB_WORK_LIGHT);
	assert_int_equal(plumb_framework_work("c10d::scatter_"), PLUMB_WORK_COMMUNICATION);
	assert_int_equal(plumb_framework_work("f<direct_copy_kernel_cuda>"), PLUMB_WORK_COPY);
	assert_int_equal(plumb_framework_work("f<c10d::x>"), PLUMB_WORK_OTHER);
}

static void
test_kernels_and_nodes(void **state)
{
	static const char node[] = "autograd::engine::evaluate_function: AddmmBackward0";

	(void)state;
	assert_string_equal(plumb_framework_node(node), "AddmmBackward0");
	assert_string_equal(plumb_framework_node("aten::mm"), "aten::mm");
	assert_true(plumb_framework_is_backward(node));
	assert_false(plumb_framework_is_backward("aten::mm"));
	assert_string_equal(plumb_framework_fused("triton_poi_fused_add_relu_0"), "_add_relu_0");
	assert_null(plumb_framework_fused("my_fused_add"));
	assert_true(plumb_framework_is_generated("loop_fusion_3"));
	assert_false(plumb_framework_is_generated("gemm"));
}

static void
test_patterns(void **state)
{
	(void)state;
	assert_true(plumb_name_fits("conv1d", "conv*", 5));
	assert_true(plumb_name_fits("abab", "a*b*b", 5));
	assert_false(plumb_name_fits("conv", "conv?", 5));
	assert_true(plumb_name_fits("", "*", 1));
	assert_false(plumb_name_fits("", "a", 1));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ranges),    cmocka_unit_test(test_functions),
		cmocka_unit_test(test_operators), cmocka_unit_test(test_kernels_and_nodes),
		cmocka_unit_test(test_patterns),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
