/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks: some come late to collectives, and the others wait for them. Causes, each a finding:
 *
 *   late      the others wait for one rank, or for a few, that hardly wait themselves
 *   uneven    ranks come late in turn
 *   pipeline  ranks wait in sends and receives; the one that waits least sets the pace
 *
 * What is looked at is the loop, if one is found that has most of the collectives. Otherwise it is
 * all from the first collective on, which is left out: it waits for start-up. Only waiting that the
 * waiting GPU does not fill with computation counts.
 *
 * The saving of `late` is what the next rank would have made everybody wait less, that of `uneven`
 * the mean of what ranks wait: even ranks would meet in the middle.
 */
#include "analyze/late.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/host_steps.h"
#include "analyze/iterations.h"
#include "analyze/late_few.h"
#include "analyze/late_told.h"
#include "base/format.h"
#include "model/collective.h"
#include "model/framework/framework.h"

#define LITTLE 0.5  /* of what the others wait: late ranks wait less */
#define SLOWER 1.05 /* times as long: kernels are slower than elsewhere */
#define SAVING_MOST 9e18
#define LISTED 64 /* ranks in the evidence, and all that come late */
#define NAMED 4   /* ranks in a title */

static const struct plumb_threshold thresholds[] = {
	{ "ranks.waiting", 0.05, "share",
	  "minimum share of the time that ranks wait in collectives for the ones that come late" },
	{ "ranks.times", 3, "count", "minimum number of collectives that a rank comes late to" },
	{ "ranks.uneven", 0.10, "share",
	  "minimum share of the time that ranks wait, in the mean, if they come late in turn" },
	{ "ranks.pipeline", 0.20, "share",
	  "minimum share of the time that a rank waits in sends and receives" },
	{ 0 },
};

/* ---- what is looked at ---- */

static int
find_range(struct plumb_late *l)
{
	const struct plumb_iterations *found = plumb_study_iterations(l->study);
	struct plumb_rank_range range;

	if (!found)
		return PLUMB_ESYSTEM;
	range = plumb_rank_waits_range(&l->waits, found);
	l->from_ns = range.from_ns;
	l->to_ns = range.to_ns;
	if (!range.loop)
		return 0;
	l->steps = range.loop->count;
	for (uint32_t i = 0; i < range.loop->count; i++) {
		int64_t *end = plumb_vec_add(&l->ends);

		if (!end)
			return PLUMB_ESYSTEM;
		/* The last collective of a step may end after the loop's own stream. */
		*end = i + 1 < range.loop->count ? range.loop->items[i + 1].start_ns : l->to_ns;
	}
	return 0;
}

/* How much more the run has than what is looked at, by the number of collectives; and how many
 * steps the program marks in it. */
static int
find_scale(struct plumb_late *l, const unsigned char *is)
{
	const struct plumb_gpu_work *work = &l->waits.work;
	struct plumb_host_steps marked;
	uint64_t counted = 0, seen = 0;
	double ranks = 0;

	for (uint32_t c = 0; c < l->study->profile->contexts_count; c++)
		counted += is[c] ? l->study->kernels[c].count : 0;
	for (uint32_t r = 0; r < l->waits.count; r++)
		ranks += l->waits.ranks[r].all > 0;
	for (uint32_t t = 0; t < work->profile->tracks_count; t++) {
		struct plumb_gpu_range range = plumb_gpu_work_of(work, t);

		for (uint32_t i = range.first; i < range.end; i++)
			seen += is[work->spans[i].context] && work->spans[i].end_ns > l->from_ns &&
			        work->spans[i].end_ns <= l->to_ns;
	}
	l->scale = seen && counted > seen ? (double)counted / (double)seen : 1;
	if (!isnan(l->steps))
		return 0;
	if (!plumb_host_steps_marked(l->study->profile, &marked)) {
		plumb_host_steps_free(&marked);
		return PLUMB_ESYSTEM;
	}
	if (marked.count > 0 && ranks > 0)
		l->steps = marked.count / l->scale;
	plumb_host_steps_free(&marked);
	return 0;
}

/* ---- who waits for whom ---- */

