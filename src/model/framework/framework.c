/* SPDX-License-Identifier: Apache-2.0 */
#include "model/framework/framework.h"

#include <string.h>
#include <strings.h>

#include "model/framework/registry.h"

typedef const struct plumb_framework_names *const framework;

/* In the order in which they are asked. */
static framework frameworks[] = {
	&plumb_framework_pytorch,
	&plumb_framework_tensorflow,
	&plumb_framework_jax,
	NULL,
};

/* ---- text ---- */

static bool
begins_with(const char *text, const char *with)
{
	return with && !strncmp(text, with, strlen(with));
}

static bool
ends_with(const char *text, const char *with)
{
	size_t length = strlen(text), part = strlen(with);

	return length >= part && !strcmp(text + length - part, with);
}

bool
plumb_name_fits(const char *text, const char *pattern, size_t bytes)
{
	for (; bytes && *pattern != '*'; text++, pattern++, bytes--)
		if (*text != *pattern)
			return false;
	if (!bytes)
		return !*text;
	for (;; text++) { /* at a "*": any rest that fits what is behind it */
		if (plumb_name_fits(text, pattern + 1, bytes - 1))
			return true;
		if (!*text)
			return false;
	}
}

static bool
fits_pattern(const char *text, const char *pattern)
{
	return plumb_name_fits(text, pattern, strlen(pattern));
}

/* ---- whose profile it is ---- */

static const char *
version_told(const struct plumb_profile *profile, const struct plumb_framework_names *f)
{
	return f->version_key ? plumb_profile_environment(profile, f->version_key) : NULL;
}

const struct plumb_framework_names *
plumb_framework_find(const struct plumb_profile *profile)
{
	const char *format = plumb_profile_environment(profile, "import.format");

	for (framework *f = frameworks; *f; f++)
		if (version_told(profile, *f) ||
		    (format && (*f)->format && !strcmp(format, (*f)->format)))
			return *f;
	return NULL;
}

const struct plumb_framework_names *
plumb_framework_of_operators(const struct plumb_profile *p)
{
	for (uint32_t i = 0; i < p->frames_count; i++) {
		const char *name = plumb_text(p, p->frames[i].name);

		if (!name || p->frames[i].kind != PLUMB_FRAME_OPERATOR)
			continue;
		for (framework *f = frameworks; *f; f++)
			if (begins_with(name, (*f)->operators) ||
			    ((*f)->engine_part && strstr(name, (*f)->engine_part)))
				return *f;
	}
	return NULL;
}

const char *
plumb_framework_version(const struct plumb_profile *profile)
{
	for (framework *f = frameworks; *f; f++) {
		const char *version = version_told(profile, *f);

		if (version)
			return version;
	}
	return NULL;
}

/* ---- operators and kernels ---- */

const struct plumb_framework_operator *
plumb_framework_operator(const char *name)
{
	for (framework *f = frameworks; *f; f++) {
		if (!name || !begins_with(name, (*f)->operators))
			continue;
		const char *base = name + strlen((*f)->operators);
		for (const struct plumb_framework_operator *row = (*f)->operator_rows;
		     row && row->name; row++)
			if (fits_pattern(base, row->name))
				return row;
	}
	return NULL;
}

const char *
plumb_framework_operator_base(const char *name)
{
	for (framework *f = frameworks; *f; f++)
		if (name && begins_with(name, (*f)->operators))
			return name + strlen((*f)->operators);
	return NULL;
}

/* Is PART, in lower case, in the first BYTES of NAME, in any case? */
static bool
has_part(const char *name, size_t bytes, const char *part)
{
	size_t length = strlen(part);

	for (size_t i = 0; i + length <= bytes; i++)
		if (!strncasecmp(name + i, part, length))
			return true;
	return false;
}

enum plumb_work_kind
plumb_work_by_parts(const struct plumb_framework_part *parts, const char *name)
{
	const char *angle = strchr(name, '<');
	size_t bytes = angle && angle > name ? (size_t)(angle - name) : strlen(name);

	for (; parts && parts->part; parts++)
		if (has_part(name, bytes, parts->part))
			return parts->kind;
	return PLUMB_WORK_OTHER;
}

enum plumb_work_kind
plumb_framework_work(const char *name)
{
	const struct plumb_framework_operator *row = plumb_framework_operator(name);
	enum plumb_work_kind kind = row ? row->kind : PLUMB_WORK_OTHER;

	if (!kind && plumb_framework_is_copy_kernel(name))
		kind = PLUMB_WORK_COPY;
	for (framework *f = frameworks; *f; f++)
		if (!kind)
			kind = plumb_work_by_parts((*f)->parts, name);
	return kind;
}

