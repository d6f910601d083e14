/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where windows begin and end if single spans are known: at the first kernel of a loop, and at the
 * end of its last one. On the host they begin with the call that starts that kernel, or with what
 * this call is the first of.
 */
#include "analyze/windows_private.h"

#include "analyze/host_steps.h"
#include "analyze/iterations.h"
#include "base/search.h"
#include "model/rows.h"

#define LEAST_ITERATIONS 4 /* of a loop that makes a window */
#define LEAST_TIME 0.01    /* of the longest loop's */
#define WARM_UP 0.1        /* of later loops' time: a shorter one before them is start-up */
#define MATTERS 0.05       /* of time or kernel time: what is outside of loops */
#define LEAST_LOOPS 0.2    /* of the time that is not of a loop, after start-up, or … */
#define MOST 0.5           /* … of the kernel time after start-up: what the run is about */
#define EDGE 1.5           /* iterations: what is shorter may be the edge of the recording */

struct cutting {
	struct plumb_profile *profile;
	struct plumb_windows_finding *found;
	struct plumb_windows_cuts *cuts;
	struct plumb_iterations iterations;
	struct plumb_host_steps steps;
	bool host; /* without GPU work: loops are those of threads */
};

/* A main track whose loops are its process' windows. */
struct lead {
	const struct plumb_iteration_track *track;
	uint32_t process;
	bool *taken;           /* by loop */
	uint32_t *windows;     /* by loop */
	uint32_t first;        /* the first stretch of a loop */
	uint32_t before, rest; /* windows, or PLUMB_NONE */
	int64_t step;          /* how long an iteration of the main loop takes */
	double step_kernels;   /* and how much kernel time it has */
};

/* ---- kernels and their launches ---- */

static bool
is_kernel(const struct plumb_profile *p, uint32_t span)
{
	return plumb_context_frame(p, p->spans[span].context)->kind == PLUMB_FRAME_KERNEL;
}

/* The first span of TRACK that begins at AT or later, or where the next track's begin. */
static uint32_t
span_at(const struct plumb_profile *p, uint32_t track, int64_t at)
{
	uint32_t first = plumb_profile_first_span(p, track);
	uint32_t count = plumb_profile_first_span(p, track + 1) - first;

	return first + plumb_search(i, count, p->spans[first + i].start_ns < at);
}

/* The call that started the first kernel at AT or later; or, if BEFORE, the last kernel before. */
static uint32_t
launch_at(const struct cutting *c, const struct lead *lead, int64_t at, bool before)
{
	const struct plumb_profile *p = c->profile;
	uint32_t first = plumb_profile_first_span(p, lead->track->track);
	uint32_t end = plumb_profile_first_span(p, lead->track->track + 1);
	uint32_t i = span_at(p, lead->track->track, at);

	while (!before && i < end && !is_kernel(p, i))
		i++;
	while (before && i > first && !is_kernel(p, i - 1))
		i--;
	if (before ? i == first : i == end)
		return PLUMB_NONE;
	i -= before;
	return plumb_launch_before(&c->cuts->launches, lead->process, p->spans[i].correlation,
	                           p->spans[i].start_ns);
}

/* Does each iteration have a call of its own? Otherwise they are layers within one graph. */
static bool
has_calls(const struct cutting *c, const struct lead *lead, uint32_t loop)
{
	const struct plumb_profile *p = c->profile;
	uint64_t last = 0;
	uint32_t calls = 0, wanted = lead->track->loops[loop].levels[0].count;

	for (uint32_t s = 0; s < lead->track->stretch_count; s++) {
		const struct plumb_iteration_stretch *stretch = &lead->track->stretches[s];
		uint32_t end = plumb_profile_first_span(p, lead->track->track + 1);
		if (stretch->loop != loop)
			continue;
		for (uint32_t i = span_at(p, lead->track->track, stretch->start_ns);
		     i < end && p->spans[i].start_ns <= stretch->end_ns && calls < wanted; i++) {
			if (!is_kernel(p, i))
				continue;
			if (!p->spans[i].correlation)
				return true;
			calls += p->spans[i].correlation != last;
			last = p->spans[i].correlation;
		}
	}
	return calls >= wanted;
}