static void
add_waits(struct plumb_late *l)
{
	const struct plumb_rank_waits *w = &l->waits;

	for (uint32_t i = 0; i < w->sets.count; i++) {
		const struct plumb_rank_set *set = &w->sets.items[i];

		if (set->pair || !plumb_late_has(l, set))
			continue;
		l->times[set->last] += set->most_ns >= l->notable_ns;
		for (uint32_t k = 0; k < set->wait_count; k++) {
			const struct plumb_rank_wait *wait = &w->waits.items[set->first_wait + k];

			l->waited[wait->rank] = plumb_add(l->waited[wait->rank], wait->ns);
			l->caused[set->last] = plumb_add(l->caused[set->last], wait->ns);
		}
	}
	for (uint32_t r = 0; r < w->count; r++) {
		l->sums[r] = plumb_rank_waits_sum(w, r, l->from_ns, l->to_ns);
		l->taking_part += w->ranks[r].matched > 0;
	}
}

/* Marks the ranks that others wait for and that wait far less themselves. Returns how many. */
static uint32_t
mark_late(struct plumb_late *l)
{
	double sum = 0;
	uint32_t n = l->taking_part, late = 0;

	for (uint32_t r = 0; r < l->waits.count; r++)
		sum += (double)l->waited[r];
	for (uint32_t r = 0; r < l->waits.count; r++) {
		double others = (sum - (double)l->waited[r]) / (n - 1);

		l->late[r] = l->waits.ranks[r].matched && l->caused[r] > 0 &&
		             (double)l->waited[r] < LITTLE * others;
		late += l->late[r];
	}
	return late;
}

/* Means over those that are late, or not. */
static double
mean_wait(const struct plumb_late *l, bool late)
{
	double sum = 0;
	uint32_t n = 0;

	for (uint32_t r = 0; r < l->waits.count; r++)
		if (l->waits.ranks[r].matched && l->late[r] == late) {
			sum += (double)l->waited[r];
			n++;
		}
	return n ? sum / n : 0;
}

/* ---- words ---- */

/* "rank 1"; of processes without a rank "GPU 1". */
static const char *
name_rank(const struct plumb_late *l, uint32_t rank, char *text, size_t size)
{
	const struct plumb_waiting_rank *r = &l->waits.ranks[rank];
	const struct plumb_profile *p = l->study->profile;
	bool several = false;

	for (uint32_t i = 0; i < l->waits.count; i++)
		several |= i != rank && l->waits.ranks[i].process == r->process;
	if (r->rank != PLUMB_UNKNOWN && !several)
		snprintf(text, size, "rank %" PRId64, r->rank);
	else if (r->device < p->devices_count && p->devices[r->device].ordinal != PLUMB_UNKNOWN)
		snprintf(text, size, "GPU %" PRId64, p->devices[r->device].ordinal);
	else
		snprintf(text, size, "device %" PRIu32, r->device);
	return text;
}

/* Those that are LATE, or not: "rank 0", "ranks 0, 2", "7 ranks". */
static const char *
name_ranks(const struct plumb_late *l, bool late, char *text, size_t size)
{
	char one[40];
	uint32_t n = 0;
	size_t used = 0;

	for (uint32_t r = 0; r < l->waits.count; r++)
		n += l->waits.ranks[r].matched && l->late[r] == late;
	*text = '\0';
	if (n > NAMED) {
		snprintf(text, size, "%" PRIu32 " ranks", n);
		return text;
	}
	for (uint32_t r = 0; r < l->waits.count; r++)
		if (l->waits.ranks[r].matched && l->late[r] == late && used < size) {
			const char *name = name_rank(l, r, one, sizeof one);
			const char *number = strchr(name, ' ');

			if (!used && n > 1)
				snprintf(text, size, "%.*ss%s", (int)(number - name), name, number);
			else
				snprintf(text + used, size - used, "%s%s", used ? "," : "",
				         used ? number : name);
			used += strlen(text + used);
		}
	return text;
}

/* "17.0 ms of each 41.0 ms step", "1.20 s of 3.00 s" */
static const char *
name_wait(const struct plumb_late *l, double ns, char *text, size_t size)
{
	char wait[PLUMB_FORMAT_SIZE], whole[PLUMB_FORMAT_SIZE];
	double steps = isnan(l->steps) ? 1 : l->steps;

	snprintf(text, size, "%s of %s%s%s", plumb_format_time(wait, llround(ns / steps)),
	         isnan(l->steps) ? "" : "each ",
	         plumb_format_time(whole, llround((double)(l->to_ns - l->from_ns) / steps)),
	         isnan(l->steps) ? "" : " step");
	return text;
}

