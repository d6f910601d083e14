/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What lies in each window, by single spans. A value is made again from the spans of its context
 * and track. If the sum over all windows is the value, each window has its part. Otherwise spans do
 * not tell of it: unless all spans of the value have the same, or are in one window, no window has
 * any of it.
 *
 * What is on the host counts where it begins, GPU work where its call begins; on the stream whose
 * kernels make the loops, where the kernel begins.
 */
#include "analyze/windows_private.h"

#include "base/search.h"
#include "base/sort.h"
#include "model/intervals.h"
#include "model/metric.h"
#include "model/nesting.h"
#include "model/rows.h"

#define KNOWN 0.999 /* of the time of operators and kernels: spans tell of it */

/* Spans of a context and track in a window. */
struct cell {
	uint32_t window, next;  /* of the same group, or PLUMB_NONE */
	uint32_t ones, several; /* calls that started one piece of work, or several */
	struct plumb_stat length;
	struct plumb_stat
		other; /* own time of an operator or a range; bytes of copies that say it */
};

/* All with the same context, track and ends. */
struct group {
	uint32_t context, track;
	struct plumb_ends ends;
	uint32_t cells;
};

struct taking {
	struct plumb_profile *profile;
	const struct plumb_windows_cuts *cuts;
	struct group *groups; /* by context, then track, then ends */
	uint32_t group_count;
	uint32_t *first; /* by context, and one more */
	PLUMB_VEC(struct cell) cells;
	uint32_t *variant_windows; /* by variant: where all of it is, or PLUMB_NONE */
	uint32_t *works;           /* by call in `launches`: how much it started */
};

static inline void
add_known(int64_t *sum, int64_t number)
{
	if (__builtin_add_overflow(*sum, number, sum))
		*sum = number < 0 ? -INT64_MAX : INT64_MAX;
}

/* ---- groups ---- */

static uint64_t
group_key(const void *row, int which, const void *data)
{
	const struct group *g = row;

	(void)data;
	return which == 0 ? (uint64_t)g->context << 32 | g->track
	                  : (uint64_t)g->ends.from << 32 | g->ends.to;
}

static bool
is_same_group(const struct group *a, const struct group *b)
{
	return a->context == b->context && a->track == b->track && a->ends.from == b->ends.from &&
	       a->ends.to == b->ends.to;
}

/* A group for each context, track and ends that have a value or a variant. */
static bool
make_groups(struct taking *t)
{
	const struct plumb_profile *p = t->profile;
	size_t room = (size_t)p->values_count + p->variants_count;
	uint32_t count = 0, kept = 0, next = 0;

	t->groups = malloc((room + 1) * sizeof *t->groups);
	t->first = malloc(((size_t)p->contexts_count + 1) * sizeof *t->first);
	if (!t->groups || !t->first || room > PLUMB_VEC_MAX)
		return false;
	for (uint32_t i = 0; i < p->values_count; i++) {
		const struct plumb_value *v = &p->values[i];
		t->groups[count++] = (struct group){ v->context, v->track, v->ends, PLUMB_NONE };
	}
	for (uint32_t i = 0; i < p->variants_count; i++)
		t->groups[count++] = (struct group){
			p->variants[i].context, p->variants[i].track, { 0, 0 }, PLUMB_NONE
		};
	if (plumb_sort_rows(t->groups, count, sizeof *t->groups, group_key, 2, NULL) < 0)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		if (!kept || !is_same_group(&t->groups[kept - 1], &t->groups[i]))
			t->groups[kept++] = t->groups[i];
	}
	t->group_count = kept;
	for (uint32_t c = 0; c <= p->contexts_count; c++) {
		while (next < kept && t->groups[next].context < c)
			next++;
		t->first[c] = next;
	}
	return true;
}

