/* SPDX-License-Identifier: Apache-2.0 */
/* The graph is that of kernel names (pattern/states.h). Ranges of a thread whose names differ in a
 * number only, such as "step 1" and "step 2", are one name. */
#include "analyze/steps/state_graph.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/iterations_private.h"
#include "base/hash.h"
#include "base/map.h"

struct finder {
	const struct plumb_profile *profile;
	const struct plumb_iteration_level *level;
	struct plumb_iteration_kernels kernels;
	struct plumb_round *rounds;
	int32_t *text;
	uint32_t *frames; /* by symbol */
	int64_t *weights; /* by kernel */
	int64_t last_ns;  /* while times are added: until when kernels of the iteration ran */
};

/* ---- names as symbols ---- */

/* NAME with a "#" for each number in it. */
static void
write_pattern(const char *name, char *text, size_t size)
{
	size_t used = 0;

	for (; *name && used + 1 < size; name++) {
		bool digit = *name >= '0' && *name <= '9';

		if (digit && used && text[used - 1] == '#')
			continue;
		text[used++] = digit ? '#' : *name;
	}
	text[used] = '\0';
}

/* Are A and B one name? */
static bool
is_same(const struct plumb_profile *p, uint32_t a, uint32_t b)
{
	char one[200], other[200];

	if (p->frames[a].kind != p->frames[b].kind)
		return false;
	if (p->frames[a].name == p->frames[b].name)
		return true;
	if (p->frames[a].kind != PLUMB_FRAME_RANGE)
		return false;
	write_pattern(plumb_text(p, p->frames[a].name), one, sizeof one);
	write_pattern(plumb_text(p, p->frames[b].name), other, sizeof other);
	return !strcmp(one, other);
}

static uint64_t
hash_name(const struct plumb_profile *p, uint32_t frame)
{
	char text[200];

	if (p->frames[frame].kind != PLUMB_FRAME_RANGE)
		return plumb_hash_mix(1, p->frames[frame].name);
	write_pattern(plumb_text(p, p->frames[frame].name), text, sizeof text);
	return plumb_hash_bytes(text, strlen(text));
}

/* The number of FRAME's name, of COUNT so far; PLUMB_NONE: no memory. */
static uint32_t
number_of(struct finder *f, struct plumb_map *map, uint32_t frame, uint32_t *count)
{
	uint64_t hash = hash_name(f->profile, frame);
	struct plumb_map_cursor at;

	for (uint32_t id = plumb_map_first(map, hash, &at); id != PLUMB_MAP_NONE;
	     id = plumb_map_next(map, &at))
		if (is_same(f->profile, f->frames[id], frame))
			return id;
	if (plumb_map_add(map, hash, *count) < 0)
		return PLUMB_NONE;
	f->frames[*count] = frame;
	return (*count)++;
}

/* Numbers the names, each frame once. */
static int
name_kernels(struct finder *f)
{
	const struct plumb_profile *p = f->profile;
	uint32_t *symbols = calloc((size_t)p->frames_count + 1, sizeof *symbols), count = 0;
	struct plumb_map map = { 0 };
	int code = symbols ? 0 : PLUMB_ESYSTEM;

	for (uint32_t i = 0; !code && i < f->kernels.count; i++) {
		const struct plumb_iteration_kernel *kernel = &f->kernels.items[i];
		uint32_t frame = p->contexts[kernel->context].frame;

		if (!symbols[frame])
			symbols[frame] = number_of(f, &map, frame, &count) + 1; /* none: 0 */
		code = symbols[frame] ? 0 : PLUMB_ESYSTEM;
		f->text[i] = (int32_t)symbols[frame] - 1;
		f->weights[i] = kernel->end_ns - kernel->start_ns;
	}
	free(symbols);
	plumb_map_free(&map);
	return code;
}

static int
prepare(struct finder *f, const struct plumb_iteration_track *track)
{
	int code = plumb_iterations_kernels(f->profile, track, &f->kernels);
	size_t count = f->kernels.count + (size_t)1;

	f->rounds = calloc(f->level->count + (size_t)1, sizeof *f->rounds);
	f->text = malloc(count * sizeof *f->text);
	f->frames = malloc(count * sizeof *f->frames);
	f->weights = malloc(count * sizeof *f->weights);
	if (code || !f->rounds || !f->text || !f->frames || !f->weights)
		return PLUMB_ESYSTEM;
	for (uint32_t i = 0; i < f->level->count; i++) {
		const struct plumb_iteration *item = &f->level->items[i];

		f->rounds[i].start = (int32_t)item->first;
		f->rounds[i].end = (int32_t)(item->first + item->ops);
	}
	return name_kernels(f);
}

/* ---- times ---- */

static void
add_wait(struct plumb_graph_wait *wait, int64_t ns)
{
	plumb_iteration_add(&wait->sum_ns, ns);
	if (ns > wait->most_ns)
		wait->most_ns = ns;
}

