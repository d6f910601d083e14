/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/workload.h"

#include <stdlib.h>
#include <string.h>

#include "model/framework/framework.h"

/* So many layers are asked for shapes. */
#define LAYERS_MAX 16

/* A decimal number that ends where TEXT or a word does; 0 for others. */
static int64_t
number_at(const char *text)
{
	char *end;
	long long number;

	if (*text < '1' || *text > '9')
		return 0;
	number = strtoll(text, &end, 10);
	return (*end == '\0' || *end == ' ' || *end == '\'' || *end == '"') && number < 1000000000
	               ? number
	               : 0;
}

/* ---- batch size ---- */

/* The first size of what comes out, "(…) -> float32[64,10]", or without that of what goes in first.
 * 0: no tensor of two sizes or more. An embedding takes its table first. */
static int64_t
first_size(const char *shapes, const char *name)
{
	const char *arrow = strstr(shapes, "-> ");
	const char *at = arrow ? arrow + 3 : shapes + (*shapes == '(');
	const char *sizes = at + strcspn(at, "[,)( ");
	const struct plumb_framework_operator *row = plumb_framework_operator(name);
	char *end;

	if (*sizes != '[' || sizes == at || sizes[1] < '1' || sizes[1] > '9' ||
	    (!arrow && row && row->flags & PLUMB_OPERATOR_TABLE_FIRST))
		return 0;
	long long size = strtoll(sizes + 1, &end, 10);
	return *end == ',' && size < 1000000000 ? size : 0;
}

/* Of LAYER, or of the first operator in it that has shapes: 0 where its calls have several, -1
 * where nothing has. */
static int64_t
size_in(const struct plumb_layers *layers, const struct plumb_layer_row *layer)
{
	const struct plumb_profile *p = layers->profile;
	uint32_t at = p->contexts[layer->context].last;
	int64_t size = -1;

	for (uint32_t i = 0; i < p->variants_count; i++) {
		const struct plumb_variant *v = &p->variants[i];
		if (v->shapes == PLUMB_NONE || v->context < layer->context || v->context > at ||
		    (p->contexts[v->context].flags & PLUMB_CONTEXT_BACKWARD))
			continue;
		int64_t own = first_size(plumb_text(p, v->shapes),
		                         plumb_text(p, plumb_context_frame(p, v->context)->name));
		size = v->context == at && size >= 0 && own != size ? 0 : own;
		at = v->context;
	}
	return size;
}

static int64_t
size_in_command(const struct plumb_profile *p)
{
	static const char *const options[] = { "--batch-size", "--batch_size", "--batch" };
	const char *command = plumb_text(p, p->run.command);

	for (size_t i = 0; command && i < sizeof options / sizeof *options; i++) {
		size_t length = strlen(options[i]);
		const char *at = strstr(command, options[i]);
		if (!at || (at[length] != '=' && at[length] != ' '))
			continue;
		int64_t size = number_at(at + length + 1);
		if (size)
			return size;
	}
	return 0;
}

int64_t
plumb_batch_size_of(const struct plumb_layers *layers, const char **source)
{
	int64_t size = -1;

	*source = "shapes";
	for (uint32_t i = 0; i < layers->count && i < LAYERS_MAX && size < 0; i++)
		size = size_in(layers, &layers->items[i]);
	if (size > 0)
		return size;
	*source = "trace";
	const char *told = plumb_profile_environment(layers->profile, "batch.size");
	size = told ? number_at(told) : 0;
	if (size)
		return size;
	*source = "command";
	size = size_in_command(layers->profile);
	if (!size)
		*source = NULL;
	return size;
}

/* ---- framework ---- */

const char *
plumb_framework_of(const struct plumb_profile *profile)
{
	const struct plumb_framework_names *framework = plumb_framework_find(profile);

	return framework ? framework->name : plumb_profile_environment(profile, "framework.name");
}

const char *
plumb_framework_version_of(const struct plumb_profile *profile)
{
	const char *version = plumb_framework_version(profile);

	return version ? version : plumb_profile_environment(profile, "framework.version");
}
