/* SPDX-License-Identifier: Apache-2.0 */
#include "model/user_native.h"

#include <stdlib.h>
#include <string.h>

/* What is known of a program or library. */
enum object_state {
	UNSEEN,
	FOREIGN,
	YOURS,          /* by its path */
	YOURS_BY_LINES, /* and functions of it have source files of yours */
};

struct natives {
	const struct plumb_profile *profile;
	const struct plumb_user_code *rule;
	unsigned char *state; /* by code object: enum object_state */
	uint32_t *object;     /* by native frame: its code object, or PLUMB_NONE */
	unsigned char
		*inside; /* by frame of an inlined function: is it within an object of yours? */
	bool has_python;
};

/* ---- files ---- */

static bool
begins(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

static bool
begins_with_any(const char *text, const char *const *prefixes)
{
	for (; *prefixes; prefixes++)
		if (begins(text, *prefixes))
			return true;
	return false;
}

/* Folders of installed packages, by components of a path. */
static bool
is_in_package(const char *path)
{
	static const char *const folders[] = {
		"/site-packages/", "/dist-packages/", "/.cargo/registry/", "/.cargo/git/",
		"/.rustup/",       "/pkg/mod/",       "/miniconda",        "/anaconda",
		"/miniforge",      "/mambaforge",     "/conda/",           "/envs/",
		"/.julia/",        "/vcpkg/",         "/.conan/",          NULL,
	};

	for (const char *const *folder = folders; *folder; folder++)
		if (strstr(path, *folder))
			return true;
	return false;
}

static bool
is_of_system(const char *path)
{
	static const char *const folders[] = {
		"/lib/",      "/lib32/",       "/lib64/",    "/bin/",      "/sbin/",
		"/usr/",      "/nix/store/",   "/snap/",     "/opt/cuda",  "/opt/rocm",
		"/opt/intel", "/opt/nvidia",   "/opt/conda", "/opt/cray/", "/opt/homebrew/",
		"[",          "linux-vdso.so", NULL,
	};
	static const char *const yours[] = {
		"/usr/local/bin/", "/usr/local/src/", "/usr/src/", "/usr/home/", NULL,
	};

	return (begins_with_any(path, folders) && !begins_with_any(path, yours)) ||
	       is_in_package(path);
}

/* By the name of its file. */
static bool
is_known_library(const char *path)
{
	static const char *const names[] = {
		"libc.so",
		"libc-",
		"libm.so",
		"libpthread",
		"libdl.so",
		"librt.so",
		"ld-",
		"libstdc++",
		"libc++",
		"libgcc_s",
		"libgomp",
		"libomp",
		"libiomp",
		"libtbb",
		"libcuda",
		"libcudart",
		"libcublas",
		"libcudnn",
		"libcufft",
		"libcusparse",
		"libcusolver",
		"libcurand",
		"libcutensor",
		"libcupti",
		"libnccl",
		"libnv",
		"libnpp",
		"libtorch",
		"libc10",
		"libmkl",
		"libopenblas",
		"libblas",
		"liblapack",
		"libmpi",
		"libopen-",
		"libucp",
		"libucs",
		"libuct",
		"libfabric",
		"libhip",
		"libamdhip",
		"libhsa",
		"libroc",
		"librccl",
		"libMIOpen",
		"libze_",
		"libsycl",
		"libOpenCL",
		"libonnxruntime",
		"libtensorflow",
		"libjulia",
		"libLLVM",
		"libpython",
		NULL,
	};
	const char *slash = strrchr(path, '/');

	return begins_with_any(slash ? slash + 1 : path, names);
}

/* "…/go/src/runtime/proc.go": Go's own packages have no dot in the name of their first folder. */
static bool
is_of_go(const char *file)
{
	const char *at = strstr(file, "/src/");
	const char *name = at;
	size_t bytes = strlen(file);

	if (!at || bytes < 3 || (strcmp(file + bytes - 3, ".go") && strcmp(file + bytes - 2, ".s")))
		return false;
	while (name > file && name[-1] != '/')
		name--;
	at += 5;
	return begins(name, "go") && strchr(at, '/') &&
	       !memchr(at, '.', (size_t)(strchr(at, '/') - at));
}

/* Headers of libraries that people keep beside their own code. */
static bool
is_known_header(const char *file)
{
	static const char *const folders[] = {
		"/cutlass/",     "/cute/",     "/thrust/",       "/cub/",
		"/ATen/",        "/c10/",      "/torch/",        "/Eigen/",
		"/boost/",       "/pybind11/", "/libcudacxx/",   "/Kokkos",
		"/include/c++/", "/cuda/std/", "/cuda/include/", "/targets/x86_64-linux/",
		"/nvidia/cu",    NULL,
	};

	for (const char *const *folder = folders; *folder; folder++)
		if (strstr(file, *folder))
			return true;
	return false;
}

bool
plumb_user_is_library_file(const char *file)
{
	return is_of_system(file) || is_known_header(file);
}

/* FILE has lines of yours. The compiler may have written it as it was told, without a folder. */
static bool
is_own_file(const struct natives *n, const char *file)
{
	int said = plumb_user_code_said(n->rule, file);

	if (said >= 0)
		return said;
	return *file && *file != '<' && !begins(file, "../") && !begins(file, "./") &&
	       !begins(file, "/rustc/") && !begins(file, "library/") && !begins(file, "_cgo_") &&
	       !strstr(file, "/_cgo_") && !plumb_user_is_library_file(file) && !is_of_go(file);
}

/* ---- names ---- */

/* "cudaMalloc", "hipLaunchKernel": a prefix and a capital. */
static bool
is_of_api(const char *name)
{
	static const char *const prefixes[] = {
		"cuda", "cu", "hip", "cublas", "cudnn", "nccl", NULL
	};

	for (const char *const *prefix = prefixes; *prefix; prefix++) {
		size_t length = strlen(*prefix);
		if (!strncmp(name, *prefix, length) && name[length] >= 'A' && name[length] <= 'Z')
			return true;
	}
	return false;
}

static bool
is_known_name(const char *name)
{
	static const char *const prefixes[] = {
		"__cuda",
		"cudart::",
		"__device_stub__",
		"__hip",
		"__libc_",
		"_start",
		"__GI_",
		"std::",
		"__gnu_cxx::",
		"__gnu_",
		"thrust::",
		"cub::",
		"cutlass::",
		"cute::",
		"at::",
		"c10::",
		"torch::",
		"caffe2::",
		"Eigen::",
		"boost::",
		"core::",
		"alloc::",
		"<core::",
		"<alloc::",
		"<std::",
		"runtime.",
		"runtime/",
		"syscall.",
		"internal/",
		"sync.",
		"_cgo_",
		"crosscall",
		"x_cgo_",
		"main._Cfunc",
		"[",
		"libcudart_static_", /* what nvcc links without asking */
		NULL,
	};

	if (begins(name, "void "))
		name += 5;
	return begins_with_any(name, prefixes) || is_of_api(name) || strstr(name, "._Cfunc_");
}

/* "prog+0x11a0", or the path of its file: nobody knows its name. */
static bool
is_unnamed(const char *name, const char *path)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	size_t length = strlen(base);

	return *name == '/' || (!strncmp(name, base, length) && !strncmp(name + length, "+0x", 3));
}

