/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holders are the rows of a report by line, operator or module with the metrics of memory, but for
 * each memory on its own. What no row has is a row without a name, so that rows add up.
 */
#include "view/memory.h"

#include <math.h>
#include <stdlib.h>

#include "base/sort.h"
#include "model/display.h"
#include "model/metric.h"
#include "model/times.h"
#include "model/user_code.h"
#include "view/report.h"
#include "view/view.h"

/* ---- the memories ---- */

/* What allocators handed out of a device. What the driver did has no row in `memory`, nor has what
 * an imported trace says of allocators. */
struct memory_of {
	uint32_t track;
	const struct plumb_memory *row; /* NULL: of the driver, or of an imported trace */
	uint32_t from, to;              /* rows of `memory_series` that have all of its own */
};

/* Each memory is looked for in all values, so a query for all has a bound. */
#define ALL_MOST 256

/* Malloced; NULL: no memory. */
static struct memory_of *
list_memories(const struct plumb_profile *p, uint32_t *count)
{
	struct memory_of *list =
		calloc((size_t)p->memory_count + p->tracks_count + 1u, sizeof *list);
	uint32_t *listed = calloc(p->tracks_count + 1u, sizeof *listed); /* 1 + its place */

	*count = 0;
	for (uint32_t m = 0; list && listed && m < p->memory_count; m++) {
		list[(*count)++] = (struct memory_of){ p->memory[m].track, &p->memory[m], 0, 0 };
		listed[p->memory[m].track] = *count;
	}
	for (uint32_t i = 0; list && listed && i < p->memory_series_count; i++) {
		uint32_t track = p->memory_series[i].track;

		if (!listed[track]) {
			list[(*count)++] = (struct memory_of){ track, NULL, 0, 0 };
			listed[track] = *count;
		}
		if (!list[listed[track] - 1].to)
			list[listed[track] - 1].from = i;
		list[listed[track] - 1].to = i + 1;
	}
	if (!listed) {
		free(list);
		list = NULL;
	}
	free(listed);
	return list;
}

uint32_t
plumb_memories_count(const struct plumb_profile *profile)
{
	uint32_t count;
	struct memory_of *list = list_memories(profile, &count);

	free(list);
	return count;
}

static bool
is_of_driver(const struct plumb_profile *p, uint32_t track)
{
	const char *name = plumb_text(p, p->tracks[track].name);

	return name && !strcmp(name, "driver");
}

/* The row of MEMORY; without one as far as its series tells. */
static struct plumb_memory
row_of(const struct plumb_profile *p, const struct memory_of *memory)
{
	struct plumb_memory row = {
		.track = memory->track,
		.peak_bytes = PLUMB_UNKNOWN,
		.peak_ns = PLUMB_UNKNOWN,
		.allocations = PLUMB_UNKNOWN,
		.allocated_bytes = PLUMB_UNKNOWN,
		.frees = PLUMB_UNKNOWN,
		.freed_bytes = PLUMB_UNKNOWN,
		.live_bytes = PLUMB_UNKNOWN,
		.peak_allocated_bytes = PLUMB_UNKNOWN,
		.peak_reserved_bytes = PLUMB_UNKNOWN,
		.most_reserved_bytes = PLUMB_UNKNOWN,
	};

	if (memory->row)
		return *memory->row;
	for (uint32_t i = memory->from; i < memory->to; i++) {
		const struct plumb_memory_series_bin *bin = &p->memory_series[i];

		if (bin->track != memory->track)
			continue;
		if (bin->max_bytes > row.peak_bytes)
			row.peak_bytes = bin->max_bytes;
		if (bin->max_reserved_bytes > row.most_reserved_bytes)
			row.most_reserved_bytes = bin->max_reserved_bytes;
		row.live_bytes = bin->last_bytes;
	}
	return row;
}

/* ---- times ---- */

struct clock {
	const struct plumb_profile *profile;
	bool of_day; /* hosts differ */
	int64_t base_ns;
};

