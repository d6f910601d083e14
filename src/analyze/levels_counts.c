/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The run that counts hardware events of kernels. Its counters become values of the first run's
 * call paths: a path is the same if all of its frames are, Python lines too, since both runs look
 * at them. Equal work is told by launches and not by kernel times, as CUPTI may lose records of
 * kernels that run several times. A place that launched more or less often is left out.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/levels_private.h"
#include "base/hash.h"
#include "model/metric.h"

/* What is left out for one reason: how many call paths, and the one to name. */
struct group {
	uint32_t count;
	int64_t most;
	char name[120], detail[80];
};

struct counting {
	struct plumb_levels *levels;
	const struct plumb_profile *own, *p; /* the first run's, and the one that counted */
	struct plumb_map map;                /* contexts of the first run */
	uint32_t *context_of;                /* by context of P: of OWN, or PLUMB_NONE */
	int64_t *own_launches, *launches;    /* by context of OWN and of P */
	bool *settled;                       /* by context of OWN: counted, or named */
	struct group unlike, extra, missing, uncounted;
};

/* ---- call paths ---- */

/* The context of the first run under PARENT that is as CONTEXT of P. */
static uint32_t
find_context(const struct counting *c, uint32_t parent, const struct plumb_profile *p,
             uint32_t context, uint64_t *hash)
{
	const struct plumb_frame *frame = plumb_context_frame(p, context);
	const char *name = plumb_levels_name(p, frame->name),
		   *file = plumb_levels_name(p, frame->file);
	uint32_t flags = p->contexts[context].flags;
	struct plumb_map_cursor at;

	*hash = plumb_hash_mix(plumb_hash_mix(parent, frame->kind), flags);
	*hash = plumb_hash_mix(*hash, plumb_hash_bytes(name, strlen(name)));
	*hash = plumb_hash_mix(*hash, plumb_hash_bytes(file, strlen(file)));
	*hash = plumb_hash_mix(*hash, frame->line);
	for (uint32_t id = plumb_map_first(&c->map, *hash, &at); id != PLUMB_MAP_NONE;
	     id = plumb_map_next(&c->map, &at)) {
		const struct plumb_frame *other = plumb_context_frame(c->own, id);

		if (c->own->contexts[id].parent == parent && other->kind == frame->kind &&
		    other->line == frame->line && c->own->contexts[id].flags == flags &&
		    !strcmp(plumb_levels_name(c->own, other->name), name) &&
		    !strcmp(plumb_levels_name(c->own, other->file), file))
			return id;
	}
	return PLUMB_NONE;
}

static bool
match_contexts(struct counting *c)
{
	uint64_t hash;

	for (uint32_t i = 1; i < c->own->contexts_count; i++) {
		find_context(c, c->own->contexts[i].parent, c->own, i, &hash);
		if (plumb_map_add(&c->map, hash, i))
			return false;
	}
	for (uint32_t i = 1; i < c->p->contexts_count; i++) {
		uint32_t parent = c->context_of[c->p->contexts[i].parent];

		c->context_of[i] =
			parent == PLUMB_NONE ? PLUMB_NONE : find_context(c, parent, c->p, i, &hash);
	}
	return true;
}

static void
add_launches(const struct plumb_profile *p, int64_t *launches)
{
	for (uint32_t i = 0; i < p->values_count; i++)
		if (p->values[i].metric == PLUMB_METRIC_GPU_LAUNCHES)
			launches[p->values[i].context] += p->values[i].sum;
}

/* ---- what is left out ---- */

/* "gemm at aten::mm": a kernel, and the innermost module, operator or range around it. */
static void
say_kernel(const struct plumb_profile *p, uint32_t context, char *text, size_t size)
{
	const char *kernel = plumb_frame_label(p, p->contexts[context].frame);

	for (uint32_t k = p->contexts[context].parent; k != PLUMB_NONE; k = p->contexts[k].parent) {
		uint32_t kind = plumb_context_frame(p, k)->kind;

		if (kind != PLUMB_FRAME_MODULE && kind != PLUMB_FRAME_OPERATOR &&
		    kind != PLUMB_FRAME_RANGE)
			continue;
		snprintf(text, size, "%.60s at %.40s", kernel,
		         plumb_frame_label(p, p->contexts[k].frame));
		return;
	}
	snprintf(text, size, "%.100s", kernel);
}

/* Leaves out the kernel at CONTEXT of P, which weighs so much among those of GROUP. */
static bool
leave_out(struct group *group, const struct plumb_profile *p, uint32_t context, int64_t weight)
{
	if (!group->count++ || weight > group->most) {
		group->most = weight;
		say_kernel(p, context, group->name, sizeof group->name);
		return true;
	}
	return false;
}

static bool
is_kernel(const struct plumb_profile *p, uint32_t context)
{
	return context && plumb_context_frame(p, context)->kind == PLUMB_FRAME_KERNEL;
}

/* Does the call at CONTEXT of the first run launch as often in both runs? CALL is that of P, or
 * PLUMB_NONE. KERNEL of P or of the first run, which weighs so much, is named if not. */
