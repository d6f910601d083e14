/* SPDX-License-Identifier: Apache-2.0 */
#include "model/profile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "base/search.h"
#include "base/vec.h"
#include "model/rows.h"

void
plumb_profile_free(struct plumb_profile *profile)
{
	if (!profile)
		return;
	plumb_row_free_all(profile);
	free(profile->strings);
	free(profile->user_metrics);
	plumb_pool_free(profile->storage);
	*profile = (struct plumb_profile){ 0 };
}

struct plumb_user_metric *
plumb_profile_add_metric(struct plumb_profile *profile)
{
	uint32_t count = profile->user_metrics_count + 1;
	if (count > profile->user_metrics_room) {
		struct plumb_user_metric *grown = plumb_vec_grow(
			profile->user_metrics, &profile->user_metrics_room, count, sizeof *grown);
		if (!grown)
			return NULL;
		profile->user_metrics = grown;
	}
	profile->user_metrics_count = count;
	return &profile->user_metrics[count - 1];
}

void
plumb_device_work_add(struct plumb_device_work *into, const struct plumb_device_work *from)
{
	into->kernels = plumb_add_known(into->kernels, from->kernels);
	into->kernel_ns = plumb_add_known(into->kernel_ns, from->kernel_ns);
	into->copies = plumb_add_known(into->copies, from->copies);
	into->copy_ns = plumb_add_known(into->copy_ns, from->copy_ns);
	into->copy_bytes = plumb_add_known(into->copy_bytes, from->copy_bytes);
	into->sets = plumb_add_known(into->sets, from->sets);
	into->set_ns = plumb_add_known(into->set_ns, from->set_ns);
	into->set_bytes = plumb_add_known(into->set_bytes, from->set_bytes);
}

const char *
plumb_frame_label(const struct plumb_profile *profile, uint32_t frame)
{
	if (frame >= profile->frames_count)
		return "?";
	const struct plumb_frame *f = &profile->frames[frame];
	const char *text = plumb_text(profile, f->display);
	if (!text || !*text)
		text = plumb_text(profile, f->name);
	return text && *text ? text : "?";
}

/* Sums of damaged or foreign data may overflow: they stop at the greatest number. */
static int64_t
add_signed(int64_t a, int64_t b)
{
	int64_t sum;
	if (!__builtin_add_overflow(a, b, &sum))
		return sum;
	/* INT64_MIN means unknown, so the least sum is one more. */
	return a < 0 ? INT64_MIN + 1 : INT64_MAX;
}

static uint64_t
add_unsigned(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

const char *
plumb_profile_environment(const struct plumb_profile *p, const char *key)
{
	const char *found = NULL;

	for (uint32_t i = 0; i < p->environment_count; i++) {
		const struct plumb_environment_row *row = &p->environment[i];
		const char *name = plumb_text(p, row->key);

		if (!name || strcmp(name, key) || !plumb_text(p, row->value))
			continue;
		if (row->process == PLUMB_NONE)
			return plumb_text(p, row->value);
		if (!found)
			found = plumb_text(p, row->value);
	}
	return found;
}

uint32_t
plumb_profile_first_span(const struct plumb_profile *profile, uint32_t track)
{
	return plumb_search(i, profile->spans_count, profile->spans[i].track < track);
}

uint32_t
plumb_profile_first_sample(const struct plumb_profile *profile, uint32_t track, int64_t at_ns)
{
	const struct plumb_cpu_sample *samples = profile->cpu_samples;

	return plumb_search(i, profile->cpu_samples_count,
	                    samples[i].track < track ||
	                            (samples[i].track == track && samples[i].at_ns < at_ns));
}

double
plumb_profile_sampled_within(const struct plumb_profile *profile, uint32_t i, int64_t from_ns,
                             int64_t to_ns)
{
	const struct plumb_cpu_sample *sample = &profile->cpu_samples[i];
	bool first = !i || sample[-1].track != sample->track;
	double at = (double)sample->at_ns, ns = (double)sample->ns;
	double since = first ? at - ns : (double)sample[-1].at_ns;
	double begin = since > (double)from_ns ? since : (double)from_ns;
	double end = at < (double)to_ns ? at : (double)to_ns;

	if (end <= begin)
		return 0;
	return (ns < at - since ? ns : at - since) * ((end - begin) / (at - since));
}

void
plumb_stat_merge(struct plumb_stat *a, const struct plumb_stat *b)
{
	if (!b->count)
		return;
	if (!a->count) {
		*a = *b;
		return;
	}
	double an = (double)a->count, bn = (double)b->count, n = an + bn;
	double delta = b->mean - a->mean;
	a->mean += delta * (bn / n);
	a->m2 += b->m2 + delta * delta * (an * (bn / n));
	a->sum = add_signed(a->sum, b->sum);
	a->count = add_unsigned(a->count, b->count);
	/* An unknown minimum is less than any. */
	bool unknown = a->max == PLUMB_UNKNOWN || b->max == PLUMB_UNKNOWN;
	if (b->min < a->min)
		a->min = b->min;
	if (unknown)
		a->max = PLUMB_UNKNOWN;
	else if (b->max > a->max)
		a->max = b->max;
}

double
plumb_stat_deviation(const struct plumb_stat *stat)
{
	if (isnan(stat->m2))
		return NAN;
	if (stat->count < 2 || !(stat->m2 > 0))
		return 0;
	return sqrt(stat->m2 / (double)(stat->count - 1));
}
