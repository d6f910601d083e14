/* SPDX-License-Identifier: Apache-2.0 */
/* What is the person's own code. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/builder.h"
#include "model/user_code.h"

static bool
own(const char *rule, const char *file)
{
	struct plumb_error error = { 0 };
	struct plumb_user_code *user_code = plumb_user_code_new(rule, &error);
	if (!user_code)
		fail_msg("%s", error.message);
	bool result = plumb_user_code_file(user_code, file);
	plumb_user_code_free(user_code);
	return result;
}

static void
test_default(void **state)
{
	(void)state;
	static const char *const mine[] = {
		"train.py",
		"/home/me/train.py",
		"src/model.py",
		"/opt/app/lib/tool.py",
		"<stdin>",
		"<console>",
		"<python-input-4>",
		"<ipython-input-3-0a1b>",
		"/tmp/ipykernel_7/12.py",
		"/tmp/train.py",
		"/tmp/work/model.py",
		"/tmp/tmp.Xy01ab/train.py",
		"/home/me/tmpabcdefgh/train.py",
		"/tmp/pytest-of-me/pytest-0/test_a0/train.py",
		"/home/me/resnet_training.py",
		"/home/me/train.v2.py",
		"/home/me/torchinductor_notes.py",
		"/home/me/python3.11/a.py",
		"/home/me/my-site-packages/a.py",
		"/home/me/lib/pythonic/a.py",
		"/home/me/lib/python3.11",
		"/home/me/lib/python3/a.py",
		"/home/me/lib/python3.11rc/a.py",
		"/usr/bin/torchrun",
		"/home/me/site-packages",
		"torch.py",
		"torches/a.py",
		"/home/me/torch/nn/a.py",
		"src/threading.py",
	};
	static const char *const theirs[] = {
		NULL,
		"",
		"<string>",
		"<attrs generated init app.Config>",
		"<frozen importlib._bootstrap>",
		"<frozen runpy>",
		"<__array_function__ internals>",
		"<eval_with_key>.0",
		"/usr/lib/python3/dist-packages/torch/nn/modules/module.py",
		"/home/me/venv/lib/python3.12/site-packages/torch/_ops.py",
		"venv/lib/python3.12/site-packages/x.py",
		"site-packages/x.py",
		"torch/nn/modules/linear.py",
		"transformers/models/llama/modeling_llama.py",
		"threading.py",
		"contextlib.py",
		"/usr/lib/python3.11/threading.py",
		"/usr/lib64/python3.9/os.py",
		"/usr//lib//python3.9//os.py",
		"/opt/conda/lib/python3.13t/asyncio/base_events.py",
		"/opt/py/lib/python311.zip/os.py",
		"/opt/py/python3.11.zip/os.py",
		"/opt/pypy/lib/pypy3.9/os.py",
		"/tmp/torch_geometric.nn.conv.gcn_conv_GCNConv_propagate_etx2fnc3.py",
		"/scratch/tmp/torch_geometric.nn.conv.gat_conv_GATConv_edge_updater_iva63_s6.py",
		"/tmp/torchinductor_me/ab/cabcdefghijklmnopqrstuvwxyz234567abcdefghijklmnopqrstu.py",
		"/tmp/torchinductor_me/ab/kernel.py",
		"/home/me/.triton/cache/AB/launcher.py",
		"/var/tmp/tmpa_8x01qk/a.py",
		"/tmp/tmpa_8x01qk/lib/a.py",
		"/dev/shm/tmpa_8x01qk.py",
		"/tmp/__autograph_generated_file3jx_0kqz.py",
		"/tmp/me/_remote_module_non_scriptable.py",
	};
	for (size_t i = 0; i < sizeof mine / sizeof *mine; i++)
		if (!own(NULL, mine[i]))
			fail_msg("%s is the person's own", mine[i]);
	for (size_t i = 0; i < sizeof theirs / sizeof *theirs; i++)
		if (own(NULL, theirs[i]))
			fail_msg("%s is not the person's own", theirs[i]);
}

static void
test_rule(void **state)
{
	(void)state;
	const char *mine = "/usr/lib/python3/dist-packages/mine/a.py";
	assert_false(own("", mine));
	assert_true(own("+/usr/lib/python3/dist-packages/mine", mine));
	assert_true(own("+/usr/lib/python3/dist-packages/mine/", mine));
	assert_true(own("+/usr/lib/python3/dist-packages/mine/a.py", mine));
	assert_false(own("+/usr/lib/python3/dist-packages/min", mine));
	assert_false(own("-/home/me/vendor", "/home/me/vendor/a.py"));
	assert_true(own("-/home/me/vendor", "/home/me/vendors/a.py"));
	assert_true(own("+<string>", "<string>"));
	assert_false(own("-<stdin>", "<stdin>"));
	assert_true(own("+<frozen runpy>", "<frozen runpy>"));
	/* The last one that matches counts. */
	assert_true(own("-/home/me:+/home/me/app", "/home/me/app/a.py"));
	assert_false(own("+/home/me/app:-/home/me", "/home/me/app/a.py"));
	assert_false(own("-:+/home/me", "/srv/a.py"));
	assert_true(own("::+:", "/usr/lib/python3.11/os.py"));
	assert_true(own("-/", "a.py"));
	assert_false(own("-/", "/a.py"));
	/* No file stays nobody's. */
	assert_false(own("+", NULL));
}

