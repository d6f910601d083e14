/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Iterations of processes without GPU work, on the thread that does most. What kernels are on a
 * GPU, outermost operators and ranges are here: the search for loops in their order is the same.
 *
 * A range around several iterations (an epoch, all of training) would hide them. So ranges that
 * come a few times only are opened: what is in them takes their place. If no loop is found then,
 * all ranges are opened. Steps that a framework's profiler marks are the iterations, whatever the
 * order of operators. So are ranges that come evenly, if they tell more than the order does.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/host_steps.h"
#include "analyze/iterations_private.h"

#define FEW 8          /* ranges of a name: they are opened */
#define COARSE 1000    /* ns: times of some tools are whole µs */
#define ALL 0.98       /* of the time of a loop: then each mark is a round */
#define PARTS 2        /* marks in a round, and more: they mark parts of iterations */
#define COARSER 1.25   /* rounds in a mark, and more: these are parts of iterations */
#define MISSED 0.02    /* of an optimizer's steps may lie outside of what the order shows */
#define ROUNDS_LEAST 4 /* of a loop beside those that are marked */
#define WORK_LEAST 64  /* operators and ranges in all of its rounds */

struct host {
	const struct plumb_profile *profile;
	struct plumb_track_index tracks;
	uint32_t *group_of; /* by frame: 1 more than its group of marks; 0: it has none */
	uint32_t *symbols;  /* by name, and behind these by group: 0, or 1 more than its symbol */
};

enum opened {
	OPEN_FEW, /* ranges that come a few times */
	OPEN_ALL, /* every range with something in it */
};

static bool
is_work(const struct plumb_profile *p, uint32_t span)
{
	uint32_t kind = plumb_context_frame(p, p->spans[span].context)->kind;

	return (kind == PLUMB_FRAME_OPERATOR || kind == PLUMB_FRAME_RANGE) &&
	       plumb_is_time(p->spans[span].start_ns, p->spans[span].end_ns);
}

static bool
is_range(const struct plumb_profile *p, uint32_t span)
{
	return plumb_context_frame(p, p->spans[span].context)->kind == PLUMB_FRAME_RANGE;
}

/* Is there an operator or a range in the range SPAN? Spans of its track go on until END. */
static bool
holds_work(const struct plumb_profile *p, uint32_t span, uint32_t end)
{
	for (uint32_t i = span + 1; i < end && p->spans[i].start_ns < p->spans[span].end_ns; i++)
		if (is_work(p, i))
			return true;
	return false;
}

static bool
is_opened(const struct host *h, uint32_t span, uint32_t end, enum opened opened)
{
	const struct plumb_profile *p = h->profile;
	uint32_t group = h->group_of[p->contexts[p->spans[span].context].frame];

	if (!is_range(p, span))
		return false;
	if (opened == OPEN_FEW && group) {
		const struct plumb_mark_group *marks = &h->tracks.marks.groups.items[group - 1];
		if (marks->count >= FEW && !plumb_iterations_hold_steps(&h->tracks.marks, marks))
			return false;
	}
	return holds_work(p, span, end);
}

/* In whole µs, what is brief may begin where that which it lies in ends. */
static bool
lies_before(const struct plumb_span *span, int64_t until)
{
	int64_t ns = span->end_ns - span->start_ns;

	return span->start_ns < until || (span->start_ns == until && ns <= COARSE) || !ns;
}

/* Operators and ranges of TRACK that lie in no other one, but for ranges that are opened. */
static bool
gather(const struct host *h, uint32_t track, enum opened opened, struct plumb_iteration_work *work)
{
	const struct plumb_profile *p = h->profile;
	uint32_t end = h->tracks.first_span[track + 1];
	int64_t until = INT64_MIN;

	work->kernels.count = 0;
	for (uint32_t i = h->tracks.first_span[track]; i < end; i++) {
		uint32_t *kernel;
		if (lies_before(&p->spans[i], until) || !is_work(p, i) ||
		    is_opened(h, i, end, opened))
			continue;
		kernel = plumb_vec_add(&work->kernels);
		if (!kernel)
			return false;
		*kernel = i;
		until = p->spans[i].end_ns;
	}
	return true;
}