/* ---- objects ---- */

static bool
ran_python(const struct plumb_profile *p, uint32_t process)
{
	for (uint32_t i = 0; i < p->environment_count; i++) {
		const char *key = plumb_text(p, p->environment[i].key);
		if (p->environment[i].process == process && key && begins(key, "python."))
			return true;
	}
	return false;
}

static bool
is_same_object(const struct plumb_profile *p, uint32_t a, uint32_t b)
{
	const struct plumb_code_object *left = &p->code_objects[a], *right = &p->code_objects[b];

	return left->path == right->path && left->build_id == right->build_id;
}

/* The first row of each object stands for all its rows, one for each process. */
static void
judge_objects(struct natives *n)
{
	const struct plumb_profile *p = n->profile;

	for (uint32_t i = 0; i < p->code_objects_count; i++) {
		const struct plumb_code_object *object = &p->code_objects[i];
		const char *path = plumb_text(p, object->path);
		int said = path ? plumb_user_code_said(n->rule, path) : -1;
		uint32_t first = 0;
		bool foreign =
			!path || (said >= 0 ? !said : is_of_system(path) || is_known_library(path));

		if (n->has_python &&
		    (object->process >= p->processes_count || ran_python(p, object->process)))
			foreign = true;
		while (first < i && !is_same_object(p, first, i))
			first++;
		n->state[first] =
			foreign || (first < i && n->state[first] == FOREIGN) ? FOREIGN : YOURS;
	}
}

static uint32_t
object_of(const struct plumb_profile *p, const struct plumb_frame *frame)
{
	for (uint32_t i = 0; frame->file != PLUMB_NONE && i < p->code_objects_count; i++)
		if (p->code_objects[i].build_id == frame->file ||
		    p->code_objects[i].path == frame->file)
			return i;
	return PLUMB_NONE;
}

/* ---- frames ---- */

/* Names of kernels, so that their stubs are known. */
static void
collect_kernels(const struct plumb_profile *p, unsigned char *is_kernel)
{
	for (uint32_t f = 0; f < p->frames_count; f++)
		if (p->frames[f].kind == PLUMB_FRAME_KERNEL && p->frames[f].name < p->strings_count)
			is_kernel[p->frames[f].name] = 1;
}