static void
test_wrong_rule(void **state)
{
	(void)state;
	struct plumb_error error = { 0 };
	assert_null(plumb_user_code_new("+/a:/b", &error));
	assert_int_equal(error.code, PLUMB_EUSAGE);
	assert_non_null(strstr(error.message, "/b"));
	assert_null(plumb_user_code_new("x", NULL));
	plumb_user_code_free(NULL);
}

static void
test_frames(void **state)
{
	(void)state;
	struct plumb_builder *b = plumb_builder_new();
	uint32_t file = plumb_builder_text(b, "/home/me/a.py");
	uint32_t name = plumb_builder_text(b, "f");
	uint32_t python = plumb_builder_frame(b, PLUMB_FRAME_PYTHON, name, file, 1);
	uint32_t fileless = plumb_builder_frame(b, PLUMB_FRAME_PYTHON, name, PLUMB_NONE, 1);
	uint32_t native = plumb_builder_frame(b, PLUMB_FRAME_NATIVE, name, file, 1);
	struct plumb_profile profile;
	assert_int_equal(plumb_builder_finish(b, &profile, NULL), 0);
	unsigned char *frames = plumb_user_code_frames(&profile, NULL, NULL);
	assert_non_null(frames);
	assert_int_equal(frames[python], 1);
	assert_int_equal(frames[fileless], 0);
	assert_int_equal(frames[native], 0);
	assert_int_equal(frames[0], 0);
	free(frames);
	frames = plumb_user_code_frames(&profile, "-/home", NULL);
	assert_int_equal(frames[python], 0);
	free(frames);
	struct plumb_error error = { 0 };
	assert_null(plumb_user_code_frames(&profile, "home", &error));
	assert_int_equal(error.code, PLUMB_EUSAGE);
	plumb_profile_free(&profile);
	plumb_builder_free(b);
}

/* Each text is "file:name"; the frames of a path, outermost first, end at NULL. */
static void
add_path(struct plumb_builder *b, const char *const *frames)
{
	uint32_t context = 0;

	for (; *frames; frames++) {
		const char *colon = strchr(*frames, ':');
		char file[200];

		snprintf(file, sizeof file, "%.*s", (int)(colon - *frames), *frames);
		context = plumb_builder_context(
			b, context,
			plumb_builder_frame(b, PLUMB_FRAME_PYTHON, plumb_builder_text(b, colon + 1),
		                            plumb_builder_text(b, file), 1),
			0);
	}
}

