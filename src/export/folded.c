/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folded stacks, for flamegraph.pl, inferno, speedscope and the like: a line for each context with
 * a value of its own, "frame;frame;frame VALUE", outermost first, all tracks together.
 */
#include <inttypes.h>

#include "export/export.h"
#include "export/names.h"
#include "model/metric.h"

/* What of the path's text belongs to the first N frames, by N. */
struct path {
	struct plumb_export_text text;
	PLUMB_VEC(uint32_t) ends;
};

/* ';' separates frames and the end of a line ends a stack: no name may contain them. */
static void
clean_label(struct plumb_export_text *text, uint32_t from)
{
	for (uint32_t i = from; i < text->bytes.count; i++) {
		unsigned char *c = (unsigned char *)&text->bytes.items[i];
		if (*c == ';')
			*c = ':';
		else if (*c < 0x20 || *c == 0x7f)
			*c = ' ';
	}
}

/* Makes PATH the path of CONTEXT. Before, PATH is or begins with the path of its parent. */
static bool
descend_path(const struct plumb_profile *profile, uint32_t context, struct path *path)
{
	uint32_t depth = profile->contexts[context].depth, from;
	uint32_t *end;

	/* The root is no frame. */
	path->ends.count = depth ? depth - 1 : 0;
	path->text.bytes.count = path->ends.count ? path->ends.items[path->ends.count - 1] : 0;
	if (!depth)
		return true;
	if (!plumb_export_folds(profile, context)) {
		if (path->text.bytes.count)
			plumb_export_append(&path->text, ";");
		from = path->text.bytes.count;
		plumb_export_label(profile, context, &path->text);
		clean_label(&path->text, from);
	}
	end = plumb_vec_add(&path->ends);
	if (end)
		*end = path->text.bytes.count;
	return end && !path->text.failed;
}

static int
folded_write(const struct plumb_profile *profile, const struct plumb_export_options *options,
             FILE *out, struct plumb_error *error)
{
	uint32_t metric = options->metric ? options->metric : options->main;
	struct path path = { 0 };
	uint32_t at = 0;
	uint64_t lines = 0;
	bool memory = true;

	for (uint32_t context = 0; memory && context < profile->contexts_count && !ferror(out);
	     context++) {
		struct plumb_stat sum = { 0 };
		memory = descend_path(profile, context, &path);
		for (; at < profile->values_count && profile->values[at].context == context; at++) {
			const struct plumb_value *v = &profile->values[at];
			struct plumb_stat one = {
				v->sum, v->count, v->min, v->max, v->mean, v->m2
			};
			if (v->metric == metric)
				plumb_stat_merge(&sum, &one);
		}
		if (!memory || sum.sum <= 0)
			continue;
		if (path.text.bytes.count)
			fwrite(path.text.bytes.items, 1, path.text.bytes.count, out);
		else
			fputs("(outside any frame)", out);
		fprintf(out, " %" PRId64 "\n", sum.sum);
		lines++;
	}
	plumb_vec_free(&path.text.bytes);
	plumb_vec_free(&path.ends);
	if (!memory)
		return plumb_fail_memory(error, "to export the profile");
	if (!lines)
		return plumb_fail(error, PLUMB_EEMPTY,
		                  "there are no values of %s in this profile; choose another "
		                  "--metric",
		                  plumb_profile_metric(profile, metric).name);
	return 0;
}

const struct plumb_export_format plumb_export_folded = {
	.name = "folded",
	.metric = true,
	.write = folded_write,
};