static struct group *
find_group(const struct taking *t, uint32_t context, uint32_t track, struct plumb_ends ends)
{
	const struct group wanted = { context, track, ends, 0 };
	uint32_t first = t->first[context], count = t->first[context + 1] - first;
	struct group *own = t->groups + first;
	uint32_t i = plumb_search(k, count,
	                          own[k].track < track || (own[k].track == track &&
	                                                   group_key(&own[k], 1, NULL) <
	                                                           group_key(&wanted, 1, NULL)));

	return i < count && is_same_group(&own[i], &wanted) ? &own[i] : NULL;
}

/* That of GROUP in WINDOW; NULL: no memory. */
static struct cell *
cell_of(struct taking *t, struct group *group, uint32_t window)
{
	struct cell *cell;

	for (uint32_t i = group->cells; i != PLUMB_NONE; i = t->cells.items[i].next)
		if (t->cells.items[i].window == window)
			return &t->cells.items[i];
	cell = plumb_vec_add(&t->cells);
	if (cell) {
		*cell = (struct cell){ .window = window, .next = group->cells };
		group->cells = t->cells.count - 1;
	}
	return cell;
}

static inline void
add_number(struct plumb_stat *stat, int64_t number)
{
	double delta = (double)number - stat->mean;

	if (!stat->count || number < stat->min)
		stat->min = number;
	if (!stat->count || number > stat->max)
		stat->max = number;
	stat->count++;
	stat->mean += delta / (double)stat->count;
	stat->m2 += delta * ((double)number - stat->mean);
	add_known(&stat->sum, number);
}

/* ---- threads ---- */

/* What is open on a thread, ordered by when it closes. As import/place.c has it. */
struct open {
	int64_t end_ns, closes_ns, own_ns;
	uint32_t kind, window, owner;
	struct group *group;
};

struct thread {
	struct taking *taking;
	PLUMB_VEC(struct open) stack;
	int64_t now_ns;
};

static void
pass_time(struct thread *thread, int64_t ns)
{
	struct open *items = thread->stack.items;
	uint32_t owner = thread->stack.count ? items[thread->stack.count - 1].owner : PLUMB_NONE;

	if (owner != PLUMB_NONE && ns > thread->now_ns)
		items[owner].own_ns += ns - thread->now_ns;
	if (!thread->stack.count || ns > thread->now_ns)
		thread->now_ns = ns;
}

static bool
close_top(struct thread *thread)
{
	struct open *top = &thread->stack.items[thread->stack.count - 1];
	struct cell *cell = NULL;

	pass_time(thread, top->closes_ns);
	thread->stack.count--;
	if (!top->group || !plumb_nesting_has_own(top->kind))
		return true;
	cell = cell_of(thread->taking, top->group, top->window);
	if (cell)
		add_number(&cell->other, top->own_ns);
	return cell;
}

static bool
open_span(struct thread *thread, const struct plumb_span *span, uint32_t kind, struct group *group,
          uint32_t window)
{
	uint32_t count = thread->stack.count, at = count;
	const struct open *below = thread->stack.items;
	struct open *items;

	if (count >= PLUMB_NESTING_DEPTH)
		return true;
	while (at && plumb_nesting_outlives(span->start_ns, span->end_ns, kind,
	                                    below[at - 1].end_ns, below[at - 1].kind)) {
		if (count - --at > PLUMB_NESTING_OVERLAPS) {
			at = count;
			break;
		}
	}
	if (!plumb_vec_add(&thread->stack))
		return false;
	items = thread->stack.items;
	memmove(items + at + 1, items + at, (count - at) * sizeof *items);
	items[at] = (struct open){
		.end_ns = span->end_ns,
		.closes_ns = at && items[at - 1].closes_ns < span->end_ns ? items[at - 1].closes_ns
		                                                          : span->end_ns,
		.kind = kind,
		.window = window,
		.group = group,
	};
	for (uint32_t i = at; i <= count; i++)
		items[i].owner = plumb_nesting_has_own(items[i].kind) ? i
		                 : i                                  ? items[i - 1].owner
		                                                      : PLUMB_NONE;
	return true;
}