/* Is all of the loop in one step of those that a framework's profiler marks? */
static bool
is_within_step(const struct cutting *c, const struct lead *lead, uint32_t loop)
{
	const struct plumb_iteration_loop *l = &lead->track->loops[loop];
	const struct plumb_profile *p = c->profile;
	const struct plumb_host_steps *steps = &c->steps;
	uint32_t first, last, at;

	if (!steps->starts || p->tracks[steps->track].process != lead->process)
		return false;
	first = launch_at(c, lead, l->start_ns, false);
	last = launch_at(c, lead, l->end_ns, true);
	if (first == PLUMB_NONE || last == PLUMB_NONE)
		return false;
	at = plumb_search(i, steps->starts, steps->start[i] <= p->spans[first].start_ns);
	return at > 0 && (at == steps->starts || steps->start[at] > p->spans[last].start_ns);
}

/* ---- which loops ---- */

static void
drop_short(const struct lead *lead)
{
	const struct plumb_iteration_loop *loops = lead->track->loops;
	int64_t most = 0;

	for (uint32_t l = 0; l < lead->track->loop_count; l++)
		if (lead->taken[l] && loops[l].time_ns > most)
			most = loops[l].time_ns;
	for (uint32_t l = 0; l < lead->track->loop_count; l++) {
		double later = 0;
		for (uint32_t m = l + 1; m < lead->track->loop_count; m++)
			later += lead->taken[m] ? (double)loops[m].time_ns : 0;
		if ((double)loops[l].time_ns < LEAST_TIME * (double)most ||
		    (double)loops[l].time_ns < WARM_UP * later)
			lead->taken[l] = false;
	}
}

/* How long all loops of LEAD take that are taken. */
static double
time_of(const struct lead *lead)
{
	double sum = 0;

	for (uint32_t l = 0; l < lead->track->loop_count; l++)
		sum += lead->taken[l] ? (double)lead->track->loops[l].time_ns : 0;
	return sum;
}

static bool
choose_loops(const struct cutting *c, struct lead *lead)
{
	const struct plumb_iteration_track *track = lead->track;

	lead->taken = calloc((size_t)track->loop_count + 1, sizeof *lead->taken);
	lead->windows = calloc((size_t)track->loop_count + 1, sizeof *lead->windows);
	if (!lead->taken || !lead->windows)
		return false;
	for (uint32_t l = 0; l < track->loop_count; l++)
		lead->taken[l] =
			track->loops[l].levels[0].count >= LEAST_ITERATIONS &&
			(c->host || (has_calls(c, lead, l) && !is_within_step(c, lead, l)));
	drop_short(lead);
	return true;
}

static void
free_lead(struct lead *lead)
{
	free(lead->taken);
	free(lead->windows);
	*lead = (struct lead){ 0 };
}

/* The main track of PROCESS whose loops take most time; LEAD->track NULL: none. */
static bool
find_lead(const struct cutting *c, uint32_t process, struct lead *lead)
{
	double most = 0;

	*lead = (struct lead){ 0 };
	for (uint32_t t = 0; t < c->iterations.count; t++) {
		struct lead next = { .track = &c->iterations.tracks[t], .process = process };
		if (next.track->process != process || next.track->role != PLUMB_ROLE_MAIN ||
		    !next.track->loop_count)
			continue;
		if (!choose_loops(c, &next)) {
			free_lead(&next);
			return false;
		}
		if (time_of(&next) > most) {
			most = time_of(&next);
			free_lead(lead);
			*lead = next;
		} else {
			free_lead(&next);
		}
	}
	return true;
}

static uint32_t
loop_of(const struct lead *lead, const struct plumb_iteration_stretch *stretch)
{
	return stretch->loop != PLUMB_NONE && lead->taken[stretch->loop] ? stretch->loop
	                                                                 : PLUMB_NONE;
}