/* The operation of NAME, which may be a kernel's. */
static const char *
operation_of(const struct plumb_late *l, uint32_t name)
{
	const char *text = plumb_text(l->study->profile, name);
	const char *operation = text ? plumb_collective_name(text) : NULL;

	return operation ? operation : text ? text : "collectives";
}

/* ---- operations ---- */

struct operation {
	const char *name;
	uint64_t all, late; /* how often, and how often one of the late ranks came last */
	double waited_ns;
};

/* What the late ranks are waited for in most; all ranks count if LATE is not set. */
static bool
find_operation(const struct plumb_late *l, bool late, struct operation *top)
{
	PLUMB_VEC(struct operation) found = { 0 };
	bool done = true;

	*top = (struct operation){ .name = "collectives" };
	for (uint32_t i = 0; done && i < l->waits.sets.count; i++) {
		const struct plumb_rank_set *set = &l->waits.sets.items[i];
		const char *name = operation_of(l, set->name);
		uint32_t at = 0;

		if (set->pair || !plumb_late_has(l, set))
			continue;
		while (at < found.count && strcmp(found.items[at].name, name) != 0)
			at++;
		if (at == found.count) {
			struct operation *added = plumb_vec_add(&found);

			done = added;
			if (!done)
				break;
			added->name = name;
		}
		found.items[at].all++;
		if (late && !l->late[set->last])
			continue;
		found.items[at].late += set->most_ns >= l->notable_ns;
		for (uint32_t k = 0; k < set->wait_count; k++)
			found.items[at].waited_ns +=
				(double)l->waits.waits.items[set->first_wait + k].ns;
	}
	for (uint32_t i = 0; i < found.count; i++)
		if (!i || found.items[i].waited_ns > top->waited_ns)
			*top = found.items[i];
	plumb_vec_free(&found);
	return done;
}

/* ---- evidence ---- */

static void
write_ranks(const struct plumb_late *l, struct plumb_json *json)
{
	char name[40];
	uint32_t listed = 0;

	plumb_json_key_array(json, "ranks");
	for (uint32_t r = 0; r < l->waits.count; r++) {
		const struct plumb_rank_sums *sums = &l->sums[r];

		if (!l->waits.ranks[r].matched || (listed >= LISTED && !l->late[r]))
			continue;
		listed++;
		plumb_json_object(json);
		plumb_json_key_text(json, "name", name_rank(l, r, name, sizeof name));
		plumb_json_key_quantity(json, "rank", l->waits.ranks[r].rank);
		plumb_json_key_quantity(json, "waiting_ns", sums->waiting_ns);
		plumb_json_key_quantity(json, "compute_ns", sums->compute_ns);
		plumb_json_key_quantity(json, "collectives_ns", sums->collectives_ns);
		plumb_json_key_quantity(json, "idle_ns", sums->idle_ns);
		plumb_json_key_quantity(json, "late_times", (int64_t)l->times[r]);
		plumb_json_end(json);
	}
	plumb_json_end(json);
}

static void
write_common(const struct plumb_late *l, const struct operation *op, struct plumb_json *json)
{
	plumb_json_key_text(json, "operation", op->name);
	plumb_json_key_quantity(json, "late_times", (int64_t)op->late);
	plumb_json_key_quantity(json, "of_times", (int64_t)op->all);
	plumb_json_key_quantity(json, "looked_at_ns", l->to_ns - l->from_ns);
	plumb_json_key(json, "steps");
	if (isnan(l->steps))
		plumb_json_null(json);
	else
		plumb_json_number(json, round(l->steps * 100) / 100);
	plumb_json_key(json, "looked_at_share");
	plumb_json_number(json, 1 / l->scale);
	plumb_json_key_bool(json, "newest", l->waits.work.newest);
}

