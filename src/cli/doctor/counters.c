/* SPDX-License-Identifier: Apache-2.0 */
/* `plumb doctor --counters`: which hardware counters the first GPU has, in how many passes each
 * comes, and which can be sampled over time. CUPTI says so without a context; whether one may read
 * them, gpu.counters tells. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/counters.h"
#include "cli/doctor/doctor.h"
#include "cli/run/probe.h"
#include "collect/gpu/cuda/counters_api.h"

#define SECONDS 60
#define SERIES "series"

/* The metrics of EXPRESSION beside the COUNT of NAMES; returns how many there are then. */
static size_t
add_names(const char *expression, char **names, size_t count)
{
	struct plumb_counter_term term;
	while (plumb_counter_term(&expression, &term) && count < PLUMB_COUNTERS_TERMS_MOST)
		names[count++] = strndup(term.name, term.length);
	return count;
}

#define X(name, params, last) int (*name)(struct params *);
struct functions {
	PLUMB_HOST_FUNCTIONS(X)
};
#undef X

/* How many passes NAMES need on CHIP with a profiler of TYPE; 0: some metric is not there. */
static size_t
count_passes(const struct functions *cupti, uint32_t type, const char *chip, char **names,
             size_t count)
{
	struct plumb_host_begin begin = {
		.size = PLUMB_PARAMS_SIZE(struct plumb_host_begin, host),
		.type = type,
		.chip = chip,
	};
	int result = cupti->ProfilerHostInitialize(&begin);
	if (result) {
		printf("failed=cuptiProfilerHostInitialize says %d\n", result);
		return 0;
	}
	struct plumb_host_add add = {
		.size = PLUMB_PARAMS_SIZE(struct plumb_host_add, count),
		.host = begin.host,
		.names = (const char **)names,
		.count = count,
	};
	struct plumb_host_config_size size = {
		.size = PLUMB_PARAMS_SIZE(struct plumb_host_config_size, bytes),
		.host = begin.host,
	};
	struct plumb_host_passes passes = {
		.size = PLUMB_PARAMS_SIZE(struct plumb_host_passes, passes),
	};
	uint8_t *image = NULL;
	bool known = !cupti->ProfilerHostConfigAddMetrics(&add) &&
	             !cupti->ProfilerHostGetConfigImageSize(&size) &&
	             (image = calloc(1, size.bytes));
	if (known) {
		struct plumb_host_config config = {
			.size = PLUMB_PARAMS_SIZE(struct plumb_host_config, config),
			.host = begin.host,
			.bytes = size.bytes,
			.config = image,
		};
		passes.bytes = size.bytes;
		passes.config = image;
		known = !cupti->ProfilerHostGetConfigImage(&config) &&
		        !cupti->ProfilerHostGetNumOfPasses(&passes);
	}
	struct plumb_host_end end = {
		.size = PLUMB_PARAMS_SIZE(struct plumb_host_end, host),
		.host = begin.host,
	};
	cupti->ProfilerHostDeinitialize(&end);
	free(image);
	return known ? passes.passes : 0;
}

/* Prints those of --counters-series that fit into one pass, as the collector chooses them. */
static void
print_series(const struct functions *cupti, void *library, const char *chip,
             enum plumb_counter_family family)
{
	char *names[PLUMB_COUNTERS_TERMS_MOST];
	size_t count = 0, found = 0;
#define X(name, params, last) found += dlsym(library, "cupti" #name) != NULL;
	PLUMB_SAMPLING_FUNCTIONS(X)
#undef X
	for (unsigned place = 1; found && place <= PLUMB_SERIES_MOST; place++)
		for (const struct plumb_counter *c = plumb_counters; c->name; c++) {
			const char *ways[] = { c->expressions[family], c->otherwise };
			for (int i = 0; c->sampled == place && i < 2 && ways[i]; i++) {
				size_t with = add_names(ways[i], names, count);
				if (count_passes(cupti, PLUMB_COUNTING_SAMPLES, chip, names,
				                 with) != 1)
					continue;
				printf("%s%s", count ? ", " : SERIES "=", c->name);
				count = with;
				break;
			}
		}
	printf(count ? "\n" : "");
}