static bool
take_thread(struct taking *t, uint32_t track)
{
	const struct plumb_profile *p = t->profile;
	uint32_t end = plumb_profile_first_span(p, track + 1), process = p->tracks[track].process;
	struct thread thread = { .taking = t };
	uint32_t near = 0;
	bool ok = true;

	for (uint32_t i = plumb_profile_first_span(p, track); ok && i < end; i++) {
		const struct plumb_span *span = &p->spans[i];
		uint32_t kind = plumb_context_frame(p, span->context)->kind;
		uint32_t window = plumb_windows_at(t->cuts, process, true, span->start_ns, &near);
		struct group *group = find_group(t, span->context, track, span->ends);
		struct cell *cell = group ? cell_of(t, group, window) : NULL;
		ok = !group || cell;
		if (cell)
			add_number(&cell->length, span->end_ns - span->start_ns);
		while (ok && thread.stack.count &&
		       thread.stack.items[thread.stack.count - 1].closes_ns <= span->start_ns)
			ok = close_top(&thread);
		pass_time(&thread, span->start_ns);
		ok = ok && open_span(&thread, span, kind, group, window);
	}
	while (ok && thread.stack.count)
		ok = close_top(&thread);
	plumb_vec_free(&thread.stack);
	return ok;
}

/* ---- GPU work ---- */

/* Where searches begin, because the next thing is mostly near the last. */
struct near {
	uint32_t launch, host, work;
};

/* The place of the call that started SPAN, as plumb_launch_before has it, or PLUMB_NONE. */
static uint32_t
launch_of(const struct plumb_launches *launches, const struct plumb_span *span, uint32_t process,
          struct near *near)
{
	const struct plumb_launch *items = launches->items;
	uint32_t place = near->launch, tries = 2;

	if (!span->correlation)
		return PLUMB_NONE;
	while (tries && (place >= launches->count || items[place].process != process ||
	                 items[place].correlation != span->correlation)) {
		place++;
		tries--;
	}
	if (!tries)
		place = plumb_launch_place(launches, process, span->correlation);
	if (place == PLUMB_NONE)
		return place;
	while (place + 1 < launches->count && items[place + 1].process == process &&
	       items[place + 1].correlation == span->correlation &&
	       items[place + 1].start_ns <= span->start_ns)
		place++;
	near->launch = place;
	return place;
}

/* The window of SPAN, a stream's. Its call has started one more. */
static uint32_t
window_of(struct taking *t, const struct plumb_span *span, uint32_t process, struct near *near)
{
	const struct plumb_launches *launches = &t->cuts->launches;
	uint32_t place = launch_of(launches, span, process, near);

	if (place != PLUMB_NONE)
		t->works[place]++;
	if (place == PLUMB_NONE || t->cuts->processes[process].lead == span->track)
		return plumb_windows_at(t->cuts, process, false, span->start_ns, &near->work);
	return plumb_windows_at(t->cuts, process, true, launches->items[place].start_ns,
	                        &near->host);
}

static void
add_device(struct plumb_window_device *row, const struct plumb_span *span, uint32_t kind)
{
	int64_t ns = span->end_ns - span->start_ns;

	if (kind == PLUMB_FRAME_KERNEL) {
		row->kernels++;
		add_known(&row->kernel_ns, ns);
	} else if (kind == PLUMB_FRAME_COPY) {
		row->copies++;
		add_known(&row->copy_ns, ns);
		add_known(&row->copy_bytes, (int64_t)span->bytes);
	} else if (kind == PLUMB_FRAME_SET) {
		row->sets++;
		add_known(&row->set_ns, ns);
		add_known(&row->set_bytes, (int64_t)span->bytes);
	}
}

