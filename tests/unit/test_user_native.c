/* SPDX-License-Identifier: Apache-2.0 */
/* Which native functions are your code. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/builder.h"
#include "model/user_code.h"

/* A program at PATH in one process, which ran Python or not. */
struct world {
	struct plumb_builder *builder;
	uint32_t process, build_id;
};

static struct world
begin(const char *path, bool python)
{
	struct world w = { .builder = plumb_builder_new() };
	struct plumb_builder *b = w.builder;

	w.process = plumb_builder_process(b, &(struct plumb_process){ .pid = 1,
	                                                              .ppid = 0,
	                                                              .rank = PLUMB_UNKNOWN,
	                                                              .local_rank = PLUMB_UNKNOWN,
	                                                              .host = PLUMB_NONE,
	                                                              .command = PLUMB_NONE });
	w.build_id = plumb_builder_text(b, "abcd");
	plumb_builder_code_object(b,
	                          &(struct plumb_code_object){ .process = w.process,
	                                                       .kind = plumb_builder_text(b, "elf"),
	                                                       .path = plumb_builder_text(b, path),
	                                                       .build_id = w.build_id,
	                                                       .hash = PLUMB_NONE,
	                                                       .bytes = PLUMB_UNKNOWN });
	if (python) {
		plumb_builder_environment(b, w.process, "python.version", "3.13.0");
		plumb_builder_frame(b, PLUMB_FRAME_PYTHON, plumb_builder_text(b, "main"),
		                    plumb_builder_text(b, "/home/me/train.py"), 3);
	}
	return w;
}

static uint32_t
function(struct world *w, const char *name, const char *file, uint32_t line)
{
	struct plumb_builder *b = w->builder;
	uint32_t frame = plumb_builder_frame(b, PLUMB_FRAME_NATIVE, plumb_builder_text(b, name),
	                                     w->build_id, 4);

	if (file)
		plumb_builder_frame_source(b, frame, plumb_builder_text(b, file), line);
	return frame;
}

/* Which frames are yours; the caller frees PROFILE and the array. */
static unsigned char *
finish(struct world *w, struct plumb_profile *profile, const char *rule)
{
	struct plumb_error error;
	unsigned char *own;

	assert_int_equal(plumb_builder_finish(w->builder, profile, &error), 0);
	plumb_builder_free(w->builder);
	own = plumb_user_code_frames(profile, rule, NULL);
	assert_non_null(own);
	return own;
}

/* Is the only function of the program at PATH yours? */
static bool
is_own(const char *path, const char *name, const char *file, const char *rule)
{
	struct world w = begin(path, false);
	struct plumb_profile profile;
	uint32_t frame = function(&w, name, file, file ? 7 : 0);
	unsigned char *own = finish(&w, &profile, rule);
	bool result = own[frame];

	free(own);
	plumb_profile_free(&profile);
	return result;
}

static void
test_files(void **state)
{
	static const char *const mine[] = {
		"/home/me/solver/step.cu",
		"/work/src/step.cpp",
		"/opt/app/src/step.cpp",
		"src/step.cpp",
		"step.c",
		"/home/me/include/field.h",
		"/root/go/src/github.com/me/solver/main.go",
		"/home/me/solver/src/main.rs",
		"/usr/local/src/solver/a.c",
		"/build/step.cpp",
		"/home/me/golang/main.go",
	};
	static const char *const theirs[] = {
		"/usr/include/c++/12/bits/stl_vector.h",
		"/usr/local/cuda-13.0/targets/x86_64-linux/include/cuda_runtime.h",
		"/opt/rocm/include/hip/hip_runtime.h",
		"/home/me/cutlass/include/cutlass/gemm/device/gemm.h",
		"/home/me/libtorch/include/ATen/ops/mm.h",
		"../sysdeps/nptl/libc_start_call_main.h",
		"./csu/libc-start.c",
		"/rustc/59807616e1fa/library/core/src/ops/function.rs",
		"library/std/src/rt.rs",
		"/home/me/.cargo/registry/src/index.crates.io-1/cudarc-0.1/src/lib.rs",
		"/usr/local/go/src/runtime/proc.go",
		"/root/sdk/go1.22.0/src/runtime/asm_amd64.s",
		"/home/me/go/pkg/mod/github.com/some/cuda@v1.0.0/cuda.go",
		"_cgo_gotypes.go",
		"<built-in>",
	};

	(void)state;
	for (size_t i = 0; i < sizeof mine / sizeof *mine; i++)
		if (!is_own("/home/me/solver/solver", "step", mine[i], NULL))
			fail_msg("%s is not yours", mine[i]);
	for (size_t i = 0; i < sizeof theirs / sizeof *theirs; i++)
		if (is_own("/home/me/solver/solver", "step", theirs[i], NULL))
			fail_msg("%s is yours", theirs[i]);
}

