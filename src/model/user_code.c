/* SPDX-License-Identifier: Apache-2.0 */
#include "model/user_code.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "model/display.h"
#include "model/framework/framework.h"
#include "model/generated.h"
#include "model/user_native.h"

struct entry {
	bool own;
	const char *prefix;
	size_t length;
};

struct plumb_user_code {
	char *rule; /* what the prefixes lie in */
	PLUMB_VEC(const char *) programs;
	size_t count;
	struct entry entries[];
};

/* ---- the rule ---- */

struct plumb_user_code *
plumb_user_code_new(const char *rule, struct plumb_error *error)
{
	size_t most = 1;
	for (const char *at = rule; at && *at; at++)
		most += *at == ':';
	struct plumb_user_code *user_code =
		calloc(1, sizeof *user_code + most * sizeof *user_code->entries);
	if (user_code)
		user_code->rule = strdup(rule ? rule : "");
	if (!user_code || !user_code->rule) {
		free(user_code);
		plumb_fail_memory(error, NULL);
		return NULL;
	}
	char *rest = user_code->rule;
	for (char *text; (text = strsep(&rest, ":"));) {
		if (!*text)
			continue;
		if (*text != '+' && *text != '-') {
			plumb_fail(error, PLUMB_EUSAGE,
			           "\"%s\" says neither + nor -: write +%s if files there are your "
			           "own code, else -%s",
			           text, text, text);
			plumb_user_code_free(user_code);
			return NULL;
		}
		struct entry *entry = &user_code->entries[user_code->count++];
		*entry = (struct entry){ *text == '+', text + 1, strlen(text + 1) };
		while (entry->length > 1 && entry->prefix[entry->length - 1] == '/')
			entry->length--;
	}
	return user_code;
}

void
plumb_user_code_free(struct plumb_user_code *user_code)
{
	if (!user_code)
		return;
	plumb_vec_free(&user_code->programs);
	free(user_code->rule);
	free(user_code);
}

static bool
is_under(const char *file, const struct entry *entry)
{
	if (strncmp(file, entry->prefix, entry->length))
		return false;
	if (!entry->length || entry->prefix[entry->length - 1] == '/')
		return true;
	return file[entry->length] == 0 || file[entry->length] == '/';
}

/* ---- the default ---- */

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* What follows "3", "3.11", "311" or "3.13t" at TEXT; NULL when there is no such number. */
static const char *
after_version(const char *text, bool *dotted)
{
	if (!is_digit(*text))
		return NULL;
	while (is_digit(*text))
		text++;
	*dotted = text[0] == '.' && is_digit(text[1]);
	if (*dotted)
		for (text++; is_digit(*text);)
			text++;
	return *text == 't' ? text + 1 : text;
}

static bool
is_name(const char *component, size_t length, const char *name)
{
	return strlen(name) == length && !memcmp(component, name, length);
}

/* COMPONENT, which follows a folder named lib or not, begins a standard library. */
static bool
is_standard_library(const char *component, size_t length, bool in_lib)
{
	const char *rest = NULL;
	bool dotted = false;
	if (length > 6 && !strncmp(component, "python", 6))
		rest = after_version(component + 6, &dotted);
	else if (length > 4 && !strncmp(component, "pypy", 4))
		rest = after_version(component + 4, &dotted);
	if (!rest)
		return false;
	size_t left = length - (size_t)(rest - component);
	return (in_lib && dotted && !left) || is_name(rest, left, ".zip");
}

/* PyTorch's profiler cuts what Python searches for modules off every file: what is left of a
 * package's file begins with the package. */
static bool
is_cut_library(const char *file)
{
	static const char *const packages[] = {
		"transformers", "accelerate",      "diffusers", "deepspeed",  "triton",
		"numpy",        "pandas",          "scipy",     "sklearn",    "timm",
		"xformers",     "flash_attn",      "vllm",      "sglang",     "datasets",
		"tokenizers",   "huggingface_hub", "tqdm",      "PIL",        "IPython",
		"ipykernel",    "tornado",         "asyncio",   "concurrent", "multiprocessing",
		"importlib",    "collections",     "ctypes",    "encodings",  "json",
		"logging",      "unittest",        "urllib",    "email",      "http",
		"xml",          "torchmetrics",    "peft",      "trl",        "torch_geometric",
	};
	static const char *const modules[] = {
		"abc.py",      "codecs.py",     "contextlib.py", "copy.py",      "dataclasses.py",
		"enum.py",     "functools.py",  "inspect.py",    "os.py",        "pickle.py",
		"queue.py",    "random.py",     "re.py",         "runpy.py",     "selectors.py",
		"socket.py",   "subprocess.py", "tempfile.py",   "threading.py", "typing.py",
		"warnings.py", "weakref.py",
	};
	size_t length = strcspn(file, "/");
	if (file[length] && plumb_framework_is_package(file, length))
		return true;
	if (file[length])
		for (size_t i = 0; i < sizeof packages / sizeof *packages; i++)
			if (is_name(file, length, packages[i]))
				return true;
	for (size_t i = 0; !file[length] && i < sizeof modules / sizeof *modules; i++)
		if (is_name(file, length, modules[i]))
			return true;
	return false;
}