/* The row of WINDOW and DEVICE; NULL: no memory. They are few. */
static struct plumb_window_device *
device_row(struct taking *t, uint32_t window, uint32_t device)
{
	struct plumb_profile *p = t->profile;
	struct plumb_window_device *row;

	for (uint32_t i = p->window_devices_count; i-- > 0;)
		if (p->window_devices[i].window == window && p->window_devices[i].device == device)
			return &p->window_devices[i];
	row = plumb_row_add(p, &plumb_row_tables[PLUMB_TABLE_WINDOW_DEVICES]);
	if (row)
		*row = (struct plumb_window_device){ .window = window, .device = device };
	return row;
}

static bool
take_stream(struct taking *t, uint32_t track)
{
	const struct plumb_profile *p = t->profile;
	const struct plumb_track *row = &p->tracks[track];
	uint32_t end = plumb_profile_first_span(p, track + 1);
	uint32_t at = PLUMB_NONE; /* the row of the device that was used last */
	struct near near = { 0 };

	for (uint32_t i = plumb_profile_first_span(p, track); i < end; i++) {
		const struct plumb_span *span = &p->spans[i];
		uint32_t kind = plumb_context_frame(p, span->context)->kind;
		uint32_t window = window_of(t, span, row->process, &near);
		struct group *group = find_group(t, span->context, track, span->ends);
		struct cell *cell = group ? cell_of(t, group, window) : NULL;
		if (group && !cell)
			return false;
		if (cell) {
			add_number(&cell->length, span->end_ns - span->start_ns);
			if (span->bytes)
				add_number(&cell->other, (int64_t)span->bytes);
		}
		if (row->device == PLUMB_NONE)
			continue;
		if (at == PLUMB_NONE || p->window_devices[at].window != window) {
			const struct plumb_window_device *found =
				device_row(t, window, row->device);
			if (!found)
				return false;
			at = (uint32_t)(found - p->window_devices);
		}
		add_device(&p->window_devices[at], span, kind);
	}
	return true;
}

/* Calls that started something are launches; one that started several is a graph's. */
static bool
take_launches(struct taking *t)
{
	const struct plumb_profile *p = t->profile;
	uint32_t near = 0;

	for (uint32_t i = 0; i < t->cuts->launches.count; i++) {
		const struct plumb_launch *launch = &t->cuts->launches.items[i];
		const struct plumb_span *span = &p->spans[launch->span];
		struct group *group =
			t->works[i] ? find_group(t, span->context, span->track, span->ends) : NULL;
		struct cell *cell;
		if (!group)
			continue;
		cell = cell_of(
			t, group,
			plumb_windows_at(t->cuts, launch->process, true, launch->start_ns, &near));
		if (!cell)
			return false;
		cell->ones += t->works[i] == 1;
		cell->several += t->works[i] > 1;
	}
	return true;
}

/* ---- when devices were busy ---- */

/* Adds to windows of PROCESS how long the COUNT merged intervals at BUSY lie in each. */
static bool
add_busy(struct taking *t, uint32_t process, uint32_t device, const struct plumb_interval_ns *busy,
         uint32_t count)
{
	const struct plumb_windows_process *own = &t->cuts->processes[process];
	uint32_t i = 0;

	for (uint32_t k = own->first; k < own->end; k++) {
		const struct plumb_windows_piece *piece = &t->cuts->pieces.items[k];
		int64_t start = k == own->first ? INT64_MIN : piece->start, sum = 0;
		int64_t end = k + 1 < own->end ? piece[1].start : INT64_MAX;
		struct plumb_window_device *row;
		for (; i < count && busy[i].start < end; i++) {
			int64_t from = busy[i].start > start ? busy[i].start : start;
			add_known(&sum, (busy[i].end < end ? busy[i].end : end) - from);
			if (busy[i].end > end)
				break;
		}
		if (!sum)
			continue;
		row = device_row(t, piece->window, device);
		if (!row)
			return false;
		add_known(&row->busy_ns, sum);
	}
	return true;
}