static int64_t
host_time(const struct clock *clock, uint32_t process, int64_t time)
{
	if (time == PLUMB_UNKNOWN || !clock->of_day)
		return time;
	return plumb_realtime(clock->profile, process, time);
}

static struct clock
clock_of(const struct plumb_profile *p)
{
	struct clock clock = { p, plumb_is_of_several_hosts(p), p->run.start_ns };

	for (uint32_t i = 0; i < p->processes_count; i++) {
		int64_t start = host_time(&clock, i, p->processes[i].start_ns);

		if (clock.of_day && start != PLUMB_UNKNOWN &&
		    (clock.base_ns == p->run.start_ns || start < clock.base_ns))
			clock.base_ns = start;
	}
	return clock;
}

/* TIME of the process of TRACK, since the start; PLUMB_UNKNOWN. */
static int64_t
time_since(const struct clock *clock, uint32_t track, int64_t time)
{
	int64_t since;

	time = host_time(clock, clock->profile->tracks[track].process, time);
	if (time == PLUMB_UNKNOWN || clock->base_ns == PLUMB_UNKNOWN ||
	    __builtin_sub_overflow(time, clock->base_ns, &since))
		return PLUMB_UNKNOWN;
	return since;
}

struct column {
	const char *name, *unit;
};

static void
add_columns(struct plumb_answer *a, const struct column *columns, size_t count)
{
	for (size_t i = 0; i < count; i++)
		plumb_answer_column(a, columns[i].name, columns[i].unit, PLUMB_SOURCE_IS_MEASURED);
}
#define ADD_COLUMNS(answer, columns) add_columns(answer, columns, sizeof columns / sizeof *columns)

/* ---- devices ---- */

static void
add_numbers(const struct clock *clock, const struct plumb_memory *row, struct plumb_answer *a)
{
	plumb_answer_integer(a, row->peak_bytes);
	plumb_answer_integer(a, time_since(clock, row->track, row->peak_ns));
	plumb_answer_integer(a, row->live_bytes);
	plumb_answer_integer(a, row->allocations);
	plumb_answer_integer(a, row->allocated_bytes);
	plumb_answer_integer(a, row->frees);
	plumb_answer_integer(a, row->freed_bytes);
	plumb_answer_integer(a, row->peak_allocated_bytes);
	plumb_answer_integer(a, row->peak_reserved_bytes);
	plumb_answer_integer(a, row->most_reserved_bytes);
}

static void
add_device(const struct clock *clock, uint32_t m, const struct memory_of *memory,
           struct plumb_answer *a)
{
	const struct plumb_profile *p = clock->profile;
	struct plumb_memory row = row_of(p, memory);
	struct plumb_report_device at = plumb_report_device(p, &row);
	const struct plumb_process *process = at.process;

	plumb_answer_integer(a, m);
	plumb_answer_text(a, memory->row                      ? "tensors"
	                     : is_of_driver(p, memory->track) ? "driver"
	                                                      : "allocator");
	plumb_answer_text(a, at.name);
	plumb_answer_integer(a, at.device ? at.device - p->devices : PLUMB_UNKNOWN);
	plumb_answer_text(a, at.device ? plumb_text(p, at.device->name) : NULL);
	plumb_answer_integer(a, at.device ? at.device->memory_bytes : PLUMB_UNKNOWN);
	plumb_answer_integer(a, process ? process->pid : PLUMB_UNKNOWN);
	plumb_answer_integer(a, process ? process->rank : PLUMB_UNKNOWN);
	plumb_answer_integer(
		a, time_since(clock, row.track, process ? process->start_ns : PLUMB_UNKNOWN));
	plumb_answer_integer(
		a, time_since(clock, row.track, process ? process->end_ns : PLUMB_UNKNOWN));
	add_numbers(clock, &row, a);
	plumb_answer_truth(a, !clock->of_day);
}