/* How sure it is that the collectives are matched right. */
static double
confidence_of(const struct plumb_late *l)
{
	static const double by[PLUMB_COLLECTIVES_BY] = {
		[PLUMB_COLLECTIVES_BY_SEQUENCE] = 0.9,
		[PLUMB_COLLECTIVES_BY_GROUP] = 0.9,
		[PLUMB_COLLECTIVES_BY_STREAM] = 0.8,
		[PLUMB_COLLECTIVES_BY_NAME] = 0.6,
	};
	double sum = 0;

	for (uint32_t i = 0; i < l->waits.sets.count; i++)
		sum += by[l->waits.together.sets.items[l->waits.sets.items[i].set].by];
	return l->waits.sets.count ? sum / l->waits.sets.count : NAN;
}

/* A wait of all ranks at once makes the run longer by itself; a study's scale is all devices' time
 * added up. 0, for the saving to decide, where the critical path bounds it. */
static uint32_t
severity_of(const struct plumb_late *l, int64_t saving_ns)
{
	double part = (double)saving_ns / (l->scale * (double)(l->to_ns - l->from_ns));

	if (l->study->traced)
		return 0;
	return part >= 0.2 ? PLUMB_SERIOUS : part >= 0.05 ? PLUMB_WARNING : PLUMB_NOTE;
}

/* ---- one comes late ---- */

/* Is it the same work that takes longer? */
static bool
is_slower(const struct plumb_late_why *why)
{
	return why->cause == PLUMB_LATE_DEVICE && why->slower >= SLOWER && why->all_slower;
}

/* What is known of the cause: ", whose host is late at train.py:19". ONE: only one rank is late. */
static void
describe_why(const struct plumb_late *l, const struct plumb_late_why *why, bool one, char *text,
             size_t size)
{
	char whose[60] = ", whose", name[40], line[420], more[PLUMB_FORMAT_SIZE];
	const struct plumb_study *s = l->study;
	double steps = isnan(l->steps) ? 1 : l->steps;

	if (!one)
		snprintf(whose, sizeof whose, "; %s: its",
		         name_rank(l, why->rank, name, sizeof name));
	if (is_slower(why))
		snprintf(text, size, "%s kernels take %.2f times as long", whose, why->slower);
	else if (why->cause == PLUMB_LATE_DEVICE)
		snprintf(text, size, "%s GPU computes %s longer%s", whose,
		         plumb_format_time(more, llround((double)why->compute_more_ns / steps)),
		         plumb_study_under(s, ", mostly for ",
		                           why->kernel == PLUMB_NONE ? PLUMB_NONE
		                                                     : s->user_of[why->context],
		                           line, sizeof line));
	else if (why->line != PLUMB_NONE)
		snprintf(text, size, "%s host %s at %s", whose,
		         !strcmp(why->metric, "wait.time")  ? "waits"
		         : !strcmp(why->metric, "cpu.time") ? "computes"
		                                            : "is in operators",
		         plumb_study_line(s, why->line, line, sizeof line));
	else if (why->gap_line != PLUMB_NONE)
		snprintf(text, size, "%s host is late at %s", whose,
		         plumb_study_line(s, why->gap_line, line, sizeof line));
	else if (why->cause == PLUMB_LATE_HOST)
		snprintf(text, size, "%s host gives its GPU work late", whose);
	else
		snprintf(text, size, "%s", one ? ", which comes late" : "");
}

static const char *
advice_for(const struct plumb_late_why *why)
{
	if (is_slower(why))
		return "The same kernels take longer on this GPU. Either its inputs are larger, or "
		       "the GPU is slower: compare clocks, power limits, temperatures and other "
		       "programs on it (nvidia-smi -q -d CLOCK,POWER,PERFORMANCE).";
	if (why->cause == PLUMB_LATE_DEVICE)
		return "Give each rank the same amount of work: batches with as many samples or "
		       "tokens, and as many layers or experts.";
	if (why->cause == PLUMB_LATE_HOST && why->line != PLUMB_NONE)
		return "Its GPU has no work meanwhile, and all other ranks wait. Do there what the "
		       "other ranks do: load the data earlier, and leave logging, checkpoints and "
		       "evaluation to a thread or to all ranks alike.";
	if (why->cause == PLUMB_LATE_HOST)
		return "Its GPU has no work meanwhile, and all other ranks wait. The profile does "
		       "not say what its host does before that line: record with plumb run --cpu, "
		       "which also shows where threads wait.";
	return "All other ranks wait for it. The profile does not say what it does meanwhile: "
	       "record with plumb run --cpu, and compare the ranks with plumb iters.";
}