static void
test_objects_and_names(void **state)
{
	static const char *const theirs[] = {
		"/usr/lib/x86_64-linux-gnu/libfoo.so.1",
		"/lib64/libc.so.6",
		"/usr/local/cuda/lib64/libcublas.so.13",
		"/home/me/lib/libcudart.so.13",
		"/home/me/libtorch/lib/libtorch_cpu.so",
		"/home/me/env/lib/python3.11/site-packages/a.so",
		"/home/me/miniconda3/lib/libfoo.so",
		"/usr/bin/solver",
		"[vdso]",
	};
	static const char *const names[] = {
		"cudaLaunchKernel",
		"cuLaunchKernel",
		"hipMalloc",
		"__cudart836",
		"_start",
		"std::vector<int>::push_back(int&&)",
		"void at::native::f<float>()",
		"runtime.goexit",
		"solver+0x11a0",
		"main._Cfunc_launch",
		"__device_stub__step(int)",
		"libcudart_static_5382377d5c772c9d",
	};

	(void)state;
	assert_true(is_own("/home/me/solver", "step", NULL, NULL));
	assert_true(is_own("/usr/local/bin/solver", "step", NULL, NULL));
	assert_true(is_own("/home/me/build/libsolver.so", "cudaless", NULL, NULL));
	for (size_t i = 0; i < sizeof theirs / sizeof *theirs; i++)
		if (is_own(theirs[i], "step", NULL, NULL))
			fail_msg("a function of %s is yours", theirs[i]);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (is_own("/home/me/solver", names[i], NULL, NULL))
			fail_msg("%s is yours", names[i]);
}

static void
test_rule(void **state)
{
	(void)state;
	assert_true(is_own("/usr/bin/solver", "step", NULL, "+/usr/bin/solver"));
	assert_false(is_own("/home/me/solver", "step", NULL, "-/home/me"));
	assert_false(is_own("/home/me/solver", "step", "/home/me/step.c", "-/home/me/step.c"));
	assert_true(is_own("/home/me/solver", "step", "/usr/include/step.h", "+/usr/include"));
}

/* A runtime that is linked statically has no debug information; the stub of a kernel has. */
static void
test_what_is_linked_statically(void **state)
{
	struct world w = begin("/home/me/solver", false);
	struct plumb_profile profile;
	uint32_t step = function(&w, "step", "/home/me/step.cu", 7);
	uint32_t stub = function(&w, "_Z4axpyPf", "/home/me/step.cu", 3);
	uint32_t runtime = function(&w, "libcudart_static_1", NULL, 0);

	(void)state;
	plumb_builder_frame(w.builder, PLUMB_FRAME_KERNEL,
	                    plumb_builder_text(w.builder, "_Z4axpyPf"), PLUMB_NONE, 0);
	unsigned char *own = finish(&w, &profile, NULL);
	assert_true(own[step]);
	assert_false(own[stub]);
	assert_false(own[runtime]);
	free(own);
	plumb_profile_free(&profile);
}

/* What was inlined counts where the code around it is yours. */
static void
test_inlined(void **state)
{
	for (int yours = 0; yours < 2; yours++) {
		struct world w = begin(yours ? "/home/me/solver" : "/usr/lib/libfoo.so", false);
		struct plumb_builder *b = w.builder;
		struct plumb_profile profile;
		uint32_t step = function(&w, "step", "/home/me/step.cu", 7);
		uint32_t file = plumb_builder_text(b, "/home/me/field.h");
		uint32_t inlined = plumb_builder_frame(b, PLUMB_FRAME_INLINE,
		                                       plumb_builder_text(b, "relax"), file, 9);
		uint32_t other = plumb_builder_text(b, "/usr/include/c++/12/vector");
		uint32_t foreign = plumb_builder_frame(b, PLUMB_FRAME_INLINE,
		                                       plumb_builder_text(b, "size"), other, 5);

		plumb_builder_frame_source(b, inlined, file, 9);
		plumb_builder_frame_source(b, foreign, other, 5);
		uint32_t context = plumb_builder_context(b, 0, step, 0);
		context = plumb_builder_context(b, context, inlined, 0);
		plumb_builder_context(b, context, foreign, 0);
		unsigned char *own = finish(&w, &profile, NULL);
		assert_int_equal(own[step], yours);
		assert_int_equal(own[inlined], yours);
		assert_int_equal(own[foreign], 0);
		struct plumb_user_place place = plumb_user_place(&profile, inlined);
		assert_string_equal(place.file, "/home/me/field.h");
		assert_int_equal(place.line, 9);
		free(own);
		plumb_profile_free(&profile);
	}
	(void)state;
}

/* Where Python ran, its lines are those of your code. */
static void
test_beside_python(void **state)
{
	struct world w = begin("/home/me/ext.so", true);
	struct plumb_profile profile;
	uint32_t step = function(&w, "step", "/home/me/step.cu", 7);
	unsigned char *own = finish(&w, &profile, NULL);

	(void)state;
	assert_false(own[step]);
	free(own);
	plumb_profile_free(&profile);
}

static void
test_places(void **state)
{
	struct world w = begin("/home/me/solver", false);
	struct plumb_profile profile;
	char text[200];
	uint32_t line = function(&w, "step", "/home/me/step.cu", 7);
	uint32_t plain = function(&w, "relax(float*, int)", NULL, 0);
	uint32_t split = function(&w, "smooth.isra.0", NULL, 0);
	uint32_t method = function(&w, "main.(*Field).Relax", NULL, 0);
	static const char *const wanted[] = { "step.cu:7", "relax in solver", "smooth in solver",
		                              "main.(*Field).Relax in solver" };
	const uint32_t frames[] = { line, plain, split, method };
	unsigned char *own = finish(&w, &profile, NULL);

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct plumb_user_place place = plumb_user_place(&profile, frames[i]);
		assert_string_equal(plumb_user_place_text(&place, false, text, sizeof text),
		                    wanted[i]);
	}
	free(own);
	plumb_profile_free(&profile);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files),   cmocka_unit_test(test_objects_and_names),
		cmocka_unit_test(test_rule),    cmocka_unit_test(test_what_is_linked_statically),
		cmocka_unit_test(test_inlined), cmocka_unit_test(test_beside_python),
		cmocka_unit_test(test_places),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