static void
add_device_columns(struct plumb_answer *a)
{
	static const struct column columns[] = {
		{ "memory", NULL },
		{ "kind", NULL },
		{ "name", NULL },
		{ "device", NULL },
		{ "model", NULL },
		{ "size", "byte" },
		{ "pid", NULL },
		{ "rank", NULL },
		{ "start", "ns" },
		{ "end", "ns" },
		{ "peak", "byte" },
		{ "peak_at", "ns" },
		{ "live", "byte" },
		{ "allocations", "count" },
		{ "allocated", "byte" },
		{ "frees", "count" },
		{ "freed", "byte" },
		{ "peak_allocated", "byte" },
		{ "peak_reserved", "byte" },
		{ "max_reserved", "byte" },
		{ "on_timeline", NULL },
	};

	a->id = "memory.devices";
	a->title = "memory of each device and process";
	ADD_COLUMNS(a, columns);
}

/* ---- over time ---- */

static void
add_series(const struct clock *clock, uint32_t m, const struct memory_of *memory,
           struct plumb_answer *a)
{
	const struct plumb_profile *p = clock->profile;
	uint32_t track = memory->track;

	for (uint32_t i = memory->from; i < memory->to; i++) {
		const struct plumb_memory_series_bin *bin = &p->memory_series[i];
		int64_t end;

		if (bin->track != track)
			continue;
		if (__builtin_add_overflow(bin->start_ns, bin->width_ns, &end))
			end = PLUMB_UNKNOWN;
		plumb_answer_integer(a, m);
		plumb_answer_integer(a, time_since(clock, track, bin->start_ns));
		plumb_answer_integer(a, time_since(clock, track, end));
		plumb_answer_integer(a, bin->min_bytes);
		plumb_answer_integer(a, bin->max_bytes);
		plumb_answer_integer(a, bin->last_bytes);
		plumb_answer_integer(a, bin->max_reserved_bytes);
		plumb_answer_integer(a, bin->last_reserved_bytes);
	}
}

static void
add_series_columns(struct plumb_answer *a)
{
	static const struct column columns[] = {
		{ "memory", NULL },         { "start", "ns" },           { "end", "ns" },
		{ "min", "byte" },          { "max", "byte" },           { "last", "byte" },
		{ "max_reserved", "byte" }, { "last_reserved", "byte" },
	};

	a->id = "memory.series";
	a->title = "what was live over time";
	ADD_COLUMNS(a, columns);
}

/* ---- holders ---- */

struct holder {
	struct plumb_stat held, allocated, freed;
};

static int64_t
live_of(const struct holder *holder)
{
	int64_t live;

	return __builtin_sub_overflow(holder->allocated.sum, holder->freed.sum, &live)
	               ? PLUMB_UNKNOWN
	               : live;
}

struct holders {
	const struct plumb_profile *profile;
	const struct plumb_memory_query *query;
	struct plumb_grouping *grouping;
	uint32_t count;       /* rows, and one for what is under none */
	struct holder *items; /* by row; of one memory */
	struct plumb_sort_item *order, *spare;
};

static struct plumb_stat *
stat_of(struct holder *holder, uint32_t metric)
{
	return metric == PLUMB_METRIC_MEM_HELD    ? &holder->held
	       : metric == PLUMB_METRIC_MEM_ALLOC ? &holder->allocated
	       : metric == PLUMB_METRIC_MEM_FREE  ? &holder->freed
	                                          : NULL;
}

static void
take_values(struct holders *h, uint32_t track)
{
	const struct plumb_profile *p = h->profile;
	struct holder none;

	for (uint32_t r = 0; r < h->count; r++)
		h->items[r] = (struct holder){ 0 };
	for (uint32_t i = 0; i < p->values_count; i++) {
		const struct plumb_value *v = &p->values[i];
		struct plumb_stat stat;
		uint32_t row;

		if (v->track != track || !stat_of(&none, v->metric))
			continue;
		stat = plumb_value_stat(v);
		row = plumb_grouping_owner(h->grouping, v->context);
		if (row == PLUMB_NONE)
			row = h->count - 1;
		plumb_stat_merge(stat_of(&h->items[row], v->metric), &stat);
	}
}