/* Is FILE the person's own in a profile with these paths? */
static bool
own_in(const char *const paths[][5], size_t count, const char *file)
{
	struct plumb_builder *b = plumb_builder_new();
	struct plumb_profile profile;
	bool found = false, result = false;

	for (size_t i = 0; i < count; i++)
		add_path(b, paths[i]);
	assert_int_equal(plumb_builder_finish(b, &profile, NULL), 0);
	unsigned char *frames = plumb_user_code_frames(&profile, NULL, NULL);
	assert_non_null(frames);
	for (uint32_t f = 0; f < profile.frames_count; f++) {
		const char *text = plumb_text(&profile, profile.frames[f].file);
		if (!text || strcmp(text, file) != 0)
			continue;
		found = true;
		result = frames[f];
	}
	assert_true(found);
	free(frames);
	plumb_profile_free(&profile);
	plumb_builder_free(b);
	return result;
}

/* The program that was started is the person's own wherever it lies, and so is what lies beside
 * it; what packages put into the temporary folder is not. */
static void
test_programs(void **state)
{
	(void)state;
	static const char made[] = "/tmp/pkg.conv_GCN_etx2fnc3.py";
	static const char *const scratch[][5] = {
		{ "/tmp/tmpa_8x01qk/run.py:<module>", "/tmp/tmpa_8x01qk/net/model.py:forward",
		  "/tmp/tmpa_8x01qk/pkg.conv_GCN_etx2fnc3.py:propagate",
		  "/tmp/tmpbbbbbbbb/b.py:f" },
	};
	assert_true(own_in(scratch, 1, "/tmp/tmpa_8x01qk/run.py"));
	assert_true(own_in(scratch, 1, "/tmp/tmpa_8x01qk/net/model.py"));
	assert_false(own_in(scratch, 1, "/tmp/tmpa_8x01qk/pkg.conv_GCN_etx2fnc3.py"));
	assert_false(own_in(scratch, 1, "/tmp/tmpbbbbbbbb/b.py"));
	static const char *const bare[][5] = {
		{ "/tmp/run.py:<module>", "/tmp/pkg.conv_GCN_etx2fnc3.py:propagate",
		  "/tmp/tmpbbbbbbbb/b.py:f" },
	};
	assert_true(own_in(bare, 1, "/tmp/run.py"));
	assert_false(own_in(bare, 1, made));
	assert_false(own_in(bare, 1, "/tmp/tmpbbbbbbbb/b.py"));
	/* A file that Inductor wrote, when it is run as a program, also as a module. */
	static const char *const output[][5] = {
		{ "<frozen runpy>:_run_code", "/tmp/torchinductor_me/ab/kernel.py:<module>" },
	};
	assert_true(own_in(output, 1, "/tmp/torchinductor_me/ab/kernel.py"));
	static const char *const imported[][5] = {
		{ "/home/me/a.py:<module>", "<frozen importlib._bootstrap>:_find_and_load",
		  "/tmp/torchinductor_me/ab/kernel.py:<module>" },
	};
	assert_false(own_in(imported, 1, "/tmp/torchinductor_me/ab/kernel.py"));
}

/* The text of `python -c` is the person's own, that of a worker process or a package is not. */
static void
test_texts(void **state)
{
	(void)state;
	static const char *const typed[][5] = { { "<string>:<module>", "<string>:f" } };
	static const char *const worker[][5] = {
		{ "<string>:<module>", "/usr/lib/python3.11/multiprocessing/spawn.py:spawn_main",
		  "/home/me/a.py:f" },
	};
	static const char *const both[][5] = {
		{ "<string>:<module>", "<string>:f" },
		{ "/home/me/a.py:<module>", "<string>:__init__" },
	};
	static const char *const record[][5] = {
		{ "/home/me/a.py:<module>", "<string>:__init__" },
	};
	static const char *const executed[][5] = {
		{ "/home/me/a.py:<module>", "<string>:<module>" },
	};
	assert_true(own_in(typed, 1, "<string>"));
	assert_false(own_in(worker, 1, "<string>"));
	assert_true(own_in(worker, 1, "/home/me/a.py"));
	assert_true(own_in(both, 2, "<string>"));
	assert_false(own_in(record, 1, "<string>"));
	assert_false(own_in(executed, 1, "<string>"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_default),    cmocka_unit_test(test_rule),
		cmocka_unit_test(test_wrong_rule), cmocka_unit_test(test_frames),
		cmocka_unit_test(test_programs),   cmocka_unit_test(test_texts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
