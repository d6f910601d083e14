/* SPDX-License-Identifier: Apache-2.0 */
/* Flame graphs. To make one takes a pass over the profile, to answer for a range does not, so those
 * that were used last are kept. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "serve/answers.h"

#define FRAME_MOST INT64_C(0xfffffffe)

/* ---- the query ---- */

static int
read_layers(const char *text, unsigned *hidden, struct plumb_error *error)
{
	unsigned shown = 0;

	for (size_t length; *text; text += length + (text[length] == ',')) {
		int layer = 0;

		length = strcspn(text, ",");
		while (layer < PLUMB_FLAME_LAYERS &&
		       (strlen(plumb_flame_layer_names[layer]) != length ||
		        memcmp(plumb_flame_layer_names[layer], text, length) != 0))
			layer++;
		if (layer == PLUMB_FLAME_LAYERS)
			return plumb_fail(error, PLUMB_EUSAGE,
			                  "layers takes python, module, operator, native, gpu and "
			                  "other, separated by commas, not \"%.*s\"",
			                  (int)(length < 40 ? length : 40), text);
		shown |= 1u << layer;
	}
	*hidden = ~shown & ((1u << PLUMB_FLAME_LAYERS) - 1);
	return 0;
}

static int
read_range(const struct plumb_query *q, struct plumb_flame_range *range, struct plumb_error *error)
{
	int64_t root = plumb_query_number(q, "root"), depth = plumb_query_number(q, "depth"),
		depths = plumb_query_number(q, "depths");
	double px = plumb_query_real(q, "px");

	*range = (struct plumb_flame_range){
		.root = (uint32_t)(root < FRAME_MOST ? root : FRAME_MOST),
		.x0 = plumb_query_real(q, "x0"),
		.x1 = plumb_query_real(q, "x1"),
		.px = isnan(px) ? 0 : px,
		.search = plumb_query_text(q, "search"),
		.depth = (uint32_t)(depth < FRAME_MOST ? depth : FRAME_MOST),
		.depths = (uint32_t)(depths < FRAME_MOST ? depths : FRAME_MOST),
	};
	if (range->x0 < 0 || range->x1 > 1 || range->x0 >= range->x1 || range->px < 0)
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "the range is from x0 to x1, with 0 <= x0 < x1 <= 1; px is at "
		                  "least 0");
	return 0;
}

static int
read_query(const struct plumb_query *q, struct plumb_flame_query *wanted, struct plumb_error *error)
{
	int64_t of = plumb_query_number(q, "of");
	const char *recursion = plumb_query_text(q, "recursion");

	*wanted = (struct plumb_flame_query){
		.view = plumb_query_choice(q, "view"),
		.of = (uint32_t)(of < 0            ? 0
		                 : of < FRAME_MOST ? of
		                                   : FRAME_MOST),
		.metric = plumb_query_text(q, "metric"),
		.hide = plumb_query_text(q, "hide"),
		.collapse = recursion,
		.one_rank = plumb_query_given(q, "rank"),
		.rank = plumb_query_given(q, "rank") ? plumb_query_number(q, "rank") : 0,
		.apart = !strcmp(plumb_query_text(q, "phase"), "apart"),
		.width = plumb_query_choice(q, "width"),
	};
	if (of < 0 && (wanted->view == PLUMB_FLAME_CALLERS || wanted->view == PLUMB_FLAME_CALLEES))
		return plumb_fail(error, PLUMB_EUSAGE, "view=%s needs of=FRAME",
		                  plumb_flame_view_names[wanted->view]);
	return read_layers(plumb_query_text(q, "layers"), &wanted->hidden, error);
}

/* ---- those that are kept ---- */

static void
forget(struct plumb_kept_flame *kept)
{
	plumb_flame_free(kept->flame);
	*kept = (struct plumb_kept_flame){ 0 };
}