/* ---- which thread ---- */

/* Steps that a framework marks, then time in operators and ranges. */
struct busiest {
	uint32_t track, steps;
	int64_t ns;
};

static void
judge_thread(const struct host *h, uint32_t track, struct busiest *best)
{
	const struct plumb_profile *p = h->profile;
	uint32_t end = h->tracks.first_span[track + 1];
	struct busiest own = { .track = track };
	int64_t until = INT64_MIN;

	for (uint32_t i = h->tracks.first_span[track]; i < end; i++) {
		const struct plumb_span *span = &p->spans[i];
		if (!is_work(p, i))
			continue;
		own.steps += plumb_host_steps_marker(p, span->context) == 2;
		if (span->start_ns < until || (is_range(p, i) && holds_work(p, i, end)))
			continue;
		plumb_iteration_add(&own.ns, span->end_ns - span->start_ns);
		until = span->end_ns;
	}
	if (own.steps > best->steps || (own.steps == best->steps && own.ns > best->ns))
		*best = own;
}

/* PLUMB_NONE: no thread has operators or ranges. */
static uint32_t
find_thread(const struct host *h, uint32_t process)
{
	struct busiest best = { .track = PLUMB_NONE };
	uint32_t count;
	const uint32_t *tracks = plumb_track_group(&h->tracks.of_process, process, &count);

	for (uint32_t i = 0; i < count; i++)
		if (h->profile->tracks[tracks[i]].process == process &&
		    h->profile->tracks[tracks[i]].kind == PLUMB_TRACK_THREAD)
			judge_thread(h, tracks[i], &best);
	return best.track;
}

/* The marks of TRACK alone: what other threads mark are not the steps of this one. */
static bool
take_marks(struct host *h, uint32_t track)
{
	struct plumb_track_index *index = &h->tracks;
	struct plumb_marks *marks = &index->marks;
	uint32_t process = h->profile->tracks[track].process;

	marks->count = marks->groups.count = 0;
	if (plumb_marks_add(h->profile, index->first_span[track], index->first_span[track + 1],
	                    marks) < 0 ||
	    plumb_marks_group(h->profile, process, marks) < 0)
		return false;
	index->marks_of = process;
	index->have_marks = true;
	memset(h->group_of, 0, h->profile->frames_count * sizeof *h->group_of);
	for (uint32_t g = 0; g < marks->groups.count; g++) {
		const struct plumb_mark_group *group = &marks->groups.items[g];
		for (uint32_t i = group->first; i < group->first + group->count; i++)
			h->group_of[marks->items[i].frame] = g + 1;
	}
	return true;
}

/* ---- its loops ---- */

/* Numbers names in the order in which they come first. Ranges of one group, such as "step 1" and
 * "step 2", have one number. False: no memory. */
static bool
number_names(struct host *h, const struct plumb_iteration_work *work,
             struct plumb_iteration_names *names, uint32_t *frames)
{
	const struct plumb_profile *p = h->profile;
	uint32_t groups = h->tracks.marks.groups.count;

	h->symbols = calloc((size_t)p->strings_count + groups + 2, sizeof *h->symbols);
	if (!h->symbols)
		return false;
	names->count = (int32_t)work->kernels.count;
	names->frames = frames;
	for (int32_t i = 0; i < names->count; i++) {
		const struct plumb_span *span = plumb_iteration_kernel(work, (uint32_t)i);
		uint32_t frame = p->contexts[span->context].frame;
		uint32_t group = plumb_context_frame(p, span->context)->kind == PLUMB_FRAME_RANGE
		                         ? h->group_of[frame]
		                         : 0;
		uint32_t *symbol = group ? &h->symbols[p->strings_count + group]
		                         : &h->symbols[p->frames[frame].name + 1];
		if (!*symbol) {
			frames[names->alphabet] = frame;
			*symbol = (uint32_t)++names->alphabet;
		}
		names->text[i] = (int32_t)*symbol - 1;
	}
	free(h->symbols);
	h->symbols = NULL;
	return true;
}

