/* SPDX-License-Identifier: Apache-2.0 */
/* The rule of phases on paths, and rows by phase, module and shape. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/group.h"
#include "analyze/phase.h"
#include "model/builder.h"

#define TORCH "/usr/lib/python3/dist-packages/torch"
#define CALL "python Module._call_impl " TORCH "/nn/modules/module.py"

static struct plumb_builder *builder;
static uint32_t track;

/* A path of "kind name file" (a file may be missing, ! makes it backward, + accumulation). */
static uint32_t
path(const char *const *steps)
{
	uint32_t context = 0;

	for (; *steps; steps++) {
		char kind[32] = "", name[160] = "", file[160] = "";
		const char *text = *steps;
		uint32_t flags = 0;

		if (*text == '!' || *text == '+')
			flags = *text++ == '!'
			                ? PLUMB_CONTEXT_BACKWARD
			                : PLUMB_CONTEXT_BACKWARD | PLUMB_CONTEXT_ACCUMULATION;
		assert_true(sscanf(text, "%31s %159[^|/]%159s", kind, name, file) >= 2);
		for (size_t n = strlen(name); n && name[n - 1] == ' ';)
			name[--n] = '\0';
		const char *of = file[0] == '|' ? file + 1 : file;
		uint32_t frame = plumb_builder_frame(
			builder, (uint32_t)plumb_frame_kind_find(kind),
			plumb_builder_text(builder, name),
			of[0] ? plumb_builder_text(builder, of) : PLUMB_NONE, 0);
		context = plumb_builder_context(builder, context, frame, flags);
	}
	return context;
}
#define PATH(...) path((const char *const[]){ __VA_ARGS__, NULL })

static void
value(uint32_t context, uint32_t metric, int64_t each, uint64_t count)
{
	struct plumb_value v = { context, metric,       track, each * (int64_t)count, count, each,
		                 each,    (double)each, 0 };

	assert_int_equal(plumb_builder_value(builder, &v), 0);
}

static int
setup(void **state)
{
	struct plumb_process process = { .host = PLUMB_NONE, .command = PLUMB_NONE };
	struct plumb_track thread = { .kind = PLUMB_TRACK_THREAD,
		                      .device = PLUMB_NONE,
		                      .name = PLUMB_NONE };

	(void)state;
	builder = plumb_builder_new();
	plumb_builder_process(builder, &process);
	track = plumb_builder_track(builder, &thread);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	plumb_builder_free(builder);
	return 0;
}

static void
finish(struct plumb_profile *profile)
{
	struct plumb_error error;

	if (plumb_builder_finish(builder, profile, &error) < 0)
		fail_msg("%s", error.message);
}

/* The phase of a path's last context, each in a profile of its own. */
static const char *
phase(const char *const *steps)
{
	struct plumb_profile profile = { 0 };
	unsigned char *phases;
	const char *name;

	setup(NULL);
	path(steps);
	finish(&profile);
	phases = plumb_phases(&profile);
	/* The deepest context is the last of a profile of one path. */
	name = plumb_phase_names[phases[profile.contexts_count - 1]];
	free(phases);
	plumb_profile_free(&profile);
	plumb_builder_free(builder);
	return name;
}
#define EXPECT(name, ...)                                                                          \
	assert_string_equal(phase((const char *const[]){ __VA_ARGS__, NULL }), name)

#define MAIN "python main /home/ada/train.py"

static void
test_forward_and_loss(void **state)
{
	(void)state;
	EXPECT("other", MAIN);
	EXPECT("other", MAIN, "operator aten::randn");
	EXPECT("forward", MAIN, "module GPT|__main__.GPT");
	EXPECT("forward", MAIN, "module GPT|__main__.GPT", "module h.0|__main__.Block",
	       "operator aten::mm", "gpu_api cuLaunchKernel", "kernel gemm");
	/* Without module frames, PyTorch's own function tells. */
	EXPECT("forward", MAIN, CALL, "python forward /home/ada/model.py", "operator aten::mm");
	EXPECT("loss", MAIN, "module MSELoss|torch.nn.modules.loss.MSELoss", "operator aten::sub");
	EXPECT("loss", MAIN, "module Net|__main__.Net",
	       "module criterion|torch.nn.modules.loss.MSELoss", "operator aten::sub");
	EXPECT("loss", MAIN, CALL, "python MSELoss.forward " TORCH "/nn/modules/loss.py",
	       "operator aten::sub");
	EXPECT("loss", MAIN, "python cross_entropy " TORCH "/nn/functional.py",
	       "operator aten::log_softmax");
	EXPECT("loss", MAIN, "module GPT|__main__.GPT",
	       "python cross_entropy " TORCH "/nn/functional.py", "operator aten::log_softmax");
	EXPECT("loss", MAIN, "operator aten::nll_loss_forward");
	EXPECT("loss", MAIN, "python compute_loss /home/ada/train.py", "operator aten::sub");
	/* A function that is called so may call the model. */
	EXPECT("forward", MAIN, "python compute_loss /home/ada/train.py", "module GPT|__main__.GPT",
	       "operator aten::mm");
	/* A loss that is a network stays one. */
	EXPECT("loss", MAIN, "module p|torch.nn.modules.loss.MSELoss", "module vgg|__main__.VGG",
	       "operator aten::conv2d");
	EXPECT("other", MAIN, "python gloss /home/ada/train.py", "operator aten::sub");
	EXPECT("other", MAIN, "python lossless /home/ada/train.py", "operator aten::sub");
	EXPECT("loss", MAIN, "python Trainer.losses /home/ada/train.py", "operator aten::sub");
	EXPECT("loss", MAIN, "python MyLoss.__call__.loss /home/ada/train.py",
	       "operator aten::sub");
	EXPECT("forward", MAIN, "module N|__main__.N", "python loss_scale /home/ada/train.py",
	       "operator aten::sub");
}

