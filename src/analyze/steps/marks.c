/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/steps/marks.h"

#include <stdio.h>

#include "base/sort.h"
#include "model/framework/framework.h"

#define AROUND_SHARE                                                                               \
	0.5 /* of the time that its marks lie in: a group that is around most of an iteration */

/* ---- names ---- */

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The last number in NAME, and where it stands: [*BEGIN, *END). PLUMB_UNKNOWN: it has none that
 * fits. */
static int64_t
number_in(const char *name, size_t *begin, size_t *end)
{
	enum { DIGITS_MOST = 18 };
	size_t at = strlen(name);
	int64_t number = 0;

	while (at && !is_digit(name[at - 1]))
		at--;
	*end = at;
	while (at && is_digit(name[at - 1]))
		at--;
	*begin = at;
	if (*end == at || *end - at > DIGITS_MOST)
		return PLUMB_UNKNOWN;
	for (size_t i = at; i < *end; i++)
		number = number * 10 + (name[i] - '0');
	return number;
}

/* How many bytes of NAME stand before the number at [BEGIN, END), without what joins them to it:
 * "step" of "step #12" or "step (12)". 0: more follows, as in "pre_forward (blocks.0)", and half a
 * name would say less. */
static uint32_t
stem_bytes(const char *name, size_t begin, size_t end)
{
	size_t at = begin;
	const char *behind = name + end;

	while (at && strchr(" #:=_-[(.", name[at - 1]))
		at--;
	bool closed = (!strcmp(behind, ")") && memchr(name + at, '(', begin - at)) ||
	              (!strcmp(behind, "]") && memchr(name + at, '[', begin - at));
	return !*behind || closed ? (uint32_t)at : 0;
}

/* Names that are one but for their last number. */
static int
by_stem(const char *a, const char *b)
{
	size_t a_begin, a_end, b_begin, b_end;
	bool has = number_in(a, &a_begin, &a_end) != PLUMB_UNKNOWN;

	if (has != (number_in(b, &b_begin, &b_end) != PLUMB_UNKNOWN))
		return has ? 1 : -1;
	if (!has)
		return strcmp(a, b);
	size_t shorter = a_begin < b_begin ? a_begin : b_begin;
	int order = memcmp(a, b, shorter);

	if (!order && a_begin != b_begin)
		order = a_begin < b_begin ? -1 : 1;
	return order ? order : strcmp(a + a_end, b + b_end);
}

/* ---- finding ---- */

int
plumb_marks_add(const struct plumb_profile *p, uint32_t first, uint32_t end,
                struct plumb_marks *marks)
{
	for (uint32_t i = first; i < end; i++) {
		const struct plumb_span *s = &p->spans[i];
		struct plumb_mark *mark;

		if (plumb_context_frame(p, s->context)->kind != PLUMB_FRAME_RANGE ||
		    !plumb_is_time(s->start_ns, s->end_ns))
			continue;
		mark = plumb_vec_add(marks);
		if (!mark)
			return PLUMB_ESYSTEM;
		*mark = (struct plumb_mark){ p->contexts[s->context].frame, s->start_ns, s->end_ns,
			                     PLUMB_UNKNOWN };
	}
	return 0;
}

struct named {
	const char *name;
	uint32_t frame;
};

static int
by_name(const void *x, const void *y)
{
	const struct named *a = x, *b = y;
	int order = by_stem(a->name, b->name);

	return order ? order : (a->frame > b->frame) - (a->frame < b->frame);
}

/* A number for each frame that has marks, the same for those with one stem; malloced, by frame.
 * NULL: no memory. */
static uint32_t *
find_stems(const struct plumb_profile *p, const struct plumb_marks *marks)
{
	uint32_t *stems = calloc((size_t)p->frames_count + 1, sizeof *stems), count = 0, stem = 0;
	struct named *named = malloc(((size_t)p->frames_count + 1) * sizeof *named);

	if (!stems || !named) {
		free(stems);
		free(named);
		return NULL;
	}
	for (uint32_t i = 0; i < marks->count; i++) {
		uint32_t frame = marks->items[i].frame;
		const char *name = plumb_text(p, p->frames[frame].name);

		if (!stems[frame])
			named[count++] = (struct named){ name ? name : "", frame };
		stems[frame] = 1;
	}
	if (count)
		qsort(named, count, sizeof *named, by_name);
	for (uint32_t i = 0; i < count; i++) {
		stem += !i || by_stem(named[i - 1].name, named[i].name) != 0;
		stems[named[i].frame] = stem;
	}
	free(named);
	return stems;
}

struct sorted {
	struct plumb_mark mark;
	uint32_t stem;
};

/* Numbers of the keys of a mark: it is sorted by stem, start, frame, or by frame, start. */
static uint64_t
key_of(const void *row, int which, const void *by_frame)
{
	const struct sorted *s = row;

	if (which == 1)
		return plumb_sort_signed(s->mark.start_ns);
	return which == 2 || by_frame ? s->mark.frame : s->stem;
}