static void
write_why(const struct plumb_late *l, const struct plumb_late_why *why, struct plumb_json *json)
{
	static const char *const names[] = { "unknown", "device", "host" };
	char text[420];

	plumb_json_key_text(json, "why", names[why->cause]);
	plumb_json_key_quantity(json, "late_ns", why->late_ns);
	plumb_json_key_quantity(json, "compute_more_ns", why->compute_more_ns);
	plumb_json_key_quantity(json, "idle_more_ns", why->idle_more_ns);
	plumb_json_key_number(json, "kernels_slower", why->slower);
	plumb_json_key_text(json, "host_metric", why->metric);
	plumb_json_key_quantity(json, "host_more_ns", why->metric ? why->line_ns : PLUMB_UNKNOWN);
	plumb_json_key_text(json, "gap_before",
	                    why->gap_line == PLUMB_NONE
	                            ? NULL
	                            : plumb_study_line(l->study, why->gap_line, text, sizeof text));
	plumb_json_key_quantity(json, "gap_ns",
	                        why->gap_line == PLUMB_NONE ? PLUMB_UNKNOWN : why->gap_ns);
	plumb_study_line_json(l->study, json,
	                      why->line != PLUMB_NONE       ? why->line
	                      : why->gap_line != PLUMB_NONE ? why->gap_line
	                      : why->context                ? l->study->user_of[why->context]
	                                                    : PLUMB_NONE);
}

/* What would be saved if the late ranks came with the next one. */
static double
saving_of(const struct plumb_late *l, uint32_t late)
{
	double most = mean_wait(l, false) - mean_wait(l, true), sum = 0;

	for (uint32_t i = 0; late == 1 && i < l->waits.sets.count; i++) {
		const struct plumb_rank_set *set = &l->waits.sets.items[i];

		if (!set->pair && plumb_late_has(l, set) && l->late[set->last] && set->wait_count)
			sum += (double)set->least_ns;
	}
	return fmin((late == 1 && sum < most ? sum : most) * l->scale, SAVING_MOST);
}

static int
draft_late(struct plumb_late *l, uint32_t late)
{
	char others[200], who[200], wait[120], why_text[600], cut[PLUMB_FORMAT_SIZE],
		told_text[400];
	const struct plumb_collective *told;
	double waited = mean_wait(l, false);
	struct plumb_late_why why;
	struct operation op;
	struct plumb_draft draft;
	struct plumb_late_few few;
	uint32_t worst = PLUMB_NONE, waiting = l->taking_part - late;

	for (uint32_t r = 0; r < l->waits.count; r++)
		if (l->late[r] && (worst == PLUMB_NONE || l->caused[r] > l->caused[worst]))
			worst = r;
	if (plumb_late_explain(l, worst, &why) < 0 || !find_operation(l, true, &op) ||
	    !plumb_late_find_few(l, late, &few) || !plumb_late_find_told(l, &told))
		return PLUMB_ESYSTEM;
	describe_why(l, &why, late == 1, why_text, sizeof why_text);
	plumb_draft_begin(&draft, "late", why.context);
	plumb_draft_key(&draft, "late %s", op.name);
	name_ranks(l, false, others, sizeof others);
	name_ranks(l, true, who, sizeof who);
	plumb_draft_title(&draft, "%s %s %s for %s%s (late to %s %" PRIu64 " of %" PRIu64 " times)",
	                  others, waiting == 1 ? "waits" : "wait",
	                  few.steps ? plumb_late_name_few(l, &few, wait, sizeof wait)
	                            : name_wait(l, waited, wait, sizeof wait),
	                  who, why_text, op.name, op.late, op.all);
	plumb_draft_advice(
		&draft, "%s%s", advice_for(&why),
		plumb_late_name_told(l->study->profile, told, told_text, sizeof told_text));
	write_common(l, &op, draft.evidence);
	if (told)
		plumb_late_write_told(l->study->profile, told, draft.evidence);
	plumb_json_key_text(draft.evidence, "waiting",
	                    plumb_format_share(cut, waited, (double)(l->to_ns - l->from_ns)));
	plumb_json_key_quantity(draft.evidence, "late_steps",
	                        few.steps ? few.steps : PLUMB_UNKNOWN);
	write_why(l, &why, draft.evidence);
	write_ranks(l, draft.evidence);
	draft.saving_ns = llround(saving_of(l, late));
	draft.confidence = confidence_of(l) * (why.cause == PLUMB_LATE_UNKNOWN ? 0.8 : 1);
	draft.host = why.cause != PLUMB_LATE_DEVICE;
	if (draft.host)
		draft.tells = PLUMB_TELLS_RANK;
	draft.idle_ns = llround(fmin((double)why.late_ns * late * l->scale, SAVING_MOST));
	draft.device = !draft.host;
	draft.device_gone = l->waits.ranks[worst].device;
	draft.severity = severity_of(l, draft.saving_ns);
	return plumb_draft_end(l->study, &draft);
}