/* An iteration of the loop that takes most time. */
static void
measure_step(struct lead *lead)
{
	const struct plumb_iteration_track *track = lead->track;
	uint32_t best = PLUMB_NONE, s = 0;
	double kernels = 0;

	for (uint32_t l = 0; l < track->loop_count; l++)
		if (lead->taken[l] &&
		    (best == PLUMB_NONE || track->loops[l].time_ns > track->loops[best].time_ns))
			best = l;
	for (uint32_t i = 0; i < track->stretch_count; i++)
		if (track->stretches[i].loop == best)
			kernels += (double)track->stretches[i].kernel_ns;
	lead->step = track->loops[best].time_ns / track->loops[best].levels[0].count;
	lead->step_kernels = kernels / track->loops[best].levels[0].count;
	while (loop_of(lead, &track->stretches[s]) == PLUMB_NONE)
		s++;
	lead->first = s;
}

/* Is more than a few percent of the process outside of loops, and yet the loops are what it is
 * about? */
static bool
matters(const struct cutting *c, const struct lead *lead)
{
	const struct plumb_process *process = &c->profile->processes[lead->process];
	const struct plumb_iteration_track *track = lead->track;
	double wall = (double)process->end_ns - (double)process->start_ns;
	double before = 0, outside = 0, kernels = 0, all = 0, after = 0, looped = 0, loops = 0;
	int64_t at = process->start_ns;

	for (uint32_t s = 0; s <= track->stretch_count; s++) {
		bool end = s == track->stretch_count;
		const struct plumb_iteration_stretch *stretch = &track->stretches[end ? 0 : s];
		double own = end ? 0 : (double)stretch->kernel_ns;
		double gap = (double)(end ? process->end_ns : stretch->start_ns) - (double)at;
		all += own;
		after += s >= lead->first ? own : 0;
		if (!end && loop_of(lead, stretch) == PLUMB_NONE) {
			kernels += own > EDGE * lead->step_kernels ? own : 0;
			continue;
		}
		*(s == lead->first ? &before : &outside) +=
			gap > EDGE * (double)lead->step ? gap : 0;
		looped += own;
		if (!end)
			at = stretch->end_ns;
	}
	for (uint32_t l = 0; l < track->loop_count; l++)
		loops += lead->taken[l];
	return (loops > 1 || before + outside > MATTERS * wall || kernels > MATTERS * all) &&
	       (time_of(lead) >= LEAST_LOOPS * outside || looped >= MOST * after);
}

/* ---- rows ---- */

/* A window of PROCESS, from START on. PLUMB_NONE: no memory. */
static uint32_t
add_window(struct cutting *c, uint32_t process, uint32_t kind, uint32_t loop)
{
	struct plumb_profile *p = c->profile;
	struct plumb_window *row = plumb_row_add(p, &plumb_row_tables[PLUMB_TABLE_WINDOWS]);
	struct plumb_windows_part *parts =
		realloc(c->found->parts, ((size_t)c->found->count + 1) * sizeof *parts);

	if (parts)
		c->found->parts = parts;
	if (!row || !parts)
		return PLUMB_NONE;
	*row = (struct plumb_window){ process, PLUMB_WINDOW_PART, p->windows_count, PLUMB_UNKNOWN };
	parts[c->found->count++] = (struct plumb_windows_part){ .window = p->windows_count - 1,
		                                                .process = process,
		                                                .start = INT64_MAX,
		                                                .end = INT64_MIN,
		                                                .gpu_loop = PLUMB_NONE,
		                                                .loop = loop,
		                                                .around = PLUMB_NONE,
		                                                .kind = kind };
	return p->windows_count - 1;
}

/* The next piece of PROCESS, if another window begins there. */
static bool
add_piece(struct cutting *c, uint32_t process, int64_t start, int64_t host, uint32_t window)
{
	uint32_t first = c->cuts->processes[process].first, count = c->cuts->pieces.count;
	const struct plumb_windows_piece *last =
		count > first ? &c->cuts->pieces.items[count - 1] : NULL;
	struct plumb_windows_piece *piece;

	if (c->host)
		start = host;
	if (last && last->window == window)
		return true;
	if (last && start < last->start)
		start = last->start;
	if (last && host < last->host)
		host = last->host;
	piece = plumb_vec_add(&c->cuts->pieces);
	if (piece)
		*piece = (struct plumb_windows_piece){ start, host, window };
	return piece;
}