/* Is the native frame F your code, as far as its object and its own name and file say? */
static bool
judge_frame(struct natives *n, const unsigned char *is_kernel, uint32_t f)
{
	const struct plumb_profile *p = n->profile;
	const struct plumb_frame *frame = &p->frames[f];
	const char *file = plumb_text(p, frame->source_file), *name = plumb_frame_label(p, f);
	uint32_t object = n->object[f];
	const char *path = object == PLUMB_NONE ? "" : plumb_text(p, p->code_objects[object].path);

	if (object == PLUMB_NONE ? n->has_python || !file : n->state[object] == FOREIGN)
		return false;
	if ((frame->name < p->strings_count && is_kernel[frame->name]) || is_known_name(name) ||
	    is_unnamed(name, path))
		return false;
	if (!file)
		return true;
	if (!is_own_file(n, file))
		return false;
	if (object != PLUMB_NONE)
		n->state[object] = YOURS_BY_LINES;
	return true;
}

/* Marks inlined functions that lie within objects of yours. */
static void
find_inside(struct natives *n)
{
	const struct plumb_profile *p = n->profile;

	for (uint32_t c = 0; c < p->contexts_count; c++) {
		uint32_t frame = p->contexts[c].frame, at = c;

		if (p->frames[frame].kind != PLUMB_FRAME_INLINE || n->inside[frame])
			continue;
		while (at && plumb_context_frame(p, at)->kind == PLUMB_FRAME_INLINE)
			at = p->contexts[at].parent;
		if (plumb_context_frame(p, at)->kind != PLUMB_FRAME_NATIVE)
			continue;
		uint32_t object = n->object[p->contexts[at].frame];
		n->inside[frame] =
			object == PLUMB_NONE ? !n->has_python : n->state[object] != FOREIGN;
	}
}

static void
judge_frames(struct natives *n, const unsigned char *is_kernel, unsigned char *own)
{
	const struct plumb_profile *p = n->profile;

	for (uint32_t f = 0; f < p->frames_count; f++)
		if (p->frames[f].kind == PLUMB_FRAME_NATIVE)
			n->object[f] = object_of(p, &p->frames[f]);
	for (uint32_t f = 0; f < p->frames_count; f++)
		if (p->frames[f].kind == PLUMB_FRAME_NATIVE)
			own[f] = judge_frame(n, is_kernel, f);
	find_inside(n);
	for (uint32_t f = 0; f < p->frames_count; f++) {
		const struct plumb_frame *frame = &p->frames[f];
		const char *file = plumb_text(p, frame->source_file);
		uint32_t object = n->object[f];

		if (frame->kind == PLUMB_FRAME_NATIVE && own[f] && !file && object != PLUMB_NONE)
			own[f] = n->state[object] == YOURS;
		if (frame->kind == PLUMB_FRAME_INLINE)
			own[f] = file && n->inside[f] && is_own_file(n, file) &&
			         !is_known_name(plumb_frame_label(p, f));
	}
}

/* What Python called: the Python line is the line of your code there. False: no memory. */
static bool
leave_out_called(const struct plumb_profile *p, unsigned char *own)
{
	unsigned char *under = calloc(p->contexts_count + 1u, 1);

	for (uint32_t c = 1; under && c < p->contexts_count; c++) {
		uint32_t kind = plumb_context_frame(p, c)->kind;

		under[c] = under[p->contexts[c].parent] || kind == PLUMB_FRAME_PYTHON;
		if (under[c] && kind != PLUMB_FRAME_PYTHON)
			own[p->contexts[c].frame] = 0;
	}
	bool ok = under != NULL;
	free(under);
	return ok;
}

static void
look_at_frames(const struct plumb_profile *p, bool *python, bool *native)
{
	for (uint32_t f = 0; f < p->frames_count; f++) {
		*python = *python || p->frames[f].kind == PLUMB_FRAME_PYTHON;
		*native = *native || p->frames[f].kind == PLUMB_FRAME_NATIVE;
	}
}

bool
plumb_user_native(const struct plumb_profile *profile, const struct plumb_user_code *user_code,
                  unsigned char *own)
{
	struct natives n = { .profile = profile, .rule = user_code };
	unsigned char *is_kernel;
	bool native = false, ok;

	look_at_frames(profile, &n.has_python, &native);
	if (!native)
		return true;
	n.state = calloc(profile->code_objects_count + 1u, 1);
	n.object = calloc(profile->frames_count + 1u, sizeof *n.object);
	n.inside = calloc(profile->frames_count + 1u, 1);
	is_kernel = calloc(profile->strings_count + 1u, 1);
	ok = n.state && n.object && n.inside && is_kernel;
	if (ok) {
		collect_kernels(profile, is_kernel);
		judge_objects(&n);
		judge_frames(&n, is_kernel, own);
		ok = !n.has_python || leave_out_called(profile, own);
	}
	free(n.state);
	free(n.object);
	free(n.inside);
	free(is_kernel);
	return ok;
}