/* ---- all in turn ---- */

static int
draft_uneven(struct plumb_late *l, double mean)
{
	char wait[120], turns[200], one[40];
	struct operation op;
	struct plumb_draft draft;
	size_t used = 0;
	uint32_t named = 0;

	memset(l->late, 0, l->waits.count);
	if (!find_operation(l, false, &op))
		return PLUMB_ESYSTEM;
	*turns = '\0';
	for (uint32_t r = 0; r < l->waits.count && named < NAMED; r++)
		if (l->times[r] && used < sizeof turns) {
			snprintf(turns + used, sizeof turns - used, "%s%s %" PRIu64 " times",
			         named++ ? ", " : "", name_rank(l, r, one, sizeof one),
			         l->times[r]);
			used += strlen(turns + used);
		}
	plumb_draft_begin(&draft, "uneven", 0);
	plumb_draft_key(&draft, "uneven %s", op.name);
	plumb_draft_title(&draft,
	                  "ranks wait for each other in %s, %s; they come late in turn (%s%s)",
	                  op.name, name_wait(l, mean, wait, sizeof wait), turns,
	                  named == NAMED && l->waits.count > NAMED ? ", " PLUMB_ELLIPSIS : "");
	plumb_draft_advice(
		&draft,
		"No rank is slower than the others, but in each step one has more to do. "
		"Make steps alike on all ranks: sort or pack sequences by length, load data "
		"ahead, and keep the host's work between steps short. Fewer collectives, "
		"for example with gradient accumulation, let differences cancel out.");
	write_common(l, &op, draft.evidence);
	write_ranks(l, draft.evidence);
	draft.saving_ns = llround(fmin(mean * l->scale, SAVING_MOST));
	draft.confidence = 0.75 * confidence_of(l);
	draft.severity = severity_of(l, draft.saving_ns);
	return plumb_draft_end(l->study, &draft);
}

/* ---- pipelines ---- */

