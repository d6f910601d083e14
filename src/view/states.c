/* SPDX-License-Identifier: Apache-2.0 */
#include "view/states.h"

#include <math.h>

#include "analyze/steps/state_graph.h"
#include "view/render.h"
#include "view/view.h"

/* What is asked for, as it was found. */
struct chosen {
	const struct plumb_profile *profile;
	const struct plumb_iteration_track *track;
	const struct plumb_iteration_level *level;
	uint32_t loop, depth;
	bool host, newest;
	struct plumb_state_graph graph;
};

struct column {
	const char *name, *unit;
};

static void
begin(struct plumb_answer *answer, const char *id, const char *title, const struct column *columns,
      size_t count)
{
	*answer = (struct plumb_answer){ .id = id, .title = title };
	for (size_t c = 0; c < count; c++)
		plumb_answer_column(answer, columns[c].name, columns[c].unit,
		                    PLUMB_SOURCE_IS_MEASURED);
}
#define BEGIN(answer, id, title, columns)                                                          \
	begin(answer, id, title, columns, sizeof columns / sizeof *columns)

static const char *
kind_of(const struct plumb_states *states, uint32_t s)
{
	return s == PLUMB_STATES_BEGIN                    ? "begin"
	       : s == PLUMB_STATES_END                    ? "end"
	       : states->joined && s + 1 == states->count ? "others"
	                                                  : "segment";
}

/* The kernel of segment S that takes most time; PLUMB_NONE: it has none. */
static uint32_t
longest_in(const struct plumb_state_graph *graph, uint32_t s)
{
	const struct plumb_state *state = &graph->states.items[s];
	const struct plumb_graph_kernel *best = NULL;

	for (uint32_t i = state->first; i < state->first + state->length; i++)
		if (!best || graph->kernels[i].ns > best->ns)
			best = &graph->kernels[i];
	return best ? best->frame : PLUMB_NONE;
}

static const char *
label(const struct chosen *c, uint32_t frame)
{
	return frame == PLUMB_NONE ? NULL : plumb_frame_label(c->profile, frame);
}

static double
share_of(int64_t part, int64_t whole)
{
	return whole > 0 ? (double)part / (double)whole : 0;
}

static void
add_states(const struct chosen *c, struct plumb_answer *a)
{
	static const struct column columns[] = {
		{ "state", NULL },      { "kind", NULL },         { "name", NULL },
		{ "kernels", "count" }, { "count", "count" },     { "per_iteration", "count" },
		{ "kernel_ns", "ns" },  { "iteration_ns", "ns" }, { "share", NULL },
		{ "wait_ns", "ns" },    { "mean_ns", "ns" },      { "min_ns", "ns" },
		{ "max_ns", "ns" },
	};
	const struct plumb_states *states = &c->graph.states;

	BEGIN(a, "states", "states of the loop", columns);
	for (uint32_t s = 0; s < states->count; s++) {
		const struct plumb_state *state = &states->items[s];
		const struct plumb_graph_state *times = &c->graph.times[s];
		bool others = states->joined && s + 1 == states->count;
		bool segment = s >= PLUMB_STATES_FIRST && !others;

		plumb_answer_integer(a, s);
		plumb_answer_text(a, kind_of(states, s));
		plumb_answer_text(a, label(c, longest_in(&c->graph, s)));
		plumb_answer_integer(a, others ? PLUMB_UNKNOWN : state->length);
		plumb_answer_integer(a, (int64_t)state->count);
		plumb_answer_number(a, (double)state->count / c->graph.iterations);
		plumb_answer_integer(a, times->kernel_ns);
		plumb_answer_number(a, (double)times->kernel_ns / c->graph.iterations);
		plumb_answer_number(a, share_of(times->kernel_ns, c->graph.kernel_ns));
		plumb_answer_integer(a, segment ? times->wait_ns : PLUMB_UNKNOWN);
		plumb_answer_number(a, segment ? (double)times->kernel_ns / (double)state->count
		                               : NAN);
		plumb_answer_integer(a, times->least_ns);
		plumb_answer_integer(a, times->most_ns);
	}
}

