/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When samples of CPU time were taken (`plumb run --trace --cpu`). They ride in the rings of spans;
 * how many there were is counted by the collector, so that those which a ring went over can be told
 * from spans.
 */
#include "settle/settle_private.h"

struct samples {
	struct plumb_settle_region *region;
	int64_t cutoff; /* only samples that were taken later are kept */
	uint64_t kept, older, too_many, damaged;
};

static bool
keep_sample(void *data, const struct plumb_cpu_sample *sample)
{
	struct samples *s = data;
	int code;

	if (!sample) {
		s->damaged++;
		return true;
	}
	if (sample->at_ns <= s->cutoff) {
		s->older++;
		return true;
	}
	code = plumb_builder_cpu_sample(s->region->settler->builder, sample);
	if (code < 0) {
		s->region->settler->no_memory = true;
		return false;
	}
	if (code)
		s->too_many++;
	else
		s->kept++;
	if (sample->at_ns > s->region->seen)
		s->region->seen = sample->at_ns;
	return true;
}

/* The samples that the collector counted and that no ring has any more. */
static uint64_t
gone_over(const struct samples *s, uint64_t overwritten)
{
	const int64_t *row = s->region->ledger[PLUMB_SOURCE_SAMPLE_TIME];
	int64_t known = (int64_t)(s->kept + s->older + s->too_many + s->damaged), gone;

	known = plumb_settle_sum(known, row[PLUMB_FATE_REGION_FULL]);
	known = plumb_settle_sum(known, row[PLUMB_FATE_NO_SPACE]);
	known = plumb_settle_sum(known, row[PLUMB_FATE_UNMAPPED_THREAD]);
	gone = row[PLUMB_FATE_RECEIVED] - known;
	if (gone <= 0)
		return 0;
	return (uint64_t)gone < overwritten ? (uint64_t)gone : overwritten;
}

uint64_t
plumb_settle_samples(struct plumb_settle_region *region, const struct plumb_settle_trace *trace,
                     int64_t cutoff, uint64_t overwritten)
{
	const enum plumb_source source = PLUMB_SOURCE_SAMPLE_TIME;
	struct samples s = { .region = region, .cutoff = cutoff };
	uint64_t gone;

	plumb_settle_each_sample(region, trace, keep_sample, &s);
	gone = gone_over(&s, overwritten);
	plumb_settle_count(region, source, PLUMB_FATE_ATTRIBUTED, NULL, s.kept);
	plumb_settle_count(region, source, PLUMB_FATE_OVERWRITTEN, NULL, gone);
	plumb_settle_count(region, source, PLUMB_FATE_OVERWRITTEN, "older than --trace asks for",
	                   s.older);
	plumb_settle_count(region, source, PLUMB_FATE_OVERWRITTEN, "a profile cannot hold more",
	                   s.too_many);
	plumb_settle_count(region, source, PLUMB_FATE_DAMAGED, NULL, s.damaged);
	return gone;
}