static void
test_backward(void **state)
{
	(void)state;
	EXPECT("backward", MAIN, "module GPT|__main__.GPT", "operator aten::mm",
	       "!operator MmBackward0", "operator aten::mm");
	EXPECT("backward", MAIN, "+operator torch::autograd::AccumulateGrad",
	       "operator aten::add_");
	EXPECT("backward", MAIN, "python Tensor.backward " TORCH "/_tensor.py",
	       "operator aten::ones_like");
	/* What is computed again. */
	EXPECT("backward", MAIN, "module GPT|__main__.GPT", "operator CheckpointFunction",
	       "!operator CheckpointFunctionBackward", "module Block|__main__.Block",
	       "operator aten::mm");
	EXPECT("backward", MAIN, "!operator X", "python cross_entropy " TORCH "/nn/functional.py");
	/* An optimizer that steps in a hook. */
	EXPECT("optimizer", MAIN, "+operator torch::autograd::AccumulateGrad",
	       "python SGD.step " TORCH "/optim/sgd.py", "operator aten::add_");
}

static void
test_optimizer_and_data(void **state)
{
	(void)state;
	EXPECT("optimizer", MAIN, "python Adam.step " TORCH "/optim/adam.py",
	       "operator aten::add_");
	/* PyTorch's profiler leaves out the folder of packages, even its slash. */
	EXPECT("optimizer", MAIN, "python Adam.step |torch/optim/adam.py", "operator aten::add_");
	EXPECT("data", MAIN, "python _BaseDataLoaderIter.__next__ |torch/utils/data/dataloader.py",
	       "operator aten::stack");
	EXPECT("other", MAIN, "python step |mytorch/optim/adam.py", "operator aten::add_");
	EXPECT("optimizer", MAIN, "range Optimizer.step#FusedAdam.step", "operator aten::add_");
	EXPECT("optimizer", MAIN, "python clip_grad_norm_ " TORCH "/nn/utils/clip_grad.py",
	       "operator aten::norm");
	EXPECT("optimizer", MAIN, "python GradScaler.unscale_ " TORCH "/amp/grad_scaler.py",
	       "operator aten::mul");
	EXPECT("other", MAIN, "python GradScaler.scale " TORCH "/amp/grad_scaler.py",
	       "operator aten::mul");
	/* A closure computes the model and its loss again. */
	EXPECT("forward", MAIN, "python LBFGS.step " TORCH "/optim/lbfgs.py",
	       "python closure /home/ada/train.py", "module N|__main__.N", "operator aten::mm");
	EXPECT("data", MAIN,
	       "python _BaseDataLoaderIter.__next__ " TORCH "/utils/data/dataloader.py",
	       "operator aten::stack");
	EXPECT("data", MAIN, "range enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
	       "operator aten::stack");
	EXPECT("data", MAIN, "operator aten::to", "operator aten::copy_", "gpu_api cuMemcpyAsync",
	       "copy copy pageable→device");
	EXPECT("other", MAIN, "operator aten::to", "operator aten::copy_", "gpu_api cuMemcpyAsync",
	       "copy copy device→pageable");
	/* A model's parameters are no data. */
	EXPECT("other", MAIN, "python Module._apply " TORCH "/nn/modules/module.py",
	       "operator aten::to", "copy copy pageable→device");
	EXPECT("forward", MAIN, "module N|__main__.N", "operator aten::to",
	       "copy copy pageable→device");
}

/* ---- rows ---- */

static struct plumb_profile profile;
static struct plumb_grouping *grouping;
static struct plumb_stat exclusive[32], inclusive[32], outside;

static void
group(enum plumb_group_by by, uint32_t metric)
{
	grouping = plumb_grouping_new(&profile, by, NULL);
	assert_non_null(grouping);
	assert_true(plumb_grouping_count(grouping) <= 32);
	assert_int_equal(plumb_grouping_values(grouping, metric, exclusive, inclusive, &outside),
	                 0);
}

static uint32_t
row_of(const char *name)
{
	for (uint32_t r = 0; r < plumb_grouping_count(grouping); r++) {
		const struct plumb_group_row *row = &plumb_grouping_rows(grouping)[r];
		const char *text = row->phase != PLUMB_NONE
		                           ? plumb_phase_names[row->phase]
		                           : plumb_frame_label(&profile, row->frame);
		if (!strcmp(text, name))
			return r;
	}
	fail_msg("there is no row %s", name);
	return 0;
}