static void
add_kernels(const struct chosen *c, struct plumb_answer *a)
{
	static const struct column columns[] = {
		{ "state", NULL }, { "place", NULL },     { "name", NULL },
		{ "frame", NULL }, { "kernel_ns", "ns" }, { "mean_ns", "ns" },
	};
	const struct plumb_states *states = &c->graph.states;

	BEGIN(a, "states.kernels", "kernels of the states", columns);
	for (uint32_t s = PLUMB_STATES_FIRST; s < states->count; s++)
		for (uint32_t i = 0; i < states->items[s].length; i++) {
			const struct plumb_graph_kernel *kernel =
				&c->graph.kernels[states->items[s].first + i];

			plumb_answer_integer(a, s);
			plumb_answer_integer(a, i);
			plumb_answer_text(a, label(c, kernel->frame));
			plumb_answer_integer(a, kernel->frame);
			plumb_answer_integer(a, kernel->ns);
			plumb_answer_number(a, (double)kernel->ns / (double)states->items[s].count);
		}
}

static void
add_transition(const struct chosen *c, const struct plumb_transition *one,
               const struct plumb_graph_wait *wait, struct plumb_answer *a)
{
	bool timed = one->from >= PLUMB_STATES_FIRST && one->to >= PLUMB_STATES_FIRST;

	timed |= one->from == PLUMB_STATES_END; /* the interval between iterations */
	plumb_answer_integer(a, one->from);
	plumb_answer_integer(a, one->to);
	plumb_answer_integer(a, (int64_t)one->count);
	plumb_answer_number(a, (double)one->count / c->graph.iterations);
	plumb_answer_number(a, one->from == PLUMB_STATES_END
	                               ? NAN
	                               : (double)one->count /
	                                         (double)c->graph.states.items[one->from].count);
	plumb_answer_integer(a, timed ? wait->sum_ns : PLUMB_UNKNOWN);
	plumb_answer_number(a, timed ? (double)wait->sum_ns / (double)one->count : NAN);
	plumb_answer_integer(a, timed ? wait->most_ns : PLUMB_UNKNOWN);
}

static void
add_transitions(const struct chosen *c, struct plumb_answer *a)
{
	static const struct column columns[] = {
		{ "from", NULL },     { "to", NULL },
		{ "count", "count" }, { "per_iteration", "count" },
		{ "share", NULL },    { "wait_ns", "ns" },
		{ "mean_ns", "ns" },  { "max_ns", "ns" },
	};
	const struct plumb_states *states = &c->graph.states;
	const struct plumb_transition again = { PLUMB_STATES_END, PLUMB_STATES_BEGIN,
		                                c->graph.again };

	BEGIN(a, "states.transitions", "transitions between the states", columns);
	for (uint32_t i = 0; i < states->transition_count; i++)
		add_transition(c, &states->transitions[i], &c->graph.waits[i], a);
	if (again.count)
		add_transition(c, &again, &c->graph.again_wait, a);
}

static void
add_total(const struct chosen *c, struct plumb_answer *a)
{
	static const struct column columns[] = {
		{ "track", NULL },         { "loop", NULL },      { "level", NULL },
		{ "iterations", "count" }, { "history", NULL },   { "kernels", "count" },
		{ "kernel_ns", "ns" },     { "joined", "count" }, { "of", NULL },
		{ "newest", NULL },
	};

	BEGIN(a, "states.total", "what the states are of", columns);
	plumb_answer_integer(a, c->track->track);
	plumb_answer_integer(a, c->loop + 1);
	plumb_answer_integer(a, c->depth);
	plumb_answer_integer(a, c->graph.iterations);
	plumb_answer_integer(a, c->graph.states.history);
	plumb_answer_integer(a, c->graph.states.places);
	plumb_answer_integer(a, c->graph.kernel_ns);
	plumb_answer_integer(a, c->graph.states.joined);
	plumb_answer_text(a, c->host ? "operators and ranges" : "kernels");
	plumb_answer_truth(a, c->newest);
}

