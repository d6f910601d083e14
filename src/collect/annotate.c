/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entry point of include/plumb/annotate.h and of Python's plumb.span. The functions of the
 * table are for the program, so nothing that they are given is trusted to be there.
 */
#define plumb_name plumb_annotate_name /* the collector has a plumb_name of its own */
#include <plumb/annotate.h>
#undef plumb_name

#include "collect/object.h"
#include "collect/process.h"
#include "collect/range.h"
#include "collect/user_metric.h"

/* Ranges of its own: what NVTX pops is what NVTX pushed. */
static const struct plumb_range_domain domain = { .bytes = 0 };

static const char *
or_none(const char *name)
{
	return name && *name ? name : "?";
}

static void
annotate_push(const char *name)
{
	if (plumb_process_wanted())
		plumb_ranges_push(&domain, or_none(name), NULL);
}

static void
annotate_pop(void)
{
	if (plumb_process_wanted())
		plumb_ranges_pop(&domain);
}

static void
annotate_pop_named(const char *name)
{
	if (plumb_process_wanted())
		plumb_ranges_pop_named(&domain, or_none(name));
}

static void
annotate_mark(const char *name)
{
	if (plumb_process_wanted())
		plumb_ranges_mark(&domain, or_none(name), NULL);
}

static void
annotate_metric(const char *name, int64_t value)
{
	if (plumb_process_wanted())
		plumb_user_metric(or_none(name), value);
}

static int
annotate_name(const void *pointer, uint64_t bytes, const char *name)
{
	return plumb_process_wanted() &&
	       plumb_object_named((uintptr_t)pointer, bytes, or_none(name));
}

PLUMB_EXPORT const struct plumb_annotate *plumb_annotate_v1(void);

const struct plumb_annotate *
plumb_annotate_v1(void)
{
	static const struct plumb_annotate table = {
		.size = sizeof table,
		.version = 1,
		.push = annotate_push,
		.pop = annotate_pop,
		.mark = annotate_mark,
		.metric = annotate_metric,
		.pop_named = annotate_pop_named,
		.name = annotate_name,
	};
	return &table;
}