void
plumb_flames_forget(struct plumb_answers *answers, const struct plumb_profile *profile)
{
	if (answers->preparing && (!profile || answers->prepared == profile)) {
		plumb_flame_free(plumb_job_end(answers->preparing));
		answers->preparing = NULL;
	}
	for (int i = 0; i < PLUMB_SERVED_FLAMES; i++)
		if (answers->flames[i].flame &&
		    (!profile || answers->flames[i].profile == profile ||
		     answers->flames[i].against == profile))
			forget(&answers->flames[i]);
}

/* The place that is free, or was used the longest time ago. */
static struct plumb_kept_flame *
oldest(struct plumb_answers *answers)
{
	struct plumb_kept_flame *found = answers->flames;

	for (int i = 1; i < PLUMB_SERVED_FLAMES; i++)
		if (answers->flames[i].used < found->used)
			found = &answers->flames[i];
	return found;
}

/* Frees flame graphs until another one of BYTES may be kept. */
static void
make_room(struct plumb_answers *answers, size_t bytes)
{
	for (;;) {
		struct plumb_kept_flame *last = NULL;
		size_t sum = bytes;

		for (int i = 0; i < PLUMB_SERVED_FLAMES; i++) {
			struct plumb_kept_flame *kept = &answers->flames[i];

			if (!kept->flame)
				continue;
			sum += plumb_flame_bytes(kept->flame);
			if (!last || kept->used < last->used)
				last = kept;
		}
		if (!last || sum <= PLUMB_FLAMES_BYTES)
			return;
		forget(last);
	}
}

static void
keep_flame(struct plumb_answers *answers, struct plumb_flame *flame,
           const struct plumb_profile *profile, const struct plumb_profile *against)
{
	struct plumb_kept_flame *place;

	make_room(answers, plumb_flame_bytes(flame));
	place = oldest(answers);
	if (place->flame)
		forget(place);
	*place = (struct plumb_kept_flame){ flame, profile, against, answers->questions };
}

/* ---- the usual one, before it is asked for ---- */

static const struct plumb_flame_query usual = { .view = PLUMB_FLAME_DOWN };

static void *
make_usual(const void *profile)
{
	struct plumb_error unread;

	return plumb_flame_make(profile, &usual, &unread);
}

void
plumb_answers_prepare(struct plumb_answers *answers)
{
	struct plumb_window_choice main_window = plumb_served_main(&answers->files[0]);
	const struct plumb_profile *profile;
	struct plumb_error unread;

	if (answers->wake < 0 || answers->prepared ||
	    plumb_served_window(answers, &answers->files[0], &main_window, false, &profile,
	                        &unread) < 0)
		return;
	answers->prepared = profile;
	answers->preparing = plumb_job_start(make_usual, profile, answers->wake);
}

/* Keeps the usual one if it is there. False: it is still being made. */
static bool
take_usual(struct plumb_answers *answers)
{
	struct plumb_flame *flame;

	if (!answers->preparing)
		return true;
	if (!plumb_job_is_done(answers->preparing))
		return false;
	flame = plumb_job_end(answers->preparing);
	answers->preparing = NULL;
	if (flame)
		keep_flame(answers, flame, answers->prepared, NULL);
	return true;
}

/* NULL with ERROR filled, or with `later` of the question set. */
static struct plumb_flame *
find_flame(struct plumb_question *question, const struct plumb_flame_query *wanted,
           struct plumb_error *error)
{
	struct plumb_answers *answers = question->answers;
	struct plumb_flame *flame, *akin = NULL;

	if (!take_usual(answers) && question->profile == answers->prepared && !wanted->against) {
		question->later = true;
		return NULL;
	}
	for (int i = 0; i < PLUMB_SERVED_FLAMES; i++) {
		struct plumb_kept_flame *kept = &answers->flames[i];

		if (kept->flame && plumb_flame_is(kept->flame, question->profile, wanted)) {
			kept->used = answers->questions;
			return kept->flame;
		}
		if (kept->flame && plumb_flame_is_akin(kept->flame, question->profile, wanted))
			akin = kept->flame;
	}
	flame = plumb_flame_make_akin(akin, question->profile, wanted, error);
	if (flame)
		keep_flame(answers, flame, question->profile, wanted->against);
	return flame;
}