static bool
sort_by_stem(struct sorted *sorted, uint32_t count)
{
	return !plumb_sort_rows(sorted, count, sizeof *sorted, key_of, 3, NULL);
}

static bool
sort_by_frame(struct sorted *sorted, uint32_t count)
{
	return !plumb_sort_rows(sorted, count, sizeof *sorted, key_of, 2, sorted);
}

/* Gives the marks of one stem their numbers; false: those do not rise, so that they number
 * something else. */
static bool
number_marks(const struct plumb_profile *p, struct sorted *marks, uint32_t count)
{
	int64_t last = PLUMB_UNKNOWN;
	bool rises = true;

	for (uint32_t i = 0; i < count && rises; i++) {
		const char *name = plumb_text(p, p->frames[marks[i].mark.frame].name);
		size_t begin, end;

		marks[i].mark.number = name ? number_in(name, &begin, &end) : PLUMB_UNKNOWN;
		rises = marks[i].mark.number != PLUMB_UNKNOWN && marks[i].mark.number > last;
		last = marks[i].mark.number;
	}
	for (uint32_t i = 0; i < count && !rises; i++)
		marks[i].mark.number = PLUMB_UNKNOWN;
	return rises;
}

/* ---- the numbers of a profiler's steps ---- */

/* COUNT numbers of TEXT, "2 3 4" or "2..4", ascending, into NUMBERS; false: there are more or
 * fewer, or one twice. */
static bool
read_numbers(const char *text, int64_t *numbers, uint32_t count)
{
	char *end;
	uint32_t n = 0;
	int64_t first = strtoll(text, &end, 10);

	if (end != text && !strncmp(end, "..", 2)) {
		int64_t last = strtoll(end + 2, &end, 10);

		if (*end || first < 0 || last < first || last - first != (int64_t)count - 1)
			return false;
		for (; n < count; n++)
			numbers[n] = first + n;
		return true;
	}
	for (; n < count; n++, text = end) {
		numbers[n] = strtoll(text, &end, 10);
		if (end == text)
			return false;
	}
	if (*end)
		return false;
	plumb_sort_numbers(numbers, count);
	for (n = 1; n < count; n++)
		if (numbers[n] == numbers[n - 1])
			return false;
	return true;
}

/* What the fact says of PROCESS; of the run, where that has no other one. */
static const char *
steps_of(const struct plumb_profile *p, uint32_t process)
{
	const char *text = NULL;

	for (uint32_t i = 0; i < p->environment_count; i++) {
		const struct plumb_environment_row *row = &p->environment[i];
		const char *key = plumb_text(p, row->key);
		bool own = row->process == process;

		if ((own || (!text && row->process == PLUMB_NONE && p->processes_count == 1)) &&
		    key && !strcmp(key, PLUMB_PROFILER_STEPS))
			text = plumb_text(p, row->value);
	}
	return text;
}

static bool
number_steps(const struct plumb_profile *p, uint32_t process, struct plumb_mark *marks,
             uint32_t count)
{
	const char *text = steps_of(p, process);
	int64_t *numbers = text ? malloc(((size_t)count + 1) * sizeof *numbers) : NULL;
	bool known = numbers && read_numbers(text, numbers, count);

	for (uint32_t i = 0; known && i < count; i++)
		marks[i].number = numbers[i];
	free(numbers);
	return known;
}

/* ---- groups ---- */

static bool
add_group(const struct plumb_profile *p, uint32_t process, struct plumb_marks *marks,
          uint32_t first, uint32_t count, bool numbered)
{
	struct plumb_mark_group *group = plumb_vec_add(&marks->groups);
	const char *name = plumb_text(p, p->frames[marks->items[first].frame].name);
	enum plumb_purpose purpose =
		name ? plumb_framework_range(name, strlen(name)) : PLUMB_PURPOSE_NONE;
	size_t begin, end;

	if (!group)
		return false;
	*group = (struct plumb_mark_group){ .first = first,
		                            .count = count,
		                            .frame = marks->items[first].frame,
		                            .numbered = numbered };
	group->name_bytes = name ? (uint32_t)strlen(name) : 0;
	if (numbered && name && number_in(name, &begin, &end) != PLUMB_UNKNOWN) {
		group->name_bytes = stem_bytes(name, begin, end);
		group->number_begin = (uint32_t)begin;
		group->number_end = (uint32_t)end;
	}
	group->steps = plumb_framework_step(name) != NULL;
	group->optimizer_step = purpose == PLUMB_PURPOSE_OPTIMIZER_STEP;
	group->ends = purpose == PLUMB_PURPOSE_OPTIMIZER || group->optimizer_step;
	if (group->steps && !numbered)
		group->numbered = number_steps(p, process, &marks->items[first], count);
	for (uint32_t i = first; i < first + count; i++)
		if (__builtin_add_overflow(group->total_ns,
		                           marks->items[i].end_ns - marks->items[i].start_ns,
		                           &group->total_ns))
			group->total_ns = INT64_MAX;
	for (uint32_t i = first; i + 1 < first + count; i++)
		group->nested |= marks->items[i + 1].start_ns < marks->items[i].end_ns;
	return true;
}