/* ---- which loop ---- */

/* Chooses the level in FOUND. False: no loop has it. */
static bool
choose(const struct plumb_iterations *found, const struct plumb_states_query *query,
       struct chosen *chosen)
{
	for (uint32_t t = 0; t < found->count; t++) {
		const struct plumb_iteration_track *track = &found->tracks[t];
		uint32_t loop = query->loop ? (uint32_t)(query->loop - 1) : track->main_loop;

		if ((query->one && track->track != query->track) || loop >= track->loop_count ||
		    query->level >= track->loops[loop].level_count)
			continue;
		chosen->track = track;
		chosen->level = &track->loops[loop].levels[query->level];
		chosen->loop = loop;
		chosen->depth = query->level;
		return true;
	}
	return false;
}

/* Looks on GPUs, then on threads of processes without GPU work. */
static int
find_level(const struct plumb_states_query *query, struct plumb_iterations *found,
           struct chosen *chosen, struct plumb_error *error)
{
	int code = plumb_iterations_find(chosen->profile, NULL, found, error);

	chosen->newest = found->newest;
	if (code || choose(found, query, chosen))
		return code;
	if (!found->count) {
		plumb_iterations_free(found);
		code = plumb_iterations_find_host(chosen->profile, found, error);
		chosen->host = true;
		chosen->newest = false;
		if (code || choose(found, query, chosen))
			return code;
	}
	return plumb_fail(error, PLUMB_EEMPTY,
	                  "there is no such loop, so there is no graph of its states");
}

static int
make_tables(const struct chosen *chosen, struct plumb_answer *answers, struct plumb_error *error)
{
	static void (*const add[])(const struct chosen *,
	                           struct plumb_answer *) = { add_states, add_kernels,
		                                              add_transitions, add_total };
	int code = 0;

	for (int i = 0; !code && i < PLUMB_STATES_TABLES; i++) {
		add[i](chosen, &answers[i]);
		code = plumb_answer_end(&answers[i], error);
		for (int done = 0; code && done < i; done++)
			plumb_answer_free(&answers[done]);
	}
	return code;
}

int
plumb_states_answer(const struct plumb_profile *profile, const struct plumb_states_query *query,
                    struct plumb_answer answers[PLUMB_STATES_TABLES], struct plumb_error *error)
{
	const struct plumb_state_graph_query wanted = {
		.history = query->with_history ? (int)query->history : -1,
		.most = query->most ? query->most : PLUMB_STATES_SHOWN,
	};
	struct chosen chosen = { .profile = profile };
	struct plumb_iterations found;
	int code;

	if (query->with_history && query->history > PLUMB_STATES_HISTORY_MOST)
		return plumb_fail(error, PLUMB_EUSAGE, "history is at most %d",
		                  PLUMB_STATES_HISTORY_MOST);
	if (wanted.most < 4)
		return plumb_fail(error, PLUMB_EUSAGE, "most is at least 4");
	code = find_level(query, &found, &chosen, error);
	if (!code &&
	    plumb_state_graph_find(profile, chosen.track, chosen.level, &wanted, &chosen.graph) < 0)
		code = plumb_fail_memory(error, "for the state graph");
	if (!code)
		code = make_tables(&chosen, answers, error);
	plumb_state_graph_free(&chosen.graph);
	plumb_iterations_free(&found);
	return code;
}

int
plumb_view_states(const struct plumb_profile *profile, const struct plumb_states_query *query,
                  enum plumb_view_format format, FILE *out, struct plumb_error *error)
{
	struct plumb_answer answers[PLUMB_STATES_TABLES];
	struct plumb_error unread;
	int code;

	error = error ? error : &unread;
	code = plumb_states_answer(profile, query, answers, error);
	if (code)
		return code;
	code = plumb_view_answers(answers, PLUMB_STATES_TABLES, "states", format, out, error);
	for (int i = 0; i < PLUMB_STATES_TABLES; i++)
		plumb_answer_free(&answers[i]);
	return code;
}