/* The pieces of PROCESS become stretches of their windows. The GPU may end after the process. */
static bool
add_stretches(struct cutting *c, uint32_t process)
{
	struct plumb_profile *p = c->profile;
	int64_t over = p->processes[process].end_ns;

	for (uint32_t i = c->cuts->processes[process].first; i < c->cuts->pieces.count; i++) {
		const struct plumb_windows_piece *piece = &c->cuts->pieces.items[i];
		struct plumb_windows_part *part = &c->found->parts[piece->window];
		int64_t start = piece->start < over ? piece->start : over;
		int64_t end = i + 1 < c->cuts->pieces.count ? piece[1].start : over;
		struct plumb_window_stretch *row;
		end = end > over ? over : end < start ? start : end;
		row = plumb_row_add(p, &plumb_row_tables[PLUMB_TABLE_WINDOW_STRETCHES]);
		if (!row)
			return false;
		*row = (struct plumb_window_stretch){ piece->window, start, end };
		part->start = start < part->start ? start : part->start;
		part->end = end > part->end ? end : part->end;
		part->extent += end - start;
	}
	return true;
}

/* ---- a process with loops ---- */

/* Of what CALL is part and begins at FROM or later, the outermost: when it begins. */
static int64_t
outermost(const struct plumb_profile *p, uint32_t call, int64_t from)
{
	uint32_t first = plumb_profile_first_span(p, p->spans[call].track);
	int64_t start = p->spans[call].start_ns;

	for (uint32_t i = call; i > first && p->spans[i - 1].start_ns >= from; i--)
		if (p->spans[i - 1].end_ns >= p->spans[call].end_ns)
			start = p->spans[i - 1].start_ns;
	return start;
}

/* When the thread LEAD begins what is around its operator or range at START. What came before ended
 * at ENDED; PLUMB_UNKNOWN: nothing did, and what is around may be all of the run. */
static int64_t
thread_at(const struct cutting *c, const struct lead *lead, int64_t start, int64_t ended)
{
	const struct plumb_profile *p = c->profile;
	uint32_t end = plumb_profile_first_span(p, lead->track->track + 1);
	uint32_t i = span_at(p, lead->track->track, start);

	/* What begins together is around what comes after it. */
	while (i + 1 < end && p->spans[i + 1].start_ns == start)
		i++;
	return i == end ? start
	                : outermost(p, i, ended == PLUMB_UNKNOWN ? start - lead->step : ended);
}

/* When the host begins what comes with the kernels from START on. ENDED: when the loop before them
 * did, or PLUMB_UNKNOWN. */
static int64_t
host_at(const struct cutting *c, const struct lead *lead, int64_t start, int64_t ended)
{
	const struct plumb_profile *p = c->profile;
	uint32_t before = launch_at(c, lead, start, true);
	uint32_t next = launch_at(c, lead, start, false);
	int64_t from = before == PLUMB_NONE ? INT64_MIN : p->spans[before].end_ns;
	int64_t host = start;

	if (next != PLUMB_NONE && next == before)
		return p->spans[next].start_ns + 1;
	if (next != PLUMB_NONE) {
		host = p->spans[next].start_ns - lead->step;
		host = outermost(p, next, host > from ? host : from);
	}
	if (ended == PLUMB_UNKNOWN)
		return host;
	from = from > ended ? from : ended;
	return next == PLUMB_NONE || from < host ? from : host;
}

/* The same for stretch S of LEAD, which is of a loop. */
static int64_t
stretch_at(const struct cutting *c, const struct lead *lead, uint32_t s)
{
	const struct plumb_iteration_stretch *stretch = &lead->track->stretches[s];

	if (!c->host)
		return host_at(c, lead, stretch->start_ns, PLUMB_UNKNOWN);
	return thread_at(c, lead, stretch->start_ns, s ? stretch[-1].end_ns : PLUMB_UNKNOWN);
}

static bool
add_loop_windows(struct cutting *c, struct lead *lead)
{
	const struct plumb_iteration_track *track = lead->track;

	lead->before = add_window(c, lead->process, PLUMB_WINDOW_STARTUP, PLUMB_NONE);
	lead->rest = PLUMB_NONE;
	for (uint32_t l = 0; l < track->loop_count; l++) {
		const struct plumb_iteration_loop *from = &track->loops[l];
		struct plumb_windows_loop *loop;
		if (!lead->taken[l])
			continue;
		lead->windows[l] =
			add_window(c, lead->process, PLUMB_WINDOW_LOOP, c->found->loops.count);
		loop = plumb_vec_add(&c->found->loops);
		if (!loop || lead->windows[l] == PLUMB_NONE)
			return false;
		*loop = (struct plumb_windows_loop){ .process = lead->process,
			                             .gpu_loop = l,
			                             .start = from->start_ns,
			                             .wall = from->time_ns,
			                             .stretches = from->stretches,
			                             .iterations = from->levels[0].count };
	}
	return lead->before != PLUMB_NONE;
}