/* The work of USE's process on its device. *KNOWN: it is as much as the profile says. */
static bool
take_busy(struct taking *t, const struct plumb_device_process *use)
{
	const struct plumb_profile *p = t->profile;
	PLUMB_VEC(struct plumb_interval_ns) busy = { 0 };
	bool ok = true;

	for (uint32_t track = 0; ok && track < p->tracks_count; track++) {
		uint32_t end = plumb_profile_first_span(p, track + 1);
		if (p->tracks[track].kind != PLUMB_TRACK_STREAM ||
		    p->tracks[track].device != use->device ||
		    p->tracks[track].process != use->process)
			continue;
		for (uint32_t i = plumb_profile_first_span(p, track); ok && i < end; i++) {
			const struct plumb_span *s = &p->spans[i];
			struct plumb_interval_ns *last =
				busy.count ? &busy.items[busy.count - 1] : NULL;
			if (last && s->start_ns >= last->start && s->start_ns <= last->end) {
				last->end = s->end_ns > last->end ? s->end_ns : last->end;
				continue;
			}
			last = plumb_vec_add(&busy);
			ok = last;
			if (last)
				*last = (struct plumb_interval_ns){ s->start_ns, s->end_ns };
		}
	}
	if (ok && plumb_intervals_merge(busy.items, &busy.count) == use->busy_ns)
		ok = add_busy(t, use->process, use->device, busy.items, busy.count);
	else if (ok)
		for (uint32_t i = 0; i < p->window_devices_count; i++)
			if (p->window_devices[i].device == use->device &&
			    p->windows[p->window_devices[i].window].process == use->process)
				p->window_devices[i].busy_ns = PLUMB_UNKNOWN;
	plumb_vec_free(&busy);
	return ok;
}

#define FIELDS(X)                                                                                  \
	X(kernels) X(kernel_ns) X(copies) X(copy_ns) X(copy_bytes) X(sets) X(set_ns) X(set_bytes)

/* What does not add up to the device's total is unknown. */
static void
check_devices(struct taking *t)
{
	struct plumb_profile *p = t->profile;

	for (uint32_t d = 0; d < p->devices_count; d++) {
		struct plumb_window_device sum = { 0 };
		for (uint32_t i = 0; i < p->window_devices_count; i++) {
			const struct plumb_window_device *row = &p->window_devices[i];
#define X(field) add_known(&sum.field, row->device == d ? row->field : 0);
			FIELDS(X)
#undef X
		}
		for (uint32_t i = 0; i < p->window_devices_count; i++) {
			struct plumb_window_device *row = &p->window_devices[i];
#define X(field)                                                                                   \
	if (row->device == d && sum.field != p->devices[d].field)                                  \
		row->field = PLUMB_UNKNOWN;
			FIELDS(X)
#undef X
		}
	}
}

static bool
take_devices(struct taking *t)
{
	struct plumb_profile *p = t->profile;

	for (uint32_t i = 0; i < p->device_processes_count; i++)
		if (!take_busy(t, &p->device_processes[i]))
			return false;
	check_devices(t);
	return plumb_row_order(p, &plumb_row_tables[PLUMB_TABLE_WINDOW_DEVICES]) == 0;
}

/* ---- rows ---- */

/* What CELL says of METRIC; count 0: nothing. */
static struct plumb_stat
stat_of(const struct cell *cell, uint32_t metric)
{
	struct plumb_stat stat = { 0 };

	switch (metric) {
	case PLUMB_METRIC_OP_DURATION:
	case PLUMB_METRIC_GPU_TIME:
	case PLUMB_METRIC_GPU_COPY_TIME:
	case PLUMB_METRIC_HOST_WAIT:
		return cell->length;
	case PLUMB_METRIC_OP_TIME:
	case PLUMB_METRIC_GPU_COPY_BYTES:
		return cell->other;
	case PLUMB_METRIC_GPU_LAUNCHES:
		stat.count = cell->ones;
		break;
	case PLUMB_METRIC_GPU_REPLAYS:
		stat.count = cell->several;
		break;
	case PLUMB_METRIC_OP_CALLS:
	case PLUMB_METRIC_MODULE_CALLS:
		stat.count = cell->length.count;
		break;
	default:
		return stat;
	}
	stat.sum = (int64_t)stat.count;
	stat.min = stat.max = 1;
	stat.mean = 1;
	return stat;
}

