/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a profile file: an error or a profile whose every number can be used. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyze/analyze.h"
#include "model/metric.h"
#include "store/store.h"
#include "view/view.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int fd = -1;
static char path[] = "/tmp/plumb-fuzz-store-XXXXXX";

static void
use(const struct plumb_profile *profile)
{
	struct plumb_stat *stats = calloc(2 * (size_t)profile->contexts_count, sizeof *stats);
	if (!stats)
		return;
	for (uint32_t slot = 1; slot < plumb_metric_slots(profile); slot++)
		plumb_inclusive(profile, plumb_metric_at(slot), PLUMB_NONE, stats,
		                stats + profile->contexts_count);
	for (uint32_t i = 0; i < profile->values_count; i++)
		if (!plumb_profile_metric(profile, profile->values[i].metric).name)
			abort();
	free(stats);
	for (uint32_t i = 0; i < profile->contexts_count; i++)
		if (!plumb_frame_label(profile, profile->contexts[i].frame))
			abort();
	for (uint32_t i = 0; i < profile->work_count; i++)
		if (profile->work[i].context >= profile->contexts_count ||
		    profile->work[i].track >= profile->tracks_count)
			abort();
}

/* Answers about traffic add up numbers of many tables; each form of them must come to an end. */
static void
ask(const struct plumb_profile *profile)
{
	struct plumb_error error = { 0 };
	FILE *out = fopen("/dev/null", "w");

	for (int by = PLUMB_TRAFFIC_BY_PAIR; out && by <= PLUMB_TRAFFIC_BY_ROUTE; by++) {
		struct plumb_traffic_query query = { .by = (enum plumb_traffic_by)by };
		enum plumb_view_format format = by ? PLUMB_VIEW_CSV : PLUMB_VIEW_JSON;

		if (plumb_view_traffic(profile, &query, format, out, &error) && !*error.message)
			abort();
	}
	if (out)
		fclose(out);
}

static void
remove_file(void)
{
	unlink(path);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (fd < 0) {
		/* A real file: SQLite follows /proc/self/fd to a name that a memfd has not. */
		fd = mkostemp(path, O_CLOEXEC);
		if (fd < 0)
			abort();
		atexit(remove_file);
	}
	if (ftruncate(fd, 0) || pwrite(fd, data, size, 0) != (ssize_t)size)
		abort();
	struct plumb_profile profile;
	struct plumb_error error = { 0 };
	if (!plumb_store_read(&profile, path, &error)) {
		use(&profile);
		ask(&profile);
		if (plumb_analyze(&profile, NULL, &error))
			abort();
	} else if (!*error.message || strchr(error.message, '\n')) {
		abort();
	}
	plumb_profile_free(&profile);
	return 0;
}
