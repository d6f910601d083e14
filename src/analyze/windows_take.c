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
#include "analyze/windows_take.h"

#include <math.h>

#include "base/search.h"
#include "base/sort.h"
#include "model/intervals.h"
#include "model/metric.h"
#include "model/nesting.h"
#include "model/rows.h"

#define CLOCKS 8    /* ns of a span: how far two clocks are apart */
#define KNOWN 0.999 /* of the time of operators and kernels: spans tell of it */

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
	const struct plumb_take_group *g = row;

	(void)data;
	return which == 0 ? (uint64_t)g->context << 32 | g->track
	                  : (uint64_t)g->ends.from << 32 | g->ends.to;
}

static bool
is_same_group(const struct plumb_take_group *a, const struct plumb_take_group *b)
{
	return a->context == b->context && a->track == b->track && a->ends.from == b->ends.from &&
	       a->ends.to == b->ends.to;
}

/* A group for each context, track and ends that have a value or a variant. */
static bool
make_groups(struct plumb_taking *t)
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
		t->groups[count++] =
			(struct plumb_take_group){ v->context, v->track, v->ends, PLUMB_NONE };
	}
	for (uint32_t i = 0; i < p->variants_count; i++)
		t->groups[count++] = (struct plumb_take_group){
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

struct plumb_take_group *
plumb_take_find(const struct plumb_taking *t, uint32_t context, uint32_t track,
                struct plumb_ends ends)
{
	const struct plumb_take_group wanted = { context, track, ends, 0 };
	uint32_t first = t->first[context], count = t->first[context + 1] - first;
	struct plumb_take_group *own = t->groups + first;
	uint32_t i = plumb_search(k, count,
	                          own[k].track < track || (own[k].track == track &&
	                                                   group_key(&own[k], 1, NULL) <
	                                                           group_key(&wanted, 1, NULL)));

	return i < count && is_same_group(&own[i], &wanted) ? &own[i] : NULL;
}

/* That of GROUP in WINDOW; NULL: no memory. */
static struct plumb_take_cell *
cell_of(struct plumb_taking *t, struct plumb_take_group *group, uint32_t window)
{
	struct plumb_take_cell *cell;

	for (uint32_t i = group->cells; i != PLUMB_NONE; i = t->cells.items[i].next)
		if (t->cells.items[i].window == window)
			return &t->cells.items[i];
	cell = plumb_vec_add(&t->cells);
	if (cell) {
		*cell = (struct plumb_take_cell){ .window = window, .next = group->cells };
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
	struct plumb_take_group *group;
};

struct thread {
	struct plumb_taking *taking;
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
	struct plumb_take_cell *cell = NULL;

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
open_span(struct thread *thread, const struct plumb_span *span, uint32_t kind,
          struct plumb_take_group *group, uint32_t window)
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
take_thread(struct plumb_taking *t, uint32_t track)
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
		struct plumb_take_group *group =
			plumb_take_find(t, span->context, track, span->ends);
		struct plumb_take_cell *cell = group ? cell_of(t, group, window) : NULL;
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
	uint32_t host, work;
};

/* The window of SPAN, a stream's. Its call has started one more. */
static uint32_t
window_of(struct plumb_taking *t, const struct plumb_span *span, uint32_t process,
          struct near *near)
{
	struct plumb_launches *launches = &t->cuts->launches;
	uint32_t place =
		plumb_launch_place_before(launches, process, span->correlation, span->start_ns);

	if (place != PLUMB_NONE)
		t->works[place]++;
	if (place == PLUMB_NONE || t->cuts->processes[process].lead == span->track)
		return plumb_windows_at(t->cuts, process, false, span->start_ns, &near->work);
	return plumb_windows_at(t->cuts, process, true,
	                        launches->spans[launches->items[place]].start_ns, &near->host);
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
device_row(struct plumb_taking *t, uint32_t window, uint32_t device)
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
take_stream(struct plumb_taking *t, uint32_t track)
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
		struct plumb_take_group *group =
			plumb_take_find(t, span->context, track, span->ends);
		struct plumb_take_cell *cell = group ? cell_of(t, group, window) : NULL;
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
take_launches(struct plumb_taking *t)
{
	const struct plumb_profile *p = t->profile;
	uint32_t near = 0;

	for (uint32_t i = 0; i < t->cuts->launches.count; i++) {
		const struct plumb_span *span = &p->spans[t->cuts->launches.items[i]];
		struct plumb_take_group *group =
			t->works[i] ? plumb_take_find(t, span->context, span->track, span->ends)
				    : NULL;
		struct plumb_take_cell *cell;
		if (!group)
			continue;
		cell = cell_of(t, group,
		               plumb_windows_at(t->cuts, p->tracks[span->track].process, true,
		                                span->start_ns, &near));
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
add_busy(struct plumb_taking *t, uint32_t process, uint32_t device,
         const struct plumb_interval_ns *busy, uint32_t count)
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
take_busy(struct plumb_taking *t, const struct plumb_device_process *use)
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
check_devices(struct plumb_taking *t)
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
take_devices(struct plumb_taking *t)
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
stat_of(const struct plumb_take_cell *cell, uint32_t metric)
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
	ROUNDED,    /* likewise, but for nanoseconds between two clocks */
	WITH_ZEROS, /* those that say nothing have 0 bytes */
	BY_COUNT,   /* each span has the same */
	AT_ONCE,    /* all spans are in one window */
};

/* Is the SUM of spans that of VALUE, but for rounding? The collector measures durations by the
 * processor's counter, and spans are of the profile's clock. */
static bool
is_rounded(const struct plumb_value *value, int64_t sum)
{
	bool time =
		value->metric == PLUMB_METRIC_OP_TIME || value->metric == PLUMB_METRIC_OP_DURATION;

	return time && fabs((double)sum - (double)value->sum) <= CLOCKS * (double)value->count;
}

static enum known
know(const struct plumb_taking *t, const struct plumb_take_group *group,
     const struct plumb_value *value)
{
	struct plumb_stat sum = { 0 };
	uint64_t spans = 0;
	uint32_t windows = 0;

	for (uint32_t i = group->cells; i != PLUMB_NONE; i = t->cells.items[i].next) {
		const struct plumb_take_cell *cell = &t->cells.items[i];
		struct plumb_stat stat = stat_of(cell, value->metric);
		plumb_stat_merge(&sum, &stat);
		spans += cell->length.count;
		windows += cell->length.count > 0;
	}
	if (sum.count == value->count && sum.sum == value->sum)
		return BY_SPANS;
	if (sum.count == value->count && is_rounded(value, sum.sum))
		return ROUNDED;
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
part_of(const struct plumb_take_cell *cell, const struct plumb_value *value, enum known known)
{
	struct plumb_stat stat = stat_of(cell, value->metric);
	struct plumb_stat rest = { .count = cell->length.count - stat.count };

	if (known == ROUNDED && value->min != PLUMB_UNKNOWN && value->max != PLUMB_UNKNOWN) {
		stat.min = stat.min < value->min ? value->min : stat.min;
		stat.max = stat.max > value->max ? value->max : stat.max;
	}
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

/* The cell with most spans; *ROUNDED is what all cells lack of VALUE. */
static uint32_t
rounds_most(const struct plumb_taking *t, const struct plumb_take_group *group,
            const struct plumb_value *value, int64_t *rounded)
{
	uint32_t most = group->cells;

	*rounded = value->sum;
	for (uint32_t i = group->cells; i != PLUMB_NONE; i = t->cells.items[i].next) {
		*rounded -= stat_of(&t->cells.items[i], value->metric).sum;
		if (t->cells.items[i].length.count > t->cells.items[most].length.count)
			most = i;
	}
	return most;
}

static bool
add_rows(struct plumb_taking *t, const struct plumb_take_group *group,
         const struct plumb_value *value, enum known known)
{
	int64_t rounded = 0;
	uint32_t most = known == ROUNDED ? rounds_most(t, group, value, &rounded) : PLUMB_NONE;

	for (uint32_t i = group->cells; i != PLUMB_NONE; i = t->cells.items[i].next) {
		const struct plumb_take_cell *cell = &t->cells.items[i];
		struct plumb_stat stat = part_of(cell, value, known);
		struct plumb_window_value *row;
		if (!stat.count)
			continue;
		stat.sum += i == most ? rounded : 0;
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
know_values(const struct plumb_taking *t, unsigned char *how, bool *lost)
{
	const struct plumb_profile *p = t->profile;
	double all = 0, told = 0;

	for (uint32_t i = 0; i < p->values_count; i++) {
		const struct plumb_value *v = &p->values[i];
		struct plumb_take_group *group = plumb_take_find(t, v->context, v->track, v->ends);
		bool main = v->metric == PLUMB_METRIC_OP_TIME || v->metric == PLUMB_METRIC_GPU_TIME;
		how[i] = (unsigned char)know(t, group, v);
		all += main ? (double)v->sum : 0;
		told += main && (how[i] == BY_SPANS || how[i] == ROUNDED) ? (double)v->sum : 0;
		if (how[i] == UNKNOWN && !main && plumb_metric_aggregation(v->metric) == PLUMB_SUM)
			lost[plumb_metric_slot(v->metric)] = true;
	}
	return told >= KNOWN * all;
}

static bool
add_values(struct plumb_taking *t, bool *enough)
{
	const struct plumb_profile *p = t->profile;
	unsigned char *how = calloc((size_t)p->values_count + 1, sizeof *how);
	bool *lost = calloc(plumb_metric_slots(p), sizeof *lost);
	bool ok = how && lost;

	*enough = ok && know_values(t, how, lost);
	for (uint32_t i = 0; *enough && ok && i < p->values_count; i++) {
		const struct plumb_value *v = &p->values[i];
		if (how[i] != UNKNOWN && !lost[plumb_metric_slot(v->metric)])
			ok = add_rows(t, plumb_take_find(t, v->context, v->track, v->ends), v,
			              how[i]);
	}
	free(how);
	free(lost);
	return ok && plumb_row_order(t->profile, &plumb_row_tables[PLUMB_TABLE_WINDOW_VALUES]) == 0;
}

/* ---- all of it ---- */

static bool
take_tracks(struct plumb_taking *t)
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
plumb_windows_take(struct plumb_profile *profile, struct plumb_windows_cuts *cuts)
{
	struct plumb_taking t = { .profile = profile, .cuts = cuts };
	bool enough = false;
	bool ok = make_groups(&t);

	t.works = calloc((size_t)cuts->launches.count + 1, sizeof *t.works);
	ok = ok && t.works && take_tracks(&t) && add_values(&t, &enough);
	if (ok && enough)
		ok = plumb_take_variants(&t) && take_devices(&t);
	free(t.groups);
	free(t.first);
	free(t.works);
	plumb_vec_free(&t.cells);
	return !ok ? PLUMB_ESYSTEM : !enough;
}
