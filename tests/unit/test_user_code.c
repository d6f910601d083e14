/* SPDX-License-Identifier: Apache-2.0 */
/* What is the person's own code. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
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
		"<string>",
		"<stdin>",
		"<ipython-input-3-0a1b>",
		"/tmp/ipykernel_7/12.py",
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
	assert_false(own("-<string>", "<string>"));
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_default),
		cmocka_unit_test(test_rule),
		cmocka_unit_test(test_wrong_rule),
		cmocka_unit_test(test_frames),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
