/* SPDX-License-Identifier: Apache-2.0 */
#include "model/window.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "model/window_cut.h"

#define VARIANTS 0.99 /* of the calls: windows have them */

/* ---- which there are ---- */

int
plumb_window_parse(const char *text, struct plumb_window_choice *choice, struct plumb_error *error)
{
	static const char *const names[] = { "all", "startup", "loop", "rest" };
	char *end;

	*choice = (struct plumb_window_choice){ 0 };
	for (uint32_t kind = 0; kind < sizeof names / sizeof *names; kind++) {
		if (strcmp(text, names[kind]) == 0) {
			choice->kind = kind;
			return PLUMB_OK;
		}
	}
	if (strncmp(text, "loop:", 5) == 0 && text[5] >= '1' && text[5] <= '9') {
		unsigned long number = strtoul(text + 5, &end, 10);
		if (!*end && number < PLUMB_NONE) {
			*choice =
				(struct plumb_window_choice){ PLUMB_WINDOW_LOOP, (uint32_t)number };
			return PLUMB_OK;
		}
	}
	return plumb_fail(error, PLUMB_EUSAGE,
	                  "%s is no window; choose all, startup, loop, loop:N (such as loop:1) or "
	                  "rest",
	                  text);
}

/* How long each window lasted, and from when to when; by window. */
struct extent {
	int64_t start, end, wall;
	uint32_t stretches;
};

static struct extent *
find_extents(const struct plumb_profile *profile)
{
	struct extent *extents = calloc((size_t)profile->windows_count + 1, sizeof *extents);

	for (uint32_t i = 0; extents && i < profile->window_stretches_count; i++) {
		const struct plumb_window_stretch *s = &profile->window_stretches[i];
		struct extent *e = &extents[s->window];
		if (!plumb_is_time(s->start_ns, s->end_ns))
			continue;
		if (!e->stretches || s->start_ns < e->start)
			e->start = s->start_ns;
		if (!e->stretches || s->end_ns > e->end)
			e->end = s->end_ns;
		if (__builtin_add_overflow(e->wall, s->end_ns - s->start_ns, &e->wall))
			e->wall = INT64_MAX;
		e->stretches++;
	}
	return extents;
}

static void
add_extent(struct plumb_window_sum *sum, const struct plumb_window *window,
           const struct extent *extent)
{
	if (!extent->stretches)
		return;
	if (!sum->stretches || extent->start < sum->start_ns)
		sum->start_ns = extent->start;
	if (!sum->stretches || extent->end > sum->end_ns)
		sum->end_ns = extent->end;
	if (!sum->stretches || extent->wall > sum->wall_ns) {
		sum->wall_ns = extent->wall;
		sum->stretches = extent->stretches;
	}
	/* A launcher has the window without iterations of its own. */
	if (window->iterations != PLUMB_UNKNOWN &&
	    (sum->iterations == PLUMB_UNKNOWN || extent->wall > sum->counted_ns)) {
		sum->iterations = window->iterations;
		sum->counted_ns = extent->wall;
	}
	if (sum->iterations == PLUMB_UNKNOWN)
		sum->iterations = window->iterations;
}

int
plumb_window_sums(const struct plumb_profile *profile, struct plumb_window_sums *sums)
{
	struct extent *extents = find_extents(profile);
	uint32_t count = profile->windows_count, used = 0;
	struct plumb_sort_item *items = malloc((2 * (size_t)count + 1) * sizeof *items);

	*sums = (struct plumb_window_sums){ .main = PLUMB_NONE };
	sums->items = calloc((size_t)count + 1, sizeof *sums->items);
	if (!extents || !items || !sums->items) {
		free(extents);
		free(items);
		return PLUMB_ESYSTEM;
	}
	for (uint32_t i = 0; i < count; i++) {
		const struct plumb_window *w = &profile->windows[i];
		if (w->kind != PLUMB_WINDOW_PART)
			items[used++] =
				(struct plumb_sort_item){ (uint64_t)w->kind << 32 | w->number, i };
	}
	plumb_sort(items, items + count, used);
	for (uint32_t i = 0; i < used; i++) {
		const struct plumb_window *w = &profile->windows[items[i].index];
		if (!i || items[i].key != items[i - 1].key)
			sums->items[sums->count++] = (struct plumb_window_sum){
				.kind = w->kind, .number = w->number, .iterations = PLUMB_UNKNOWN
			};
		add_extent(&sums->items[sums->count - 1], w, &extents[items[i].index]);
	}
	for (uint32_t i = 0; i < sums->count; i++)
		if (sums->items[i].kind == PLUMB_WINDOW_LOOP &&
		    (sums->main == PLUMB_NONE ||
		     sums->items[i].wall_ns > sums->items[sums->main].wall_ns))
			sums->main = i;
	free(extents);
	free(items);
	return PLUMB_OK;
}

void
plumb_window_sums_free(struct plumb_window_sums *sums)
{
	free(sums->items);
	*sums = (struct plumb_window_sums){ .main = PLUMB_NONE };
}