/* The flame graph that the query asks for. NULL as find_flame. */
static struct plumb_flame *
take_flame(struct plumb_question *question, struct plumb_error *error)
{
	struct plumb_answers *answers = question->answers;
	int64_t against = plumb_query_number(question->query, "against");
	struct plumb_flame_query wanted;

	if (read_query(question->query, &wanted, error) < 0)
		return NULL;
	if (against >= answers->count) {
		plumb_fail(error, PLUMB_EUSAGE, "there is no file %lld; files are 0 to %u",
		           (long long)against, answers->count - 1);
		return NULL;
	}
	if (against >= 0 &&
	    plumb_served_window(answers, &answers->files[against], &question->window, false,
	                        &wanted.against, error) < 0) {
		plumb_fail_in(error, "%s", answers->files[against].name);
		return NULL;
	}
	return find_flame(question, &wanted, error);
}

/* The names that the query looks for, one on each line; malloced. "": none. NULL: no memory. */
static char *
read_names(const struct plumb_query *query)
{
	const char *name;
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	for (uint32_t i = 0; out && (name = plumb_query_each(query, "named", i)); i++)
		fprintf(out, i ? "\n%s" : "%s", name);
	if (out && !fclose(out))
		return text;
	free(text);
	return NULL;
}

int
plumb_answer_flame(struct plumb_question *question, struct plumb_error *error)
{
	struct plumb_flame_range range;
	struct plumb_flame *flame;
	char *names;
	int code;

	if (read_range(question->query, &range, error) < 0)
		return error->code;
	flame = take_flame(question, error);
	if (!flame)
		return question->later ? 0 : error->code;
	names = read_names(question->query);
	range.named = names;
	code = names ? plumb_flame_write(flame, &range, question->format, question->out, error)
	             : plumb_fail_memory(error, "for the search");
	free(names);
	return code;
}

int
plumb_answer_flame_frames(struct plumb_question *question, struct plumb_error *error)
{
	return plumb_view_frame_files(question->profile, question->format, question->out, error);
}

/* The node that shows what finding ID is about. */
static int
find_finding(struct plumb_question *question, const char *id, struct plumb_flame *flame,
             uint32_t *node, struct plumb_error *error)
{
	const struct plumb_profile *p = question->profile;

	for (uint32_t i = 0; i < p->findings_count; i++) {
		const struct plumb_finding *f = &p->findings[i];

		if (!plumb_text(p, f->id) || strcmp(plumb_text(p, f->id), id) != 0)
			continue;
		if (f->context >= p->contexts_count)
			return plumb_fail(error, PLUMB_EEMPTY, "the finding is about no call path");
		return plumb_flame_node_of(flame, f->context, node, error);
	}
	return plumb_fail(error, PLUMB_EEMPTY, "there is no finding %.80s of this part of the run",
	                  id);
}

int
plumb_answer_frame(struct plumb_question *question, struct plumb_error *error)
{
	const char *rule = plumb_profile_environment(question->profile, "run.user_code");
	const char *finding = plumb_query_text(question->query, "finding");
	int64_t asked = plumb_query_number(question->query, "node");
	uint32_t node = (uint32_t)(asked < FRAME_MOST ? asked : FRAME_MOST);
	struct plumb_flame *flame;

	if ((asked < 0) == !finding)
		return plumb_fail(error, PLUMB_EUSAGE, "the query needs node=NUMBER or finding=ID");
	flame = take_flame(question, error);
	if (!flame && question->later)
		return 0;
	if (!flame || (finding && find_finding(question, finding, flame, &node, error) < 0))
		return error->code;
	return plumb_flame_frame(flame, node, rule, question->out, error);
}