/* What lies in no round of LOOPS: WORK and NAMES without the rest. PLACES of the rest in NAMES. */
static bool
leave_rounds(const struct plumb_iteration_work *work, const struct plumb_iteration_names *names,
             const struct plumb_loops *loops, struct plumb_iteration_work *rest,
             struct plumb_iteration_names *text, int32_t *places)
{
	plumb_loops_hide(loops, 0, loops->count, names->text);
	for (int32_t i = 0; i < names->count; i++) {
		uint32_t *kernel = names->text[i] < 0 ? NULL : plumb_vec_add(&rest->kernels);
		if (!kernel && names->text[i] >= 0)
			return false;
		if (!kernel)
			continue;
		*kernel = work->kernels.items[i];
		places[text->count] = i;
		text->text[text->count++] = names->text[i];
	}
	plumb_loops_hide(loops, 0, loops->count, names->text);
	return true;
}

/* Moves FROM, a loop of what was left, to LOOPS. Rounds with a marked one between are none. */
static bool
take_order(struct plumb_loop *from, const int32_t *places, struct plumb_loops *loops)
{
	struct plumb_loop *added;
	uint32_t kept = 0;

	for (uint32_t r = 0; r < from->rounds.count; r++) {
		struct plumb_round round = from->rounds.items[r];
		int32_t size = round.end - round.start;
		round.start = places[round.start];
		round.end = places[round.end - 1] + 1;
		if (round.end - round.start == size)
			from->rounds.items[kept++] = round;
	}
	from->rounds.count = kept;
	/* A few operators that come again are no loop beside one that is marked. */
	if (kept < ROUNDS_LEAST || from->agree < WORK_LEAST || plumb_iterations_few_names(from))
		return true;
	added = plumb_vec_add(loops);
	if (added)
		*added = *from;
	*from = (struct plumb_loop){ 0 };
	return added;
}

/* Adds to the marked LOOPS those that the order shows beside them. */
static int
add_order(const struct plumb_iteration_work *work, const struct plumb_iteration_names *names,
          struct plumb_loops *loops)
{
	size_t room = (size_t)names->count + 1;
	struct plumb_iteration_work rest = *work;
	struct plumb_iteration_names text = { .text = malloc(room * sizeof *text.text),
		                              .alphabet = names->alphabet,
		                              .frames = names->frames };
	int32_t *places = malloc(room * sizeof *places);
	struct plumb_loops order = { 0 };
	int code = PLUMB_ESYSTEM;

	rest.kernels.items = NULL;
	rest.kernels.count = rest.kernels.capacity = 0;
	if (text.text && places && leave_rounds(work, names, loops, &rest, &text, places))
		code = text.count ? plumb_iterations_loops(&rest, &text, &order) : 0;
	for (uint32_t l = 0; !code && l < order.count; l++)
		code = take_order(&order.items[l], places, loops) ? 0 : PLUMB_ESYSTEM;
	plumb_iterations_order(loops);
	plumb_loops_free(&order);
	plumb_vec_free(&rest.kernels);
	free(text.text);
	free(places);
	return code;
}

/* Level 0 of loops whose rounds are marked; they have no pattern that goes on within. */
static int
measure_marked(const struct plumb_iteration_work *work, const struct plumb_iteration_names *names,
               struct plumb_loops *loops, struct plumb_iteration_track *track)
{
	int code = 0;

	track->loops = calloc((size_t)loops->count + 1, sizeof *track->loops);
	if (!track->loops)
		return PLUMB_ESYSTEM;
	for (uint32_t l = 0; !code && l < loops->count; l++) {
		struct plumb_iteration_loop *own = &track->loops[track->loop_count++];
		struct plumb_iteration_level *level = &own->levels[own->level_count++];
		/* What the order shows has a match, and no group. */
		const struct plumb_mark_group *group =
			&work->tracks->marks.groups.items[loops->items[l].phase];
		bool is_marked = isnan(loops->items[l].match);
		own->ends = is_marked && group->ends;
		level->phase = is_marked ? PLUMB_BY_MARKER : loops->items[l].phase;
		level->period_ops = (uint32_t)loops->items[l].period;
		level->first_frame = names->frames[loops->items[l].pattern[0]];
		if (is_marked)
			plumb_mark_group_name(work->profile, group, own->marker,
			                      sizeof own->marker);
		level->match = level->coverage = NAN;
		code = plumb_iterations_measure(work, &loops->items[l], &plumb_iteration_limits,
		                                level);
	}
	return code ? code : plumb_iterations_cut(work, names, loops, track);
}