void
plumb_mark_group_name(const struct plumb_profile *p, const struct plumb_mark_group *group,
                      char *text, size_t bytes)
{
	const char *name = plumb_text(p, p->frames[group->frame].name);

	name = name ? name : "";
	if (group->name_bytes || !group->number_end)
		snprintf(text, bytes, "%.*s", (int)group->name_bytes, name);
	else
		snprintf(text, bytes, "%.*sN%s", (int)group->number_begin, name,
		         name + group->number_end);
}

/* The marks from FIRST on, of one stem, as one group or as one for each frame. */
static bool
group_stem(const struct plumb_profile *p, uint32_t process, struct plumb_marks *marks,
           struct sorted *sorted, uint32_t first, uint32_t count)
{
	bool numbered = count > 1 && number_marks(p, &sorted[first], count);

	if (!numbered && !sort_by_frame(&sorted[first], count))
		return false;
	for (uint32_t i = first; i < first + count; i++)
		marks->items[i] = sorted[i].mark;
	for (uint32_t i = first, n; i < first + count; i += n) {
		for (n = 1; i + n < first + count &&
		            (numbered || marks->items[i + n].frame == marks->items[i].frame);
		     n++)
			;
		if (!add_group(p, process, marks, i, n, numbered))
			return false;
	}
	return true;
}

int
plumb_marks_group(const struct plumb_profile *p, uint32_t process, struct plumb_marks *marks)
{
	struct sorted *sorted = NULL;
	uint32_t *stems = NULL;
	bool done = true;

	if (marks->count) {
		stems = find_stems(p, marks);
		sorted = malloc(marks->count * sizeof *sorted);
		done = stems && sorted;
	}
	for (uint32_t i = 0; done && i < marks->count; i++)
		sorted[i] = (struct sorted){ marks->items[i], stems[marks->items[i].frame] };
	done = done && sort_by_stem(sorted, marks->count);
	for (uint32_t i = 0, n; done && i < marks->count; i += n) {
		for (n = 1; i + n < marks->count && sorted[i + n].stem == sorted[i].stem; n++)
			;
		done = group_stem(p, process, marks, sorted, i, n);
	}
	free(stems);
	free(sorted);
	return done ? 0 : PLUMB_ESYSTEM;
}

void
plumb_marks_free(struct plumb_marks *marks)
{
	plumb_vec_free(&marks->groups);
	plumb_vec_free(marks);
}

/* ---- choosing ---- */

enum rank { OTHER_OPTIMIZER, OPTIMIZER_STEP, PART, AROUND, STEP };

/* How well the group tells where an iteration begins. */
static enum rank
rank_of(const struct plumb_marks *marks, const struct plumb_mark_group *group)
{
	const struct plumb_mark *first = &marks->items[group->first];
	const struct plumb_mark *last = first + group->count - 1;

	if (group->steps)
		return STEP;
	if (group->ends)
		return group->optimizer_step ? OPTIMIZER_STEP : OTHER_OPTIMIZER;
	return (double)group->total_ns > AROUND_SHARE * (double)(last->end_ns - first->start_ns)
	               ? AROUND
	               : PART;
}

static bool
is_better(const struct plumb_marks *marks, const struct plumb_mark_group *a,
          const struct plumb_mark_group *b)
{
	enum rank rank = rank_of(marks, a), other = rank_of(marks, b);

	if (rank != other)
		return rank > other;
	if (rank == PART)
		return marks->items[a->first].start_ns < marks->items[b->first].start_ns;
	return a->total_ns > b->total_ns;
}

/* How many marks lie in LOOP. A step goes from its mark to the next one. */
static uint32_t
count_within(const struct plumb_marks *marks, const struct plumb_mark_group *group,
             const struct plumb_marks_loop *loop)
{
	const struct plumb_mark *items = &marks->items[group->first];
	uint32_t within = 0;

	for (uint32_t i = 0; i < group->count && items[i].start_ns <= loop->until_ns; i++)
		within += (i + 1 < group->count ? items[i + 1].start_ns : items[i].end_ns) >
		          loop->from_ns;
	return within;
}

uint32_t
plumb_marks_choose(const struct plumb_marks *marks, const struct plumb_marks_loop *loop,
                   enum plumb_marks_wanted wanted)
{
	uint32_t best = PLUMB_NONE, near = loop->stretches ? loop->stretches : 1;

	for (uint32_t g = 0; g < marks->groups.count; g++) {
		const struct plumb_mark_group *group = &marks->groups.items[g];
		uint32_t within = count_within(marks, group, loop);
		bool once = within + near >= loop->iterations && within <= loop->iterations + near;
		bool fits = group->count > 1 && within && (!group->nested || group->steps) &&
		            (once || (wanted == PLUMB_MARKS_ANY && group->steps));

		if (fits &&
		    (best == PLUMB_NONE || is_better(marks, group, &marks->groups.items[best])))
			best = g;
	}
	return best;
}