bool
plumb_framework_is_copy_kernel(const char *name)
{
	for (framework *f = frameworks; *f; f++)
		if ((*f)->copy_kernel && strcasestr(name, (*f)->copy_kernel))
			return true;
	return false;
}

bool
plumb_framework_is_path(const char *name)
{
	for (framework *f = frameworks; *f; f++)
		if (begins_with(name, (*f)->paths))
			return true;
	return false;
}

bool
plumb_framework_is_generated(const char *kernel)
{
	for (framework *f = frameworks; *f; f++)
		if ((*f)->generated && fits_pattern(kernel, (*f)->generated))
			return true;
	return false;
}

const char *
plumb_framework_fused(const char *kernel)
{
	for (framework *f = frameworks; *f; f++) {
		const char *at =
			(*f)->fused && (*f)->generated && fits_pattern(kernel, (*f)->generated)
				? strstr(kernel, (*f)->fused)
				: NULL;

		if (at)
			return at + strlen((*f)->fused) - 1;
	}
	return NULL;
}

/* ---- ranges and functions ---- */

const char *
plumb_framework_step(const char *name)
{
	for (framework *f = frameworks; *f; f++)
		if (name && begins_with(name, (*f)->steps) &&
		    (!name[strlen((*f)->steps)] || name[strlen((*f)->steps)] == '#'))
			return (*f)->steps;
	return NULL;
}

enum plumb_purpose
plumb_framework_range(const char *name, size_t bytes)
{
	for (framework *f = frameworks; *f; f++)
		for (const struct plumb_framework_range *range = (*f)->ranges;
		     range && range->begins; range++) {
			size_t length = strlen(range->begins);

			if (bytes >= length && !memcmp(name, range->begins, length))
				return range->purpose;
		}
	return PLUMB_PURPOSE_NONE;
}

/* Whether FILE has PART, which begins with "/". Other tools cut off the folder of packages. */
static bool
holds_part(const char *file, const char *part)
{
	return strstr(file, part) || !strncmp(file, part + 1, strlen(part + 1));
}

enum plumb_purpose
plumb_framework_phase(const char *file, const char *name)
{
	const char *dot = strrchr(name, '.'), *function = dot ? dot + 1 : name;

	for (framework *f = frameworks; *f; f++)
		for (const struct plumb_framework_function *row = (*f)->phases; row && row->file;
		     row++)
			if (holds_part(file, row->file) &&
			    (!row->function || fits_pattern(function, row->function)))
				return row->purpose;
	return PLUMB_PURPOSE_NONE;
}

enum plumb_purpose
plumb_framework_place(const struct plumb_profile *p, uint32_t frame,
                      const struct plumb_framework_names **of)
{
	const char *file = plumb_text(p, p->frames[frame].file),
		   *name = plumb_text(p, p->frames[frame].name);

	if (!file || p->frames[frame].kind != PLUMB_FRAME_PYTHON)
		return PLUMB_PURPOSE_NONE;
	for (framework *f = frameworks; *f; f++)
		for (const struct plumb_framework_function *row = (*f)->places; row && row->file;
		     row++)
			if (ends_with(file, row->file) &&
			    (!row->function || (name && fits_pattern(name, row->function)))) {
				if (of)
					*of = *f;
				return row->purpose;
			}
	return PLUMB_PURPOSE_NONE;
}

bool
plumb_framework_is_loss_class(const char *name)
{
	for (framework *f = frameworks; *f; f++)
		if (begins_with(name, (*f)->losses))
			return true;
	return false;
}

bool
plumb_framework_is_package(const char *name, size_t bytes)
{
	for (framework *f = frameworks; *f; f++)
		for (const char *at = (*f)->packages ? (*f)->packages : ""; *at;
		     at += strspn(at, " ")) {
			size_t length = strcspn(at, " ");

			if (length == bytes && !memcmp(at, name, bytes))
				return true;
			at += length;
		}
	return false;
}

/* ---- the backward pass ---- */

const char *
plumb_framework_node(const char *name)
{
	for (framework *f = frameworks; *f; f++)
		if (begins_with(name, (*f)->node))
			return name + strlen((*f)->node);
	return name;
}

bool
plumb_framework_is_backward(const char *name)
{
	for (framework *f = frameworks; *f; f++)
		if (begins_with(name, (*f)->engine[0]) || begins_with(name, (*f)->engine[1]))
			return true;
	return false;
}