/* What follows the loop that ENDED then, with kernels from START on. */
static bool
add_rest(struct cutting *c, struct lead *lead, int64_t ended, int64_t start)
{
	if (lead->rest == PLUMB_NONE)
		lead->rest = add_window(c, lead->process, PLUMB_WINDOW_REST, PLUMB_NONE);
	return lead->rest != PLUMB_NONE &&
	       add_piece(c, lead->process, ended, c->host ? ended : host_at(c, lead, start, ended),
	                 lead->rest);
}

static bool
cut_process(struct cutting *c, struct lead *lead)
{
	const struct plumb_iteration_track *track = lead->track;
	int64_t ended = PLUMB_UNKNOWN, begin = c->profile->processes[lead->process].start_ns;
	bool ok = add_loop_windows(c, lead) &&
	          add_piece(c, lead->process, begin, begin, lead->before);

	for (uint32_t s = lead->first; ok && s < track->stretch_count; s++) {
		const struct plumb_iteration_stretch *stretch = &track->stretches[s];
		uint32_t loop = loop_of(lead, stretch);
		if (ended != PLUMB_UNKNOWN && loop == PLUMB_NONE)
			ok = add_rest(c, lead, ended, stretch->start_ns);
		ended = PLUMB_UNKNOWN;
		if (loop == PLUMB_NONE)
			continue;
		ok = add_piece(c, lead->process, stretch->start_ns, stretch_at(c, lead, s),
		               lead->windows[loop]);
		ended = stretch->end_ns;
	}
	if (ok && ended != PLUMB_UNKNOWN)
		ok = add_rest(c, lead, ended, INT64_MAX);
	return ok;
}

/* ---- a process without a loop ---- */

/* Its window with what WINDOW of another process is of. */
static uint32_t
window_like(struct cutting *c, uint32_t process, uint32_t window)
{
	const struct plumb_windows_part like = c->found->parts[window];

	for (uint32_t i = 0; i < c->found->count; i++)
		if (c->found->parts[i].process == process && c->found->parts[i].kind == like.kind &&
		    c->found->parts[i].around == like.loop)
			return i;
	window = add_window(c, process, like.kind, PLUMB_NONE);
	if (window != PLUMB_NONE)
		c->found->parts[window].around = like.loop;
	return window;
}

/* It goes by the times of process LIKE. */
static bool
cut_like(struct cutting *c, uint32_t process, uint32_t like)
{
	const struct plumb_process *row = &c->profile->processes[process];
	const struct plumb_windows_process from = c->cuts->processes[like];
	bool ok = true;

	for (uint32_t i = from.first; ok && i < from.end; i++) {
		struct plumb_windows_piece piece = c->cuts->pieces.items[i];
		int64_t next = i + 1 < from.end ? c->cuts->pieces.items[i + 1].start : INT64_MAX;
		uint32_t window;
		if (next <= row->start_ns || piece.start > row->end_ns)
			continue;
		if (piece.start < row->start_ns || i == from.first)
			piece.start = row->start_ns;
		window = window_like(c, process, piece.window);
		ok = window != PLUMB_NONE &&
		     add_piece(c, process, piece.start, piece.start, window);
	}
	return ok;
}

/* ---- all of it ---- */

/* Finds the LEADS, by process. *MAIN: the process whose loops take most time; PLUMB_NONE: there are
 * none, or telling them apart is not worth it. */