/* How the parts of a value are known. */
enum known {
	UNKNOWN,
	BY_SPANS,   /* the spans themselves say it */
	WITH_ZEROS, /* those that say nothing have 0 bytes */
	BY_COUNT,   /* each span has the same */
	AT_ONCE,    /* all spans are in one window */
};

static enum known
know(const struct taking *t, const struct group *group, const struct plumb_value *value)
{
	struct plumb_stat sum = { 0 };
	uint64_t spans = 0;
	uint32_t windows = 0;

	for (uint32_t i = group->cells; i != PLUMB_NONE; i = t->cells.items[i].next) {
		const struct cell *cell = &t->cells.items[i];
		struct plumb_stat stat = stat_of(cell, value->metric);
		plumb_stat_merge(&sum, &stat);
		spans += cell->length.count;
		windows += cell->length.count > 0;
	}
	if (sum.count == value->count && sum.sum == value->sum)
		return BY_SPANS;
	if (value->metric == PLUMB_METRIC_GPU_COPY_BYTES && spans == value->count &&
	    sum.sum == value->sum)
		return WITH_ZEROS;
	if (plumb_metric_aggregation(value->metric) == PLUMB_MAX ||
	    value->metric == PLUMB_METRIC_MEM_HELD)
		return UNKNOWN;
	if (value->min == value->max && value->min != PLUMB_UNKNOWN && value->count == spans)
		return BY_COUNT;
	return windows == 1 ? AT_ONCE : UNKNOWN;
}

/* What CELL has of VALUE. */
static struct plumb_stat
part_of(const struct cell *cell, const struct plumb_value *value, enum known known)
{
	struct plumb_stat stat = stat_of(cell, value->metric);
	struct plumb_stat rest = { .count = cell->length.count - stat.count };

	if (known == WITH_ZEROS)
		plumb_stat_merge(&stat, &rest);
	if (known == BY_COUNT)
		stat = (struct plumb_stat){ value->min * (int64_t)cell->length.count,
			                    cell->length.count,
			                    value->min,
			                    value->max,
			                    (double)value->min,
			                    0 };
	if (known == AT_ONCE && cell->length.count)
		stat = plumb_value_stat(value);
	return stat;
}

static bool
add_rows(struct taking *t, const struct group *group, const struct plumb_value *value,
         enum known known)
{
	for (uint32_t i = group->cells; i != PLUMB_NONE; i = t->cells.items[i].next) {
		const struct cell *cell = &t->cells.items[i];
		struct plumb_stat stat = part_of(cell, value, known);
		struct plumb_window_value *row;
		if (!stat.count)
			continue;
		row = plumb_row_add(t->profile, &plumb_row_tables[PLUMB_TABLE_WINDOW_VALUES]);
		if (!row)
			return false;
		*row = (struct plumb_window_value){ .window = cell->window,
			                            .context = value->context,
			                            .metric = value->metric,
			                            .track = value->track,
			                            .sum = stat.sum,
			                            .count = stat.count,
			                            .min = stat.min,
			                            .max = stat.max,
			                            .m2 = stat.m2,
			                            .ends = value->ends };
	}
	return true;
}

/* How each value is known, and whether a metric that adds up is not known for one of them: then it
 * is unknown for all, because a sum of some of them would be wrong. Returns whether spans tell of
 * the time of operators and kernels. */