/* The loops of TRACK in WORK. */
static int
find_loops(struct host *h, const struct plumb_iteration_work *work, enum plumb_marked_rounds rounds,
           struct plumb_iteration_track *track)
{
	size_t room = (size_t)work->kernels.count + 1;
	struct plumb_iteration_names names = { .text = malloc(room * sizeof *names.text) };
	uint32_t *frames = malloc(room * sizeof *frames);
	struct plumb_loops loops = { 0 };
	int code = PLUMB_ESYSTEM;

	if (names.text && frames && work->kernels.count < INT32_MAX &&
	    number_names(h, work, &names, frames))
		code = rounds == PLUMB_ROUNDS_UNMARKED
		               ? plumb_iterations_loops(work, &names, &loops)
		               : plumb_iterations_marked(work, &names, rounds, &loops);
	if (!code && rounds == PLUMB_ROUNDS_EVEN && loops.count)
		code = add_order(work, &names, &loops);
	if (!code && loops.count)
		code = rounds == PLUMB_ROUNDS_UNMARKED
		               ? plumb_iterations_levels(work, &names, &loops,
		                                         &plumb_iteration_limits, track)
		               : measure_marked(work, &names, &loops, track);
	plumb_loops_free(&loops);
	free(names.text);
	free(frames);
	return code;
}

/* How many of the marked iterations begin in loop L of TRACK. */
static uint32_t
count_inside(const struct plumb_iteration_track *track, uint32_t l,
             const struct plumb_iteration_level *marked)
{
	uint32_t inside = 0, at = 0;

	for (uint32_t s = 0; s < track->stretch_count; s++) {
		const struct plumb_iteration_stretch *stretch = &track->stretches[s];
		if (stretch->loop != l)
			continue;
		while (at < marked->count && marked->items[at].start_ns < stretch->start_ns)
			at++;
		for (; at < marked->count && marked->items[at].start_ns <= stretch->end_ns; at++)
			inside++;
	}
	return inside;
}

/* Do marked iterations have all of the time in loop L? */
static bool
is_all(const struct plumb_iteration_track *track, uint32_t l,
       const struct plumb_iteration_level *marked)
{
	const struct plumb_iteration_loop *loop = &track->loops[l];
	double all = 0, own = 0;

	for (uint32_t s = 0; s < track->stretch_count; s++)
		all += track->stretches[s].loop == l ? (double)track->stretches[s].kernel_ns : 0;
	for (uint32_t i = 0; i < marked->count; i++)
		if (marked->items[i].start_ns >= loop->start_ns &&
		    marked->items[i].start_ns <= loop->end_ns)
			own += (double)marked->items[i].op_time_ns;
	return own >= ALL * all;
}

/* The marked loop that takes most time; NULL: none is marked. */
static const struct plumb_iteration_loop *
main_marked(const struct plumb_iteration_track *track)
{
	const struct plumb_iteration_loop *best = NULL;

	for (uint32_t l = 0; l < track->loop_count; l++)
		if (*track->loops[l].marker && (!best || track->loops[l].time_ns > best->time_ns))
			best = &track->loops[l];
	return best;
}

/* Do marks tell more than the ORDER of operators? They do where that found less, or only parts of
 * iterations; not where they mark parts themselves. Where they mark only the ends of iterations,
 * the order tells better where one begins. */