/* A visit of STATE took NS. */
static void
add_visit(struct plumb_graph_state *state, int64_t ns)
{
	if (state->least_ns == PLUMB_UNKNOWN || ns < state->least_ns)
		state->least_ns = ns;
	if (state->most_ns == PLUMB_UNKNOWN || ns > state->most_ns)
		state->most_ns = ns;
}

/* Adds KERNEL, number AT of the states' kernels. FIRST: it is the first of its iteration. */
static void
add_kernel(struct finder *f, struct plumb_state_graph *graph, uint32_t at,
           const struct plumb_iteration_kernel *kernel, bool first)
{
	const struct plumb_states *states = &graph->states;
	uint32_t s = states->state[at], through = states->through[at];
	int64_t ns = kernel->end_ns - kernel->start_ns, wait = 0;

	if (!first && kernel->start_ns > f->last_ns)
		wait = kernel->start_ns - f->last_ns;
	if (through == PLUMB_STATES_NONE)
		plumb_iteration_add(&graph->times[s].wait_ns, wait);
	else
		add_wait(&graph->waits[through], wait);
	plumb_iteration_add(&graph->times[s].kernel_ns, ns);
	plumb_iteration_add(&graph->kernel_ns, ns);
	if (states->items[s].length)
		plumb_iteration_add(&graph->kernels[states->items[s].first + states->within[at]].ns,
		                    ns);
	if (first || kernel->end_ns > f->last_ns)
		f->last_ns = kernel->end_ns;
}

static void
add_iteration(struct finder *f, struct plumb_state_graph *graph, const struct plumb_iteration *item,
              uint32_t at)
{
	const struct plumb_states *states = &graph->states;
	int64_t began = 0;

	for (uint32_t i = 0; i < item->ops; i++) {
		const struct plumb_iteration_kernel *kernel = &f->kernels.items[item->first + i];
		const struct plumb_state *state = &states->items[states->state[at + i]];

		add_kernel(f, graph, at + i, kernel, !i);
		if (!states->within[at + i])
			began = kernel->start_ns;
		if (state->length && states->within[at + i] + 1 == state->length)
			add_visit(&graph->times[states->state[at + i]], kernel->end_ns - began);
	}
	if (item->interval_ns != PLUMB_UNKNOWN) {
		graph->again++;
		add_wait(&graph->again_wait, item->interval_ns);
	}
}

static int
measure(struct finder *f, struct plumb_state_graph *graph)
{
	const struct plumb_states *states = &graph->states;
	uint32_t symbols = 0, at = 0;

	for (uint32_t s = 0; s < states->count; s++)
		if (states->items[s].first + states->items[s].length > symbols)
			symbols = states->items[s].first + states->items[s].length;
	graph->times = calloc(states->count + (size_t)1, sizeof *graph->times);
	graph->kernels = calloc(symbols + (size_t)1, sizeof *graph->kernels);
	graph->waits = calloc(states->transition_count + (size_t)1, sizeof *graph->waits);
	if (!graph->times || !graph->kernels || !graph->waits)
		return PLUMB_ESYSTEM;
	for (uint32_t s = 0; s < states->count; s++)
		graph->times[s].least_ns = graph->times[s].most_ns = PLUMB_UNKNOWN;
	for (uint32_t i = 0; i < symbols; i++)
		graph->kernels[i].frame = f->frames[states->symbols[i]];
	for (uint32_t i = 0; i < f->level->count; i++) {
		add_iteration(f, graph, &f->level->items[i], at);
		at += f->level->items[i].ops;
	}
	graph->iterations = f->level->count;
	return 0;
}

int
plumb_state_graph_find(const struct plumb_profile *profile,
                       const struct plumb_iteration_track *track,
                       const struct plumb_iteration_level *level,
                       const struct plumb_state_graph_query *query, struct plumb_state_graph *graph)
{
	struct finder f = { .profile = profile, .level = level };
	int code = prepare(&f, track);

	*graph = (struct plumb_state_graph){ 0 };
	if (!code) {
		const struct plumb_states_input input = { .text = f.text,
			                                  .rounds = f.rounds,
			                                  .round_count = level->count,
			                                  .weights = f.weights,
			                                  .most = query->most,
			                                  .history = query->history };
		code = plumb_states_find(&input, &graph->states);
	}
	if (!code)
		code = measure(&f, graph);
	free(f.kernels.items);
	free(f.rounds);
	free(f.text);
	free(f.frames);
	free(f.weights);
	return code;
}

void
plumb_state_graph_free(struct plumb_state_graph *graph)
{
	plumb_states_free(&graph->states);
	free(graph->times);
	free(graph->kernels);
	free(graph->waits);
	*graph = (struct plumb_state_graph){ 0 };
}
