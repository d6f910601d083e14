/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `plumb run --counters LIST --counters-kernels FILE[:N]`: which hardware counters, and of which
 * kernels. The collector knows the chip. Here names are checked, and kernels become hashes, as
 * names of C++ do not fit into a variable.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/counters.h"
#include "base/hash.h"
#include "cli/load.h"
#include "cli/run/options.h"
#include "cli/suggest.h"

int
plumb_run_counters_launches(const struct plumb_options *given, unsigned *launches,
                            struct plumb_error *error)
{
	int64_t number = plumb_options_number(given, "counters-launches");
	if (number < 1 || number > PLUMB_COUNTERS_LAUNCHES_MOST)
		return plumb_fail(error, PLUMB_EUSAGE, "--counters-launches takes 1 to %u",
		                  PLUMB_COUNTERS_LAUNCHES_MOST);
	*launches = (unsigned)number;
	return 0;
}

int
plumb_run_counters_cost(const struct plumb_options *given, unsigned *cost,
                        struct plumb_error *error)
{
	int64_t number = plumb_options_number(given, "counters-cost");
	if (number < 0 || number == 1 || number > PLUMB_COUNTERS_COST_MOST)
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "--counters-cost takes 2 to %u, or 0 for no limit",
		                  PLUMB_COUNTERS_COST_MOST);
	*cost = (unsigned)number;
	return 0;
}

/* Names that were probably meant by NAME, or all of them if none is near. */
static void
list_near(const char *name, size_t length, char *text, size_t size)
{
	char word[64];
	snprintf(word, sizeof word, "%.*s", (int)length, name);
	text[0] = '\0';
	for (int all = 0; all < 2 && !text[0]; all++)
		for (const struct plumb_counter *c = plumb_counters; c->name; c++) {
			size_t used = strlen(text);
			if (all || plumb_suggest_is_near(word, c->name))
				snprintf(text + used, size - used, "%s%s", used ? ", " : "",
				         c->name);
		}
}

/* Is LIST one of counters, or WORD, which stands for several of them? At most MOST, of OPTION. */
static int
check_list(const char *list, const char *option, const char *word, unsigned most,
           struct plumb_error *error)
{
	const char *name;
	char near[400];
	size_t length;
	unsigned count = 0;
	for (const char *at = list; plumb_counter_listed(&at, &name, &length); count++) {
		if (!length)
			return plumb_fail(error, PLUMB_EUSAGE, "--%s has an empty name in \"%s\"",
			                  option, list);
		if ((length == strlen(word) && !memcmp(name, word, length)) ||
		    plumb_counter_find(name, length) || plumb_counter_is_foreign(name, length))
			continue;
		list_near(name, length, near, sizeof near);
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "--%s does not know \"%.*s\"; near: %s. It also takes %s, and "
		                  "metrics of Nsight Compute's such as dram__bytes_read.sum",
		                  option, (int)length, name, near, word);
	}
	if (count > most)
		return plumb_fail(error, PLUMB_EUSAGE, "--%s takes at most %u names", option, most);
	return strlen(list) >= PLUMB_RUN_COUNTERS_BYTES
	               ? plumb_fail(error, PLUMB_EUSAGE, "--%s is too long", option)
	               : 0;
}

int
plumb_run_counters_check(const char *list, struct plumb_error *error)
{
	return check_list(list, "counters", PLUMB_COUNTERS_ROOFLINE, PLUMB_COUNTERS_MOST, error);
}

/* ---- the kernels ---- */

struct kernel {
	uint32_t name; /* string */
	int64_t ns;
};

static int
by_time(const void *a, const void *b)
{
	const struct kernel *x = a, *y = b;
	return x->ns != y->ns ? (x->ns < y->ns) - (x->ns > y->ns)
	                      : (x->name > y->name) - (x->name < y->name);
}

static int
by_name(const void *a, const void *b)
{
	const struct kernel *x = a, *y = b;
	return (x->name > y->name) - (x->name < y->name);
}

/* The kernels of PROFILE, the longest first. Returns how many. */
static uint32_t
rank_kernels(const struct plumb_profile *profile, struct kernel *kernels)
{
	uint32_t count = 0, kept = 0;
	for (uint32_t i = 0; i < profile->values_count; i++) {
		const struct plumb_value *value = &profile->values[i];
		const struct plumb_frame *frame = plumb_context_frame(profile, value->context);
		if (value->metric == PLUMB_METRIC_GPU_TIME && frame->kind == PLUMB_FRAME_KERNEL &&
		    frame->name != PLUMB_NONE)
			kernels[count++] = (struct kernel){ frame->name, value->sum };
	}
	qsort(kernels, count, sizeof *kernels, by_name);
	for (uint32_t i = 0; i < count; i++) {
		if (kept && kernels[kept - 1].name == kernels[i].name)
			kernels[kept - 1].ns += kernels[i].ns;
		else
			kernels[kept++] = kernels[i];
	}
	qsort(kernels, kept, sizeof *kernels, by_time);
	return kept;
}