static int
find_pipeline(struct plumb_late *l)
{
	const struct plumb_rank_waits *w = &l->waits;
	int64_t *waited = calloc((size_t)w->count + 1, sizeof *waited);
	double whole = (double)(l->to_ns - l->from_ns), limit;
	uint32_t least = PLUMB_NONE, most = PLUMB_NONE;
	char busiest[40], idlest[40], part[PLUMB_FORMAT_SIZE], other[PLUMB_FORMAT_SIZE];
	char time[PLUMB_FORMAT_SIZE];
	struct operation none = { .name = "SendRecv" };
	struct plumb_draft draft;

	if (!waited)
		return PLUMB_ESYSTEM;
	for (uint32_t i = 0; i < w->sets.count; i++) {
		const struct plumb_rank_set *set = &w->sets.items[i];

		if (!set->pair || !plumb_late_has(l, set))
			continue;
		none.all++;
		for (uint32_t k = 0; k < set->wait_count; k++)
			waited[w->waits.items[set->first_wait + k].rank] +=
				w->waits.items[set->first_wait + k].ns;
	}
	for (uint32_t r = 0; none.all && r < w->count; r++) {
		if (!w->ranks[r].matched)
			continue;
		least = least == PLUMB_NONE || waited[r] < waited[least] ? r : least;
		most = most == PLUMB_NONE || waited[r] > waited[most] ? r : most;
	}
	limit = plumb_study_threshold(l->study, "ranks.pipeline") * whole;
	if (most == PLUMB_NONE || least == most || (double)waited[most] < limit) {
		free(waited);
		return 0;
	}
	plumb_draft_begin(&draft, "pipeline", 0);
	plumb_draft_key(&draft, "pipeline");
	plumb_draft_title(
		&draft,
		"%s waits in sends and receives for %s of the %s that are compared, %s only for "
		"%s: %s sets the pace of the pipeline",
		name_rank(l, most, idlest, sizeof idlest),
		plumb_format_share(part, (double)waited[most], whole),
		plumb_format_time(time, llround(whole)),
		name_rank(l, least, busiest, sizeof busiest),
		plumb_format_share(other, (double)waited[least], whole), busiest);
	plumb_draft_advice(&draft,
	                   "In a pipeline, stages wait by design: at the start and the end of each "
	                   "step, and whenever one stage takes longer than the others. Move layers "
	                   "away from the stage that waits least, or use more micro-batches.");
	write_common(l, &none, draft.evidence);
	write_ranks(l, draft.evidence);
	draft.confidence = 0.5;
	draft.severity = PLUMB_WARNING; /* it may be by design */
	free(waited);
	return plumb_draft_end(l->study, &draft);
}

/* ---- the analysis ---- */

static int
judge(struct plumb_late *l)
{
	double whole = (double)(l->to_ns - l->from_ns), mean = 0;
	double least = plumb_study_threshold(l->study, "ranks.waiting") * whole;
	uint64_t times = 0, late_times = 0;
	uint32_t late;
	int code;

	if (whole <= 0 || l->taking_part < 2)
		return 0;
	late = mark_late(l);
	for (uint32_t r = 0; r < l->waits.count; r++) {
		mean += (double)l->waited[r] / l->taking_part;
		times += l->times[r];
		late_times += l->late[r] ? l->times[r] : 0;
	}
	code = find_pipeline(l);
	if (code < 0)
		return code;
	if (late && 2 * late <= l->taking_part &&
	    mean_wait(l, false) - mean_wait(l, true) >= least &&
	    (double)late_times >= plumb_study_threshold(l->study, "ranks.times"))
		return draft_late(l, late);
	if (mean >= plumb_study_threshold(l->study, "ranks.uneven") * whole &&
	    (double)times >= plumb_study_threshold(l->study, "ranks.times"))
		return draft_uneven(l, mean);
	return 0;
}

static int
look_at(struct plumb_late *l)
{
	unsigned char *is = plumb_collective_contexts(l->study->profile);
	size_t room = (size_t)l->waits.count + 1;
	int code = is ? find_range(l) : PLUMB_ESYSTEM;

	l->waited = calloc(room, sizeof *l->waited);
	l->caused = calloc(room, sizeof *l->caused);
	l->times = calloc(room, sizeof *l->times);
	l->late = calloc(room, 1);
	l->sums = calloc(room, sizeof *l->sums);
	if (!code && (!l->waited || !l->caused || !l->times || !l->late || !l->sums))
		code = PLUMB_ESYSTEM;
	if (!code)
		code = find_scale(l, is);
	l->notable_ns = plumb_rank_notable(l->to_ns - l->from_ns, l->steps);
	if (!code) {
		add_waits(l);
		code = judge(l);
	}
	free(l->waited);
	free(l->caused);
	free(l->times);
	free(l->late);
	free(l->sums);
	free(is);
	return code;
}

static int
find_late(struct plumb_study *study)
{
	struct plumb_late l = { .study = study, .steps = NAN, .scale = 1 };
	int code = plumb_rank_waits_find(study->profile, &l.waits);

	if (!code && l.waits.sets.count)
		code = look_at(&l);
	plumb_vec_free(&l.ends);
	plumb_rank_waits_free(&l.waits);
	return code;
}

const struct plumb_analysis plumb_analysis_ranks = {
	.name = "ranks",
	.summary = "ranks that come late to collectives, so that the others wait for them",
	.thresholds = thresholds,
	.run = find_late,
	.whole = true,
	.waits = true,
};