static bool
know_values(const struct taking *t, unsigned char *how, bool *lost)
{
	const struct plumb_profile *p = t->profile;
	double all = 0, told = 0;

	for (uint32_t i = 0; i < p->values_count; i++) {
		const struct plumb_value *v = &p->values[i];
		struct group *group = find_group(t, v->context, v->track, v->ends);
		bool main = v->metric == PLUMB_METRIC_OP_TIME || v->metric == PLUMB_METRIC_GPU_TIME;
		how[i] = (unsigned char)know(t, group, v);
		all += main ? (double)v->sum : 0;
		told += main && how[i] == BY_SPANS ? (double)v->sum : 0;
		if (how[i] == UNKNOWN && !main && plumb_metric_aggregation(v->metric) == PLUMB_SUM)
			lost[plumb_metric_slot(v->metric)] = true;
	}
	return told >= KNOWN * all;
}

static bool
add_values(struct taking *t, bool *enough)
{
	const struct plumb_profile *p = t->profile;
	unsigned char *how = calloc((size_t)p->values_count + 1, sizeof *how);
	bool *lost = calloc(plumb_metric_slots(p), sizeof *lost);
	bool ok = how && lost;

	*enough = ok && know_values(t, how, lost);
	for (uint32_t i = 0; *enough && ok && i < p->values_count; i++) {
		const struct plumb_value *v = &p->values[i];
		if (how[i] != UNKNOWN && !lost[plumb_metric_slot(v->metric)])
			ok = add_rows(t, find_group(t, v->context, v->track, v->ends), v, how[i]);
	}
	free(how);
	free(lost);
	return ok && plumb_row_order(t->profile, &plumb_row_tables[PLUMB_TABLE_WINDOW_VALUES]) == 0;
}

/* ---- variants ---- */

/* The window in which all calls of VARIANT are, or PLUMB_NONE. */
static uint32_t
window_of_all(const struct taking *t, const struct group *group,
              const struct plumb_variant *variant)
{
	const struct plumb_track *track =
		variant->track == PLUMB_NONE ? NULL : &t->profile->tracks[variant->track];
	bool host = track && track->kind == PLUMB_TRACK_THREAD;
	uint32_t window = PLUMB_NONE, windows = 0, first = 0, last = 0;

	for (uint32_t i = group->cells; i != PLUMB_NONE; i = t->cells.items[i].next) {
		windows += t->cells.items[i].length.count > 0;
		if (t->cells.items[i].length.count)
			window = t->cells.items[i].window;
	}
	if (windows == 1 || !track || (!variant->first_ns && !variant->last_ns) ||
	    (!host && t->cuts->processes[track->process].lead != variant->track))
		return windows == 1 ? window : PLUMB_NONE;
	window = plumb_windows_at(t->cuts, track->process, host, variant->first_ns, &first);
	plumb_windows_at(t->cuts, track->process, host, variant->last_ns, &last);
	return first == last ? window : PLUMB_NONE;
}

static bool
add_variant_row(struct taking *t, const struct plumb_variant *variant, uint32_t window,
                uint64_t count, int64_t time)
{
	struct plumb_window_variant *row =
		plumb_row_add(t->profile, &plumb_row_tables[PLUMB_TABLE_WINDOW_VARIANTS]);

	if (!row)
		return false;
	*row = (struct plumb_window_variant){ window, *variant };
	row->variant.count = count;
	row->variant.time = time;
	row->variant.min = row->variant.max = PLUMB_UNKNOWN;
	return true;
}

/* What CELL has of the variants [FIRST, END) that were not yet put into a window: of one. */
static struct plumb_stat
rest_of(const struct taking *t, const struct cell *cell, uint32_t first, uint32_t end)
{
	const struct plumb_profile *p = t->profile;
	bool host = p->variants[first].shapes != PLUMB_NONE;
	struct plumb_stat rest = host ? cell->other : cell->length;

	for (uint32_t i = first; i < end; i++) {
		if (t->variant_windows[i] != cell->window)
			continue;
		rest.count -= p->variants[i].count;
		rest.sum -= p->variants[i].time;
	}
	return rest;
}