static bool
find_leads(const struct cutting *c, struct lead *leads, uint32_t *main)
{
	const struct plumb_profile *p = c->profile;
	bool matter = false;

	*main = PLUMB_NONE;
	for (uint32_t i = 0; i < p->processes_count; i++) {
		if (!plumb_is_time(p->processes[i].start_ns, p->processes[i].end_ns))
			continue;
		if (!find_lead(c, i, &leads[i]))
			return false;
		if (!leads[i].track)
			continue;
		measure_step(&leads[i]);
		matter |= matters(c, &leads[i]);
		if (*main == PLUMB_NONE || time_of(&leads[i]) > time_of(&leads[*main]))
			*main = i;
	}
	if (!matter)
		*main = PLUMB_NONE;
	return true;
}

/* Processes without a loop go by MAIN. */
static bool
cut_all(struct cutting *c, struct lead *leads, uint32_t main)
{
	const struct plumb_profile *p = c->profile;
	bool ok = true;

	for (uint32_t pass = 0; pass < 2; pass++) {
		for (uint32_t i = 0; ok && i < p->processes_count; i++) {
			struct plumb_windows_process *own = &c->cuts->processes[i];
			if (!plumb_is_time(p->processes[i].start_ns, p->processes[i].end_ns) ||
			    pass == (leads[i].track != NULL))
				continue;
			own->first = c->cuts->pieces.count;
			own->lead = leads[i].track ? leads[i].track->track : PLUMB_NONE;
			ok = leads[i].track ? cut_process(c, &leads[i]) : cut_like(c, i, main);
			own->end = c->cuts->pieces.count;
			ok = ok && add_stretches(c, i);
		}
	}
	return ok;
}

static int
find_iterations(struct cutting *c, struct plumb_error *error)
{
	int code = plumb_iterations_find(c->profile, NULL, &c->iterations, error);

	c->host = !code && !c->iterations.count;
	if (c->host) {
		plumb_iterations_free(&c->iterations);
		code = plumb_iterations_find_host(c->profile, &c->iterations, error);
	}
	return code;
}

int
plumb_windows_cut(struct plumb_profile *profile, struct plumb_windows_finding *found,
                  struct plumb_windows_cuts *cuts, struct plumb_error *error)
{
	struct cutting c = { .profile = profile, .found = found, .cuts = cuts };
	struct lead *leads = calloc((size_t)profile->processes_count + 1, sizeof *leads);
	uint32_t main = PLUMB_NONE;
	int code = find_iterations(&c, error);
	bool ok = leads;

	*cuts = (struct plumb_windows_cuts){
		.processes = calloc((size_t)profile->processes_count + 1, sizeof *cuts->processes)
	};
	for (uint32_t t = 0; !code && t < c.iterations.count; t++)
		main = c.iterations.tracks[t].loop_count ? 0 : main;
	if (ok && !code && main != PLUMB_NONE)
		ok = cuts->processes && (c.host || plumb_host_steps_marked(profile, &c.steps)) &&
		     plumb_launches_find(profile, PLUMB_NONE, &cuts->launches) == 0 &&
		     find_leads(&c, leads, &main) &&
		     (main == PLUMB_NONE || cut_all(&c, leads, main));
	for (uint32_t i = 0; leads && i < profile->processes_count; i++)
		free_lead(&leads[i]);
	free(leads);
	plumb_host_steps_free(&c.steps);
	plumb_iterations_free(&c.iterations);
	return ok || code ? code : plumb_fail_memory(error, "for the windows");
}

void
plumb_windows_cuts_free(struct plumb_windows_cuts *cuts)
{
	plumb_vec_free(&cuts->launches);
	plumb_vec_free(&cuts->pieces);
	free(cuts->processes);
	*cuts = (struct plumb_windows_cuts){ 0 };
}

uint32_t
plumb_windows_at(const struct plumb_windows_cuts *cuts, uint32_t process, bool host, int64_t at,
                 uint32_t *near)
{
	const struct plumb_windows_process *own = &cuts->processes[process];
	const struct plumb_windows_piece *pieces = cuts->pieces.items + own->first;
	uint32_t count = own->end - own->first, i = *near;

#define BEGIN(k) (host ? pieces[k].host : pieces[k].start)
	if (!count)
		return PLUMB_NONE;
	if (i >= count || BEGIN(i) > at || (i + 1 < count && BEGIN(i + 1) <= at)) {
		i = plumb_search(k, count, BEGIN(k) <= at);
		i -= i > 0;
	}
#undef BEGIN
	*near = i;
	return pieces[i].window;
}