/* In a child: prints the chip, and the passes of each counter and of all of them. */
static int
ask_counters(void *data)
{
	struct functions cupti;
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	void *library = dlopen(data, RTLD_NOW | RTLD_LOCAL);
	/* CUPTI looks for it by its bare name, but it lies in CUPTI's folder. */
	char host[PATH_MAX + 32];
	const char *end = strrchr(data, '/');
	if (end) {
		snprintf(host, sizeof host, "%.*s/libnvperf_host.so", (int)(end - (char *)data),
		         (char *)data);
		dlopen(host, RTLD_LAZY);
	}
	int (*init)(unsigned) = driver ? (int (*)(unsigned))dlsym(driver, "cuInit") : NULL;
	if (!library || !init || init(0)) {
		printf("failed=there is no GPU to ask\n");
		return 3;
	}
#define X(name, params, last)                                                                      \
	cupti.name = (int (*)(struct params *))dlsym(library, "cupti" #name);                      \
	if (!cupti.name) {                                                                         \
		printf("failed=this CUPTI has no cupti" #name                                      \
		       "; it takes that of CUDA 12.8 or newer\n");                                 \
		return 3;                                                                          \
	}
	PLUMB_HOST_FUNCTIONS(X)
#undef X
	struct plumb_profiler_begin begin = {
		.size = PLUMB_PARAMS_SIZE(struct plumb_profiler_begin, priv),
	};
	struct plumb_profiler_chip chip = {
		.size = PLUMB_PARAMS_SIZE(struct plumb_profiler_chip, name),
	};
	int result = cupti.ProfilerInitialize(&begin);
	if (!result)
		result = cupti.DeviceGetChipName(&chip);
	if (result) {
		printf("failed=CUPTI does not tell the chip (%d)\n", result);
		return 3;
	}
	printf("chip=%s\n", chip.name);
	enum plumb_counter_family family = plumb_counter_family(chip.name);
	char *all[PLUMB_COUNTERS_TERMS_MOST];
	size_t count = 0;
	for (const struct plumb_counter *c = plumb_counters;
	     c->name && family < PLUMB_COUNTER_FAMILIES; c++) {
		char *names[PLUMB_COUNTERS_TERMS_MOST];
		size_t own = add_names(c->expressions[family], names, 0);
		size_t passes = count_passes(&cupti, PLUMB_COUNTING_RANGES, chip.name, names, own);
		printf("%s=%zu\n", c->name, passes);
		fflush(stdout); /* should the next call crash */
		if (passes && c->roofline)
			count = add_names(c->expressions[family], all, count);
	}
	printf(PLUMB_COUNTERS_ROOFLINE "=%zu\n",
	       count ? count_passes(&cupti, PLUMB_COUNTING_RANGES, chip.name, all, count) : 0);
	fflush(stdout);
	if (family < PLUMB_COUNTER_FAMILIES)
		print_series(&cupti, library, chip.name, family);
	return 0;
}

static void
add_row(struct plumb_checks *checks, const struct plumb_probe *probe, const char *name,
        const char *what, const char *why)
{
	char text[32];
	int passes = plumb_probe_value(probe->output, name, text, sizeof text) ? atoi(text) : 0;
	if (passes > 0) {
		plumb_check_add(checks, name, PLUMB_CHECK_YES, "%s: %d pass%s", what, passes,
		                passes == 1 ? "" : "es");
		return;
	}
	plumb_check_add(checks, name, PLUMB_CHECK_NO, "%s", what);
	plumb_check_why(checks, "%s", why);
}

void
plumb_doctor_counters(struct plumb_checks *checks)
{
	char failed[200], chip[64], why[128] = "CUPTI was not found";
	struct plumb_probe *probe = calloc(1, sizeof(*probe));
	if (!probe)
		return;
	if (checks->cupti[0])
		plumb_probe_call(probe, ask_counters, checks->cupti, SECONDS);
	if (plumb_probe_value(probe->output, "failed", failed, sizeof failed))
		snprintf(why, sizeof why, "%.127s", failed);
	else if (probe->timed_out || probe->status > 128)
		snprintf(why, sizeof why, "CUPTI hung or crashed");
	else if (plumb_probe_value(probe->output, "chip", chip, sizeof chip))
		snprintf(why, sizeof why,
		         "the chip %.40s has no such metric, or plumb does not "
		         "know its name",
		         chip);
	for (const struct plumb_counter *c = plumb_counters; c->name; c++)
		add_row(checks, probe, c->name, c->what, why);
	add_row(checks, probe, PLUMB_COUNTERS_ROOFLINE, "those of plumb run --counters together",
	        why);
	char sampled[300];
	if (plumb_probe_value(probe->output, SERIES, sampled, sizeof sampled)) {
		plumb_check_add(checks, SERIES, PLUMB_CHECK_YES,
		                "over time, plumb run --counters-series: %s", sampled);
	} else {
		plumb_check_add(checks, SERIES, PLUMB_CHECK_NO,
		                "over time, plumb run --counters-series");
		plumb_check_why(checks, "%s", why);
	}
	free(probe);
}