/* What a person types has no file. Other names in angle brackets are code that a package made. */
static bool
is_typed(const char *file)
{
	return !strcmp(file, "<stdin>") || !strcmp(file, "<console>") ||
	       !strncmp(file, "<ipython", 8) || !strncmp(file, "<python-input", 13);
}

const char *
plumb_user_code_package(const char *file, bool *standard)
{
	bool in_lib = false;
	const char *rest = NULL;

	*standard = false;
	for (const char *at = file; *at;) {
		size_t length = strcspn(at, "/");
		bool folder = at[length] == '/', packages;

		packages = is_name(at, length, "site-packages") ||
		           is_name(at, length, "dist-packages");
		if (folder && (packages || is_standard_library(at, length, in_lib))) {
			rest = at + length + strspn(at + length, "/");
			*standard = !packages;
		}
		in_lib = is_name(at, length, "lib") || is_name(at, length, "lib64");
		at += length;
		at += strspn(at, "/");
	}
	return rest ? rest : is_cut_library(file) ? file : NULL;
}

/* ---- programs ---- */

int
plumb_user_code_program(struct plumb_user_code *user_code, const char *file)
{
	const char **program;

	for (uint32_t i = 0; i < user_code->programs.count; i++)
		if (!strcmp(user_code->programs.items[i], file))
			return 0;
	program = plumb_vec_add(&user_code->programs);
	if (!program)
		return PLUMB_ESYSTEM;
	*program = file;
	return 0;
}

static bool
is_program(const struct plumb_user_code *user_code, const char *file)
{
	for (uint32_t i = 0; i < user_code->programs.count; i++)
		if (!strcmp(user_code->programs.items[i], file))
			return true;
	return false;
}

/* Does FILE lie with a program, in a folder that is not there for everybody's temporary files? */
static bool
is_beside_program(const struct plumb_user_code *user_code, const char *file)
{
	for (uint32_t i = 0; i < user_code->programs.count; i++) {
		const char *program = user_code->programs.items[i], *slash = strrchr(program, '/');
		size_t folder = slash ? (size_t)(slash - program) + 1 : 0;

		if (folder > plumb_generated_temporary(program) && !strncmp(file, program, folder))
			return true;
	}
	return false;
}

static bool
is_own_by_default(const struct plumb_user_code *user_code, const char *file)
{
	bool standard;

	if (*file == '<')
		return is_typed(file) || is_program(user_code, file);
	if (plumb_user_code_package(file, &standard))
		return false;
	switch (plumb_generated_file(file)) {
	case PLUMB_GENERATED_NAME:
		return is_program(user_code, file);
	case PLUMB_GENERATED_FOLDER:
		return is_program(user_code, file) || is_beside_program(user_code, file);
	case PLUMB_NOT_GENERATED:
		break;
	}
	return true;
}

int
plumb_user_code_said(const struct plumb_user_code *user_code, const char *file)
{
	for (size_t i = user_code->count; i-- > 0;)
		if (is_under(file, &user_code->entries[i]))
			return user_code->entries[i].own;
	return -1;
}

bool
plumb_user_code_file(const struct plumb_user_code *user_code, const char *file)
{
	if (!file || !*file)
		return false;
	int said = plumb_user_code_said(user_code, file);
	return said >= 0 ? said : is_own_by_default(user_code, file);
}

/* Inductor makes this function from a text to launch a Triton kernel. You did not type it. */
static bool
is_launcher(const struct plumb_profile *profile, const struct plumb_frame *frame)
{
	const char *file = plumb_text(profile, frame->file),
		   *name = plumb_text(profile, frame->name);

	return file && name && !strcmp(file, "<string>") && !strcmp(name, "launcher");
}

/* ---- which programs were started ---- */

static bool
ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), tail = strlen(end);

	return length >= tail && !strcmp(text + length - tail, end);
}

/* Python's own way to start a program that is named as a module (python -m). */
static bool
starts_modules(const char *file)
{
	return !strcmp(file, "<frozen runpy>") || ends_with(file, "/runpy.py") ||
	       !strcmp(file, "runpy.py");
}

/* multiprocessing starts workers with a text. Nobody typed that. */
static bool
starts_workers(const char *file)
{
	return ends_with(file, "multiprocessing/spawn.py") ||
	       ends_with(file, "multiprocessing/forkserver.py") ||
	       ends_with(file, "multiprocessing/resource_tracker.py");
}

