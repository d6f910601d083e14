/* SPDX-License-Identifier: Apache-2.0 */
/* What differs between the machines, programs and versions of two sides. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/diff/diff_private.h"

/* What says no more than that a run is another one. */
static const char *const of_each_run[] = { "run.started",    "run.output",
	                                   "run.folder",     "import.files",
	                                   "profiler.steps", "session.start_utc_ns",
	                                   "trace.base_ns",  "profiler.gpu_steps",
	                                   "torch.library",  "plumb.recorded_ns" };

struct saying {
	const char *key;
	char *value;
	bool after;
};

typedef PLUMB_VEC(struct saying) sayings;

static bool
add_saying(sayings *list, const char *key, const char *value, bool after)
{
	struct saying *s;

	for (size_t i = 0; i < sizeof of_each_run / sizeof *of_each_run; i++)
		if (!strcmp(key, of_each_run[i]))
			return true;
	s = plumb_vec_add(list);
	if (s)
		*s = (struct saying){ key, strdup(value), after };
	return s && s->value;
}

/* "2 × NVIDIA H200", of each name that devices have. */
static bool
say_devices(sayings *list, const struct plumb_profile *p, bool after)
{
	for (uint32_t d = 0; d < p->devices_count; d++) {
		const char *name = plumb_text(p, p->devices[d].name);
		uint32_t count = 0, earlier = 0;
		char text[300];

		for (uint32_t i = 0; i < p->devices_count; i++)
			if (p->devices[i].name == p->devices[d].name) {
				count++;
				earlier += i < d;
			}
		if (earlier)
			continue;
		snprintf(text, sizeof text, "%" PRIu32 " \xc3\x97 %s", count,
		         name ? name : "unnamed");
		if (!add_saying(list, "gpu.devices", text, after))
			return false;
	}
	return true;
}

static bool
say_all(sayings *list, const struct plumb_profile *p, bool after)
{
	const char *version = plumb_text(p, p->run.tool_version);
	bool said = false, ok = true;
	char text[40];

	for (uint32_t i = 0; ok && i < p->environment_count; i++) {
		const char *key = plumb_text(p, p->environment[i].key);
		const char *value = plumb_text(p, p->environment[i].value);

		said |= key && !strcmp(key, "plumb.version");
		if (key && value)
			ok = add_saying(list, key, value, after);
	}
	if (ok && !said && version)
		ok = add_saying(list, "plumb.version", version, after);
	snprintf(text, sizeof text, "%" PRIu32, p->processes_count);
	return ok && add_saying(list, "run.processes", text, after) && say_devices(list, p, after);
}

static int
by_key(const void *x, const void *y)
{
	const struct saying *a = x, *b = y;
	int order = strcmp(a->key, b->key);

	if (!order)
		order = (int)a->after - (int)b->after;
	return order ? order : strcmp(a->value, b->value);
}

/* Puts VALUE behind what *LIST has. */
static bool
append_value(char **list, const char *value)
{
	size_t used = *list ? strlen(*list) : 0, bytes = strlen(value);
	char *grown = realloc(*list, used + bytes + 3);

	if (!grown)
		return false;
	if (used) {
		memcpy(grown + used, ", ", 2);
		used += 2;
	}
	memcpy(grown + used, value, bytes + 1);
	*list = grown;
	return true;
}

static bool
gather_facts(const sayings *list, struct plumb_diff_environment *environment)
{
	bool ok = true;

	for (uint32_t i = 0, end; ok && i < list->count; i = end) {
		struct plumb_diff_fact fact = { .key = list->items[i].key };

		for (end = i; ok && end < list->count; end++) {
			const struct saying *s = &list->items[end];
			bool again = end > i && s->after == s[-1].after &&
			             !strcmp(s->value, s[-1].value);

			if (strcmp(s->key, fact.key))
				break;
			if (!again)
				ok = append_value(s->after ? &fact.after : &fact.before, s->value);
		}
		if (ok && (!fact.before || !fact.after || strcmp(fact.before, fact.after))) {
			environment->facts[environment->count++] = fact;
			continue;
		}
		free(fact.before);
		free(fact.after);
	}
	return ok;
}

int
plumb_diff_environment(const struct plumb_diff *diff, struct plumb_diff_environment *environment,
                       struct plumb_error *error)
{
	sayings list = { 0 };
	bool ok = true;

	*environment = (struct plumb_diff_environment){ 0 };
	for (uint32_t r = 0; ok && r < diff->count; r++)
		ok = say_all(&list, diff->runs[r].profile, r >= diff->before);
	if (ok) {
		if (list.count)
			qsort(list.items, list.count, sizeof *list.items, by_key);
		environment->facts = calloc(list.count + (size_t)1, sizeof *environment->facts);
		ok = environment->facts && gather_facts(&list, environment);
	}
	for (uint32_t i = 0; i < list.count; i++)
		free(list.items[i].value);
	plumb_vec_free(&list);
	return ok ? 0 : diff_no_memory(error);
}

void
plumb_diff_environment_free(struct plumb_diff_environment *environment)
{
	for (uint32_t i = 0; i < environment->count; i++) {
		free(environment->facts[i].before);
		free(environment->facts[i].after);
	}
	free(environment->facts);
	*environment = (struct plumb_diff_environment){ 0 };
}