/* The only variant of those [FIRST, END) that is in several windows has what the others do not
 * have. */
static bool
add_rest(struct taking *t, const struct group *group, uint32_t first, uint32_t end)
{
	const struct plumb_variant *variant = NULL;
	struct plumb_stat sum = { 0 };

	for (uint32_t i = first; i < end; i++) {
		if (t->variant_windows[i] != PLUMB_NONE)
			continue;
		if (variant)
			return true;
		variant = &t->profile->variants[i];
	}
	for (uint32_t i = group->cells; i != PLUMB_NONE; i = t->cells.items[i].next) {
		struct plumb_stat rest = rest_of(t, &t->cells.items[i], first, end);
		sum.count += rest.count;
		sum.sum += rest.sum;
	}
	if (!variant || sum.count != variant->count || sum.sum != variant->time)
		return true;
	for (uint32_t i = group->cells; i != PLUMB_NONE; i = t->cells.items[i].next) {
		const struct cell *cell = &t->cells.items[i];
		struct plumb_stat rest = rest_of(t, cell, first, end);
		if (rest.count && !add_variant_row(t, variant, cell->window, rest.count, rest.sum))
			return false;
	}
	return true;
}

/* Variants [FIRST, END) of one context and track. */
static bool
add_variants_of(struct taking *t, uint32_t first, uint32_t end)
{
	const struct plumb_variant *v = &t->profile->variants[first];
	const struct group *group =
		find_group(t, v->context, v->track, (struct plumb_ends){ 0, 0 });

	for (uint32_t i = first; i < end; i++) {
		v = &t->profile->variants[i];
		t->variant_windows[i] = window_of_all(t, group, v);
		if (t->variant_windows[i] != PLUMB_NONE &&
		    !add_variant_row(t, v, t->variant_windows[i], v->count, v->time))
			return false;
	}
	return add_rest(t, group, first, end);
}

static bool
add_variants(struct taking *t)
{
	const struct plumb_profile *p = t->profile;
	bool ok;

	t->variant_windows = malloc(((size_t)p->variants_count + 1) * sizeof *t->variant_windows);
	ok = t->variant_windows;
	for (uint32_t first = 0, end; ok && first < p->variants_count; first = end) {
		for (end = first + 1; end < p->variants_count; end++)
			if (p->variants[end].context != p->variants[first].context ||
			    p->variants[end].track != p->variants[first].track)
				break;
		ok = add_variants_of(t, first, end);
	}
	free(t->variant_windows);
	return ok &&
	       plumb_row_order(t->profile, &plumb_row_tables[PLUMB_TABLE_WINDOW_VARIANTS]) == 0;
}

/* ---- all of it ---- */

static bool
take_tracks(struct taking *t)
{
	const struct plumb_profile *p = t->profile;
	bool ok = true;

	for (uint32_t i = 0; ok && i < p->tracks_count; i++) {
		const struct plumb_windows_process *own = &t->cuts->processes[p->tracks[i].process];
		if (own->first == own->end)
			continue;
		if (p->tracks[i].kind == PLUMB_TRACK_THREAD)
			ok = take_thread(t, i);
		else if (p->tracks[i].kind == PLUMB_TRACK_STREAM)
			ok = take_stream(t, i);
	}
	return ok && take_launches(t);
}

int
plumb_windows_take(struct plumb_profile *profile, const struct plumb_windows_cuts *cuts)
{
	struct taking t = { .profile = profile, .cuts = cuts };
	bool enough = false;
	bool ok = make_groups(&t);

	t.works = calloc((size_t)cuts->launches.count + 1, sizeof *t.works);
	ok = ok && t.works && take_tracks(&t) && add_values(&t, &enough);
	if (ok && enough)
		ok = add_variants(&t) && take_devices(&t);
	free(t.groups);
	free(t.first);
	free(t.works);
	plumb_vec_free(&t.cells);
	return !ok ? PLUMB_ESYSTEM : !enough;
}