enum { OUTSIDE, INSIDE, TYPED, MADE };

/* Files with a module's code (`<module>`) that no other Python code runs are the programs that were
 * started. Of a text (`python -c`), what it calls tells who made it. */
static int
find_programs(const struct plumb_profile *p, struct plumb_user_code *user_code)
{
	/* By context: INSIDE Python code; for the outermost frame of a text TYPED or MADE. */
	unsigned char *inside = calloc(p->contexts_count + (size_t)1, 1);
	int code = inside ? 0 : PLUMB_ESYSTEM;

	for (uint32_t c = 1; !code && c < p->contexts_count; c++) {
		const struct plumb_frame *frame = plumb_context_frame(p, c);
		unsigned char *above = &inside[p->contexts[c].parent];
		const char *name = plumb_text(p, frame->name);
		const char *file =
			frame->kind == PLUMB_FRAME_PYTHON ? plumb_text(p, frame->file) : NULL;
		bool module = name && !strcmp(name, "<module>");

		if (file && *above == TYPED && starts_workers(file))
			*above = MADE;
		inside[c] = *above || (file && !starts_modules(file)) ? INSIDE : OUTSIDE;
		if (!file || *above || !module)
			continue;
		if (!strcmp(file, "<string>"))
			inside[c] = TYPED;
		else if (*file != '<')
			code = plumb_user_code_program(user_code, file);
	}
	for (uint32_t c = 1; !code && c < p->contexts_count; c++)
		if (inside[c] == TYPED)
			code = plumb_user_code_program(user_code, "<string>");
	free(inside);
	return code;
}

unsigned char *
plumb_user_code_frames(const struct plumb_profile *profile, const char *rule,
                       struct plumb_error *error)
{
	struct plumb_user_code *user_code = plumb_user_code_new(rule, error);
	if (!user_code)
		return NULL;
	unsigned char *own = calloc((size_t)profile->frames_count + 1, 1);
	if (!own || find_programs(profile, user_code) < 0) {
		free(own);
		own = NULL;
		plumb_fail_memory(error, NULL);
	}
	for (uint32_t i = 0; own && i < profile->frames_count; i++)
		own[i] = profile->frames[i].kind == PLUMB_FRAME_PYTHON &&
		         !is_launcher(profile, &profile->frames[i]) &&
		         plumb_user_code_file(user_code,
		                              plumb_text(profile, profile->frames[i].file));
	if (own && !plumb_user_native(profile, user_code, own)) {
		plumb_fail_memory(error, NULL);
		free(own);
		own = NULL;
	}
	plumb_user_code_free(user_code);
	return own;
}

struct plumb_user_place
plumb_user_place(const struct plumb_profile *profile, uint32_t frame)
{
	struct plumb_user_place place = { 0 };
	const struct plumb_frame *f;

	if (frame >= profile->frames_count)
		return place;
	f = &profile->frames[frame];
	place.file = plumb_text(profile, f->file);
	place.line = f->line;
	if (f->kind != PLUMB_FRAME_NATIVE && f->kind != PLUMB_FRAME_INLINE)
		return place;
	place.file = plumb_text(profile, f->source_file);
	place.line = f->source_line;
	if (place.file && place.line)
		return place;
	place.function = plumb_frame_label(profile, frame);
	place.line = 0;
	for (uint32_t i = 0; !place.file && i < profile->code_objects_count; i++)
		if (profile->code_objects[i].build_id == f->file ||
		    profile->code_objects[i].path == f->file)
			place.file = plumb_text(profile, profile->code_objects[i].path);
	return place;
}

/* How many bytes of a function's NAME a person wrote: compilers add ".isra.0" and the like. */
static size_t
written_bytes(const char *name)
{
	static const char *const added[] = { ".isra.", ".constprop.", ".part.", ".cold",
		                             ".lto_priv." };
	size_t length = plumb_name_without_parameters(name);

	for (size_t i = 0; i < sizeof added / sizeof *added; i++) {
		const char *at = strstr(name, added[i]);
		if (at && at > name && (size_t)(at - name) < length)
			length = (size_t)(at - name);
	}
	return length;
}

char *
plumb_user_place_text(const struct plumb_user_place *place, bool whole, char *text, size_t size)
{
	const char *file = place->file ? place->file : "?", *slash = strrchr(file, '/');

	if (!whole && slash && slash[1])
		file = slash + 1;
	if (place->function)
		snprintf(text, size, "%.*s in %s", (int)written_bytes(place->function),
		         place->function, file);
	else if (place->line)
		snprintf(text, size, "%s:%" PRIu32, file, place->line);
	else
		snprintf(text, size, "%s", file);
	return text;
}
