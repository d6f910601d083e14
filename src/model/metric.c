/* SPDX-License-Identifier: Apache-2.0 */
#include "model/metric.h"

#include <string.h>

struct plumb_metric_info
plumb_profile_metric(const struct plumb_profile *profile, uint32_t number)
{
	struct plumb_metric_info info = { NULL };

	if (number < PLUMB_METRIC_COUNT)
		return plumb_metrics[number];
	if (number < PLUMB_METRIC_USER || number - PLUMB_METRIC_USER >= profile->user_metrics_count)
		return info;
	const struct plumb_user_metric *metric = &profile->user_metrics[number - PLUMB_METRIC_USER];
	const char *unit = plumb_text(profile, metric->unit);
	info.name = plumb_text(profile, metric->name);
	info.unit = unit ? unit : "";
	info.aggregation = PLUMB_SUM;
	info.source = "user";
	info.meaning = "a metric of your program";
	return info;
}

uint32_t
plumb_profile_metric_find(const struct plumb_profile *profile, const char *name)
{
	uint32_t number = plumb_metric_find(name);

	for (uint32_t i = 0; !number && i < profile->user_metrics_count; i++) {
		const char *text = plumb_text(profile, profile->user_metrics[i].name);
		if (text && !strcmp(text, name))
			number = PLUMB_METRIC_USER + i;
	}
	return number;
}

const char *
plumb_profile_metric_estimate(const struct plumb_profile *profile, uint32_t number)
{
	const char *mode;

	if (number < PLUMB_METRIC_STALL_MEMORY || number > PLUMB_METRIC_STALL_OTHER)
		return NULL;
	mode = plumb_profile_environment(profile, "gpu.stalls.mode");
	if (!mode || !strcmp(mode, "serialised"))
		return NULL;
	return "where a kernel has several contexts, their parts are estimated by its time there";
}
