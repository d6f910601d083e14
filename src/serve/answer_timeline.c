/* SPDX-License-Identifier: Apache-2.0 */
/* Spans over time. A file's lanes are made once, when somebody looks at them. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "serve/answers.h"
#include "view/timeline.h"

#define TRACKS_MOST 4096
#define TIME_MOST 9e18

/* "1,2,7". TRACKS has room for TRACKS_MOST. */
static int
read_tracks(const char *text, uint32_t *tracks, uint32_t *count, struct plumb_error *error)
{
	*count = 0;
	while (text && *text) {
		char *end;
		unsigned long long number;

		errno = 0;
		number = strtoull(text, &end, 10);
		if (*text < '0' || *text > '9' || (*end && *end != ',') || errno ||
		    number >= PLUMB_NONE || *count == TRACKS_MOST)
			return plumb_fail(error, PLUMB_EUSAGE,
			                  "tracks takes at most %d numbers of tracks, such as 1,2",
			                  TRACKS_MOST);
		tracks[(*count)++] = (uint32_t)number;
		text = end + (*end == ',');
	}
	return 0;
}

/* A time or a width; FALLBACK: the query does not say. */
static double
read_real(const struct plumb_query *q, const char *key, double fallback)
{
	return plumb_query_given(q, key) ? plumb_query_real(q, key) : fallback;
}

static int
read_range(const struct plumb_query *q, uint32_t *tracks, struct plumb_lanes_range *range,
           struct plumb_error *error)
{
	double t0 = read_real(q, "t0", 0), t1 = read_real(q, "t1", 0);

	*range = (struct plumb_lanes_range){ .tracks = tracks };
	if (fabs(t0) > TIME_MOST || fabs(t1) > TIME_MOST)
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "t0 and t1 are ns since the start of the run");
	range->t0 = (int64_t)t0;
	range->t1 = (int64_t)t1;
	if (plumb_query_has(q, "px"))
		range->px = read_real(q, "px", 0);
	if (plumb_query_has(q, "top")) {
		int64_t top = plumb_query_number(q, "top");
		range->top = (uint32_t)(top < PLUMB_NONE ? top : PLUMB_NONE);
		range->by_track = plumb_query_given(q, "by");
	}
	if (range->px < 0)
		return plumb_fail(error, PLUMB_EUSAGE, "px is at least 0");
	return read_tracks(plumb_query_text(q, "tracks"), tracks, &range->track_count, error);
}

static void *
find_iterations(const void *lanes)
{
	return plumb_lanes_find(lanes, PLUMB_LANES_ITERATIONS);
}

/* Iterations take seconds to find in a large profile, so they are found beside other questions. */
static void
find_beside(struct plumb_question *question, enum plumb_lanes_table table)
{
	struct plumb_served_file *file = question->file;
	struct plumb_lanes_found *found;

	if (question->answers->wake < 0 ||
	    plumb_lanes_lacks(file->lanes, table) != PLUMB_LANES_ITERATIONS)
		return;
	if (!file->finding)
		file->finding =
			plumb_job_start(find_iterations, file->lanes, question->answers->wake);
	question->later = file->finding && !plumb_job_is_done(file->finding);
	if (!file->finding || question->later)
		return;
	found = plumb_job_end(file->finding);
	file->finding = NULL;
	if (found)
		plumb_lanes_give(file->lanes, found);
}

static int
answer_table(struct plumb_question *question, enum plumb_lanes_table table,
             struct plumb_error *error)
{
	struct plumb_served_file *file = question->file;
	struct plumb_lanes_range range = { 0 };
	uint32_t tracks[TRACKS_MOST];
	struct plumb_answer answer;
	int code;

	if (table != PLUMB_LANES_TRACKS && read_range(question->query, tracks, &range, error) < 0)
		return error->code;
	if (!file->lanes && !(file->lanes = plumb_lanes_make(file->whole, error)))
		return error->code;
	question->remedy = PLUMB_REMEDY_TRACE;
	if (!plumb_lanes_count(file->lanes) && !plumb_lanes_counters(file->lanes))
		return plumb_fail(error, PLUMB_EEMPTY,
		                  "the profile has no times of single calls; record with --trace");
	find_beside(question, table);
	if (question->later)
		return 0;
	code = plumb_lanes_answer(file->lanes, table, &range, &answer, error);
	if (!code) {
		code = plumb_view_answer(&answer, question->format, question->out, error);
		plumb_answer_free(&answer);
	}
	return code;
}

int
plumb_answer_timeline_tracks(struct plumb_question *question, struct plumb_error *error)
{
	return answer_table(question, PLUMB_LANES_TRACKS, error);
}

int
plumb_answer_timeline_spans(struct plumb_question *question, struct plumb_error *error)
{
	return answer_table(question, PLUMB_LANES_SPANS, error);
}

int
plumb_answer_timeline_bands(struct plumb_question *question, struct plumb_error *error)
{
	return answer_table(question, PLUMB_LANES_BANDS, error);
}

int
plumb_answer_timeline_arrows(struct plumb_question *question, struct plumb_error *error)
{
	return answer_table(question, PLUMB_LANES_ARROWS, error);
}

int
plumb_answer_timeline_sum(struct plumb_question *question, struct plumb_error *error)
{
	return answer_table(question, PLUMB_LANES_SUM, error);
}

int
plumb_answer_timeline_counters(struct plumb_question *question, struct plumb_error *error)
{
	return answer_table(question, PLUMB_LANES_COUNTERS, error);
}