static bool
tells_more(const struct plumb_iteration_track *marked, const struct plumb_iteration_track *order)
{
	const struct plumb_iteration_loop *main = main_marked(marked);
	const struct plumb_iteration_level *level = main ? main->levels : NULL;
	uint32_t inside = 0, best = 0;
	double marks, rounds, missed;

	if (!main || !order->loop_count)
		return main;
	for (uint32_t l = 0; l < order->loop_count; l++) {
		uint32_t own = count_inside(order, l, level);
		if (own > inside) {
			inside = own;
			best = l;
		}
	}
	if (!inside)
		return main->time_ns > order->loops[order->main_loop].time_ns;
	marks = level->count;
	rounds = order->loops[best].levels[0].count;
	if (is_all(order, best, level))
		return true;
	if (marks > PARTS * rounds)
		return false;
	missed = main->ends ? fmax(1, MISSED * marks) : 0;
	return marks * COARSER < rounds || marks - inside > missed;
}

/* Loops of TRACK in what is left if ranges are OPENED. */
static int
search(struct host *h, enum opened opened, enum plumb_marked_rounds rounds,
       struct plumb_iteration_track *track)
{
	struct plumb_iteration_work work = { .profile = h->profile,
		                             .tracks = &h->tracks,
		                             .spans = h->profile->spans,
		                             .host = true };
	int code = gather(h, track->track, opened, &work) ? 0 : PLUMB_ESYSTEM;

	if (!code && work.kernels.count)
		code = find_loops(h, &work, rounds, track);
	track->ops = work.kernels.count;
	for (uint32_t i = 0; i < work.kernels.count; i++) {
		const struct plumb_span *span = plumb_iteration_kernel(&work, i);
		plumb_iteration_add(&track->kernel_ns, span->end_ns - span->start_ns);
	}
	track->order = work.kernels.items;
	return code;
}

/* TRACK is as before it was searched: NONE. */
static void
search_again(struct plumb_iteration_track *track, const struct plumb_iteration_track *none)
{
	plumb_iteration_track_free_loops(track);
	*track = *none;
}

static int
find_track(struct host *h, struct plumb_iteration_track *track)
{
	const struct plumb_iteration_track none = *track;
	struct plumb_iteration_track marked = none;
	int code = take_marks(h, track->track) ? 0 : PLUMB_ESYSTEM;

	if (!code)
		code = search(h, OPEN_ALL, PLUMB_ROUNDS_STEPS, track);
	if (code || track->loop_count)
		return code;
	search_again(track, &none);
	code = search(h, OPEN_FEW, PLUMB_ROUNDS_UNMARKED, track);
	if (!code)
		code = search(h, OPEN_FEW, PLUMB_ROUNDS_EVEN, &marked);
	if (!code && tells_more(&marked, track)) {
		plumb_iteration_track_free_loops(track);
		*track = marked;
	} else {
		plumb_iteration_track_free_loops(&marked);
	}
	if (code || track->loop_count)
		return code;
	search_again(track, &none);
	return search(h, OPEN_ALL, PLUMB_ROUNDS_UNMARKED, track);
}

int
plumb_iterations_find_host(const struct plumb_profile *profile, struct plumb_iterations *found,
                           struct plumb_error *error)
{
	struct host h = { .profile = profile };
	int code = plumb_track_index_new(profile, &h.tracks);

	*found = (struct plumb_iterations){ 0 };
	found->tracks = calloc((size_t)profile->processes_count + 1, sizeof *found->tracks);
	h.group_of = calloc((size_t)profile->frames_count + 1, sizeof *h.group_of);
	if (!found->tracks || !h.group_of)
		code = PLUMB_ESYSTEM;
	for (uint32_t i = 0; !code && i < profile->processes_count; i++) {
		uint32_t thread = find_thread(&h, i);
		if (thread == PLUMB_NONE)
			continue;
		found->tracks[found->count] =
			(struct plumb_iteration_track){ .track = thread,
			                                .device = PLUMB_NONE,
			                                .process = i,
			                                .role = PLUMB_ROLE_MAIN,
			                                .op_gap_ns = NAN,
			                                .copy_bytes = PLUMB_UNKNOWN };
		code = find_track(&h, &found->tracks[found->count++]);
	}
	free(h.group_of);
	plumb_track_index_free(&h.tracks);
	return code ? plumb_fail_memory(error, NULL) : 0;
}