static double
share_of(int64_t part, int64_t whole)
{
	return part == PLUMB_UNKNOWN || whole == PLUMB_UNKNOWN || whole <= 0
	               ? NAN
	               : (double)part / (double)whole;
}

static void
add_place(const struct holders *h, uint32_t r, struct plumb_answer *a)
{
	const struct plumb_profile *p = h->profile;
	uint32_t frame = r + 1 < h->count ? plumb_grouping_rows(h->grouping)[r].frame : PLUMB_NONE;
	struct plumb_user_place place = { 0 };

	if (frame != PLUMB_NONE && h->query->by == PLUMB_BY_USER_LINE) {
		place = plumb_user_place(p, frame);
		if (!place.function)
			place.function = plumb_text(p, p->frames[frame].name);
	} else if (frame != PLUMB_NONE) {
		place.function = plumb_frame_label(p, frame);
	}
	plumb_answer_text(a, place.function);
	plumb_answer_text(a, place.file);
	plumb_answer_integer(a, place.line ? (int64_t)place.line : PLUMB_UNKNOWN);
}

static void
add_holder(const struct holders *h, uint32_t m, const struct plumb_memory *memory, uint32_t r,
           struct plumb_answer *a)
{
	const struct holder *holder = &h->items[r];
	int64_t live = live_of(holder);

	plumb_answer_integer(a, m);
	add_place(h, r, a);
	plumb_answer_integer(a, holder->held.sum);
	plumb_answer_number(a, share_of(holder->held.sum, memory->peak_bytes));
	plumb_answer_integer(a, live);
	plumb_answer_number(a, share_of(live, memory->live_bytes));
	plumb_answer_integer(a, (int64_t)holder->allocated.count);
	plumb_answer_integer(a, holder->allocated.sum);
	plumb_answer_integer(a, (int64_t)holder->freed.count);
	plumb_answer_integer(a, holder->freed.sum);
}

/* Those of memory M, the one with the most at the peak or at the end first. */
static void
add_holders(struct holders *h, uint32_t m, const struct plumb_memory *memory,
            struct plumb_answer *a)
{
	uint32_t kept = 0;

	take_values(h, memory->track);
	for (uint32_t r = 0; r < h->count; r++) {
		const struct holder *holder = &h->items[r];
		int64_t live = live_of(holder);

		if (!holder->held.count && !holder->allocated.count && !holder->freed.count)
			continue;
		h->order[kept].index = r;
		h->order[kept++].key =
			~plumb_sort_signed(live > holder->held.sum ? live : holder->held.sum);
	}
	plumb_sort(h->order, h->spare, kept);
	for (uint32_t i = 0; i < kept && (!h->query->top || i < h->query->top); i++)
		add_holder(h, m, memory, h->order[i].index, a);
}