char *
plumb_window_name(const struct plumb_profile *profile, uint32_t kind, uint32_t number,
                  char text[PLUMB_WINDOW_NAME])
{
	static const char *const names[] = { "all", "startup", "loop", "rest", "part" };
	bool several = false;

	for (uint32_t i = 0; i < profile->windows_count; i++)
		several |= profile->windows[i].kind == PLUMB_WINDOW_LOOP &&
		           profile->windows[i].number > 1;
	if (kind == PLUMB_WINDOW_LOOP && number && (several || number > 1))
		snprintf(text, PLUMB_WINDOW_NAME, "loop:%u", number);
	else
		snprintf(text, PLUMB_WINDOW_NAME, "%s",
		         kind < sizeof names / sizeof *names ? names[kind] : "?");
	return text;
}

/* What there is instead: "startup, loop, rest". */
static int
fail_missing(const struct plumb_profile *profile, const struct plumb_window_choice *choice,
             const struct plumb_window_sums *sums, struct plumb_error *error)
{
	char list[400] = "", name[PLUMB_WINDOW_NAME], wanted[PLUMB_WINDOW_NAME];
	size_t used = 0;

	if (!sums->count)
		return plumb_fail(error, PLUMB_EEMPTY,
		                  "this profile has no windows: plumb found no loop, or another "
		                  "tool or an older plumb made it; leave out --window");
	for (uint32_t i = 0; i < sums->count && used + 2 * PLUMB_WINDOW_NAME < sizeof list; i++)
		used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "",
		                         plumb_window_name(profile, sums->items[i].kind,
		                                           sums->items[i].number, name));
	if (choice->number)
		snprintf(wanted, sizeof wanted, "loop:%u", choice->number);
	else
		plumb_window_name(profile, choice->kind, 0, wanted);
	return plumb_fail(error, PLUMB_EEMPTY, "this profile has no window %s; it has: %s", wanted,
	                  list);
}

/* What WINDOW, a window of PROFILE, is. */
static void
name_window(const struct plumb_profile *profile, const struct plumb_window_sums *sums,
            uint32_t which, struct plumb_profile *window)
{
	const struct plumb_window_sum *sum = &sums->items[which];

	window->window = (struct plumb_profile_window){
		.kind = sum->kind,
		.number = sum->number,
		.start_ns = sum->stretches ? sum->start_ns : PLUMB_UNKNOWN,
		.end_ns = sum->stretches ? sum->end_ns : PLUMB_UNKNOWN,
		.iterations = sum->iterations,
		.whole_ns = profile->run.wall_ns,
		.is_main = which == sums->main,
	};
	plumb_window_name(profile, sum->kind, sum->number, window->window.name);
}

bool
plumb_window_has_variants(const struct plumb_profile *profile)
{
	double whole = 0, known = 0;

	for (uint32_t i = 0; i < profile->variants_count; i++)
		whole += (double)profile->variants[i].count;
	for (uint32_t i = 0; i < profile->window_variants_count; i++)
		known += (double)profile->window_variants[i].variant.count;
	return known >= VARIANTS * whole;
}

/* CHOICE becomes one of SUMS, or PLUMB_NONE. */
static uint32_t
choose_sum(const struct plumb_window_sums *sums, const struct plumb_window_choice *choice)
{
	if (choice->kind == PLUMB_WINDOW_LOOP && !choice->number)
		return sums->main;
	for (uint32_t i = 0; i < sums->count; i++)
		if (sums->items[i].kind == choice->kind && sums->items[i].number == choice->number)
			return i;
	return PLUMB_NONE;
}

int
plumb_window_profile(const struct plumb_profile *profile, const struct plumb_window_choice *choice,
                     struct plumb_profile *window, struct plumb_error *error)
{
	struct plumb_window_sums sums;
	int code = plumb_window_sums(profile, &sums);

	*window = (struct plumb_profile){ 0 };
	if (code < 0) {
		code = plumb_fail_memory(error, "for a window");
	} else if (choice->kind == PLUMB_WINDOW_ALL) {
		code = plumb_window_cut(profile, NULL, window);
	} else {
		uint32_t which = choose_sum(&sums, choice);
		code = which == PLUMB_NONE ? fail_missing(profile, choice, &sums, error)
		                           : plumb_window_cut(profile, &sums.items[which], window);
		if (!code)
			name_window(profile, &sums, which, window);
	}
	if (code < 0) {
		if (code == PLUMB_ESYSTEM)
			plumb_fail_memory(error, "for a window");
		plumb_profile_free(window);
	}
	plumb_window_sums_free(&sums);
	return code;
}

int
plumb_window_narrow(struct plumb_profile *profile, const struct plumb_window_choice *choice,
                    struct plumb_error *error)
{
	struct plumb_profile window;

	if (choice->kind == PLUMB_WINDOW_ALL)
		return PLUMB_OK;
	if (plumb_window_profile(profile, choice, &window, error) < 0)
		return error->code;
	/* The texts move along. Blobs of the window are its own. */
	void *storage = window.storage;
	window.storage = profile->storage;
	profile->storage = storage;
	plumb_profile_free(profile);
	*profile = window;
	return PLUMB_OK;
}
