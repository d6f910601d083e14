/* SPDX-License-Identifier: Apache-2.0 */
/* Counters from the kernel's perf events, of the calling thread, in user and kernel mode where that
 * is allowed and in user mode else. */
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collect/metric.h"

static const struct {
	const char *name;
	enum plumb_metric metric;
	uint32_t type;
	uint64_t config;
} events[] = {
	{ "cycles", PLUMB_METRIC_CPU_CYCLES, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES },
	{ "instructions", PLUMB_METRIC_CPU_INSTRUCTIONS, PERF_TYPE_HARDWARE,
	  PERF_COUNT_HW_INSTRUCTIONS },
	{ "cache-references", PLUMB_METRIC_CPU_CACHE_REFERENCES, PERF_TYPE_HARDWARE,
	  PERF_COUNT_HW_CACHE_REFERENCES },
	{ "cache-misses", PLUMB_METRIC_CPU_CACHE_MISSES, PERF_TYPE_HARDWARE,
	  PERF_COUNT_HW_CACHE_MISSES },
	{ "branches", PLUMB_METRIC_CPU_BRANCHES, PERF_TYPE_HARDWARE,
	  PERF_COUNT_HW_BRANCH_INSTRUCTIONS },
	{ "branch-misses", PLUMB_METRIC_CPU_BRANCH_MISSES, PERF_TYPE_HARDWARE,
	  PERF_COUNT_HW_BRANCH_MISSES },
	{ "page-faults", PLUMB_METRIC_CPU_PAGE_FAULTS, PERF_TYPE_SOFTWARE,
	  PERF_COUNT_SW_PAGE_FAULTS },
	{ "context-switches", PLUMB_METRIC_CPU_CONTEXT_SWITCHES, PERF_TYPE_SOFTWARE,
	  PERF_COUNT_SW_CONTEXT_SWITCHES },
	{ "migrations", PLUMB_METRIC_CPU_MIGRATIONS, PERF_TYPE_SOFTWARE,
	  PERF_COUNT_SW_CPU_MIGRATIONS },
};
enum { EVENTS = sizeof events / sizeof *events };

static enum plumb_metric
perf_find(const char *name, size_t length)
{
	for (unsigned i = 0; i < EVENTS; i++)
		if (strlen(events[i].name) == length && !strncmp(events[i].name, name, length))
			return events[i].metric;
	return 0;
}

static int
perf_open(enum plumb_metric metric)
{
	unsigned at = 0;
	while (at < EVENTS && events[at].metric != metric)
		at++;
	if (at == EVENTS)
		return -EINVAL;
	struct perf_event_attr attributes = {
		.size = sizeof attributes,
		.type = events[at].type,
		.config = events[at].config,
		.exclude_hv = 1,
		/* More counters than the processor has take turns: counts are scaled by these. */
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
	};
	for (int user_only = 0; user_only < 2; user_only++) {
		attributes.exclude_kernel = (unsigned)user_only & 1;
		int fd = (int)syscall(SYS_perf_event_open, &attributes, 0, -1, -1,
		                      PERF_FLAG_FD_CLOEXEC);
		if (fd >= 0)
			return fd;
		if (errno != EACCES && errno != EPERM)
			break;
	}
	return -errno;
}

/* A program that closes all descriptors may have given the number to a file of its own. */
static bool
is_event(int fd)
{
	uint64_t id;
	return ioctl(fd, PERF_EVENT_IOC_ID, &id) == 0;
}

static bool
perf_read(int handle, uint64_t *value)
{
	struct {
		uint64_t value, enabled, running;
	} now;
	if (!is_event(handle) || read(handle, &now, sizeof now) != sizeof now ||
	    now.running > now.enabled)
		return false;
	*value = now.value;
	if (now.running && now.running < now.enabled)
		*value = (uint64_t)((__uint128_t)now.value * now.enabled / now.running);
	return true;
}

static void
perf_close(int handle)
{
	if (is_event(handle))
		close(handle);
}

const struct plumb_counter_source plumb_counters_perf = {
	.name = "perf",
	.find = perf_find,
	.open = perf_open,
	.read = perf_read,
	.close = perf_close,
};