static bool
is_alike(struct counting *c, uint32_t context, uint32_t call, const struct plumb_profile *p,
         uint32_t kernel, int64_t weight)
{
	int64_t now = call == PLUMB_NONE ? 0 : c->launches[call];

	if (now == c->own_launches[context])
		return true;
	if (leave_out(&c->unlike, p, kernel, weight))
		snprintf(c->unlike.detail, sizeof c->unlike.detail,
		         "%" PRId64 " launches there, and %" PRId64 " in the first run", now,
		         c->own_launches[context]);
	return false;
}

/* The context of the first run that has the counters of CONTEXT of P; PLUMB_NONE: none. */
static uint32_t
place_of(struct counting *c, uint32_t context, uint64_t count)
{
	uint32_t call = c->p->contexts[context].parent, own = c->context_of[context];

	if (own == PLUMB_NONE) {
		leave_out(&c->extra, c->p, context, (int64_t)count);
		return PLUMB_NONE;
	}
	c->settled[own] = true;
	return is_alike(c, c->context_of[call], call, c->p, context, (int64_t)count) ? own
	                                                                             : PLUMB_NONE;
}

/* ---- what is taken ---- */

/* The first value of CONTEXT, or where it would be. */
static uint32_t
first_value(const struct plumb_profile *p, uint32_t context)
{
	uint32_t low = 0, high = p->values_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (p->values[middle].context < context)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The thread of the first run that made CALL, of a process with RANK if there is one. */
static uint32_t
track_of(const struct plumb_profile *p, uint32_t call, int64_t rank)
{
	uint32_t found = PLUMB_NONE;

	for (uint32_t i = first_value(p, call); i < p->values_count && p->values[i].context == call;
	     i++) {
		uint32_t track = p->values[i].track;

		if (track == PLUMB_NONE)
			continue;
		if (p->processes[p->tracks[track].process].rank == rank)
			return track;
		found = found == PLUMB_NONE ? track : found;
	}
	return found;
}

static int64_t
rank_of(const struct plumb_profile *p, uint32_t track)
{
	return track == PLUMB_NONE ? PLUMB_UNKNOWN : p->processes[p->tracks[track].process].rank;
}

static const char *
keep(struct plumb_levels *levels, const char *text)
{
	size_t bytes = text ? strlen(text) + 1 : 0;
	char *copy = text ? plumb_pool_take(levels->texts, bytes) : NULL;

	return copy ? memcpy(copy, text, bytes) : NULL;
}

/* Values are in the order of contexts, so that the place of one is that of the next. */
static int
take_counts(struct counting *c)
{
	struct plumb_levels *levels = c->levels;
	uint32_t context = PLUMB_NONE, own = PLUMB_NONE, track = PLUMB_NONE;

	for (uint32_t i = 0; i < c->p->values_count; i++) {
		const struct plumb_value *v = &c->p->values[i];
		struct plumb_profile_count *count;

		if (v->metric < PLUMB_METRIC_USER || !is_kernel(c->p, v->context))
			continue;
		if (v->context != context) {
			context = v->context;
			own = place_of(c, context, v->count);
			track = own == PLUMB_NONE ? PLUMB_NONE
			                          : track_of(c->own, c->own->contexts[own].parent,
			                                     rank_of(c->p, v->track));
		}
		if (own == PLUMB_NONE)
			continue;
		count = plumb_vec_add(&levels->counts);
		if (!count)
			return PLUMB_ESYSTEM;
		struct plumb_metric_info metric = plumb_profile_metric(c->p, v->metric);
		*count = (struct plumb_profile_count){ .name = keep(levels, metric.name),
			                               .unit = keep(levels, metric.unit),
			                               .value = *v };
		count->value.context = own;
		count->value.track = track;
		if (!count->name)
			return PLUMB_ESYSTEM;
	}
	return 0;
}

static bool
is_hot(uint32_t name, const uint32_t *hot, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (hot[i] == name)
			return true;
	return false;
}

/* Are there kernels of P without a record? Then a path that is not in P may have run. */
static bool
lacks_records(const struct plumb_profile *p)
{
	for (uint32_t i = 0; i < p->ledger_count; i++)
		if (p->ledger[i].source == PLUMB_SOURCE_KERNEL && p->ledger[i].count > 0 &&
		    plumb_fate_is_drop[p->ledger[i].fate])
			return true;
	return false;
}

/* Where the contexts of the first run are in P; PLUMB_NONE. NULL: no memory. */
static uint32_t *
match_back(const struct counting *c)
{
	uint32_t *back = malloc(((size_t)c->own->contexts_count + 1) * sizeof *back);

	for (uint32_t i = 0; back && i < c->own->contexts_count; i++)
		back[i] = PLUMB_NONE;
	for (uint32_t i = 0; back && i < c->p->contexts_count; i++)
		if (c->context_of[i] != PLUMB_NONE)
			back[c->context_of[i]] = i;
	return back;
}

/* The hot kernels of the first run that were not counted, by their time. */
static int
find_missing(struct counting *c, const uint32_t *hot, uint32_t hot_count)
{
	uint32_t *back = match_back(c);
	bool lacks = lacks_records(c->p);

	for (uint32_t i = 0; back && i < c->own->values_count; i++) {
		const struct plumb_value *v = &c->own->values[i];
		uint32_t call = c->own->contexts[v->context].parent;

		if (v->metric != PLUMB_METRIC_GPU_TIME || !is_kernel(c->own, v->context) ||
		    c->settled[v->context] ||
		    !is_hot(plumb_context_frame(c->own, v->context)->name, hot, hot_count))
			continue;
		c->settled[v->context] = true; /* once, though several streams run it */
		if (back[v->context] != PLUMB_NONE || (lacks && back[call] != PLUMB_NONE)) {
			if (is_alike(c, call, back[call], c->own, v->context, v->sum))
				leave_out(&c->uncounted, c->own, v->context, v->sum);
		} else {
			leave_out(&c->missing, c->own, v->context, v->sum);
		}
	}
	free(back);
	return back ? 0 : PLUMB_ESYSTEM;
}

/* ---- what is said ---- */

static void __attribute__((format(printf, 2, 3)))
append(struct plumb_levels *levels, const char *format, ...)
{
	char *text = levels->counts_why;
	size_t size = sizeof levels->counts_why, used = strlen(text);
	va_list args;

	if (used && used + 3 < size)
		used += (size_t)snprintf(text + used, size - used, "; ");
	va_start(args, format);
	vsnprintf(text + used, size - used, format, args);
	va_end(args);
}

/* Why most launches were not counted that should have been; NULL: the ledger does not say. */
static const char *
reason_of(const struct plumb_profile *p)
{
	const struct plumb_ledger_row *found = NULL;

	for (uint32_t i = 0; i < p->ledger_count; i++) {
		const struct plumb_ledger_row *row = &p->ledger[i];

		if (row->source == PLUMB_SOURCE_COUNTER && row->fate != PLUMB_FATE_RECEIVED &&
		    row->fate != PLUMB_FATE_ATTRIBUTED && row->fate != PLUMB_FATE_ENOUGH &&
		    row->fate != PLUMB_FATE_NOT_HOT && row->count > 0 &&
		    (!found || row->count > found->count))
			found = row;
	}
	return found ? plumb_fate_reasons[found->fate] : NULL;
}

static void
say_group(struct plumb_levels *levels, const struct group *group, const char *why,
          const char *detail)
{
	if (group->count)
		append(levels, "no counters for %" PRIu32 " call %s of kernels, because %s: %s%s%s",
		       group->count, group->count == 1 ? "path" : "paths", why, group->name,
		       detail ? ", " : "", detail ? detail : "");
}

static void
say_all(const struct counting *c)
{
	const char *off = plumb_profile_environment(c->p, "gpu.counters.off");
	const char *without = plumb_profile_environment(c->p, "gpu.counters.without");

	if (off) {
		append(c->levels, "%s", off);
		return;
	}
	if (without)
		append(c->levels, "this GPU does not have %s", without);
	say_group(c->levels, &c->unlike, "the run that counts did other work there",
	          c->unlike.detail);
	say_group(c->levels, &c->missing, "the run that counts did not launch them", NULL);
	say_group(c->levels, &c->uncounted, "their launches were not counted", reason_of(c->p));
	say_group(c->levels, &c->extra, "the first run did not launch them", NULL);
}

/* ---- all of it ---- */

static int
take_profile(struct counting *c, const uint32_t *hot, uint32_t hot_count)
{
	uint32_t own = c->own->contexts_count + 1, other = c->p->contexts_count + 1;
	int code = PLUMB_ESYSTEM;

	c->context_of = calloc(other, sizeof *c->context_of);
	c->launches = calloc(other, sizeof *c->launches);
	c->own_launches = calloc(own, sizeof *c->own_launches);
	c->settled = calloc(own, sizeof *c->settled);
	if (c->context_of && c->launches && c->own_launches && c->settled && match_contexts(c)) {
		add_launches(c->own, c->own_launches);
		add_launches(c->p, c->launches);
		code = take_counts(c);
	}
	if (!code)
		code = find_missing(c, hot, hot_count);
	if (!code)
		say_all(c);
	plumb_map_free(&c->map);
	free(c->context_of);
	free(c->launches);
	free(c->own_launches);
	free(c->settled);
	return code;
}

int
plumb_levels_count(struct plumb_levels *levels, const struct plumb_level_run *run,
                   const uint32_t *hot, uint32_t hot_count, struct plumb_error *error)
{
	struct counting c = { .levels = levels, .own = levels->profile, .p = run->profile };
	struct plumb_level_run bare = *run;
	int code;

	/* Its times are those of a program whose kernels run several times. */
	bare.profile = NULL;
	code = plumb_levels_add(levels, &bare, error);
	if (code < 0 || !run->profile || run->why)
		return code;
	if (!levels->texts)
		levels->texts = plumb_pool_new();
	if (!levels->texts || take_profile(&c, hot, hot_count))
		return plumb_fail_memory(error, "for the counters");
	return code;
}