static void
add_holder_columns(struct plumb_answer *a)
{
	static const struct column columns[] = {
		{ "memory", NULL }, { "name", NULL },   { "file", NULL },
		{ "line", NULL },   { "held", "byte" },
	};
	static const struct column counts[] = {
		{ "allocations", "count" },
		{ "allocated", "byte" },
		{ "frees", "count" },
		{ "freed", "byte" },
	};

	a->id = "memory.holders";
	a->title = "who holds memory at the peak, and at the end";
	ADD_COLUMNS(a, columns);
	plumb_answer_column_short(a, "share", NULL, PLUMB_SOURCE_IS_DERIVED, 6);
	plumb_answer_column(a, "live", "byte", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column_short(a, "live_share", NULL, PLUMB_SOURCE_IS_DERIVED, 6);
	ADD_COLUMNS(a, counts);
}

static void
free_holders(struct holders *h)
{
	plumb_grouping_free(h->grouping);
	free(h->items);
	free(h->order);
	free(h->spare);
}

static int
make_holders(struct holders *h, struct plumb_error *error)
{
	unsigned char *user = plumb_user_code_frames(h->profile, h->query->user_code, error);

	if (!user)
		return error->code;
	h->grouping = plumb_grouping_new(h->profile, h->query->by, user);
	free(user);
	h->count = h->grouping ? plumb_grouping_count(h->grouping) + 1 : 0;
	h->items = calloc(h->count + 1u, sizeof *h->items);
	h->order = calloc(h->count + 1u, sizeof *h->order);
	h->spare = calloc(h->count + 1u, sizeof *h->spare);
	if (h->grouping && h->items && h->order && h->spare)
		return 0;
	free_holders(h);
	return plumb_fail_memory(error, "for who holds memory");
}

/* ---- the whole ---- */

static void
add_rows(const struct plumb_memory_query *query, const struct clock *clock,
         const struct memory_of *memories, uint32_t count, struct holders *holders,
         struct plumb_answer *a)
{
	uint32_t from = query->one ? query->memory : 0, to = query->one ? from + 1 : count;

	for (uint32_t m = from; m < to; m++) {
		if (query->table == PLUMB_MEMORY_DEVICES)
			add_device(clock, m, &memories[m], a);
		else if (query->table == PLUMB_MEMORY_SERIES)
			add_series(clock, m, &memories[m], a);
		else if (memories[m].row)
			add_holders(holders, m, memories[m].row, a);
	}
}

/* Can QUERY be answered? COUNT: how many memories there are. */
static int
check_query(const struct plumb_memory_query *query, uint32_t count, struct plumb_error *error)
{
	if (!count)
		return plumb_fail(error, PLUMB_EEMPTY,
		                  "no allocations were recorded; record them with plumb run "
		                  "--memory");
	if (query->one && query->memory >= count)
		return plumb_fail(error, PLUMB_EUSAGE, "memory %u does not exist; use 0 to %u",
		                  query->memory, count - 1);
	if (!query->one && count > ALL_MOST && query->table != PLUMB_MEMORY_DEVICES)
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "there are %u memories; name one of them, 0 to %u", count,
		                  count - 1);
	return 0;
}

static int
make_answer(const struct plumb_profile *profile, const struct plumb_memory_query *query,
            const struct memory_of *memories, uint32_t count, struct plumb_answer *answer,
            struct plumb_error *error)
{
	static void (*const columns[PLUMB_MEMORY_TABLES])(struct plumb_answer *) = {
		[PLUMB_MEMORY_DEVICES] = add_device_columns,
		[PLUMB_MEMORY_SERIES] = add_series_columns,
		[PLUMB_MEMORY_HOLDERS] = add_holder_columns,
	};
	struct plumb_memory_query asked = *query;
	struct holders holders = { .profile = profile, .query = &asked };
	struct clock clock = clock_of(profile);

	if (asked.by != PLUMB_BY_OPERATOR && asked.by != PLUMB_BY_MODULE)
		asked.by = PLUMB_BY_USER_LINE;
	if (query->table == PLUMB_MEMORY_HOLDERS && make_holders(&holders, error) < 0)
		return error->code;
	*answer = (struct plumb_answer){ 0 };
	columns[query->table](answer);
	add_rows(&asked, &clock, memories, count, &holders, answer);
	if (query->table == PLUMB_MEMORY_HOLDERS)
		free_holders(&holders);
	return plumb_answer_end(answer, error);
}

int
plumb_memory_answer(const struct plumb_profile *profile, const struct plumb_memory_query *query,
                    struct plumb_answer *answer, struct plumb_error *error)
{
	uint32_t count;
	struct memory_of *memories = list_memories(profile, &count);
	int code = memories ? check_query(query, count, error)
	                    : plumb_fail_memory(error, "for who holds memory");

	if (!code)
		code = make_answer(profile, query, memories, count, answer, error);
	free(memories);
	return code;
}

int
plumb_view_memory(const struct plumb_profile *profile, const struct plumb_memory_query *query,
                  enum plumb_view_format format, FILE *out, struct plumb_error *error)
{
	struct plumb_error unread;
	struct plumb_answer answer;
	int code;

	error = error ? error : &unread;
	code = plumb_memory_answer(profile, query, &answer, error);
	if (!code) {
		code = plumb_view_answer(&answer, format, out, error);
		plumb_answer_free(&answer);
	}
	return code;
}