uint32_t *
plumb_run_counters_hot(const struct plumb_profile *profile, uint32_t most, uint32_t *count)
{
	struct kernel *kernels = calloc(profile->values_count + 1ul, sizeof *kernels);
	uint32_t all = kernels ? rank_kernels(profile, kernels) : 0;
	*count = all < most ? all : most;
	uint32_t *names = kernels ? malloc((*count + 1ul) * sizeof *names) : NULL;
	for (uint32_t i = 0; names && i < *count; i++)
		names[i] = kernels[i].name;
	free(kernels);
	return names;
}

void
plumb_run_counters_hash(const struct plumb_profile *profile, const uint32_t *kernels,
                        uint32_t count, char *text, size_t size)
{
	size_t used = 0;
	text[0] = '\0';
	for (uint32_t i = 0; i < count && used < size; i++) {
		const char *name = plumb_text(profile, kernels[i]);
		used += (size_t)snprintf(text + used, size - used, "%s%016llx", i ? "," : "",
		                         (unsigned long long)plumb_hash_bytes(name, strlen(name)));
	}
}

static int
hash_kernels(const struct plumb_profile *profile, const char *path, uint32_t most, char *text,
             size_t size, struct plumb_error *error)
{
	uint32_t count, *kernels = plumb_run_counters_hot(profile, most, &count);
	if (!kernels)
		return plumb_fail_memory(error, "for the kernels of %s", path);
	plumb_run_counters_hash(profile, kernels, count, text, size);
	free(kernels);
	return count ? 0
	             : plumb_fail(error, PLUMB_EUSAGE,
	                          "--counters-kernels: %s has no GPU kernels; record the program "
	                          "without --counters first",
	                          path);
}

/* "FILE" or "FILE:N". */
static int
read_kernels(const char *given, char *text, size_t size, struct plumb_error *error)
{
	const char *colon = strrchr(given, ':');
	char path[4096];
	unsigned long most = PLUMB_COUNTERS_KERNELS_DEFAULT;
	snprintf(path, sizeof path, "%s", given);
	if (access(given, F_OK) != 0 && colon && colon[1] &&
	    strspn(colon + 1, "0123456789") == strlen(colon + 1)) {
		snprintf(path, sizeof path, "%.*s", (int)(colon - given), given);
		most = strtoul(colon + 1, NULL, 10);
		if (most < 1 || most > PLUMB_COUNTERS_KERNELS_MOST)
			return plumb_fail(error, PLUMB_EUSAGE,
			                  "--counters-kernels takes from 1 to %u kernels, not %s",
			                  PLUMB_COUNTERS_KERNELS_MOST, colon + 1);
	}
	struct plumb_profile profile = { 0 };
	int code = plumb_load(&profile, path, PLUMB_LOAD_TOTALS, NULL, error);
	if (!code)
		code = hash_kernels(&profile, path, (uint32_t)most, text, size, error);
	plumb_profile_free(&profile);
	return code;
}

int
plumb_run_counters_read(const struct plumb_options *given, struct plumb_run_options *options,
                        struct plumb_error *error)
{
	const char *kernels = plumb_options_text(given, "counters-kernels");
	options->counters = plumb_options_text(given, "counters");
	if (!options->counters)
		return kernels ? plumb_fail(error, PLUMB_EUSAGE,
		                            "--counters-kernels says what --counters looks at; add "
		                            "--counters=roofline")
		               : 0;
	int code = plumb_run_counters_check(options->counters, error);
	if (!code)
		code = plumb_run_counters_launches(given, &options->counters_launches, error);
	if (!code)
		code = plumb_run_counters_cost(given, &options->counters_cost, error);
	if (code)
		return code;
	if (options->gpu != PLUMB_GPU_ACTIVITY)
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "--counters needs records of GPU work; leave out --no-gpu, "
		                  "--gpu and --traffic=full");
	if (options->stalls)
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "--counters contradicts --stalls: both need the GPU's counters; "
		                  "make two recordings");
	return kernels ? read_kernels(kernels, options->counters_kernels,
	                              sizeof options->counters_kernels, error)
	               : 0;
}

int
plumb_run_series_read(const struct plumb_options *given, struct plumb_run_options *options,
                      struct plumb_error *error)
{
	int64_t every = plumb_options_number(given, "counters-every");
	options->counters_series = plumb_options_text(given, "counters-series");
	if (!options->counters_series)
		return plumb_options_given(given, "counters-every")
		               ? plumb_fail(error, PLUMB_EUSAGE,
		                            "--counters-every says how often --counters-series "
		                            "samples; add --counters-series")
		               : 0;
	int code = check_list(options->counters_series, "counters-series", PLUMB_SERIES_DEFAULT,
	                      PLUMB_SERIES_MOST, error);
	if (code)
		return code;
	if (every < PLUMB_SERIES_US_LEAST || every > PLUMB_SERIES_US_MOST)
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "--counters-every takes %u to %u microseconds",
		                  PLUMB_SERIES_US_LEAST, PLUMB_SERIES_US_MOST);
	options->counters_every = (unsigned)every;
	if (options->gpu != PLUMB_GPU_ACTIVITY)
		return plumb_fail(
			error, PLUMB_EUSAGE,
			"--counters-series needs records of GPU work; leave out --no-gpu, "
			"--gpu and --traffic=full");
	if (options->counters || options->stalls)
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "--counters-series contradicts --%s: both need the GPU's "
		                  "counters; make two recordings",
		                  options->counters ? "counters" : "stalls");
	return 0;
}