static void
shape(uint32_t context, const char *text, int64_t time, uint64_t count)
{
	struct plumb_variant v = { .context = context,
		                   .track = track,
		                   .shapes = plumb_builder_text(builder, text),
		                   .count = count,
		                   .time = time,
		                   .min = 1,
		                   .max = time };

	assert_int_equal(plumb_builder_variant(builder, &v), 0);
}

static void
make(void)
{
	uint32_t mm =
		PATH(MAIN, "module Net|__main__.Net", "module a|x.Linear", "operator aten::mm");
	uint32_t again = PATH(MAIN, "module Net|__main__.Net", "module a|x.Linear",
	                      "operator aten::mm", "!operator MmBackward0", "operator aten::mm");
	uint32_t own = PATH(MAIN, "module Net|__main__.Net", "operator aten::add");
	uint32_t alone = PATH(MAIN, "operator aten::randn");

	value(mm, PLUMB_METRIC_OP_TIME, 10, 3);
	value(again, PLUMB_METRIC_OP_TIME, 7, 6);
	value(own, PLUMB_METRIC_OP_TIME, 5, 3);
	value(alone, PLUMB_METRIC_OP_TIME, 2, 1);
	shape(mm, "(a) -> b", 20, 2);
	shape(mm, "(c) -> d", 10, 1);
	shape(again, "(a) -> b", 42, 6);
	shape(PATH(MAIN, "module Net|__main__.Net", "module a|x.Linear"), "-> e", 1, 1);
	shape(PATH(MAIN, "module Net|__main__.Net", "module a|x.Linear"), "-> f", 5, 2);
	finish(&profile);
}

static void
done(void)
{
	plumb_grouping_free(grouping);
	plumb_profile_free(&profile);
}

static void
test_by_module(void **state)
{
	(void)state;
	make();
	group(PLUMB_BY_MODULE, PLUMB_METRIC_OP_TIME);
	assert_int_equal(plumb_grouping_count(grouping), 2);
	assert_int_equal(exclusive[row_of("a")].sum, 72);
	assert_int_equal(inclusive[row_of("Net")].sum, 87);
	assert_int_equal(exclusive[row_of("Net")].sum, 15);
	assert_int_equal(outside.sum, 2);
	const struct plumb_group_row *rows = plumb_grouping_rows(grouping);
	assert_string_equal(plumb_text(&profile, rows[row_of("a")].shapes), "-> f");
	assert_int_equal(rows[row_of("Net")].shapes, PLUMB_NONE);
	done();
}

static void
test_by_phase(void **state)
{
	int64_t sum = 0;

	(void)state;
	make();
	group(PLUMB_BY_PHASE, PLUMB_METRIC_OP_TIME);
	assert_int_equal(plumb_grouping_count(grouping), PLUMB_PHASES);
	assert_int_equal(exclusive[row_of("forward")].sum, 45);
	assert_int_equal(exclusive[row_of("backward")].sum, 42);
	assert_int_equal(exclusive[row_of("other")].sum, 2);
	assert_int_equal(exclusive[row_of("data")].count, 0);
	assert_int_equal(inclusive[row_of("backward")].sum, 42);
	for (uint32_t r = 0; r < PLUMB_PHASES; r++)
		sum += exclusive[r].sum;
	assert_int_equal(sum, 89);
	assert_int_equal(outside.count, 0);
	done();
}

static void
test_by_shape(void **state)
{
	(void)state;
	make();
	group(PLUMB_BY_SHAPE, PLUMB_METRIC_OP_TIME);
	assert_int_equal(plumb_grouping_count(grouping), 2);
	uint32_t r = row_of("aten::mm");
	if (strcmp(plumb_text(&profile, plumb_grouping_rows(grouping)[r].shapes), "(a) -> b"))
		r = 1 - r;
	assert_int_equal(exclusive[r].sum, 62);
	assert_int_equal(exclusive[r].count, 8);
	assert_int_equal(exclusive[r].max, 42);
	assert_true(isnan(plumb_stat_deviation(&exclusive[r])));
	assert_int_equal(exclusive[1 - r].sum, 10);
	assert_int_equal(outside.sum, 17);
	plumb_grouping_free(grouping);
	group(PLUMB_BY_SHAPE, PLUMB_METRIC_OP_CALLS);
	assert_int_equal(exclusive[r].sum, 8);
	plumb_grouping_free(grouping);
	group(PLUMB_BY_SHAPE, PLUMB_METRIC_GPU_TIME);
	assert_int_equal(exclusive[r].count, 0);
	assert_int_equal(outside.count, 0); /* there was none at all */
	done();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forward_and_loss),
		cmocka_unit_test(test_backward),
		cmocka_unit_test(test_optimizer_and_data),
		cmocka_unit_test_setup_teardown(test_by_module, setup, teardown),
		cmocka_unit_test_setup_teardown(test_by_phase, setup, teardown),
		cmocka_unit_test_setup_teardown(test_by_shape, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
